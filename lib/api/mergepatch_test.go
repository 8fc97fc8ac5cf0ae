package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The cases of RFC 7396, Appendix A, whose document is an object: as payloads, which hold any JSON.
func TestAMergePatchIsMergedAsTheRFCSays(t *testing.T) {
	s := start(t, 0, nil)
	for _, row := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"n":12345678901234567890,"x":1.50,"h":"<&>"}`, `{"h2":"<é\u00e9>"}`, `{"n":12345678901234567890,"x":1.50,"h":"<&>","h2":"<é\u00e9>"}`},
	} {
		s.send("PUT", "/v1/jobs/a", `{"payload": `+row[0]+`, "target": {"handler": {"name": "echo"}}}`)
		for range 2 { // a patch that is sent again changes nothing
			s.send("PATCH", "/v1/jobs/a", `{"payload": `+row[1]+`}`).is(200)
			if got := into[wire.Job](s.send("GET", "/v1/jobs/a", "").is(200)).Payload; string(got) != row[2] {
				t.Errorf("%s with %s is %s, want %s", row[0], row[1], got, row[2])
			}
		}
	}
}

func TestAJobIsPatched(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PATCH", "/v1/jobs/a", `{}`).refused(404, "job_not_found")
	s.send("PUT", "/v1/jobs/a", `{"description": "old", "timeout": "1m", "labels": {"team": "x", "old": "1"}, "payload": {"keep": "<1>"}, "retry": {"max_attempts": 5, "initial": "3s"},
		"schedule": {"cron": "30 9 * * *", "timezone": "Europe/Berlin"}, "target": {"http": {"url": "https://example.org/", "retry_status": [429, 503]}}}`).is(201)
	before := s.send("GET", "/v1/jobs/a", "").is(200)
	tag := before.header.Get("ETag")
	if same := s.send("PATCH", "/v1/jobs/a", `{"timeout": "60s"}`).is(200); same.header.Get("ETag") != tag {
		t.Errorf("what stands already has now %s, want %s", same.header.Get("ETag"), tag)
	}

	const change = `{"description": null, "timeout": null, "labels": {"old": null, "new": "2"}, "retry": {"max_attempts": 2}, "target": {"http": {"retry_status": [500]}}, "status": {"name": "other"}}`
	tried := s.send("PATCH", "/v1/jobs/a?dry_run=true", change, "If-Match", tag).is(200)
	if got := s.send("GET", "/v1/jobs/a", "").is(200); string(got.body) != string(before.body) || tried.header.Get("ETag") != tag {
		t.Errorf("a dry run left %s", got.body)
	}
	patched := s.send("PATCH", "/v1/jobs/a", change, "If-Match", tag).is(200)
	got := into[wire.Job](patched)
	if got.Description != "" || got.Timeout.String() != "30s" || fmt.Sprint(got.Labels) != "map[new:2 team:x]" || got.Retry.MaxAttempts != 2 || got.Retry.Initial.String() != "3s" ||
		fmt.Sprint(got.Target.HTTP.RetryStatus) != "[500]" || got.Schedule.Timezone != "Europe/Berlin" || string(got.Payload) != `{"keep":"<1>"}` || got.Name != "a" {
		t.Errorf("patched to %s", patched.body)
	}
	if shown := s.send("GET", "/v1/jobs/a", ""); string(shown.body) != string(patched.body) || shown.header.Get("ETag") != patched.header.Get("ETag") {
		t.Errorf("answered %s, and shows %s", patched.body, shown.body)
	}
	// Its answer lost, it is sent again as it was; another one with the old tag is refused.
	if again := s.send("PATCH", "/v1/jobs/a", change, "If-Match", tag).is(200); again.header.Get("ETag") != patched.header.Get("ETag") {
		t.Error("a patch that was sent again is another edit")
	}
	s.send("PATCH", "/v1/jobs/a", `{"timeout": "2m"}`, "If-Match", tag).refused(412, "precondition_failed")

	for body, field := range map[string]string{
		`{"timeuot": "1m"}`:                                 "timeuot",
		`{"timeuot": null}`:                                 "timeuot",
		`{"target": {"http": {"method": 7}}}`:               "target.http.method",
		`{"target": {"http": {"mehtod": null}}}`:            "target.http.mehtod",
		`{"target": {"handler": {"name": "x"}}}`:            "target",
		`{"target": null}`:                                  "target",
		`{"retry": {"max_attempts": 1, "max_attempts": 2}}`: "retry.max_attempts",
		`{"payload": {"a": 1, "a": 2}}`:                     "payload.a",
		`{"timeout": "1m", "timeout": "2m"}`:                "timeout",
		`[]`:                                                "",
		`null`:                                              "",
		`{`:                                                 "",
	} {
		if fields := s.send("PATCH", "/v1/jobs/a", body).refused(400, "malformed"); fields[field] == "" {
			t.Errorf("%s: fields %v, want %q", body, fields, field)
		}
	}
	for body, field := range map[string]string{
		`{"schedule": {"cron": "0 25 * * *"}}`:             "schedule.cron",
		`{"payload": "` + strings.Repeat("x", 9000) + `"}`: "payload",
		`{"guarantee": "at_most_once"}`:                    "retry.max_attempts",
		`{"schedule": {"every": "5m"}}`:                    "",
	} {
		r := s.send("PATCH", "/v1/jobs/a", body)
		if r.status != 422 && field != "" || r.status < 400 || !strings.Contains(string(r.body), `"`+field) {
			t.Errorf("%s: %d %s, want %q refused", body, r.status, r.body, field)
		}
	}
	if shown := s.send("GET", "/v1/jobs/a", ""); string(shown.body) != string(patched.body) {
		t.Errorf("what was refused left %s", shown.body)
	}
	s.send("PATCH", "/v1/jobs/a", `{"schedule": {"cron": null, "timezone": null, "every": "5m"}}`).is(200)
	s.send("PATCH", "/v1/jobs/a", `{"schedule": null, "guarantee": "at_most_once", "retry": null}`).is(200)

	s.send("POST", "/v1/jobs/a/pause", `{"reason": "billing is down"}`).is(200)
	if got := into[wire.Job](s.send("PATCH", "/v1/jobs/a", `{"description": "d"}`).is(200)); !got.Paused || got.Status.PausedReason != "billing is down" {
		t.Errorf("patched while it is paused: %+v", got)
	}
	if got := into[wire.Job](s.send("PATCH", "/v1/jobs/a", `{"paused": null}`).is(200)); got.Paused || got.Status.PausedReason != "" {
		t.Errorf("resumed by a patch: %+v", got)
	}
}

