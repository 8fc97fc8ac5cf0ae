package belfry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// Every call of Stop has its own deadline: the first that is over ends the handlers, whoever called first.
func TestEachStopHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "slow", func(ctx context.Context, _ *Job[string]) error {
			<-ctx.Done()
			return ctx.Err()
		}, Timeout(time.Hour))
		start(t, b)
		enqueue(t, b, "slow", "")
		synctest.Wait()
		began := time.Now()
		ended := make(chan error, 3)
		for _, patience := range []time.Duration{0, 30 * time.Minute, 7 * time.Second} {
			go func() {
				ctx := context.WithoutCancel(t.Context())
				if patience > 0 {
					bounded, cancel := context.WithTimeout(ctx, patience)
					defer cancel()
					ctx = bounded
				}
				ended <- b.Stop(ctx)
			}()
			synctest.Wait() // the one without a deadline comes first
		}
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began).Round(time.Second); took != 7*time.Second {
			t.Errorf("stopped after %s, want the 7s of the least patient", took)
		}
	})
}

// A handler that stops its own Belfry is not waited for by that call, whatever context it gives.
func TestAHandlerMayStop(t *testing.T) {
	for name, stop := range map[string]func(ctx context.Context, b *Belfry) error{
		"ItsContext":      func(ctx context.Context, b *Belfry) error { return b.Stop(ctx) },
		"AnotherContext":  func(_ context.Context, b *Belfry) error { return b.Stop(context.Background()) },
		"Twice":           func(ctx context.Context, b *Belfry) error { return errors.Join(b.Stop(ctx), b.Stop(ctx)) },
		"AnEndedContext":  func(ctx context.Context, b *Belfry) error { return b.Stop(ended(ctx)) },
		"ByItsGoroutine":  func(ctx context.Context, b *Belfry) error { return elsewhere(func() error { return b.Stop(ctx) }) },
		"WhileAnotherIs":  func(ctx context.Context, b *Belfry) error { go b.Stop(context.Background()); return b.Stop(ctx) },
		"WithoutItsTimer": func(ctx context.Context, b *Belfry) error { return b.Stop(context.WithoutCancel(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := open(t, "memory:")
				began := time.Now()
				var ownRun, neighbour error
				Handle(b, "neighbour", func(ctx context.Context, _ *Job[string]) error {
					select {
					case <-time.After(20 * time.Second):
					case <-ctx.Done():
						neighbour = ctx.Err()
					}
					return neighbour
				})
				Handle(b, "stopper", func(ctx context.Context, _ *Job[string]) error {
					ownRun = stop(ctx, b)
					if took := time.Since(began); took != 0 {
						t.Errorf("Stop returned after %s, want at once", took)
					}
					// It has not closed under the handler's feet.
					_, err := Enqueue(context.WithoutCancel(ctx), b, "neighbour", "")
					return errors.Join(ownRun, err)
				})
				start(t, b)
				enqueue(t, b, "neighbour", "")
				synctest.Wait()
				enqueue(t, b, "stopper", "")
				synctest.Wait()
				if err := b.Stop(t.Context()); err != nil || ownRun != nil || neighbour != nil {
					t.Errorf("stopped: %v, in the handler: %v, its neighbour: %v", err, ownRun, neighbour)
				}
				if took := time.Since(began).Round(time.Second); took != 20*time.Second {
					t.Errorf("all was over after %s, want the 20s of the neighbour", took)
				}
				if _, err := b.Run(t.Context(), "x"); err == nil {
					t.Error("it is still open")
				}
			})
		})
	}
}

// ended is a context of a handler that is over.
func ended(ctx context.Context) context.Context {
	over, cancel := context.WithCancel(ctx)
	cancel()
	return over
}

// elsewhere waits for what another goroutine does.
func elsewhere(do func() error) error {
	done := make(chan error)
	go func() { done <- do() }()
	return <-done
}

// The run of a handler that stops its Belfry succeeds, and is not run again at the next start.
func TestTheRunThatStopsIsDone(t *testing.T) {
	data := "pebble://" + t.TempDir()
	program := func() *Belfry {
		b := open(t, data)
		Handle(b, "stopper", func(ctx context.Context, _ *Job[string]) error { return b.Stop(ctx) })
		start(t, b)
		return b
	}
	b := program()
	r := enqueue(t, b, "stopper", "")
	<-b.over
	b = program()
	if got := read(t, b, r.ID); got.State != Succeeded || got.Attempt != 1 {
		t.Errorf("ended as %+v", got)
	}
}

// The deadline that a handler gives ends the other handlers, though its context ends with it.
func TestAHandlersDeadlineBoundsTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		Handle(b, "slow", func(ctx context.Context, _ *Job[string]) error { <-ctx.Done(); return ctx.Err() }, Timeout(time.Hour))
		Handle(b, "stopper", func(ctx context.Context, _ *Job[string]) error {
			soon, cancel := context.WithTimeout(ctx, 9*time.Second)
			defer cancel()
			return b.Stop(soon)
		})
		start(t, b)
		enqueue(t, b, "slow", "")
		synctest.Wait()
		began := time.Now()
		enqueue(t, b, "stopper", "")
		<-b.over
		if took := time.Since(began).Round(time.Second); took != 9*time.Second {
			t.Errorf("all was over after %s, want 9s", took)
		}
	})
}

// A Belfry that a handler has opened for itself is stopped as anywhere: the call waits.
func TestAHandlerStopsAnotherBelfry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		took := time.Duration(-1)
		Handle(b, "outer", func(ctx context.Context, _ *Job[string]) error {
			inner := open(t, "memory:")
			Handle(inner, "slow", func(context.Context, *Job[string]) error { time.Sleep(5 * time.Second); return nil })
			if err := inner.Start(ctx); err != nil {
				return err
			}
			if _, err := Enqueue(ctx, inner, "slow", ""); err != nil {
				return err
			}
			time.Sleep(time.Second)
			began := time.Now()
			err := inner.Stop(ctx)
			took = time.Since(began).Round(time.Second)
			return err
		}, MaxAttempts(1))
		start(t, b)
		r := enqueue(t, b, "outer", "")
		time.Sleep(10 * time.Second)
		if got := read(t, b, r.ID); got.State != Succeeded || took != 4*time.Second {
			t.Errorf("%+v after %s, want the 4s that its handler had left", got, took)
		}
	})
}

// Stop ends a Start that waits for a server which is away.
func TestStopEndsAStart(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	b := open(t, address, Token(token), RemoteQueue("go"))
	waits := waiting{b.engine, make(chan struct{})}
	b.engine = waits
	Handle(b, "a", func(context.Context, *Job[string]) error { return nil })
	started := make(chan error)
	go func() { started <- b.Start(context.WithoutCancel(t.Context())) }()
	<-waits.asked
	if err := b.Stop(ended(t.Context())); err != nil {
		t.Error(err)
	}
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("Start returned %v", err)
	}
}

// waiting is an engine that does not answer.
type waiting struct {
	engine
	asked chan struct{}
}

func (w waiting) put(ctx context.Context, _ string, _ job.Definition, _ control.Match) error {
	close(w.asked)
	<-ctx.Done()
	return ctx.Err()
}
