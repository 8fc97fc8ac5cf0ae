package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// answered is what the OpenAPI document says of answers.
type answered struct {
	Paths map[string]map[string]*struct {
		OperationID string
		Parameters  []struct{ Name string }
		Responses   map[string]struct {
			Content map[string]struct{ Schema *schemaText }
		}
	}
}

// whole are the lists in answers that are no page of a listing, and why an answer cannot be large by them.
var whole = map[string]string{
	"get-gate.blocked_by":            "20 runs at most",
	"put-gate.blocked_by":            "20 runs at most",
	"close-gate.blocked_by":          "20 runs at most",
	"open-gate.blocked_by":           "20 runs at most",
	"simulate.runs":                  "at most 5000 runs, without payloads, and small results",
	"simulate.skipped":               "a stretch each, of at most 5000 runs",
	"simulate.refused":               "lines that the request gave",
	"preview-cron.fires":             "at most 1000 fires",
	"preview-cron.fields":            "at most 6 fields",
	"preview-cron.elsewhere":         "four schedulers",
	"plan-retry.attempts":            "at most 100 attempts",
	"plan-retry.crowd":               "96 stretches",
	"plan-queue.by_priority":         "three priorities",
	"plan-queue.series":              "240 stretches",
	"plan-capacity.gates":            "told by the command line alone",
	"plan-capacity.limits":           "at most 23",
	"plan-capacity.parameters":       "at most 9",
	"plan-capacity.prices":           "always the same 20",
	"plan-capacity.quotas_to_raise":  "at most 5",
	"plan-order.by_priority":         "three priorities",
	"plan-once.compare":              "each of two guarantees, nine faults and four guards",
	"plan-once.events":               "what happens to one run of two attempts",
	"plan-order.events":              "at most four of each of 1000 messages",
	"list-messages.items":            "at most 100 of each of three priorities and three states, in a few words",
	"list-job-fires.fires":           "at most 100 fires",
	"get-job-calendar.days":          "at most 371 days",
	"get-schedule-load.fires":        "at most 1,440 numbers",
	"get-schedule-load.minutes":      "60 numbers",
	"preview-cron.next":              "at most 1000 times",
	"get-stats.points":               "at most 1,442 minutes or 770 hours",
	"get-stats.lateness_bounds_ms":   "always the same 16",
	"get-stats.duration_bounds_ms":   "always the same 16",
	"validate-workflow.steps":        "the steps of the request, at most 300",
	"validate-workflow.expressions":  "the expressions of the request, which has 32 KiB at most",
	"simulate-workflow.steps":        "the steps of the request, at most 300",
	"get-session.scopes":             "at most five",
	"ready.checks":                   "what the process needs, in a few lines",
	"take-work.items":                "offers of at most max runs, without what they do",
	"put-jobs.items":                 "one verdict each: of a dry run without the job, else with a job as it was sent",
	"pause-jobs.items":               "one verdict each, without the job",
	"resume-jobs.items":              "one verdict each, without the job",
	"delete-jobs.items":              "one verdict each, without the job",
	"label-jobs.items":               "one verdict each, without the job",
	"pause-jobs.remaining":           "jobs that the request gave",
	"resume-jobs.remaining":          "jobs that the request gave",
	"delete-jobs.remaining":          "jobs that the request gave",
	"label-jobs.remaining":           "jobs that the request gave",
	"export-jobs.missing":            "names that the request gave",
	"export-jobs.remaining":          "names that the request gave",
	"trigger-jobs.items":             "one verdict each, without labels",
	"cancel-runs.items":              "one verdict each, without labels",
	"retry-runs.items":               "one verdict each, without labels",
	"redrive.items":                  "one verdict each, without labels",
	"cancel-runs.remaining":          "IDs that the request gave",
	"retry-runs.remaining":           "IDs that the request gave",
	"redrive.remaining":              "IDs that the request gave",
	"discard-dead-letters.items":     "one verdict each, without labels",
	"discard-dead-letters.remaining": "IDs that the request gave",
	"create-token.scopes":            "five names at most",
	"create-session.scopes":          "three names at most",
	"list-last-runs.items":           "one of each job that the request named, with 20 runs in a few words",
	"group-dead-letters.items":       "at most 200 groups",
	"get-run.waiting":                "three reasons at most, one of which may name ten runs",
	"trigger-job.waiting":            "told of a run alone",
	"cancel-run.waiting":             "told of a run alone",
	"retry-run.waiting":              "told of a run alone",
	"get-job.gates":                  "at most 8 names",
	"put-job.gates":                  "at most 8 names",
	"patch-job.gates":                "at most 8 names",
	"pause-job.gates":                "at most 8 names",
	"resume-job.gates":               "at most 8 names",
	"release-run.waiting":            "told of a run alone",
	"release-run.steps":              "told of a run alone",
	"release-run.attempts":           "the newest five",
	"get-gate.keys":                  "at most 20, of at most 50 bytes",
	"put-gate.keys":                  "none: that of a job's own gate",
	"close-gate.keys":                "none: that of a job's own gate",
	"open-gate.keys":                 "none: that of a job's own gate",
	"get-run.attempts":               "the newest five",
	"get-run.steps":                  "at most 300, with a path and a state",
	"trigger-job.steps":              "told of a run alone",
	"cancel-run.steps":               "told of a run alone",
	"retry-run.steps":                "told of a run alone",
	"get-run-graph.steps":            "at most 300, of a definition of at most 32 KB",
	"trigger-job.attempts":           "the newest five",
	"cancel-run.attempts":            "the newest five",
	"retry-run.attempts":             "the newest five",
}

