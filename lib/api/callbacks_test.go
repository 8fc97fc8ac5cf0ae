package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// calling is a job whose runs end in a handler of that name, and what it says of its ends.
func calling(handler, on string) string {
	return `{"target": {"handler": {"name": "` + handler + `"}}, "on": ` + on + `}`
}

func TestWrongCallbacksAreRefusedAndNamed(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/tell", echo).is(201)
	for _, c := range []struct{ on, code, field, want string }{
		{`"tell"`, "malformed", "on", "object"},
		{`{"failed": "tell"}`, "malformed", "on.failed", "object"},
		{`{"failed": null}`, "malformed", "on.failed", "null"},
		{`{"failed": {}}`, "malformed", "on.failed.job", ""},
		{`{"failed": {"job": ""}}`, "malformed", "on.failed.job", ""},
		{`{"failed": {"job": "no name"}}`, "malformed", "on.failed.job", ""},
		{`{"fail": {"job": "tell"}}`, "malformed", "on.fail", "want failed, missed, recovered or succeeded"},
		{`{"missed": "tell"}`, "malformed", "on.missed", "object"},
		{`{"missed": {"job": "tell", "window": "long"}}`, "malformed", "on.missed.window", "duration"},
		{`{"missed": {"job": "tell", "window": "59s"}}`, "invalid", "on.missed.window", "whole minutes, from 1m to 24h"},
		{`{"missed": {"job": "tell", "window": "90s"}}`, "invalid", "on.missed.window", "whole minutes, from 1m to 24h"},
		{`{"failed": {"job": "tell", "window": "24h1m"}}`, "invalid", "on.failed.window", "whole minutes, from 1m to 24h"},
		{`{"failed": {"job": "tell", "window": "-5m"}}`, "malformed", "on.failed.window", "a duration"},
		{`{"succeeded": {"job": "tell", "window": "1h"}}`, "invalid", "on.succeeded.window", "failed and missed may have a window"},
		{`{"recovered": {"job": "tell", "window": "1h"}}`, "invalid", "on.recovered.window", "failed and missed may have a window"},
		{`{"missed": {"job": "tel"}}`, "invalid", "on.missed.job", "a job that exists"},
		{`{"missed": {"job": "a"}}`, "invalid", "on.missed.job", "another job"},
		{`{"failed": {"http": {"url": "https://example.org"}}}`, "malformed", "on.failed.http", "name a job that has such a target"},
		{`{"failed": {"email": {"to": ["ops@example.org"]}}}`, "malformed", "on.failed.email", "name a job that has such a target"},
		{`{"failed": {"job": "tel"}}`, "invalid", "on.failed.job", "a job that exists"},
		{`{"failed": {"job": "tell"}, "succeeded": {"job": "tells"}}`, "invalid", "on.succeeded.job", "a job that exists"},
		{`{"failed": {"job": "a"}}`, "invalid", "on.failed.job", "another job"},
	} {
		status := map[string]int{"malformed": 400, "invalid": 422}[c.code]
		for _, path := range []string{"/v1/jobs/a", "/v1/jobs/a?dry_run=true"} {
			fields := s.send("PUT", path, calling("echo", c.on)).refused(status, c.code)
			if message, named := fields[c.field]; !named || !strings.Contains(message, c.want) {
				t.Errorf("%s: %s is refused for %q, want %s: %s", path, c.on, fields, c.field, c.want)
			}
		}
	}
	s.send("GET", "/v1/jobs/a", "").is(404)
}

