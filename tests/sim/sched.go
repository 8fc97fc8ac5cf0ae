package sim

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
)

// scheduler lets one pending operation go on at a time. Everything that one goroutine does and another could see is an operation; what
// goroutines do between two of them touches nothing shared, so its order does not matter.
//
// An operation is done by the scheduler itself, while everybody stands still: who reads without asking (an idle look, the state of a
// host) reads what cannot change meanwhile.
type scheduler struct {
	rand    *rand.Rand // decides who goes on, and nothing else
	began   time.Time
	actors  sync.WaitGroup
	onStep  func(Step) // nil, or told of each step
	takes   func(medium) time.Duration
	orderly float64 // how often the oldest goes on instead of anyone
	stopped bool
	yields

	mu      sync.Mutex
	arrived []*op     // since everything last stood still
	drawing []*drawer // who wants an ID
	wake    chan struct{}

	ready []*op // may go on now, in a stable order
	later heldUp

	numbers uint64 // of operations, in their stable order
	steps   uint64
	hash    xxhash.Digest
}

// Step is one operation that was granted.
type Step struct {
	N         uint64
	At        time.Time
	Since     time.Duration // the world began
	Who       string        // host with its life, or actor
	What      string        // such as "write", "receive", "point"
	Key, Sort string        // what it is about
	Outcome   string        // "" where it did what it should
	Hash      uint64        // of all up to here
}

// medium is by what an operation goes.
type medium uint8

const (
	atOnce medium = iota
	byStore
	byQueue
	byNet
)

// op is an operation that waits for its grant.
type op struct {
	call      *pending
	host      *host // whose it is; nil for an actor
	who, what string
	key, sort string
	medium    medium // by what it goes, which tells how long it takes
	do        func() (outcome string)

	number uint64
	due    time.Duration // since the world began
}

// pending is what a goroutine waits for: one operation, or several that are independent of each other.
type pending struct {
	turn   chan struct{} // the grant, or a question
	open   int           // operations not done yet
	asked  bool          // the question is: who are you
	id     uint64        // of the goroutine, once asked
	err    error
	gone   bool     // its goroutine waits no more
	landed bool     // who is gone leaves what it has sent
	of     *request // of what lands: for which it was sent, nil for none
}

// drawer is a goroutine that wants an ID.
type drawer struct {
	pending
	host *host
	got  uint64
}

func newScheduler(r *rand.Rand) *scheduler {
	s := &scheduler{rand: r, began: time.Now(), wake: make(chan struct{}, 1)}
	s.hash.Reset()
	return s
}

func (s *scheduler) elapsed() time.Duration { return time.Since(s.began) }

