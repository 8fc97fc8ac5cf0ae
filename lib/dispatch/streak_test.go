package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// pausing is what an edition says of the ends of a job that so many bad ones pause.
func pausing(most int) job.Callbacks { return job.Callbacks{PauseAfter: most} }

// running puts a run of a job that a worker holds.
func (l *leased) running(t *testing.T, name string, n uint64) run.Run {
	t.Helper()
	now := l.now.UnixMilli()
	r, err := l.PutRun(t.Context(), run.Run{ID: run.RequestID(name, now, n), Tenant: "default", State: run.Queued, Generation: 1, Trigger: run.ByRequest, Priority: queue.Normal}, job.Callbacks{}, now)
	if err == nil {
		r, err = l.PutRun(t.Context(), r.Start("worker", now, l.Lease), job.Callbacks{}, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fails ends a run that a worker holds.
func (l *leased) fails(ctx context.Context, r run.Run, most int) (run.Run, error) {
	now := l.now.UnixMilli()
	return l.PutRun(ctx, r.GiveUp(now, "it fails", run.Limits{Retention: 24 * time.Hour}), pausing(most), now)
}

func (l *leased) streak(t *testing.T) store.Item {
	t.Helper()
	items, err := l.Store.Get(t.Context(), run.StreakKey("default", "report"))
	if err != nil {
		t.Fatal(err)
	}
	return items[0]
}

// writesStreak is which op of a call writes the count of a job, -1 for none.
func writesStreak(c faulty.Call) int {
	return slices.IndexFunc(c.Ops, func(op store.Op) bool { return strings.HasPrefix(op.Key.Partition, "streak#") })
}

// Who ends badly behind the run that pauses its job has that paused too, and writes nothing of the count: many may end at once until the pause is in force.
func TestP8_NoEndIsCountedBehindTheOneThatPauses(t *testing.T) {
	l := newLeased(t, func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{} })
	var stood store.Item
	for i, pauses := range []bool{false, true, true, true} {
		r, err := l.fails(t.Context(), l.running(t, "report", uint64(i+2)), 2)
		if err != nil || r.Pauses != pauses {
			t.Fatalf("the end of the %d. is to pause its job: %v (%v)", i+1, r.Pauses, err)
		}
		if item := l.streak(t); i > 1 && item.Version != stood.Version {
			t.Errorf("the end of the %d. was counted", i+1)
		} else {
			stood = item
		}
	}
	now := l.now.UnixMilli()
	if r, err := l.PutRun(t.Context(), l.running(t, "report", 9).Succeed(now, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}), pausing(2), now); err != nil || r.Pauses || l.streak(t).Exists() {
		t.Errorf("a success leaves %+v, %v", l.streak(t), err)
	}
}

// Ends of one job that come at once, over a store that takes its time, are all counted.
func TestP8_EndsThatComeAtOnceWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ends = 30
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		l := newLeased(t, func(context.Context, faulty.Call) faulty.Fault {
			time.Sleep(5 * time.Millisecond)
			return faulty.Fault{}
		})
		l.NewID = func() uint64 {
			mu.Lock()
			defer mu.Unlock()
			return random.Uint64()
		}
		runs := make([]run.Run, ends)
		for i := range runs {
			runs[i] = l.running(t, "report", uint64(i+2))
		}
		var all sync.WaitGroup
		for _, r := range runs {
			all.Go(func() {
				if _, err := l.fails(t.Context(), r, 1000); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s, err := run.StreakFromItem(l.streak(t)); err != nil || s.Count != ends {
			t.Errorf("%d are counted (%v), want %d", s.Count, err, ends)
		}
	})
}

// A count that a newer process has written is left to it, and no end waits for that. One that nobody can read is begun anew.
func TestP8_ACountThatCannotBeRead(t *testing.T) {
	l := newLeased(t, func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{} })
	stand := func(value []byte) store.Item {
		t.Helper()
		if _, err := l.Store.Write(t.Context(), store.Op{Kind: store.Put, Key: run.StreakKey("default", "report"), If: store.Any, Value: value, Attempt: l.NewID()}); err != nil {
			t.Fatal(err)
		}
		return l.streak(t)
	}
	newer := stand([]byte{record.Format + 1, 0})
	if r, err := l.fails(t.Context(), l.running(t, "report", 2), 1); err != nil || r.State != run.Dead || r.Pauses {
		t.Errorf("it ends as %s, and pauses its job: %v (%v)", r.State, r.Pauses, err)
	}
	if l.streak(t).Version != newer.Version {
		t.Error("what a newer process has written is gone")
	}
	stand([]byte{record.Format, 0xff})
	if r, err := l.fails(t.Context(), l.running(t, "report", 3), 1); err != nil || !r.Pauses {
		t.Errorf("it pauses its job: %v (%v)", r.Pauses, err)
	}
	if s, err := run.StreakFromItem(l.streak(t)); err != nil || s.Count != 1 {
		t.Errorf("%d are counted: %v", s.Count, err)
	}
}

