package lease

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// Announced is what a worker elsewhere says of itself whenever it asks for runs.
type Announced struct {
	Worker      string
	Queue       string
	Handlers    []string
	HTTP        bool // it calls http targets
	Exec        bool // it starts processes
	AWS         bool // it calls aws targets
	Email       bool // it sends mails
	Labels      map[string]string
	Concurrency int
	Running     int
}

func (a Announced) can(spec target.Spec) bool {
	switch {
	case spec.HTTP != nil:
		return a.HTTP
	case spec.Exec != nil:
		return a.Exec
	case spec.Handler != nil:
		return slices.Contains(a.Handlers, spec.Handler.Name)
	case spec.AWS != nil:
		return a.AWS
	case spec.Email != nil:
		return a.Email
	}
	return false
}

// Seen is a worker elsewhere that has been heard of lately.
type Seen struct {
	Announced
	First time.Time
	Last  time.Time
}

// Bounds of what is remembered of workers elsewhere, of each tenant for itself: one that has very many takes no room from others.
// It is for people and for choosing; nothing depends on it.
const (
	maxSeen   = 10_000
	maxSaid   = 16 << 20 // bytes of what they say of themselves
	maxLacked = 1000
	forgotten = 90 * time.Second // longer than a worker waits between two signs of life, unless its lease is longer still
	lackedFor = 2 * time.Minute  // longer than a message stays away that nobody could take
)

type seenKey struct{ tenant, queue, worker string }

type lackedKey struct{ tenant, queue, target string }

// roster remembers which workers elsewhere are there, and what none of them could run. Its zero value is empty.
type roster struct {
	mu      sync.Mutex
	workers map[seenKey]Seen
	of      map[string]volume // the workers of each tenant
	lacked  map[lackedKey]time.Time
	longest time.Duration // between two signs of life
}

// volume is how much is remembered.
type volume struct{ workers, bytes int }

// bytes is about how many it takes to remember what a worker says of itself.
func (a Announced) bytes() int {
	n := 200 + len(a.Worker) + len(a.Queue)
	for _, name := range a.Handlers {
		n += 16 + len(name)
	}
	for key, value := range a.Labels {
		n += 32 + len(key) + len(value)
	}
	return n
}

// saw notes a worker's sign of life.
func (r *roster) saw(tenant string, a Announced, now time.Time, lease time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workers == nil {
		r.workers, r.of, r.lacked = map[seenKey]Seen{}, map[string]volume{}, map[lackedKey]time.Time{}
	}
	r.longest = max(forgotten, lease)
	key := seenKey{tenant, a.Queue, a.Worker}
	first := now
	if known, ok := r.workers[key]; ok {
		first = known.First
		r.forget(key)
	}
	if !r.room(tenant, a) {
		r.prune(now)
	}
	if !r.room(tenant, a) {
		return
	}
	r.workers[key] = Seen{Announced: a, First: first, Last: now}
	r.of[tenant] = volume{r.of[tenant].workers + 1, r.of[tenant].bytes + a.bytes()}
}

// room tells whether one more of the tenant's workers can be remembered.
func (r *roster) room(tenant string, a Announced) bool {
	return r.of[tenant].workers < maxSeen && r.of[tenant].bytes+a.bytes() <= maxSaid
}

func (r *roster) forget(key seenKey) {
	left := volume{r.of[key.tenant].workers - 1, r.of[key.tenant].bytes - r.workers[key].bytes()}
	if r.of[key.tenant] = left; left.workers == 0 {
		delete(r.of, key.tenant)
	}
	delete(r.workers, key)
}

// touch notes that a worker was heard of, and by how many attempts more it has: what it says of itself when it asks for runs may be
// old, since a busy worker asks for none.
func (r *roster) touch(tenant, queue, worker string, now time.Time, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := seenKey{tenant, queue, worker}
	if seen, ok := r.workers[key]; ok {
		seen.Last, seen.Running = now, max(0, seen.Running+more)
		r.workers[key] = seen
	}
}

func (r *roster) prune(now time.Time) {
	for key, seen := range r.workers {
		if now.Sub(seen.Last) > r.longest {
			r.forget(key)
		}
	}
	for key, last := range r.lacked {
		if now.Sub(last) > lackedFor {
			delete(r.lacked, key)
		}
	}
}

// lacks tells whether no worker that serves the pool can run such a target, and notes it.
func (r *roster) lacks(tenant, queue string, spec target.Spec, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune(now)
	for key, seen := range r.workers {
		if key.tenant == tenant && key.queue == queue && seen.can(spec) {
			return false
		}
	}
	if len(r.lacked) < maxLacked {
		r.lacked[lackedKey{tenant, queue, spec.Need()}] = now
	}
	return true
}

// Workers lists the workers elsewhere that serve a tenant's pools, by queue and name.
func (r *Remote) Workers(tenant string) []Seen {
	r.roster.mu.Lock()
	defer r.roster.mu.Unlock()
	r.roster.prune(r.Dispatch.Now())
	var found []Seen
	for key, seen := range r.roster.workers {
		if key.tenant == tenant {
			found = append(found, seen)
		}
	}
	slices.SortFunc(found, func(a, b Seen) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Worker, b.Worker)) })
	return found
}

// Lacking lists what runs of a pool wait for and no worker of it offers.
func (r *Remote) Lacking(tenant, queue string) []string {
	r.roster.mu.Lock()
	defer r.roster.mu.Unlock()
	r.roster.prune(r.Dispatch.Now())
	var found []string
	for key := range r.roster.lacked {
		if key.tenant == tenant && key.queue == queue {
			found = append(found, key.target)
		}
	}
	slices.Sort(found)
	return found
}
