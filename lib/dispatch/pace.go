package dispatch

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// The catch-up rate: how many missed fires a second are started at the most, by all ticks of a store together.
const (
	DefaultCatchUpRate = 100
	MaxCatchUpRate     = 1000
)

// grid is the places in time at which missed fires may start: rate a second, evenly apart, each of which is one shard's, and one job's in each
// period. So no second has more than rate of them, whoever gives them out, and those of one job are a period apart.
//
// The period is a second, or as many as it takes for each shard to have a place in it.
type grid struct{ rate, shards, shard int64 }

func (g grid) period() int64 { return (g.shards + g.rate - 1) / g.rate } // seconds

// phases is how many of a period's places are the shard's.
func (g grid) phases() int64 { return (g.rate*g.period() - g.shard + g.shards - 1) / g.shards }

// phaseOf is which of them is a job's.
func (g grid) phaseOf(tenant, name string) int64 {
	return int64(job.Hash(tenant, name) / timer.Buckets % uint64(g.phases()))
}

// next is the first place of a phase after an instant, both in Unix ms.
func (g grid) next(phase, after int64) int64 {
	period := g.period() * 1000
	place := after - after%period + (g.shard+phase*g.shards)*1000/g.rate
	if place <= after {
		place += period
	}
	return place
}

// Pace gives out a shard's places during one pass. Beyond the horizon that stood before it, and up to its own, they are its own: whatever crashes,
// is stopped or goes on beside it, no other pass gives them. Further ones are in order too, but must be published before anything is claimed for
// them.
type Pace struct {
	grid    grid
	own     int64
	floor   func() int64 // up to it all have been given, or are over
	publish func(context.Context) error

	mu    sync.Mutex
	given map[int64]int64  // by phase: the last one
	has   map[missed]int64 // what was given: a fire that is come upon again has its place
}

// missed is a missed fire.
type missed struct {
	tenant, job string
	fire        int64
}

// NewPace is of a pass over a shard that has published the horizon own (Unix ms). floor gives up to where places have been given by passes before,
// or are over; given are those beyond, as Given told them before. publish has what Given tells durable.
func (d *Dispatcher) NewPace(shard int, own int64, floor func() int64, given map[int64]int64, publish func(context.Context) error) *Pace {
	p := &Pace{grid: grid{int64(d.CatchUpRate), int64(d.Layout.Shards), int64(shard)}, own: own, floor: floor, publish: publish,
		given: map[int64]int64{}, has: map[missed]int64{}}
	maps.Copy(p.given, given)
	return p
}

// Given are the places given beyond the pass's own: the last one of each phase, Unix ms; nil for none.
func (p *Pace) Given() map[int64]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var given map[int64]int64
	for phase, last := range p.given {
		if last > p.own {
			if given == nil {
				given = map[int64]int64{}
			}
			given[phase] = last
		}
	}
	return given
}

// take gives a fire the next place of its job, false where it would not be the pass's own and only such a one is wanted.
func (p *Pace) take(m missed, own bool) (place int64, ok bool) {
	phase := p.grid.phaseOf(m.tenant, m.job)
	floor := p.floor()
	p.mu.Lock()
	defer p.mu.Unlock()
	if place, ok = p.has[m]; ok {
		return place, true
	}
	place = p.grid.next(phase, max(floor, p.given[phase]))
	if own && place > p.own {
		return 0, false
	}
	p.given[phase], p.has[m] = place, place
	return place, true
}

// keep has the places that plans are given beyond the pass's own durable. A crash right after it loses places, and nothing else.
func (p *Pace) keep(ctx context.Context, planned []*firing) error {
	if p == nil {
		return nil
	}
	for _, f := range planned {
		for _, place := range f.plan.Places {
			if place > p.own {
				if err := p.publish(ctx); err != nil {
					return fmt.Errorf("publish the places of missed fires: %w", err)
				}
				return nil
			}
		}
	}
	return nil
}
