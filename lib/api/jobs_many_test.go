package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// overJobs asks for something of many jobs.
func (s *server) overJobs(what, body string, headers ...string) wire.BulkJobVerdicts {
	s.t.Helper()
	return into[wire.BulkJobVerdicts](s.send("POST", "/v1/jobs/batch/"+what, body, headers...).is(200))
}

func (s *server) jobOf(name string, headers ...string) wire.Job {
	s.t.Helper()
	return into[wire.Job](s.send("GET", "/v1/jobs/"+name, "", headers...).is(200))
}

// saying is what verdicts say, in a few words.
func saying(verdicts []wire.JobVerdict) string {
	var said []string
	for _, v := range verdicts {
		word := v.Change
		if v.Problem != nil {
			word = v.Problem.Code
		}
		said = append(said, fmt.Sprintf("%s %d %s", v.Name, v.Status, word))
	}
	return strings.Join(said, ", ")
}

// jobsOfTwoTeams are a-0 to a-4 of one team and b-0 of another; another tenant has an a-0 too.
func (s *server) jobsOfTwoTeams() {
	for i := range 5 {
		s.send("PUT", fmt.Sprintf("/v1/jobs/a-%d", i), `{"target": {"handler": {"name": "echo"}}, "labels": {"team": "billing"}}`).is(201)
	}
	s.send("PUT", "/v1/jobs/b-0", `{"target": {"handler": {"name": "echo"}}, "labels": {"team": "mail"}}`).is(201)
	s.send("PUT", "/v1/jobs/a-0", `{"target": {"handler": {"name": "echo"}}, "labels": {"team": "billing"}}`, s.of("bob")...).is(201)
}

func TestManyJobsArePausedAndResumed(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.jobsOfTwoTeams()
		s.send("POST", "/v1/jobs/a-1/pause", `{"reason": "by Ada"}`).is(200)
		const billing = `"matching": {"labels": {"team": "billing"}}`
		dry := s.overJobs("pause", `{`+billing+`, "dry_run": true}`)
		if got := saying(dry.Items); dry.Count != 4 || got != "a-0 200 updated, a-2 200 updated, a-3 200 updated, a-4 200 updated" {
			t.Errorf("a dry run: %d, %s", dry.Count, got)
		}
		if s.jobOf("a-0").Paused {
			t.Error("a dry run has paused a job")
		}
		// By parts; what is paused already is come to, and does not count.
		first := s.overJobs("pause", `{`+billing+`, "max": 2, "reason": "the database moves"}`)
		if got := saying(first.Items); first.Count != 2 || first.Next == "" || got != "a-0 200 updated, a-1 200 unchanged, a-2 200 updated" {
			t.Errorf("the first two: %+v, %s", first, got)
		}
		rest := s.overJobs("pause", fmt.Sprintf(`{%s, "max": %d, "reason": "the database moves", "cursor": %q}`, billing, dry.Count-first.Count, first.Next))
		if got := saying(rest.Items); rest.Count != 2 || got != "a-3 200 updated, a-4 200 updated" {
			t.Errorf("the others: %+v, %s", rest, got)
		}
		for name, reason := range map[string]string{"a-0": "the database moves", "a-1": "by Ada", "a-4": "the database moves"} {
			if j := s.jobOf(name); !j.Paused || j.Status.PausedReason != reason {
				t.Errorf("%s is paused: %v, %q; want the reason %q", name, j.Paused, j.Status.PausedReason, reason)
			}
		}
		if s.jobOf("b-0").Paused || s.jobOf("a-0", s.of("bob")...).Paused {
			t.Error("a job that does not match was paused")
		}
		// The undo of a pause: those that it has paused, as it has left them. What somebody has changed since stays, and is named.
		s.send("POST", "/v1/jobs/a-3/pause", `{"reason": "by Bob"}`).is(200)
		s.send("DELETE", "/v1/jobs/a-4", "").is(204)
		var undo []string
		for _, v := range append(first.Items, rest.Items...) {
			if v.Change == "updated" {
				undo = append(undo, fmt.Sprintf(`{"name": %q, "etag": %q}`, v.Name, v.ETag))
			}
		}
		back := s.overJobs("resume", `{"jobs": [`+strings.Join(undo, ",")+`]}`)
		if got := saying(back.Items); back.Count != 2 || got != "a-0 200 updated, a-2 200 updated, a-3 412 precondition_failed, a-4 404 job_not_found" {
			t.Errorf("the undo: %+v, %s", back, got)
		}
		if s.jobOf("a-0").Paused || !s.jobOf("a-1").Paused || s.jobOf("a-3").Status.PausedReason != "by Bob" {
			t.Error("the undo has taken back what others did, or left its own")
		}
		paused := s.overJobs("resume", `{"matching": {"prefix": "a-", "paused": true}, "per_second": 100, "dry_run": true}`)
		if got := saying(paused.Items); got != "a-1 200 updated, a-3 200 updated" {
			t.Errorf("those that are paused: %s", got)
		}
		parts := s.overJobs("resume", `{"matching": {"contains": "-3", "paused": true}, "dry_run": true}`)
		if got := saying(parts.Items); got != "a-3 200 updated" {
			t.Errorf("those with a part of a name: %s", got)
		}
		began := time.Now()
		s.overJobs("resume", `{"matching": {}, "per_second": 2}`)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("two jobs at two a second took %s, want half a second between them", took)
		}
	})
}

