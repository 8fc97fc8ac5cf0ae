package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// several is jobs whose runs pass named gates.
type several struct {
	*gated
	defs map[string]job.Definition
	made map[string]run.Run // by job and number
	def  gate.Named         // of "stripe"
}

func newSeveral(t *testing.T) *several {
	return &several{gated: newGated(t), defs: map[string]job.Definition{}, made: map[string]run.Run{}, def: gate.Named{Tenant: "default", Name: "stripe"}}
}

// passes defines a job whose runs pass gates, in a first or another generation.
func (s *several) passes(name string, overlap job.Overlap, change func(*job.Job), gates ...job.GateUse) {
	s.t.Helper()
	j, err := s.Book.Job(s.t.Context(), "default", name)
	if err != nil {
		s.t.Fatal(err)
	}
	j.Generation++
	j.Def = job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "none"}}, Overlap: overlap, Gates: gates}.WithDefaults()
	if change != nil {
		change(&j)
	}
	s.defs[name] = j.Def
	s.stores(j.Put(s.NewID()))
}

func (s *several) stores(op store.Op, err error) {
	s.t.Helper()
	if err == nil {
		_, err = s.Store.Write(s.t.Context(), op)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// says writes another definition of the gate "stripe", and makes it hold.
func (s *several) says(change func(*gate.Named)) { s.saysAt("stripe", change) }

func (s *several) saysAt(name string, change func(*gate.Named)) {
	s.t.Helper()
	s.writes(name, change)
	if err := s.Redefined(s.t.Context(), s.def); err != nil {
		s.t.Fatal(err)
	}
}

func (s *several) writes(name string, change func(*gate.Named)) {
	s.t.Helper()
	items, err := s.Store.Get(s.t.Context(), gate.NamedKey("default", name))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.def, err = gate.NamedFromItem("default", items[0]); err != nil {
		s.t.Fatal(err)
	}
	s.def.Generation++
	s.def.Deleted = false
	change(&s.def)
	op, err := s.def.Put(s.NewID())
	s.stores(op, err)
	s.def = s.def.Written(items[0].Version + 1)
}

func limited(n int) func(*gate.Named) { return func(d *gate.Named) { d.Def.Limit = n } }

// run is the run of a job, so many seconds on.
func (s *several) run(name string, n int, change func(run.Run) run.Run) run.Run {
	s.t.Helper()
	key := fmt.Sprint(name, n)
	if _, ok := s.made[key]; !ok {
		s.made[key] = s.put(n, func(r run.Run) run.Run {
			r.ID.Job = name
			if change != nil {
				r = change(r)
			}
			return r
		})
	}
	return s.stands(s.made[key])
}

// comes has a run enter its gates, as it stands.
func (s *several) comes(name string, n int) dispatch.Entrance {
	s.t.Helper()
	r := s.keyed(s.run(name, n, nil))
	came, err := s.Enter(s.t.Context(), r, r.ID.Nominal, s.defs[name])
	if err != nil {
		s.t.Fatal(err)
	}
	return came
}

// keyed is a run with the keys of its gates, as whoever delivers it has it.
func (s *several) keyed(r run.Run) run.Run {
	s.t.Helper()
	e, err := s.Book.Edition(s.t.Context(), "default", r.ID.Job, r.Generation)
	if errors.Is(err, job.ErrNotFound) {
		return r
	}
	if err == nil {
		r, _, err = s.Keyed(s.t.Context(), r, e)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// over ends a run that has passed its gates, and tells these.
func (s *several) over(name string, n int) {
	s.t.Helper()
	r := started(s.keyed(s.run(name, n, nil)))
	r.Placed, r.NamedGates = true, len(s.defs[name].Gates) > 0
	ended := s.write(r.Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}))
	if err := s.Left(s.t.Context(), ended); err != nil {
		s.t.Fatal(err)
	}
}

// who gives which runs hold places at the gate, and which wait there, by its line.
func (s *several) who() (in, line []string) {
	s.t.Helper()
	return s.whoAt(gate.ID{Tenant: "default", Name: "stripe"})
}

func (s *several) whoAt(at gate.ID) (in, line []string) {
	s.t.Helper()
	name := func(id run.ID) string { return fmt.Sprint(id.Job, (id.Nominal-s.now.UnixMilli())/1000) }
	items, err := s.Store.Get(context.Background(), at.Item())
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := gate.FromItem("default", at.Name, items[0])
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range g.Entries {
		in = append(in, name(g.Run(e)))
	}
	g.Front = 0
	page, err := s.Store.Query(context.Background(), g.Line(0))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, item := range page.Items {
		p, err := gate.PlaceFromItem(at.Name, item)
		if err != nil {
			s.t.Fatal(err)
		}
		line = append(line, name(p.Run))
	}
	if len(line) != g.Waiting {
		s.t.Errorf("%d places stand, and the gate counts %d", len(line), g.Waiting)
	}
	return in, line
}

func (s *several) wantsAt(in, line string) {
	s.t.Helper()
	gotIn, gotLine := s.who()
	same(s.t, "in progress", gotIn, in)
	same(s.t, "in line", gotLine, line)
}

func use(units int) job.GateUse { return job.GateUse{Gate: "stripe", Units: units} }

// Runs of two jobs share a gate: whoever ends lets in the next, of whichever job it is.
func TestG1_G2_TwoJobsShareANamedGate(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	s.says(limited(2))
	for _, c := range []struct {
		job  string
		n    int
		want dispatch.Entrance
	}{{"a", 0, dispatch.Passed}, {"b", 0, dispatch.Passed}, {"b", 0, dispatch.Passed}, {"b", 1, dispatch.Joined}, {"a", 2, dispatch.Joined}, {"a", 1, dispatch.Joined}} {
		if came := s.comes(c.job, c.n); came != c.want {
			t.Fatalf("%s%d came to %d, want %d", c.job, c.n, came, c.want)
		}
	}
	s.wantsAt("[a0 b0]", "[a1 b1 a2]")
	s.over("b", 0)
	s.wantsAt("[a0 a1]", "[b1 a2]")
	s.over("a", 0)
	s.wantsAt("[a1 b1]", "[a2]")
	same(t, "sent", s.sent(), "[1 1]")
	if r := s.run("b", 1, nil); r.Waits() || r.Wait.LetIn == 0 || !r.Placed {
		t.Errorf("who was let in is %+v", r)
	}
	if came := s.comes("b", 1); came != dispatch.Passed {
		t.Errorf("who was let in comes to %d", came)
	}
}

// Whoever waits at a gate beside the job of a run that ended is let in, also where that job is to be paused and cannot be.
func TestG2_P8_AJobThatCannotBePausedIsInNobodysWay(t *testing.T) {
	s := newSeveral(t)
	s.says(limited(1))
	for _, name := range []string{"a", "b"} {
		s.passes(name, job.Overlap{}, nil, use(1))
	}
	same(t, "they come to", []dispatch.Entrance{s.comes("a", 1), s.comes("b", 2)}, []dispatch.Entrance{dispatch.Passed, dispatch.Joined})
	unwell := errors.New("it is being edited by many")
	s.PauseJob = func(context.Context, ...run.Run) error { return unwell }
	r := started(s.run("a", 1, nil))
	r.Placed, r.NamedGates = true, true
	ended := s.write(r.GiveUp(then, "it fails", run.Limits{Retention: 24 * time.Hour}))
	ended.Pauses = true
	if err := s.Left(t.Context(), ended); !errors.Is(err, unwell) {
		t.Errorf("%v, want what became of the pause", err)
	}
	s.wantsAt("[b2]", "[]")
}

// A run that waits at the named gate keeps its place at its job's own, and when it ends it leaves both.
func TestG1_G2_G5_AJobWithTwoGates(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{Policy: job.OverlapQueue, Limit: 1}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	s.says(limited(1))
	for _, c := range []struct {
		job  string
		n    int
		want dispatch.Entrance
	}{{"b", 0, dispatch.Passed}, {"a", 1, dispatch.Joined}, {"a", 2, dispatch.Joined}, {"b", 3, dispatch.Joined}} {
		if came := s.comes(c.job, c.n); came != c.want {
			t.Fatalf("%s%d came to %d, want %d", c.job, c.n, came, c.want)
		}
	}
	if r := s.run("a", 2, nil); r.Wait.Gate != "job:a" {
		t.Fatalf("the second of a waits at %q", r.Wait.Gate)
	}
	s.wantsAt("[b0]", "[a1 b3]")
	s.over("b", 0)
	s.wantsAt("[a1]", "[b3]")
	if came := s.comes("a", 1); came != dispatch.Passed {
		t.Fatalf("the first of a, let in at the second gate, comes to %d", came)
	}
	s.over("a", 1)
	s.wantsAt("[b3]", "[]")
	if r := s.run("a", 2, nil); r.Waits() || !r.Placed {
		t.Fatalf("the second of a is not let in at the first gate: %+v", r.Wait)
	}
	if came := s.comes("a", 2); came != dispatch.Joined {
		t.Fatalf("the second of a comes to %d", came)
	}
	// One that is cancelled in the line of the second gate leaves the first.
	s.comes("a", 4)
	was := s.run("a", 2, nil)
	ended, _ := was.AskCancel(then, "", job.DefaultRetention)
	s.write(ended)
	if err := s.Left(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	s.wantsAt("[b3]", "[]")
	if r := s.run("a", 4, nil); r.Waits() {
		t.Error("who waited at the first gate for one that was cancelled at the second waits still")
	}
}

// A run that comes to wait at a gate which was made anew leaves the place at a wider one that it was given meanwhile: else it and the one that waits for that would wait for
// each other for ever. So does its check, for a place that another delivery of it was given.
func TestG5_WhoWaitsHoldsNoWiderPlace(t *testing.T) {
	two := []job.GateUse{{Gate: "gpu"}, use(1)}
	t.Run("it joins", func(t *testing.T) {
		s := newSeveral(t)
		s.passes("a", job.Overlap{}, nil, two...)
		s.passes("b", job.Overlap{}, nil, two...)
		s.says(limited(1))
		s.comes("a", 0) // there is no gate "gpu", and its worker dies
		s.saysAt("gpu", limited(1))
		s.comes("b", 1)
		if r := s.run("b", 1, nil); r.Wait.Gate != "stripe" {
			t.Fatalf("b waits at %q", r.Wait.Gate)
		}
		if came := s.comes("a", 0); came != dispatch.Joined {
			t.Fatalf("it came to %d", came)
		}
		s.wantsAt("[b1]", "[]")
		s.over("b", 1)
		if came := s.comes("a", 0); came != dispatch.Passed {
			t.Errorf("when it is let in, it comes to %d", came)
		}
	})
	t.Run("it is checked", func(t *testing.T) {
		s := newSeveral(t)
		s.passes("a", job.Overlap{}, nil, two...)
		s.passes("b", job.Overlap{}, nil, two...)
		s.says(limited(2))
		s.saysAt("gpu", limited(1))
		s.comes("b", 1)
		late := s.run("a", 0, nil)
		s.comes("a", 0)
		behind := s.defs["a"]
		behind.Gates = behind.Gates[1:]
		if came, err := s.Enter(t.Context(), late, late.ID.Nominal, behind); err != nil || came != dispatch.Passed {
			t.Fatalf("another delivery of it came to %d, %v", came, err)
		}
		s.wantsAt("[b1 a0]", "[]")
		now := s.now.UnixMilli()
		if _, err := s.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now + 2000, Reach: now + 2000, Resume: now + 4000}, []run.Run{late}, nil); err != nil {
			t.Fatal(err)
		}
		s.wantsAt("[b1]", "[]")
		if r := s.run("a", 0, nil); r.Wait.Gate != "gpu" {
			t.Errorf("it waits at %q", r.Wait.Gate)
		}
	})
}

// What an edit of a gate does to those that are there: see Redefined.
func TestG1_G2_Redefined(t *testing.T) {
	for name, row := range map[string]struct {
		change   func(*gate.Named)
		in, line string
		next     dispatch.Entrance // of one that comes then
	}{
		"a higher limit":  {limited(3), "[a0 a1 a2]", "[a3]", dispatch.Joined},
		"a much higher":   {limited(9), "[a0 a1 a2 a3]", "[]", dispatch.Passed},
		"a lower limit":   {limited(1), "[a0 a1]", "[a2 a3]", dispatch.Joined},
		"it is closed":    {func(d *gate.Named) { d.Closed, d.Def.Limit = &gate.Change{At: then}, 9 }, "[a0 a1]", "[a2 a3]", dispatch.Joined},
		"it is deleted":   {func(d *gate.Named) { d.Deleted = true }, "[a0 a1]", "[]", dispatch.Passed},
		"none may wait":   {func(d *gate.Named) { d.Def.MaxWaiting = new(int) }, "[a0 a1]", "[a2 a3]", dispatch.Skipped},
		"nothing changes": {func(*gate.Named) {}, "[a0 a1]", "[a2 a3]", dispatch.Joined},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeveral(t)
			s.passes("a", job.Overlap{}, nil, use(1))
			s.says(limited(2))
			for n := range 4 {
				s.comes("a", n)
			}
			s.says(row.change)
			s.wantsAt(row.in, row.line)
			if came := s.comes("a", 9); came != row.next {
				t.Errorf("the next comes to %d, want %d", came, row.next)
			}
			s.says(func(d *gate.Named) { d.Closed, d.Deleted, d.Def = nil, false, gate.Definition{Limit: 9} })
			if _, line := s.who(); len(line) != 0 {
				t.Errorf("of an open gate with room, %v wait", line)
			}
		})
	}
}

