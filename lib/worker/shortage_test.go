package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// host has room for some calls at once, each of which takes a while, and is short for the others.
type host struct {
	room  atomic.Int64
	takes time.Duration
	tries atomic.Int64
	calls sync.Map // attempts of those that began, by run
	twice atomic.Bool
}

func (h *host) call(ctx context.Context, _ target.AWS, c target.Call) (target.Result, error) {
	h.tries.Add(1)
	if h.room.Add(-1) < 0 {
		h.room.Add(1)
		return target.Result{}, target.Short(syscall.EMFILE)
	}
	defer h.room.Add(1)
	if _, again := h.calls.LoadOrStore(c.Run, c.Attempt); again {
		h.twice.Store(true)
	}
	return takes(h.takes)(ctx, c)
}

// onAWS is a job that calls it, without any failure to spare.
func onAWS(d *job.Definition) {
	d.Target, d.Retry.MaxAttempts = target.Spec{AWS: &target.AWS{ARN: function}}, 1
}

func TestAHostThatIsShortSpendsNoAttempts(t *testing.T) {
	for name, guarantee := range guarantees {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				h := &host{takes: 4 * time.Second}
				h.room.Store(3)
				var runs []run.Run
				j := g.job(func(d *job.Definition) { guarantee(d); onAWS(d) })
				for range 25 {
					runs = append(runs, g.queued(j, time.Now()))
				}
				g.send(runs...)
				g.process("w", options{aws: h.call})
				time.Sleep(5 * time.Minute)
				for _, r := range runs {
					if now := g.want(r, run.Succeeded, 1); now.Failures != 0 || now.Crashes != 0 {
						t.Errorf("%d failures, %d crashes; want none", now.Failures, now.Crashes)
					}
				}
				if h.twice.Load() {
					t.Error("a run was called twice")
				}
				g.empty()
			})
		})
	}
}

// A worker that stays short hands what it holds back, so that another may have it, and takes nothing more.
func TestAWorkerThatStaysShortHandsBack(t *testing.T) {
	for name, guarantee := range guarantees {
		t.Run(name, func(t *testing.T) {
			beside(t, func(t *testing.T, g *rig) {
				var log bytes.Buffer
				short := &host{}
				j := g.job(func(d *job.Definition) { guarantee(d); onAWS(d) })
				var runs []run.Run
				for range 20 {
					runs = append(runs, g.queued(j, time.Now()))
				}
				g.send(runs...)
				p := g.process("short", options{aws: short.call, Config: worker.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}})
				time.Sleep(10 * time.Minute)
				// What was handed back is taken again, by who asks first.
				for _, r := range runs {
					now := g.read(r)
					if now.Failures != 0 || now.Crashes != 0 || now.Attempt > 11 || now.Attempt == 0 || now.State.Ended() {
						t.Errorf("%+v: want no failure, and an attempt a minute at the most", now)
					}
					if len(now.Attempts) > 1 && now.Attempts[0].Error != "" && !strings.Contains(now.Attempts[0].Error, "this host is short of") {
						t.Errorf("the attempt says %q, not why it was handed back", now.Attempts[0].Error)
					}
				}
				if n := short.tries.Load(); n > 10*60*10+200 {
					t.Errorf("%d tries in ten minutes: want ten a second at the most", n)
				}
				p.stop()
				if n := strings.Count(log.String(), "calls cannot begin"); n < 9 || n > 11 {
					t.Errorf("the log says %d times in ten minutes that the host is short: want once a minute", n)
				}

				well := &host{}
				well.room.Store(50)
				g.process("well", options{aws: well.call})
				time.Sleep(5 * time.Minute)
				for _, r := range runs {
					if now := g.read(r); now.State != run.Succeeded || now.Failures != 0 {
						t.Errorf("%+v: want it to have succeeded elsewhere", now)
					}
				}
				g.empty()
			})
		})
	}
}