func TestWrongCallbacksOfARequestAreRefusedAndNamed(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/tell", echo).is(201)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	s.send("PUT", "/v1/jobs/gone", echo).is(201)
	s.send("DELETE", "/v1/jobs/gone", "").is(204)
	for _, c := range []struct{ on, code, field, want string }{
		{`"tell"`, "malformed", "on", "object"},
		{`{"failed": null}`, "malformed", "on.failed", "null"},
		{`{"failed": {}}`, "malformed", "on.failed.job", ""},
		{`{"failed": {"job": "no name"}}`, "malformed", "on.failed.job", ""},
		{`{"recovered": {"job": "tell"}}`, "malformed", "on.recovered", "want failed or succeeded"},
		{`{"missed": {"job": "tell"}}`, "malformed", "on.missed", "want failed or succeeded"},
		{`{"failed": {"job": "tell", "window": "1h"}}`, "malformed", "on.failed.window", "that of a job may have a window"},
		{`{"succeeded": {"job": "tell", "window": "1m"}}`, "malformed", "on.succeeded.window", "that of a job may have a window"},
		{`{"failed": {"job": "tel"}}`, "invalid", "on.failed.job", "a job that exists"},
		{`{"failed": {"job": "tell"}, "succeeded": {"job": "gone"}}`, "invalid", "on.succeeded.job", "a job that exists"},
		{`{"succeeded": {"job": "a"}}`, "invalid", "on.succeeded.job", "another job"},
	} {
		fields := s.send("POST", "/v1/jobs/a/runs", `{"on": `+c.on+`}`).refused(map[string]int{"malformed": 400, "invalid": 422}[c.code], c.code)
		if message, named := fields[c.field]; !named || !strings.Contains(message, c.want) {
			t.Errorf("%s is refused for %q, want %s: %s", c.on, fields, c.field, c.want)
		}
	}
	batch := s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "a", "on": {"failed": {"job": "tel"}}}, {"job": "a", "on": {"failed": {"job": "tell"}}}]}`).is(200)
	if got := into[wire.RunVerdicts](batch).Items; got[0].Status != 422 || len(got[0].Problem.Errors) != 1 || got[0].Problem.Errors[0].Field != "on.failed.job" || got[1].Status != 202 {
		t.Errorf("a batch gives %s", batch.body)
	}
	if all := runsOf(s, "a"); len(all) != 1 {
		t.Errorf("%d runs, want the one that was not refused", len(all))
	}
}

// A request names whom its run calls, before what its job says of the same event; the same key and another callee are another request.
func TestC1_C2_P9_ARequestNamesWhomItsRunCalls(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		for _, name := range []string{"tell", "other", "more"} {
			s.send("PUT", "/v1/jobs/"+name, calling("echo", `{}`)).is(201)
		}
		s.send("PUT", "/v1/jobs/bad", calling("fail", `{"failed": {"job": "tell"}}`)).is(201)
		s.send("PUT", "/v1/jobs/good", calling("echo", `{"failed": {"job": "tell"}}`)).is(201)
		ends := func(job, body string, header ...string) wire.Run {
			t.Helper()
			r := into[wire.Run](s.send("POST", "/v1/jobs/"+job+"/runs", body, header...).is(202))
			time.Sleep(time.Second)
			synctest.Wait()
			return into[wire.Run](s.send("GET", "/v1/runs/"+r.ID, "").is(200))
		}
		r := ends("bad", `{"on": {"failed": {"job": "other"}, "succeeded": {"job": "more"}}}`, "Idempotency-Key", "one")
		if r.On == nil || r.On.Failed.Job != "other" || r.On.Succeeded.Job != "more" {
			t.Errorf("shown as %+v", r.On)
		}
		s.send("POST", "/v1/jobs/bad/runs", `{"on": {"failed": {"job": "more"}}}`, "Idempotency-Key", "one").refused(409, "idempotency_key_reused")
		s.send("POST", "/v1/jobs/bad/runs", `{"on": {"failed": {"job": "other"}, "succeeded": {"job": "more"}}}`, "Idempotency-Key", "one").is(202)
		if own := ends("good", `{"on": {"failed": {"job": "other"}}}`); own.State != "succeeded" {
			t.Errorf("ended as %s", own.State)
		}
		if plain := ends("bad", `{}`); plain.On != nil {
			t.Errorf("an ordinary request is shown with %+v", plain.On)
		}
		counts := func(tell, other, more int) {
			t.Helper()
			for name, want := range map[string]int{"tell": tell, "other": other, "more": more} {
				if all := runsOf(s, name); len(all) != want {
					t.Errorf("%d runs of %s, want %d: %+v", len(all), name, want, all)
				}
			}
		}
		counts(1, 1, 0)
		// A run that is opened again calls whom its request named.
		s.send("POST", "/v1/runs/"+r.ID+"/retry", "{}").is(200)
		time.Sleep(time.Second)
		synctest.Wait()
		counts(1, 2, 0)
		s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "good", "on": {"succeeded": {"job": "more"}}}, {"job": "good"}]}`).is(200)
		time.Sleep(time.Second)
		synctest.Wait()
		counts(1, 2, 1)
		if told := runsOf(s, "more")[0]; told.Trigger != "callback" || told.Callback == nil || told.Callback.Event != "succeeded" || told.State != "succeeded" {
			t.Errorf("told by %+v", told)
		}
	})
}

