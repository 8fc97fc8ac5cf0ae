package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// settle lets what is due now happen, in virtual time.
func settle() {
	time.Sleep(3 * time.Second)
	synctest.Wait()
}

func TestARunFromRequestToResult(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"payload": {"own": 1}, "labels": {"team": "billing"}, `, 1)).is(201)
		accepted := s.send("POST", "/v1/jobs/a/runs", `{"payload": {"n": [1, 2.50]}}`).is(202)
		r := into[wire.Run](accepted)
		if want := "/v1/runs/" + r.ID; accepted.header.Get("Location") != want {
			t.Errorf("Location %q, want %q", accepted.header.Get("Location"), want)
		}
		if r.Job != "a" || r.Trigger != "request" || r.Attempts == nil {
			t.Errorf("accepted %+v", r)
		}
		settle()
		r = into[wire.Run](s.send("GET", "/v1/runs/"+r.ID, "").is(200))
		if r.State != "succeeded" || r.Attempt != 1 || r.Fence == 0 || r.EndedAt.IsZero() || len(r.Attempts) != 1 || r.Attempts[0].Outcome != "succeeded" {
			t.Errorf("ended as %+v", r)
		}
		if r.Labels["team"] != "billing" {
			t.Errorf("labels %v, want those of its job", r.Labels)
		}
		if string(r.Result) != `{"n":[1,2.50]}` {
			t.Errorf("result %s, want the payload as it was sent", r.Result)
		}
		logs := s.send("GET", "/v1/runs/"+r.ID+"/logs", "").is(200)
		if string(logs.body) != "echoing\n" || logs.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("log %q as %q", logs.body, logs.header.Get("Content-Type"))
		}

		// Without a payload of its own the job's is used.
		own := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202))
		settle()
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+own.ID, "")).Result; string(got) != `{"own":1}` {
			t.Errorf("result %s, want the job's payload", got)
		}
		s.send("PUT", "/v1/jobs/t", strings.Replace(echo, "echo", "text", 1)).is(201)
		text := into[wire.Run](s.send("POST", "/v1/jobs/t/runs", `{}`).is(202))
		settle()
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+text.ID, "")); string(got.Result) != `"plain"` || got.ResultType != "text/plain" {
			t.Errorf("result %s of type %q, want text", got.Result, got.ResultType)
		}
	})
}

// No media type is shown that the target did not name, and no byte of a result is changed.
func TestResultsAsTheirTargetsCallThem(t *testing.T) {
	const asJSON = "application/json"
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "echo", "say", 1)).is(201)
		for name, c := range map[string]struct{ body, kind, result, shown string }{
			"NoType":             {"plain", "", `"plain"`, ""},
			"NoTypeOfJSON":       {`{"n": 1}`, "", `"{\"n\": 1}"`, ""},
			"NoTypeOfANumber":    {"42\n", "", `"42\n"`, ""},
			"NoTypeOfBytes":      {"\xff\x00", "", `"/wA="`, ";base64"},
			"Text":               {"plain", "text/plain", `"plain"`, "text/plain"},
			"Bytes":              {"\xff\x00", "image/png", `"/wA="`, "image/png;base64"},
			"JSON":               {`{"n":1.50}`, asJSON, `{"n":1.50}`, ""},
			"JSONInACharset":     {`{"n":1.50}`, asJSON + "; charset=utf-8", `{"n":1.50}`, ""},
			"NoJSON":             {`{"n":`, asJSON, `"{\"n\":"`, asJSON},
			"JSONOfBrokenUTF8":   {"\"\xff\"", asJSON, `"Iv8i"`, asJSON + ";base64"},
			"JSONOfASurrogate":   {`{"a":"\ud800","\udfff":9007199254740993}`, asJSON, `{"a":"\ud800","\udfff":9007199254740993}`, ""},
			"NoTypeOfASurrogate": {`"\ud800"`, "", `"\"\\ud800\""`, ""},
			"TypeTooLong":        {"plain", strings.Repeat("t", 200), `"plain"`, ""},
			"Large":              {strings.Repeat("x", 5000), "", `"` + strings.Repeat("x", 5000) + `"`, ""},
		} {
			said, err := json.Marshal(map[string]any{"body": []byte(c.body), "type": c.kind})
			if err != nil {
				t.Fatal(err)
			}
			r := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"payload": `+string(said)+`}`).is(202))
			settle()
			answer := s.send("GET", "/v1/runs/"+r.ID, "").is(200)
			if r = into[wire.Run](answer); string(r.Result) != c.result || r.ResultType != c.shown || r.State != "succeeded" {
				t.Errorf("%s: %s of type %q in %s", name, r.Result, r.ResultType, r.State)
			}
			if c.shown == "" && strings.Contains(string(answer.body), "result_type") {
				t.Errorf("%s: %s", name, answer.body)
			}
		}
	})
}

