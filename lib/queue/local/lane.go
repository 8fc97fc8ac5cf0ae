package local

import "github.com/belfry-scheduler/belfry/lib/queue"

// lane is one priority: what it holds, and its ready messages, a line for each group.
type lane struct {
	held   int   // messages in any state
	taken  int   // received, and neither deleted nor visible again
	ready  int   // standing in a line
	bytes  int64 // bodies of all that is held
	groups map[string]*group
	next   *group // whose turn it is, in a ring of the groups that have something ready
}

// group is a line of ready messages that stands in its lane's ring while it is not empty.
type group struct {
	name         string
	first, last  *message
	before, then *group
}

// push puts a message at the end of its group's line. A group that had nothing ready gets its turn last.
func (l *lane) push(m *message) {
	l.ready++
	g := l.groups[m.group]
	if g == nil {
		g = &group{name: m.group}
		if l.groups == nil {
			l.groups = map[string]*group{}
		}
		l.groups[m.group] = g
		if l.next == nil {
			g.before, g.then, l.next = g, g, g
		} else {
			g.before, g.then = l.next.before, l.next
			g.before.then, g.then.before = g, g
		}
	}
	m.turn, m.prev, m.next = g, g.last, nil
	if g.last == nil {
		g.first = m
	} else {
		g.last.next = m
	}
	g.last = m
}

// remove takes a ready message out, wherever in the line it stands.
func (l *lane) remove(m *message) {
	l.ready--
	g := m.turn
	if m.prev == nil {
		g.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		g.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.turn, m.prev, m.next = nil, nil, nil
	if g.first != nil {
		return
	}
	delete(l.groups, g.name)
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
func (l *lane) pop() *message {
	g := l.next
	if g == nil {
		return nil
	}
	l.next = g.then
	m := g.first
	l.remove(m)
	return m
}

// pick takes the next ready message by queue.Turns, nil when nothing is ready.
func (q *Queue) pick() *message {
	first := queue.Turns[q.turn]
	m := q.lanes[first].pop()
	for rank := 0; m == nil && rank < len(q.lanes); rank++ {
		m = q.lanes[rank].pop()
	}
	if m != nil {
		q.turn = (q.turn + 1) % uint8(len(queue.Turns))
	}
	return m
}
