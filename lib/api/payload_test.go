package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestThePayloadOfARun(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"payload": {"own": 1.50, "big": 12345678901234567890}, `, 1)).is(201)
		s.send("PUT", "/v1/jobs/none", echo).is(201)
		run := func(job, body string) string {
			t.Helper()
			return into[wire.Run](s.send("POST", "/v1/jobs/"+job+"/runs", body).is(202)).ID
		}
		check := func(id, want, from string) {
			t.Helper()
			r := s.send("GET", "/v1/runs/"+id+"/payload", "").is(200)
			if string(r.body) != want || r.header.Get("Content-Type") != "application/json" || r.header.Get("Belfry-Payload") != from ||
				r.header.Get("Content-Disposition") != `attachment; filename="`+id+`.payload.json"` || r.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %.100q, headers %v; want %.100q of the %s", id, r.body, r.header, want, from)
			}
		}
		jobs := run("a", `{}`)
		check(jobs, `{"own":1.50,"big":12345678901234567890}`, "job")
		inline := run("a", `{"payload": {"n": [1, 2.50], "html": "<script>"}}`)
		check(inline, `{"n":[1,2.50],"html":"<script>"}`, "run")
		large := `"` + strings.Repeat("x", 1000_000) + `"`
		kept := run("a", `{"payload": `+large+`}`)
		check(kept, large, "run")
		later := run("a", `{"delay": "24h"}`)
		settle()
		check(jobs, `{"own":1.50,"big":12345678901234567890}`, "job") // ended

		// A run keeps the payload of the definition that it ran; one that waits has that of the newest.
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"payload": 2, `, 1)).is(200)
		check(jobs, `{"own":1.50,"big":12345678901234567890}`, "job")
		check(later, `2`, "job")
		s.send("DELETE", "/v1/jobs/a", "").is(204)
		check(jobs, `{"own":1.50,"big":12345678901234567890}`, "job")

		nothing := s.send("GET", "/v1/runs/"+run("none", `{}`)+"/payload", "").is(204)
		if len(nothing.body) != 0 || nothing.header.Get("Content-Type") != "" || nothing.header.Get("Content-Disposition") != "" {
			t.Errorf("no payload: %q, %v", nothing.body, nothing.header)
		}
		s.send("GET", "/v1/runs/"+kept+"/payload", "", s.of("acme")...).refused(404, "run_not_found")
		s.send("GET", "/v1/runs/a~0mi4lf3k0/payload", "").refused(404, "run_not_found")

		for {
			deleted, err := s.blobs.DeleteExpired(t.Context(), time.Now().Add(200*24*time.Hour), 1000)
			if err != nil && !errors.Is(err, blob.ErrNotFound) {
				t.Fatal(err)
			}
			if deleted == 0 {
				break
			}
		}
		s.send("GET", "/v1/runs/"+kept+"/payload", "").refused(410, "payload_expired")
		check(inline, `{"n":[1,2.50],"html":"<script>"}`, "run")
	})
}
