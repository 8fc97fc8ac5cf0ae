package control_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// gated puts a gate of a limit.
func (g *rig) gated(tenant, name string, limit int) gate.Named {
	g.t.Helper()
	n, _, err := g.PutGate(g.t.Context(), tenant, name, gate.Definition{Limit: limit}, control.GateMatch{})
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// passing has runs of a job pass gates.
func passing(uses ...job.GateUse) func(*job.Definition) {
	return func(d *job.Definition) { d.Gates = uses }
}

// A definition is made, replaced, closed, opened and deleted, each under a generation of its own, which only grows.
func TestTheLifeOfAGate(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		def := gate.Definition{Limit: 10}
		made, change, err := g.PutGate(t.Context(), "acme", "stripe", def, control.GateMatch{Match: control.Match{Absent: true}})
		if err != nil || change != control.Created || made.Version != 1 || made.Generation != time.Now().UnixMilli() || made.Created != made.Updated || made.Def != def {
			t.Fatalf("made as %+v, %s, %v", made, change, err)
		}
		if again, change, err := g.PutGate(t.Context(), "acme", "stripe", gate.Definition{Limit: 10, Order: gate.OrderPriority}, control.GateMatch{Match: control.Match{Absent: true}}); err != nil || change != control.Unchanged || again != made {
			t.Errorf("the same again gives %+v, %s, %v", again, change, err)
		}
		closed, err := g.CloseGate(t.Context(), "acme", "stripe", "on-call", "they are down", control.Match{ETag: made.ETag()})
		if err != nil || closed.Generation <= made.Generation || closed.Closed == nil || *closed.Closed != (gate.Change{At: time.Now().UnixMilli(), Reason: "they are down", By: "on-call"}) {
			t.Fatalf("closed as %+v, %v", closed, err)
		}
		time.Sleep(time.Minute)
		again, err := g.CloseGate(t.Context(), "acme", "stripe", "", "they are down", control.Match{})
		if err != nil || again.Generation != closed.Generation {
			t.Errorf("closed again as %+v, %v", again, err)
		}
		again, err = g.CloseGate(t.Context(), "acme", "stripe", "somebody", "", control.Match{})
		if err != nil || again.Generation != closed.Generation || *again.Closed != *closed.Closed {
			t.Errorf("closed again without a reason as %+v, %v", again, err)
		}
		again, err = g.CloseGate(t.Context(), "acme", "stripe", "", "still", control.Match{})
		if err != nil || again.Generation <= closed.Generation || again.Closed.At != closed.Closed.At || again.Closed.Reason != "still" {
			t.Errorf("closed for another reason as %+v, %v", again, err)
		}
		most := 5
		put, change, err := g.PutGate(t.Context(), "acme", "stripe", gate.Definition{Limit: 3, MaxWaiting: &most, Order: gate.OrderFIFO}, control.GateMatch{Match: control.Match{ETag: again.ETag()}})
		if err != nil || change != control.Updated || put.Closed == nil || put.Def.Limit != 3 || put.Generation <= again.Generation || put.Created != made.Created {
			t.Errorf("replaced while it is closed by %+v, %s, %v", put, change, err)
		}
		open, err := g.OpenGate(t.Context(), "acme", "stripe", "on-call", "they are back", control.Match{})
		if err != nil || open.Closed != nil || open.Opened == nil || *open.Opened != (gate.Change{At: time.Now().UnixMilli(), Reason: "they are back", By: "on-call"}) || open.Generation <= put.Generation {
			t.Errorf("opened as %+v, %v", open, err)
		}
		if again, err := g.OpenGate(t.Context(), "acme", "stripe", "", "", control.Match{}); err != nil || again.Generation != open.Generation {
			t.Errorf("opened again as %+v, %v", again, err)
		}
		if err := g.DeleteGate(t.Context(), "acme", "stripe", control.Match{ETag: open.ETag()}); err != nil {
			t.Fatal(err)
		}
		refused(t, g.DeleteGate(t.Context(), "acme", "stripe", control.Match{}), control.CodeGateNotFound)
		refused(t, g.DeleteGate(t.Context(), "acme", "never-was", control.Match{}), control.CodeGateNotFound)
		never := gate.ID{Tenant: "acme", Name: "never-was"}
		if items, err := g.Store.Get(t.Context(), never.Item()); err != nil || items[0].Exists() {
			t.Errorf("a delete of what never was has written %+v, %v", items[0], err)
		}
		_, err = g.Gate(t.Context(), "acme", "stripe")
		refused(t, err, control.CodeGateNotFound)
		_, err = g.CloseGate(t.Context(), "acme", "stripe", "", "", control.Match{})
		refused(t, err, control.CodeGateNotFound)
		_, err = g.OpenGate(t.Context(), "acme", "stripe", "", "", control.Match{})
		refused(t, err, control.CodeGateNotFound)
		_, _, err = g.GateLine(t.Context(), "acme", "stripe", "", "", 10)
		refused(t, err, control.CodeGateNotFound)
		anew, change, err := g.PutGate(t.Context(), "acme", "stripe", def, control.GateMatch{Match: control.Match{Absent: true}})
		if err != nil || change != control.Created || anew.Generation <= open.Generation+1 || anew.Closed != nil || anew.Created == made.Created {
			t.Errorf("made anew as %+v, %s, %v", anew, change, err)
		}
	})
}