func TestManyJobsAreDeletedAsTheyWereCounted(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.jobsOfTwoTeams()
		time.Sleep(time.Second)
		dry := s.overJobs("delete", `{"matching": {"prefix": "a-"}, "dry_run": true}`)
		if got := saying(dry.Items); dry.Count != 5 || !strings.HasPrefix(got, "a-0 204 deleted, ") {
			t.Errorf("a dry run: %d, %s", dry.Count, got)
		}
		s.jobOf("a-0")
		// One is made and one is changed since: neither was counted as it is.
		time.Sleep(time.Second)
		s.send("PUT", "/v1/jobs/a-00", echo).is(201)
		s.send("PATCH", "/v1/jobs/a-2", `{"description": "needed"}`).is(200)
		done := s.overJobs("delete", fmt.Sprintf(`{"matching": {"prefix": "a-"}, "max": %d, "unchanged_since": %q}`, dry.Count, dry.LookedAt.Format(time.RFC3339Nano)))
		if got := saying(done.Items); done.Count != 4 || done.Next != "" ||
			got != "a-0 204 deleted, a-00 412 precondition_failed, a-1 204 deleted, a-2 412 precondition_failed, a-3 204 deleted, a-4 204 deleted" {
			t.Errorf("in earnest: %+v, %s", done, got)
		}
		s.send("GET", "/v1/jobs/a-0", "").refused(404, "job_not_found")
		s.jobOf("a-00")
		s.jobOf("a-0", s.of("bob")...)
		// By name: in the order of the request, one that has another ETag and one that is gone stay as they are. Sent again, nothing more happens.
		body := fmt.Sprintf(`{"jobs": [{"name": "b-0"}, {"name": "a-2", "etag": "\"g1\""}, {"name": "a-1"}, {"name": "a-00", "etag": %q}]}`, s.jobOf("a-00").Status.ETag)
		if dry := s.overJobs("delete", strings.TrimSuffix(body, "}")+`, "dry_run": true}`); dry.Count != 2 {
			t.Errorf("a dry run by name: %+v", dry)
		}
		for _, want := range []string{
			"b-0 204 deleted, a-2 412 precondition_failed, a-1 404 job_not_found, a-00 204 deleted",
			"b-0 404 job_not_found, a-2 412 precondition_failed, a-1 404 job_not_found, a-00 404 job_not_found",
		} {
			if got := saying(s.overJobs("delete", body).Items); got != want {
				t.Errorf("by name: %s, want %s", got, want)
			}
		}
	})
}