// listings are the queries with which each listing is walked. The test fills every one of them.
var listings = map[string][]string{
	"list-jobs":     {"", "label=team=a", "paused=true", "prefix=job-1"},
	"list-runs":     {"", "state=scheduled", "label=odd=1", "state=failed,dead", "job=many", "job=many&label=odd=1", "error=ACCOUNT", "job=fails&error=such"},
	"list-job-runs": {"", "state=scheduled", "label=team=a"},

	"list-job-generations": {""},
	"list-dead-letters":    {"", "job=fails", "error=No+such+Account", "pattern=handler:+no+such+account"},
	"list-tokens":          {""},
	"list-secrets":         {""},
	"list-queues":          {""},
	"list-gates":           {""},
	"list-line":            {""},
	"list-workers":         {""},
	"list-run-steps":       {""},
}

// Every listing of the document ends its pages before they are larger than an answer may be, and its cursor goes on behind what was
// shown: nothing comes twice, and nothing is left out. A list in an answer that is no such page has a reason above.
func TestP11_EveryListingEndsItsPages(t *testing.T) {
	const most = 4 << 10
	var wide *server // the same without a bound that matters
	narrow := func(cfg *api.Config) {
		everything(t)(cfg)
		cfg.Queues = func(context.Context, string) (all []wire.Queue, err error) {
			for i := range 40 {
				all = append(all, wire.Queue{Name: fmt.Sprintf("queue-%02d", 39-i), Priorities: map[string]wire.Depth{}, Lacking: []string{strings.Repeat("handler", i)}})
			}
			return all, nil
		}
		cfg.Workers = func(context.Context, string) (all []wire.Worker, err error) {
			for i := range 40 {
				all = append(all, wire.Worker{ID: fmt.Sprintf("w-%d", i/3), Queue: fmt.Sprintf("q-%d", i%3), Handlers: []string{strings.Repeat("h", 100+i)}})
			}
			return all, nil
		}
		handler, err := api.New(*cfg)
		if err != nil {
			t.Fatal(err)
		}
		wide = &server{t: t, handler: handler}
		cfg.PageBytes = most
	}
	runningWith(t, narrow, func(t *testing.T, s *server) {
		wide.t = t
		s.fillListings()
		var d answered
		if err := json.Unmarshal(s.send("GET", "/openapi.json", "").is(200).body, &d); err != nil {
			t.Fatal(err)
		}
		surface := s.surface()
		walked, excused := map[string]bool{}, map[string]bool{}
		for _, path := range sorted(d.Paths) {
			for _, method := range sorted(d.Paths[path]) {
				op := d.Paths[path][method]
				for status, response := range op.Responses {
					schema := response.Content["application/json"].Schema
					if status >= "300" || schema == nil {
						continue
					}
					for name, property := range surface.resolve(schema).Properties {
						if surface.resolve(property).Type != "array" {
							continue
						}
						if field := op.OperationID + "." + name; whole[field] != "" {
							excused[field] = true
							continue
						}
						queries := listings[op.OperationID]
						if queries == nil || method != "get" || name != "items" || surface.resolve(schema).Properties["next"] == nil {
							t.Errorf("%s answers with the list %s: want a page of a listing that this test fills, or a reason in whole", op.OperationID, name)
							continue
						}
						for _, name := range []string{"limit", "cursor"} {
							if !slices.ContainsFunc(op.Parameters, func(p struct{ Name string }) bool { return p.Name == name }) {
								t.Errorf("%s has no parameter %s", op.OperationID, name)
							}
						}
						walked[op.OperationID] = true
						for _, query := range queries {
							s.walkListing(wide, strings.NewReplacer("{job}", "many", "{gate}", "job:slow", "{run}", s.lastOf("steps")).Replace(path)+"?"+query, most)
						}
					}
				}
			}
		}
		if len(walked) != len(listings) || len(excused) != len(whole) {
			t.Errorf("walked %v and passed over %v, want all of %v and %v", sorted(walked), sorted(excused), sorted(listings), sorted(whole))
		}
	})
}

