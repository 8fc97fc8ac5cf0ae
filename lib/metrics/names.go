package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
)

// OwnGates is the value of the label gate under which the own gates of all jobs are counted that asked for no series of their own. It is the
// name of no gate: names have no asterisk.
const OwnGates = "job:*"

// MostGates is how many gates have series of their own in a process.
const MostGates = 50

// MostJobs is how many jobs a process watches by name.
const MostJobs = 50

// Names are values of a label that are met while the process runs, at most so many of them. A name that has been met stays.
type Names struct {
	Most int

	mu    sync.Mutex
	known atomic.Pointer[[]string] // replaced, never changed
}

// Meet gives a name as the value of the label, or Other where Most others were met before.
func (n *Names) Meet(name string) string {
	if slices.Contains(n.all(), name) {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all()
	switch {
	case slices.Contains(all, name):
		return name
	case len(all) >= n.Most:
		return Other
	}
	all = append(slices.Clone(all), name)
	n.known.Store(&all)
	return name
}

func (n *Names) all() []string {
	if known := n.known.Load(); known != nil {
		return *known
	}
	return nil
}