func TestManyJobsAreLabelled(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.jobsOfTwoTeams()
		s.send("PATCH", "/v1/jobs/a-1", `{"labels": {"tier": "1"}, "paused": true}`).is(200)
		s.send("POST", "/v1/jobs/a-1/pause", `{"reason": "by Ada"}`).is(200)
		labels := make([]string, 32)
		for i := range labels {
			labels[i] = fmt.Sprintf(`"l-%d": "x"`, i)
		}
		s.send("PUT", "/v1/jobs/a-full", `{"target": {"handler": {"name": "echo"}}, "labels": {`+strings.Join(labels, ",")+`}}`).is(201)
		const asked = `{"matching": {"prefix": "a-"}, "set": {"tier": "1"}, "remove": ["team", "none"]`
		dry := s.overJobs("label", asked+`, "dry_run": true}`)
		done := s.overJobs("label", asked+`}`)
		const want = "a-0 200 updated, a-1 200 updated, a-2 200 updated, a-3 200 updated, a-4 200 updated, a-full 422 invalid"
		if got := saying(done.Items); done.Count != 5 || got != want || dry.Count != done.Count || saying(dry.Items) != want {
			t.Errorf("labelled %d: %s\na dry run: %d: %s", done.Count, got, dry.Count, saying(dry.Items))
		}
		if field := done.Items[5].Problem.Errors; len(field) != 1 || field[0].Field != "labels" {
			t.Errorf("one with too many labels: %+v", field)
		}
		if j := s.jobOf("a-1"); fmt.Sprint(j.Labels) != "map[tier:1]" || !j.Paused || j.Status.PausedReason != "by Ada" {
			t.Errorf("labels %v, paused %v, reason %q", j.Labels, j.Paused, j.Status.PausedReason)
		}
		if again := s.overJobs("label", asked+`}`); again.Count != 0 || !strings.HasPrefix(saying(again.Items), "a-0 200 unchanged") {
			t.Errorf("sent again: %+v", again)
		}
		for body, field := range map[string]string{`{"matching": {}}`: "set", `{"matching": {}, "set": {"a": "b"}, "remove": ["c", "a"]}`: "remove[1]", `{"matching": {}, "set": {"a b": "x"}}`: "set"} {
			if fields := s.send("POST", "/v1/jobs/batch/label", body).refused(422, "invalid"); fields[field] == "" {
				t.Errorf("%s: %v, want %s", body, fields, field)
			}
		}
	})
}

// Who does not know what became of a request sends it again: what was done stays, and the rest is done.
func TestARequestOverManyJobsIsRepeated(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.jobsOfTwoTeams()
		s.overJobs("pause", `{"jobs": [{"name": "a-0"}, {"name": "a-1"}], "reason": "r"}`) // the answer of which is lost
		s.store.fail = store.ErrUnknown
		failed := s.overJobs("pause", `{"matching": {"prefix": "a-"}, "reason": "r"}`)
		if got := saying(failed.Items); failed.Count != 0 || got != "a-0 200 unchanged, a-1 200 unchanged, a-2 503 outcome_unknown, a-3 503 outcome_unknown, a-4 503 outcome_unknown" {
			t.Errorf("while nobody knows: %+v, %s", failed, got)
		}
		s.store.fail = nil
		again := s.overJobs("pause", `{"matching": {"prefix": "a-"}, "reason": "other"}`)
		if got := saying(again.Items); again.Count != 3 || !strings.HasPrefix(got, "a-0 200 unchanged, a-1 200 unchanged, a-2 200 updated") {
			t.Errorf("again: %+v, %s", again, got)
		}
		if reason := s.jobOf("a-0").Status.PausedReason; reason != "r" {
			t.Errorf("the reason is %q, want that of the first", reason)
		}
	})
}

