package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Whatever ends a run, its worker, a cancel, the deletion of its job, a pass over what a dead process left or a tick that drops missed
// fires: belfry_runs_total says what the store says.
func TestEveryEndOfARunIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		durable, bucket, counts := memory.New(memory.Config{}), memblob.OpenBucket(nil), metrics.New()
		counted := func(c *node.Config) { c.Metrics = counts }
		var cut atomic.Bool
		mortal := faulty.New(durable, func(context.Context, faulty.Call) faulty.Fault {
			if cut.Load() {
				return faulty.Fault{Refuse: store.ErrUnknown}
			}
			return faulty.Fault{}
		})
		f := func(ctx context.Context, _ *life, call target.Call) (target.Result, error) {
			switch call.Job {
			case "permanent":
				return target.Result{}, target.Permanent(errors.New("no"))
			case "spent", "retries":
				return target.Result{}, errors.New("not now")
			case "stopped", "lost", "lost-once", "lost-cancelled":
				<-ctx.Done()
				return target.Result{}, ctx.Err()
			}
			return target.Result{}, nil
		}
		l := begin(t, "first", mortal, bucket, f, counted)
		ask := func(name string, delay time.Duration) run.ID {
			r, _, err := l.Control.Trigger(t.Context(), "default", name, control.Request{Delay: new(delay)})
			if err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		cancel := func(id run.ID) {
			if _, err := l.Control.Cancel(t.Context(), "default", id, ""); err != nil {
				t.Fatal(err)
			}
		}
		once := func(d *job.Definition) { d.Retry.MaxAttempts = 1 }
		l.put("fires", time.Minute)
		asked := map[string]run.ID{}
		for name, change := range map[string]func(*job.Definition){
			"ok": once, "permanent": once, "spent": once, "stopped": once, "lost": once, "lost-once": atMostOnce, "lost-cancelled": once,
			"retries": func(d *job.Definition) {
				d.Retry = job.Retry{MaxAttempts: 9, Initial: schedule.Duration(time.Hour), Max: schedule.Duration(24 * time.Hour), Factor: 2}
			},
		} {
			l.put(name, 0, change)
			asked[name] = ask(name, 0)
		}
		l.put("later", 0)
		l.put("deleted", 0)
		ask("deleted", time.Hour)
		ask("deleted", 30*time.Second)
		time.Sleep(10 * time.Second)
		cancel(ask("later", time.Hour))
		cancel(asked["stopped"])
		cancel(asked["retries"])
		if err := l.Control.Delete(t.Context(), "default", "deleted", control.Match{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		cut.Store(true) // the process dies
		l.die(func() {})
		l.stop()
		service, err := control.New(l.Control.Config)
		if err != nil {
			t.Fatal(err)
		}
		cut.Store(false)
		if _, err := service.Cancel(t.Context(), "default", asked["lost-cancelled"], ""); err != nil { // by way of another process
			t.Fatal(err)
		}
		cut.Store(true)
		time.Sleep(30 * time.Minute)
		l = begin(t, "second", durable, bucket, f, counted)
		time.Sleep(5*time.Minute + 30*time.Second) // not at a fire

		stand := map[run.State]uint64{}
		for _, name := range []string{"fires", "ok", "permanent", "spent", "stopped", "lost", "lost-once", "lost-cancelled", "retries", "later", "deleted"} {
			for _, r := range l.runs(name) {
				if r.State == run.Skipped {
					stand[run.Skipped] += uint64(r.Count)
				} else {
					stand[r.State]++
				}
			}
		}
		least := map[run.State]uint64{run.Succeeded: 6, run.Failed: 1, run.Dead: 1, run.Unknown: 1, run.Cancelled: 6, run.Skipped: 20}
		for _, s := range run.States() {
			if !s.Ended() {
				continue
			}
			if got := counts.Runs.Value(s.String()); got != stand[s] || got < least[s] {
				t.Errorf("%d runs counted as %s, of %d that there are, want the same and at least %d", got, s, stand[s], least[s])
			}
		}
		if got := counts.DeadLetters.Value("dead") + counts.DeadLetters.Value("failed"); got != stand[run.Dead]+stand[run.Failed] {
			t.Errorf("%d dead letters counted, of %d", got, stand[run.Dead]+stand[run.Failed])
		}
		l.stop()
	})
}

