package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// reader is another process on the rig's store, which reads logs and does nothing else.
func (g *rig) reader(hook faulty.Hook) *lease.LogReader {
	g.t.Helper()
	if hook == nil {
		hook = func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{} }
	}
	d := g.dispatcher(faulty.New(g.store, hook), g.queue, time.Now)
	return lease.NewLogReader(d, g.blobs, slog.New(slog.DiscardHandler))
}

// writer is a target that writes what it is given, until it is told to end.
type writer struct {
	more chan string
	end  chan struct{}
}

func (w writer) call(ctx context.Context, c target.Call) (target.Result, error) {
	_, _ = c.Log.Write([]byte("begun\n"))
	for {
		select {
		case text := <-w.more:
			_, _ = c.Log.Write([]byte(text))
		case <-w.end:
			return target.Result{}, nil
		case <-ctx.Done():
			return target.Result{}, ctx.Err()
		}
	}
}

func anHour(d *job.Definition) { d.Timeout = schedule.Duration(time.Hour) }

// follow reads the log of a run twice a second, as a follower does.
func (g *rig) follow(l *lease.LogReader, r run.Run, d time.Duration) (text string) {
	g.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if log, ok := l.LiveLog(g.t.Context(), g.read(r)); ok {
			text = string(log.Text())
		}
	}
	return text
}

// What an attempt of another process on the store writes can be read while it goes on. While nobody reads it, nothing is written for it.
func TestALogOfAnotherProcessIsReadWhileItIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		w := writer{make(chan string), make(chan struct{})}
		handlers, calls := handler(t, w.call)
		p := g.process("w", options{handlers: handlers})
		r := g.start(atLeastOnce, anHour)
		time.Sleep(5*time.Minute + 5*time.Second)
		unread := g.read(r)
		if want := uint64(2 + 30); unread.Version != want { // made, started, renewed every ten seconds
			t.Errorf("a run that nobody reads was written %d times, want %d", unread.Version, want)
		}
		first, second := g.reader(nil), g.reader(nil)
		if text := g.follow(first, r, leaseFor/3+3*time.Second); text != "begun\n" {
			t.Errorf("a renewal later: %q", text)
		}
		if read := g.read(r); read.Fence != unread.Fence || read.Cancel || read.Attempt != 1 {
			t.Errorf("read, it is %+v", read)
		}
		if log, ok := first.LiveLog(t.Context(), unread); !ok || log.Attempt != 1 {
			t.Errorf("it is the log of attempt %d, %t", log.Attempt, ok)
		}
		w.more <- "goes on\n"
		if text := g.follow(first, r, 5*time.Second); text != "begun\ngoes on\n" {
			t.Errorf("some seconds later: %q", text)
		}
		if text := g.follow(second, r, 500*time.Millisecond); text != "begun\ngoes on\n" {
			t.Errorf("who reads it, too, is shown %q", text)
		}
		other := g.read(r)
		other.Tenant = "other"
		if log, ok := second.LiveLog(t.Context(), other); ok {
			t.Errorf("another tenant reads %q", log.Text())
		}

		// Read for long, it is shown for as long.
		for _, text := range []string{"a", "b", "c", "d\n"} {
			g.follow(first, r, time.Minute)
			w.more <- text
		}
		if text := g.follow(first, r, 5*time.Second); text != "begun\ngoes on\nabcd\n" {
			t.Errorf("minutes later: %q", text)
		}

		time.Sleep(2 * time.Minute) // nobody reads
		version := g.read(r).Version
		w.more <- "unread\n"
		time.Sleep(time.Minute)
		if now := g.read(r).Version; now != version+6 {
			t.Errorf("in a minute in which nobody read it, it was written %d times, want 6 renewals", now-version)
		}
		if text := g.follow(g.reader(nil), r, 500*time.Millisecond); text != "begun\ngoes on\nabcd\n" {
			t.Errorf("though nobody read any more, %q was shown", text)
		}
		close(w.end)
		time.Sleep(time.Second)
		done := g.want(r, run.Succeeded, 1)
		if log, err := g.log(done); err != nil || log != "begun\ngoes on\nabcd\nunread\n" {
			t.Errorf("in the end: %q, %v", log, err)
		}
		ended := unread
		if log, ok := g.reader(nil).LiveLog(t.Context(), ended); ok {
			t.Errorf("what was shown is there when all is: %q", log.Text())
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
		p.stop()
	})
}

// TestP5_AReaderNeverCostsALease has touches lost, done unknown to who made them, and in the way of every write of the attempt, from its start on:
// before the write, and between one whose answer was lost and its repetition.
func TestP5_AReaderNeverCostsALease(t *testing.T) {
	touches := map[string]faulty.Fault{
		"Done": {}, "AnswerLost": {Lose: store.ErrUnknown}, "Refused": {Refuse: store.ErrThrottled}, "Unknown": {Refuse: store.ErrUnknown},
	}
	starts := map[string]func(*job.Definition){
		"Together": anHour,
		"ByItself": func(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapQueue, Limit: 1} },
		"AStep":    oneStep,
	}
	for name, fault := range touches {
		for start, how := range starts {
			for guarantee, promise := range map[string]func(*job.Definition){"AtMostOnce": atMostOnce, "AtLeastOnce": atLeastOnce} {
				for writes, lost := range map[string]bool{"Answered": false, "AnswersLost": true} {
					t.Run(strings.Join([]string{name, start, guarantee, writes}, "/"), func(t *testing.T) {
						inBubble(t, func(t *testing.T, g *rig) { neverCostsALease(t, g, fault, lost, promise, how) })
					})
				}
			}
		}
	}
}

