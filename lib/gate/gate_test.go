package gate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

const nominal = 1_800_000_000_000

// fire is a queued run of a fire of the job, n seconds on.
func fire(n int) run.Run {
	return run.Run{ID: run.FireID("report", nominal+int64(n)*1000), Tenant: "acme", Version: 7, State: run.Queued, Generation: 1}
}

func request(n int) run.Run {
	r := fire(n)
	r.ID = run.RequestID("report", r.ID.Nominal, uint64(n))
	return r
}

func opened(r run.Run, opening uint64) run.Run {
	r.Opening = opening
	return r
}

func claimed(r run.Run, generation int64) run.Run {
	r.Generation = generation
	return r
}

func in(state run.State, r run.Run) run.Run {
	r.State = state
	return r
}

func entry(r run.Run) gate.Entry {
	return gate.Entry{Nominal: r.ID.Nominal, Random: r.ID.Random, Opening: r.Opening, Generation: r.Generation}
}

func of(runs ...run.Run) gate.Gate {
	g := gate.Gate{Tenant: "acme", Name: "job:report", Version: 3}
	for _, r := range runs {
		g.Entries = append(g.Entries, entry(r))
	}
	return g
}

func TestG1_Admit(t *testing.T) {
	for name, row := range map[string]struct {
		g     gate.Gate
		r     run.Run
		limit int
		want  gate.Verdict
		then  gate.Gate // where it enters
	}{
		"nobody is there":              {of(), fire(1), 1, gate.Enters, of(fire(1))},
		"there is room":                {of(fire(1), fire(2)), fire(3), 3, gate.Enters, of(fire(1), fire(2), fire(3))},
		"it looks full":                {of(fire(1)), fire(2), 1, gate.Full, gate.Gate{}},
		"more than a lowered limit":    {of(fire(1), fire(2), fire(3)), fire(4), 2, gate.Full, gate.Gate{}},
		"it holds its place":           {of(fire(1)), fire(1), 1, gate.Holds, gate.Gate{}},
		"beyond a lowered limit":       {of(fire(1), fire(2)), fire(2), 1, gate.Holds, gate.Gate{}},
		"a request at the same time":   {of(fire(1)), request(1), 1, gate.Full, gate.Gate{}},
		"another request of that time": {of(request(1)), opened(fire(1), 0), 1, gate.Full, gate.Gate{}},
		"opened again":                 {of(fire(1), fire(2)), opened(fire(1), 9), 2, gate.Enters, of(fire(2), opened(fire(1), 9))},
		"opened again, it looks full":  {of(fire(1), fire(2), fire(3)), opened(fire(1), 9), 2, gate.Full, gate.Gate{}},
		"of an earlier opening":        {of(opened(fire(1), 9)), fire(1), 5, gate.Late, gate.Gate{}},
		"claimed anew":                 {of(fire(1), fire(2)), claimed(fire(1), 2), 2, gate.Enters, of(fire(2), claimed(fire(1), 2))},
		"claimed anew, it looks full":  {of(fire(1), fire(2)), claimed(fire(1), 2), 1, gate.Full, gate.Gate{}},
		"of an earlier claim":          {of(claimed(fire(1), 2)), fire(1), 5, gate.Late, gate.Gate{}},
		"claimed anew, not opened":     {of(opened(fire(1), 9)), claimed(fire(1), 2), 1, gate.Enters, of(claimed(fire(1), 2))},
		"opened before it was claimed": {of(claimed(fire(1), 2)), opened(fire(1), 9), 5, gate.Late, gate.Gate{}},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(row.g.Entries)
			round := row.g.Begin()
			if got := round.Admit(row.r, 1, row.limit, false); got != row.want {
				t.Fatalf("the verdict is %d, want %d", got, row.want)
			}
			want := row.then
			if row.want != gate.Enters {
				want = row.g
			}
			if got := round.Gate(); !slices.Equal(got.Entries, want.Entries) || got.Version != row.g.Version {
				t.Errorf("the gate is %+v, want %+v", got, want)
			}
			if !slices.Equal(row.g.Entries, before) {
				t.Error("the gate as it was read was changed")
			}
		})
	}
}