// Whatever ends a step, its worker, a cancel of its run or a pass over what a dead process left: belfry_steps_total says what the store says, and
// the run of the workflow is counted once, as one run.
func TestEveryEndOfAStepIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		durable, bucket, counts := memory.New(memory.Config{}), memblob.OpenBucket(nil), metrics.New()
		counted := func(c *node.Config) { c.Metrics = counts }
		var cut atomic.Bool
		mortal := faulty.New(durable, func(context.Context, faulty.Call) faulty.Fault {
			if cut.Load() {
				return faulty.Fault{Refuse: store.ErrUnknown}
			}
			return faulty.Fault{}
		})
		f := func(ctx context.Context, _ *life, call target.Call) (target.Result, error) {
			_, step, _ := strings.Cut(call.Run, "/")
			switch {
			case step == "permanent":
				return target.Result{}, target.Permanent(errors.New("no"))
			case step == "spent", step == "parts/again" && call.Attempt < 3:
				return target.Result{}, errors.New("not now")
			case strings.HasPrefix(step, "stuck"), step == "lost", step == "known" && call.Attempt == 1:
				<-ctx.Done()
				return target.Result{}, ctx.Err()
			}
			return target.Result{}, nil
		}
		l := begin(t, "first", mortal, bucket, f, counted)
		put := func(name, steps string) run.ID {
			l.put(name, 0, func(d *job.Definition) { d.Target = target.Spec{Workflow: []byte(`{"steps": ` + steps + `}`)} })
			r, _, err := l.Control.Trigger(t.Context(), "default", name, control.Request{})
			if err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		const task = `"handler": {"name": "f"}`
		ids := []run.ID{
			put("fine", `{"a": {`+task+`}, "never": {"needs": ["a"], "rule": "one_failed", `+task+`},
				"parts": {"needs": ["a"], "steps": {"again": {`+task+`}, "b": {"needs": ["again"], `+task+`}}}, "p": {"needs": ["parts"], "pass": {}}}`),
			put("bad", `{"permanent": {`+task+`}, "spent": {`+task+`, "retry": {"max_attempts": 1}}, "after": {"needs": ["spent"], `+task+`}}`),
			put("stopped", `{"stuck": {`+task+`}, "a": {`+task+`}, "after": {"needs": ["stuck"], `+task+`}}`),
			put("mended", `{"lost": {"guarantee": "at_most_once", `+task+`}, "known": {`+task+`}, "after": {"needs": ["known"], `+task+`}}`),
		}
		time.Sleep(10 * time.Minute)
		if _, err := l.Control.Cancel(t.Context(), "default", ids[2], "enough"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cut.Store(true) // the process dies
		l.die(func() {})
		l.stop()
		l = begin(t, "second", durable, bucket, f, counted)
		time.Sleep(40 * time.Minute)

		stand := map[run.State]uint64{}
		var attempts, started uint64
		for _, id := range ids {
			g, err := l.Control.Graph(t.Context(), "default", id)
			if err != nil || !g.Run.State.Ended() {
				t.Fatalf("%s is %s, %v", id, g.Run.State, err)
			}
			for _, s := range g.Steps {
				if s.Run.State == 0 {
					continue
				}
				stand[s.Run.State]++
				attempts += uint64(s.Run.Attempt)
				if s.Run.Attempt > 0 {
					started++
				}
			}
		}
		least := map[run.State]uint64{run.Succeeded: 6, run.Failed: 1, run.Dead: 1, run.Unknown: 1, run.Cancelled: 1}
		for _, s := range run.States() {
			if got := counts.Steps.Value(s.String()); s.Ended() && s != run.Skipped && (got != stand[s] || got < least[s]) {
				t.Errorf("%d steps counted as %s, of %d that there are, want the same and at least %d", got, s, stand[s], least[s])
			}
		}
		var ended, runs uint64
		for o := run.OutcomeSucceeded; o <= run.OutcomeHandedBack; o++ {
			ended += counts.Attempts.Value(o.String())
		}
		for _, s := range run.States() {
			if s.Ended() {
				runs += counts.Runs.Value(s.String())
			}
		}
		if ended != attempts || runs != uint64(len(ids)) || counts.DeadLetters.Value("failed") != 2 || counts.DeadLetters.Value("dead") != 0 {
			t.Errorf("counted: %d attempts of %d, %d runs of %d, %d failed dead letters of 2, %d dead", ended, attempts, runs, len(ids),
				counts.DeadLetters.Value("failed"), counts.DeadLetters.Value("dead"))
		}
		counts.Each(time.Now(), func(f metrics.Family, samples []metrics.Sample) {
			if f.Name == "belfry_step_lateness_seconds" && samples[0].Histogram.Count != started {
				t.Errorf("%d steps were late or not, of %d that have started", samples[0].Histogram.Count, started)
			}
		})
		l.stop()
	})
}

// A watched job whose target is a workflow succeeds with its run: steps that succeeded in a run that did not are no success of the job.
func TestAWatchedWorkflowSucceedsWithItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := metrics.New()
		f := func(_ context.Context, _ *life, call target.Call) (target.Result, error) {
			if strings.HasPrefix(call.Run, "half~") && strings.HasSuffix(call.Run, "/b") {
				return target.Result{}, target.Permanent(errors.New("no"))
			}
			return target.Result{}, nil
		}
		l := begin(t, "first", memory.New(memory.Config{}), memblob.OpenBucket(nil), f, func(c *node.Config) { c.Metrics = counts })
		for _, name := range []string{"whole", "half"} {
			l.put(name, 0, func(d *job.Definition) {
				d.Labels = map[string]string{job.AlertLabel: job.AlertSuccess}
				d.Target = target.Spec{Workflow: []byte(`{"steps": {"a": {"handler": {"name": "f"}}, "b": {"needs": ["a"], "handler": {"name": "f"}}}}`)}
			})
			if _, _, err := l.Control.Trigger(t.Context(), "default", name, control.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		last := map[string]float64{}
		counts.Each(time.Now(), func(f metrics.Family, samples []metrics.Sample) {
			if f.Name == "belfry_job_last_success_timestamp_seconds" {
				for _, s := range samples {
					last[s.Values[0]] = s.Value
				}
			}
		})
		if half, known := last["half"]; !known || half != 0 || last["whole"] == 0 {
			t.Errorf("the last successes are %v, want none of half and one of whole", last)
		}
		l.stop()
	})
}

