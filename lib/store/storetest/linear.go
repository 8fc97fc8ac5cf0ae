package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// linearizable runs clients against few keys, loses answers before and after the write was done and lets some writes land
// late, and has the history of each key checked: there must be an order of the calls, each at some moment between its begin
// and its end, in which every answer is right. Keys are checked one by one, which is what the port promises for single
// items; Write of two keys is one call in the history of each.
func linearizable(f *fixture) {
	// Each call whose outcome is unknown may have happened at any later time, or not: the checker may have to try twice as much for it. So a round
	// has few of them, however its clients happen to meet.
	const unknowns = 10
	var faults struct {
		sync.Mutex
		random *rand.Rand
		late   []chan struct{}
		left   int // in this round
	}
	faults.random = rand.New(rand.NewPCG(7, 7))
	s := faulty.New(f.Store, func(_ context.Context, c faulty.Call) faulty.Fault {
		faults.Lock()
		defer faults.Unlock()
		if len(faults.late) > 0 && faults.random.IntN(4) == 0 {
			close(faults.late[0])
			faults.late = faults.late[1:]
		}
		if c.Method != faulty.Write && c.Method != faulty.WriteEach || faults.left == 0 {
			return faulty.Fault{}
		}
		drawn := faults.random.IntN(10)
		if drawn < 4 {
			faults.left--
		}
		switch drawn {
		case 0:
			return faulty.Fault{Refuse: fmt.Errorf("lost on its way: %w", store.ErrUnknown)}
		case 1, 2:
			return faulty.Fault{Lose: fmt.Errorf("lost on its way back: %w", store.ErrUnknown)}
		case 3:
			late := make(chan struct{})
			faults.late = append(faults.late, late)
			return faulty.Fault{Late: late}
		default:
			return faulty.Fault{}
		}
	})
	// Many short histories.
	const rounds, clients, calls, keys = 20, 4, 20, 2
	for round := range rounds {
		faults.Lock()
		faults.left = unknowns
		faults.Unlock()
		h := &history{
			partition: fmt.Sprint("round", round), begin: time.Now(), events: make([][]porcupine.Operation, keys),
		}
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(round), uint64(client)))
				c := &caller{fixture: f, store: s, history: h, client: client, random: random}
				for n := 0; n < calls && !f.Failed(); n++ {
					c.call(n)
				}
			})
		}
		wg.Wait()
		for i, events := range h.events {
			if len(events) < clients*calls/keys/2 {
				f.Fatalf("key %d has a history of %d calls: nothing was tested", i, len(events))
			}
			if r := porcupine.CheckOperationsTimeout(model, events, 5*time.Minute); r != porcupine.Ok {
				f.Errorf("round %d, key %d: the history of %d calls has no order in which every answer is right (%s)",
					round, i, len(events), r)
			}
		}
	}
}

// history gathers calls by the key that they touch.
type history struct {
	partition string
	begin     time.Time
	sync.Mutex
	events [][]porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.begin)) }

// never is the end of a call whose outcome is unknown: it may happen at any later time.
const never = int64(1) << 62

func (h *history) add(key, client int, in step, out answer, begin int64) {
	end := h.now()
	if out.unknown {
		end = never
	}
	h.Lock()
	defer h.Unlock()
	h.events[key] = append(h.events[key], porcupine.Operation{ClientId: client, Input: in, Output: out, Call: begin, Return: end})
}

type caller struct {
	*fixture
	store   store.Store
	history *history
	client  int
	random  *rand.Rand
	seen    [8]store.Item
}

func (c *caller) key(at int) store.Key {
	return store.Key{Partition: c.history.partition, Sort: fmt.Sprint("key", at)}
}

// call makes one random call on the keys, based on what this client saw last, which may be stale.
func (c *caller) call(n int) {
	keys := len(c.history.events)
	at := c.random.IntN(keys)
	k := c.key(at)
	attempt := uint64(1 + c.client*10_000 + n)
	cond := store.At(c.seen[at])
	if c.random.IntN(5) == 0 {
		cond = store.Any
	}
	op := tried(put(k, cond, fmt.Sprint(attempt)), attempt)
	if c.random.IntN(4) == 0 {
		op = remove(k, cond)
	}
	switch c.random.IntN(6) {
	case 0, 1:
		c.read(at, k)
	case 2:
		c.scan()
	case 3:
		c.each(at, op)
	case 4:
		other := (at + 1) % keys
		second := tried(put(c.key(other), store.At(c.seen[other]), fmt.Sprint(attempt)), attempt)
		c.both(at, op, other, second)
	default:
		c.write(at, op)
	}
}