// An edit that was meant for another state of the gate is refused, and so is one of a job's own gate.
func TestEditsOfAGateThatAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		old := g.gated("acme", "stripe", 10)
		now := g.gated("acme", "stripe", 9)
		put := func(name string, limit int, match control.Match) error {
			_, _, err := g.PutGate(t.Context(), "acme", name, gate.Definition{Limit: limit}, control.GateMatch{Match: match})
			return err
		}
		closing := func(name string, match control.Match) error {
			_, err := g.CloseGate(t.Context(), "acme", name, "", "", match)
			return err
		}
		opening := func(name string, match control.Match) error {
			_, err := g.OpenGate(t.Context(), "acme", name, "", "", match)
			return err
		}
		deleting := func(name string, match control.Match) error {
			return g.DeleteGate(t.Context(), "acme", name, match)
		}
		refused(t, put("stripe", 8, control.Match{Absent: true}), control.CodeGateExists)
		refused(t, put("stripe", 8, control.Match{ETag: old.ETag()}), control.CodeStale)
		refused(t, put("none", 8, control.Match{ETag: "*"}), control.CodeStale)
		for name, act := range map[string]func(string, control.Match) error{"close": closing, "open": opening, "delete": deleting} {
			refused(t, act("stripe", control.Match{ETag: old.ETag()}), control.CodeStale)
			refused(t, act("none", control.Match{}), control.CodeGateNotFound)
			err := act("job:report", control.Match{})
			refused(t, err, control.CodeOwnGate)
			if err == nil || !strings.Contains(err.Error(), "pause that job") {
				t.Errorf("%s of an own gate: %v", name, err)
			}
		}
		refused(t, put("job:report", 1, control.Match{}), control.CodeOwnGate)
		if all := invalid.All(put(strings.Repeat("x", 65), 1, control.Match{})); len(all) != 1 || all[0].Field != "gate" {
			t.Errorf("a name of 65 bytes: %v", all)
		}
		if all := invalid.All(put("stripe", 0, control.Match{})); len(all) != 1 || all[0].Field != "limit" {
			t.Errorf("a limit of 0: %v", all)
		}
		_, err := g.CloseGate(t.Context(), "acme", "stripe", "", strings.Repeat("x", 257), control.Match{})
		if all := invalid.All(err); len(all) != 1 || all[0].Field != "reason" {
			t.Errorf("a reason of 257 bytes: %v", err)
		}
		if got, err := g.Gate(t.Context(), "acme", "stripe"); err != nil || got.Named != now {
			t.Errorf("after all that it is %+v, %v; want %+v", got.Named, err, now)
		}
	})
}

// Of two edits at once one is read again by the other, and both are made.
func TestEditsOfAGateThatMeet(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		first := g.gated("acme", "stripe", 10)
		met := false
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if len(c.Ops) > 0 && !met {
				met = true
				g.gated("acme", "stripe", 5)
			}
			return faulty.Fault{}
		}
		n, change, err := g.PutGate(t.Context(), "acme", "stripe", gate.Definition{Limit: 7}, control.GateMatch{})
		if err != nil || change != control.Updated || n.Def.Limit != 7 || n.Version != 3 || n.Generation < first.Generation+2 {
			t.Errorf("put as %+v, %s, %v", n, change, err)
		}
	})
}