// torn is a store in which the items of one call are read one after the other, the last of them first, and something happens in between.
type torn struct {
	store.Store
	between func()
}

func (s *torn) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	if len(keys) != 2 || s.between == nil {
		return s.Store.Get(ctx, keys...)
	}
	last, err := s.Store.Get(ctx, keys[1])
	if err != nil {
		return nil, err
	}
	s.between()
	s.between = nil
	first, err := s.Store.Get(ctx, keys[0])
	return append(first, last...), err
}

// Once an edit was answered, nobody is let in by what the gate said before, whenever that was read.
func TestG1_NobodyIsLetInByADefinitionOfBefore(t *testing.T) {
	for name, change := range map[string]func(*gate.Named){
		"a lower limit": limited(1), "a close": func(d *gate.Named) { d.Closed = &gate.Change{At: then} },
	} {
		for _, between := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " between two reads: ", between), func(t *testing.T) {
				s := newSeveral(t)
				s.passes("a", job.Overlap{}, nil, use(1))
				s.says(limited(2))
				s.comes("a", 0)
				cfg := s.Config
				slow := &torn{Store: s.Store}
				cfg.Store, cfg.Book = slow, job.NewBook(slow, job.Compile)
				d, err := dispatch.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				edit := func() { s.says(change) }
				if between {
					slow.between = edit
				} else {
					edited := false
					slow.Store = beforeWrite{s.Store, func(op store.Op) {
						if !edited && op.Key.Partition == "gate#default#stripe" {
							edited = true
							edit()
						}
					}}
				}
				r := s.run("a", 1, nil)
				if came, err := d.Enter(t.Context(), r, r.ID.Nominal, s.defs["a"]); err != nil || came != dispatch.Joined {
					t.Errorf("it came to %d, %v", came, err)
				}
				s.wantsAt("[a0]", "[a1]")
			})
		}
	}
}

