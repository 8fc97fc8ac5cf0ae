package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at gives the samples of a family, by their label values joined.
func at(r *metrics.Registry, now time.Time, name string) map[string]metrics.Sample {
	found := map[string]metrics.Sample{}
	r.Each(now, func(f metrics.Family, samples []metrics.Sample) {
		if f.Name == name {
			for _, s := range samples {
				found[strings.Join(s.Values, " ")] = s
			}
		}
	})
	return found
}

func TestCountersCountByLabel(t *testing.T) {
	r := metrics.New()
	r.Runs.Inc("succeeded")
	r.Runs.Add(4, "dead")
	r.Runs.Add(0, "failed")
	r.Runs.Add(-1, "failed")
	got := at(r, noon, "belfry_runs_total")
	if len(got) != 6 {
		t.Errorf("%d series, want all 6 declared from the start", len(got))
	}
	for outcome, want := range map[string]float64{"succeeded": 1, "dead": 4, "failed": 0, "cancelled": 0} {
		if got[outcome].Value != want || r.Runs.Value(outcome) != uint64(want) {
			t.Errorf("%s: %v, want %v", outcome, got[outcome].Value, want)
		}
	}
}

func TestP11_WildLabelsMakeOneSeries(t *testing.T) {
	r := metrics.New()
	for i := range 1000 {
		r.Runs.Inc(fmt.Sprint("wild ", i))
		r.Store.Observe(time.Second, "get", fmt.Sprint("wild ", i))
	}
	r.Runs.Inc()
	if got := at(r, noon, "belfry_runs_total"); len(got) != 7 || got["other"].Value != 1001 {
		t.Errorf("%d series with %v in other, want 7 with 1001", len(got), got["other"].Value)
	}
	if got := at(r, noon, "belfry_store_seconds"); len(got) != 1 || got["get other"].Histogram.Count != 1000 {
		t.Errorf("got %v, want 1000 under get other", got)
	}
}

func TestUnitsAreSummedUpByOperation(t *testing.T) {
	r := metrics.New()
	if got := at(r, noon, "belfry_store_units_total"); len(got) != 0 {
		t.Errorf("before any request: %v", got)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				r.Consumed("Query", 0.5, 0)
				r.Consumed("TransactWriteItems", 0, 4)
			}
		})
	}
	all.Wait()
	r.Consumed("Scan", 1, -1)
	got := at(r, noon, "belfry_store_units_total")
	if len(got) != 3 || got["Query read"].Value != 1000 || got["TransactWriteItems write"].Value != 8000 || got["other read"].Value != 1 {
		t.Errorf("got %v", got)
	}
}

func TestHistogramsCountUpToEachBound(t *testing.T) {
	r := metrics.New()
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, time.Millisecond + 1, time.Hour, time.Hour + 1} {
		r.Lateness.Observe(d)
	}
	got := at(r, noon, "belfry_lateness_seconds")[""].Histogram
	n := len(got.Buckets)
	if got.Count != 6 || got.Sum != 2*time.Hour+2*time.Millisecond+2 {
		t.Errorf("count %d, sum %v, want 6 and 2h0m0.002000002s", got.Count, got.Sum)
	}
	if got.Sums[0] != time.Millisecond || got.Sums[1] != time.Millisecond+1 || got.Sums[n] != time.Hour+1 {
		t.Errorf("sums %v, want each bucket's own", got.Sums)
	}
	if got.Buckets[0] != 3 || got.Buckets[1] != 4 || got.Buckets[n-2] != 4 || got.Buckets[n-1] != 5 {
		t.Errorf("buckets %v, want 3 up to 1ms, 4 up to 30m, 5 up to 1h", got.Buckets)
	}
}

func TestFault47_the_age_of_the_oldest_due_timer_grows_while_no_tick_runs(t *testing.T) {
	r := metrics.New()
	if got := at(r, noon, "belfry_oldest_due_seconds"); len(got) != 0 {
		t.Errorf("before any tick: %v, want nothing that looks like health", got)
	}
	r.OldestDue.Since(noon)
	for after, want := range map[time.Duration]float64{0: 0, time.Second: 1, 10 * time.Minute: 600, -time.Second: 0} {
		if got := at(r, noon.Add(after), "belfry_oldest_due_seconds")[""].Value; got != want {
			t.Errorf("after %v: %v s, want %v", after, got, want)
		}
	}
}