// Whoever puts a gate as it was open is refused where somebody has closed it since, however late.
func TestAPutIsRefusedByTheGateAsItStands(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.gated("acme", "stripe", 10)
		met := false
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if len(c.Ops) > 0 && !met {
				met = true
				if _, err := g.CloseGate(t.Context(), "acme", "stripe", "", "they are down", control.Match{}); err != nil {
					t.Error(err)
				}
			}
			return faulty.Fault{}
		}
		closed := errors.New("it is closed")
		_, _, err := g.PutGate(t.Context(), "acme", "stripe", gate.Definition{Limit: 7}, control.GateMatch{Stands: func(n gate.Named) error {
			if n.Closed != nil {
				return closed
			}
			return nil
		}})
		if one, got := g.Gate(t.Context(), "acme", "stripe"); !met || !errors.Is(err, closed) || got != nil || one.Named.Def.Limit != 10 {
			t.Errorf("put: %v, and it stands as %+v, %v", err, one.Named, got)
		}
	})
}

// A job may name gates that there are, with as many units as they have. One that names a gate that is gone since may be edited.
func TestJobsThatNameGates(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.gated("acme", "stripe", 3)
		g.gated("other", "theirs", 3)
		fields := func(err error) (all []string) {
			for _, e := range invalid.All(err) {
				all = append(all, e.Field)
			}
			return all
		}
		ctx := t.Context()
		stripe := job.GateUse{Gate: "stripe"}
		for name, row := range map[string]struct {
			uses []job.GateUse
			want []string
		}{
			"one that there is":     {[]job.GateUse{stripe}, nil},
			"all of its units":      {[]job.GateUse{{Gate: "stripe", Units: 3}}, nil},
			"more than it has":      {[]job.GateUse{{Gate: "stripe", Units: 4}}, []string{"gates[0].units"}},
			"one that there is not": {[]job.GateUse{stripe, {Gate: "none"}}, []string{"gates[1].gate"}},
			"another tenant's":      {[]job.GateUse{{Gate: "theirs"}}, []string{"gates[0].gate"}},
			"both wrong":            {[]job.GateUse{{Gate: "none"}, {Gate: "stripe", Units: 9}}, []string{"gates[0].gate", "gates[1].units"}},
		} {
			def := definition(passing(row.uses...))
			_, _, _, err := g.Preview(ctx, "acme", "a", def, control.Match{}, nil)
			if got := fields(err); !slices.Equal(got, row.want) {
				t.Errorf("%s: a dry run refuses %v, %v; want %v", name, got, err, row.want)
			}
			_, _, err = g.Put(ctx, "acme", "a", def, control.Match{})
			if got := fields(err); !slices.Equal(got, row.want) {
				t.Errorf("%s: refused %v, %v; want %v", name, got, err, row.want)
			}
			placed := g.PutMany(ctx, "acme", []control.Wanted{{Name: "b", Def: def}, {Name: "free", Def: definition()}})
			if got := fields(placed[0].Err); !slices.Equal(got, row.want) || placed[1].Err != nil {
				t.Errorf("%s, of a batch: refused %v, %v and %v; want %v", name, got, placed[0].Err, placed[1].Err, row.want)
			}
			for _, name := range []string{"a", "b", "free"} {
				_ = g.Delete(ctx, "acme", name, control.Match{})
			}
		}
		g.put("acme", "a", passing(job.GateUse{Gate: "stripe", Units: 2}))
		_, _, err := g.Patch(ctx, "acme", "a", func(d job.Definition) (job.Definition, error) {
			d.Gates = []job.GateUse{{Gate: "none"}}
			return d, nil
		}, control.Match{})
		if got := fields(err); !slices.Equal(got, []string{"gates[0].gate"}) {
			t.Errorf("a patch is refused %v, %v", got, err)
		}
		g.gated("acme", "stripe", 1)
		relabel := func(label string) error {
			_, _, err := g.Put(ctx, "acme", "a", definition(passing(job.GateUse{Gate: "stripe", Units: 2}), func(d *job.Definition) { d.Description = label }), control.Match{})
			return err
		}
		if err := relabel("lower"); err != nil {
			t.Errorf("a job with more units than its gate has by now cannot be edited: %v", err)
		}
		if err := g.DeleteGate(ctx, "acme", "stripe", control.Match{}); err != nil {
			t.Fatal(err)
		}
		if err := relabel("gone"); err != nil {
			t.Errorf("a job whose gate is gone cannot be edited: %v", err)
		}
	})
}

