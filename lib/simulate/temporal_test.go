package simulate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// temporalRow are the fields that only rows of Temporal have.
type temporalRow struct {
	Buffer []struct {
		ID     int
		Policy string
	}
	Running bool
	Given   struct {
		Overlap, Action string
		Due             int
		Waiting         []struct {
			Age int `json:"age_s"`
		}
		Window int `json:"catchup_window_s"`
	}
	Spec          temporalSpec
	MaxBuffer     *int       `json:"max_buffer"`
	Catchup       int        `json:"catchup_window_s"`
	LastProcessed *time.Time `json:"last_processed"`
	Since         time.Time  `json:"schedule_created"`
	Paused        bool
	Remaining     int `json:"remaining_actions"`
	Events        []temporalEvent
}

// temporalExpect are the expectations that only rows of Temporal have.
type temporalExpect struct {
	Overlapping []int `json:"start_overlapping"`
	StartOne    *int  `json:"start_one"`
	NewBuffer   []int `json:"new_buffer"`
	Starts      int
	Runs        int
	TooOld      *int `json:"missed_catchup_window"`
}

type temporalSpec struct {
	Interval int `json:"interval_s"`
	Calendar string
}

// temporalEvent is one of a timeline. Of the last five a check has those that it looks at.
type temporalEvent struct {
	T             time.Time
	Event         string
	Nominal, Ends *time.Time
	Of            *time.Time
	Spec          *temporalSpec
	Overlap       string
	Body          string
	Effect        string
	Running       any // instants, or how many
	Skipped       *int
	Dropped       *int
	Buffered      *int
	Missed        *int `json:"missed_catchup_window"`
}

// temporalOverlap is a policy of Temporal's as Belfry has it; nil for one that it has not.
func temporalOverlap(policy string) map[string]any {
	name := map[string]string{"SKIP": "skip", "UNSPECIFIED": "skip", "BUFFER_ONE": "queue_one", "BUFFER_ALL": "queue", "ALLOW_ALL": "allow", "CANCEL_OTHER": "cancel", "TERMINATE_OTHER": "replace"}[policy]
	if name == "" {
		return nil
	}
	return map[string]any{"policy": name}
}

func temporalJob(overlap map[string]any) map[string]any {
	return map[string]any{"target": anyHandler, "timeout": "24h", "retry": map[string]any{"max_attempts": 1}, "overlap": overlap}
}

// job is a schedule of Temporal's as Belfry has it.
func (s temporalSpec) job(overlap map[string]any) map[string]any {
	at := map[string]any{"every": seconds(s.Interval)}
	if s.Calendar == "minute 17 of every hour" {
		at = map[string]any{"cron": "17 * * * *"}
	}
	definition := temporalJob(overlap)
	definition["schedule"] = at
	return definition
}

func seconds(n int) string { return (time.Duration(n) * time.Second).String() }

// starts are the events by which runs start, with their ends.
func (row peerRow) starts() (all []temporalEvent) {
	for _, e := range row.Events {
		if e.Event != "run_starts" {
			continue
		}
		for _, other := range row.Events {
			if other.Event == "run_ends" && other.Of.Equal(*e.Nominal) {
				e.Ends = &other.T
			}
		}
		all = append(all, e)
	}
	return all
}