// TestTheStepsOfAWorkflowGoWithItsRun keeps what belongs to steps as long as their run, and not for longer than it could have lasted, and a day or two of cleaning.
func TestTheStepsOfAWorkflowGoWithItsRun(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"soon over": 20 * time.Second, "that may last for days": 72 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.New(memory.Config{Now: time.Now})
				bucket := memblob.OpenBucket(nil)
				work := func(_ context.Context, _ *life, call target.Call) (target.Result, error) {
					_, err := io.WriteString(call.Log, "a line\n")
					return target.Result{Body: make([]byte, 2*run.MaxResult)}, err
				}
				l := begin(t, "life", s, bucket, work)
				l.put("etl", 0, func(d *job.Definition) {
					d.Retention = schedule.Duration(job.MinRetention)
					d.Target = target.Spec{Workflow: fmt.Appendf(nil, `{"timeout": %q, "steps": {"a": {"handler": {"name": "f"}}, "b": {"needs": ["a"], "handler": {"name": "f"}}}}`, timeout)}
				})
				r, _, err := l.Control.Trigger(t.Context(), "default", "etl", control.Request{})
				if err != nil {
					t.Fatal(err)
				}
				blobs := func() (n int) {
					list := bucket.List(nil)
					for _, err := list.Next(t.Context()); err == nil; _, err = list.Next(t.Context()) {
						n++
					}
					return n
				}
				steps := func() int {
					page, err := s.Query(t.Context(), store.Range{Partition: run.StepPartition("default", r.ID)})
					if err != nil {
						t.Fatal(err)
					}
					return len(page.Items)
				}
				time.Sleep(time.Minute)
				l.stop() // two nodes that look after it are enough, one while all is kept and one behind that
				time.Sleep(job.MinRetention - 5*time.Minute)
				l = begin(t, "life", s, bucket, work)
				time.Sleep(3 * time.Minute)
				if head := l.runs("etl"); len(head) != 1 || head[0].State != run.Succeeded || steps() != 2 || blobs() != 4 {
					t.Errorf("before the end of the retention the runs are %+v, with %d steps and %d logs and results, want 2 and 4", head, steps(), blobs())
				}
				l.stop()
				time.Sleep(timeout + 72*time.Hour) // of which a day is for files, which go on a later one
				l = begin(t, "life", s, bucket, work)
				time.Sleep(3 * time.Minute)
				if steps, blobs := steps(), blobs(); steps != 0 || blobs != 0 {
					t.Errorf("%d steps and %d logs and results have outlived the run of a workflow with the timeout %s and the retention %s", steps, blobs, timeout, job.MinRetention)
				}
				l.stop()
			})
		})
	}
}

// However many steps are handed a large result as a whole, a process holds a few at once; and all are handed it in the end.
func TestLargeInputsAreHeldAFewAtOnce_P11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var now, most, handed int
		l := begin(t, "life", memory.New(memory.Config{Now: time.Now}), memblob.OpenBucket(nil), func(_ context.Context, _ *life, call target.Call) (target.Result, error) {
			if strings.HasSuffix(call.Run, "/first") {
				return target.Result{Body: make([]byte, 300<<10)}, nil
			}
			mu.Lock()
			now++
			most = max(most, now)
			if len(call.Payload) == 300<<10 {
				handed++
			}
			mu.Unlock()
			time.Sleep(20 * time.Second) // longer than anybody waits for room before he lets others go first
			mu.Lock()
			now--
			mu.Unlock()
			return target.Result{}, nil
		})
		steps := `"first": {"handler": {"name": "f"}}`
		for i := range 12 {
			steps += fmt.Sprintf(`, "s%d": {"needs": ["first"], "handler": {"name": "f"}, "input": "${ .steps.first.result }"}`, i)
		}
		l.put("etl", 0, func(d *job.Definition) { d.Target = target.Spec{Workflow: []byte(`{"steps": {` + steps + `}}`)} })
		if _, _, err := l.Control.Trigger(t.Context(), "default", "etl", control.Request{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if runs := l.runs("etl"); len(runs) != 1 || runs[0].State != run.Succeeded || handed != 12 || most != 4 {
			t.Errorf("the runs are %+v; %d steps were handed it, up to %d at once, want 12 and 4", runs, handed, most)
		}
		l.stop()
	})
}