// Gates are listed with those that have names first, in pages of any size, and none twice or of another tenant.
func TestGatesAreListedInPages(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var want []string
		for i := range 7 {
			name := fmt.Sprint("g", i)
			g.gated("acme", name, 1+i)
			if i%3 == 1 {
				if err := g.DeleteGate(t.Context(), "acme", name, control.Match{}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want = append(want, name)
		}
		for _, name := range []string{"a", "g3", "z"} {
			g.put("acme", name, bounded)
			want = append(want, "job:"+name)
		}
		g.put("acme", "free")
		g.gated("other", "g9", 1)
		g.put("other", "b", bounded)
		for size := 1; size <= len(want)+1; size++ {
			var got []string
			for cursor := ""; ; {
				page, next, err := g.Gates(t.Context(), "acme", cursor, size)
				if err != nil || len(page) > size {
					t.Fatalf("%d gates of at most %d, %v", len(page), size, err)
				}
				for _, one := range page {
					got = append(got, one.Name())
				}
				if cursor = next; cursor == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: %v, want %v", size, got, want)
			}
		}
		if _, _, err := g.Gates(t.Context(), "acme", (control.RunFilter{}).After(run.FireID("a", 1)), 5); !errors.Is(err, store.ErrBadCursor) {
			t.Errorf("a cursor of runs: %v", err)
		}
		if err := g.Delete(t.Context(), "acme", "a", control.Match{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "job:a", "job:free", "job:none", "job:", "job:a b", "g1", "g9", "a b", strings.Repeat("x", 65)} {
			_, err := g.Gate(t.Context(), "acme", name)
			refused(t, err, control.CodeGateNotFound)
		}
		if got, err := g.Gate(t.Context(), "acme", "job:g3"); err != nil || got.Job.Name != "g3" || got.Named.Version != 0 {
			t.Errorf("the own gate of a job: %+v, %v", got, err)
		}
		if got, err := g.Gate(t.Context(), "acme", "g3"); err != nil || got.Named.Def.Limit != 4 || got.Job.Name != "" {
			t.Errorf("the gate of the same name: %+v, %v", got, err)
		}
	})
}

// What cannot be read of a gate hides no other.
func TestAnUnreadableGateHidesNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		for _, name := range []string{"a", "b", "c"} {
			g.gated("acme", name, 1)
		}
		g.unreadable(gate.NamedKey("acme", "b"))
		page, next, err := g.Gates(t.Context(), "acme", "", 10)
		if err != nil || next != "" || len(page) != 2 || page[1].Name() != "c" {
			t.Errorf("listed %+v, %q, %v", page, next, err)
		}
		g.put("acme", "j", passing(job.GateUse{Gate: "b", Units: 7})) // it exists, as far as anybody knows
	})
}

func TestOnlyAWaitingRunIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		r := g.trigger("acme", "a", control.Request{})
		_, err := g.Release(t.Context(), "acme", r.ID, "", "")
		refused(t, err, control.CodeNotWaiting)
		g.succeed(r)
		_, err = g.Release(t.Context(), "acme", r.ID, "", "")
		refused(t, err, control.CodeNotWaiting)
		_, err = g.Release(t.Context(), "acme", run.FireID("a", 1000), "", "")
		refused(t, err, control.CodeRunNotFound)
		_, err = g.Release(t.Context(), "other", r.ID, "", "")
		refused(t, err, control.CodeRunNotFound)
	})
}