// beforeWrite does something before each write.
type beforeWrite struct {
	store.Store
	do func(first store.Op)
}

func (s beforeWrite) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	s.do(ops[0])
	return s.Store.Write(ctx, ops...)
}

// Who is skipped since as many wait as may says where, and holds no place at the gates before.
func TestG4_FullAtANamedGate(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{Policy: job.OverlapQueue, Limit: 1}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	one := 1
	s.says(func(d *gate.Named) { d.Def = gate.Definition{Limit: 1, MaxWaiting: &one} })
	s.comes("b", 0)
	s.comes("b", 1)
	r := s.run("a", 2, nil)
	alone := s.defs["a"]
	alone.Gates = nil // it passes the first gate, and its worker dies
	if came, err := s.Enter(t.Context(), r, r.ID.Nominal, alone); err != nil || came != dispatch.Passed {
		t.Fatalf("it came to %d, %v", came, err)
	}
	s.comes("a", 4)
	if came := s.comes("a", 2); came != dispatch.Skipped {
		t.Fatalf("it came to %d", came)
	}
	if behind := s.run("a", 4, nil); behind.Waits() {
		t.Error("who waited at the first gate for one that was skipped at the second waits still")
	}
	r = s.stands(r)
	if w := r.Why; r.State != run.Skipped || w.Code != run.WhyFull || w.Gate != "stripe" || w.Policy != "" || len(w.InTheWay) != 2 || r.Reason != "as many runs waited at the gate as may wait" {
		t.Errorf("it is %s for %+v: %s", r.State, r.Why, r.Reason)
	}
	s.over("a", 4)
	hand := s.run("a", 3, func(r run.Run) run.Run { r.Reason = "retried on request"; return r })
	if came := s.comes("a", 3); came != dispatch.Joined || !s.stands(hand).Waits() || s.stands(hand).Wait.Gate != "stripe" {
		t.Errorf("who was opened by hand came to %d, and waits at %q", came, s.stands(hand).Wait.Gate)
	}
	s.wantsAt("[b0]", "[b1 a3]")
}

