package control_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func TestP9_Fault51_OneKeyGivesOneRun(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		req := control.Request{Payload: []byte(`{"n":1}`), Key: "k"}
		var first sync.Map
		var fresh atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				r, repeated, err := g.Trigger(t.Context(), "acme", "report", req)
				if err != nil {
					t.Error(err)
					return
				}
				first.Store(r.ID, true)
				if !repeated {
					fresh.Add(1)
				}
			})
		}
		all.Wait()
		ids := 0
		first.Range(func(any, any) bool { ids++; return true })
		if runs := g.all("acme", control.RunFilter{}); ids != 1 || len(runs) != 1 || fresh.Load() != 1 {
			t.Fatalf("%d IDs were answered, %d of them as new, %d runs stand; want 1", ids, fresh.Load(), len(runs))
		}
		r := g.all("acme", control.RunFilter{})[0]
		g.succeed(r)
		time.Sleep(25 * time.Hour)
		if again, repeated, err := g.Trigger(t.Context(), "acme", "report", req); err != nil || !repeated || again.ID != r.ID || again.State != run.Succeeded {
			t.Errorf("a day later: %s %s, repeated %v, %v", again.ID, again.State, repeated, err)
		}
		for name, other := range map[string]control.Request{
			"Payload": {Payload: []byte(`{"n":2}`), Key: "k"}, "NoPayload": {Key: "k"}, "Delay": {Payload: req.Payload, Delay: new(time.Second), Key: "k"},
			"IgnorePause": {Payload: req.Payload, IgnorePause: true, Key: "k"},
		} {
			_, _, err := g.Trigger(t.Context(), "acme", "report", other)
			t.Log(name)
			refused(t, err, control.CodeKeyReused)
		}
		g.put("acme", "other")
		_, _, err := g.Trigger(t.Context(), "acme", "other", req)
		refused(t, err, control.CodeKeyReused)
		// Another tenant's key is another key (P12).
		g.put("rival", "report")
		if r, repeated, err := g.Trigger(t.Context(), "rival", "report", control.Request{Key: "k"}); err != nil || repeated || r.Tenant != "rival" {
			t.Errorf("another tenant's: %+v, repeated %v, %v", r, repeated, err)
		}
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 1 {
			t.Errorf("%d runs stand, want 1", len(runs))
		}
	})
}

// TestP9_TheAnswerIsLost at each write in turn, with and without the write: the client asks again, and there is one run.
func TestP9_Fault01_TheAnswerIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		for at := 1; at <= 8; at++ {
			for _, done := range []bool{true, false} {
				writes := 0
				g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
					if c.Method == faulty.Write || c.Method == faulty.WriteEach {
						if writes++; writes >= at && writes < at+4 { // every try of it
							if done {
								return faulty.Fault{Lose: store.ErrUnknown}
							}
							return faulty.Fault{Refuse: store.ErrUnknown}
						}
					}
					return faulty.Fault{}
				}
				key := string(rune('a'+at)) + map[bool]string{true: "-done", false: "-not"}[done]
				req := control.Request{Key: key}
				var id run.ID
				for try := 0; ; try++ {
					r, _, err := g.Trigger(t.Context(), "acme", "report", req)
					if err == nil {
						id = r.ID
						break
					}
					if try == 10 {
						t.Fatalf("answer %d lost: %v", at, err)
					}
				}
				g.hook = nil
				r, repeated, err := g.Trigger(t.Context(), "acme", "report", req)
				if err != nil || !repeated || r.ID != id {
					t.Errorf("answer %d lost: asked again, got %s for %s, repeated %v, %v", at, r.ID, id, repeated, err)
				}
			}
		}
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 16 {
			t.Errorf("%d runs for 16 keys", len(runs))
		}
	})
}

