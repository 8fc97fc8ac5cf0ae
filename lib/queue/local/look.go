package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
)

// looked bounds how many messages of one priority and state are looked at for those that come first. It bounds how long Look holds the
// lock, however many messages a group has.
const looked = 1000

// Look shows messages of one group, and what it has in all. Those of other groups cost nothing and are not told of. Ready messages come in
// the order in which they will be taken, delayed ones by when they can be, taken ones by when they were. Of more than 1000 delayed messages of one
// priority, the 1000 that were sent first are put in order, and SortedOf says so.
func (q *Queue) Look(ctx context.Context, group string, most int) (queue.Look, error) {
	if err := ctx.Err(); err != nil {
		return queue.Look{}, err
	}
	if most < 1 || most > queue.MaxLook {
		return queue.Look{}, fmt.Errorf("look: %w", invalid.Field("limit", fmt.Sprint(most), fmt.Sprintf("1 to %d", queue.MaxLook)))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return queue.Look{}, queue.ErrClosed
	}
	q.settle(q.instant(q.now()))
	look := queue.Look{Depth: map[queue.Priority]queue.Depth{}}
	number, there := q.groups.number[group]
	for rank, priority := range queue.Priorities {
		if !there {
			look.Depth[priority] = queue.Depth{}
			continue
		}
		var ready chain
		if l := q.lanes[rank].lines[number]; l != nil {
			ready = l.chain
		}
		g := &q.groups.all[number]
		delayed, taken := g.delayed[rank], g.taken[rank]
		look.Depth[priority] = queue.Depth{Ready: int64(ready.held), Delayed: int64(delayed.held), Taken: int64(taken.held)}
		if delayed.held > looked {
			look.SortedOf = looked
		}
		look.Ready[rank] = q.first(ready, most)
		look.Delayed[rank] = q.foremost(delayed, most)
		look.Taken[rank] = q.first(taken, most)
	}
	return look, nil
}

// first shows the first of those in a chain, in its order.
func (q *Queue) first(c chain, most int) []queue.Held {
	shown := make([]queue.Held, 0, min(c.held, most))
	for r := c.first; r != 0 && len(shown) < most; {
		m := q.messages.at(r)
		shown = append(shown, q.shown(m))
		r = m.next
	}
	return shown
}

// foremost shows the first of those in a chain of delayed ones, by when they can be taken and then as they were sent.
func (q *Queue) foremost(c chain, most int) []queue.Held {
	all := make([]hidden, 0, min(c.held, looked))
	for r := c.first; r != 0 && len(all) < looked; {
		m := q.messages.at(r)
		all = append(all, q.hidden[m.index])
		r = m.next
	}
	slices.SortFunc(all, func(a, b hidden) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	shown := make([]queue.Held, 0, min(len(all), most))
	for _, h := range all[:min(len(all), most)] {
		shown = append(shown, q.shown(q.messages.at(h.ref)))
	}
	return shown
}

func (q *Queue) shown(m *message) queue.Held {
	h := queue.Held{Body: q.read(m), Sent: time.Unix(0, m.sent), Receives: int(m.receives)}
	if m.index >= 0 {
		h.Back = q.origin.Add(q.hidden[m.index].at - q.stepped)
	} else {
		h.Ready = q.origin.Add(m.readySince() - q.stepped)
	}
	if m.taken {
		h.Taken = q.origin.Add(m.since - q.stepped)
	}
	return h
}
