package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// pass lets an idle process make one pass over a run, and tells what became of its message.
func (p *process) pass(t *testing.T, ctx context.Context, r run.Run, left time.Duration) verdict {
	t.Helper()
	body, err := run.Message{Run: r, Sent: time.Now().UnixMilli()}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.hand.given <- queue.Message{Body: body, Receives: 1}
	done := make(chan error, 1)
	go func() { done <- p.Pass(ctx, left) }()
	var v verdict
	for {
		select {
		case v = <-p.hand.settled: // the last word counts; before it are renewals
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			for { // what was said before the pass ended may still lie there
				select {
				case v = <-p.hand.settled:
				default:
					return v
				}
			}
		}
	}
}

func lasting(d time.Duration) func(*job.Definition) {
	return func(def *job.Definition) { def.Timeout = schedule.Duration(d) }
}

func TestFault38_APassEndsWithItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		guarantee func(*job.Definition)
		state     run.State
		again     verdict
	}{
		"AtLeastOnceIsHandedBack": {atLeastOnce, run.Queued, verdict{Again: 0}},
		"AtMostOnceIsUnknown":     {atMostOnce, run.Unknown, verdict{Delete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, func(t *testing.T, g *rig) {
				handlers, calls := handler(t, takes(time.Hour))
				p := g.process("w1", options{handlers: handlers, idle: true})
				r := g.queued(g.job(func(d *job.Definition) { c.guarantee(d); lasting(10 * time.Minute)(d) }), time.Now())
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				if v := p.pass(t, ctx, r, 14*time.Minute); v != c.again {
					t.Errorf("the message: %+v, want %+v", v, c.again)
				}
				if took := time.Since(began); took != time.Minute {
					t.Errorf("the pass took %s, want the minute that it had", took)
				}
				now := g.want(r, c.state, 1)
				if now.Crashes != 0 && c.state == run.Queued || now.Failures != 0 || calls.Load() != 1 {
					t.Errorf("%+v after %d calls, want one call, and neither failure nor crash", now, calls.Load())
				}
			})
		})
	}
}

func TestARunThatMayTakeLongerThanAPassIsNotStarted(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, succeed)
		p := g.process("w1", options{handlers: handlers, idle: true})
		long := g.queued(g.job(lasting(14*time.Minute)), time.Now())
		if v := p.pass(t, t.Context(), long, 14*time.Minute); v.Delete || v.Again == 0 {
			t.Errorf("the message: %+v, want it to come again after a while", v)
		}
		g.want(long, run.Queued, 0)
		short := g.queued(g.job(lasting(13*time.Minute)), time.Now())
		if v := p.pass(t, t.Context(), short, 14*time.Minute); !v.Delete {
			t.Errorf("the message: %+v, want it gone", v)
		}
		g.want(short, run.Succeeded, 1)
		if calls.Load() != 1 {
			t.Errorf("%d calls, want 1", calls.Load())
		}
	})
}

// Whatever a target makes of being stopped, the pass waits for its end: nothing goes on after it.
func TestAPassWaitsForWhatItHasStopped(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		var ended atomic.Bool
		handlers, _ := handler(t, func(ctx context.Context, _ target.Call) (target.Result, error) {
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			ended.Store(true)
			return target.Result{}, nil
		})
		p := g.process("w1", options{handlers: handlers, idle: true})
		r := g.queued(g.job(lasting(10*time.Second)), time.Now())
		if v := p.pass(t, t.Context(), r, 12*time.Second); !v.Delete || !ended.Load() {
			t.Errorf("the message: %+v, want it gone, after the target's end (%v)", v, ended.Load())
		}
		synctest.Wait()
		g.want(r, run.Succeeded, 1)
	})
}