// Who is skipped at a closed gate says that it was closed, and names those that wait: whoever was let in before may have ended since.
func TestG4_FullAtAClosedGate(t *testing.T) {
	for _, most := range []int{0, 1} {
		s := newSeveral(t)
		s.passes("a", job.Overlap{}, nil, use(1))
		s.says(func(d *gate.Named) { d.Def = gate.Definition{Limit: 2, MaxWaiting: &most} })
		s.comes("a", 0)
		s.write(started(s.run("a", 0, nil)).Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour})) // nobody tells the gate
		s.says(func(d *gate.Named) { d.Closed = &gate.Change{At: 1} })
		want := []string(nil)
		for n := range most {
			s.comes("a", 1+n)
			want = append(want, s.run("a", 1+n, nil).ID.String())
		}
		if came := s.comes("a", 2); came != dispatch.Skipped {
			t.Fatalf("where %d may wait, it came to %d", most, came)
		}
		r := s.run("a", 2, nil)
		if w := r.Why; w.Code != run.WhyClosed || w.Gate != "stripe" || w.Policy != "" || !slices.Equal(w.InTheWay, want) || r.Reason != "the gate was closed, and as many runs waited as may wait" {
			t.Errorf("where %d may wait, it is skipped for %+v: %s", most, w, r.Reason)
		}
	}
}

