package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The job of docs/api.md, with everything in it.
const full = `{"description": "Daily report to billing",
 "schedule": {"cron": "*/5 * * * *", "timezone": "Europe/Berlin", "start": null, "end": null, "jitter": "0s"},
 "target": {"http": {"url": "https://example.org/hook", "method": "POST", "headers": {"Authorization": "Bearer x"}}},
 "payload": {"report": "daily"}, "queue": "default", "priority": "normal",
 "timeout": "30s", "guarantee": "at_least_once", "catch_up": {"mode": "one", "window": "365d"},
 "retry": {"max_attempts": 5, "initial": "1s", "factor": 2, "max": "5m"},
 "retention": "30d", "labels": {"team": "billing"}, "paused": false}`

func TestWhatGetGivesPutAccepts(t *testing.T) {
	s := start(t, 0, nil)
	created := s.send("PUT", "/v1/jobs/report", full).is(201)
	if next := into[wire.Job](created).Status.NextRuns; len(next) != 5 {
		t.Errorf("%d next runs, want 5", len(next))
	}
	got := s.send("GET", "/v1/jobs/report", "").is(200)
	again := s.send("PUT", "/v1/jobs/report", string(got.body)).is(200)
	if got.header.Get("ETag") == "" || again.header.Get("ETag") != got.header.Get("ETag") {
		t.Errorf("ETag %q, then %q: putting back what was got made another generation", got.header.Get("ETag"), again.header.Get("ETag"))
	}
	var sent, shown map[string]any
	if err := json.Unmarshal([]byte(full), &sent); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got.body, &shown); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"description", "target", "payload", "queue", "priority", "timeout", "guarantee", "catch_up", "retry", "retention", "labels"} {
		if !reflect.DeepEqual(sent[field], shown[field]) {
			t.Errorf("%s: sent %v, got back %v", field, sent[field], shown[field])
		}
	}
	// Under another name it is another job.
	s.send("PUT", "/v1/jobs/copy", string(got.body)).refused(422, "invalid")
	s.send("PUT", "/v1/jobs/copy", strings.Replace(string(got.body), `{"name":"report",`, "{", 1)).is(201)
	if name := into[wire.Job](s.send("GET", "/v1/jobs/copy", "")).Name; name != "copy" {
		t.Errorf("name %q, want copy", name)
	}
}

func TestEditsAreGuardedByETag(t *testing.T) {
	s := start(t, 0, nil)
	first := s.send("PUT", "/v1/jobs/a", echo, "If-None-Match", "*").is(201).header.Get("ETag")
	changed := strings.Replace(echo, "{", `{"timeout": "5s", `, 1)
	s.send("PUT", "/v1/jobs/a", changed, "If-None-Match", "*").refused(412, "job_exists")
	second := s.send("PUT", "/v1/jobs/a", changed, "If-Match", first).is(200).header.Get("ETag")
	if second == first {
		t.Fatal("an edit left the ETag as it was")
	}
	s.send("PUT", "/v1/jobs/a", echo, "If-Match", first).refused(412, "precondition_failed")
	s.send("PUT", "/v1/jobs/none", echo, "If-Match", "*").refused(412, "precondition_failed")
	s.send("DELETE", "/v1/jobs/a", "", "If-Match", first).refused(412, "precondition_failed")
	s.send("DELETE", "/v1/jobs/a", "", "If-Match", second).is(204)
	s.send("GET", "/v1/jobs/a", "").refused(404, "job_not_found")
	s.send("DELETE", "/v1/jobs/a", "").refused(404, "job_not_found")
}

func TestP9_repeating_a_put_whose_answer_was_lost_gives_200(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo, "If-None-Match", "*").is(201)
	s.send("PUT", "/v1/jobs/a", echo, "If-None-Match", "*").is(200)
	tag := s.send("GET", "/v1/jobs/a", "").header.Get("ETag")
	changed := strings.Replace(echo, "{", `{"timeout": "5s", `, 1)
	s.send("PUT", "/v1/jobs/a", changed, "If-Match", tag).is(200)
	s.send("PUT", "/v1/jobs/a", changed, "If-Match", tag).is(200)
}

