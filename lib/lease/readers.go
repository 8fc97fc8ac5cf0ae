package lease

import (
	"maps"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// readers are the runs whose logs somebody reads here while workers elsewhere write them. All of it is memory: what is lost with the process
// comes anew when somebody asks again.
type readers struct {
	mu sync.Mutex
	of map[reading]*readLog
}

// reading names a run whose log is read.
type reading struct{ tenant, run string }

// readLog is what is known of a log that somebody reads here. Times are by the process's own clock.
type readLog struct {
	asked time.Duration // when somebody last did
	fence uint64        // of the attempt that writes it; 0 where it is not known
	log   runlog.Log    // of attempt 0 where it has not come yet
	look  time.Duration // when a LogReader looks for it again
	touch time.Duration // when it touches the run again
}

// room tells whether a tenant may read one more log. Where all places are taken, one that has two more than it gives it that which was asked for
// longest ago.
func (r *readers) room(tenant string) bool {
	if len(r.of) < mostReads {
		return true
	}
	has := map[string]int{}
	for which := range r.of {
		has[which.tenant]++
	}
	var least *reading
	for which, log := range r.of {
		if has[which.tenant] < has[tenant]+2 {
			continue
		}
		if least == nil || has[which.tenant] > has[least.tenant] || has[which.tenant] == has[least.tenant] && log.asked < r.of[*least].asked {
			least = &which
		}
	}
	if least != nil {
		delete(r.of, *least)
	}
	return least != nil
}

const (
	readFor   = 30 * time.Second // after somebody has asked, it counts as being read
	mostReads = 64               // logs at once, of all tenants alike; of more nothing is shown before their attempts end
)

// note notes that somebody reads the log of a run, and gives what is known of it; nil where there is no room for one more. Holds r.mu.
func (r *readers) note(which reading, now time.Duration) *readLog {
	maps.DeleteFunc(r.of, func(_ reading, log *readLog) bool { return now-log.asked > readFor })
	log := r.of[which]
	if log == nil {
		if !r.room(which.tenant) {
			return nil
		}
		if r.of == nil {
			r.of = map[reading]*readLog{}
		}
		log = &readLog{}
		r.of[which] = log
	}
	log.asked = now
	return log
}

// ask gives the log of a run as far as it has come, and says that it is read.
func (r *readers) ask(which reading, now time.Duration) (runlog.Log, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.note(which, now)
	if log == nil {
		return runlog.Log{}, false
	}
	return log.log, log.fence != 0
}

// reads tells whether somebody reads the log of a run.
func (r *readers) reads(which reading, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.of[which]
	return log != nil && now-log.asked <= readFor
}

// show takes what an attempt has written, and tells whether somebody reads it. What an attempt shows that was started before the one that is
// known, is late.
func (r *readers) show(which reading, now time.Duration, fence uint64, so runlog.Log) (read bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.of[which]
	if log == nil || now-log.asked > readFor || fence < log.fence {
		return false
	}
	log.fence, log.log = fence, so
	return true
}