// TestP9_ARepeatedRequestMakesTheSameRun: the first try stops between its timer and its run, and the second, later, puts the run. When a
// tick claims it by the timer of the first, it stays what it was.
func TestP9_ARepeatedRequestMakesTheSameRun(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		at := time.Now().Add(time.Hour)
		req := control.Request{At: &at, Key: "k"}
		first := time.Now().UnixMilli()
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Touches(func(k store.Key) bool { return strings.HasPrefix(k.Partition, "run#") }) {
				return faulty.Fault{Refuse: errors.New("stopped")}
			}
			return faulty.Fault{}
		}
		if _, _, err := g.Trigger(t.Context(), "acme", "report", req); err == nil {
			t.Fatal("the run was not refused")
		}
		g.hook = nil
		time.Sleep(5 * time.Second)
		if r := g.trigger("acme", "report", req); r.Created != first || r.Version != 1 {
			t.Errorf("created at %d in version %d, want %d, as its timer says", r.Created, r.Version, first)
		}
	})
}

func TestP9_ARepeatedPutIsNoConflict(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		old := g.put("acme", "report")
		guard := control.Match{ETag: old.ETag()}
		newer := definition(func(d *job.Definition) { d.Description = "second" })
		put, change, err := g.Put(ctx, "acme", "report", newer, guard)
		if err != nil || change != control.Updated {
			t.Fatalf("change %d, %v", change, err)
		}
		again, change, err := g.Put(ctx, "acme", "report", newer, guard)
		if err != nil || change != control.Unchanged || again.ETag() != put.ETag() {
			t.Errorf("repeated: change %d, %s after %s, %v", change, again.ETag(), put.ETag(), err)
		}
		_, _, err = g.Put(ctx, "acme", "report", definition(), guard)
		refused(t, err, control.CodeStale)
		if _, change, err = g.Put(ctx, "acme", "new", newer, control.Match{Absent: true}); err != nil || change != control.Created {
			t.Errorf("change %d, %v", change, err)
		}
		if _, change, err = g.Put(ctx, "acme", "new", newer, control.Match{Absent: true}); err != nil || change != control.Unchanged {
			t.Errorf("a repeated create: change %d, %v", change, err)
		}
		_, _, err = g.Put(ctx, "acme", "new", definition(), control.Match{Absent: true})
		refused(t, err, control.CodeJobExists)
		_, _, err = g.Put(ctx, "acme", "nothing", newer, control.Match{ETag: "*"})
		refused(t, err, control.CodeStale)
	})
}

// TestP9_PutsWhoseAnswersAreLost: each write fails now and then, done or not; what was asked for last stands in the end.
func TestP9_PutsWhoseAnswersAreLost(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		random := rand.New(rand.NewPCG(1, 2))
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method != faulty.Write && c.Method != faulty.WriteEach {
				return faulty.Fault{}
			}
			switch random.IntN(3) {
			case 0:
				return faulty.Fault{Lose: store.ErrUnknown}
			case 1:
				return faulty.Fault{Refuse: store.ErrUnknown}
			}
			return faulty.Fault{}
		}
		guard := control.Match{Absent: true}
		for n := range 40 {
			def := definition(func(d *job.Definition) { d.Description = string(rune('A' + n)) })
			for {
				j, _, err := g.Put(t.Context(), "acme", "report", def, guard)
				if err != nil {
					var stale *control.Refusal
					if asRefusal(err, &stale) {
						t.Fatalf("put %d: %v", n, err)
					}
					continue
				}
				guard = control.Match{ETag: j.ETag()}
				if j.Def.Description != def.Description {
					t.Fatalf("put %d answered with %q", n, j.Def.Description)
				}
				break
			}
		}
	})
}

func TestFault27_AFullQueueRefusesNewWork(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		accepted := 0
		for {
			_, _, err := g.Trigger(t.Context(), "acme", "report", control.Request{})
			if err != nil {
				refused(t, err, control.CodeBusy)
				var busy *control.Refusal
				if asRefusal(err, &busy) && busy.RetryAfter <= 0 {
					t.Errorf("no time is named after which to try again: %+v", busy)
				}
				break
			}
			if accepted++; accepted > 6000 {
				t.Fatal("nothing was refused")
			}
		}
		if runs := g.all("acme", control.RunFilter{Job: "report"}); len(runs) != accepted {
			t.Errorf("%d runs stand, %d were accepted", len(runs), accepted)
		}
	})
}

func TestRequestsAreChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		soon := time.Now().Add(time.Hour)
		far := time.Now().Add(6 * 365 * 24 * time.Hour)
		for name, row := range map[string]struct {
			req   control.Request
			field string
		}{
			"NoJSON":          {control.Request{Payload: []byte("{")}, "payload"},
			"LargePayload":    {control.Request{Payload: make([]byte, control.MaxRunPayload+1)}, "payload"},
			"LongKey":         {control.Request{Key: string(make([]byte, control.MaxKey+1))}, "Idempotency-Key"},
			"BothTimes":       {control.Request{At: &soon, Delay: new(time.Second)}, "delay"},
			"NoDelayAndATime": {control.Request{At: &soon, Delay: new(time.Duration(0))}, "delay"},
			"NegativeDelay":   {control.Request{Delay: new(-time.Second)}, "delay"},
			"TooFar":          {control.Request{At: &far}, "at"},
		} {
			t.Log(name)
			_, _, err := g.Trigger(t.Context(), "acme", "report", row.req)
			wantField(t, err, row.field)
		}
		_, _, err := g.Trigger(t.Context(), "acme", "nothing", control.Request{})
		refused(t, err, control.CodeJobNotFound)
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 0 {
			t.Errorf("%d runs were made", len(runs))
		}
	})
}

func TestP9_P5_AKeyWhoseRunWasCleanedUpStartsAnotherRun(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		req := control.Request{Key: "k"}
		first, _, err := g.Trigger(t.Context(), "acme", "report", req)
		if err != nil {
			t.Fatal(err)
		}
		g.succeed(first)
		time.Sleep(50 * time.Hour)
		if _, err := g.Store.Write(t.Context(), store.Op{Kind: store.Delete, Key: first.ID.Key("acme")}); err != nil {
			t.Fatal(err)
		}
		second, repeated, err := g.Trigger(t.Context(), "acme", "report", req)
		if err != nil || repeated || second.ID == first.ID {
			t.Errorf("%s after %s, repeated %v, %v: want another run, not the same one started again", second.ID, first.ID, repeated, err)
		}
		if again, repeated, err := g.Trigger(t.Context(), "acme", "report", req); err != nil || !repeated || again.ID != second.ID {
			t.Errorf("again: %s, repeated %v, %v, want %s", again.ID, repeated, err, second.ID)
		}
	})
}

// This host's clock has been set back, and it hears of it when the run of a request is written. The request fails, and its run stands: the
// timer that it has lies where all sweeps have passed, so it is given another.
func TestP4_ARunOfARequestThatFailedIsWoken(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		const behind = 3 * time.Hour
		g.put("acme", "a")
		var armed []int64 // wakes
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			for _, op := range c.Ops {
				if strings.HasPrefix(op.Key.Partition, "run#") {
					g.Store.(interface{ SetSkew(time.Duration) }).SetSkew(behind)
				}
				if wake, _, ok := strings.Cut(op.Key.Sort, "#"); ok && strings.HasPrefix(op.Key.Partition, "due#") {
					at, err := strconv.ParseInt(wake, 10, 64)
					if err != nil {
						t.Error(err)
					}
					armed = append(armed, at)
				}
			}
			return faulty.Fault{}
		}
		if _, _, err := g.Trigger(t.Context(), "acme", "a", control.Request{}); !errors.Is(err, store.ErrUnknown) {
			t.Fatalf("a host whose clock is off gave %v, want that it is not known what was done", err)
		}
		if now := time.Now().Add(behind).UnixMilli(); len(armed) == 0 || slices.Max(armed) < now {
			t.Errorf("timers wake at %v, want one at %d or later", armed, now)
		}
	})
}
