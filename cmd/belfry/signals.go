package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// asksToStop gives the signals that ask a process to stop that runs for long, and has others do what docs/server.md says of them: none of
// them ends it otherwise, because its runs are to have their grace. What is not handled here would end it at once.
//
// A hang-up ends what belongs to a terminal. Without one it comes from whoever rotates logs or has services read their files anew, of which
// there is nothing to do: log lines go to standard error, and certificates are read anew by themselves.
//
// The signals are kept until ctx is over, which it never is in a process of its own: until that is gone. Given up before it has said how it
// ended, they would let the next one end it without its word and its exit code.
func asksToStop(ctx context.Context, log *slog.Logger, stderr io.Writer) (asked <-chan os.Signal) {
	stops, all := make(chan os.Signal, 2), make(chan os.Signal, 8)
	handled := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE}
	handled = append(handled, othersSignals...)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		handled = append(handled, syscall.SIGHUP)
	}
	signal.Notify(all, handled...)
	ofTerminal := hasTerminal() // asked now: when it hangs up it has gone
	go func() {
		defer signal.Stop(all)
		var first time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case got := <-all:
				switch {
				case got == os.Interrupt, got == syscall.SIGTERM, got == syscall.SIGHUP && ofTerminal:
					if first.IsZero() {
						first = time.Now()
					} else if got == syscall.SIGHUP || time.Since(first) < sameAsking {
						continue
					}
					select {
					case stops <- got:
					default: // it has been asked twice
					}
				case got == syscall.SIGPIPE: // nobody reads what it prints: that is no reason to stop
				case got == syscall.SIGQUIT:
					_, _ = stderr.Write(goroutines())
				default:
					log.Info("a signal that nothing is done for: there are no files to read or open anew", "signal", got.String())
				}
			}
		}
	}()
	return stops
}

// interruptible gives a context that a signal ends, for a command that then says what it leaves. Without a signal, end gives them up: nothing is to be
// said of one that comes later. After one they are kept until ctx is over, as asksToStop keeps them.
func interruptible(ctx context.Context, by ...os.Signal) (interrupted context.Context, end func()) {
	interrupted, giveUp := signal.NotifyContext(ctx, by...)
	return interrupted, func() {
		if interrupted.Err() == nil {
			giveUp()
			return
		}
		context.AfterFunc(ctx, giveUp)
	}
}

// sameAsking is within what time a second signal belongs to the first. A terminal that is closed hangs up twice, by its shell and by the system;
// "timeout", and whatever else passes on what its process group got, sends a signal twice.
const sameAsking = time.Second

// goroutines shows what each goroutine is at, up to 4 MB of it.
func goroutines() []byte {
	text := make([]byte, 4<<20)
	return text[:runtime.Stack(text, true)]
}
