package job_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

var now = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// save writes a job, with the definition that it replaces.
func save(t *testing.T, s store.Store, j, old job.Job) job.Job {
	t.Helper()
	put, err := j.Put(uint64(j.Generation))
	if err != nil {
		t.Fatal(err)
	}
	ops := []store.Op{put}
	if old.Generation != 0 {
		past, err := old.PutPast(now, time.Hour, uint64(j.Generation))
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, past)
	}
	versions, err := s.Write(t.Context(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	j.Version = versions[0]
	return j
}

func TestTheBookKnowsEveryGeneration(t *testing.T) {
	ctx := t.Context()
	s := faulty.New(memory.New(memory.Config{}), nil)
	first := save(t, s, job.Job{Tenant: "acme", Name: "a", Generation: 5, Def: good().WithDefaults()}, job.Job{})
	second := first
	second.Generation, second.Past = 9, []job.Past{{Generation: 5, Until: now.UnixMilli()}}
	second.Def.Description = "second"
	second = save(t, s, second, first)
	deleted := second
	deleted.Generation, deleted.Deleted, deleted.Def = 12, true, job.Definition{}
	save(t, s, deleted, second)

	b := job.NewBook(s, job.Compile)
	for generation, want := range map[int64]job.Definition{5: first.Def, 9: second.Def} {
		e, err := b.Edition(ctx, "acme", "a", generation)
		if err != nil || e.Def.Description != want.Description || e.Schedule == nil || e.Generation != generation {
			t.Fatalf("generation %d: %+v, %v", generation, e, err)
		}
		reads := s.Count(faulty.Get).Calls
		if again, err := b.Edition(ctx, "acme", "a", generation); err != nil || again != e || s.Count(faulty.Get).Calls != reads {
			t.Errorf("generation %d was read a second time", generation)
		}
	}
	for _, missing := range []struct {
		tenant, name string
		generation   int64
	}{{"acme", "a", 12}, {"acme", "a", 6}, {"acme", "b", 5}, {"rival", "a", 5}} { // the last is another tenant's (P12)
		if _, err := b.Edition(ctx, missing.tenant, missing.name, missing.generation); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("%+v: %v", missing, err)
		}
	}
	if j, err := b.Job(ctx, "acme", "a"); err != nil || !j.Deleted || j.Generation != 12 || j.Version != 3 {
		t.Errorf("the job now: %+v, %v", j, err)
	}
	if j, err := b.Job(ctx, "rival", "a"); err != nil || j.Generation != 0 {
		t.Errorf("another tenant's job: %+v, %v", j, err)
	}
}

// TestTheBookReadsTheNewestGeneration: what it remembers of editions never stands for the job.
func TestTheBookReadsTheNewestGeneration(t *testing.T) {
	s := memory.New(memory.Config{})
	b := job.NewBook(s, job.Compile)
	j := job.Job{Tenant: "acme", Name: "a", Def: good().WithDefaults()}
	for generation := int64(1); generation <= 5; generation++ {
		old := j
		j.Generation = generation
		j = save(t, s, j, old)
		if read, err := b.Job(t.Context(), "acme", "a"); err != nil || read.Generation != generation {
			t.Errorf("generation %d after the write of %d, %v", read.Generation, generation, err)
		}
	}
}

func TestFault53_ANewerJobIsLeftAlone(t *testing.T) {
	s := memory.New(memory.Config{})
	save(t, s, job.Job{Tenant: "acme", Name: "b", Generation: 3, Def: good().WithDefaults()}, job.Job{})
	if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: job.Key("acme", "a"), Value: []byte{record.Format + 1}}); err != nil {
		t.Fatal(err)
	}
	b := job.NewBook(s, job.Compile)
	if _, err := b.Job(t.Context(), "acme", "a"); !errors.Is(err, record.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	jobs, err := b.Jobs(t.Context(), "acme", "a", "b")
	if err != nil || !errors.Is(jobs[0].Broken, record.ErrNewer) || jobs[1].Generation != 3 || jobs[1].Broken != nil {
		t.Errorf("beside it: %+v, %v", jobs, err)
	}
}

// Active and Until together say whether a fire of a generation is to run, as the ticks ask it.
func TestInForce(t *testing.T) {
	inForce := func(j job.Job, generation, nominal int64) bool {
		if generation == j.Generation {
			return j.Active()
		}
		until, ok := j.Until(generation)
		return ok && nominal <= until
	}
	j := job.Job{Generation: 9, Def: good(), Past: []job.Past{{Generation: 5, Until: 1000}, {Generation: 7, Until: 2000}}}
	for _, row := range []struct {
		generation, nominal int64
		want                bool
	}{{9, 1, true}, {9, 9999, true}, {5, 1000, true}, {5, 1001, false}, {7, 2000, true}, {7, 2001, false}, {6, 1, false}, {10, 1, false}} {
		if got := inForce(j, row.generation, row.nominal); got != row.want {
			t.Errorf("generation %d at %d: %v, want %v", row.generation, row.nominal, got, row.want)
		}
	}
	for name, change := range map[string]func(*job.Job){
		"Paused":   func(j *job.Job) { j.Def.Paused = true },
		"Deleted":  func(j *job.Job) { j.Deleted = true },
		"OnDemand": func(j *job.Job) { j.Def.Schedule = nil },
		"Parked":   func(j *job.Job) { j.Fault = "parked" },
	} {
		other := j
		change(&other)
		if inForce(other, 9, 9999) || !inForce(other, 7, 2000) {
			t.Errorf("%s: of the newest generation %v, of the past one %v; want false and true", name, inForce(other, 9, 9999), inForce(other, 7, 2000))
		}
	}
	if newer := (job.Job{Generation: 10}); newer.ETag() == j.ETag() || j.ETag() != (job.Job{Generation: 9}).ETag() || j.ETag()[0] != '"' {
		t.Errorf("ETags %s and %s", j.ETag(), newer.ETag())
	}
}