// Of two who saw the same job, one pauses it; the other is told so, even where the pause would change nothing, and takes nothing back.
func TestPauseAndResumeAreGuardedByETag(t *testing.T) {
	s := start(t, 0, nil)
	seen := s.send("PUT", "/v1/jobs/a", echo).is(201).header.Get("ETag")
	byAda := s.send("POST", "/v1/jobs/a/pause", `{"reason": "do not resume"}`, "If-Match", seen).is(200).header.Get("ETag")
	for _, body := range []string{`{}`, `{"reason": "do not resume"}`, `{"reason": "mine"}`} {
		s.send("POST", "/v1/jobs/a/pause", body, "If-Match", seen).refused(412, "precondition_failed")
	}
	s.send("POST", "/v1/jobs/a/resume", `{}`, "If-Match", seen).refused(412, "precondition_failed")
	if j := into[wire.Job](s.send("GET", "/v1/jobs/a", "").is(200)); !j.Paused || j.Status.PausedReason != "do not resume" || j.Status.ETag != byAda {
		t.Errorf("paused %v, reason %q, %s; want it as Ada left it", j.Paused, j.Status.PausedReason, j.Status.ETag)
	}
	resumed := s.send("POST", "/v1/jobs/a/resume", `{}`, "If-Match", byAda).is(200).header.Get("ETag")
	s.send("POST", "/v1/jobs/a/resume", `{}`, "If-Match", byAda).refused(412, "precondition_failed")
	s.send("POST", "/v1/jobs/a/pause", `{}`, "If-Match", resumed).is(200)
	s.send("POST", "/v1/jobs/a/resume", `{}`, "If-Match", "*").is(200)
	s.send("POST", "/v1/jobs/none/pause", `{}`, "If-Match", "*").refused(404, "job_not_found")
}

