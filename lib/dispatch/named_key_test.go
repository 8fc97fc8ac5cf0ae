package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// each passes the gate "customer" by the payload of the run.
var each = job.GateUse{Gate: "customer", Units: 1, Key: "${ .payload }"}

// of gives a run of a job that is for a customer.
func (s *several) of(customer, name string, n int) run.Run {
	s.t.Helper()
	return s.run(name, n, func(r run.Run) run.Run { r.Payload.Inline = []byte(customer); return r })
}

// wantsOf says who is in progress and waits at the gate of a customer.
func (s *several) wantsOf(customer, in, line string) {
	s.t.Helper()
	gotIn, gotLine := s.whoAt(gate.ID{Tenant: "default", Name: "customer", Key: gate.KeyOf(customer)})
	same(s.t, "in progress of "+customer, gotIn, in)
	same(s.t, "in line of "+customer, gotLine, line)
}

// Three at once, and two of each customer, over all jobs: a run passes the gate of its customer first, and waits for the other without a place that is wider.
func TestG1_G2_G5_TwoOfEachCustomerAndThreeInAll(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1), each)
	s.passes("b", job.Overlap{}, nil, use(1), each)
	s.saysAt("customer", limited(2))
	s.saysAt("stripe", limited(3))
	for n, customer := range []string{"acme", "acme", "acme", "other", "other"} {
		s.of(customer, string("ab"[n%2]), n)
	}
	for n := range 5 {
		s.comes(string("ab"[n%2]), n)
	}
	s.wantsOf("acme", "[a0 b1]", "[a2]")
	s.wantsOf("other", "[b3 a4]", "[]")
	s.wantsAt("[a0 b1 b3]", "[a4]")
	if r := s.run("a", 2, nil); r.Wait.Gate != "customer" || r.Wait.Key != gate.KeyOf("acme") || fmt.Sprint(r.NamedKeys) != fmt.Sprint([]string{"", gate.KeyOf("acme")}) {
		t.Errorf("who waits for its customer says %+v, %v", r.Wait, r.NamedKeys)
	}
	if r := s.run("a", 4, nil); r.Wait.Gate != "stripe" || r.Wait.Key != "" || !r.Placed {
		t.Errorf("who waits for the gate of all says %+v", r.Wait)
	}
	s.over("a", 0)
	s.wantsOf("acme", "[b1 a2]", "[]")
	s.wantsAt("[b1 b3 a4]", "[]")
	if came := s.comes("a", 2); came != dispatch.Joined {
		t.Errorf("it came to %d", came)
	}
	s.wantsAt("[b1 b3 a4]", "[a2]")
	s.over("b", 3)
	s.wantsAt("[b1 a4 a2]", "[]")
}

// A change of a definition holds for all values, those of which nobody knows yet too.
func TestG1_G2_ADefinitionHoldsForAllValues(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, each)
	s.saysAt("customer", limited(1))
	for n := range 12 {
		s.of([]string{"acme", "other"}[n%2], "a", n)
	}
	for n := range 8 {
		s.comes("a", n)
	}
	s.wantsOf("acme", "[a0]", "[a2 a4 a6]")
	s.saysAt("customer", limited(2))
	s.wantsOf("acme", "[a0 a2]", "[a4 a6]")
	s.wantsOf("other", "[a1 a3]", "[a5 a7]")
	s.saysAt("customer", func(d *gate.Named) { d.Closed = &gate.Change{At: then} })
	s.over("a", 0)
	s.over("a", 1)
	s.wantsOf("acme", "[a2]", "[a4 a6]")
	s.of("new", "a", 20)
	s.comes("a", 20)
	s.wantsOf("new", "[]", "[a20]")
	s.saysAt("customer", func(d *gate.Named) { d.Closed = nil })
	s.wantsOf("acme", "[a2 a4]", "[a6]")
	s.wantsOf("other", "[a3 a5]", "[a7]")
	s.wantsOf("new", "[a20]", "[]")
	s.saysAt("customer", func(d *gate.Named) { d.Deleted, d.Def = true, gate.Definition{} })
	for _, n := range []int{6, 7} {
		if r := s.run("a", n, nil); r.Waits() {
			t.Errorf("the gate is gone, and run %d waits", n)
		}
	}
}

