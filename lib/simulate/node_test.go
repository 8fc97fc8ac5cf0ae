package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// server is belfry dev's own node with its own workers, in the time of a bubble, whose handlers do what a scenario says.
type server struct {
	*node.Node
	t     *testing.T
	over  *memory.Store
	play  simulate.Scenario
	mu    sync.Mutex
	taken map[string]int
	names map[string]run.ID
	stop  func()
}

// handle is what a target does in one attempt.
func (s *server) handle(ctx context.Context, call target.Call) (target.Result, error) {
	_, outcomes := s.play.Outcomes[call.Job].Branch(simulate.Called{Payload: call.Payload, Attempt: call.Attempt})
	s.mu.Lock()
	o := outcomes[min(s.taken[call.Job], len(outcomes)-1)]
	s.taken[call.Job]++
	s.mu.Unlock()
	takes := o.Takes
	if o.Never {
		takes = 365 * 24 * time.Hour
	}
	wait := time.NewTimer(takes)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			time.Sleep(o.StopsAfter)
		}
		return target.Result{}, context.Cause(ctx)
	}
	switch {
	case o.Fails && o.Permanent:
		return target.Result{}, target.Permanent(errors.New(o.Error))
	case o.Fails:
		def := slices.IndexFunc(s.play.Jobs, func(j simulate.Job) bool { return j.Name == call.Job })
		longest := lease.Backoff(s.play.Jobs[def].Definition.WithDefaults().Retry, s.failures(call), 1<<64-1)
		return target.Result{}, target.RetryAfter(longest, errors.New(o.Error))
	}
	return target.Result{Body: o.Result, ContentType: "application/json"}, nil
}

// failures is how many of a run's attempts will have failed with this one, since it was opened.
func (s *server) failures(call target.Call) int {
	id, err := run.ParseID(call.Run)
	if err != nil {
		s.t.Error(err)
	}
	r, err := s.Control.Run(s.t.Context(), "default", id)
	if err != nil {
		s.t.Error(err)
	}
	return r.Failures + 1
}