func TestP9_Fault51_same_key_same_run_another_body_409(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		first := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"payload": {"a": 1}}`, "Idempotency-Key", "order-1").is(202))
		settle()
		again := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"payload": {"a": 1}}`, "Idempotency-Key", "order-1").is(202))
		if again.ID != first.ID || again.State != "succeeded" {
			t.Errorf("repeated: %s %s, want %s as it stands", again.ID, again.State, first.ID)
		}
		s.send("POST", "/v1/jobs/a/runs", `{"payload": {"a": 2}}`, "Idempotency-Key", "order-1").refused(409, "idempotency_key_reused")
		if runs := into[wire.RunPage](s.send("GET", "/v1/jobs/a/runs", "").is(200)).Items; len(runs) != 1 {
			t.Errorf("%d runs, want 1", len(runs))
		}
		batch := `{"runs": [{"job": "a", "payload": {"a": 1}, "idempotency_key": "order-1"}, {"job": "none"}, {"job": "a"}]}`
		verdicts := into[wire.RunVerdicts](s.send("POST", "/v1/runs/batch", batch).is(200)).Items
		if len(verdicts) != 3 || verdicts[0].ID != first.ID || verdicts[1].Status != 404 || verdicts[1].Problem.Code != "job_not_found" ||
			verdicts[2].Status != 202 || verdicts[2].ID == first.ID {
			t.Errorf("verdicts %+v", verdicts)
		}
	})
}

