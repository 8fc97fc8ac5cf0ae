package lease

import (
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// readers are the runs whose logs somebody reads here while workers elsewhere write them. All of it is memory: what is lost with the process
// comes anew when somebody asks again.
type readers struct {
	mu sync.Mutex
	of map[reading]*shownLog
}

// reading names a run whose log is read.
type reading struct{ tenant, run string }

// asking is what is known of a log that is read.
type asking interface{ lately() time.Duration }

// room tells whether a tenant may read one more log. Where all places are taken, one that has two more than it gives it that which was asked for
// longest ago.
func room[L asking](of map[reading]L, tenant string) bool {
	if len(of) < mostReads {
		return true
	}
	has := map[string]int{}
	for which := range of {
		has[which.tenant]++
	}
	var least *reading
	for which, log := range of {
		if has[which.tenant] < has[tenant]+2 {
			continue
		}
		if least == nil || has[which.tenant] > has[least.tenant] || has[which.tenant] == has[least.tenant] && log.lately() < of[*least].lately() {
			least = &which
		}
	}
	if least != nil {
		delete(of, *least)
	}
	return least != nil
}

func (s *shownLog) lately() time.Duration { return s.asked }

type shownLog struct {
	asked time.Duration // when somebody last did
	fence uint64        // of the attempt that wrote it, 0 where it has not come yet
	log   runlog.Log
}

const (
	readFor   = 30 * time.Second // after somebody has asked, it counts as being read
	mostReads = 64               // logs at once, of all tenants alike; of more nothing is shown before their attempts end
)

// ask gives the log of a run as far as it has come, and says that it is read.
func (r *readers) ask(which reading, now time.Duration) (runlog.Log, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, shown := range r.of {
		if now-shown.asked > readFor {
			delete(r.of, other)
		}
	}
	shown := r.of[which]
	if shown == nil {
		if !room(r.of, which.tenant) {
			return runlog.Log{}, false
		}
		if r.of == nil {
			r.of = map[reading]*shownLog{}
		}
		shown = &shownLog{}
		r.of[which] = shown
	}
	shown.asked = now
	return shown.log, shown.fence != 0
}

// reads tells whether somebody reads the log of a run.
func (r *readers) reads(which reading, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown := r.of[which]
	return shown != nil && now-shown.asked <= readFor
}

// show takes what an attempt has written, and tells whether somebody reads it. What an attempt shows that was started before the one that is
// known, is late.
func (r *readers) show(which reading, now time.Duration, fence uint64, so runlog.Log) (read bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown := r.of[which]
	if shown == nil || now-shown.asked > readFor || fence < shown.fence {
		return false
	}
	shown.fence, shown.log = fence, so
	return true
}