// Runs of a paused job keep their places, and others pass them, however many they are. They are let in when it is resumed.
func TestG3_APausedJobHoldsUpNobodyElse(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	s.says(limited(1))
	s.comes("b", 0)
	const held = 150
	for n := range held {
		s.comes("a", 1+n)
	}
	s.comes("b", 900)
	s.passes("a", job.Overlap{}, func(j *job.Job) { j.Def.Paused = true; j.Generation-- }, use(1))
	s.over("b", 0)
	in, line := s.who()
	if !slices.Equal(in, []string{"b900"}) || len(line) != held {
		t.Fatalf("%v is in progress, and %d wait", in, len(line))
	}
	s.comes("b", 901)
	s.over("b", 900)
	if in, _ = s.who(); !slices.Equal(in, []string{"b901"}) {
		t.Errorf("%v is in progress", in)
	}
	s.passes("a", job.Overlap{}, func(j *job.Job) { j.Generation-- }, use(1))
	s.over("b", 901)
	if in, _ = s.who(); !slices.Equal(in, []string{"a1"}) {
		t.Errorf("after a resume %v is in progress", in)
	}
}

// Who lets in looks past the runs of a paused job for a bounded time, over all its writes. What it has seen by then holds, and those behind are left to later looks.
func TestALookPastHeldRunsEndsInTime(t *testing.T) {
	for _, c := range []struct {
		name  string
		page  time.Duration // takes a page of the line
		pages int
		in    string
	}{
		{"a fast store", time.Millisecond, 6, "[b900]"},
		{"a slow store", 4 * time.Second, 3 + 1, "[]"}, // once more behind the write without who has ended
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSeveral(t)
			s.passes("a", job.Overlap{}, nil, use(1))
			s.passes("b", job.Overlap{}, nil, use(1))
			s.says(limited(1))
			s.comes("b", 0)
			for n := range 450 {
				s.comes("a", 1+n)
			}
			s.comes("b", 900)
			s.passes("a", job.Overlap{}, func(j *job.Job) { j.Def.Paused = true; j.Generation-- }, use(1))
			pages := 0
			s.fail(func(_ context.Context, call faulty.Call) faulty.Fault {
				if call.Method == faulty.Query && strings.HasPrefix(call.Range.Partition, "line#") {
					pages++
					s.elapsed += c.page
				}
				return faulty.Fault{}
			})
			s.over("b", 0)
			s.fail(nil)
			in, _ := s.who()
			same(t, "in progress", in, c.in)
			same(t, "pages", pages, c.pages)
		})
	}
}

