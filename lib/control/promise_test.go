package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// keyed are requests for runs of a job, each under a key.
func keyed(job string, keys ...string) []control.Asked {
	asked := make([]control.Asked, len(keys))
	for i, key := range keys {
		asked[i] = control.Asked{Job: job, Request: control.Request{Key: key, Payload: json.RawMessage(fmt.Sprintf("%q", key))}}
	}
	return asked
}

// keyIn gives the idempotency key that a call writes, or "".
func keyIn(c faulty.Call) string {
	for _, op := range c.Ops {
		if key, ok := strings.CutPrefix(op.Key.Partition, "idem#acme#"); ok {
			return key
		}
	}
	return ""
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	return keys
}

// The keys of a call are one write of many, as its timers are and its runs.
func TestTheKeysOfOneCallAreOneWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		counted := g.Store.(*faulty.Store)
		before, one := counted.Count(faulty.WriteEach), counted.Count(faulty.Write)
		const n = 40
		for i, a := range g.TriggerMany(t.Context(), "acme", keyed("report", numbered(n)...)) {
			if a.Err != nil || a.Repeated || a.Run.State != run.Queued {
				t.Errorf("request %d: %+v", i, a)
			}
		}
		after := counted.Count(faulty.WriteEach)
		if calls, items := after.Calls-before.Calls, after.Items-before.Items; calls != 3 || items != n+3+n || counted.Count(faulty.Write) != one {
			t.Errorf("%d writes of many with %d items, and %d others; want three with %d", calls, items, counted.Count(faulty.Write).Calls-one.Calls, n+3+n)
		}
	})
}

// What befalls one key of a call is no matter of the others.
func TestP9_Fault01_Fault51_EachKeyOfACallHasItsOwnFate(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		asked := keyed("report", "throttled", "lost", "taken", "asked", "throttled once", "lost once", "refused once", "free")
		taken := g.trigger("acme", "report", control.Request{Key: "taken"})
		standing := g.trigger("acme", "report", asked[3].Request)
		tries := map[string]int{}
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			key := keyIn(c)
			tries[key]++
			what, once := strings.CutSuffix(key, " once")
			switch {
			case once && tries[key] > 1:
			case what == "throttled":
				return faulty.Fault{Refuse: store.ErrThrottled}
			case what == "lost":
				return faulty.Fault{Lose: store.ErrUnknown}
			case what == "refused":
				return faulty.Fault{Refuse: store.ErrUnknown}
			}
			return faulty.Fault{}
		}
		began := time.Now()
		answers := g.TriggerMany(t.Context(), "acme", asked)
		if took := time.Since(began); took > 350*time.Millisecond {
			t.Errorf("it took %s, want no more than four tries of one write", took)
		}
		g.hook = nil
		if err := answers[0].Err; !errors.Is(err, store.ErrThrottled) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("the throttled one: %v", err)
		}
		if err := answers[1].Err; !errors.Is(err, store.ErrUnknown) {
			t.Errorf("the one whose answers were lost: %v", err)
		}
		refused(t, answers[2].Err, control.CodeKeyReused)
		if a := answers[3]; a.Err != nil || !a.Repeated || a.Run.ID != standing.ID {
			t.Errorf("the one that was asked before: %+v, want run %s", a, standing.ID)
		}
		for i, a := range answers[4:] {
			if a.Err != nil || a.Repeated || a.Run.State != run.Queued {
				t.Errorf("%q: %+v", asked[4+i].Key, a)
			}
		}
		want := []run.ID{taken.ID, standing.ID}
		for _, a := range answers[4:] {
			want = append(want, a.Run.ID)
		}
		var stand []run.ID
		for _, r := range g.all("acme", control.RunFilter{}) {
			stand = append(stand, r.ID)
		}
		byText := func(a, b run.ID) int { return strings.Compare(a.String(), b.String()) }
		slices.SortFunc(want, byText)
		slices.SortFunc(stand, byText)
		if !slices.Equal(stand, want) {
			t.Errorf("the runs %v stand, want %v", stand, want)
		}
		again := g.TriggerMany(t.Context(), "acme", asked)
		refused(t, again[2].Err, control.CodeKeyReused)
		for i, a := range again {
			if i == 2 {
				continue
			}
			if a.Err != nil || a.Repeated != (i != 0) || answers[i].Err == nil && a.Run.ID != answers[i].Run.ID {
				t.Errorf("asked again, %q gave %+v, want run %s", asked[i].Key, a, answers[i].Run.ID)
			}
		}
		if runs := g.all("acme", control.RunFilter{}); len(runs) != len(asked) {
			t.Errorf("%d runs under %d keys", len(runs), len(asked))
		}
	})
}

