package sim

import (
	"context"
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
		often("clock of "+m.name, f.Step, func(_ context.Context, a *Actor) {
			w.luck.counts[Stepped]++
			m.step(time.Duration((2*a.Rand.Float64()-1)*float64(f.StepBy)) - m.offset)
		})
	}
	for n, o := range w.Mix.Outages {
		_ = n
		w.Go("outage", func(world context.Context, a *Actor) {
			ctx, cancel := merged(world, ctx)
			defer cancel()
			if a.Sleep(ctx, o.After) != nil {
				return
			}
			for _, m := range w.machines {
				m.down = true
				if m.host != nil {
					w.luck.counts[Crashed]++
					m.host.crash()
				}
			}
			_ = a.Sleep(ctx, o.For)
			for _, m := range w.machines {
				m.down = false
			}
		})
	}
}