// checked is a dispatcher whose look finds runs of two jobs, the first of which is to be paused by each bad end.
func checked(t *testing.T, hook faulty.Hook) (l *leased, look func(runs ...run.Run) []run.Run, armed func(run.Run, func(now int64) timer.Timer) bool) {
	l = newLeased(t, hook)
	items, err := l.Store.Get(t.Context(), job.Key("default", "report"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.FromItem("default", "report", items[0])
	if err != nil {
		t.Fatal(err)
	}
	def := j.Def
	j.Def.Guarantee, j.Def.PauseAfter = job.AtMostOnce, 1
	def.Guarantee = job.AtMostOnce
	for _, one := range []job.Job{j, {Tenant: "default", Name: "other", Generation: 1, Def: def}} {
		op, err := one.Put(l.NewID())
		if err == nil {
			_, err = l.Store.Write(t.Context(), op)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bounds := func() dispatch.Bounds {
		now := l.now.UnixMilli()
		return dispatch.Bounds{Now: now, Horizon: now + 2000, Reach: now + 2000, Resume: now + 4000}
	}
	look = func(runs ...run.Run) []run.Run {
		t.Helper()
		if _, err := l.Check(t.Context(), 1, bounds(), runs, nil); err != nil {
			t.Fatal(err)
		}
		standing, err := l.ReadRuns(t.Context(), runs)
		if err != nil {
			t.Fatal(err)
		}
		return standing
	}
	armed = func(r run.Run, wake func(int64) timer.Timer) bool {
		t.Helper()
		items, err := l.Store.Get(t.Context(), wake(l.now.UnixMilli()).Key())
		if err != nil {
			t.Fatal(err)
		}
		return items[0].Exists()
	}
	return l, look, armed
}

// A run whose job ends others all the time is left to another look, and those beside it have theirs.
func TestP8_ALookGoesOnBehindAnEndThatIsNotCounted(t *testing.T) {
	for name, refuse := range map[string]func(at int) error{
		"others have counted theirs":           func(at int) error { return &store.Conflict{Op: at} },
		"its transaction meets that of others": func(int) error { return store.ErrThrottled },
	} {
		t.Run(name, func(t *testing.T) {
			crowded := false
			l, look, armed := checked(t, func(_ context.Context, c faulty.Call) faulty.Fault {
				if at := writesStreak(c); crowded && at >= 0 {
					return faulty.Fault{Refuse: refuse(at)}
				}
				return faulty.Fault{}
			})
			hot, other := l.running(t, "report", 2), l.running(t, "other", 2)
			crowded = true
			l.pass(10*time.Minute, 10*time.Minute)
			standing := look(hot, other)
			if standing[0].State != run.Running || standing[1].State != run.Unknown {
				t.Errorf("they are %s and %s, want running and unknown", standing[0].State, standing[1].State)
			}
			soon := func(now int64) timer.Timer { return timer.NewCheck("default", hot.ID, now+4000) }
			if !armed(hot, soon) {
				t.Error("no look comes soon")
			}
			crowded = false
			if standing = look(hot); standing[0].State != run.Unknown || !standing[0].Pauses {
				t.Errorf("then it is %s, and pauses its job: %v", standing[0].State, standing[0].Pauses)
			}
		})
	}
}

// A job that cannot be paused yet is looked at again as regularly as any, and so is one that is for a newer process. Of one that nobody can read each look would be told the
// same; and neither of these has the message of the run come again.
func TestP8_AJobThatCannotBePaused(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		again, fails bool
		asked        int
	}{
		"it is paused":                  {nil, false, false, 1},
		"the store is unwell":           {store.ErrThrottled, true, true, 1},
		"it is being edited by many":    {errors.New("busy"), true, true, 1},
		"it is damaged":                 {record.ErrBroken, false, false, 1},
		"it is for a newer process":     {record.ErrNewer, true, false, 1},
		"its definition is gone by now": {job.ErrNotFound, false, false, 1},
		"nobody does":                   {nil, true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, look, armed := checked(t, func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{} })
			asked := 0
			if c.asked > 0 {
				l.PauseJob = func(context.Context, ...run.Run) error {
					asked++
					return c.err
				}
			}
			r, err := l.fails(t.Context(), l.running(t, "report", 2), 1)
			if err != nil || !r.Pauses {
				t.Fatalf("it pauses its job: %v (%v)", r.Pauses, err)
			}
			l.pass(time.Minute, time.Minute)
			look(r)
			regular := func(now int64) timer.Timer { return timer.NextCheck("default", r.ID, now+2000) }
			soon := func(now int64) timer.Timer { return timer.NewCheck("default", r.ID, now+4000) }
			if asked != c.asked || armed(r, regular) != c.again || armed(r, soon) {
				t.Errorf("it was asked for %d times, and is looked at again: %v, soon: %v; want %v", asked, armed(r, regular), armed(r, soon), c.again)
			}
			if err := l.Left(t.Context(), r); err != nil != c.fails {
				t.Errorf("whoever holds its message is told %v", err)
			}
		})
	}
}

// A look that finds many ends of one job asks for its pause once, of all of them.
func TestP8_ALookPausesEachJobOnce(t *testing.T) {
	l, look, armed := checked(t, func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{} })
	var mu sync.Mutex
	var asked []string
	l.PauseJob = func(_ context.Context, ended ...run.Run) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprint(ended[0].ID.Job, len(ended)))
		if ended[0].ID.Job == "other" {
			return store.ErrThrottled
		}
		return nil
	}
	var ended []run.Run
	for n, name := range []string{"report", "other", "report", "other", "report"} {
		r, err := l.fails(t.Context(), l.running(t, name, uint64(n+2)), 1)
		if err != nil || !r.Pauses {
			t.Fatalf("it pauses its job: %v (%v)", r.Pauses, err)
		}
		ended = append(ended, r)
	}
	l.pass(time.Minute, time.Minute)
	look(ended...)
	if slices.Sort(asked); !slices.Equal(asked, []string{"other2", "report3"}) {
		t.Errorf("asked for: %v", asked)
	}
	for _, r := range ended {
		if again := armed(r, func(now int64) timer.Timer { return timer.NextCheck("default", r.ID, now+2000) }); again != (r.ID.Job == "other") {
			t.Errorf("%s is looked at again: %v", r.ID, again)
		}
	}
}
