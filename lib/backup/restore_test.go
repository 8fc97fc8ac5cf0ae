package backup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// life is a node over a target, until stop.
type life struct {
	*node.Node
	t    *testing.T
	on   backup.Target
	stop func()

	mu    sync.Mutex
	calls []target.Call
}

func live(t *testing.T, on backup.Target, name string) *life {
	t.Helper()
	l := &life{t: t, on: on}
	handlers := new(target.Registry)
	if err := handlers.Register("f", l.handle); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	l.Node, err = node.New(t.Context(), node.Config{Store: on.Store, Blobs: on.Blobs, Targets: targets, Metrics: metrics.New(), Name: name,
		Queues: map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})}, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(l.stop)
	return l
}

// handle does what the jobs' names say.
func (l *life) handle(ctx context.Context, call target.Call) (target.Result, error) {
	l.mu.Lock()
	l.calls = append(l.calls, call)
	l.mu.Unlock()
	switch call.Job {
	case "slow":
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
		}
	case "fails":
		return target.Result{}, errors.New("not yet")
	}
	return target.Result{Body: []byte(strings.Repeat(call.Run, 200)), ContentType: "text/plain"}, ctx.Err()
}

func (l *life) put(name string, every time.Duration, change ...func(*job.Definition)) {
	l.t.Helper()
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}, Timeout: schedule.Duration(5 * time.Minute)}
	if every > 0 {
		def.Schedule = &schedule.Spec{Every: schedule.Duration(every)}
	}
	for _, c := range change {
		c(&def)
	}
	if _, _, err := l.Control.Put(l.t.Context(), "default", name, def, control.Match{}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) trigger(name string, delay time.Duration) run.ID {
	l.t.Helper()
	r, _, err := l.Control.Trigger(l.t.Context(), "default", name, control.Request{Delay: new(delay)})
	if err != nil {
		l.t.Fatal(err)
	}
	return r.ID
}

func (l *life) get(id run.ID) run.Run {
	l.t.Helper()
	r, err := l.Control.Run(l.t.Context(), "default", id)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// called is how often the run was, and the highest fence it was called with.
func (l *life) called(id run.ID) (times int, fence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.Run == id.String() {
			times, fence = times+1, max(fence, c.Fence)
		}
	}
	return times, fence
}

// past is a backup of a busy store, and what became of it afterwards.
type past struct {
	text                            []byte
	taken, restored                 time.Time
	original                        *life
	slow, soon, fails, ahead, ended run.ID
}