// Who ignores a pause that holds the line enters past it where there is room, and else stands at its front, in their own order. All others wait behind it.
func TestG1_G3_PastALineThatAPauseHolds(t *testing.T) {
	g := of(fire(1))
	g.Waiting, g.Front = 2, fire(2).ID.Nominal
	if v := g.Begin().Admit(fire(9), 1, 5, false); v != gate.Behind {
		t.Errorf("who does not ignore it is told %d", v)
	}
	if v := g.Begin().Admit(fire(9), 1, 5, true); v != gate.Enters {
		t.Errorf("where there is room, who ignores it is told %d", v)
	}
	round := g.Begin()
	if v := round.Admit(fire(9), 1, 1, true); v != gate.Full || round.Forwarded() {
		t.Errorf("where there is none, it is told %d, and somebody is at the front: %v", v, round.Forwarded())
	}
	var places []gate.Place
	for _, r := range []run.Run{fire(9), fire(5)} {
		round.Join(r.Join(gate.Name("report"), gate.Forward(r.ID.Nominal), nominal), false)
		places = append(places, gate.Place{Rank: gate.Forward(r.ID.Nominal), Run: r.ID})
	}
	held := gate.Place{Rank: fire(2).ID.Nominal, Run: fire(2).ID}
	if !round.Forwarded() || !places[0].Forwarded() || held.Forwarded() || places[0].Compare(held) >= 0 || places[1].Compare(places[0]) >= 0 {
		t.Errorf("they stand at %+v, and one that is held at %+v", places, held)
	}
	for _, ms := range []int64{1 << 39, 946_684_800_000, 1<<51 - 1} { // of 1987; of 2000, with which simulations may begin; and of a year to which nothing is put off
		if first := (gate.Place{Rank: gate.Forward(ms)}); !first.Forwarded() || (gate.Place{Rank: ms}).Forwarded() {
			t.Errorf("rank %d is put forward to %d", ms, first.Rank)
		}
	}
	round.Begins(held, true)
	if round.Forwarded() {
		t.Error("when they were let in, somebody is still at the front")
	}
}

// Who holds a place, by how the run of an entry stands. All that is not known to be over holds it.
func TestG1_WhoHoldsAPlace(t *testing.T) {
	let := opened(fire(1), 4)
	for name, row := range map[string]struct {
		stands run.Run
		holds  bool
	}{
		"queued":              {let, true},
		"running":             {in(run.Running, let), true},
		"waits for a retry":   {in(run.Retrying, let), true},
		"unreadable":          {run.Run{ID: let.ID, Tenant: let.Tenant, Version: 7}, true},
		"gone":                {run.Run{ID: let.ID, Tenant: let.Tenant}, false},
		"fenced by an edit":   {in(run.Fenced, let), false},
		"unbound by an edit":  {in(run.Scheduled, let), false},
		"succeeded":           {in(run.Succeeded, let), false},
		"failed":              {in(run.Failed, let), false},
		"cancelled":           {in(run.Cancelled, let), false},
		"skipped":             {in(run.Skipped, let), false},
		"dead":                {in(run.Dead, let), false},
		"unknown":             {in(run.Unknown, let), false},
		"in a later opening":  {opened(let, 9), false},
		"claimed anew":        {claimed(let, 2), false},
		"forgotten by a mark": {claimed(opened(let, 0), 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			round := of(let).Begin()
			if ids := round.Unsure(100); len(ids) != 1 || ids[0] != let.ID {
				t.Fatalf("to be looked at: %v", ids)
			}
			round.Learn([]run.Run{row.stands})
			want := gate.Enters
			if row.holds {
				want = gate.Full
			}
			if got := round.Admit(fire(2), 1, 1, false); got != want {
				t.Errorf("the next one is told %d, want %d", got, want)
			}
		})
	}
}