func TestJitterIsTheSameForAll(t *testing.T) {
	def := good()
	def.Schedule.Jitter = schedule.Duration(10 * time.Second)
	e, plain := &job.Edition{Def: def}, &job.Edition{Def: good()}
	distinct := map[int64]bool{}
	for i := range int64(200) {
		nominal := now.UnixMilli() + i*60_000
		late := e.Due("acme", "a", nominal) - nominal
		if late < 0 || late > 10_000 || late != e.Due("acme", "a", nominal)-nominal || plain.Due("acme", "a", nominal) != nominal {
			t.Fatalf("%d ms late, want 0 to 10000, each time the same", late)
		}
		distinct[late] = true
	}
	if len(distinct) < 150 {
		t.Errorf("%d different delays for 200 fires", len(distinct))
	}
}

// A simulation chooses the shares by itself.
func TestABookMayHaveAJitterOfItsOwn(t *testing.T) {
	book := job.NewBook(memory.New(memory.Config{}), job.Compile)
	book.Jitter = func(_, _ string, _ int64, longest time.Duration) time.Duration { return longest }
	def := good()
	def.Schedule.Jitter = schedule.Duration(10 * time.Second)
	e, err := book.Newest(job.Job{Tenant: "acme", Name: "a", Generation: 1, Def: def})
	if err != nil {
		t.Fatal(err)
	}
	if due := e.Due("acme", "a", now.UnixMilli()); due != now.UnixMilli()+10_000 {
		t.Errorf("due %d ms behind its nominal time, want 10000", due-now.UnixMilli())
	}
}

func TestP12_KeysOfTenantsAreApart(t *testing.T) {
	for _, pair := range [][2]store.Key{
		{job.Key("a", "b"), job.Key("b", "b")},
		{job.PastKey("a", "b", 1), job.PastKey("b", "b", 1)},
		{{Partition: job.Partition("a", 1)}, {Partition: job.Partition("b", 1)}},
	} {
		if pair[0].Partition == pair[1].Partition {
			t.Errorf("two tenants share %s", pair[0].Partition)
		}
	}
}

// TestManyDefinitionsAreForeseenInOneRead: a sweep comes upon more jobs than a book remembers, and must not ask for each by itself.
func TestManyDefinitionsAreForeseenInOneRead(t *testing.T) {
	ctx := t.Context()
	s := faulty.New(memory.New(memory.Config{}), nil)
	refs := make([]job.Ref, store.MaxKeys)
	for i := range refs {
		refs[i] = job.Ref{Name: fmt.Sprintf("j%d", i), Generation: 5}
		save(t, s, job.Job{Tenant: "acme", Name: refs[i].Name, Generation: 5, Def: good().WithDefaults()}, job.Job{})
	}
	newer := job.Job{Tenant: "acme", Name: "edited", Generation: 7, Def: good().WithDefaults()}
	save(t, s, newer, job.Job{Tenant: "acme", Name: "edited", Generation: 5, Def: good().WithDefaults()})

	b := job.NewBook(s, job.Compile)
	if err := b.Foresee(ctx, "acme", append(refs[1:], refs[1], job.Ref{Name: "edited", Generation: 5})...); err != nil {
		t.Fatal(err)
	}
	if gets, peeks := s.Count(faulty.Get).Calls, s.Count(faulty.Peek).Calls; gets != 0 || peeks != 1 {
		t.Errorf("%d reads and %d cheap ones of %d jobs, want one cheap one", gets, peeks, len(refs))
	}
	for _, r := range refs[1:] {
		if e, err := b.Edition(ctx, "acme", r.Name, r.Generation); err != nil || e.Generation != r.Generation {
			t.Fatalf("%s: %+v, %v", r.Name, e, err)
		}
	}
	if gets, peeks := s.Count(faulty.Get).Calls, s.Count(faulty.Peek).Calls; gets != 0 || peeks != 1 {
		t.Errorf("what was foreseen was read again: %d reads, %d cheap ones", gets, peeks)
	}
	if e, err := b.Edition(ctx, "acme", "edited", 5); err != nil || e.Generation != 5 {
		t.Errorf("a past generation is not the newest: %+v, %v", e, err)
	}
	if _, err := b.Edition(ctx, "acme", "nobody", 5); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("a job that is not there: %v", err)
	}
}

// A replaced definition is kept for as long as a run that was under way may be, and its retention, and no shorter than KeepPast.
func TestAReplacedDefinitionIsKeptForItsRuns(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, c := range []struct{ longest, retention, want time.Duration }{
		{3 * time.Hour, 0, job.KeepPast},
		{7 * day, 30 * day, job.KeepPast},
		{3 * time.Hour, 5 * year, 5*year + 3*time.Hour + job.KeptBeyond},
		{5 * year, 0, 5*year + job.DefaultRetention + job.KeptBeyond},
		{5 * year, 5 * year, 10*year + job.KeptBeyond},
	} {
		j := job.Job{Tenant: "acme", Name: "a", Generation: 5, Def: job.Definition{Retention: schedule.Duration(c.retention)}}
		op, err := j.PutPast(now, c.longest, 1)
		if kept := op.Expires.Sub(now); err != nil || kept != c.want {
			t.Errorf("under way for %s, retention %s: kept for %s, want %s (%v)", c.longest, c.retention, kept, c.want, err)
		}
	}
}