func TestAPatchSaysThatItIsOne(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	for _, media := range []string{"", "application/json", "text/plain", "application/json-patch+json", "application/merge-patch+jsonx"} {
		r := s.send("PATCH", "/v1/jobs/a", `{"timeout": "1m"}`, "Content-Type", media)
		r.refused(415, "not_json")
		if !strings.Contains(string(r.body), "application/merge-patch+json") || r.header.Get("Accept-Patch") != "application/merge-patch+json" {
			t.Errorf("%q is refused with %s", media, r.body)
		}
	}
	s.send("PATCH", "/v1/jobs/a", `{"timeout": "1m"}`, "Content-Type", "Application/Merge-Patch+JSON; charset=utf-8").is(200)
	s.send("PATCH", "/v1/jobs/a", `{"description": "`+strings.Repeat("x", 1<<20)+`"}`).refused(413, "too_large")
	// As deep and as doubled as a body can be, it costs no more than it is long.
	deep := `{"payload": ` + strings.Repeat(`{"`+strings.Repeat("n", 90)+`":`, 9900) + `1` + strings.Repeat(`}`, 9900) + `}`
	if r := s.send("PATCH", "/v1/jobs/a", deep); r.status < 400 || r.status >= 500 {
		t.Errorf("a deep patch: %d", r.status)
	}
	s.send("PATCH", "/v1/jobs/a", `{"payload": {`+strings.TrimSuffix(strings.Repeat(`"a":1,`, 100_000), ",")+`}}`).refused(400, "malformed")
}

// Patches of different fields that come together lose nothing of one another.
func TestPatchesAtOnceAllCount(t *testing.T) {
	s := start(t, 0, func(*api.Config) {})
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			body := fmt.Sprintf(`{"labels": {"l%d": "x"}}`, i)
			for r := s.send("PATCH", "/v1/jobs/a", body); r.status != 200; r = s.send("PATCH", "/v1/jobs/a", body) {
				if r.status != 429 {
					t.Errorf("%d %s", r.status, r.body)
					return
				}
			}
		})
	}
	all.Wait()
	var shown struct{ Labels map[string]string }
	if err := json.Unmarshal(s.send("GET", "/v1/jobs/a", "").is(200).body, &shown); err != nil || len(shown.Labels) != 8 {
		t.Errorf("left are %v, %v", shown.Labels, err)
	}
}