// A line that pauses hold skips nobody whom there is room for, however many may wait. Where there is none, it counts as any other.
func TestG4_ALineThatPausesHoldSkipsNobodyBesideRoom(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	two := 2
	s.says(func(d *gate.Named) { d.Def = gate.Definition{Limit: 1, MaxWaiting: &two} })
	s.comes("b", 0)
	s.comes("a", 1)
	s.comes("a", 2)
	s.passes("a", job.Overlap{}, func(j *job.Job) { j.Def.Paused = true; j.Generation-- }, use(1))
	s.over("b", 0)
	s.wantsAt("[]", "[a1 a2]")
	s.comes("b", 3)
	s.wantsAt("[b3]", "[a1 a2]")
	if came := s.comes("b", 4); came != dispatch.Skipped {
		t.Errorf("without room it comes to %d", came)
	}
	s.wantsAt("[b3]", "[a1 a2]")
}

// A change that is late writes nothing older into the gate than what stands.
func TestG1_ALateChangeTakesNothingBack(t *testing.T) {
	s := newSeveral(t)
	s.writes("stripe", limited(5))
	late := s.def
	s.says(func(d *gate.Named) { d.Closed = &gate.Change{At: then} })
	if err := s.Redefined(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	at := gate.ID{Tenant: "default", Name: "stripe"}
	items, err := s.Store.Get(t.Context(), at.Item())
	if err != nil {
		t.Fatal(err)
	}
	if g, err := gate.FromItem("default", "stripe", items[0]); err != nil || g.Under != s.def.Generation {
		t.Errorf("the gate is under generation %d, %v, want %d", g.Under, err, s.def.Generation)
	}
}

// The same definition again writes no gate that stands under it already.
func TestAnUnchangedDefinitionWritesNoGate(t *testing.T) {
	s := newSeveral(t)
	s.says(limited(5))
	for _, c := range []struct {
		change func(*gate.Named)
		want   uint64
	}{{limited(5), 2}, {nil, 2}, {limited(4), 3}, {nil, 3}} {
		if c.change != nil {
			s.writes("stripe", c.change)
		}
		if err := s.Redefined(t.Context(), s.def); err != nil {
			t.Fatal(err)
		}
		items, err := s.Store.Get(t.Context(), gate.ID{Tenant: "default", Name: "stripe"}.Item())
		if err != nil {
			t.Fatal(err)
		}
		if items[0].Version != c.want {
			t.Errorf("the gate has version %d, want %d", items[0].Version, c.want)
		}
	}
}

// Runs of a job that was deleted are cancelled where they wait: by whoever lets in, and far behind by their checks.
func TestG2_TheRunsOfADeletedJobLeaveTheLine(t *testing.T) {
	for _, ahead := range []bool{true, false} {
		t.Run(fmt.Sprint("ahead of the others: ", ahead), func(t *testing.T) {
			s := newSeveral(t)
			s.passes("a", job.Overlap{}, nil, use(1))
			s.passes("b", job.Overlap{}, nil, use(1))
			s.says(limited(1))
			s.comes("b", 0)
			at := 9
			if ahead {
				at = 1
			}
			s.comes("a", at)
			s.comes("b", 5)
			gone := s.run("a", at, nil)
			s.passes("a", job.Overlap{}, func(j *job.Job) { j.Deleted = true })
			if ahead {
				s.over("b", 0)
				s.wantsAt("[b5]", "[]")
			} else {
				now := s.now.UnixMilli()
				if _, err := s.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now + 2000, Reach: now + 2000, Resume: now + 4000}, []run.Run{gone}, nil); err != nil {
					t.Fatal(err)
				}
				s.wantsAt("[b0]", "[b5]")
			}
			if r := s.stands(gone); r.State != run.Cancelled || r.Reason != dispatch.Deleted {
				t.Errorf("it is %s: %s", r.Stage(), r.Reason)
			}
		})
	}
}

// Who wants more units than are free keeps all behind it waiting, and who wants more than there are takes all of them.
func TestG3_AHeadThatWantsMoreBlocksThoseBehind(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(9))
	s.says(limited(3))
	s.comes("a", 0)
	s.comes("a", 1)
	s.comes("b", 2)
	s.comes("a", 3)
	s.wantsAt("[a0 a1]", "[b2 a3]")
	s.over("a", 0)
	s.wantsAt("[a1]", "[b2 a3]")
	s.over("a", 1)
	s.wantsAt("[b2]", "[a3]")
	s.over("b", 2)
	s.wantsAt("[a3]", "[]")
}