// A job may be named that the same request puts, and in a dry run one that others will.
func TestACallbackOfTheSameRequest(t *testing.T) {
	s := start(t, 0, nil)
	named := func(name, body string) string { return strings.Replace(body, "{", `{"name": "`+name+`", `, 1) }
	batch := func(jobs ...string) string { return `{"jobs": [` + strings.Join(jobs, ", ") + `]}` }
	report := calling("fail", `{"failed": {"job": "tell"}}`)
	for _, c := range []struct {
		path, body string
		statuses   []int
	}{
		{"/v1/jobs/batch", batch(named("report", report)), []int{422}},
		{"/v1/jobs/batch?dry_run=true", batch(named("report", report)), []int{422}},
		{"/v1/jobs/batch?dry_run=true&beside=other,tell", batch(named("report", report)), []int{201}},
		{"/v1/jobs/batch?dry_run=true", batch(named("report", report), named("tell", echo)), []int{201, 201}},
		{"/v1/jobs/batch", batch(named("report", report), named("tell", echo)), []int{201, 201}},
	} {
		for i, v := range into[wire.JobVerdicts](s.send("POST", c.path, c.body).is(200)).Items {
			if v.Status != c.statuses[i] {
				t.Errorf("%s %s: job %d has %d, want %d (%+v)", c.path, c.body, i, v.Status, c.statuses[i], v.Problem)
			}
		}
	}
	s.send("PUT", "/v1/jobs/late?dry_run=true", calling("fail", `{"failed": {"job": "later"}}`)).is(422)
	s.send("PUT", "/v1/jobs/late?dry_run=true&beside=later", calling("fail", `{"failed": {"job": "later"}}`)).is(200)
	got := s.send("GET", "/v1/jobs/report", "").is(200)
	if on := into[wire.Job](got).On; on.Of(job.OnFailed) == nil || on.Of(job.OnFailed).Job != "tell" || on.Of(job.OnSucceeded) != nil {
		t.Errorf("it is shown as %s", got.body)
	}
	// It may be edited although nobody is there any more. Who else names it is refused.
	s.send("DELETE", "/v1/jobs/tell", "").is(204)
	s.send("PUT", "/v1/jobs/report", string(got.body)).is(200)
	s.send("PUT", "/v1/jobs/report", strings.Replace(report, "{", `{"description": "other", `, 1)).is(200)
	s.send("PUT", "/v1/jobs/report", calling("fail", `{"failed": {"job": "tell"}, "succeeded": {"job": "tell"}}`)).refused(422, "invalid")
	s.send("PUT", "/v1/jobs/reports", report).refused(422, "invalid")
}

