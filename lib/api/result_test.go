package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A large result is left out where its run is shown, so that all else of the run comes through whatever stands in front of the server; and its bytes are given by
// themselves, whole or in parts.
func TestALargeResultIsGivenByItself(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"steps": {"a": {"handler": {"name": "echo"}}, "p": {"needs": ["a"], "pass": {}}},
			"output": "${ .steps.a.result }"}}}`).is(201)
		ran := func(payload string) string {
			t.Helper()
			id := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{"payload": `+payload+`}`).is(202)).ID
			settle()
			return id
		}
		largest := `"` + strings.Repeat("é", 128<<10-1) + `"`
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+ran(largest), "").is(200)); string(r.Result) != largest || r.ResultSize != 0 || r.ResultType != "" {
			t.Errorf("a result of %d bytes is shown with %d, size %d, type %q", len(largest), len(r.Result), r.ResultSize, r.ResultType)
		}
		large := `"` + strings.Repeat("é", 128<<10) + `"`
		size := len(large)
		id := ran(large)
		r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
		step := into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps?path=a", "").is(200)).Items[0]
		if r.State != "succeeded" || len(r.Steps) != 2 || r.Result != nil || r.ResultSize != int64(size) || r.ResultType != "application/json" {
			t.Errorf("the run is %s with a result of %d bytes, size %d, type %q", r.State, len(r.Result), r.ResultSize, r.ResultType)
		}
		if step.State != "succeeded" || len(step.Attempts) != 1 || step.Result != nil || step.ResultSize != int64(size) || step.ResultType != "application/json" {
			t.Errorf("the step is %s with a result of %d bytes, size %d, type %q", step.State, len(step.Result), step.ResultSize, step.ResultType)
		}
		for path, file := range map[string]string{"/result": id + ".result", "/result?step=a": id + ".a.result", "/payload": id + ".payload.json", "/payload?step=a": id + ".a.payload.json"} {
			for part, want := range map[string]struct {
				data, which string
			}{
				"":                                  {large, ""},
				"bytes=0-0":                         {large[:1], fmt.Sprintf("bytes 0-0/%d", size)},
				"bytes=2-99":                        {large[2:100], fmt.Sprintf("bytes 2-99/%d", size)}, // it begins within a character
				fmt.Sprintf("bytes=%d-", size-1):    {large[size-1:], fmt.Sprintf("bytes %d-%[1]d/%d", size-1, size)},
				fmt.Sprintf("bytes=9-%d", size+100): {large[9:], fmt.Sprintf("bytes 9-%d/%d", size-1, size)},
			} {
				var headers []string
				status := 200
				if part != "" {
					headers, status = []string{"Range", part}, 206
				}
				got := s.send("GET", "/v1/runs/"+id+path, "", headers...).is(status)
				if string(got.body) != want.data || got.header.Get("Content-Range") != want.which || got.header.Get("Content-Type") != "application/json" ||
					got.header.Get("ETag") != `"`+blob.SumOf([]byte(large))+`"` || got.header.Get("Content-Disposition") != `attachment; filename="`+file+`"` || got.header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s, %s: %d bytes, headers %v", path, part, len(got.body), got.header)
				}
			}
			for _, behind := range []string{fmt.Sprintf("bytes=%d-", size), fmt.Sprintf("bytes=%d-%[1]d", size+9), "bytes=9-8"} {
				got := s.send("GET", "/v1/runs/"+id+path, "", "Range", behind)
				if got.refused(416, "no_such_range"); got.header.Get("Content-Range") != fmt.Sprintf("bytes */%d", size) || got.header.Get("ETag") != "" {
					t.Errorf("%s, %s: headers %v", path, behind, got.header)
				}
			}
			s.send("GET", "/v1/runs/"+id+path, "", "Range", "bytes=-5").refused(400, "malformed")
		}
		s.send("GET", "/v1/runs/"+id+"/result?step=p", "").refused(404, "step_not_found")
		s.send("GET", "/v1/runs/"+id+"/result?step=z", "").refused(404, "step_not_found")
		s.send("GET", "/v1/runs/a~0mi4lf3k0/result", "").refused(404, "run_not_found")
		s.send("GET", "/v1/runs/"+id+"/result", "", s.of("acme")...).refused(404, "run_not_found")

		s.send("PUT", "/v1/jobs/say", strings.Replace(echo, "echo", "say", 1)).is(201)
		for kind, want := range map[string]string{"text/plain; charset=utf-8": "text/plain; charset=utf-8", "": "application/octet-stream", "no type": "application/octet-stream"} {
			said := into[wire.Run](s.send("POST", "/v1/jobs/say/runs", `{"payload": {"body": "/wA=", "type": "`+kind+`"}}`).is(202)).ID
			settle()
			if got := s.send("GET", "/v1/runs/"+said+"/result", "").is(200); string(got.body) != "\xff\x00" || got.header.Get("Content-Type") != want {
				t.Errorf("of type %q: %q as %q, want the bytes as %q", kind, got.body, got.header.Get("Content-Type"), want)
			}
		}
		later := into[wire.Run](s.send("POST", "/v1/jobs/say/runs", `{"delay": "24h"}`).is(202)).ID
		s.send("GET", "/v1/runs/"+later+"/result", "").is(204)

		if n, err := s.blobs.DeleteExpired(t.Context(), time.Now().AddDate(10, 0, 0), 1000); err != nil || n == 0 {
			t.Fatal(n, err)
		}
		s.send("GET", "/v1/runs/"+id+"/result", "").refused(410, "result_expired")
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)); r.ResultSize != 0 || !strings.HasPrefix(r.Reason, "the result ") {
			t.Errorf("a result that is gone has the size %d, reason %q", r.ResultSize, r.Reason)
		}
	})
}