// By priority a run stands ten minutes ahead, or behind; first in, first out, by when it was due.
func TestG3_TheOrderOfANamedGate(t *testing.T) {
	for order, want := range map[gate.Order]string{"": "[high659 normal60 normal70 low50]", gate.OrderFIFO: "[low50 normal60 normal70 high659]"} {
		s := newSeveral(t)
		for _, p := range queue.Priorities {
			s.passes(string(p), job.Overlap{}, nil, use(1))
		}
		s.says(func(d *gate.Named) { d.Def = gate.Definition{Limit: 1, Order: order} })
		s.comes("normal", 0)
		for n, p := range map[int]queue.Priority{50: queue.Low, 60: queue.Normal, 70: queue.Normal, 659: queue.High} {
			s.run(string(p), n, func(r run.Run) run.Run { r.Priority = p; return r })
			s.comes(string(p), n)
		}
		_, line := s.who()
		same(t, "the line", line, want)
	}
}

// Who is released goes to the front, which its record says, and is let in when there is room and no sooner.
func TestG1_G3_Release(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprint("at its job's own gate: ", own), func(t *testing.T) {
			s := newSeveral(t)
			if own {
				s.passes("a", job.Overlap{Policy: job.OverlapQueue, Limit: 1}, nil)
			} else {
				s.passes("a", job.Overlap{}, nil, use(1))
				s.says(limited(1))
			}
			for n := range 5 {
				s.comes("a", n)
			}
			if r, err := s.Release(t.Context(), s.run("a", 0, nil), "", ""); !errors.Is(err, dispatch.ErrNotWaiting) {
				t.Errorf("one that does not wait is released: %+v, %v", r, err)
			}
			for _, n := range []int{4, 3, 3} {
				if r, err := s.Release(t.Context(), s.run("a", n, nil), "", ""); err != nil || !r.Waits() || r.Released != s.now.UnixMilli() {
					t.Fatalf("released it is %+v, %v", r, err)
				}
			}
			before := 0
			for _, n := range []int{3, 4, 1, 2} {
				s.over("a", before)
				if r := s.run("a", n, nil); r.Waits() || r.Wait.LetIn == 0 {
					t.Fatalf("%d is not the next: %+v", n, r.Wait)
				}
				before = n
			}
		})
	}
}

// Who was released at one gate may be released at the next as well.
func TestG3_ReleaseAtASecondGate(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{Policy: job.OverlapQueue, Limit: 2}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	s.says(limited(1))
	s.comes("b", 0)
	for n := 1; n <= 4; n++ {
		s.comes("a", n)
	}
	if _, err := s.Release(t.Context(), s.run("a", 4, nil), "", ""); err != nil {
		t.Fatal(err)
	}
	s.over("b", 0)
	s.comes("a", 1)
	s.over("a", 1)
	s.comes("b", 3)
	s.comes("a", 4)
	s.wantsAt("[a2]", "[b3 a4]")
	if _, err := s.Release(t.Context(), s.run("a", 4, nil), "", ""); err != nil {
		t.Fatal(err)
	}
	s.wantsAt("[a2]", "[a4 b3]")
}

// Runs that were released and are held by a pause stand at the front of their job's own line, and one that ignores the pause goes past them.
func TestG2_AReleasedRunThatAPauseHoldsIsNotInTheWay(t *testing.T) {
	s := newSeveral(t)
	overlap := job.Overlap{Policy: job.OverlapQueue, Limit: 1}
	s.passes("a", overlap, nil)
	for n := range 4 {
		s.comes("a", n)
	}
	for _, n := range []int{1, 2, 3} {
		if _, err := s.Release(t.Context(), s.run("a", n, nil), "", ""); err != nil {
			t.Fatal(err)
		}
	}
	s.passes("a", overlap, func(j *job.Job) { j.Def.Paused = true; j.Generation-- })
	s.run("a", 5, func(r run.Run) run.Run { r.IgnorePause = true; return r })
	s.comes("a", 5)
	s.over("a", 0)
	if r := s.run("a", 5, nil); r.Waits() || r.Wait.LetIn == 0 {
		t.Errorf("it waits still: %+v", r.Wait)
	}
}