// What a patch makes of a job's callbacks is checked as those of a job that is put.
func TestCallbacksArePatched(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/tell", echo).is(201)
	s.send("PUT", "/v1/jobs/other", echo).is(201)
	s.send("PATCH", "/v1/jobs/other?dry_run=true", `{"on": {"failed": {"job": "later"}}}`).refused(422, "invalid")
	s.send("PATCH", "/v1/jobs/other?dry_run=true&beside=later", `{"on": {"failed": {"job": "later"}}}`).is(200)
	s.send("PUT", "/v1/jobs/a", calling("echo", `{"failed": {"job": "tell"}}`)).is(201)
	for _, c := range []struct{ patch, code, field, want string }{
		{`{"on": {"succeeded": {"job": "gone"}}}`, "invalid", "on.succeeded.job", "a job that exists"},
		{`{"on": {"failed": {"job": "a"}}}`, "invalid", "on.failed.job", "another job"},
		{`{"on": {"failed": {"job": null}}}`, "malformed", "on.failed.job", ""},
		{`{"on": {"fail": {"job": "tell"}}}`, "malformed", "on.fail", ""},
		{`{"on": {"fail": null}}`, "malformed", "on.fail", ""},
		{`{"on": {"missed": {"job": "gone"}}}`, "invalid", "on.missed.job", "a job that exists"},
	} {
		for _, path := range []string{"/v1/jobs/a", "/v1/jobs/a?dry_run=true"} {
			fields := s.send("PATCH", path, c.patch).refused(map[string]int{"malformed": 400, "invalid": 422}[c.code], c.code)
			if message, named := fields[c.field]; !named || !strings.Contains(message, c.want) {
				t.Errorf("%s: %s is refused for %q, want %s: %s", path, c.patch, fields, c.field, c.want)
			}
		}
	}
	s.send("PATCH", "/v1/jobs/a?dry_run=true&beside=gone", `{"on": {"succeeded": {"job": "gone"}}}`).is(200)
	s.send("PATCH", "/v1/jobs/a?dry_run=true&beside=gone", `{"on": {"succeeded": {"job": "gone"}, "failed": {"job": "went"}}}`).refused(422, "invalid")

	for _, c := range []struct{ patch, succeeded, failed string }{
		{`{"on": {"succeeded": {"job": "other"}}}`, "other", "tell"},
		{`{"on": {"failed": null}}`, "other", ""},
		{`{"on": {"failed": {"job": "tell"}, "succeeded": null}}`, "", "tell"},
		{`{"on": {"failed": {"window": "10m"}}}`, "", "tell"},
	} {
		got := into[wire.Job](s.send("PATCH", "/v1/jobs/a", c.patch).is(200)).On
		for e, want := range map[job.Event]string{job.OnSucceeded: c.succeeded, job.OnFailed: c.failed, job.OnRecovered: ""} {
			if called := got.Of(e); (called != nil) != (want != "") || called != nil && called.Job != want {
				t.Errorf("%s leaves %s %+v, want %q", c.patch, e, called, want)
			}
		}
	}
	got := s.send("GET", "/v1/jobs/a", "").is(200)
	if called := into[wire.Job](got).On.Failed; called.Window.Std() != 10*time.Minute || !strings.Contains(string(got.body), `"window":"10m"`) {
		t.Errorf("with a window it is shown as %s", got.body)
	}
	got = s.send("PATCH", "/v1/jobs/a", `{"on": {"failed": {"window": null}}}`).is(200)
	if called := into[wire.Job](got).On.Failed; called.Window != 0 || called.Job != "tell" || strings.Contains(string(got.body), `{"job":"tell","window"`) {
		t.Errorf("without one it is shown as %s", got.body)
	}
	// It may be patched although nobody is there any more.
	s.send("DELETE", "/v1/jobs/tell", "").is(204)
	s.send("PATCH", "/v1/jobs/a", `{"timeout": "1m"}`).is(200)
	s.send("PATCH", "/v1/jobs/a", `{"on": {"succeeded": {"job": "tell"}}}`).refused(422, "invalid")
	got = s.send("PATCH", "/v1/jobs/a", `{"on": null}`).is(200)
	if on := into[wire.Job](got).On; !on.IsZero() {
		t.Errorf("without callbacks it is shown as %s", got.body)
	}
}