func TestRunsAreListedNewestFirst(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		s.send("PUT", "/v1/jobs/b", strings.Replace(echo, "echo", "fail", 1)).is(201)
		begin := time.Now().UTC()
		for i := range 6 {
			s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)
			if i%2 == 0 {
				s.send("POST", "/v1/jobs/b/runs", `{}`).is(202)
			}
			time.Sleep(time.Second)
		}
		later := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"delay": "1h"}`).is(202))
		settle()
		all := func(path string) (ids []string) {
			cursor := ""
			for {
				at := path + "limit=2"
				if cursor != "" {
					at += "&cursor=" + url.QueryEscape(cursor)
				}
				page := into[wire.RunPage](s.send("GET", at, "").is(200))
				for i, r := range page.Items {
					if i > 0 && r.NominalTime.After(page.Items[i-1].NominalTime) {
						t.Errorf("%s: %s after %s", path, r.ID, page.Items[i-1].ID)
					}
					ids = append(ids, r.ID)
				}
				if cursor = page.Next; cursor == "" {
					return ids
				}
			}
		}
		mid := url.QueryEscape(begin.Add(3 * time.Second).Format(time.RFC3339))
		for path, want := range map[string]int{
			"/v1/runs?": 10, "/v1/jobs/a/runs?": 7, "/v1/runs?job=b&": 3, "/v1/runs?state=failed&": 3, "/v1/runs?state=succeeded,failed&": 9,
			"/v1/jobs/a/runs?state=scheduled,queued&": 1, "/v1/jobs/a/runs?to=" + mid + "&": 3, "/v1/jobs/a/runs?from=" + mid + "&": 4,
		} {
			ids := all(path)
			if len(ids) != want || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != want {
				t.Errorf("%s gives %d runs, want %d: %v", path, len(ids), want, ids)
			}
		}
		if ids := all("/v1/jobs/a/runs?"); ids[0] != later.ID {
			t.Errorf("first is %s, want the one to come", ids[0])
		}
		s.send("GET", "/v1/jobs/none/runs", "").refused(404, "job_not_found")
	})
}

func TestCancelAndRetry(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		later := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"delay": "1h"}`).is(202))
		s.send("POST", "/v1/runs/"+later.ID+"/retry", `{}`).refused(409, "run_not_ended")
		cancelled := into[wire.Run](s.send("POST", "/v1/runs/"+later.ID+"/cancel", `{"reason": "not needed"}`).is(200))
		if cancelled.State != "cancelled" || cancelled.Reason != "not needed" {
			t.Errorf("cancelled: %+v", cancelled)
		}
		s.send("POST", "/v1/runs/"+later.ID+"/cancel", `{}`).refused(409, "run_ended")
		s.send("POST", "/v1/runs/"+later.ID+"/retry", `{}`).is(200)
		s.send("GET", "/v1/runs/a~000000000", "").refused(404, "run_not_found")
		s.send("GET", "/v1/runs/a~000000000~zzzzzzzzzzzzz", "").refused(404, "run_not_found")
		s.send("GET", "/v1/runs/nonsense", "").refused(400, "malformed")

		s.send("PUT", "/v1/jobs/w", strings.Replace(echo, "echo", "wait", 1)).is(201)
		waiting := into[wire.Run](s.send("POST", "/v1/jobs/w/runs", `{}`).is(202))
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+waiting.ID, "")); r.State != "running" || r.Worker == "" || r.Attempts[0].Outcome != "running" {
			t.Fatalf("got %+v, want it running", r)
		}
		s.send("POST", "/v1/runs/"+waiting.ID+"/cancel", `{}`).is(200)
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+waiting.ID, "")); r.State != "cancelled" {
			t.Errorf("state %s, want cancelled", r.State)
		}
	})
}

func TestDeadLettersAreListedAndRedriven(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/bad", strings.Replace(echo, "echo", "fail", 1)).is(201)
		s.send("PUT", "/v1/jobs/worse", strings.Replace(echo, "echo", "fail", 1)).is(201)
		var ids []string
		for _, name := range []string{"bad", "worse", "bad"} {
			ids = append(ids, into[wire.Run](s.send("POST", "/v1/jobs/"+name+"/runs", `{}`).is(202)).ID)
			settle()
		}
		list := func(query string) []wire.DeadLetter {
			return into[wire.DeadLetterPage](s.send("GET", "/v1/dead-letters"+query, "").is(200)).Items
		}
		letters := list("")
		if len(letters) != 3 || letters[0].ID != ids[2] || letters[0].Job != "bad" || letters[0].State != "failed" ||
			!strings.Contains(letters[0].Error, "no such account") || letters[0].EndedAt.IsZero() {
			t.Fatalf("dead letters %+v", letters)
		}
		for query, want := range map[string]int{"?job=worse": 1, "?error=account": 3, "?error=nothing": 0, "?from=2100-01-01T00:00:00Z": 0, "?to=2100-01-01T00:00:00Z": 3} {
			if got := len(list(query)); got != want {
				t.Errorf("%s gives %d, want %d", query, got, want)
			}
		}
		// The target works again: what is redriven succeeds, and leaves the list.
		s.send("PUT", "/v1/jobs/bad", echo).is(200)
		body := fmt.Sprintf(`{"runs": [%q, "bad~000000000"]}`, ids[0])
		verdicts := into[wire.BulkVerdicts](s.send("POST", "/v1/dead-letters/redrive", body).is(200)).Items
		if len(verdicts) != 2 || verdicts[0].Status != 200 || verdicts[0].ID != ids[0] || verdicts[1].Status != 404 || verdicts[1].Problem == nil {
			t.Fatalf("verdicts %+v", verdicts)
		}
		settle()
		r := into[wire.Run](s.send("GET", "/v1/runs/"+ids[0], "").is(200))
		if r.State != "succeeded" || len(r.Attempts) != 2 {
			t.Errorf("redriven: %+v, want it to succeed with its history", r)
		}
		if verdicts := into[wire.BulkVerdicts](s.send("POST", "/v1/dead-letters/redrive", `{"matching": {"job": "bad"}, "max": 5}`).is(200)).Items; len(verdicts) != 1 || verdicts[0].ID != ids[2] {
			t.Errorf("verdicts %+v, want %s", verdicts, ids[2])
		}
		settle()
		if letters := list(""); len(letters) != 1 || letters[0].ID != ids[1] {
			t.Errorf("left are %+v, want %s", letters, ids[1])
		}
		for _, body := range []string{`{}`, fmt.Sprintf(`{"runs": [%q], "matching": {}}`, ids[1])} {
			s.send("POST", "/v1/dead-letters/redrive", body).refused(400, "malformed")
		}
		if fields := s.send("POST", "/v1/dead-letters/redrive", `{"matching": {}, "max": 1000, "per_second": 1}`).refused(422, "invalid"); fields["max"] == "" {
			t.Errorf("fields %v, want max", fields)
		}
		if fields := s.send("POST", "/v1/dead-letters/redrive", fmt.Sprintf(`{"runs": [%q], "max": 1}`, ids[1])).refused(422, "invalid"); fields["max"] == "" {
			t.Errorf("fields %v, want max", fields)
		}
	})
}

