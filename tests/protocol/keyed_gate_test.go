package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// byCustomer bounds the runs of each customer by themselves.
func byCustomer(policy job.OverlapPolicy, limit int) job.Definition {
	def := definition(nil, 1)
	def.Overlap = job.Overlap{Policy: policy, Limit: limit, Key: "${ .payload.customer }"}
	return def
}

// askedOf asks for a run of a customer.
func (h *host) askedOf(customer string) run.ID {
	r, _, err := h.order(tenant, "a", control.Request{Delay: new(time.Duration), Payload: fmt.Appendf(nil, `{"customer": %q}`, customer)})
	h.must(err)
	return r.ID
}

func (w *world) stage(id run.ID) run.State {
	r, _ := w.run(tenant, id)
	return r.Stage()
}

// One customer's run waits for the other of the same customer, and nobody else's does. It is let in when that has ended.
func TestG1_G2_one_run_of_each_value_at_once(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.put(tenant, "a", byCustomer(job.OverlapQueue, 1)))
	long := strings.Repeat("x", 60)
	values := []string{"acme", long, gate.ShownKey(gate.KeyOf(long))[:40], "12"}
	ends := map[string]func(){}
	second := map[string]run.ID{}
	for i, v := range values {
		api.askedOf(v)
		ends[v] = w.inProgress(fmt.Sprint("w", i)) // beside those of the values before
	}
	for _, v := range values {
		second[v] = api.askedOf(v)
	}
	w.work()
	for _, v := range values {
		if r, _ := w.run(tenant, second[v]); !r.Waits() || r.GateKey != gate.KeyOf(v) {
			t.Errorf("the second of %q is %s, at the key %q", v, r.Stage(), r.GateKey)
		}
	}
	for i, v := range values {
		ends[v]()
		w.work()
		for j, other := range values {
			if got, want := w.started(second[other]), j <= i; got != want {
				t.Errorf("after the end of %q: the second of %q has started: %t", v, other, got)
			}
		}
	}
	w.wants(w.check(w.now() - 1))
}

// A delete ends those that wait at every value, an edit lets in at every value, and so does a resume.
func TestG2_an_edit_is_seen_at_the_line_of_each_value(t *testing.T) {
	for name, c := range map[string]struct {
		before func(api *host) error
		act    func(api *host) error
		want   run.State
	}{
		"a delete":       {act: func(api *host) error { return api.delete(tenant, "a") }, want: run.Cancelled},
		"a higher limit": {act: func(api *host) error { return api.put(tenant, "a", byCustomer(job.OverlapQueue, 2)) }, want: run.Succeeded},
		"another key": {act: func(api *host) error {
			def := byCustomer(job.OverlapQueue, 2)
			def.Overlap.Key = "${ .job }"
			return api.put(tenant, "a", def)
		}, want: run.Succeeded},
		"no key any more": {act: func(api *host) error {
			def := byCustomer(job.OverlapQueue, 2)
			def.Overlap.Key = ""
			return api.put(tenant, "a", def)
		}, want: run.Succeeded},
		"no bound any more": {act: func(api *host) error { return api.put(tenant, "a", definition(nil, 2)) }, want: run.Succeeded},
		"a resume":          {before: func(api *host) error { return api.pause(tenant, "a") }, act: func(api *host) error { return api.resume(tenant, "a") }, want: run.Succeeded},
		"a limit some edits later": {before: func(api *host) error {
			def := byCustomer(job.OverlapQueue, 1)
			def.Overlap.Key = ""
			return api.put(tenant, "a", def)
		},
			act: func(api *host) error {
				def := byCustomer(job.OverlapQueue, 3)
				def.Overlap.Key = ""
				return api.put(tenant, "a", def)
			}, want: run.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			api := w.host("api")
			w.must(api.put(tenant, "a", byCustomer(job.OverlapQueue, 1)))
			var ends []func()
			var waiting []run.ID
			for i := range 3 {
				customer := fmt.Sprint("customer-", i)
				api.askedOf(customer)
				ends = append(ends, w.inProgress(fmt.Sprint("w", i)))
			}
			for i := range ends {
				waiting = append(waiting, api.askedOf(fmt.Sprint("customer-", i)))
			}
			w.work()
			if c.before != nil {
				w.must(c.before(api))
				for _, end := range ends { // nobody is let in by them, or by others
					end()
				}
				ends = nil
			}
			w.must(c.act(api))
			w.work()
			for i, id := range waiting {
				if got := w.stage(id); got != c.want {
					t.Errorf("who waited at value %d is %s, want %s", i, got, c.want)
				}
			}
			for _, end := range ends {
				end()
			}
			w.wants(w.check(w.now() - 1))
		})
	}
}