// fillListings makes every listing several pages long.
func (s *server) fillListings() {
	s.t.Helper()
	for i := range 40 {
		job := fmt.Sprintf(`{"paused": %t, "labels": {"team": %q}, "payload": %q, "overlap": "queue", "target": {"handler": {"name": "echo"}}}`, i%2 == 0, string(rune('a'+i%3)), strings.Repeat("x", 10*i))
		if i == 17 { // larger than a page: it is one by itself
			job = strings.Replace(job, `"payload": "`, `"payload": "`+strings.Repeat("y", 6000), 1)
		}
		s.send("PUT", fmt.Sprintf("/v1/jobs/job-%d", i), job).is(201)
		s.send("POST", "/v1/tokens", fmt.Sprintf(`{"name": "token-%d", "scopes": ["read"]}`, i)).is(201)
		s.send("PUT", fmt.Sprintf("/v1/secrets/secret-%d", i), `{"value": "abc"}`).is(201)
		s.send("PUT", fmt.Sprintf("/v1/gates/gate-%d", i), `{"limit": 3}`).is(201)
		s.send("POST", fmt.Sprintf("/v1/gates/gate-%d/close", i), fmt.Sprintf(`{"reason": %q}`, strings.Repeat("z", 6*i))).is(200)
	}
	labels := `"team": "a", "odd": "1"`
	for i := range 9 {
		labels += fmt.Sprintf(`, "l%d": %q`, i, strings.Repeat("v", 100))
	}
	for i := range 20 {
		s.send("PUT", "/v1/jobs/many", fmt.Sprintf(`{"description": %q, "target": {"handler": {"name": "echo"}}}`, strings.Repeat("x", 10*i)))
	}
	s.send("PUT", "/v1/jobs/many", `{"labels": {`+labels+`}, "target": {"handler": {"name": "echo"}}}`).is(200)
	s.send("PUT", "/v1/jobs/slow", `{"overlap": "queue", "timeout": "1h", "target": {"handler": {"name": "wait"}}}`).is(201)
	s.send("PUT", "/v1/jobs/fails", strings.Replace(echo, "echo", "fail", 1)).is(201)
	steps := make([]string, 40)
	for i := range steps {
		steps[i] = fmt.Sprintf(`"s%02d-%s": {"handler": {"name": "echo"}}`, i, strings.Repeat("x", i))
	}
	s.send("PUT", "/v1/jobs/steps", `{"target": {"workflow": {"steps": {`+strings.Join(steps, ",")+`}}}}`).is(201)
	s.send("POST", "/v1/jobs/steps/runs", `{}`).is(202)
	var runs []string
	for i := range 40 {
		runs = append(runs, fmt.Sprintf(`{"job": "many", "delay": "%dm"}`, 1+i/4), `{"job": "fails"}`, `{"job": "slow"}`)
	}
	s.send("POST", "/v1/runs/batch", `{"runs": [`+strings.Join(runs, ",")+`]}`).is(200)
	settle()
}