// What is discarded is a dead letter no more, its run says who did it, and it runs again where it is named.
func TestDeadLettersAreDiscarded(t *testing.T) {
	runningWith(t, func(cfg *api.Config) { asking(t, access.GateConfig{})(cfg) }, func(t *testing.T, s *server) {
		writer, caller := bearing(s.token("default", access.Write, access.Run, access.Read)), bearing(s.token("default", access.Run, access.Read))
		s.send("PUT", "/v1/jobs/bad", strings.Replace(echo, "echo", "fail", 1), writer...).is(201)
		var ids []string
		for range 3 {
			ids = append(ids, into[wire.Run](s.send("POST", "/v1/jobs/bad/runs", `{}`, caller...).is(202)).ID)
			settle()
		}
		s.send("PUT", "/v1/jobs/fine", echo, writer...).is(201)
		well := into[wire.Run](s.send("POST", "/v1/jobs/fine/runs", `{}`, caller...).is(202)).ID
		settle()
		const path = "/v1/dead-letters/discard"
		s.send("POST", path, `{"matching": {}}`, bearing(s.token("default", access.Read))...).refused(403, "forbidden")
		if got := into[wire.BulkVerdicts](s.send("POST", path, `{"matching": {"job": "bad"}, "dry_run": true}`, caller...).is(200)); got.Count != 3 {
			t.Errorf("counted %d, want 3", got.Count)
		}
		body := fmt.Sprintf(`{"runs": [%q, %q, "bad~000000000"], "note": "sent by hand"}`, ids[0], well)
		for range 2 { // repeated, it changes nothing
			got := into[wire.BulkVerdicts](s.send("POST", path, body, caller...).is(200))
			if v := got.Items; len(v) != 3 || v[0].Status != 200 || v[0].State != "failed" || v[1].Status != 409 || v[1].Problem.Code != "not_dead_letter" || v[2].Status != 404 || got.Count != 1 {
				t.Fatalf("verdicts %+v", got)
			}
		}
		if letters := into[wire.DeadLetterPage](s.send("GET", "/v1/dead-letters", "", caller...).is(200)).Items; len(letters) != 2 {
			t.Errorf("left are %+v, want two", letters)
		}
		if groups := into[wire.DeadLetterGroups](s.send("GET", "/v1/dead-letters/groups", "", caller...).is(200)); groups.LookedAt != 2 {
			t.Errorf("groups %+v, want two letters in them", groups)
		}
		r := into[wire.Run](s.send("GET", "/v1/runs/"+ids[0], "", caller...).is(200))
		if d := r.Discarded; r.State != "failed" || d == nil || d.At.Before(r.EndedAt) || d.Note != "sent by hand" || !regexp.MustCompile(`[0-9a-f]{16}`).MatchString(d.By) {
			t.Errorf("shown as %+v with %+v", r, d)
		}
		// Of a job that is gone, too.
		s.send("DELETE", "/v1/jobs/bad", "", writer...).is(204)
		if got := into[wire.BulkVerdicts](s.send("POST", path, `{"matching": {"error": "ACCOUNT"}}`, caller...).is(200)); got.Count != 2 || len(got.Items) != 2 {
			t.Errorf("of a deleted job: %+v", got)
		}
		if letters := into[wire.DeadLetterPage](s.send("GET", "/v1/dead-letters", "", caller...).is(200)).Items; len(letters) != 0 {
			t.Errorf("left are %+v, want none", letters)
		}
		s.send("PUT", "/v1/jobs/bad", echo, writer...).is(201)
		s.send("POST", "/v1/runs/"+ids[0]+"/retry", `{}`, caller...).is(200)
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+ids[0], "", caller...).is(200)); r.State != "succeeded" || r.Discarded != nil {
			t.Errorf("retried by its ID: %+v", r)
		}
		for body, field := range map[string]string{
			`{"matching": {}, "note": "` + strings.Repeat("é", 201) + `"}`: "note",
			`{"matching": {}, "why": "x"}`:                                 "why",
			`{"matching": {}, "per_second": 1}`:                            "per_second",
			fmt.Sprintf(`{"runs": [%q], "matching": {}}`, ids[1]):          "",
			`{}`: "",
		} {
			if fields := s.send("POST", path, body, caller...).refused(400, "malformed"); fields[field] == "" && field != "" {
				t.Errorf("%s: fields %v, want %s", body, fields, field)
			}
		}
		if fields := s.send("POST", path, fmt.Sprintf(`{"runs": [%q], "max": 1}`, ids[1]), caller...).refused(422, "invalid"); fields["max"] == "" {
			t.Errorf("fields %v, want max", fields)
		}
	})
}

