package local

import "time"

// waiter is one receiver that found nothing. It is in the line, or was woken and is on its way to the lock.
type waiter struct {
	wake       chan struct{} // holds one
	waiting    bool
	prev, next *waiter
}

// waiters is a line, first come first woken.
type waiters struct{ first, last *waiter }

func (l *waiters) add(w *waiter) {
	w.waiting, w.prev, w.next = true, l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *waiters) remove(w *waiter) {
	if !w.waiting {
		return
	}
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.waiting, w.prev, w.next = false, nil, nil
}

// wakeOne tells whether there was one to wake.
func (l *waiters) wakeOne() bool {
	w := l.first
	if w == nil {
		return false
	}
	l.remove(w)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return true
}

// settle ends every change of the queue: what became ready by now is ready, and while there is something ready and someone
// waiting, one receiver is on its way; whoever takes less than all wakes the next.
func (q *Queue) settle(now time.Duration) {
	if q.closed {
		return
	}
	q.ripen(now)
	if q.waiters.first == nil {
		return
	}
	for rank := range q.lanes {
		if q.lanes[rank].ready > 0 {
			q.waiters.wakeOne()
			break
		}
	}
	q.setAlarm(now)
}

// setAlarm arranges for the next instant at which a hidden message can be received, while there is someone who waits for it.
// An alarm that stands for an earlier instant is left to ring in vain and be set again: cheaper than moving it.
func (q *Queue) setAlarm(now time.Duration) {
	if q.waiters.first == nil || len(q.hidden) == 0 {
		return
	}
	at := q.hidden[0].at
	if q.alarmAt != 0 && q.alarmAt <= at {
		return
	}
	q.alarmAt = at
	if q.alarm == nil {
		q.alarm = time.AfterFunc(at-now, q.ring)
	} else {
		q.alarm.Reset(at - now)
	}
}

func (q *Queue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarmAt = 0
	q.settle(q.instant(q.now()))
}