func (s *scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// ask waits until all operations of a call were granted. Where ctx ends first they are forgotten, or, where the call says that it lands,
// may be done later all the same.
func (s *scheduler) ask(ctx context.Context, c *pending, ops ...*op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h := ops[0].host; h != nil && h.crashed {
		return errCrashed
	}
	s.yield()
	c.turn, c.open = make(chan struct{}, 1), len(ops)
	s.mu.Lock()
	for _, o := range ops {
		o.call = c
		c.of.sends()
		s.arrived = append(s.arrived, o)
	}
	s.mu.Unlock()
	s.nudge()
	for {
		select {
		case <-c.turn:
			if c.asked && c.id == 0 {
				c.id = goroutineID()
				continue
			}
			s.yield()
			return c.err
		case <-ctx.Done():
			s.mu.Lock()
			c.gone = true
			s.mu.Unlock()
			return ctx.Err()
		}
	}
}

func (s *scheduler) point(ctx context.Context, who, what string) error {
	return s.ask(ctx, &pending{}, &op{who: who, what: "point", key: what})
}

// draw gives the next random number of a host. Goroutines that want one at the same time get theirs in the order of their beginnings.
func (s *scheduler) draw(h *host) uint64 {
	s.yield()
	d := &drawer{host: h}
	d.turn = make(chan struct{}, 1)
	s.mu.Lock()
	s.drawing = append(s.drawing, d)
	s.mu.Unlock()
	s.nudge()
	for {
		<-d.turn
		if d.asked && d.id == 0 {
			d.id = goroutineID()
			continue
		}
		s.yield()
		return d.got
	}
}

// run grants until it is stopped, and returns when all stand still behind the last step: whoever ends the world then meets nobody halfway, such as one that has seen
// its host alive and is about to ask for a number, which nobody would give it any more. It is the only goroutine that is not of the world.
func (s *scheduler) run() {
	for {
		synctest.Wait()
		if s.number() {
			continue
		}
		s.collect()
		if s.stopped {
			return
		}
		if s.next() {
			s.yield()
			continue
		}
		if len(s.later) == 0 {
			<-s.wake
			continue
		}
		timer := time.NewTimer(s.later[0].due - s.elapsed())
		select {
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// number gives IDs to all who want one.
func (s *scheduler) number() bool {
	s.mu.Lock()
	drawing := s.drawing
	s.drawing = nil
	s.mu.Unlock()
	if len(drawing) == 0 {
		return false
	}
	if len(drawing) > 1 {
		hosts := map[*host]int{}
		for _, d := range drawing {
			hosts[d.host]++
		}
		tied := false
		for _, d := range drawing {
			if hosts[d.host] > 1 {
				d.asked, tied = true, true
				d.turn <- struct{}{}
			}
		}
		if tied {
			synctest.Wait()
			slices.SortFunc(drawing, func(a, b *drawer) int { return compare(a.id, b.id) })
		}
	}
	for _, d := range drawing {
		d.got = d.host.nextID()
		d.turn <- struct{}{}
	}
	return true
}

// collect takes in what has arrived, in an order that does not depend on who was faster.
func (s *scheduler) collect() {
	s.mu.Lock()
	arrived := s.arrived
	s.arrived = nil
	s.mu.Unlock()
	if len(arrived) > 1 {
		slices.SortStableFunc(arrived, (*op).compare)
		tied := false
		for i := 1; i < len(arrived); i++ {
			a, b := arrived[i-1], arrived[i]
			if a.call != b.call && a.compare(b) == 0 {
				tied = s.identify(a) || tied
				tied = s.identify(b) || tied
			}
		}
		if tied {
			synctest.Wait()
			slices.SortStableFunc(arrived, (*op).compare)
		}
	}
	now := s.elapsed()
	for _, o := range arrived {
		wait := s.takes(o.medium)
		s.numbers++
		o.number, o.due = s.numbers, now+wait
		if wait > 0 {
			heap.Push(&s.later, o)
		} else {
			s.ready = append(s.ready, o)
		}
	}
	for len(s.later) > 0 && s.later[0].due <= now {
		s.ready = append(s.ready, heap.Pop(&s.later).(*op))
	}
}

// leave has an operation done later for which nobody waits.
func (s *scheduler) leave(o *op, after time.Duration) {
	s.numbers++
	o.call.of.sends()
	o.number, o.due = s.numbers, s.elapsed()+after
	heap.Push(&s.later, o)
}

// await has the goroutine of a call wait for another operation.
func (s *scheduler) await(c *pending, o *op, after time.Duration) {
	o.call = c
	c.open++
	s.leave(o, after)
}

// forsake ends every operation of a host that is dead. What was on its way to the store may arrive all the same.
func (s *scheduler) forsake(h *host, err error) {
	for _, list := range [][]*op{s.ready, s.later, h.held} {
		for _, o := range list {
			if o.host == h && !o.call.gone {
				o.call.err, o.call.gone = err, true
				o.call.turn <- struct{}{}
			}
		}
	}
	s.ready = append(s.ready, h.held...)
	h.held = nil
}

func (s *scheduler) identify(o *op) bool {
	if o.call.asked || o.call.gone {
		return false
	}
	o.call.asked = true
	o.call.turn <- struct{}{}
	return true
}

// next does one operation, and tells whether there was one.
func (s *scheduler) next() bool {
	for len(s.ready) > 0 {
		i := 0
		if len(s.ready) > 1 && (s.orderly == 0 || s.rand.Float64() >= s.orderly) {
			i = s.rand.IntN(len(s.ready))
		}
		o := s.ready[i]
		s.ready = slices.Delete(s.ready, i, i+1)
		if o.call.gone && !o.call.landed || o.host != nil && o.host.holds(o) {
			continue
		}
		s.grant(o)
		return true
	}
	return false
}

func (s *scheduler) grant(o *op) {
	outcome := ""
	if o.do != nil {
		outcome = o.do()
	}
	s.steps++
	s.note(o, outcome)
	s.done(o)
}

func (s *scheduler) done(o *op) {
	if o.call.open--; o.call.open == 0 && !o.call.gone {
		o.call.turn <- struct{}{}
	}
	o.call.of.ends()
}

// note adds a step to the hash, and to the trace where somebody reads it.
func (s *scheduler) note(o *op, outcome string) {
	now := s.elapsed()
	s.mix(uint64(now))
	for _, text := range [...]string{o.who, o.what, o.key, o.sort, outcome} {
		_, _ = s.hash.WriteString(text)
		_, _ = s.hash.Write(separator)
	}
	if s.onStep != nil {
		s.onStep(Step{N: s.steps, At: s.began.Add(now), Since: now, Who: o.who, What: o.what, Key: o.key, Sort: o.sort, Outcome: outcome, Hash: s.hash.Sum64()})
	}
}

var separator = []byte{0}

func (s *scheduler) mix(n uint64) {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	_, _ = s.hash.Write(b[:])
}

func (a *op) compare(b *op) int {
	if c := strings.Compare(a.who, b.who); c != 0 {
		return c
	}
	if c := strings.Compare(a.what, b.what); c != 0 {
		return c
	}
	if c := strings.Compare(a.key, b.key); c != 0 {
		return c
	}
	if c := strings.Compare(a.sort, b.sort); c != 0 {
		return c
	}
	return compare(a.call.id, b.call.id)
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// heldUp are operations that wait for their time, the first one on top.
type heldUp []*op

func (h heldUp) Len() int { return len(h) }
func (h heldUp) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].number < h[j].number
}
func (h heldUp) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heldUp) Push(x any)   { *h = append(*h, x.(*op)) }
func (h *heldUp) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
