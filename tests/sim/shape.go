package sim

import (
	"math/rand/v2"
	"time"

	"github.com/belfry-scheduler/belfry/lib/node"
)

// Shape is which processes there are.
type Shape struct {
	// Alone is one process on its own store, as `belfry dev`: a tick each second, a queue in its memory. Else Hosts processes share
	// store and queue.
	Alone bool
	Hosts int // with Alone 1

	// How the world is looked at, drawn where it is zero.
	Whole   bool    // calls of several keys are one step, and not one each
	Idle    float64 // how many of the looks into buckets where nothing ever was are steps
	Orderly float64 // how often the oldest operation goes on, and not any
	Shards  int
	Every   time.Duration // between ticks of hosts that share
	Work    int           // queries and timers of a pass, after which it ends, or goes on with a sweep the next time; 0: as many as it does

	MaxReceives int // how often a queue that is shared hands out a message before it gives it up; 0: as often as it takes
}

// detail draws what a mix leaves open.
func (s *Shape) detail(r *rand.Rand) {
	s.Whole = r.IntN(3) > 0
	if r.IntN(8) == 0 {
		s.Idle = r.Float64() / 4
	}
	s.Orderly = []float64{0, 0, 0.3, 0.8, 1}[r.IntN(5)]
	s.Shards = []int{1, 2, 4, 16}[r.IntN(4)]
	s.Every = []time.Duration{20 * time.Second, 30 * time.Second, time.Minute, 97 * time.Second}[r.IntN(4)]
	s.MaxReceives = []int{0, 5, 10}[r.IntN(3)]
	s.Work = []int{0, 0, 0, 80, 250}[r.IntN(5)]
}

// role is what a process does where several share a store.
type role struct {
	serves bool // the API
	ticks  bool
	works  bool
	called bool // its ticks are called each minute and remember nothing, as a function's
}

// roles gives each process its own. The first does everything, so that nothing stands still for want of somebody.
func (s Shape) roles(r *rand.Rand) []role {
	all := role{serves: true, ticks: true, works: true}
	roles := []role{all}
	for range max(1, s.Hosts) - 1 {
		one := all
		switch r.IntN(5) {
		case 0:
			one = role{serves: true}
		case 1:
			one = role{works: true}
		case 2:
			one = role{serves: true, ticks: true}
		case 3:
			one = role{serves: true, works: true, called: true}
		}
		roles = append(roles, one)
	}
	return roles
}

// configure says what a process of a role is.
func (s Shape) configure(r role, pools []string, cfg *node.Config) {
	if s.Alone {
		cfg.CleansBySwept = true
		return
	}
	cfg.Shared, cfg.Shards, cfg.Every = true, s.Shards, s.Every
	cfg.NoTicks, cfg.MaxReceives = !r.ticks, s.MaxReceives
	if r.works {
		cfg.Serves = pools
	}
}