func runsOf(s *server, jobName string) []wire.Run {
	s.t.Helper()
	return into[wire.RunPage](s.send("GET", "/v1/runs?job="+jobName, "").is(200)).Items
}

func TestC1_C2_ARunTellsOfAnother(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/tell", calling("echo", `{}`)).is(201)
		s.send("PUT", "/v1/jobs/again", calling("echo", `{"succeeded": {"job": "tell"}}`)).is(201)
		s.send("PUT", "/v1/jobs/good", calling("echo", `{"succeeded": {"job": "again"}, "failed": {"job": "tell"}}`)).is(201)
		s.send("PUT", "/v1/jobs/bad", calling("fail", `{"succeeded": {"job": "again"}, "failed": {"job": "tell"}}`)).is(201)
		for handler, c := range map[string]struct{ callee, event, result, problem string }{
			"good": {"again", "succeeded", `{"n":1}`, ""},
			"bad":  {"tell", "failed", "", "handler: no such account"},
		} {
			ended := into[wire.Run](s.send("POST", "/v1/jobs/"+handler+"/runs", `{"payload": {"n": 1}}`).is(202))
			time.Sleep(time.Second)
			synctest.Wait()
			ended = into[wire.Run](s.send("GET", "/v1/runs/"+ended.ID, "").is(200))
			called := runsOf(s, c.callee)
			if len(called) != 1 {
				t.Fatalf("%s: %d runs tell of it, want one", handler, len(called))
			}
			r := into[wire.Run](s.send("GET", "/v1/runs/"+called[0].ID, "").is(200))
			if r.State != "succeeded" || r.Trigger != "callback" || r.Callback == nil || *r.Callback != (wire.CallbackOf{Event: c.event, Run: ended.ID}) || !r.NominalTime.Equal(ended.EndedAt) {
				t.Errorf("%s: told by %+v", handler, r)
			}
			var told run.Told
			if err := json.Unmarshal(r.Result, &told); err != nil { // it echoes what it was given
				t.Fatal(err)
			}
			got := told.Run
			if string(told.Event) != c.event || got.ID != ended.ID || got.Job != handler || got.State != ended.State || got.Generation != ended.Generation || !got.NominalTime.Equal(ended.NominalTime) ||
				!got.StartedAt.Equal(ended.StartedAt) || !got.EndedAt.Equal(ended.EndedAt) || got.Attempt != ended.Attempt || got.Reason != ended.Reason || string(got.Result) != c.result || got.Error != c.problem {
				t.Errorf("%s: it is told %s, and the run is %+v", handler, r.Result, ended)
			}
		}
		if all := runsOf(s, "tell"); len(all) != 1 {
			t.Errorf("a callback called: %+v", all)
		}
		s.send("POST", "/v1/jobs/again/runs", "{}").is(202)
		time.Sleep(time.Second)
		synctest.Wait()
		if all := runsOf(s, "tell"); len(all) != 2 {
			t.Errorf("a request of a job that is called tells nobody: %+v", all)
		}
	})
}

