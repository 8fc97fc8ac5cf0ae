package local

// ref names a place in a slab, 0 none.
type ref uint32

const slabChunk = 1 << 10 // places that are made at once

// slab holds many values of one kind that have no pointers in them. The garbage collector passes over its memory, where a million
// messages of their own would have to be looked at each time. A place stays where it is until it is given back.
type slab[T any] struct {
	chunks [][]T
	free   []ref
}

func (s *slab[T]) at(r ref) *T { return &s.chunks[(r-1)/slabChunk][(r-1)%slabChunk] }

// take gives a place, with what was left in it.
func (s *slab[T]) take() ref {
	if len(s.free) == 0 {
		first := ref(len(s.chunks) * slabChunk)
		s.chunks = append(s.chunks, make([]T, slabChunk))
		for i := ref(slabChunk); i > 0; i-- {
			s.free = append(s.free, first+i)
		}
	}
	r := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return r
}

func (s *slab[T]) give(r ref) { s.free = append(s.free, r) }

// block is a part of a body.
type block struct {
	next ref
	data [60]byte
}

// write keeps a body, 0 for one without bytes.
func (q *Queue) write(body []byte) (first ref) {
	into := &first
	for len(body) > 0 {
		r := q.blocks.take()
		b := q.blocks.at(r)
		b.next = 0
		body = body[copy(b.data[:], body):]
		*into, into = r, &b.next
	}
	return first
}

// read copies the body of a message.
func (q *Queue) read(m *message) []byte {
	body := make([]byte, 0, m.size)
	for r := m.body; r != 0; {
		b := q.blocks.at(r)
		body = append(body, b.data[:min(len(b.data), int(m.size)-len(body))]...)
		r = b.next
	}
	return body
}

// keep makes a message of what was sent.
func (q *Queue) keep(body []byte, group string) *message {
	r := q.messages.take()
	m := q.messages.at(r)
	*m = message{self: r, body: q.write(body), size: int32(len(body)), group: q.groups.join(group), index: -1}
	q.held++
	return m
}

// slabKept is how much an empty queue keeps, in chunks: room for a few thousand messages, and for four times as many blocks.
const slabKept = 8

// drop lets go of a message. Where there were many, memory goes back with the last of them, and not before.
func (q *Queue) drop(m *message) {
	for r := m.body; r != 0; {
		next := q.blocks.at(r).next
		q.blocks.give(r)
		r = next
	}
	q.groups.leave(m.group)
	q.messages.give(m.self)
	if q.held--; q.held == 0 && (len(q.messages.chunks) > slabKept || len(q.blocks.chunks) > 4*slabKept) {
		q.messages, q.blocks, q.hidden, q.deliveries = slab[message]{}, slab[block]{}, nil, map[uint64]ref{}
	}
}

// names numbers the groups that have messages here.
type names struct {
	number map[string]uint32
	all    []named // by number
	free   []uint32
}

type named struct {
	name    string
	held    int
	delayed [3]chain // by rank of priority, as they were sent
	taken   [3]chain // as they were taken
}

// away is where a hidden message stands among those of its group.
func (q *Queue) away(m *message) *chain {
	g := &q.groups.all[m.group]
	if m.taken {
		return &g.taken[m.rank]
	}
	return &g.delayed[m.rank]
}

func (n *names) join(name string) uint32 {
	i, ok := n.number[name]
	if !ok {
		if len(n.free) > 0 {
			i = n.free[len(n.free)-1]
			n.free = n.free[:len(n.free)-1]
		} else {
			i = uint32(len(n.all))
			n.all = append(n.all, named{})
		}
		if n.number == nil {
			n.number = map[string]uint32{}
		}
		n.number[name], n.all[i].name = i, name
	}
	n.all[i].held++
	return i
}

func (n *names) leave(i uint32) {
	if n.all[i].held--; n.all[i].held == 0 {
		delete(n.number, n.all[i].name)
		n.all[i] = named{}
		n.free = append(n.free, i)
	}
}