// Of a gate that runs pass by a key, the values that are in use are told, and the line of each.
func TestTheValuesOfANamedGate(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.gated("acme", "customer", 1)
		g.put("acme", "charge", passing(job.GateUse{Gate: "customer", Units: 1, Key: "${ .payload }"}))
		waiting := map[string]run.Run{}
		for i, value := range []string{"k8s", "a#b", "acme"} {
			waiting[value] = g.waits("charge", "customer", value, i)
		}
		want := []control.KeyGate{{Key: "a#b", Waiting: 1}, {Key: "acme", Waiting: 1}, {Key: "k8s", Waiting: 1}}
		one, err := g.Gate(t.Context(), "acme", "customer")
		if err != nil || !slices.Equal(one.Keys, want) || one.Waiting != 3 || one.More {
			t.Errorf("it stands as %+v, %v", one, err)
		}
		page, _, err := g.Gates(t.Context(), "acme", "", 10)
		if err != nil || len(page) != 1 || !slices.Equal(page[0].Keys, want) {
			t.Errorf("listed %+v, %v", page, err)
		}
		line := func(key, cursor string, limit int) (ids []run.ID, next string) {
			runs, next, err := g.GateLine(t.Context(), "acme", "customer", key, cursor, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				ids = append(ids, r.ID)
			}
			return ids, next
		}
		for value, r := range waiting {
			if ids, _ := line(value, "", 10); !slices.Equal(ids, []run.ID{r.ID}) {
				t.Errorf("for %s wait %v", value, ids)
			}
		}
		if ids, _ := line("nobody", "", 10); len(ids) != 0 {
			t.Errorf("for nobody wait %v", ids)
		}
		first, next := line("", "", 2)
		rest, _ := line("", next, 2)
		if all := append(first, rest...); len(first) != 2 || !slices.Equal(all, []run.ID{waiting["a#b"].ID, waiting["acme"].ID, waiting["k8s"].ID}) {
			t.Errorf("%v wait, and %v", first, rest)
		}
		shown, err := g.Run(t.Context(), "acme", waiting["a#b"].ID)
		if err != nil || gate.Of(shown).Key != gate.KeyOf("a#b") {
			t.Errorf("it waits at %+v, %v", gate.Of(shown), err)
		}
	})
}

// waits has a run of a job wait at a gate for a value, in its line alone.
func (g *rig) waits(job, name, value string, n int) run.Run {
	g.t.Helper()
	at := gate.Gate{Tenant: "acme", Name: name, Key: gate.KeyOf(value)}
	now := time.Now()
	r := run.Run{ID: run.RequestID(job, now.UnixMilli()+int64(n), 7), Tenant: "acme", State: run.Queued, Generation: 1, Trigger: run.ByRequest}
	r = r.JoinNamed(name, at.Key, r.ID.Nominal, 0, 1, false, now.UnixMilli())
	round := at.Begin()
	round.Join(r, false)
	ops, err := round.Puts(now, g.NewID)
	if err == nil {
		var op store.Op
		if op, err = round.Gate().Put(now, g.NewID()); err == nil {
			_, err = g.Store.Write(g.t.Context(), append(ops, op)...)
		}
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// How many wait at a gate of more values than are told of is counted over all of them, up to a bound.
func TestAllThatWaitAtANamedGateAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.gated("acme", "customer", 1)
		g.put("acme", "charge", passing(job.GateUse{Gate: "customer", Units: 1, Key: "${ .payload }"}))
		made := 0
		wants := func(upTo int, want string) {
			t.Helper()
			for ; made < upTo; made++ {
				g.waits("charge", "customer", fmt.Sprintf("v%04d", made), made)
			}
			one, err := g.Gate(t.Context(), "acme", "customer")
			if got := fmt.Sprint(one.Waiting, one.MoreWaiting); err != nil || got != want {
				t.Errorf("of %d that wait, it tells %s, %v, want %s", made, got, err, want)
			}
		}
		wants(control.GateLook-1, "99 false")
		wants(control.GateLook+50, "150 false")
		wants(control.ValueLook, "1000 false")
		wants(control.ValueLook+1, "1000 true")
		for i := range 19 {
			g.gated("acme", fmt.Sprint("other-", i), 1)
		}
		page, _, err := g.Gates(t.Context(), "acme", "", 20)
		if err != nil || page[0].Waiting != 1000 || !page[0].MoreWaiting {
			t.Errorf("in a list %d wait, more: %t, %v", page[0].Waiting, page[0].MoreWaiting, err)
		}
	})
}