// timeline plays a timeline. Both answers have what starts, and when; what each check sees; and how many changes are refused.
func (row peerRow) timeline(t *testing.T) (got, want string) {
	t.Helper()
	overlap := temporalOverlap(row.Overlap)
	if row.MaxBuffer != nil {
		overlap["max_waiting"] = *row.MaxBuffer
	}
	definition := row.Spec.job(overlap)
	definition["paused"] = row.Paused
	if row.Remaining > 0 {
		definition["max_runs"] = row.Remaining
	}
	begin := row.Since
	script, outcomes := []any{}, []any{}
	if row.LastProcessed != nil {
		begin = *row.LastProcessed
		down := begin.Add(time.Second)
		script = append(script, map[string]any{"at": rfc(down), "do": "down", "for": row.Since.Sub(down).String()})
		definition["catch_up"] = map[string]any{"mode": "all", "window": seconds(row.Catchup)}
	}
	starts := []string{}
	until := row.Events[len(row.Events)-1].T
	for i, e := range row.starts() {
		starts = append(starts, rfc(*e.Nominal)+" at "+rfc(e.T))
		switch {
		case e.Ends != nil:
			outcome := map[string]any{"takes": e.Ends.Sub(e.T).String()}
			for _, asked := range row.Events {
				if asked.Event == "cancel_asked" && asked.Of.Equal(*e.Nominal) {
					outcome["stops_after"] = e.Ends.Sub(asked.T).String()
				}
			}
			outcomes = append(outcomes, outcome)
		case i < len(row.starts())-1: // of which nothing is said, but that it is in nobody's way
			outcomes = append(outcomes, map[string]any{"takes": "1s"})
		default:
			outcomes = append(outcomes, map[string]any{"never": true})
		}
	}
	first, refused := definition, 0
	for _, e := range row.Events {
		line := map[string]any{"at": rfc(e.T), "job": "job"}
		switch {
		case e.Event == "trigger", e.Event == "pause":
			line["do"] = e.Event
			if e.Overlap != "" {
				line["overlap"] = temporalOverlap(e.Overlap)["policy"]
			}
		case e.Event == "unpause":
			line["do"] = "resume"
		case e.Effect == "refused":
			refused++
			line["do"], line["definition"], line["if_match"] = "put", first, `"stale"`
		case e.Event == "update" && e.Spec != nil:
			if e.Overlap != "" {
				overlap = temporalOverlap(e.Overlap)
			}
			definition = e.Spec.job(overlap)
			line["do"], line["definition"] = "put", definition
		case e.Event == "check":
			line = map[string]any{"at": rfc(e.T), "do": "look", "as": e.name()}
		default: // starts and ends, and an update that says nothing
			continue
		}
		script = append(script, line)
	}
	r, err := plays(t, document{"start": rfc(begin), "until": rfc(until), "jobs": map[string]any{"job": first}, "outcomes": map[string]any{"job": outcomes}, "script": script})
	if err != nil {
		t.Fatal(err)
	}
	came := []string{}
	for _, one := range r.Runs {
		if one.StartedAt != nil && !one.StartedAt.After(until) {
			came = append(came, rfc(one.NominalTime)+" at "+rfc(one.StartedAt.Truncate(time.Second))) // catch-up has a pace
		}
	}
	got, want = fmt.Sprintf("%s, %d refused", came, len(r.Refused)), fmt.Sprintf("%s, %d refused", starts, refused)
	for _, e := range row.Events {
		if e.Event == "check" {
			sees, told := e.sees(t, r.Looks[e.name()])
			got, want = got+sees, want+told
		}
	}
	return got, want
}

// name is that of the look that a check is.
func (e temporalEvent) name() string { return fmt.Sprint("at-", e.T.Unix()) }

// sees is what a check finds in a report, and what it is told to.
func (e temporalEvent) sees(t *testing.T, r *simulate.Report) (got, want string) {
	t.Helper()
	counts := map[string]int{"missed": missed(*r)}
	running := []any{}
	for _, one := range r.Runs {
		switch {
		case one.State == "skipped" && one.Why.Code == "full":
			counts["dropped"]++
		case one.State == "running":
			running = append(running, rfc(one.NominalTime))
		default:
			counts[one.State]++
		}
	}
	for _, told := range []struct {
		what string
		n    *int
	}{{"skipped", e.Skipped}, {"dropped", e.Dropped}, {"waiting", e.Buffered}, {"missed", e.Missed}} {
		if told.n != nil {
			got += fmt.Sprintf("; %d %s", counts[told.what], told.what)
			want += fmt.Sprintf("; %d %s", *told.n, told.what)
		}
	}
	if n, counted := e.Running.(float64); counted {
		got += fmt.Sprintf("; %d running", len(running))
		want += fmt.Sprintf("; %v running", n)
	} else if e.Running != nil {
		got += fmt.Sprint("; running ", running)
		want += fmt.Sprint("; running ", e.Running)
	}
	return got, want
}

// due plays fires of a job that are due at once, beside a run in progress or none, some by policies of their own. The answer has who starts, who waits, and how many are skipped.
func due(t *testing.T, overlap map[string]any, running bool, own map[int]string, fires ...int) (starts, waits []int, skipped int) {
	t.Helper()
	script := []any{}
	if running {
		script = append(script, asks(time.Second, "before"))
	}
	names := map[string]int{}
	texts := []string{}
	for _, id := range fires {
		texts = append(texts, fmt.Sprint(id))
		names[fmt.Sprint(id)] = id
	}
	if len(fires) > 0 {
		line := asks(10*time.Second, texts...)
		for i, id := range fires {
			if policy := own[id]; policy != "" {
				line["runs"].([]any)[i].(map[string]any)["overlap"] = policy
			}
		}
		script = append(script, line)
	}
	script = append(script, map[string]any{"at": "20s", "do": "look", "as": "then"})
	r, err := played(t, document{"start": "2026-01-05T00:00:00Z", "until": "1m", "jobs": map[string]any{"job": temporalJob(overlap)},
		"outcomes": map[string]any{"job": []any{map[string]any{"takes": "1h"}}}, "script": script})
	if err != nil {
		t.Fatal(err)
	}
	starts, waits = []int{}, []int{}
	for _, one := range r.Looks["then"].Runs {
		switch {
		case *one.As == "before":
		case one.State == "running":
			starts = append(starts, names[*one.As])
		case one.State == "waiting":
			waits = append(waits, names[*one.As])
		case one.State == "skipped":
			skipped++
		}
	}
	slices.Sort(starts)
	slices.Sort(waits)
	return starts, waits, skipped
}

