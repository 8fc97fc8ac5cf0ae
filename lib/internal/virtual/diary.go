package virtual

import (
	"container/heap"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Diary knows each instant at which a tick may have something to do. All times are Unix ms, as the hosts' clocks show them.
type Diary struct {
	mu      sync.Mutex
	calls   instants // at which fires and requests wake that no pass has read
	checks  instants // at which checks do
	minutes instants // begins of minutes that hold timers and were not swept

	looks map[int64][]run.ID // by instant: the runs that checks look at then
}

// NewDiary is empty.
func NewDiary() *Diary { return &Diary{looks: map[int64][]run.ID{}} }

// Watch gives a store in whose writes the diary finds its timers.
func (d *Diary) Watch(s store.Store) store.Store { return watched{s, d} }

// Due is what a pass is to look at.
type Due struct {
	Timers bool
	Wake   int64 // the first of them
	Sweeps bool
	Minute int64 // the first of them

	Looks []run.ID // runs that checks look at
}

// Any tells whether there is something.
func (d Due) Any() bool { return d.Timers || d.Sweeps }

// And is what either is to look at.
func (d Due) And(o Due) Due {
	switch {
	case !d.Timers:
		d.Wake = o.Wake
	case o.Timers:
		d.Wake = min(d.Wake, o.Wake)
	}
	switch {
	case !d.Sweeps:
		d.Minute = o.Minute
	case o.Sweeps:
		d.Minute = min(d.Minute, o.Minute)
	}
	d.Timers, d.Sweeps = d.Timers || o.Timers, d.Sweeps || o.Sweeps
	d.Looks = slices.Concat(d.Looks, o.Looks)
	return d
}

// Unread is from where on there are timers that no pass has read, and minutes that were not swept; it takes nothing out.
func (d *Diary) Unread() Due {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := Due{Wake: min(d.calls.first(), d.checks.first()), Minute: d.minutes.first()}
	found.Timers, found.Sweeps = found.Wake != never, found.Minute != never
	return found
}

// Next is the first instant at which there may be something to do; false for never.
func (d *Diary) Next() (at int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at = never
	for _, s := range []*instants{&d.calls, &d.checks} {
		at = min(at, s.first())
	}
	if minute := d.minutes.first(); minute != never {
		at = min(at, swept(minute))
	}
	return at, at != never
}

// Calls tells whether fires or requests are still to come.
func (d *Diary) Calls() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls.first() != never
}

// Due takes what is due at now out of the diary. A pass of that instant looks at timers up to the horizon.
func (d *Diary) Due(now, horizon int64) Due {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found Due
	found.Wake = d.calls.take(now)
	for at := d.checks.first(); at <= now; at = d.checks.first() {
		found.Wake = min(found.Wake, d.checks.take(at))
		found.Looks = append(found.Looks, d.looks[at]...)
		delete(d.looks, at)
	}
	for at := now + 1; at <= horizon; at++ {
		found.Looks = append(found.Looks, d.looks[at]...)
	}
	found.Timers = found.Wake != never
	// The first sweep watches over what has not ended. The later ones are for writes and messages that went astray, and none does here.
	found.Minute = d.minutes.take(now - swept(0))
	found.Sweeps = found.Minute != never
	return found
}

func (d *Diary) note(ops []store.Op) {
	for _, op := range ops {
		if op.Kind != store.Put || !strings.HasPrefix(op.Key.Partition, "due#") {
			continue
		}
		t, err := timer.FromItem(store.Item{Key: op.Key, Value: op.Value})
		if err != nil {
			continue // a pass comes upon it with others, and tells of it
		}
		d.mu.Lock()
		switch {
		case t.Kind == timer.Check:
			d.checks.add(t.Wake)
			d.looks[t.Wake] = append(d.looks[t.Wake], t.Run)
		case !t.Direct: // whoever armed it sends the runs itself
			d.calls.add(t.Wake)
		}
		d.minutes.add(minuteOf(t.Wake))
		d.mu.Unlock()
	}
}

// swept is when the first sweep looks at a minute.
func swept(minute int64) int64 { return minute + 60_000 + timer.Lags[0].Milliseconds() }

func minuteOf(ms int64) int64 { return ms - ms%60_000 }

// never stands for no instant.
const never = int64(1<<63 - 1)

// instants are a heap of Unix ms, each once.
type instants struct {
	order intHeap
	known map[int64]struct{}
}

func (s *instants) add(at int64) {
	if s.known == nil {
		s.known = map[int64]struct{}{}
	}
	if _, twice := s.known[at]; !twice {
		s.known[at] = struct{}{}
		heap.Push(&s.order, at)
	}
}

func (s *instants) first() int64 {
	if len(s.order) == 0 {
		return never
	}
	return s.order[0]
}

// take removes all up to now, and gives the first of them, or never.
func (s *instants) take(now int64) (first int64) {
	first = never
	for s.first() <= now {
		at := heap.Pop(&s.order).(int64)
		delete(s.known, at)
		first = min(first, at)
	}
	return first
}

type intHeap []int64

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int64)) }

func (h *intHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// watched notes when timers wake. A write that is refused notes too many: a pass finds nothing then.
type watched struct {
	store.Store
	diary *Diary
}

func (s watched) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	s.diary.note(ops)
	return s.Store.Write(ctx, ops...)
}

func (s watched) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	s.diary.note(ops)
	return s.Store.WriteEach(ctx, ops...)
}