func TestP11_Fault27_a_full_queue_refuses_new_work_and_says_when(t *testing.T) {
	counts := metrics.New()
	s := start(t, 8, func(cfg *api.Config) { cfg.Counts = counts }) // and nobody works
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	accepted := 0
	for range 100 {
		r := s.send("POST", "/v1/jobs/a/runs", `{}`)
		if r.status == 202 {
			accepted++
			continue
		}
		r.refused(429, "busy")
		if r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if n := counts.Throttled.Value("api"); n != 1 {
			t.Errorf("%d refusals for load were counted", n)
		}
		if shown := len(into[wire.RunPage](s.send("GET", "/v1/runs?limit=1000", "").is(200)).Items); shown < accepted {
			t.Errorf("%d runs were accepted, %d are there", accepted, shown)
		}
		batch := into[wire.RunVerdicts](s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "a"}]}`).is(200)).Items
		if len(batch) != 1 || batch[0].Status != 429 || batch[0].Problem.RetryAfter <= 0 {
			t.Errorf("in a batch: %+v, want 429 and when to try again", batch)
		}
		return
	}
	t.Fatalf("all of 100 were accepted by a queue of 8")
}

func TestTriggersThatMeanNothing(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	for body, field := range map[string]string{
		`{"at": "2030-01-01T00:00:00Z", "delay": "1m"}`: "delay",
		`{"at": "2030-01-01T00:00:00Z", "delay": "0s"}`: "delay",
		`{"at": "2000-01-01T00:00:00Z", "delay": "0m"}`: "delay",
		`{"delay": "999999d"}`:                          "delay",
		`{"at": "2026-02-30T00:00:00Z"}`:                "at",
	} {
		fields := s.send("POST", "/v1/jobs/a/runs", body).refused(422, "invalid")
		if fields[field] == "" {
			t.Errorf("%s: fields %v, want %s", body, fields, field)
		}
		batch := `{"runs": [{"job": "a", ` + strings.TrimPrefix(body, "{") + `]}`
		if !strings.Contains(body, `"at": "2`) || field != "delay" {
			continue
		}
		if items := into[wire.RunVerdicts](s.send("POST", "/v1/runs/batch", batch).is(200)).Items; len(items) != 1 || items[0].Status != 422 {
			t.Errorf("%s: %+v, want it refused", batch, items)
		}
	}
	s.send("POST", "/v1/jobs/a/runs", `{"delay": "0s"}`).is(202)
	payload, _ := json.Marshal(strings.Repeat("x", 1<<20))
	s.send("POST", "/v1/jobs/a/runs", `{"payload": `+string(payload)+`}`).refused(413, "too_large")
}