// Entries are looked at some at a time, and only as many as it takes to find room.
func TestG1_ALookAtManyEntries(t *testing.T) {
	var runs []run.Run
	for n := range 250 {
		runs = append(runs, fire(n))
	}
	g := of(runs...)
	standing := func(ids []run.ID, over func(n int) bool) []run.Run {
		var out []run.Run
		for _, id := range ids {
			n := int(id.Nominal-nominal) / 1000
			r := fire(n)
			if over(n) {
				r = in(run.Succeeded, r)
			}
			out = append(out, r)
		}
		return out
	}
	looks := func(over func(int) bool) (verdict gate.Verdict, looked int, r *gate.Round) {
		r = g.Begin()
		for {
			if verdict = r.Admit(request(999), 1, 250, false); verdict != gate.Full {
				return verdict, looked, r
			}
			ids := r.Unsure(100)
			if len(ids) == 0 {
				return verdict, looked, r
			}
			r.Learn(standing(ids, over))
			looked++
		}
	}
	if v, n, r := looks(func(n int) bool { return n < 40 }); v != gate.Enters || n != 1 || len(r.Gate().Entries) != 211 {
		t.Errorf("40 of the first are over: %d after %d looks, %d entries", v, n, len(r.Gate().Entries))
	}
	if v, n, r := looks(func(n int) bool { return n == 249 }); v != gate.Enters || n != 3 || len(r.Gate().Entries) != 250 {
		t.Errorf("the last is over: %d after %d looks, %d entries", v, n, len(r.Gate().Entries))
	}
	v, n, r := looks(func(int) bool { return false })
	if v != gate.Full || n != 3 {
		t.Errorf("none is over: %d after %d looks", v, n)
	}
	why := r.Why(job.OverlapSkip, nil)
	if why.Code != "overlap" || why.Gate != "job:report" || why.Policy != "skip" || len(why.InTheWay) != run.MaxInTheWay ||
		why.InTheWay[0] != fire(0).ID.String() || why.InTheWay[9] != fire(9).ID.String() {
		t.Errorf("in the way: %+v", why)
	}
}

// A long gate gets shorter with its writes: each looks at some others of its entries, the cheap way. What is not known to be over stays.
func TestALongGateIsTidied(t *testing.T) {
	if ids := of(fire(1), fire(2)).Begin().Old(); len(ids) != 0 {
		t.Errorf("a short gate has %d looked at", len(ids))
	}
	var runs []run.Run
	for n := range 40 {
		runs = append(runs, opened(request(n), 4))
	}
	seen := map[run.ID]bool{}
	for version := range uint64(5) {
		g := of(runs...)
		g.Version = version
		for _, id := range g.Begin().Old() {
			seen[id] = true
		}
	}
	if len(seen) != len(runs) {
		t.Errorf("five versions look at %d of %d entries", len(seen), len(runs))
	}
	for name, row := range map[string]struct {
		stands func(run.Run) run.Run
		stays  bool
	}{
		"running":                   {func(r run.Run) run.Run { return in(run.Running, r) }, true},
		"over":                      {func(r run.Run) run.Run { return in(run.Succeeded, r) }, false},
		"over, in a later opening":  {func(r run.Run) run.Run { return in(run.Dead, opened(r, 9)) }, false},
		"queued in a later opening": {func(r run.Run) run.Run { return opened(r, 9) }, false},
		"over in an earlier one":    {func(r run.Run) run.Run { return in(run.Dead, opened(r, 0)) }, true},
		"claimed later":             {func(r run.Run) run.Run { return claimed(opened(r, 0), 2) }, false},
		"opened before its claim":   {func(r run.Run) run.Run { return in(run.Dead, opened(claimed(r, 0), 9)) }, true},
		"not there yet":             {func(r run.Run) run.Run { return run.Run{ID: r.ID, Tenant: r.Tenant} }, true},
		"not claimed again yet":     {func(r run.Run) run.Run { return in(run.Scheduled, r) }, true},
		"fenced before":             {func(r run.Run) run.Run { return in(run.Fenced, r) }, true},
		"unreadable":                {func(r run.Run) run.Run { return in(0, r) }, true},
	} {
		round := of(runs...).Begin()
		if v := round.Admit(fire(99), 1, 100, false); v != gate.Enters {
			t.Fatal(v)
		}
		var standing []run.Run
		old := round.Old()
		for _, id := range old {
			at := slices.IndexFunc(runs, func(r run.Run) bool { return r.ID == id })
			standing = append(standing, row.stands(runs[at]))
		}
		round.Shed(standing)
		want := len(runs) + 1
		if !row.stays {
			want -= len(old)
		}
		if got := round.Gate().Entries; len(got) != want || got[len(got)-1] != entry(fire(99)) {
			t.Errorf("%s: %d entries, want %d, the new one last", name, len(got), want)
		}
	}
}