func TestPauseAndResume(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"schedule": {"every": "1m"}, `, 1)).is(201)
	paused := into[wire.Job](s.send("POST", "/v1/jobs/a/pause", `{"reason": "moving house"}`).is(200))
	if !paused.Paused || paused.Status.PausedReason != "moving house" || len(paused.Status.NextRuns) != 0 {
		t.Errorf("paused %v, reason %q, next %v", paused.Paused, paused.Status.PausedReason, paused.Status.NextRuns)
	}
	resumed := into[wire.Job](s.send("POST", "/v1/jobs/a/resume", `{}`).is(200))
	if resumed.Paused || resumed.Status.PausedReason != "" || len(resumed.Status.NextRuns) == 0 {
		t.Errorf("resumed: paused %v, reason %q, next %v", resumed.Paused, resumed.Status.PausedReason, resumed.Status.NextRuns)
	}
	s.send("POST", "/v1/jobs/none/pause", `{}`).refused(404, "job_not_found")
	s.send("POST", "/v1/jobs/none/resume", `{}`).refused(404, "job_not_found")
}

func TestJobsAreListedInPages(t *testing.T) {
	s := start(t, 0, nil)
	for i := range 25 {
		text := fmt.Sprintf(`{"target": {"handler": {"name": "echo"}}, "labels": {"half": "%d", "odd": "a=b,c"}, "paused": %v}`, i%2, i == 3)
		s.send("PUT", fmt.Sprintf("/v1/jobs/job-%02d", i), text).is(201)
	}
	s.send("PUT", "/v1/jobs/other", echo).is(201)
	names := func(query string) []string {
		var all []string
		cursor := ""
		for {
			path := "/v1/jobs?limit=7&" + query
			if cursor != "" {
				path += "&cursor=" + url.QueryEscape(cursor)
			}
			page := into[wire.JobPage](s.send("GET", path, "").is(200))
			for _, j := range page.Items {
				all = append(all, j.Name)
			}
			if cursor = page.Next; cursor == "" {
				return all
			}
		}
	}
	for query, want := range map[string]int{
		"": 26, "prefix=job-": 25, "prefix=job-1": 10, "label=half=1": 12, "label=half=1&label=odd=a%3Db%2Cc": 12, "label=half=2": 0,
		"paused=true": 1, "paused=false": 25, "prefix=zzz": 0,
		"contains=OB-1": 10, "contains=b-2&prefix=job-2": 5, "contains=zzz": 0,
	} {
		got := names(query)
		if len(got) != want {
			t.Errorf("%q gives %d jobs, want %d: %v", query, len(got), want, got)
		}
		for i := 1; i < len(got); i++ {
			if got[i-1] >= got[i] {
				t.Errorf("%q: %s before %s", query, got[i-1], got[i])
			}
		}
	}
	if fields := s.send("GET", "/v1/jobs?cursor=nonsense", "").refused(422, "invalid"); fields["cursor"] == "" {
		t.Errorf("fields %v, want cursor", fields)
	}
	if text := s.send("GET", "/v1/jobs?prefix=zzz", "").is(200).body; strings.TrimSpace(string(text)) != `{"items":[]}` {
		t.Errorf("an empty page is %s", text)
	}
}

func TestManyJobsAtOnceEachWithItsVerdict(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/old", echo).is(201)
	batch := `{"jobs": [
		{"name": "new", "target": {"handler": {"name": "echo"}}},
		{"name": "bad", "target": {"handler": {"name": "echo"}}, "queue": "nowhere"},
		{"name": "old", "target": {"handler": {"name": "echo"}}}]}`
	verdicts := into[wire.JobVerdicts](s.send("POST", "/v1/jobs/batch", batch).is(200)).Items
	if len(verdicts) != 3 || verdicts[0].Status != 201 || verdicts[1].Status != 422 || verdicts[2].Status != 200 {
		t.Fatalf("got %+v, want 201, 422 and 200", verdicts)
	}
	if p := verdicts[1].Problem; p == nil || p.Code != "invalid" || len(p.Errors) != 1 || p.Errors[0].Field != "queue" {
		t.Errorf("problem %+v, want one that names queue", p)
	}
	if tag := s.send("GET", "/v1/jobs/new", "").is(200).header.Get("ETag"); verdicts[0].Name != "new" || verdicts[0].ETag != tag {
		t.Errorf("verdict %+v, want the job's name and ETag %s", verdicts[0], tag)
	}
	s.send("GET", "/v1/jobs/bad", "").refused(404, "job_not_found")

	twice := `{"jobs": [{"name": "x", "target": {"handler": {"name": "echo"}}}, {"name": "x", "target": {"handler": {"name": "text"}}}]}`
	if fields := s.send("POST", "/v1/jobs/batch", twice).refused(422, "invalid"); fields["jobs[1].name"] == "" {
		t.Errorf("fields %v, want jobs[1].name", fields)
	}
	s.send("GET", "/v1/jobs/x", "").refused(404, "job_not_found")
	reserved := `{"jobs": [{"name": "batch", "target": {"handler": {"name": "echo"}}}]}`
	s.send("POST", "/v1/jobs/batch", reserved).refused(422, "invalid")
	many := `{"jobs": [` + strings.Repeat(`{"name": "x", "target": {"handler": {"name": "echo"}}},`, 1000) + `{"name": "y", "target": {"handler": {"name": "echo"}}}]}`
	if fields := s.send("POST", "/v1/jobs/batch", many).refused(400, "malformed"); fields["jobs"] == "" {
		t.Errorf("fields %v, want jobs", fields)
	}
}

func TestP12_tenants_see_nothing_of_each_other(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "echo", "fail", 1), s.of("ann")...).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`, append(s.of("ann"), "Idempotency-Key", "k")...).is(202)).ID
		settle()
		if letters := into[wire.DeadLetterPage](s.send("GET", "/v1/dead-letters", "", s.of("ann")...).is(200)).Items; len(letters) != 1 {
			t.Fatalf("%d dead letters of ann, want 1", len(letters))
		}
		bob := s.of("bob")
		s.send("GET", "/v1/jobs/a", "", bob...).refused(404, "job_not_found")
		s.send("DELETE", "/v1/jobs/a", "", bob...).refused(404, "job_not_found")
		s.send("POST", "/v1/jobs/a/pause", `{}`, bob...).refused(404, "job_not_found")
		s.send("POST", "/v1/jobs/a/runs", `{}`, bob...).refused(404, "job_not_found")
		s.send("GET", "/v1/jobs/a/runs", "", bob...).refused(404, "job_not_found")
		s.send("GET", "/v1/runs/"+id, "", bob...).refused(404, "run_not_found")
		s.send("GET", "/v1/runs/"+id+"/logs", "", bob...).refused(404, "run_not_found")
		s.send("POST", "/v1/runs/"+id+"/cancel", `{}`, bob...).refused(404, "run_not_found")
		s.send("POST", "/v1/runs/"+id+"/retry", `{}`, bob...).refused(404, "run_not_found")
		for _, path := range []string{"/v1/jobs", "/v1/runs", "/v1/runs?job=a", "/v1/dead-letters"} {
			if text := strings.TrimSpace(string(s.send("GET", path, "", bob...).is(200).body)); text != `{"items":[]}` {
				t.Errorf("bob's %s shows %s", path, text)
			}
		}
		if done := into[wire.BulkVerdicts](s.send("POST", "/v1/dead-letters/redrive", `{"matching": {}}`, bob...).is(200)).Items; len(done) != 0 {
			t.Errorf("bob redrove %v", done)
		}
		// The same name and key are another job and another run.
		s.send("PUT", "/v1/jobs/a", echo, bob...).is(201)
		other := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`, append(bob, "Idempotency-Key", "k")...).is(202)).ID
		if other == id {
			t.Error("two tenants share a run")
		}
	})
}

func TestADryRunTellsWhatWouldBeDoneAndStoresNothing(t *testing.T) {
	s := start(t, 0, nil)
	tag := s.send("PUT", "/v1/jobs/old", echo).is(201).header.Get("ETag")
	slower := strings.Replace(echo, "{", `{"timeout": "5s", `, 1)

	tried := s.send("PUT", "/v1/jobs/old?dry_run=true", slower).is(200)
	if got := into[wire.Job](tried); got.Timeout.String() != "5s" || got.Status.Generation != 0 || got.Status.ETag != "" || tried.header.Get("ETag") != tag {
		t.Errorf("tried: %s, ETag %s, want that of what stands, %s", tried.body, tried.header.Get("ETag"), tag)
	}
	if tried = s.send("PUT", "/v1/jobs/new?dry_run=true", echo).is(200); tried.header.Get("ETag") != "" {
		t.Errorf("ETag %q of a job that is nowhere", tried.header.Get("ETag"))
	}
	s.send("PUT", "/v1/jobs/old?dry_run=true", slower, "If-Match", `"1"`).refused(412, "precondition_failed")
	s.send("PUT", "/v1/jobs/old?dry_run=true", `{"target": {"handler": {"name": "echo"}}, "queue": "nowhere"}`).refused(422, "invalid")

	batch := `{"jobs": [{"name": "new", "target": {"handler": {"name": "echo"}}}, {"name": "old", "timeout": "5s", "target": {"handler": {"name": "echo"}}},
		{"name": "bad", "target": {"handler": {"name": "echo"}}, "queue": "nowhere"}]}`
	verdicts := into[wire.JobVerdicts](s.send("POST", "/v1/jobs/batch?dry_run=true", batch).is(200)).Items
	if verdicts[0].Change != "created" || verdicts[2].Status != 422 || verdicts[2].Change != "" {
		t.Errorf("verdicts %+v", verdicts)
	}
	if v := verdicts[1]; v.Name != "old" || v.Status != 200 || v.Change != "updated" || v.ETag != "" {
		t.Errorf("verdict %+v, want what would be done, and not the job", v)
	}
	if now := s.send("GET", "/v1/jobs/old", "").is(200).header.Get("ETag"); now != tag {
		t.Errorf("a dry run made another generation: %s, then %s", tag, now)
	}
	s.send("GET", "/v1/jobs/new", "").refused(404, "job_not_found")
	verdicts = into[wire.JobVerdicts](s.send("POST", "/v1/jobs/batch", batch).is(200)).Items
	if verdicts[0].Change != "created" || verdicts[1].Change != "updated" || verdicts[1].ETag == "" {
		t.Errorf("in earnest: %+v", verdicts)
	}
	verdicts = into[wire.JobVerdicts](s.send("POST", "/v1/jobs/batch", batch).is(200)).Items
	if verdicts[0].Change != "unchanged" || verdicts[1].Change != "unchanged" {
		t.Errorf("once more: %+v", verdicts)
	}
}