// lastOf is the newest run of a job.
func (s *server) lastOf(job string) string {
	return into[wire.RunPage](s.send("GET", "/v1/jobs/"+job+"/runs", "").is(200)).Items[0].ID
}

// walkListing follows next, and compares with what one page without a bound has.
func (s *server) walkListing(wide *server, path string, most int) {
	s.t.Helper()
	type page struct {
		Items []json.RawMessage
		Next  string
	}
	var want []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		p := into[page](wide.send("GET", path+"&limit=1000"+cursorOf(cursor), "").is(http.StatusOK))
		for _, item := range p.Items {
			want = append(want, string(item))
		}
		cursor = p.Next
	}
	if len(want) < 5 {
		s.t.Errorf("%s has %d items, which is no test of pages", path, len(want))
	}
	for _, limit := range []string{"&limit=1000", "&limit=3", ""} {
		var got []string
		cursor, pages, full := "", 0, 0
		for ; pages == 0 || cursor != ""; pages++ {
			r := s.send("GET", path+limit+cursorOf(cursor), "").is(http.StatusOK)
			p := into[page](r)
			if len(p.Items) == 0 && p.Next != "" || len(r.body) > most && len(p.Items) > 1 {
				s.t.Errorf("%s: a page of %d items has %d bytes, want at most %d, and one item at least", path+limit, len(p.Items), len(r.body), most)
			}
			full = max(full, len(p.Items))
			for _, item := range p.Items {
				got = append(got, string(item))
			}
			if cursor = p.Next; pages > 200 {
				s.t.Fatalf("%s does not end", path)
			}
		}
		if !slices.Equal(got, want) {
			s.t.Errorf("%s in %d pages: %d items, want the %d of an answer without a bound, in their order", path+limit, pages, len(got), len(want))
		}
		if limit == "&limit=1000" && pages < 2 {
			s.t.Errorf("%s is one page of %d items: too little for this test", path, full)
		}
	}
}

func cursorOf(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&cursor=" + url.QueryEscape(cursor)
}

// A cursor of another listing, and one that was made up, is refused by the lists that are there as a whole too.
func TestP11_CursorsOfWholeListsAreRefusedWhereTheyAreNone(t *testing.T) {
	s := start(t, 0, func(cfg *api.Config) {
		cfg.Workers = func(context.Context, string) ([]wire.Worker, error) {
			return []wire.Worker{{ID: "a", Queue: "q"}, {ID: "b", Queue: "q"}, {ID: "c", Queue: "q"}}, nil
		}
	})
	next := into[wire.WorkerPage](s.send("GET", "/v1/workers?limit=2", "").is(200)).Next
	if page := into[wire.WorkerPage](s.send("GET", "/v1/workers?cursor="+next, "").is(200)); len(page.Items) != 1 || page.Items[0].ID != "c" || page.Next != "" {
		t.Errorf("behind b: %+v", page)
	}
	for _, cursor := range []string{"x", "bm9uZQ", "W10", "IiI", next + "%0A", next + "%0D", next[:4] + "%0A" + next[4:], "%0A" + next, next + "%20"} {
		for _, path := range []string{"/v1/workers", "/v1/queues"} {
			if fields := s.send("GET", path+"?cursor="+cursor, "").refused(http.StatusUnprocessableEntity, "invalid"); fields["cursor"] == "" {
				t.Errorf("%s with the cursor %s: %v", path, cursor, fields)
			}
		}
	}
}