func TestALogCanBeFollowedWhileItIsWritten(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/slow", `{"target": {"handler": {"name": "tell"}}, "retry": {"max_attempts": 2, "initial": "10s"}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/slow/runs", `{}`).is(202)).ID
		path := "/v1/runs/" + id + "/logs"
		settle()
		part := func(query, attempt, want string) {
			t.Helper()
			got := s.send("GET", path+query, "").is(200)
			if got.header.Get("Belfry-Attempt") != attempt || string(got.body) != want {
				t.Errorf("%s: attempt %q wrote %q, want attempt %q and %q", query, got.header.Get("Belfry-Attempt"), got.body, attempt, want)
			}
		}
		part("", "1", "working\n")
		part("?attempt=1&offset=3", "1", "king\n")
		part("?offset=9999", "1", "")
		if fields := s.send("GET", path+"?attempt=2", "").refused(422, "invalid"); fields["attempt"] != `got "2", want 1 to 1` {
			t.Errorf("an attempt that never was: %v", fields)
		}
		s.send("GET", path+"?offset=-1", "").refused(400, "malformed")
		for text, says := range map[string]string{"": "got an empty text, want a whole number", "x": `got "x", want a whole number`, "1e": `got "1e", want a whole number`} {
			if fields := s.send("GET", path+"?offset="+text, "").refused(400, "malformed"); !strings.HasPrefix(fields["offset"], says) {
				t.Errorf("?offset=%s: %v, want %s", text, fields, says)
			}
		}

		s.send("POST", "/v1/runs/"+id+"/cancel", `{}`).is(200)
		settle()
		part("", "1", "working\nstopped\n")
		part("?attempt=1&offset=8", "1", "stopped\n")

		// A tail tells where it stands, so that a follower goes on behind it.
		part("?tail=10", "1", "stopped\n")
		part("?tail=16&attempt=1", "1", "working\nstopped\n")
		for query, offset := range map[string]string{"?tail=10": "8", "?tail=100": "0", "": "0", "?offset=3": "3", "?offset=99": "16", "?tail=1048576&offset=0": "0"} {
			if got := s.send("GET", path+query, "").is(200).header.Get("Belfry-Log-Offset"); got != offset {
				t.Errorf("%s: offset %q, want %s", query, got, offset)
			}
		}
		for name, value := range map[string]string{"tail": "5", "lines": "1", "since": "2026-11-21T12:00:00Z"} {
			if fields := s.send("GET", path+"?offset=5&"+name+"="+value, "").refused(422, "invalid"); fields[name] == "" {
				t.Errorf("both: %v, want %s named", fields, name)
			}
		}
		for _, query := range []string{"tail=0", "tail=-1", "tail=1048577", "tail=x", "lines=0", "lines=-1", "lines=1000001", "lines=all",
			"timestamps=perhaps", "attempt=0", "attempt=1000001"} {
			s.send("GET", path+"?"+query, "").refused(400, "malformed")
		}

		for _, since := range []string{"yesterday", "10m", "1969-01-01T00:00:00Z", "2026-11-21"} {
			if fields := s.send("GET", path+"?since="+since, "").refused(422, "invalid"); fields["since"] == "" {
				t.Errorf("since %s: %v, want since named", since, fields)
			}
		}

		// The lines have their times, and are chosen by them or from the end.
		began := time.Now().UTC()
		at := func(d time.Duration) string { return began.Add(d).Format("2006-01-02T15:04:05.000Z") }
		times := strings.Split(string(s.send("GET", path+"?timestamps=true", "").is(200).body), "\n")
		if len(times) != 3 || len(times[0]) != len(at(0)+" working") || !strings.HasSuffix(times[1], " stopped") || times[1] > at(0) {
			t.Fatalf("with times: %q", times)
		}
		stopped, _, _ := strings.Cut(times[1], " ")
		part("?lines=1", "1", "stopped\n")
		part("?lines=2", "1", "working\nstopped\n")
		part("?lines=1&timestamps=true", "1", stopped+" stopped\n")
		part("?since="+stopped, "1", "stopped\n")
		part("?lines=9&tail=10&since=2000-01-01T00:00:00Z", "1", "stopped\n")
		part("?since="+at(time.Minute), "1", "")
		part("?timestamps=true&offset=3", "1", "king\n"+stopped+" stopped\n")
		got := s.send("GET", path+"?lines=1", "").is(200).header
		if got.Get("Belfry-Log-Offset") != "8" || got.Get("Belfry-Log-Next") != "16" || got.Get("Belfry-Log-Size") != "16" {
			t.Errorf("it tells of %v", got)
		}
	})
}