// Calls with the same keys come at once, each in an order of its own.
func TestP9_Fault51_CallsWithTheSameKeysAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		asked := keyed("report", numbered(40)...)
		var mu sync.Mutex
		runs, fresh := map[string]run.ID{}, map[string]int{}
		var all sync.WaitGroup
		for call := range uint64(8) {
			mine := slices.Clone(asked)
			rand.New(rand.NewPCG(call, 0)).Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			all.Go(func() {
				answers := g.TriggerMany(t.Context(), "acme", mine)
				mu.Lock()
				defer mu.Unlock()
				for i, a := range answers {
					key := mine[i].Key
					if id, known := runs[key]; a.Err != nil || known && id != a.Run.ID {
						t.Errorf("key %s gave %+v, and run %s before", key, a, id)
					}
					runs[key] = a.Run.ID
					if !a.Repeated {
						fresh[key]++
					}
				}
			})
		}
		all.Wait()
		for key, n := range fresh {
			if n != 1 {
				t.Errorf("key %s was new to %d calls", key, n)
			}
		}
		if standing := g.all("acme", control.RunFilter{}); len(standing) != len(asked) || len(fresh) != len(asked) {
			t.Errorf("%d runs under %d keys, which were new to somebody for %d", len(standing), len(asked), len(fresh))
		}
	})
}

// The first request of a call that has a key is the one that it stands for.
func TestP9_AKeyTwiceInOneCallWithAnotherBody(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		one := control.Asked{Job: "report", Request: control.Request{Key: "k"}}
		other := control.Asked{Job: "report", Request: control.Request{Key: "k", Delay: new(time.Minute)}}
		call := []control.Asked{one, other, one}
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if keyIn(c) == "k" {
				return faulty.Fault{Refuse: store.ErrThrottled}
			}
			return faulty.Fault{}
		}
		for i, a := range g.TriggerMany(t.Context(), "acme", call) {
			if !errors.Is(a.Err, store.ErrThrottled) {
				t.Errorf("request %d under a throttled key: %+v", i, a)
			}
		}
		g.hook = nil
		check := func(repeated bool) run.ID {
			answers := g.TriggerMany(t.Context(), "acme", call)
			refused(t, answers[1].Err, control.CodeKeyReused)
			first, last := answers[0], answers[2]
			if first.Err != nil || last.Err != nil || first.Repeated != repeated || !last.Repeated || first.Run.ID != last.Run.ID {
				t.Errorf("got %+v and %+v, want one run", first, last)
			}
			return first.Run.ID
		}
		id := check(false)
		if again := check(true); again != id {
			t.Errorf("again: %s, want %s", again, id)
		}
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 1 {
			t.Fatalf("%d runs, want one", len(runs))
		}
		// Its run has ended and been cleaned up: the key is bound anew, once.
		g.succeed(g.all("acme", control.RunFilter{})[0])
		time.Sleep(50 * time.Hour)
		if _, err := g.Store.Write(t.Context(), store.Op{Kind: store.Delete, Key: id.Key("acme")}); err != nil {
			t.Fatal(err)
		}
		if newer := check(false); newer == id {
			t.Errorf("the run %s that is gone was promised again", id)
		}
	})
}

// The caller gives up, or its process dies, when the keys are written and nothing else: asked again, each gives the run that it was
// promised.
func TestP9_ACallThatEndsBehindItsKeys(t *testing.T) {
	for name, broken := range map[string]func(give func()) faulty.Hook{
		"GivenUp": func(give func()) faulty.Hook {
			return func(_ context.Context, c faulty.Call) faulty.Fault {
				if keyIn(c) == "key-3" {
					give()
					return faulty.Fault{Lose: store.ErrUnknown}
				}
				return faulty.Fault{}
			}
		},
		"Stopped": func(func()) faulty.Hook {
			return func(_ context.Context, c faulty.Call) faulty.Fault {
				if len(c.Ops) > 0 && keyIn(c) == "" {
					return faulty.Fault{Refuse: errors.New("stopped")}
				}
				return faulty.Fault{}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.put("acme", "report")
				asked := keyed("report", numbered(8)...)
				first := time.Now().UnixMilli()
				ctx, give := context.WithCancel(t.Context())
				defer give()
				g.hook = broken(give)
				for i, a := range g.TriggerMany(ctx, "acme", asked) {
					var refusal *control.Refusal
					if a.Err == nil || errors.Is(a.Err, store.ErrThrottled) || errors.As(a.Err, &refusal) {
						t.Errorf("request %d: %+v, want an error that leaves open what was done", i, a)
					}
				}
				g.hook = nil
				time.Sleep(time.Minute)
				answers := g.TriggerMany(t.Context(), "acme", asked)
				for i, a := range answers {
					// Created tells who promised it: the first call.
					promised := a.Run.Created == first && a.Repeated
					if a.Err != nil || !promised && name == "Stopped" {
						t.Errorf("request %d: %+v, want the run that was promised at %d", i, a, first)
					}
				}
				for i, a := range g.TriggerMany(t.Context(), "acme", asked) {
					if a.Err != nil || !a.Repeated || a.Run.ID != answers[i].Run.ID {
						t.Errorf("request %d, once more: %+v", i, a)
					}
				}
				if runs := g.all("acme", control.RunFilter{}); len(runs) != len(asked) {
					t.Errorf("%d runs under %d keys", len(runs), len(asked))
				}
			})
		})
	}
}