// Gates that ask for it have series of their own, both from the first time on that one of them is met; jobs without number make no more.
func TestP11_gates_have_series_on_request_and_not_without_bound(t *testing.T) {
	r := metrics.New()
	if got := at(r, noon, "belfry_gate_skipped_total"); len(got) != 1 || got["job:*"].Value != 0 {
		t.Errorf("at first: %v, want job:* at zero alone", got)
	}
	r.GateLetIn.Inc(r.Gate("job:report", true))
	r.GateSkipped.Inc(r.Gate("job:hourly", false))
	for range 3 {
		r.GateSkipped.Inc(r.Gate("job:nightly", true))
	}
	got := at(r, noon, "belfry_gate_skipped_total")
	if len(got) != 3 || got["job:*"].Value != 1 || got["job:report"].Value != 0 || got["job:nightly"].Value != 3 {
		t.Errorf("skipped: %v", got)
	}
	if got := at(r, noon, "belfry_gate_let_in_total"); len(got) != 3 || got["job:report"].Value != 1 || got["job:nightly"].Value != 0 {
		t.Errorf("let in: %v", got)
	}
	for i := range 1000 {
		r.GateSkipped.Inc(r.Gate(fmt.Sprint("job:wild-", i), true))
	}
	got = at(r, noon, "belfry_gate_skipped_total")
	if len(got) != metrics.MostGates+2 || got["job:nightly"].Value != 3 || got["job:wild-0"].Value != 1 || got["other"].Value != 1000-metrics.MostGates+2 {
		t.Errorf("%d series, %v others", len(got), got["other"].Value)
	}
	if n := r.GateSkipped.Value("job:never-met"); n != 1000-metrics.MostGates+2 {
		t.Errorf("a name that was never met has %d, want what others have", n)
	}
}

func TestGatesAreMetOnceHoweverManyMeetThem(t *testing.T) {
	r := metrics.New()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				r.GateLetIn.Inc(r.Gate(fmt.Sprint("job:", i%10), true))
			}
		})
	}
	all.Wait()
	got := at(r, noon, "belfry_gate_let_in_total")
	if len(got) != 11 {
		t.Errorf("%d series, want job:* and ten", len(got))
	}
	for i := range 10 {
		if n := got[fmt.Sprint("job:", i)].Value; n != 800 {
			t.Errorf("job:%d was let in %v times, want 800", i, n)
		}
	}
}

func TestQueueDepth(t *testing.T) {
	r := metrics.New()
	r.SetQueue(map[queue.Priority]queue.Depth{queue.High: {Ready: 3, Delayed: 2, Taken: 1}, queue.Low: {Ready: 9}})
	r.SetQueue(map[queue.Priority]queue.Depth{queue.High: {Ready: 4, Delayed: 2, Taken: 1}})
	got := at(r, noon, "belfry_queue_messages")
	if len(got) != 9 || got["high ready"].Value != 4 || got["high delayed"].Value != 2 || got["high taken"].Value != 1 ||
		got["low ready"].Value != 0 {
		t.Errorf("got %v", got)
	}
}