// oneStep makes a job one of a workflow whose step does what it did.
func oneStep(d *job.Definition) {
	guarantee := d.Guarantee
	if guarantee == "" {
		guarantee = job.AtLeastOnce
	}
	*d = job.Definition{Target: target.Spec{Workflow: fmt.Appendf(nil, `{"steps": {"a": {"handler": {"name": "f"}, "timeout": "1h", "guarantee": %q}}}`, guarantee)}}.WithDefaults()
}

func neverCostsALease(t *testing.T, g *rig, fault faulty.Fault, lost bool, changes ...func(*job.Definition)) {
	touching := func(_ context.Context, c faulty.Call) faulty.Fault {
		if len(c.Ops) > 0 {
			return fault
		}
		return faulty.Fault{}
	}
	w := writer{make(chan string), make(chan struct{})}
	handlers, calls := handler(t, w.call)
	j := g.job(func(d *job.Definition) {
		for _, change := range changes {
			change(d)
		}
	})
	whole := g.queued(j, time.Now())
	r := whole
	if j.Def.Target.Workflow != nil {
		r.ID = r.ID.At("a")
	}
	var mu sync.Mutex
	tries := map[run.State]int{}
	p := g.process("w", options{handlers: handlers, hook: func(ctx context.Context, c faulty.Call) faulty.Fault {
		mu.Lock()
		defer mu.Unlock()
		for _, state := range []run.State{run.Running, run.Succeeded} {
			if !ofRun(c, r, state) {
				continue
			}
			n := tries[state]
			tries[state]++
			switch {
			case lost && n%4 == 0:
				return faulty.Fault{Lose: store.ErrUnknown}
			case lost && n%2 == 1, !lost && n%2 == 0:
				g.reader(nil).LiveLog(ctx, g.read(r)) // just before it
			}
		}
		return faulty.Fault{}
	}})
	g.send(whole)
	time.Sleep(time.Second)
	started := g.want(r, run.Running, 1)
	if calls.Load() != 1 {
		t.Fatalf("a second after its start it was called %d times", calls.Load())
	}
	if text := g.follow(g.reader(touching), r, 5*time.Minute); text != "begun\n" {
		t.Errorf("it reads %q", text)
	}
	if read := g.read(r); read.Fence != started.Fence || read.State != run.Running {
		t.Errorf("it is %s under fence %d, was started under %d", read.State, read.Fence, started.Fence)
	}
	close(w.end)
	time.Sleep(time.Minute)
	g.want(r, run.Succeeded, 1)
	if read := g.read(whole); read.State != run.Succeeded {
		t.Errorf("the run is %s", read.State)
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
	g.empty()
	p.stop()
}

// TestP4_AReaderKeepsNoDeadWorkersLease: a run that is read is taken from a worker that has died as soon as any other, and the log of the next attempt is
// read then.
func TestP4_AReaderKeepsNoDeadWorkersLease(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		w := writer{make(chan string), make(chan struct{})}
		handlers, _ := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
			if c.Attempt == 1 {
				_, _ = c.Log.Write([]byte("the first of all\n"))
				<-w.end
				return target.Result{}, errors.New("dead")
			}
			return w.call(ctx, c)
		})
		p := g.process("doomed", options{handlers: handlers})
		r := g.start(atLeastOnce, anHour)
		l := g.reader(nil)
		if text := g.follow(l, r, leaseFor-time.Second); text != "the first of all\n" {
			t.Errorf("it reads %q", text)
		}
		p.dead.Store(true)
		// The dead one may be handed the message once more.
		next := g.process("next", options{handlers: handlers})
		if text := g.follow(l, r, 6*leaseFor); text != "begun\n" {
			t.Errorf("of the next attempt it reads %q", text)
		}
		if read := g.read(r); read.Attempt != 2 || read.Crashes != 1 || !strings.HasPrefix(read.Worker, "next") {
			t.Errorf("it is %+v", read)
		}
		close(w.end)
		time.Sleep(time.Second)
		g.want(r, run.Succeeded, 2)
		next.stop()
	})
}

// TestP5_ABucketThatIsAwayCostsNoLease: what cannot be shown is not, and the attempt goes on to its end.
func TestP5_ABucketThatIsAwayCostsNoLease(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		away := blob.New(memblob.OpenBucket(nil))
		if err := away.Close(); err != nil {
			t.Fatal(err)
		}
		w := writer{make(chan string), make(chan struct{})}
		handlers, calls := handler(t, w.call)
		p := g.process("w", options{handlers: handlers, blobs: away})
		r := g.start(atMostOnce, anHour)
		if text := g.follow(g.reader(nil), r, 3*time.Minute); text != "" {
			t.Errorf("it reads %q", text)
		}
		close(w.end)
		time.Sleep(time.Minute)
		if done := g.want(r, run.Succeeded, 1); done.Log != "" || calls.Load() != 1 {
			t.Errorf("its log is %q, after %d calls", done.Log, calls.Load())
		}
		p.stop()
	})
}
