package local

import "github.com/belfry-scheduler/belfry/lib/queue"

// lane is one priority: what it holds, and its ready messages, a line for each group.
type lane struct {
	held  int   // messages in any state
	taken int   // received, and neither deleted nor visible again
	ready int   // standing in a line
	bytes int64 // bodies of all that is held
	lines map[uint32]*line
	next  *line // whose turn it is, in a ring of the groups that have something ready
}

// line is the ready messages of a group. It stands in its lane's ring while it is not empty.
type line struct {
	chain
	before, then *line
}

// chain is messages in an order.
type chain struct {
	first, last ref
	held        int
}

// add puts a message behind one of the chain, 0 for the front.
func (c *chain) add(all *slab[message], m *message, behind ref) {
	c.held++
	m.prev = behind
	if behind == 0 {
		m.next, c.first = c.first, m.self
	} else {
		b := all.at(behind)
		m.next, b.next = b.next, m.self
	}
	if m.next == 0 {
		c.last = m.self
	} else {
		all.at(m.next).prev = m.self
	}
}

// remove takes a message out, wherever it stands.
func (c *chain) remove(all *slab[message], m *message) {
	c.held--
	if m.prev == 0 {
		c.first = m.next
	} else {
		all.at(m.prev).next = m.next
	}
	if m.next == 0 {
		c.last = m.prev
	} else {
		all.at(m.next).prev = m.prev
	}
	m.prev, m.next = 0, 0
}

// push puts a message at the end of its group's line. A group that had nothing ready gets its turn last.
func (l *lane) push(all *slab[message], m *message) {
	l.ready++
	g := l.lines[m.group]
	if g == nil {
		g = &line{}
		if l.lines == nil {
			l.lines = map[uint32]*line{}
		}
		l.lines[m.group] = g
		if l.next == nil {
			g.before, g.then, l.next = g, g, g
		} else {
			g.before, g.then = l.next.before, l.next
			g.before.then, g.then.before = g, g
		}
	}
	g.add(all, m, g.last)
}

// remove takes a ready message out, wherever in the line it stands.
func (l *lane) remove(all *slab[message], m *message) {
	l.ready--
	g := l.lines[m.group]
	g.chain.remove(all, m)
	if g.first != 0 {
		return
	}
	delete(l.lines, m.group)
	if g.then == g {
		l.next = nil
		return
	}
	g.before.then, g.then.before = g.then, g.before
	if l.next == g {
		l.next = g.then
	}
}

// pop takes the first message of the group whose turn it is, nil when nothing is ready.
func (l *lane) pop(all *slab[message]) *message {
	g := l.next
	if g == nil {
		return nil
	}
	l.next = g.then
	m := all.at(g.first)
	l.remove(all, m)
	return m
}

// pick takes the next ready message by queue.Turns, nil when nothing is ready.
func (q *Queue) pick() *message {
	first := queue.Turns[q.turn]
	m := q.lanes[first].pop(&q.messages)
	for rank := 0; m == nil && rank < len(q.lanes); rank++ {
		m = q.lanes[rank].pop(&q.messages)
	}
	if m != nil {
		q.turn = (q.turn + 1) % uint8(len(queue.Turns))
	}
	return m
}
