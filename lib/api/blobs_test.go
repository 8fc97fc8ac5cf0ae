package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// TestFault45_WhereTheStoreOfBlobsIsAway: whoever asks is told to come again, and whether anything was done; what needs no blob goes on.
func TestFault45_WhereTheStoreOfBlobsIsAway(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		large := `{"payload": "` + strings.Repeat("x", run.MaxResult) + `"}`
		id := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", large).is(202)).ID
		settle()
		if err := s.blobs.Close(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, method, path, body, key, code string
		}{
			{"a request", "POST", "/v1/jobs/a/runs", large, "", "throttled"},
			{"a request whose key is bound", "POST", "/v1/jobs/a/runs", large, "k", "outcome_unknown"},
			{"another try", "POST", "/v1/runs/" + id + "/retry", `{"force": true}`, "", "throttled"},
			{"a result", "GET", "/v1/runs/" + id, "", "", "throttled"},
		} {
			var headers []string
			if c.key != "" {
				headers = []string{"Idempotency-Key", c.key}
			}
			got := s.send(c.method, c.path, c.body, headers...).is(503)
			if p := into[wire.Problem](got); p.Code != c.code || got.header.Get("Retry-After") == "" {
				t.Errorf("%s: got %s, Retry-After %q; want %s and when to come again", c.name, p.Code, got.header.Get("Retry-After"), c.code)
			}
		}
		two := into[wire.RunVerdicts](s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "a", `+large[1:]+`, {"job": "a"}]}`).is(200)).Items
		if two[0].Problem == nil || two[0].Problem.Code != "throttled" || two[1].Status != 202 {
			t.Errorf("of two in a batch, the second of them small: %+v", two)
		}
		s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)
	})
}

// TestFault49_AResultThatIsGone: a run whose result was kept, and is not there any more, is not shown as one that had none.
func TestFault49_AResultThatIsGone(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{"payload": "`+strings.Repeat("x", run.MaxResult)+`"}`).is(202)).ID
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)); len(r.Result) == 0 || r.Reason != "" {
			t.Fatalf("before: a result of %d bytes, reason %q", len(r.Result), r.Reason)
		}
		if n, err := s.blobs.DeleteExpired(t.Context(), time.Now().AddDate(10, 0, 0), 100); err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for range 2 {
			r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
			if len(r.Result) != 0 || !strings.Contains(r.Reason, "the result is lost") || r.State != "succeeded" {
				t.Errorf("%s, a result of %d bytes, reason %q", r.State, len(r.Result), r.Reason)
			}
		}
	})
}