// A run whose key cannot be told fails for good, says why, and is in nobody's way; the others pass.
func TestG4_a_run_without_a_key_says_so(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.put(tenant, "a", byCustomer(job.OverlapQueue, 1)))
	for payload, want := range map[string]string{
		`{}`:                     "expression: overlap.key: it gives null; want a text, a number, true or false",
		`{"customer": ["a"]}`:    "expression: overlap.key: it gives an array; want a text, a number, true or false",
		`{"customer": {"a": 1}}`: "expression: overlap.key: it gives an object; want a text, a number, true or false",
		`"acme"`:                 "expression: overlap.key: expected an object but got: string (\"acme\")",
		`{"customer": 1.50}`:     "",
		`{"customer": true}`:     "",
		`{"customer": ""}`:       "",
		`{"customer": "` + strings.Repeat("x", 2000) + `"}`: "",
	} {
		r, _, err := api.order(tenant, "a", control.Request{Delay: new(time.Duration), Payload: []byte(payload)})
		w.must(err)
		w.work()
		r, _ = w.run(tenant, r.ID)
		switch {
		case want != "" && (r.State != run.Failed || r.Reason != want || r.Attempt != 0):
			t.Errorf("%.40s: it is %s: %s", payload, r.State, r.Reason)
		case want == "" && r.State != run.Succeeded:
			t.Errorf("%.40s: it is %s: %s", payload, r.State, r.Reason)
		}
	}
	w.wants(w.check(w.now() - 1))
}

// Each worker dies at any of its operations while runs of two customers want in, one of each at once. All end within the promised time.
func TestG1_G2_G4_Fault01_a_crash_at_each_write_of_a_keyed_gate(t *testing.T) {
	last := false
	for at := 0; !last && at < 200; at++ {
		w := newWorld(t)
		api := w.host("api")
		w.must(api.put(tenant, "a", byCustomer(job.OverlapQueue, 1)))
		for i := range 6 {
			api.askedOf(fmt.Sprint("customer-", i%2))
		}
		left := at
		last = !w.dies(func(op operation) bool {
			if op.writes() {
				left--
			}
			return left < 0
		})
		for second := 0; second < 40*60 && w.open(); second += 20 {
			w.advance(20*time.Second, 20*time.Second, "ticks")
		}
		for _, r := range w.runs() {
			if r.State != run.Succeeded {
				t.Errorf("a crash at write %d: %s at %q is %s: %s", at, r.ID, r.GateKey, r.Stage(), r.Reason)
			}
		}
		w.wants(w.check(w.now() - 1))
		if t.Failed() {
			return
		}
	}
}

// open tells whether a run has not ended.
func (w *world) open() bool {
	for _, r := range w.runs() {
		if !r.State.Ended() && r.State != run.Fenced {
			return true
		}
	}
	return false
}

// Who is in progress, or waits, for longer than a gate of a value is kept, keeps its place: checks write it anew.
func TestG1_G3_a_keyed_gate_is_kept_for_who_is_there(t *testing.T) {
	named := passing(job.Overlap{}, job.GateUse{Gate: "stripe", Units: 1}, job.GateUse{Gate: "customer", Units: 1, Key: "${ .payload.customer }"})
	for name, c := range map[string]struct {
		def job.Definition
		at  string
	}{
		"of its own": {byCustomer(job.OverlapQueue, 1), gate.Name("a")},
		"named":      {named, "customer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			api := w.host("api")
			w.must(api.redefine("stripe", limited(5)))
			w.must(api.redefine("customer", limited(1)))
			w.must(api.put(tenant, "a", c.def))
			first := api.askedOf("acme")
			ends := w.inProgress("w1")
			second := api.askedOf("acme")
			w.work()
			at := gate.ID{Tenant: tenant, Name: c.at, Key: gate.KeyOf("acme")}.Item()
			if item := w.get(at); !item.Exists() {
				t.Fatal("nobody has entered the gate of the value")
			}
			for range 70 {
				w.elapsed += 12 * time.Hour
				w.must(w.host("ticks").tick())
				if r, _ := w.run(tenant, first); r.State == run.Running { // its worker lives, and renews
					w.hold(r, r.Worker)
				}
				if item := w.get(at); !item.Exists() || !item.Expires.After(w.clock()) {
					t.Fatalf("after %s the gate is to be cleaned up: %v", w.elapsed, item.Expires)
				}
			}
			if got := w.stage(second); got != run.Waiting {
				t.Errorf("who came second is %s", got)
			}
			ends()
		})
	}
}