// TestDomainNamesAreDeclared holds that no state, outcome or priority of the domain ends in "other".
func TestDomainNamesAreDeclared(t *testing.T) {
	r := metrics.New()
	for _, s := range run.States() {
		if s.Ended() {
			r.Runs.Inc(s.String())
			if s != run.Skipped { // a step that its rule skips has no record
				r.Steps.Inc(s.String())
			}
			if s.DeadLetter() {
				r.DeadLetters.Inc(s.String())
			}
		}
	}
	for o := run.OutcomeRunning + 1; !strings.Contains(o.String(), " "); o++ {
		r.Attempts.Inc(o.String())
	}
	for _, p := range queue.Priorities {
		r.Queue.Set(1, string(p), "ready")
	}
	for _, name := range []string{"belfry_runs_total", "belfry_steps_total", "belfry_dead_letters_total", "belfry_attempts_total", "belfry_queue_messages"} {
		for labels := range at(r, noon, name) {
			if strings.Contains(labels, metrics.Other) {
				t.Errorf("%s counted something under %q", name, labels)
			}
		}
	}
	for _, s := range at(r, noon, "belfry_attempts_total") {
		if s.Value != 1 {
			t.Errorf("attempts by %v: %v, want each outcome once", s.Values, s.Value)
		}
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	r := metrics.New()
	s := metrics.Store(fake{}, r, func() time.Time { return noon })
	for name, count := range map[string]func(){
		"counter":   func() { r.Runs.Inc("dead") },
		"gate":      func() { r.GateSkipped.Inc(r.Gate("job:report", true)) },
		"gauge":     func() { r.Queue.Set(7, "low", "taken") },
		"age":       func() { r.OldestDue.Since(noon) },
		"sum":       func() { r.Consumed("GetItem", 0.5, 0) },
		"histogram": func() { r.Store.Observe(time.Second, "write", "conflict") },
		"store":     func() { _, _ = s.Get(context.Background()) },
	} {
		if n := testing.AllocsPerRun(100, count); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func TestNothingIsLostUnderConcurrency(t *testing.T) {
	r := metrics.New()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				r.Retries.Inc()
				r.Tick.Observe(time.Second)
			}
		})
	}
	all.Wait()
	if n := r.Retries.Value(); n != 4000 {
		t.Errorf("%d retries, want 4000", n)
	}
	if h := at(r, noon, "belfry_tick_seconds")[""].Histogram; h.Count != 4000 || h.Sum != 4000*time.Second {
		t.Errorf("%d ticks of %v, want 4000 of 4000s", h.Count, h.Sum)
	}
}

// fake is a store that answers as it is told.
type fake struct {
	store.Store
	err      error
	verdicts []store.Verdict
	called   func()
}

func (f fake) call() error {
	if f.called != nil {
		f.called()
	}
	return f.err
}
func (f fake) Get(context.Context, ...store.Key) ([]store.Item, error)  { return nil, f.call() }
func (f fake) Peek(context.Context, ...store.Key) ([]store.Item, error) { return nil, f.call() }
func (f fake) Query(context.Context, store.Range) (store.Page, error)   { return store.Page{}, f.call() }
func (f fake) Write(context.Context, ...store.Op) ([]uint64, error)     { return nil, f.call() }
func (f fake) WriteEach(context.Context, ...store.Op) ([]store.Verdict, error) {
	return f.verdicts, f.call()
}

func TestStoreCallsAreMeasuredByOperationAndResult(t *testing.T) {
	for result, err := range map[string]error{
		"ok":        nil,
		"conflict":  fmt.Errorf("claim: %w", &store.Conflict{}),
		"throttled": fmt.Errorf("claim: %w", store.ErrThrottled),
		"unknown":   fmt.Errorf("claim: %w", store.ErrUnknown),
		"error":     context.Canceled,
	} {
		for op, call := range map[string]func(store.Store) error{
			"get":        func(s store.Store) error { _, err := s.Get(t.Context()); return err },
			"peek":       func(s store.Store) error { _, err := s.Peek(t.Context()); return err },
			"query":      func(s store.Store) error { _, err := s.Query(t.Context(), store.Range{}); return err },
			"write":      func(s store.Store) error { _, err := s.Write(t.Context()); return err },
			"write_each": func(s store.Store) error { _, err := s.WriteEach(t.Context()); return err },
		} {
			r := metrics.New()
			now := noon
			s := metrics.Store(fake{err: err, called: func() { now = now.Add(7 * time.Millisecond) }}, r, func() time.Time { return now })
			if got := call(s); !errors.Is(got, err) {
				t.Errorf("%s gave %v, want %v passed on", op, got, err)
			}
			got := at(r, noon, "belfry_store_seconds")
			if h := got[op+" "+result].Histogram; len(got) != 1 || h.Count != 1 || h.Sum != 7*time.Millisecond {
				t.Errorf("%s, %s: %v, want one call of 7ms there", op, result, got)
			}
			if n := r.Throttled.Value("store"); (n == 1) != (result == "throttled") {
				t.Errorf("%s, %s: %d refusals for load", op, result, n)
			}
		}
	}
}