// up starts a node over what an earlier one has left.
func (s *server) up() {
	t := s.t
	handlers := new(target.Registry)
	if err := handlers.Register("h", s.handle); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := bloblocal.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if s.Node, err = node.New(t.Context(), node.Config{Store: s.over, Queues: map[string]queue.Queue{"default": local.New(local.Config{Now: time.Now})}, Blobs: blobs,
		Targets: targets, Metrics: metrics.New(), Now: time.Now, Elapsed: func() time.Duration { return time.Since(begin) }, NewID: rand.Uint64,
		Name: begin.String(), Concurrency: s.play.Workers}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// line does what a line of the script says, at its time.
func (s *server) line(l simulate.Line) {
	ctx, t := s.t.Context(), s.t
	time.Sleep(time.Until(l.At))
	var err error
	what := l.Do
	if what == simulate.Cancel && l.Run.IsZero() {
		what += " job"
	}
	switch what {
	case simulate.Trigger:
		for _, one := range l.Triggers {
			var r run.Run
			r, _, err = s.Control.Trigger(ctx, "default", one.Job, one.Request)
			s.names[one.As] = r.ID
		}
	case simulate.Pause:
		_, err = s.Control.Pause(ctx, "default", l.Job, l.Reason, control.Match{})
	case simulate.Resume:
		_, err = s.Control.Resume(ctx, "default", l.Job, control.Match{})
	case simulate.Put:
		_, _, err = s.Control.Put(ctx, "default", l.Job, l.Definition, control.Match{})
	case simulate.Delete:
		err = s.Control.Delete(ctx, "default", l.Job, control.Match{})
	case simulate.Cancel:
		_, err = s.Control.Cancel(ctx, "default", s.names[l.Run.As], l.Reason)
	case simulate.Retry:
		_, err = s.Control.Retry(ctx, "default", s.names[l.Run.As], l.Force, time.Time{})
	case simulate.Cancel + " job":
		_, err = s.Control.CancelMany(ctx, "default", control.RunFilter{Job: l.Job}, control.Bulk{}, l.Reason)
	case simulate.Redrive:
		_, err = s.Control.Redrive(ctx, "default", control.DeadFilter{Job: l.Job}, control.Bulk{})
	case simulate.Down:
		s.stop()
		time.Sleep(l.For)
		s.up()
	default:
		t.Fatalf("no %s here", l.Do)
	}
	var refusal *control.Refusal
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("line %d: %v", l.Number, err)
	}
}

// inShort is a line for each run, with times to a tenth of a second: claims of a real node begin up to a few milliseconds later.
func inShort(r simulate.Report) []string {
	at := func(t *time.Time) string {
		if t == nil {
			return "-"
		}
		return t.Round(100 * time.Millisecond).Format("15:04:05.0")
	}
	var lines []string
	for _, one := range r.Runs {
		id, _, _ := strings.Cut(one.ID[len(one.Job)+1:], "~") // what is drawn is another
		line := one.Job + "~" + id + " " + one.State + " " + one.Reason + " " + string(one.Result)
		for _, a := range one.Attempts {
			line += " " + at(&a.StartedAt) + ".." + at(a.EndedAt) + " " + a.Outcome + " " + a.Error[:min(len(a.Error), 20)] // which a record shortens
		}
		lines = append(lines, line)
	}
	for _, s := range r.Skipped {
		lines = append(lines, s.Job+" "+at(&s.From)+" "+at(&s.Through)+" "+s.Reason)
	}
	slices.Sort(lines)
	return lines
}

func (s *server) report() (r simulate.Report) {
	for _, j := range s.play.Jobs {
		for cursor, first := "", true; first || cursor != ""; first = false {
			runs, next, err := s.Control.Runs(s.t.Context(), "default", control.RunFilter{Job: j.Name}, cursor, 1000)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, one := range runs {
				if one.ID.Time().After(s.play.Until) {
					continue
				}
				if one.Missed() {
					r.Skipped = append(r.Skipped, simulate.Stretch{Job: j.Name, From: one.ID.Time(), Through: time.UnixMilli(max(one.Through, one.ID.Nominal)).UTC(), Reason: one.Reason})
					continue
				}
				shown := simulate.Run{ID: one.ID.String(), Job: j.Name, State: s.Control.Shown(s.t.Context(), one).String(), Reason: one.Reason, Result: one.Result.Inline}
				for _, a := range one.Attempts {
					ended := time.UnixMilli(a.Ended).UTC()
					shown.Attempts = append(shown.Attempts, simulate.Attempt{StartedAt: time.UnixMilli(a.Started).UTC(), EndedAt: &ended, Outcome: a.Outcome.String(), Error: a.Error})
				}
				r.Runs = append(r.Runs, shown)
			}
			cursor = next
		}
	}
	return r
}

// The same jobs, the same targets and the same requests give the same runs under a node that has a worker and a clock.
func TestANodeDoesTheSame(t *testing.T) {
	text := `start: 2000-01-01T00:00:00Z
until: 6h
workers: 4
jobs:
  long: {schedule: {cron: "*/10 * * * *"}, overlap: skip, timeout: 1h, target: {handler: {name: h}}}
  fails: {schedule: {cron: "7 * * * *"}, retry: {initial: 1m, factor: 3, max: 20m, max_attempts: 4}, target: {handler: {name: h}}}
  often: {schedule: {every: 3m}, catch_up: {mode: all}, target: {handler: {name: h}}}
  none: {schedule: {cron: "*/15 * * * *"}, catch_up: {mode: none}, target: {handler: {name: h}}}
  slow: {schedule: {cron: "5 */2 * * *"}, timeout: 2m, guarantee: at_most_once, target: {handler: {name: h}}}
  asked: {payload: {n: 0}, timeout: 1h, target: {handler: {name: h}}}
outcomes:
  long: [{takes: 25m}, {takes: 3m}, {takes: 1s}]
  fails: [{fails: "one"}, {takes: 5s, fails: "two"}, {takes: 5s, fails: "three"}, {takes: 1s, result: {ok: true}}, {fails: "never", permanent: true}, {takes: 1s}]
  often: [{takes: 2s}]
  none: [{takes: 2s}]
  slow: [{takes: 1m}, {never: true}]
  asked: {by: .payload.n, is: {"1": [{takes: 1m, result: [1]}], "2": [{takes: 40m, stops_after: 3s}]}, else: [{takes: 1s}]}
script:
  - {at: 4m30s, do: trigger, job: asked, as: a, payload: {n: 1}}
  - {at: 12m30s, do: trigger, job: asked, as: b, payload: {n: 2}}
  - {at: 20m17s, do: cancel, run: b}
  - {at: 22m, do: trigger, job: asked, as: later, delay: 90m}
  - {at: 61m33s, do: pause, job: often, reason: "db move"}
  - {at: 95m11s, do: resume, job: often}
  - {at: 99m30s, do: trigger, job: asked, as: d, delay: 2h}
  - {at: 101m, do: cancel, run: d}
  - {at: 128m10s, do: down, for: 50m}
  - {at: 200m31s, do: redrive, job: fails}
  - {at: 240m1s, do: retry, run: a, force: true}
  - {at: 250m40s, do: put, job: none, definition: {schedule: {cron: "*/20 * * * *"}, target: {handler: {name: h}}}}
  - {at: 301m20s, do: delete, job: often}
`
	same(t, text, 100)
}

// same plays a scenario, has a node do it, and compares so many lines or more.
func same(t *testing.T, text string, least int) {
	t.Helper()
	s, err := simulate.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	played, err := simulate.Play(t.Context(), s, simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var done simulate.Report
	synctest.Test(t, func(t *testing.T) {
		dev := &server{t: t, over: memory.New(memory.Config{Now: time.Now}), play: s, taken: map[string]int{}, names: map[string]run.ID{}}
		dev.up()
		for _, j := range s.Jobs {
			if _, _, err := dev.Control.Put(t.Context(), "default", j.Name, j.Definition, control.Match{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range s.Script {
			dev.line(l)
		}
		time.Sleep(time.Until(s.Until) + 3*time.Hour) // what runs then may end
		done = dev.report()
		dev.stop()
	})
	want, got := inShort(done), inShort(played)
	if len(want) < least {
		t.Fatalf("only %d lines to be compared", len(want))
	}
	for _, line := range slices.Sorted(maps.Keys(difference(want, got))) {
		t.Error("only the node has:       ", line)
	}
	for _, line := range slices.Sorted(maps.Keys(difference(got, want))) {
		t.Error("only the simulation has: ", line)
	}
	if least > 0 && (len(played.Refused) > 0 || played.Open > 0) {
		t.Errorf("refused %v, %d open", played.Refused, played.Open)
	}
}

// drawn is a scenario of chance. Nothing in it comes at the very instant of something else, since a real node claims a moment ahead, and begins
// a moment later.
func drawn(chance *rand.Rand) string {
	var b strings.Builder
	pick := func(from ...string) string { return from[chance.IntN(len(from))] }
	b.WriteString("start: 2000-01-01T00:00:00Z\nuntil: 3h\nworkers: 40\njobs:\n")
	names := []string{"a", "b", "c", "d", "e"}
	retries := map[string]string{}
	for _, name := range names {
		retries[name] = pick("", "guarantee: at_most_once, ", "retry: {initial: 1m, factor: 2, max_attempts: 4}, ", "retry: {initial: 17m, factor: 1, max_attempts: 2}, ")
	}
	definition := func(name string) string {
		return "{" + pick("", `schedule: {cron: "*/10 * * * *"}, `, `schedule: {cron: "3,17,44 * * * *"}, `, `schedule: {every: 4m}, `, `schedule: {every: 70s}, `) +
			pick("", "overlap: skip, ", "overlap: {policy: skip, limit: 2}, ") + retries[name] +
			"timeout: 1h" + pick("", ", priority: high") + ", target: {handler: {name: h}}}"
	}
	for _, name := range names {
		fmt.Fprintf(&b, "  %s: %s\n", name, definition(name))
	}
	b.WriteString("outcomes:\n")
	for _, name := range names {
		one := func() string {
			return "[{takes: " + pick("300ms", "5.3s", "65.3s", "4m10.3s", "25m30.3s") + pick("", ", result: 1", `, fails: "no"`, `, fails: "never", permanent: true`) + pick("", ", stops_after: 3s") + "}]"
		}
		fmt.Fprintf(&b, "  %s: {by: .attempt, is: {\"1\": %s, \"2\": %s}, else: %s}\n", name, one(), one(), one())
	}
	b.WriteString("script:\n")
	at := time.Duration(0)
	for i := range 25 {
		at += (time.Duration(chance.IntN(7*6))*10+7)*time.Second + 500*time.Millisecond
		at = at.Truncate(10*time.Second) + 7500*time.Millisecond
		name := pick(names...)
		line := pick("do: trigger, job: "+name+fmt.Sprintf(", as: r%d", i), "do: trigger, job: "+name+fmt.Sprintf(", as: r%d, delay: 13m", i), "do: pause, job: "+name, "do: resume, job: "+name,
			"do: resume, job: "+name, "do: cancel, job: "+name, "do: delete, job: "+name, "do: put, job: "+name+", definition: "+definition(name))
		fmt.Fprintf(&b, "  - {at: %s, %s}\n", at, line)
	}
	return b.String()
}

// What chance draws, a node does the same.
func TestANodeDoesTheSameOfChance(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			text := drawn(rand.New(rand.NewPCG(seed, 1)))
			if same(t, text, 0); t.Failed() {
				t.Log(text)
			}
		})
	}
}

// difference are the lines of a that b has not.
func difference(a, b []string) map[string]bool {
	more := map[string]bool{}
	for _, line := range a {
		if !slices.Contains(b, line) {
			more[line] = true
		}
	}
	return more
}
