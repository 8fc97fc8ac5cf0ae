package sim

import (
	"context"
	"fmt"
	"time"
)

// live keeps a machine busy: one life after the other, until the world ends.
func (m *machine) live(ctx context.Context, a *Actor) {
	for ctx.Err() == nil {
		if m.down {
			if a.Sleep(ctx, 5*time.Second) != nil {
				return
			}
			continue
		}
		var h *host
		ended := make(chan struct{})
		m.lives++
		h = m.newHost(ctx)
		m.World.lives.Go(func() {
			defer close(ended)
			h.live(m)
		})
		select {
		case <-ended:
		case <-h.dead:
		}
		after := time.Second
		if !m.quiet {
			after = around(a.Rand, max(m.Faults.CrashFor, time.Second))
		}
		if a.Sleep(ctx, after) != nil {
			return
		}
	}
}

// live is one life: the host is put together, works, and ends.
func (h *host) live(m *machine) {
	defer h.cancel(errStopped)
	err := h.assemble()
	if err == nil {
		err = h.run()
	}
	if err != nil && !h.crashed && m.onEnd != nil {
		m.onEnd(h.id, err)
	}
	h.requests.Wait()
	if m.host == h {
		m.host, h.serving = nil, nil
	}
}

// clean removes now and then what has expired, as the engine of the shape does: where a node is alone what every sweep has passed, else
// what expired by the store's clock, some time ago.
func (w *World) clean(ctx context.Context, a *Actor) {
	lag := time.Duration(0)
	if a.Rand.IntN(2) == 0 {
		lag = time.Duration(a.Rand.Int64N(int64(48 * time.Hour)))
	}
	for a.Sleep(ctx, around(a.Rand, 5*time.Minute)) == nil {
		before := w.Now().Add(-lag)
		if w.Mix.Shape.Alone {
			h := w.machines[0].host
			if h == nil || h.node == nil {
				continue
			}
			before = h.node.Swept()
		}
		w.expire(before)
	}
}

// trouble starts what goes wrong with hosts and the store, until ctx ends.
func (w *World) trouble(ctx context.Context) {
	f := w.Mix.Faults
	often := func(name string, mean time.Duration, do func(ctx context.Context, a *Actor)) {
		if mean > 0 {
			w.Go(name, func(world context.Context, a *Actor) {
				ctx, cancel := merged(world, ctx)
				defer cancel()
				for a.Sleep(ctx, around(a.Rand, mean)) == nil {
					do(ctx, a)
				}
			})
		}
	}
	often("outages", f.Away, func(ctx context.Context, a *Actor) {
		w.away = true
		_ = a.Sleep(ctx, around(a.Rand, f.AwayFor))
		w.away = false
	})
	often("full queues", f.Full, func(ctx context.Context, a *Actor) {
		w.full = true
		_ = a.Sleep(ctx, around(a.Rand, f.FullFor))
		w.full = false
	})
	for _, m := range w.machines {
		often("crashes of "+m.name, f.Crash, func(context.Context, *Actor) {
			if m.host != nil {
				w.luck.counts[Crashed]++
				m.host.crash()
			}
		})
		often("stops of "+m.name, f.Stop, func(context.Context, *Actor) {
			if m.host != nil {
				w.luck.counts[Stopped]++
				m.host.stop()
			}
		})
		often("pauses of "+m.name, f.Pause, func(ctx context.Context, a *Actor) {
			h := m.host
			if h == nil {
				return
			}
			w.luck.counts[Paused]++
			h.pause()
			_ = a.Sleep(ctx, around(a.Rand, f.PauseFor))
			if h.paused {
				h.wake()
			}
		})
		if f.Drift > 0 {
			w.Go("drift of "+m.name, func(world context.Context, a *Actor) {
				ctx, cancel := merged(world, ctx)
				defer cancel()
				const beat = 30 * time.Second
				by := time.Duration((2*a.Rand.Float64() - 1) * f.Drift * float64(beat))
				for a.Sleep(ctx, beat) == nil {
					m.step(by)
				}
			})
		}
		often("clock of "+m.name, f.Step, func(_ context.Context, a *Actor) {
			w.luck.counts[Stepped]++
			to := time.Duration(0) // somebody sets it right
			if chance(a.Rand, 0.5) {
				to = time.Duration((2*a.Rand.Float64() - 1) * float64(f.StepBy))
			}
			m.step(to - m.offset)
		})
	}
	for n, o := range w.Mix.Outages {
		w.Go(fmt.Sprintf("outage %d", n), func(world context.Context, a *Actor) {
			ctx, cancel := merged(world, ctx)
			defer cancel()
			if a.Sleep(ctx, o.After) != nil {
				return
			}
			w.begins(o)
			_ = a.Sleep(ctx, o.For)
			w.ends(o)
		})
	}
}

// begins and ends are an outage's.
func (w *World) begins(o Outage) {
	if o.Store {
		w.away = true
		return
	}
	for n, m := range w.machines {
		switch {
		case o.Clock == 0:
			m.down = true
			if m.host != nil {
				w.luck.counts[Crashed]++
				m.host.crash()
			}
		case n > 0 || !o.Spare:
			w.luck.counts[Stepped]++
			m.step(o.Clock - m.offset)
		}
	}
}

func (w *World) ends(o Outage) {
	if o.Store {
		w.away = false
		return
	}
	for n, m := range w.machines {
		m.down = false
		if o.Clock != 0 && (n > 0 || !o.Spare) {
			m.step(-m.offset)
		}
	}
}
