package worker

import (
	"context"
	"sync"
	"time"
)

// renewals has attempts renew their leases. They stand in a line, in the order in which their time comes, and one goroutine waits for
// the first of them: most attempts end before their time has come, and cost no more than a place in the line. A renewal that is made has
// a goroutine of its own, begun in the order of the line.
type renewals struct {
	elapsed func() time.Duration
	wake    chan struct{} // holds one: the alarm is to be set anew

	mu          sync.Mutex
	first, last *renewal
	alarm       time.Duration // when the goroutine wakes by itself; 0: never
}

// renewal is an attempt's place: in the line, under way, or over.
type renewal struct {
	// renew renews once, until ctx ends, and tells how soon the next time is; below zero: there is none.
	renew func(ctx context.Context) time.Duration

	due        time.Duration
	prev, next *renewal
	waits      bool               // it is in the line
	makes      bool               // it is under way
	again      bool               // while it is under way: the next time is at once
	quiet      context.CancelFunc // ends what is under way
	over       chan struct{}      // made by who waits for what is under way, closed when that has ended
}

func newRenewals(elapsed func() time.Duration) *renewals {
	return &renewals{elapsed: elapsed, wake: make(chan struct{}, 1)}
}

// begin has renewals made until the function that it gives is called.
func (l *renewals) begin(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var under sync.WaitGroup
	under.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-l.wake:
			case <-ctx.Done():
				return
			}
			due, wait := l.due()
			for _, r := range due {
				under.Go(func() { l.make(ctx, r) })
			}
			if wait > 0 {
				timer.Reset(wait)
			}
		}
	})
	return func() {
		cancel()
		under.Wait()
	}
}

// due takes those out of the line whose time has come, and tells how long it is until the next one's; 0 where there is none.
func (l *renewals) due() (due []*renewal, wait time.Duration) {
	now := l.elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.first != nil && l.first.due <= now {
		r := l.first
		l.remove(r)
		r.makes = true
		due = append(due, r)
	}
	if l.alarm = 0; l.first != nil {
		l.alarm, wait = l.first.due, l.first.due-now
	}
	return due, wait
}

func (l *renewals) make(ctx context.Context, r *renewal) {
	ctx, quiet := context.WithCancel(ctx)
	defer quiet()
	l.mu.Lock()
	r.quiet = quiet
	over := r.over != nil
	l.mu.Unlock()
	wait := time.Duration(-1)
	if !over {
		wait = r.renew(ctx)
	}
	now := l.elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.makes, r.quiet = false, nil
	switch {
	case r.over != nil:
		close(r.over)
	case r.again && wait >= 0:
		l.add(r, now)
	case wait >= 0:
		l.add(r, now+wait)
	}
	r.again = false
}

// keep has r renewed after a while for the first time.
func (l *renewals) keep(r *renewal, after time.Duration) {
	due := l.elapsed() + after
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(r, due)
}

// hasten has r renewed at once, if it still is.
func (l *renewals) hasten(r *renewal) {
	now := l.elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.waits {
		l.remove(r)
		l.add(r, now)
	}
	r.again = r.makes
}

// end renews r no more. A renewal under way is stopped, and waited for.
func (l *renewals) end(r *renewal) {
	l.mu.Lock()
	if r.waits {
		l.remove(r)
	}
	if r.makes {
		r.over = make(chan struct{})
		if r.quiet != nil {
			r.quiet()
		}
	}
	over := r.over
	l.mu.Unlock()
	if over != nil {
		<-over // bounded by how soon the source heeds the end of a context
	}
}

// add puts r where its time comes: at the end of the line in general, since all leases of a source are equally long.
func (l *renewals) add(r *renewal, due time.Duration) {
	before := l.last
	for before != nil && before.due > due {
		before = before.prev
	}
	r.waits, r.due, r.prev = true, due, before
	if before == nil {
		r.next, l.first = l.first, r
	} else {
		r.next, before.next = before.next, r
	}
	if r.next == nil {
		l.last = r
	} else {
		r.next.prev = r
	}
	if l.first == r && (l.alarm == 0 || due < l.alarm) {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (l *renewals) remove(r *renewal) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.waits, r.prev, r.next = false, nil, nil
}