// original lives, is backed up, and lives on for seven minutes, in which it does much of what the backup holds as to be done.
func original(t *testing.T) past {
	l := live(t, emptyTarget(t), "original")
	l.put("each", time.Second)
	l.put("paused", time.Second)
	l.put("hourly", time.Hour)
	for _, name := range []string{"slow", "soon", "ahead"} {
		l.put(name, 0)
	}
	l.put("fails", 0, func(d *job.Definition) {
		d.Retry = job.Retry{MaxAttempts: 9, Initial: schedule.Duration(20 * time.Minute), Max: schedule.Duration(time.Hour)}
	})
	time.Sleep(90500 * time.Millisecond)
	if _, err := l.Control.Pause(t.Context(), "default", "paused", "test", control.Match{}); err != nil {
		t.Fatal(err)
	}
	p := past{original: l, ended: l.trigger("soon", 0)}
	p.slow, p.fails = l.trigger("slow", 0), l.trigger("fails", 0)
	p.soon, p.ahead = l.trigger("soon", 3*time.Minute), l.trigger("ahead", 10*time.Minute)
	time.Sleep(5 * time.Second)
	var out bytes.Buffer
	about, _, err := backup.Write(t.Context(), &out, backup.Source{Store: l.on.Store, Blobs: l.on.Blobs, Now: time.Now}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.text, p.taken = out.Bytes(), about.Taken
	time.Sleep(7 * time.Minute)
	l.stop()
	for _, id := range []run.ID{p.slow, p.soon} {
		if r := l.get(id); r.State != run.Succeeded {
			t.Fatalf("the original's %s is %s", id, r.State)
		}
	}
	p.restored = time.Now()
	return p
}

func (p past) restore(t *testing.T, o backup.Options) (*life, backup.Report) {
	t.Helper()
	into := emptyTarget(t)
	o.Now, o.NewID = time.Now(), rand.Uint64
	report, err := backup.Restore(t.Context(), bytes.NewReader(p.text), into, o)
	if err != nil {
		t.Fatal(err)
	}
	return live(t, into, "copy"), report
}

func (l *life) runsOf(t *testing.T, name string, states ...run.State) []run.Run {
	t.Helper()
	runs, _, err := l.Control.Runs(t.Context(), "default", control.RunFilter{Job: name, States: states}, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func TestNothingOfThePastRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := original(t)
		l, report := p.restore(t, backup.Options{})
		// Three on demand, and two fires that were claimed ahead.
		if report.Unended != 5 || report.Ended != 5 || report.Ahead != 1 || report.Jobs != 2 || report.SkippedJobs != 1 || len(report.Runs) != 5 || len(report.Faults) != 0 {
			t.Errorf("the report says %+v", report)
		}
		if report.NextJob != "each" || report.Next.Sub(p.restored) > time.Second || !report.Next.After(p.restored) {
			t.Errorf("the next fire is said to be %s of %s", report.Next, report.NextJob)
		}
		time.Sleep(6 * time.Minute)
		l.mu.Lock()
		for _, c := range l.calls {
			if !c.Nominal.After(p.restored) {
				t.Errorf("%s of the past was called", c.Run)
			}
		}
		calls := len(l.calls)
		l.mu.Unlock()
		// 360 seconds, and the run that was requested for later.
		if calls < 360 || calls > 362 {
			t.Errorf("%d calls in six minutes, want one a second", calls)
		}
		if times, _ := l.called(p.ahead); times != 1 || l.get(p.ahead).State != run.Succeeded {
			t.Errorf("the run that was requested for later was called %d times and is %s", times, l.get(p.ahead).State)
		}
		for _, id := range []run.ID{p.slow, p.soon, p.fails} {
			if r := l.get(id); r.State != run.Unknown || !strings.HasPrefix(r.Reason, "restored from a backup of 20") {
				t.Errorf("%s is %s: %s", id, r.State, r.Reason)
			}
		}
		r := l.get(p.ended)
		if data, _, err := l.Control.Result(t.Context(), r); r.State != run.Succeeded || err != nil || !strings.HasPrefix(string(data), p.ended.String()) {
			t.Errorf("what had ended is %s, with a result of %d bytes, %v", r.State, len(data), err)
		}
		skipped := l.runsOf(t, "each", run.Skipped)
		if len(skipped) != 1 || skipped[0].Count < 417 || skipped[0].Count > 420 || skipped[0].Count != report.Skipped {
			t.Errorf("skipped are %+v, want one run for all seconds since the backup; the report says %d", skipped, report.Skipped)
		}
		all := l.runsOf(t, "each")
		for i := 1; i < len(all); i++ { // newest first
			reached := max(all[i].ID.Nominal, all[i].Through)
			if all[i-1].ID.Nominal-reached != 1000 {
				t.Errorf("between %s and %s there is no run", all[i].ID, all[i-1].ID)
			}
		}
		// All runs of all jobs are listed by time, those of before the backup included.
		of := map[string]int{}
		for cursor := ""; ; {
			runs, next, err := l.Control.Runs(t.Context(), "default", control.RunFilter{}, cursor, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				of[r.ID.Job]++
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		for _, name := range []string{"each", "paused", "slow", "soon", "fails", "ahead"} {
			if alone := len(l.runsOf(t, name)); of[name] != alone {
				t.Errorf("%d runs of %s are listed among all, %d alone", of[name], name, alone)
			}
		}
		// An explicit retry is new consent, and its fence is above all that the target saw of the original.
		if _, err := l.Control.Retry(t.Context(), "default", p.slow, false, time.Time{}); err == nil {
			t.Error("an unknown run was retried without force")
		}
		if _, err := l.Control.Retry(t.Context(), "default", p.slow, true, time.Time{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		_, before := p.original.called(p.slow)
		if times, fence := l.called(p.slow); times != 1 || fence <= before+1<<20 {
			t.Errorf("retried: called %d times, with fence %d where the original had %d", times, fence, before)
		}
		if _, err := l.Control.Resume(t.Context(), "default", "paused", control.Match{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		l.stop()
		if n := len(l.runsOf(t, "paused", run.Succeeded)); n < 95 {
			t.Errorf("the paused job has %d runs after it was resumed", n)
		}
	})
}

func TestRunsGoOnWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := original(t)
		l, report := p.restore(t, backup.Options{Resume: true})
		if report.Unended != 5 || report.Ended != 0 {
			t.Errorf("the report says %+v", report)
		}
		time.Sleep(50 * time.Minute)
		for _, id := range []run.ID{p.slow, p.soon} {
			if r := l.get(id); r.State != run.Succeeded {
				t.Errorf("%s is %s: %s", id, r.State, r.Reason)
			}
		}
		if times, _ := l.called(p.fails); times == 0 {
			t.Errorf("the run that waited for its retry was never called: %+v", l.get(p.fails))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, c := range l.calls {
			if c.Job == "each" && !c.Nominal.After(p.restored) && c.Nominal.After(p.taken.Add(2*time.Second)) {
				t.Errorf("the fire %s, which the backup did not hold as a run, was called", c.Run)
			}
		}
	})
}

func TestMissedFiresAreCaughtUpWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := original(t)
		l, report := p.restore(t, backup.Options{CatchUp: true})
		if report.Skipped != 0 || report.Jobs != 2 {
			t.Errorf("the report says %+v", report)
		}
		time.Sleep(2 * time.Minute)
		for _, id := range []run.ID{p.slow, p.soon, p.fails} {
			if times, _ := l.called(id); times != 0 || l.get(id).State != run.Unknown {
				t.Errorf("%s was called %d times and is %s: only missed fires were asked for", id, times, l.get(id).State)
			}
		}
		skipped, ran := 0, 0
		for _, r := range l.runsOf(t, "each") {
			if r.ID.Time().Before(p.taken) || r.ID.Time().After(p.restored) {
				continue
			}
			skipped += r.Count
			if r.State == run.Succeeded {
				ran++
			}
		}
		// The last seconds are not missed yet; of the others none runs, since the newest is among them.
		if ran < 1 || ran > 5 || skipped+ran < 417 {
			t.Errorf("of 420 fires between, %d were skipped and %d ran", skipped, ran)
		}
	})
}

func TestARestoreOfWhatANewerOneWroteIsRefused(t *testing.T) {
	from := emptyTarget(t)
	item := store.Item{Key: store.Key{Partition: "job#default#00", Sort: "j"}, Version: 1, Value: []byte{record.Format + 1, 0xa0}}
	if err := from.Store.Import(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	_, err := backup.Restore(t.Context(), bytes.NewReader(write(t, from)), emptyTarget(t), backup.Options{Now: taken, NewID: rand.Uint64})
	if !errors.Is(err, backup.ErrNewer) || !strings.Contains(err.Error(), "job#default#00/j") {
		t.Errorf("a record of a newer format gave %v", err)
	}
}

func TestUnreadableRecordsDoNotKeepTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := original(t)
		loaded := emptyTarget(t)
		if _, _, err := backup.Load(t.Context(), bytes.NewReader(p.text), loaded, nil); err != nil {
			t.Fatal(err)
		}
		broken := []store.Item{
			{Key: job.Key("default", "broken"), Version: 7, Value: []byte{1, 0xff}},
			{Key: p.slow.Key("default"), Version: 7, Value: []byte{1, 0xff}},
			{Key: store.Key{Partition: "due#0000000001#00", Sort: "x"}, Version: 7, Value: []byte{1, 0xff}},
		}
		if err := loaded.Store.Import(t.Context(), broken...); err != nil {
			t.Fatal(err)
		}
		p.text = write(t, loaded)
		l, report := p.restore(t, backup.Options{})
		if len(report.Faults) != 1 || !strings.HasPrefix(report.Faults[0], "broken: ") || report.Jobs != 2 {
			t.Errorf("the report says %+v", report)
		}
		time.Sleep(10 * time.Second)
		if n := len(l.runsOf(t, "each", run.Succeeded)); n < 100 {
			t.Errorf("%d runs beside the broken records", n)
		}
		if !slices.ContainsFunc(l.calls, func(c target.Call) bool { return c.Job == "each" }) {
			t.Error("nothing fires beside the broken records")
		}
	})
}