// While it is short a worker leaves what waits to others.
func TestAWorkerThatIsShortTakesNothingMore(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		short := &host{}
		g.process("short", options{aws: short.call})
		first := g.start(onAWS)
		time.Sleep(5 * time.Second)
		g.want(first, run.Running, 1)
		handlers, _ := handler(t, succeed)
		var others []run.Run
		j := g.job(atLeastOnce)
		for range 20 {
			others = append(others, g.queued(j, time.Now()))
		}
		g.send(others...)
		time.Sleep(10 * time.Second)
		// At most what one taking that was under way brought it, which it cannot run and leaves.
		g.process("well", options{handlers: handlers})
		time.Sleep(30 * time.Second)
		for _, r := range others {
			g.want(r, run.Succeeded, 1)
		}
	})
}

// One destination without a port holds up the calls to it alone.
func TestAWorkerTakesMoreWhereOneDestinationHasNoPort(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		noPort := func(context.Context, target.AWS, target.Call) (target.Result, error) {
			return target.Result{}, target.Short(&net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, Err: syscall.EADDRNOTAVAIL})
		}
		handlers, _ := handler(t, succeed)
		g.process("w", options{aws: noPort, handlers: handlers})
		stuck := g.start(onAWS)
		time.Sleep(5 * time.Second)
		g.want(stuck, run.Running, 1)
		var others []run.Run
		j := g.job(atLeastOnce)
		for range 20 {
			others = append(others, g.queued(j, time.Now()))
		}
		g.send(others...)
		time.Sleep(10 * time.Second)
		for _, r := range others {
			g.want(r, run.Succeeded, 1)
		}
		time.Sleep(5 * time.Minute)
		if now := g.read(stuck); now.Failures != 0 || now.Crashes != 0 || now.Attempt < 2 || now.State.Ended() {
			t.Errorf("%+v: want it handed back meanwhile, without a failure", now)
		}
	})
}

func TestACallThatHasNotBegunIsCancelled(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		p := g.process("short", options{aws: new(host).call})
		r := g.start(onAWS)
		time.Sleep(5 * time.Second)
		if _, ok := g.cancel(r); !ok {
			t.Fatal("the cancel was not written")
		}
		p.Cancelled(r.Tenant, r.ID)
		time.Sleep(time.Second)
		g.want(r, run.Cancelled, 1)
	})
}

// A worker that is stopped hands back at once what has not begun, also at most once.
func TestFault38_WhatHasNotBegunIsHandedBackByAWorkerThatStops(t *testing.T) {
	for name, guarantee := range guarantees {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				p := g.process("short", options{aws: new(host).call})
				r := g.start(guarantee, onAWS)
				time.Sleep(5 * time.Second)
				began := time.Now()
				p.stop()
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %s to stop", took)
				}
				if now := g.want(r, run.Queued, 1); now.Failures != 0 || now.Attempts[0].Outcome != run.OutcomeHandedBack {
					t.Errorf("%+v: want it handed back", now)
				}
				well := &host{}
				well.room.Store(1)
				g.process("well", options{aws: well.call})
				time.Sleep(time.Minute)
				g.want(r, run.Succeeded, 2)
			})
		})
	}
}

// A pass hands back in time what has not begun: a call that began near its end would be stopped in the middle.
func TestAPassThatIsShortHandsBack(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		p := g.process("w", options{aws: new(host).call, idle: true})
		r := g.queued(g.job(func(d *job.Definition) { atMostOnce(d); onAWS(d); lasting(30 * time.Second)(d) }), time.Now())
		began := time.Now()
		if v := p.pass(t, t.Context(), r, 40*time.Second); v != (verdict{Again: 5 * time.Second}) {
			t.Errorf("the message: %+v, want it handed back, for others to be taken first", v)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the pass waited %s: a call could have begun that had not its 30 s", took)
		}
		g.want(r, run.Queued, 1)
	})
}