func TestRequestsOverManyJobsWithoutAMeaningAreRefused(t *testing.T) {
	s := start(t, 0, nil)
	s.jobsOfTwoTeams()
	for _, what := range []string{"pause", "resume", "delete", "label", "export"} {
		path := "/v1/jobs/batch/" + what
		more := map[string]string{"label": `, "set": {"a": "b"}`}[what]
		one := `{"name": "a-0"}`
		if what == "export" {
			one = `"a-0"`
		}
		for _, body := range []string{`{}`, `{"jobs": [], "matching": {}}`, `{"jobs": [` + one + `], "matching": {}` + more + `}`, `{"jobs": []` + more + `}`,
			`{"matching": {"prefix": "a\u00ff"}` + more + `}`, `{"matching": {"prefix": ""}` + more + `}`, `{"matching": {"paused": "yes"}` + more + `}`, `{"matching": {"states": []}` + more + `}`, `{"matching": null` + more + `}`,
			`{"jobs": [{"name": "../a-0"}]` + more + `}`} {
			s.send("POST", path, body).refused(400, "malformed")
		}
		if fields := s.send("POST", path, `{"jobs": [`+one+`,`+one+`]`+more+`}`).refused(422, "invalid"); len(fields) != 1 {
			t.Errorf("%s of one job twice: %v", what, fields)
		}
		for body, field := range map[string]string{
			`{"matching": {"labels": {"": "x"}}`:      "matching.labels",
			`{"matching": {}, "cursor": "x"`:          "cursor",
			`{"jobs": [` + one + `], "cursor": "MWE"`: "cursor",
		} {
			if fields := s.send("POST", path, body+more+`}`).refused(422, "invalid"); fields[field] == "" {
				t.Errorf("%s %s: %v, want %s", what, body, fields, field)
			}
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			s.send(method, path, "").is(405)
		}
		if got := s.send("POST", path, `{"matching": {"labels": {"team": "billing' OR 1=1 --", "x": "\u202e"}}`+more+`}`).is(200); strings.Contains(string(got.body), "a-0") {
			t.Errorf("%s of labels that no job has: %s", what, got.body)
		}
	}
	for i := range 5 {
		if j := s.jobOf(fmt.Sprintf("a-%d", i)); j.Paused || j.Labels["a"] != "" {
			t.Errorf("%s was changed: %+v", j.Name, j)
		}
	}
}

// An export in parts of any size is what one of a size that holds all is, and holds those that are named in the order of their names given.
func TestJobsAreExported(t *testing.T) {
	narrow := func(cfg *api.Config) { cfg.PageBytes = 1700 }
	small, whole := start(t, 0, narrow), start(t, 0, nil)
	for _, s := range []*server{small, whole} {
		s.jobsOfTwoTeams()
		s.send("PUT", "/v1/jobs/a-0", `{"target": {"handler": {"name": "echo"}}, "payload": {"n": 12345678901234567890, "text": "a: b\n---\n\u202e# no"}, "labels": {"team": "billing"}}`).is(200)
		s.send("POST", "/v1/jobs/a-1/pause", `{"reason": "not in a file"}`).is(200)
	}
	parts := func(s *server, body string) (text string, missing []string, count, parts int) {
		t.Helper()
		for cursor, left := "", ""; ; parts++ {
			sent := body + cursor + left + "}"
			got := into[wire.ExportedJobs](s.send("POST", "/v1/jobs/batch/export", sent).is(200))
			if text != "" && got.YAML != "" {
				text += "---\n"
			}
			text, count, missing = text+got.YAML, count+got.Count, append(missing, got.Missing...)
			if got.Next == "" && got.Remaining == nil {
				return text, missing, count, parts + 1
			}
			if got.Next != "" {
				cursor = fmt.Sprintf(`, "cursor": %q`, got.Next)
			} else {
				body, left = `{"jobs": [`, `"`+strings.Join(got.Remaining, `","`)+`"]`
			}
		}
	}
	for what, body := range map[string]string{"all": `{"matching": {}`, "named": `{"jobs": ["b-0", "a-0", "gone", "a-1"]`, "a label": `{"matching": {"labels": {"team": "mail"}, "prefix": "b"}`} {
		want, missing, count, _ := parts(whole, body)
		got, alike, _, several := parts(small, body)
		if got != want || fmt.Sprint(missing) != fmt.Sprint(alike) || strings.Count(want, "\ntarget:") != count || what != "a label" && several < 2 {
			t.Errorf("%s: in %d parts, without %v\n%s\nas one, without %v\n%s", what, several, alike, got, missing, want)
		}
		if what == "named" && (!strings.HasPrefix(want, "name: b-0\n") || fmt.Sprint(missing) != "[gone]" || count != 3 || !strings.Contains(want, "12345678901234567890") || strings.Contains(want, "not in a file")) {
			t.Errorf("those that are named, without %v:\n%s", missing, want)
		}
	}
	other, _, count, _ := parts(whole, `{"matching": {}`)
	theirs := into[wire.ExportedJobs](whole.send("POST", "/v1/jobs/batch/export", `{"matching": {}}`, whole.of("bob")...).is(200))
	if count != 6 || theirs.Count != 1 || strings.Contains(theirs.YAML, "12345678901234567890") || !strings.Contains(other, "b-0") {
		t.Errorf("another tenant exports %+v", theirs)
	}
}