func (c *caller) read(at int, k store.Key) {
	begin := c.history.now()
	items, err := c.store.Get(c.Context(), k)
	if err != nil {
		c.Error(err)
		return
	}
	c.seen[at] = items[0]
	c.history.add(at, c.client, step{read: true}, answer{standing: standingOf(items[0])}, begin)
}

// scan reads by a Query, which is item by item.
func (c *caller) scan() {
	begin := c.history.now()
	page, err := c.store.Query(c.Context(), store.Range{Partition: c.history.partition})
	if err != nil {
		c.Error(err)
		return
	}
	for at := range c.history.events {
		item := store.Item{}
		for _, i := range page.Items {
			if i.Key == c.key(at) {
				item = i
			}
		}
		c.seen[at] = item
		c.history.add(at, c.client, step{read: true}, answer{standing: standingOf(item)}, begin)
	}
}

// write tries until the outcome is known, three times at most: each try is a call of its own in the history, since each
// may happen, but a repeated one may also answer for the first.
func (c *caller) write(at int, op store.Op) {
	for try := range 3 {
		begin := c.history.now()
		versions, err := c.store.Write(c.Context(), op)
		out := c.answer(err, 0)
		if err == nil {
			out.version = versions[0]
		}
		c.history.add(at, c.client, step{op: op, again: try > 0}, out, begin)
		if !out.unknown {
			return
		}
	}
}

func (c *caller) each(at int, op store.Op) {
	begin := c.history.now()
	verdicts, err := c.store.WriteEach(c.Context(), op)
	if err != nil {
		c.Error(err)
		return
	}
	out := c.answer(verdicts[0].Err, 0)
	out.version = verdicts[0].Version
	c.history.add(at, c.client, step{op: op}, out, begin)
}

// both writes two keys at once. When the other key was the reason for a conflict, this one tells nothing.
func (c *caller) both(at int, op store.Op, other int, second store.Op) {
	begin := c.history.now()
	versions, err := c.store.Write(c.Context(), op, second)
	for i, o := range []store.Op{op, second} {
		out := c.answer(err, i)
		if err == nil {
			out.version = versions[i]
		}
		if !out.elsewhere {
			c.history.add([]int{at, other}[i], c.client, step{op: o}, out, begin)
		}
	}
}

func (c *caller) answer(err error, at int) answer {
	conflict := store.AsConflict(err)
	switch {
	case err == nil:
		return answer{}
	case conflict != nil && conflict.Op == at:
		return answer{conflict: true, standing: standingOf(conflict.Standing)}
	case conflict != nil:
		return answer{elsewhere: true}
	case errors.Is(err, store.ErrUnknown):
		return answer{unknown: true}
	default:
		c.Error(err)
		return answer{unknown: true}
	}
}

// standing is what a key holds, as the model knows it.
type standing struct{ version, attempt uint64 }

func standingOf(i store.Item) standing { return standing{i.Version, i.Attempt} }

type step struct {
	read  bool
	again bool
	op    store.Op
}

type answer struct {
	version   uint64
	conflict  bool
	unknown   bool // it may have happened, may yet happen, or not
	elsewhere bool // a conflict about another key
	standing  standing
}

// model is the port for one item, in a dozen lines. Writes whose outcome is unknown may or may not happen, so a step can
// lead to two states.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{standing{}} },
	Step: func(state, input, output any) []any {
		at, in, out := state.(standing), input.(step), output.(answer)
		if in.read {
			if out.standing == at {
				return []any{at}
			}
			return nil
		}
		after := at
		apply := in.op.If.Holds(at.version)
		if apply && in.op.Kind == store.Put {
			after = standing{at.version + 1, in.op.Attempt}
		} else if apply {
			after = standing{}
		}
		wanted, _ := in.op.If.Wants()
		mine := !apply && in.op.Kind == store.Put && at == standing{wanted + 1, in.op.Attempt}
		switch {
		case out.unknown:
			return []any{at, after}
		case out.conflict:
			if apply || mine || out.standing != at {
				return nil
			}
			return []any{at}
		case mine && out.version == at.version:
			return []any{at}
		case apply && (in.op.Kind == store.Delete && out.version == 0 || in.op.Kind == store.Put && out.version == after.version):
			return []any{after}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()
