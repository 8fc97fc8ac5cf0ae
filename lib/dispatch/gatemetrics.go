package dispatch

import (
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// gauge shows how a gate that has series of its own stands. All others together have none: what each process last saw of each does not add up.
func (d *Dispatcher) gauge(round *gate.Round, labels map[string]string) {
	g := round.Gate()
	if !g.ID().IsNamed() && !gate.OwnSeries(labels) {
		return
	}
	name := d.Metrics.Gate(g.ID().Series(), true)
	if name == metrics.Other {
		return
	}
	d.Metrics.GateWaiting.Set(float64(d.lines.saw(name, g.Key, g.Waiting, d.Now())), name)
	if n, known := round.InProgress(); known && g.Key == "" { // who ends at a value writes no gate mostly, and values are left as they are then
		d.Metrics.GateInProgress.Set(float64(n), name)
	}
}

// Bounds of what a process remembers of who waits at the values of a gate.
const (
	seenValues = 1000
	seenFor    = timer.MaxCheckGap + time.Minute // by then a check has come to whoever waits there still, here or in another process
)

// linesSeen is how many runs this process saw wait last at the gates that have series of their own, by series.
type linesSeen struct {
	mu sync.Mutex
	of map[string]*valuesSeen
}

// valuesSeen is that of one gate.
type valuesSeen struct {
	waiting int                 // at all values
	by      map[string]lineSeen // by key, "" for the gate of all runs; of those alone where any wait
	looked  time.Time           // when those were left out of which nothing was seen for long
}

type lineSeen struct {
	waiting int
	at      time.Time
}

// saw notes how many wait at a value, and gives how many wait at all of its gate.
func (s *linesSeen) saw(series, key string, waiting int, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.of[series]
	if all == nil {
		all = &valuesSeen{by: map[string]lineSeen{}, looked: now}
		s.of[series] = all
	}
	all.put(key, waiting, now)
	if now.Sub(all.looked) > time.Minute {
		all.looked = now
		for key, line := range all.by {
			if now.Sub(line.at) > seenFor {
				all.put(key, 0, now)
			}
		}
	}
	return all.waiting
}

func (v *valuesSeen) put(key string, waiting int, now time.Time) {
	before, known := v.by[key]
	switch {
	case waiting == 0:
		delete(v.by, key)
	case known || len(v.by) < seenValues:
		v.by[key] = lineSeen{waiting, now}
	default:
		return
	}
	v.waiting += waiting - before.waiting
}