// Whoever lists the line of a job whose key is new sees who waits for no value, and then those of each value, page by page.
func TestTheLinesOfAllValuesAreListed(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.put(tenant, "a", oneAtATime(definition(nil, 1))))
	api.askedOf("acme")
	ends := []func(){w.inProgress("w0")}
	before := []run.ID{api.askedOf("acme"), api.askedOf("other")}
	w.work()
	w.elapsed += time.Second
	w.must(api.put(tenant, "a", byCustomer(job.OverlapQueue, 1)))
	want := map[string][]run.ID{}
	for i, v := range []string{"acme", "other#1"} {
		api.askedOf(v)
		ends = append(ends, w.inProgress(fmt.Sprint("w", i+1)))
	}
	for range 2 {
		for _, v := range []string{"acme", "other#1"} {
			want[v] = append(want[v], api.askedOf(v))
		}
	}
	w.work()
	list := func(key string, size int) (runs []run.ID) {
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := api.control.GateLine(t.Context(), tenant, gate.Name("a"), key, cursor, size)
			w.must(err)
			for _, r := range page {
				runs = append(runs, r.ID)
			}
			cursor = next
		}
		return runs
	}
	all := slices.Concat(before, list("acme", 10), list("other#1", 10))
	for _, size := range []int{1, 2, 3, 100} {
		if got := list("", size); !slices.Equal(got, all) {
			t.Errorf("pages of %d: %v, want %v", size, got, all)
		}
	}
	for _, v := range []string{"acme", "other#1"} {
		for _, id := range want[v] {
			if !slices.Contains(list(v, 1), id) {
				t.Errorf("%s is not in the line of %q", id, v)
			}
		}
	}
	gates, _, err := api.control.Gates(t.Context(), tenant, "", 10)
	w.must(err)
	if len(gates) != 1 || gates[0].Waiting != len(all) || len(gates[0].Keys) != 2 || gates[0].Keys[1].Key != "other#1" || gates[0].Keys[1].InProgress != 1 {
		t.Errorf("the gates are %+v", gates)
	}
	for _, end := range ends {
		end()
	}
}

// Histories: runs of some customers are asked for, cancelled, retried, and their job is edited, while workers die at any operation. No value has more in progress
// than its limit, by the judge, and everybody ends. The same seed gives the same history: go test ./tests/protocol -run keyed_gates -from-seed N -seeds 1.
func TestG1_G2_G3_G4_Fault01_after_any_history_at_keyed_gates(t *testing.T) {
	n := uint64(*seeds / 4)
	if testing.Short() {
		n /= 4
	}
	for seed := *fromSeed; seed < *fromSeed+max(n, 1); seed++ {
		r := rand.New(rand.NewPCG(seed, 77))
		w := newWorld(t)
		policies := []job.OverlapPolicy{job.OverlapQueue, job.OverlapQueueLatest, job.OverlapSkip, job.OverlapQueueOne}
		define := func() error {
			def := byCustomer(policies[r.IntN(len(policies))], 1+r.IntN(2))
			def.Payload = fmt.Appendf(nil, `{"edit": %d}`, r.IntN(1000))
			if r.IntN(5) == 0 {
				def.Overlap.Key = ""
			}
			return w.host("api").put(tenant, "a", def)
		}
		w.must(define())
		var asked []run.ID
		for range 40 {
			switch k := r.IntN(12); {
			case k < 6:
				asked = append(asked, w.host("api").askedOf(fmt.Sprint("customer-", r.IntN(3))))
			case k == 6 && len(asked) > 0:
				_ = w.host("api").cancel(tenant, asked[r.IntN(len(asked))])
			case k == 7 && len(asked) > 0:
				_ = w.host("api").retry(tenant, asked[r.IntN(len(asked))])
			case k == 8:
				w.must(define())
			case k == 9:
				left := r.IntN(15)
				w.dies(func(operation) bool { left--; return left < 0 })
			case k == 10:
				left := 3 + r.IntN(20)
				h := w.restart("api")
				h.before = func(operation) faulty.Fault {
					if left--; left < 0 {
						return faulty.Fault{Refuse: errCrashed}
					}
					return faulty.Fault{}
				}
				_ = define()
				w.restart("api")
			default:
				w.advance(time.Duration(1+r.IntN(60))*time.Second, 20*time.Second, "ticks")
			}
			if r.IntN(3) > 0 {
				w.work()
			}
		}
		for second := 0; second < 60*60 && w.open(); second += 20 {
			w.advance(20*time.Second, 20*time.Second, "ticks")
		}
		for _, one := range w.runs() {
			if !one.State.Ended() && one.State != run.Fenced {
				t.Errorf("seed %d: %s at %q is %s", seed, one.ID, one.GateKey, one.Stage())
			}
		}
		w.wants(w.check(w.now() - 1))
		if t.Failed() {
			t.Logf("seed %d", seed)
			return
		}
	}
}