// TestALiveStoreMovesBetweenEngines loads a busy pebble folder into memory, lets it go on there, and takes it back.
func TestALiveStoreMovesBetweenEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := original(t)
		folder := func() backup.Target {
			s, err := pebble.Open(pebble.Config{Dir: t.TempDir(), Now: func() time.Time { return time.Unix(0, 0) }, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return backup.Target{Store: s, Blobs: emptyTarget(t).Blobs}
		}
		move := func(text []byte, to backup.Target) []store.Item {
			t.Helper()
			if _, _, err := backup.Load(t.Context(), bytes.NewReader(text), to, nil); err != nil {
				t.Fatal(err)
			}
			return storetest.Items(t, to.Store)
		}
		first, there, back := folder(), emptyTarget(t), folder()
		want := move(p.text, first)
		if got := move(write(t, first), there); !slices.EqualFunc(want, got, sameItem) || len(got) < 300 {
			t.Fatalf("%d items were moved to memory, and %d are there, or other ones", len(want), len(got))
		}
		l := live(t, there, "moved")
		time.Sleep(30 * time.Second)
		l.stop()
		if times, _ := l.called(p.soon); times != 1 {
			t.Errorf("a store that moved owes what it owed, and %s was called %d times", p.soon, times)
		}
		want = storetest.Items(t, there.Store)
		if got := move(write(t, there), back); !slices.EqualFunc(want, got, sameItem) {
			t.Fatalf("%d items were moved back, and %d are there, or other ones", len(want), len(got))
		}
		l = live(t, back, "back")
		time.Sleep(10 * time.Second)
		l.stop()
		if n := len(l.calls); n < 9 {
			t.Errorf("%d calls in 10 seconds after the way back", n)
		}
	})
}

func sameItem(a, b store.Item) bool {
	return a.Key == b.Key && a.Version == b.Version && string(a.Value) == string(b.Value) && a.Expires.Equal(b.Expires) && a.Attempt == b.Attempt
}
