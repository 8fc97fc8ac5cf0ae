package local

import "time"

// heap holds the hidden messages, the first to come back on top; of one instant, the first sent. What decides is in it, so that
// it is put in order without a look at the messages.
type heap []hidden

type hidden struct {
	at  time.Duration
	seq uint64
	ref ref
}

func (a hidden) before(b hidden) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// hide keeps a message until an instant.
func (q *Queue) hide(m *message, at time.Duration) {
	away := q.away(m)
	behind := away.last
	if m.taken {
		q.lanes[m.rank].taken++
		for behind != 0 && q.messages.at(behind).since > m.since { // one that is taken back stands where it stood
			behind = q.messages.at(behind).prev
		}
	}
	away.add(&q.messages, m, behind)
	q.hidden = append(q.hidden, hidden{at: at, seq: m.seq, ref: m.self})
	q.up(len(q.hidden) - 1)
}

// postpone hides a taken message until another instant. It keeps its place among those of its group, which stand as they were taken.
func (q *Queue) postpone(m *message, at time.Duration) {
	i := int(m.index)
	q.hidden[i].at = at
	q.down(i)
	q.up(int(m.index))
}

// ripen makes ready what was hidden until now or earlier.
func (q *Queue) ripen(now time.Duration) {
	for len(q.hidden) > 0 && q.hidden[0].at <= now {
		m := q.messages.at(q.hidden[0].ref)
		m.ripens(q.hidden[0].at)
		q.unhide(m)
		q.lanes[m.rank].push(&q.messages, m)
	}
}

// ripens keeps the instant from which on a message is ready, as the first µs that is not before it.
func (m *message) ripens(at time.Duration) {
	whole := uint64((at + time.Microsecond - 1) / time.Microsecond)
	m.readyHigh, m.readyLow = uint16(whole>>32), uint32(whole)
}

// readySince is that instant.
func (m *message) readySince() time.Duration {
	return time.Duration(uint64(m.readyHigh)<<32|uint64(m.readyLow)) * time.Microsecond
}

// pull takes a message out of wherever it stands.
func (q *Queue) pull(m *message) {
	if m.index < 0 {
		q.lanes[m.rank].remove(&q.messages, m)
		m.taken = true // by the receipt that still names it
		return
	}
	q.unhide(m)
	m.taken = true
}

// unhide takes a message out of the heap.
func (q *Queue) unhide(m *message) {
	q.away(m).remove(&q.messages, m)
	if m.taken {
		q.lanes[m.rank].taken--
		m.taken = false
	}
	last, i := len(q.hidden)-1, int(m.index)
	q.put(i, q.hidden[last])
	q.hidden = q.hidden[:last]
	m.index = -1
	if i < last {
		q.down(i)
		q.up(i)
	}
}

// put puts h at a place of the heap.
func (q *Queue) put(i int, h hidden) {
	q.hidden[i] = h
	q.messages.at(h.ref).index = int32(i)
}

func (q *Queue) up(i int) {
	h := q.hidden[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !h.before(q.hidden[parent]) {
			break
		}
		q.put(i, q.hidden[parent])
		i = parent
	}
	q.put(i, h)
}

func (q *Queue) down(i int) {
	h := q.hidden[i]
	for {
		first := 4*i + 1
		if first >= len(q.hidden) {
			break
		}
		least := first
		for c := first + 1; c < first+4 && c < len(q.hidden); c++ {
			if q.hidden[c].before(q.hidden[least]) {
				least = c
			}
		}
		if !q.hidden[least].before(h) {
			break
		}
		q.put(i, q.hidden[least])
		i = least
	}
	q.put(i, h)
}