// entered has runs enter a gate, whatever its definition says.
func (g *rig) entered(at gate.ID, runs ...run.Run) {
	g.t.Helper()
	items, err := g.Store.Get(g.t.Context(), at.Item())
	if err != nil {
		g.t.Fatal(err)
	}
	standing, err := gate.FromItem(at.Tenant, at.Name, items[0])
	if err != nil {
		g.t.Fatal(err)
	}
	round := standing.Begin()
	for _, r := range runs {
		round.Admit(r, 1, 1000, false)
	}
	op, err := round.Gate().Put(time.Now(), g.NewID())
	if err == nil {
		_, err = g.Store.Write(g.t.Context(), op)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// gone are runs that have ended and were cleaned up since.
func gone(n, from int) (runs []run.Run) {
	for i := range n {
		runs = append(runs, run.Run{ID: run.FireID("charge", int64(from+i)*1000), Tenant: "acme", Generation: 1})
	}
	return runs
}

// A gate of a value keeps the entries of runs that have ended until somebody comes there again. They count nowhere, whether they are looked at or there are too many.
func TestEndedRunsOfIdleValuesAreNotInProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		const idle = 60
		ofCustomers := passing(job.GateUse{Gate: "customer", Units: 1, Key: "${ .payload }"})
		g.gated("acme", "customer", 5)
		j := g.put("acme", "charge", ofCustomers, func(d *job.Definition) {
			d.Overlap = job.Overlap{Policy: job.OverlapQueue, Limit: 5, Key: "${ .payload }"}
		})
		for i := range idle {
			for _, name := range []string{"customer", gate.Name("charge")} {
				g.entered(gate.ID{Tenant: "acme", Name: name, Key: gate.KeyOf(fmt.Sprint("idle-", i))}, gone(3, 1+3*i)...)
			}
		}
		time.Sleep(time.Hour)
		r := g.trigger("acme", "charge", control.Request{})
		if r.Generation != j.Generation {
			t.Fatalf("the run is of generation %d, and the job of %d", r.Generation, j.Generation)
		}
		for _, name := range []string{"customer", gate.Name("charge")} {
			g.entered(gate.ID{Tenant: "acme", Name: name, Key: gate.KeyOf("zeta")}, r)
		}
		want := []control.KeyGate{{Key: "zeta", InProgress: 1}}
		for _, name := range []string{"customer", "job:charge"} {
			if one, err := g.Gate(t.Context(), "acme", name); err != nil || !slices.Equal(one.Keys, want) || one.InProgress != 1 || one.Units != 1 || one.More {
				t.Errorf("%s alone stands as %+v, %d in progress, %d units, more: %t, %v", name, one.Keys, one.InProgress, one.Units, one.More, err)
			}
		}
		for i := range 12 {
			g.gated("acme", fmt.Sprint("other-", i), 1)
		}
		page, _, err := g.Gates(t.Context(), "acme", "", 20)
		if err != nil || len(page) != 14 {
			t.Fatalf("%d gates, %v", len(page), err)
		}
		for _, one := range page {
			switch keyed := one.Name() == "customer" || one.Name() == "job:charge"; {
			case keyed && (!slices.Equal(one.Keys, want) || one.InProgress != 1 || !one.More):
				t.Errorf("of several, %s stands as %+v, %d in progress, more: %t", one.Name(), one.Keys, one.InProgress, one.More)
			case !keyed && (one.InProgress != 0 || one.More):
				t.Errorf("%s stands as %+v", one.Name(), one)
			}
		}
	})
}

// What a page of gates reads is read together: a query for each, and their runs by as few calls as hold them.
func TestAPageOfGatesIsReadTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		const n = 20
		for i := range n {
			name := fmt.Sprintf("g%02d", i)
			g.gated("acme", name, 9)
			g.put("acme", name, bounded)
		}
		r := g.trigger("acme", "g00", control.Request{})
		for i := range n {
			name := fmt.Sprintf("g%02d", i)
			for _, at := range []gate.ID{{Tenant: "acme", Name: name}, gate.Own("acme", name)} {
				g.entered(at, gone(5, 1)...)
			}
		}
		g.entered(gate.ID{Tenant: "acme", Name: "g00"}, r)
		var mu sync.Mutex
		peeks, gates := 0, map[faulty.Method]int{}
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			mu.Lock()
			defer mu.Unlock()
			if c.Touches(func(k store.Key) bool { return strings.HasPrefix(k.Partition, "gate#") }) {
				gates[c.Method]++
			}
			if c.Method == faulty.Peek {
				peeks++
			}
			return faulty.Fault{}
		}
		page, next, err := g.Gates(t.Context(), "acme", "", 2*n)
		if err != nil || len(page) != 2*n || next != "" || page[0].InProgress != 1 {
			t.Fatalf("%d gates, %q, %v; the first is %+v", len(page), next, err, page[0])
		}
		if gates[faulty.Query] != n || gates[faulty.Get] != 1 || peeks != 3 {
			t.Errorf("%v calls for the gates, and %d for their runs; want %d queries, one read and 3 for 201 runs", gates, peeks, n)
		}
	})
}