// The first run of a value finds no gate that a change of the definition could have written: it is not let in by what was said before all the same.
func TestG1_TheFirstOfAValueIsNotLetInByADefinitionOfBefore(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, each)
	s.saysAt("customer", limited(2))
	cfg := s.Config
	closed := false
	slow := beforeWrite{s.Store, nil}
	slow.do = func(op store.Op) {
		if !closed && op.Key.Partition == "gate#default#customer" {
			closed = true
			s.saysAt("customer", func(d *gate.Named) { d.Closed = &gate.Change{At: then} })
		}
	}
	cfg.Store, cfg.Book = slow, job.NewBook(slow, job.Compile)
	d, err := dispatch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := s.keyed(s.of("acme", "a", 0))
	if came, err := d.Enter(t.Context(), r, r.ID.Nominal, s.defs["a"]); err != nil || came != dispatch.Joined || !closed {
		t.Errorf("it came to %d, %v", came, err)
	}
	s.wantsOf("acme", "[]", "[a0]")
}

// An edit of a job lets in whoever waits for a value, as a resume does.
func TestG2_AnEditLetsInAtTheGatesOfValues(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, each)
	s.passes("b", job.Overlap{}, nil, each)
	s.saysAt("customer", limited(1))
	s.of("acme", "b", 0)
	s.of("acme", "a", 1)
	s.comes("b", 0)
	s.comes("a", 1)
	s.passes("a", job.Overlap{}, func(j *job.Job) { j.Def.Paused = true; j.Generation-- }, each)
	s.over("b", 0)
	s.wantsOf("acme", "[]", "[a1]")
	s.passes("a", job.Overlap{}, func(j *job.Job) { j.Generation-- }, each)
	j, err := s.Book.Job(t.Context(), "default", "a")
	if err == nil {
		err = s.LetInAll(t.Context(), j, gate.PassedBy(j), true)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.wantsOf("acme", "[a1]", "[]")
}

// Who has entered and never started leaves the gates of its values, and a key that cannot be told ends the run with the field that it is.
func TestG2_KeysOfNamedGates(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1), each)
	s.saysAt("customer", limited(1))
	s.saysAt("stripe", limited(5))
	s.of("acme", "a", 0)
	s.of("acme", "a", 1)
	s.comes("a", 0)
	s.comes("a", 1)
	e, err := s.Book.Edition(t.Context(), "default", "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	stood := s.run("a", 0, nil)
	if len(stood.NamedKeys) > 0 || stood.Placed {
		t.Fatalf("the record says %v", stood.NamedKeys)
	}
	was := s.MayHold(t.Context(), stood, e)
	ended, _ := stood.AskCancel(then, "", 1)
	s.write(ended)
	if err := s.Left(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	s.wantsOf("acme", "[a1]", "[]")
	keyless := s.run("a", 9, func(r run.Run) run.Run { r.Payload.Inline = []byte(`{}`); return r })
	keyed, ok, err := s.Keyed(t.Context(), keyless, e)
	if err != nil || ok || keyed.State != run.Failed || keyed.Reason != "expression: gates[1].key: it gives an object; want a text, a number, true or false" {
		t.Errorf("it is %s: %q, %t, %v", keyed.State, keyed.Reason, ok, errors.Unwrap(err))
	}
}

// A change of a definition costs a write for each value that was in use: all are read together, and only where runs wait does somebody look.
func TestAChangeReadsValuesTogether(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, each)
	s.saysAt("customer", limited(1))
	const values = 30
	for n := range values {
		s.of(fmt.Sprint("customer-", n), "a", n)
		s.comes("a", n)
	}
	s.of("customer-7", "a", values)
	s.comes("a", values)
	s.writes("customer", limited(2))
	s.mu.Lock()
	calls := map[string]int{}
	s.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
		calls[describe(c)]++
		return faulty.Fault{}
	}
	s.mu.Unlock()
	if err := s.Redefined(t.Context(), s.def); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.hook = nil
	s.mu.Unlock()
	// The gate of all with its definition, the values, and the definition behind them; and the one with a line, which is read with its definition as long as any wait there.
	if calls["query "] != 2 || calls["get gate"] > 6 || calls["write gate"] != values+2 {
		t.Errorf("it calls %v", calls)
	}
	s.wantsOf("customer-7", fmt.Sprintf("[a7 a%d]", values), "[]")
	s.wantsOf("customer-8", "[a8]", "[]")
}

