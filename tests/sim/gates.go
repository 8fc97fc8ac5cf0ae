package sim

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// namedGates are the gates that jobs share, where they do.
var namedGates = []string{"gpu", "stripe"}

// defineGates makes the gates of each tenant, where jobs share any, before the first host comes. As many may wait as let the world come to its end.
func (w *World) defineGates() {
	if w.Mix.Jobs.Named == 0 {
		return
	}
	r, bounds := w.Rand("gates"), w.Rand("waits at gates")
	for _, tenant := range w.Mix.Tenants {
		for _, name := range namedGates {
			most := pick(r, []int{0, 1, 4, 20})
			n := gate.Named{Tenant: tenant, Name: name, Generation: 1, Def: gate.Definition{Limit: 1 + r.IntN(3), MaxWaiting: &most, Order: pick(r, []gate.Order{"", gate.OrderFIFO})}}
			if w.Mix.Jobs.MaxWait > 0 {
				if chance(bounds, w.Mix.Jobs.MaxWait) {
					n.Def.MaxWait = schedule.Duration(rate(bounds, 1, 5*time.Second, 4*w.Mix.Pace.unit()).Truncate(time.Second))
				}
				if chance(bounds, 0.5) {
					n.Def.Order = gate.OrderDeadline
				}
			}
			op, err := n.Put(1)
			if err == nil {
				_, err = w.store.Write(context.Background(), op)
			}
			if err != nil {
				panic(err)
			}
			w.Judge.Stored(w.Mix.Start, store.Item{Key: op.Key}, store.Item{Key: op.Key, Version: 1, Value: op.Value})
		}
	}
}