// What is decided by rounds over what is read, with runs that end and are opened again at any time between: the entries of those in progress are
// never more than the limit.
func TestG1_ByChance(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + random.IntN(3)
		truth := map[run.ID]run.Run{}
		var all []run.Run
		for n := range 6 {
			all = append(all, fire(n))
			truth[fire(n).ID] = fire(n)
		}
		g := of()
		passed := map[run.ID]uint64{} // with the opening that it passed in
		for range 200 {
			some := all[random.IntN(len(all))]
			switch r := truth[some.ID]; random.IntN(4) {
			case 0: // it ends, or it is opened again
				if r.Version++; !r.State.Ended() {
					r.State = run.Succeeded
				} else {
					r.State = run.Queued
					r = r.Reopened(nominal)
				}
				truth[r.ID] = r
			default:
				round := g.Begin()
				v := round.Admit(r, 1, limit, false)
				if v == gate.Full {
					ids := round.Unsure(100)
					var standing []run.Run
					for _, id := range ids {
						standing = append(standing, truth[id])
					}
					round.Learn(standing)
					v = round.Admit(r, 1, limit, false)
				}
				if v == gate.Enters {
					version := g.Version
					g = round.Gate()
					g.Version = version + 1
				}
				if v == gate.Enters || v == gate.Holds {
					passed[r.ID] = r.Opening
				}
			}
			busy := 0
			for id, opening := range passed {
				if r := truth[id]; !r.State.Ended() && r.Opening == opening {
					busy++
				}
			}
			if busy > limit {
				t.Fatalf("seed %d: %d in progress, limit %d: %+v", seed, busy, limit, g)
			}
		}
	}
}

func TestTheRecord(t *testing.T) {
	for name, row := range map[string]struct {
		runs []run.Run
		most int // bytes
	}{
		"empty":         {nil, 10},
		"30 fires":      {repeat(30, recent(fire)), 1024},
		"24 requests":   {repeat(24, recent(request)), 1024},
		"1000 requests": {repeat(1000, recent(request)), 42 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			g := of(row.runs...)
			now := time.UnixMilli(nominal)
			op, err := g.Put(now, 5)
			if err != nil {
				t.Fatal(err)
			}
			if len(op.Value) > row.most {
				t.Errorf("%d bytes, want at most %d", len(op.Value), row.most)
			}
			if op.If != store.At(store.Item{Version: 3}) || op.Attempt != 5 || op.Expires != now.Add((5*365+60)*24*time.Hour) {
				t.Errorf("written as %+v", op)
			}
			back, err := gate.FromItem("acme", "job:report", store.Item{Key: op.Key, Version: 3, Value: op.Value})
			if err != nil || !slices.Equal(back.Entries, g.Entries) || back.Version != 3 || back.Tenant != "acme" || back.Name != "job:report" {
				t.Errorf("read back as %+v, %v", back, err)
			}
		})
	}
	if g, err := gate.FromItem("acme", "job:report", store.Item{}); err != nil || g.Version != 0 || g.Name != "job:report" || len(g.Entries) != 0 {
		t.Errorf("a gate that nobody has entered: %+v, %v", g, err)
	}
	if _, err := gate.FromItem("acme", "job:report", store.Item{Version: 1, Value: []byte("no record")}); err == nil {
		t.Error("what is no record was read")
	}
	if key := gate.Key("acme", "report"); key.Partition != "gate#acme#job:report" || key.Sort != "-" {
		t.Errorf("the key is %v", key)
	}
}

// recent gives runs the generation of a job that was put not long before.
func recent(one func(int) run.Run) func(int) run.Run {
	return func(n int) run.Run { return claimed(one(n), nominal-1000) }
}

func repeat(n int, one func(int) run.Run) []run.Run {
	var runs []run.Run
	for i := range n {
		runs = append(runs, one(i))
	}
	return runs
}

func ExampleName() {
	fmt.Println(gate.Name("daily-report"))
	// Output: job:daily-report
}
