package local

import "time"

// heap holds the hidden messages, the first to come back on top; of one instant, the first sent.
type heap []*message

func (a *message) before(b *message) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// hide keeps a message until an instant.
func (q *Queue) hide(m *message, at time.Duration) {
	if m.taken {
		q.lanes[m.rank].taken++
	}
	m.at = at
	m.index = int32(len(q.hidden))
	q.hidden = append(q.hidden, m)
	q.hidden.up(int(m.index))
}

// ripen makes ready what was hidden until now or earlier.
func (q *Queue) ripen(now time.Duration) {
	for len(q.hidden) > 0 && q.hidden[0].at <= now {
		m := q.hidden[0]
		q.unhide(m)
		q.lanes[m.rank].push(m)
	}
}

// pull takes a message out of wherever it stands.
func (q *Queue) pull(m *message) {
	if m.index < 0 {
		q.lanes[m.rank].remove(m)
		m.taken = true // by the receipt that still names it
		return
	}
	q.unhide(m)
	m.taken = true
}

// unhide takes a message out of the heap.
func (q *Queue) unhide(m *message) {
	if m.taken {
		q.lanes[m.rank].taken--
		m.taken = false
	}
	last := len(q.hidden) - 1
	i := int(m.index)
	q.hidden[i] = q.hidden[last]
	q.hidden[i].index = int32(i)
	q.hidden[last] = nil
	q.hidden = q.hidden[:last]
	m.index = -1
	if i < last {
		q.hidden.down(i)
		q.hidden.up(i)
	}
}

func (h heap) up(i int) {
	m := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !m.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		h[i].index = int32(i)
		i = parent
	}
	h[i] = m
	m.index = int32(i)
}

func (h heap) down(i int) {
	m := h[i]
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < first+4 && c < len(h); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(m) {
			break
		}
		h[i] = h[least]
		h[i].index = int32(i)
		i = least
	}
	h[i] = m
	m.index = int32(i)
}
