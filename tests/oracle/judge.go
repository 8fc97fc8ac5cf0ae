package oracle

import (
	"fmt"
	"iter"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Config is what a Judge goes by. The zero value has the defaults.
type Config struct {
	// Compile makes fires of a schedule; default: job.Compile. One that remembers spares time.
	Compile func(schedule.Spec) (job.Fires, error)

	// Clocks is how far a host that claims and starts may be from the true time; default: dispatch.MaxSkew. Hosts further away do
	// neither where the store tells the time; where it does not, this is the assumption under which P3 is judged.
	Clocks time.Duration

	// Most is how many violations are kept; default 20. Where one promise is broken, others follow.
	Most int
}

// Judge holds what it sees against the promises. It is not safe for concurrent use.
type Judge struct {
	cfg   Config
	found []string
}

// New begins with an empty store.
func New(cfg Config) *Judge {
	if cfg.Compile == nil {
		cfg.Compile = job.Compile
	}
	return &Judge{cfg: cfg}
}

// Violations are what was found, in that order. Each begins with the promise that was broken, such as "P2: ".
func (j *Judge) Violations() []string { return j.found }

func (j *Judge) violate(promise, format string, args ...any) {
	j.found = append(j.found, promise+": "+fmt.Sprintf(format, args...))
}

// Stored is told of each change of an item, in the order in which the store did them: those of one Write one after another. One that was
// not there before, or is not after, has Version 0.
func (j *Judge) Stored(at time.Time, before, after store.Item) {}

// Look goes over all that is stored, in any order.
func (j *Judge) Look(at time.Time, items iter.Seq[store.Item]) {}

// End is the last look, after the calm: faults are over, and nothing was asked for since upTo. What was due up to then has ended.
func (j *Judge) End(at, upTo time.Time, items iter.Seq[store.Item]) {}