// What an edit reads and writes of the gates of values, it does where it has changed what holds there, or repeats such an edit: these are many, and of all jobs that name one.
func TestAnEditLooksAtValuesWhereItChangesWhatHoldsThere(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.gated("acme", "customer", 1)
		g.gated("acme", "other", 1)
		customers := job.GateUse{Gate: "customer", Units: 1, Key: "${ .payload }"}
		var mu sync.Mutex
		looks := map[string]int{}
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			mu.Lock()
			defer mu.Unlock()
			if c.Method == faulty.Query && strings.HasSuffix(c.Range.Partition, "#") { // the lines of values
				looks[c.Range.Partition]++
			}
			return faulty.Fault{}
		}
		def := definition(passing(customers))
		for _, step := range []struct {
			name   string
			after  time.Duration
			change func()
			want   map[string]int
		}{
			{"made", 0, func() {}, map[string]int{"customer": 1}},
			{"put again at once, as after an answer that was lost", 0, func() {}, map[string]int{"customer": 1}},
			{"put again much later", time.Hour, func() {}, nil},
			{"another text", 0, func() { def.Description = "of customers" }, nil},
			{"paused", time.Hour, func() { def.Paused = true }, map[string]int{"customer": 1}},
			{"another gate", time.Hour, func() { def.Gates = []job.GateUse{{Gate: "other", Units: 1}} }, map[string]int{"customer": 1, "other": 1}},
			{"another text in the pause", time.Hour, func() { def.Description = "of others" }, nil},
			{"resumed", time.Hour, func() { def.Paused = false }, map[string]int{"customer": 1, "other": 1}},
			{"a key of its own", time.Hour, func() { def.Overlap = job.Overlap{Policy: job.OverlapQueue, Key: "${ .payload }"} }, map[string]int{"customer": 1, "other": 1, "job:a": 1}},
			{"a limit of its own", time.Hour, func() { def.Overlap.Limit = 2 }, map[string]int{"customer": 1, "other": 1, "job:a": 1}},
		} {
			time.Sleep(step.after)
			step.change()
			clear(looks)
			if _, _, err := g.Put(t.Context(), "acme", "a", def, control.Match{}); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{}
			for name, n := range step.want {
				want["line#acme#"+name+"#"] = n
			}
			if !maps.Equal(looks, want) {
				t.Errorf("%s: it looks at %v, want %v", step.name, looks, want)
			}
		}
	})
}

// A job knows the last gates that its runs passed before, and a delete leaves them with what it leaves.
func TestAJobKnowsTheGatesBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		for i := range 20 {
			g.gated("acme", fmt.Sprint("g", i), 1)
		}
		wants := func(want ...string) {
			t.Helper()
			j, err := g.Dispatch.Book.Job(t.Context(), "acme", "a")
			if err != nil || !slices.Equal(j.GatesBefore, want) {
				t.Errorf("it knows %q, %v, want %q", j.GatesBefore, err, want)
			}
		}
		g.put("acme", "a", bounded, passing(job.GateUse{Gate: "g0", Units: 1}, job.GateUse{Gate: "g1", Units: 1}))
		wants()
		g.put("acme", "a", passing(job.GateUse{Gate: "g1", Units: 1}))
		wants("job:a", "g0")
		g.put("acme", "a", passing(job.GateUse{Gate: "g0", Units: 1}))
		wants("job:a", "g1")
		for i := range 20 {
			g.put("acme", "a", passing(job.GateUse{Gate: fmt.Sprint("g", i), Units: 1}))
		}
		var last []string
		for i := range job.MaxGatesBefore {
			last = append(last, fmt.Sprint("g", 3+i))
		}
		wants(last...)
		if err := g.Delete(t.Context(), "acme", "a", control.Match{}); err != nil {
			t.Fatal(err)
		}
		wants(append(last[1:], "g19")...)
	})
}