// A dry run of a batch is small, however large the jobs are that it is given and that stand; so is the answer to many runs of jobs with
// large labels.
func TestP11_AnswersToManyAreSmall(t *testing.T) {
	s := start(t, 0, nil)
	var labels, jobs, runs []string
	for i := range 32 {
		labels = append(labels, fmt.Sprintf(`"l%d": "%s"`, i, strings.Repeat(`\u0001`, 128)))
	}
	for i := range 30 {
		jobs = append(jobs, fmt.Sprintf(`{"name": "job-%d", "payload": %q, "labels": {%s}, "target": {"handler": {"name": "echo"}}}`, i, strings.Repeat("x", 8000), strings.Join(labels, ",")))
		runs = append(runs, fmt.Sprintf(`{"job": "job-%d"}`, i))
	}
	s.send("POST", "/v1/jobs/batch", `{"jobs": [`+strings.Join(jobs, ",")+"]}").is(200)
	short := strings.NewReplacer(strings.Repeat("x", 8000), "x", strings.Join(labels, ","), "")
	for what, batch := range map[string][]string{"unchanged": jobs, "updated": strings.Split(short.Replace(strings.Join(jobs, "\x00")), "\x00")} {
		got := s.send("POST", "/v1/jobs/batch?dry_run=true", `{"jobs": [`+strings.Join(batch, ",")+"]}").is(200)
		for i, v := range into[wire.JobVerdicts](got).Items {
			if v.Name != fmt.Sprintf("job-%d", i) || v.Status != 200 || v.Change != what || v.Problem != nil {
				t.Errorf("verdict %d is %+v, want %s", i, v, what)
			}
		}
		if len(got.body) > 100*len(batch) {
			t.Errorf("a dry run that finds %d jobs %s answers %d bytes", len(batch), what, len(got.body))
		}
	}
	triggered := s.send("POST", "/v1/runs/batch", `{"runs": [`+strings.Join(runs, ",")+"]}").is(200)
	cancelled := s.send("POST", "/v1/runs/cancel", `{"matching": {}}`).is(200)
	if n := len(into[wire.BulkVerdicts](cancelled).Items); n != len(runs) {
		t.Errorf("%d runs were cancelled", n)
	}
	for _, got := range []reply{triggered, cancelled} {
		if len(got.body) > 100*len(runs) {
			t.Errorf("%s on %d runs answers %d bytes", got.what, len(runs), len(got.body))
		}
	}
}

// A cursor is taken as it was given, and in no other form that is decoded to the same.
func TestP11_CursorsAreTakenAsTheyWereGiven(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		for _, name := range []string{"a", "b"} {
			s.send("PUT", "/v1/jobs/"+name, strings.Replace(echo, "echo", "fail", 1)).is(201)
			s.send("POST", "/v1/jobs/"+name+"/runs", `{}`).is(202)
		}
		settle()
		for _, path := range []string{"/v1/jobs", "/v1/runs", "/v1/dead-letters"} {
			var page struct{ Next string }
			if err := json.Unmarshal(s.send("GET", path+"?limit=1", "").is(200).body, &page); err != nil || page.Next == "" {
				t.Fatalf("%s has no second page: %v", path, err)
			}
			next := page.Next
			s.send("GET", path+"?cursor="+next, "").is(200)
			for _, cursor := range []string{next + "%0A", next + "%0D%0A", next[:3] + "%0A" + next[3:], "%0A" + next, next + "%20", next + "%3D"} {
				if fields := s.send("GET", path+"?cursor="+cursor, "").refused(http.StatusUnprocessableEntity, "invalid"); fields["cursor"] == "" {
					t.Errorf("%s with the cursor %s: %v", path, cursor, fields)
				}
			}
		}
	})
}
