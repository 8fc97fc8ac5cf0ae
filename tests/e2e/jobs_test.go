//go:build emulators

package e2e

import (
	"net/http"
	"sync"
	"testing"
)

// Neither no key, nor a wrong one, nor a name of one's own choice opens the API. API Gateway answers, or Belfry does.
func closed(t *testing.T, f fixture) {
	for name, headers := range map[string][]string{
		"nothing":          nil,
		"a wrong key":      {"X-Api-Key", "wrong"},
		"a tenant's name":  {"Belfry-Tenant", "default"},
		"a token, made up": {"Authorization", "Bearer bel_made_up"},
	} {
		for _, s := range []stack{f.stack, f.second} {
			for _, path := range []string{"/v1/jobs", "/v1/runs", "/v1/queues"} {
				req, err := http.NewRequestWithContext(t.Context(), "GET", s.address+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < len(headers); i += 2 {
					req.Header.Set(headers[i], headers[i+1])
				}
				answer, err := s.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s: GET %s of %s with %s: %s", name, path, s.name, name, answer.Status)
				}
			}
		}
	}
}

func jobsAreKept(t *testing.T, f fixture) {
	p := f.target.at("kept")
	definition := object{"target": p.get(), "schedule": object{"cron": "0 4 1 1 *", "timezone": "Europe/Berlin"}, "labels": object{"team": "e2e-" + session}}
	name := f.stack.put(t, "kept", definition)
	got := f.stack.must(t, http.StatusOK, "GET", "/v1/jobs/"+name, nil)
	again := f.stack.must(t, http.StatusOK, "PUT", "/v1/jobs/"+name, got)
	if again.text("description") != got.text("description") {
		t.Errorf("what GET gave is %v after PUT", again)
	}
	if listed := f.stack.must(t, http.StatusOK, "GET", "/v1/jobs?label=team=e2e-"+session, nil).list("items"); len(listed) != 1 || listed[0].text("name") != name {
		t.Errorf("listed by label: %v", listed)
	}
	wrong := f.stack.must(t, http.StatusUnprocessableEntity, "PUT", "/v1/jobs/wrong", object{"target": p.get(), "schedule": object{"cron": "0 25 * * *"}})
	if errs := wrong.list("errors"); wrong.text("code") != "invalid" || len(errs) != 1 || errs[0].text("field") != "schedule.cron" {
		t.Errorf("a wrong hour: %v", wrong)
	}
	if unknown := f.stack.must(t, http.StatusUnprocessableEntity, "PUT", "/v1/jobs/wrong", object{"target": p.get(), "queue": "gpu"}); unknown.text("code") != "invalid" {
		t.Errorf("a queue that is not there: %v", unknown)
	}
	if long := f.stack.must(t, http.StatusUnprocessableEntity, "PUT", "/v1/jobs/wrong", object{"target": p.get(), "timeout": "20m"}); long.text("code") != "invalid" {
		t.Errorf("longer than a function may run: %v", long)
	}
	// API Gateway knows each path, and answers for those that are none.
	if status, _ := f.stack.ask(t, "GET", "/v1/nothing", nil); status != http.StatusForbidden && status != http.StatusNotFound {
		t.Errorf("a path that is none: %d", status)
	}
	run := f.stack.start(t, name, object{"payload": object{"say": "hello"}})
	if ended := f.stack.ended(t, run); ended.text("state") != "succeeded" || ended.number("attempt") != 1 {
		t.Errorf("the run: %v", ended)
	}
	if h := p.wait(t, 1)[0]; h.run != run || h.body != `{"say":"hello"}` || h.key == "" {
		t.Errorf("called with %+v", h)
	}
	f.stack.must(t, http.StatusNoContent, "DELETE", "/v1/jobs/"+name, nil)
	f.stack.must(t, http.StatusNotFound, "GET", "/v1/jobs/"+name, nil)
}

func oneKeyOneRun(t *testing.T, f fixture) {
	p := f.target.at("key")
	name := f.stack.put(t, "key", object{"target": p.get()})
	var asked sync.WaitGroup
	runs := make([]string, 8)
	for i := range runs {
		asked.Go(func() {
			runs[i] = f.stack.must(t, http.StatusAccepted, "POST", "/v1/jobs/"+name+"/runs", object{"payload": object{"n": 1}}, "Idempotency-Key", "same-"+session).text("id")
		})
	}
	asked.Wait()
	for _, run := range runs {
		if run == "" || run != runs[0] {
			t.Fatalf("runs %v, want one", runs)
		}
	}
	other := f.stack.must(t, http.StatusConflict, "POST", "/v1/jobs/"+name+"/runs", object{"payload": object{"n": 2}}, "Idempotency-Key", "same-"+session)
	if other.text("code") != "idempotency_key_reused" {
		t.Errorf("another body: %v", other)
	}
	f.stack.ended(t, runs[0])
	if n := len(p.seen()); n != 1 {
		t.Errorf("%d calls, want one", n)
	}
}
