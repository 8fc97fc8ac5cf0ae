package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// The log of each attempt is found, whatever the others wrote, and one that wrote nothing makes no object.
func TestTheLogOfEachAttemptIsFound(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, _ := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
			if c.Attempt == 1 || c.Attempt == 3 {
				_, _ = fmt.Fprintf(c.Log, "log of %d\n", c.Attempt)
			}
			if c.Attempt < 4 {
				return target.Result{}, errors.New(strings.Repeat("no way ", 30))
			}
			return target.Result{}, nil
		})
		p := g.process("w", options{handlers: handlers})
		r := g.start(atLeastOnce, func(d *job.Definition) {
			d.Retry.MaxAttempts, d.Retry.Initial, d.Retry.Max = 4, schedule.Duration(time.Millisecond), schedule.Duration(time.Millisecond)
		})
		time.Sleep(time.Minute)
		done := g.want(r, run.Succeeded, 4)
		s := &control.Service{Config: control.Config{Blobs: g.blobs}}
		for attempt, want := range []string{"", "log of 1\n", "", "log of 3\n", ""} { // 0 is the newest
			log, err := s.LogOf(t.Context(), done, attempt)
			if err != nil || string(log.Text()) != want || attempt > 0 && log.Attempt != attempt {
				t.Errorf("attempt %d: %q of %d, %v; want %q", attempt, log.Text(), log.Attempt, err, want)
			}
		}
		if log, err := s.LogOf(t.Context(), done, 1); err != nil || !strings.HasPrefix(log.Error, "handler: no way") || len(log.Error) > 203 {
			t.Errorf("its error: %q, %v", log.Error, err)
		}
		if _, err := s.LogOf(t.Context(), done, 5); err == nil || !strings.Contains(err.Error(), "1 to 4") {
			t.Errorf("an attempt that never was: %v", err)
		}
		for _, a := range done.Attempts[:2] {
			if len(a.Error) < 200 {
				t.Errorf("attempt %d keeps %d bytes of its error", a.Number, len(a.Error))
			}
		}
		p.stop()
	})
}

// What an attempt elsewhere writes can be read while it goes on, and is not sent while nobody reads it.
func TestALogElsewhereIsReadWhileItIsWritten(t *testing.T) {
	bubble(t, true, func(t *testing.T, g *rig) {
		more, end := make(chan string), make(chan struct{})
		handlers, _ := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
			_, _ = c.Log.Write([]byte("begun\n"))
			for {
				select {
				case text := <-more:
					_, _ = c.Log.Write([]byte(text))
				case <-end:
					return target.Result{}, nil
				}
			}
		})
		p := g.process("w", options{handlers: handlers})
		r := g.start(atLeastOnce, func(d *job.Definition) { d.Timeout = schedule.Duration(time.Hour) })
		time.Sleep(time.Minute)
		if log, ok := g.far.LiveLog(tenant, r.ID); ok {
			t.Errorf("it was sent though nobody had asked: %q", log.Text())
		}
		time.Sleep(leaseFor/3 + time.Second)
		if log, ok := g.far.LiveLog(tenant, r.ID); !ok || string(log.Text()) != "begun\n" || log.Attempt != 1 {
			t.Errorf("a renewal later: %q of attempt %d, %t", log.Text(), log.Attempt, ok)
		}
		if _, ok := g.far.LiveLog("other", r.ID); ok {
			t.Error("another tenant reads it")
		}
		more <- "goes on\n"
		time.Sleep(3 * time.Second)
		if log, _ := g.far.LiveLog(tenant, r.ID); string(log.Text()) != "begun\ngoes on\n" {
			t.Errorf("some seconds later: %q", log.Text())
		}
		time.Sleep(time.Minute) // nobody reads
		more <- "unread\n"
		time.Sleep(time.Minute)
		if log, ok := g.far.LiveLog(tenant, r.ID); ok {
			t.Errorf("it was sent though nobody read any more: %q", log.Text())
		}
		close(end)
		time.Sleep(time.Second)
		if log, err := g.log(g.want(r, run.Succeeded, 1)); err != nil || log != "begun\ngoes on\nunread\n" {
			t.Errorf("in the end: %q, %v", log, err)
		}
		p.stop()
	})
}