func TestAWriteEachCountsAsTheWorstOfItsVerdicts(t *testing.T) {
	conflict, throttled, unknown := &store.Conflict{}, store.ErrThrottled, store.ErrUnknown
	for _, c := range []struct {
		want     string
		verdicts []error
	}{
		{"ok", []error{nil, nil}},
		{"conflict", []error{nil, conflict, nil}},
		{"throttled", []error{throttled, conflict, nil, throttled}},
		{"unknown", []error{nil, unknown, throttled, conflict, throttled}},
	} {
		r := metrics.New()
		f := fake{}
		for _, err := range c.verdicts {
			f.verdicts = append(f.verdicts, store.Verdict{Err: err})
		}
		if got, err := metrics.Store(f, r, func() time.Time { return noon }).WriteEach(t.Context()); err != nil || len(got) != len(f.verdicts) {
			t.Errorf("got %v, %v, want the verdicts passed on", got, err)
		}
		if got := at(r, noon, "belfry_store_seconds"); got["write_each "+c.want].Histogram.Count != 1 {
			t.Errorf("%v counted as %v, want %s", c.verdicts, got, c.want)
		}
		refused := 0
		for _, err := range c.verdicts {
			if errors.Is(err, throttled) {
				refused++
			}
		}
		if n := r.Throttled.Value("store"); int(n) != refused {
			t.Errorf("%d refusals for load, want %d", n, refused)
		}
	}
}

// TestTheDocumentationListsEveryMetric compares the tables of docs/metrics.md with the registry, both ways.
func TestTheDocumentationListsEveryMetric(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, want []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "| `belfry_") {
			documented = append(documented, line)
		}
	}
	metrics.New().Each(noon, func(f metrics.Family, _ []metrics.Sample) {
		var labels []string
		for _, l := range f.Labels {
			values := slices.Clone(l.Values)
			if l.Met != nil && len(values) > 0 {
				values = append(values, "and")
			}
			text := strings.Join(values, ", ")
			if l.Met != nil {
				text = strings.TrimPrefix(fmt.Sprintf("%s up to %d that asked for it", text, l.Met.Most), " ")
			}
			labels = append(labels, fmt.Sprintf("`%s`: %s", l.Name, text))
		}
		there := "metric"
		if f.Detail {
			there = "in the log"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", f.Name, f.Kind, strings.Join(labels, "; "), there, f.Help))
	})
	if !slices.Equal(documented, want) {
		t.Errorf("docs/metrics.md lists\n%s\nwant\n%s", strings.Join(documented, "\n"), strings.Join(want, "\n"))
	}
}

func TestNamesSayWhatAndInWhichUnit(t *testing.T) {
	metrics.New().Each(noon, func(f metrics.Family, _ []metrics.Sample) {
		suffix := map[metrics.Kind]string{
			metrics.KindCounter: `_total`, metrics.KindGauge: `_(seconds|messages|shards|state|waiting|in_progress)`, metrics.KindHistogram: `_seconds`,
		}[f.Kind]
		if !regexp.MustCompile(`^belfry(_[a-z]+)+` + suffix + `$`).MatchString(f.Name) {
			t.Errorf("%s: want belfry_…%s", f.Name, suffix)
		}
		if !strings.HasSuffix(f.Help, ".") || f.Kind == metrics.KindHistogram && !slices.IsSorted(f.Bounds) {
			t.Errorf("%s: want help in a sentence, bounds ascending", f.Name)
		}
	})
}

// A watched job has a series from its first end on, which only a success moves. Jobs beyond the bound have none, and share none.
func TestP11_jobs_are_watched_on_request_and_not_without_bound(t *testing.T) {
	const name = "belfry_job_last_success_timestamp_seconds"
	r := metrics.New()
	if got := at(r, noon, name); len(got) != 0 {
		t.Errorf("at first: %v", got)
	}
	r.JobEnded("report", false, noon)
	if got := at(r, noon, name); len(got) != 1 || got["report"].Value != 0 || got["report"].Measured != 0 {
		t.Errorf("after a failure: %v", got)
	}
	r.JobEnded("report", true, noon.Add(1500*time.Millisecond))
	r.JobEnded("report", false, noon.Add(time.Hour))
	r.JobEnded(metrics.Other, true, noon) // a job may have any name
	got := at(r, noon, name)
	if want := float64(noon.UnixMilli())/1000 + 1.5; len(got) != 2 || got["report"].Value != want || got["report"].Measured != 1 || got[metrics.Other].Value == 0 {
		t.Errorf("after a success: %v, want %v", got, want)
	}
	for i := range 1000 {
		r.JobEnded(fmt.Sprint("wild-", i), true, noon)
	}
	if got := at(r, noon, name); len(got) != metrics.MostJobs || got["wild-999"].Measured != 0 {
		t.Errorf("%d series", len(got))
	}
}