// The gates of values are changed side by side, and those that wait at them are let in so.
func TestValuesAreChangedSideBySide(t *testing.T) {
	for name, act := range map[string]func(s *several) error{
		"by a definition": func(s *several) error { return s.Redefined(s.t.Context(), s.def) },
		"by an edit": func(s *several) error {
			j, err := s.Book.Job(s.t.Context(), "default", "a")
			if err == nil {
				err = s.LetInAll(s.t.Context(), j, gate.PassedBy(j), true)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeveral(t)
			s.passes("a", job.Overlap{}, nil, each)
			s.saysAt("customer", limited(1))
			for n := range 8 {
				s.of(fmt.Sprint("customer-", n%4), "a", n)
				s.comes("a", n)
			}
			s.writes("customer", limited(2))
			var mu sync.Mutex
			first, second := "", make(chan struct{})
			cfg := s.Config
			slow := beforeWrite{s.Store, func(op store.Op) { // the first write of a value is done when that of another one has come
				if op.Key.Partition != "gate#default#customer" || op.Key.Sort == "-" {
					return
				}
				mu.Lock()
				if first == "" {
					first = op.Key.Sort
				} else if first != op.Key.Sort {
					select {
					case <-second:
					default:
						close(second)
					}
				}
				wait := first == op.Key.Sort
				mu.Unlock()
				if wait {
					select {
					case <-second:
					case <-time.After(5 * time.Minute):
						t.Error("no other value is changed meanwhile")
					}
				}
			}}
			cfg.Store, cfg.Book = slow, job.NewBook(slow, job.Compile)
			d, err := dispatch.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			standing := s.Dispatcher
			s.Dispatcher = d
			err = act(s)
			s.Dispatcher = standing
			if err != nil {
				t.Fatal(err)
			}
			for n := range 4 {
				s.wantsOf(fmt.Sprint("customer-", n), fmt.Sprintf("[a%d a%d]", n, n+4), "[]")
			}
		})
	}
}

// A process that knows the key of an overlap and none of named gates leaves a record with that one. Whoever delivers the run next finds out the others, and keeps what is recorded.
func TestG1_AKeyThatARecordLacksIsFoundOut(t *testing.T) {
	s := newSeveral(t)
	own := job.Overlap{Policy: job.OverlapQueue, Limit: 50, Key: "${ .payload }"}
	s.passes("a", own, nil, use(1), each)
	s.saysAt("customer", limited(1))
	s.saysAt("stripe", limited(5))
	acme := gate.KeyOf("acme")
	all := []string{"", acme}
	for n, c := range []struct {
		own   string
		named []string
		want  string // of its own gate
	}{
		{"", nil, acme},
		{acme, nil, acme},
		{gate.KeyOf("as recorded"), nil, gate.KeyOf("as recorded")},
		{acme, []string{"", ""}, acme},
		{acme, all[:1], acme},
		{"", all, acme},
		{acme, all, acme},
	} {
		r := s.of("acme", "a", n)
		r.GateKey, r.NamedKeys = c.own, c.named
		if r = s.keyed(r); r.GateKey != c.want || !slices.Equal(r.NamedKeys, all) {
			t.Errorf("recorded %q and %q, it passes %q and %q", c.own, c.named, r.GateKey, r.NamedKeys)
		}
		if came, err := s.Enter(t.Context(), r, r.ID.Nominal, s.defs["a"]); err != nil || came != map[bool]dispatch.Entrance{true: dispatch.Passed, false: dispatch.Joined}[n == 0] {
			t.Errorf("recorded %q and %q, it came to %d, %v", c.own, c.named, came, err)
		}
	}
	s.wantsOf("acme", "[a0]", "[a1 a2 a3 a4 a5 a6]")
}

// The first of each value is a transaction over the definition, and some of these may meet: a store refuses one of them. It is tried again, then the run is handed back with nothing written, and
// enters when it comes next.
func TestG2_TheFirstOfAValueIsHandedBackWhereTransactionsMeet(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, each)
	s.saysAt("customer", limited(1))
	s.of("acme", "a", 0)
	refused, most := 0, 1
	s.mu.Lock()
	s.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
		if c.Method == faulty.Write && len(c.Ops) == 2 && c.Ops[1].Kind == store.Check && refused < most {
			refused++
			return faulty.Fault{Refuse: store.ErrThrottled}
		}
		return faulty.Fault{}
	}
	s.mu.Unlock()
	if came := s.comes("a", 0); came != dispatch.Passed || refused != 1 {
		t.Errorf("refused %d times, it came to %d", refused, came)
	}
	s.wantsOf("acme", "[a0]", "[]")
	s.of("other", "a", 1)
	refused, most = 0, 100
	if came := s.comes("a", 1); came != dispatch.Contended || refused < 2 {
		t.Errorf("refused %d times, it came to %d", refused, came)
	}
	s.wantsOf("other", "[]", "[]")
	most = 0
	if came := s.comes("a", 1); came != dispatch.Passed {
		t.Errorf("refused no more, it came to %d", came)
	}
	s.wantsOf("other", "[a1]", "[]")
}