// tooOld plays a fire that waits for somebody in progress until it is older than the window is long.
func (row peerRow) tooOld(t *testing.T) (got, want string) {
	t.Helper()
	age := time.Duration(row.Given.Waiting[0].Age) * time.Second
	definition := temporalJob(temporalOverlap(row.Given.Overlap))
	definition["expires_after"] = seconds(row.Given.Window)
	r, err := played(t, document{"start": "2026-01-05T00:00:00Z", "until": (age + time.Minute).String(), "jobs": map[string]any{"job": definition},
		"outcomes": map[string]any{"job": []any{map[string]any{"takes": (age + 10*time.Second).String()}}}, "script": []any{asks(time.Second, "before"), asks(10*time.Second, "waits")}})
	if err != nil {
		t.Fatal(err)
	}
	starts, waits, expired := 0, 0, 0
	for _, one := range r.Runs {
		switch {
		case *one.As == "before":
		case one.StartedAt != nil:
			starts++
		case one.State == "waiting":
			waits++
		case one.State == "skipped" && one.Why.Code == "expired":
			expired++
		}
	}
	return fmt.Sprintf("%d start, %d wait, %d too old", starts, waits, expired),
		fmt.Sprintf("%d start, %d wait, %d too old", row.Expect.Starts, readAs[int](t, row.Expect.Buffered), *row.Expect.TooOld)
}

func TestTemporalSchedules(t *testing.T) {
	rows := peerRows(t, "temporal-buffer.json")
	const jitter = "a jitter of an hour, where 10 minutes is the most"
	not := map[string]string{
		"timeline-backfill":         "backfills are not built yet",
		"timeline-pause-on-failure": "a look does not tell whether a job is paused",
		"timeline-poke-in-jitter":   jitter,
		"timeline-pause-in-jitter":  jitter,
	}
	for _, row := range rows {
		policy := row.Overlap
		if len(row.Buffer) > 0 {
			policy = row.Buffer[0].Policy
		}
		if policy != "" && temporalOverlap(policy) == nil {
			not[row.ID] = "this policy is not built yet"
		}
	}
	otherwise := map[string]string{
		"e2e-06":             "0 runs",
		"buffer-10":          "starts [7], waits []",
		"timeline-terminate": "[2022-06-01T00:15:00Z at 2022-06-01T00:15:00Z 2022-06-01T01:10:00Z at 2022-06-01T01:10:00Z], 0 refused",
	}
	agrees(t, rows, not, otherwise, func(t *testing.T, row peerRow) (got, want string) {
		switch row.Kind {
		case "process_buffer":
			policy := "SKIP" // where there is no fire
			var fires []int
			own := map[int]string{} // of those that go by another than the last
			for _, fire := range row.Buffer {
				policy, fires = fire.Policy, append(fires, fire.ID)
			}
			for _, fire := range row.Buffer {
				if fire.Policy != policy {
					own[fire.ID] = temporalOverlap(fire.Policy)["policy"].(string)
				}
			}
			starts, waits, skipped := due(t, temporalOverlap(policy), row.Running, own, fires...)
			expected := slices.Clone(row.Expect.Overlapping)
			if row.Expect.StartOne != nil {
				expected = append(expected, *row.Expect.StartOne)
			}
			got, want = fmt.Sprintf("starts %v, waits %v", starts, waits), fmt.Sprintf("starts %v, waits %v", expected, row.Expect.NewBuffer)
			if row.Expect.Skipped != nil {
				got, want = fmt.Sprintf("%s, %d skipped", got, skipped), fmt.Sprintf("%s, %d skipped", want, *row.Expect.Skipped)
			}
			return got, want
		case "invoker":
			var fires []int
			for i := range row.Given.Due {
				fires = append(fires, i+1)
			}
			if row.Expect.TooOld != nil {
				return row.tooOld(t)
			}
			waiting := 0
			if row.Expect.Buffered != nil {
				waiting = readAs[int](t, row.Expect.Buffered)
			}
			starts, waits, skipped := due(t, temporalOverlap(row.Given.Overlap), false, nil, fires...)
			return fmt.Sprintf("%d start, %d wait, %d skipped", len(starts), len(waits), skipped), fmt.Sprintf("%d start, %d wait, %d skipped", row.Expect.Starts, waiting, *row.Expect.Skipped)
		case "timeline":
			return row.timeline(t)
		}
		definition := temporalJob(temporalOverlap("SKIP"))
		definition["paused"] = true
		line := map[string]any{"at": "20s", "job": "job", "do": "trigger"}
		if row.Given.Action == "" { // its only fire is due meanwhile
			line["do"] = "resume"
			definition["schedule"] = map[string]any{"at": "2026-01-05T00:00:10Z"}
		}
		r, err := played(t, document{"start": "2026-01-05T00:00:00Z", "until": "1m", "jobs": map[string]any{"job": definition}, "script": []any{line}})
		if err != nil {
			t.Fatal(err)
		}
		started, _ := nominal(r, time.Time{}, time.Date(2026, 1, 5, 0, 1, 0, 0, time.UTC))
		return fmt.Sprintf("%d runs", len(started)), fmt.Sprintf("%d runs", row.Expect.Runs)
	})
}