// The first success after a run was given up tells that the job has recovered, and no other; of a job made anew none does.
func TestC2_AJobRecovers(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		const on = `{"recovered": {"job": "tell"}}`
		s.send("PUT", "/v1/jobs/tell", echo).is(201)
		told := 0
		ends := func(handler string, calls int) {
			t.Helper()
			s.send("PUT", "/v1/jobs/shaky", calling(handler, on))
			time.Sleep(time.Second)
			s.send("POST", "/v1/jobs/shaky/runs", "{}").is(202)
			time.Sleep(time.Second)
			synctest.Wait()
			told += calls
			all := runsOf(s, "tell")
			if len(all) != told || calls > 0 && (all[0].Callback == nil || all[0].Callback.Event != "recovered" || all[0].State != "succeeded") {
				t.Errorf("%d runs tell of it, want %d: %+v", len(all), told, all)
			}
		}
		for _, c := range []struct {
			handler string
			calls   int
		}{{"echo", 0}, {"fail", 0}, {"fail", 0}, {"echo", 1}, {"echo", 0}, {"fail", 0}, {"echo", 1}, {"fail", 0}} {
			ends(c.handler, c.calls)
		}
		time.Sleep(time.Minute)
		s.send("DELETE", "/v1/jobs/shaky", "").is(204)
		ends("echo", 0)
		ends("fail", 0)
		ends("echo", 1)
	})
}

// A callback waits while its job is paused, and ends with it when it is deleted.
func TestC1_WhoIsCalledIsPausedOrDeleted(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/tell", echo).is(201)
		s.send("PUT", "/v1/jobs/good", calling("echo", `{"succeeded": {"job": "tell"}}`)).is(201)
		ends := func() {
			s.send("POST", "/v1/jobs/good/runs", "{}").is(202)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		s.send("POST", "/v1/jobs/tell/pause", "{}").is(200)
		ends()
		if all := runsOf(s, "tell"); len(all) != 1 || all[0].State != "queued" || all[0].Trigger != "callback" {
			t.Errorf("while it is paused: %+v", all)
		}
		s.send("POST", "/v1/jobs/tell/resume", "{}").is(200)
		time.Sleep(time.Second)
		synctest.Wait()
		if all := runsOf(s, "tell"); len(all) != 1 || all[0].State != "succeeded" {
			t.Errorf("resumed: %+v", all)
		}
		time.Sleep(time.Minute)
		s.send("DELETE", "/v1/jobs/tell", "").is(204)
		ends()
		if all := runsOf(s, "tell"); len(all) != 2 || all[0].State != "cancelled" || all[0].Reason != "the job was deleted" {
			t.Errorf("deleted: %+v", all)
		}
		time.Sleep(time.Minute)
		s.send("PUT", "/v1/jobs/tell", echo).is(201)
		ends()
		if all := runsOf(s, "tell"); len(all) != 3 || all[0].State != "succeeded" || all[0].Callback == nil {
			t.Errorf("made anew: %+v", all)
		}
	})
}

// A run that is opened again and ends again is told of again; one that is cancelled is not.
func TestC2_EachEndIsToldOf(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/tell", echo).is(201)
		s.send("PUT", "/v1/jobs/bad", calling("fail", `{"failed": {"job": "tell"}, "succeeded": {"job": "tell"}}`)).is(201)
		r := into[wire.Run](s.send("POST", "/v1/jobs/bad/runs", "{}").is(202))
		time.Sleep(time.Second)
		synctest.Wait()
		s.send("POST", "/v1/runs/"+r.ID+"/retry", "{}").is(200)
		time.Sleep(time.Second)
		synctest.Wait()
		all := runsOf(s, "tell")
		if len(all) != 2 || all[0].Callback.Run != r.ID || all[1].Callback.Run != r.ID || all[0].ID == all[1].ID {
			t.Errorf("told of by %+v", all)
		}
		r = into[wire.Run](s.send("POST", "/v1/jobs/bad/runs", `{"delay": "1h"}`).is(202))
		s.send("POST", "/v1/runs/"+r.ID+"/cancel", "{}").is(200)
		time.Sleep(10 * time.Minute)
		if all := runsOf(s, "tell"); len(all) != 2 {
			t.Errorf("a cancel calls: %+v", all)
		}
		// A callback that is retried on request stays one.
		s.send("POST", "/v1/runs/"+all[0].ID+"/retry", `{"force": true}`).is(200)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := into[wire.Run](s.send("GET", "/v1/runs/"+all[0].ID, "").is(200)); got.State != "succeeded" || got.Attempt != 2 || got.Callback == nil {
			t.Errorf("retried: %+v", got)
		}
	})
}