func TestRunsThatAreDueAndByChange(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		ask := func(body string) string {
			return into[wire.Run](s.send("POST", "/v1/jobs/a/runs", body).is(202)).ID
		}
		list := func(path string) (ids []string) {
			for _, r := range into[wire.RunPage](s.send("GET", path, "").is(200)).Items {
				ids = append(ids, r.ID)
			}
			return ids
		}
		later := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"delay": "30s"}`).is(202))
		if later.State != "scheduled" || !later.ChangedAt.Equal(later.CreatedAt) {
			t.Errorf("asked for ahead: %+v", later)
		}
		first := ask(`{}`)
		settle()
		second := ask(`{}`)
		settle()
		s.send("POST", "/v1/runs/"+first+"/retry", `{"force": true}`).is(200)
		settle()
		for path, want := range map[string][]string{
			"":                              {later.ID, second, first}, // as it always was
			"?due=false":                    {later.ID, second, first},
			"?due=true":                     {second, first},
			"?state=scheduled":              {later.ID},
			"?state=queued":                 nil,
			"?sort=due&due=true":            {second, first},
			"?sort=oldest":                  {first, second, later.ID},
			"?sort=oldest&due=true&limit=1": {first},
			"?sort=changed&due=true":        {first, second},
			"?sort=changed&limit=1":         {first},
			"?sort=changed&state=scheduled": {later.ID},
		} {
			for _, of := range []string{"/v1/runs", "/v1/jobs/a/runs"} {
				if got := list(of + path); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", of+path, got, want)
				}
			}
		}
		cursor := into[wire.RunPage](s.send("GET", "/v1/runs?limit=1", "").is(200)).Next
		if got := s.send("GET", "/v1/runs?sort=changed&cursor="+url.QueryEscape(cursor), "").is(422); !strings.Contains(string(got.body), "sort=changed") {
			t.Errorf("a cursor of another order: %s", got.body)
		}
		s.send("GET", "/v1/runs?sort=oldest&cursor="+url.QueryEscape(cursor), "").is(422)
		behind := into[wire.RunPage](s.send("GET", "/v1/runs?sort=oldest&limit=1", "").is(200)).Next
		if got := list("/v1/runs?sort=oldest&cursor=" + url.QueryEscape(behind)); !slices.Equal(got, []string{second, later.ID}) {
			t.Errorf("behind the oldest: %v", got)
		}
		s.send("GET", "/v1/runs?cursor="+url.QueryEscape(behind), "").is(422)
	})
}