// What failed within a window is told of once, with where each of it is found.
func TestC1_C2_SeveralRunsAreToldOfTogether(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/tell", calling("echo", `{}`)).is(201)
		for _, name := range []string{"bad", "worse"} {
			s.send("PUT", "/v1/jobs/"+name, calling("fail", `{"failed": {"job": "tell", "window": "10m"}}`)).is(201)
		}
		time.Sleep(time.Until(time.Now().Truncate(10 * time.Minute).Add(10*time.Minute + time.Second)))
		from := time.Now().Truncate(10 * time.Minute)
		var ids []string
		for _, name := range []string{"bad", "worse", "bad"} {
			ids = append(ids, into[wire.Run](s.send("POST", "/v1/jobs/"+name+"/runs", `{"payload": {"n": 1}}`).is(202)).ID)
			time.Sleep(time.Second)
		}
		time.Sleep(9 * time.Minute)
		if all := runsOf(s, "tell"); len(all) != 0 {
			t.Fatalf("before the window is over it is told %+v", all)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		all := runsOf(s, "tell")
		if len(all) != 1 {
			t.Fatalf("%d runs tell of it, want one", len(all))
		}
		r := into[wire.Run](s.send("GET", "/v1/runs/"+all[0].ID, "").is(200))
		if r.State != "succeeded" || r.Callback == nil || *r.Callback != (wire.CallbackOf{Event: "failed", Run: ids[0], Count: 3}) || r.NominalTime.Sub(from.Add(10*time.Minute)) > 8*time.Second || r.StartedAt.Sub(r.NominalTime) > time.Second {
			t.Errorf("told by %+v", r)
		}
		var told run.Told
		if err := json.Unmarshal(r.Result, &told); err != nil { // it echoes what it was given
			t.Fatal(err)
		}
		if told.Count != 3 || told.Jobs["bad"] != 2 || told.Jobs["worse"] != 1 || len(told.Runs) != 3 || told.Run.ID != ids[0] || !told.Window.From.Equal(from) || !told.Window.Until.Equal(from.Add(10*time.Minute)) {
			t.Fatalf("it is told %s", r.Result)
		}
		for i, id := range ids {
			if of := told.Runs[i]; of.ID != id || of.Error != "handler: no such account" || of.State != "failed" {
				t.Errorf("it is told %+v of run %s", of, id)
			}
		}
	})
}

// Whoever names the job itself, where an object names it, is told of that object. What is no name of a job is not put into one.
func TestACallbackThatIsTheNameOfAJob(t *testing.T) {
	s := start(t, 0, nil)
	const form = "got string, want an object"
	for given, want := range map[string]string{
		`"tell"`:                             form + " such as {job: tell}",
		`"tell me"`:                          form,
		`""`:                                 form,
		`"` + strings.Repeat("a", 129) + `"`: form,
		`"a}, x: {job: b"`:                   form,
		`["tell"]`:                           "got array, want an object",
		`7`:                                  "got number, want an object",
	} {
		for _, event := range job.Events() {
			if got := s.send("PUT", "/v1/jobs/a", `{"target": {"handler": {"name": "echo"}}, "on": {"`+string(event)+`": `+given+`}}`).refused(400, "malformed")["on."+string(event)]; got != want {
				t.Errorf("a job, %s: %s: %q, want %q", event, given, got, want)
			}
		}
		s.send("PUT", "/v1/jobs/b", echo)
		if got := s.send("POST", "/v1/jobs/b/runs", `{"on": {"failed": `+given+`}}`).refused(400, "malformed")["on.failed"]; got != want {
			t.Errorf("a request: %s: %q, want %q", given, got, want)
		}
	}
}
