package linear

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// script plays a server that answers as a test says.
type script struct {
	t *testing.T
	*Recorder
	clock time.Time
	way   *Way // of the newest request
}

func newScript(t *testing.T) *script {
	s := &script{t: t, clock: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	s.Recorder = NewRecorder(func() time.Time { return s.clock })
	return s
}

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ask sends "METHOD /path [Header: value]", whose answer is "STATUS [ETag: value] BODY", or lost where that is "". What meanwhile does
// happens between the request and its answer.
func (s *script) ask(request, body, answer string, meanwhile ...func()) {
	s.t.Helper()
	words := strings.SplitN(request, " ", 4)
	r, err := http.NewRequestWithContext(s.t.Context(), words[0], "http://belfry"+words[1], strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if len(words) == 4 {
		r.Header.Set(strings.TrimSuffix(words[2], ":"), words[3])
	}
	transport := s.Transport("default", answering(func(r *http.Request) (*http.Response, error) {
		s.way = WayOf(r.Context())
		for _, do := range meanwhile {
			do()
		}
		if answer == "" {
			return nil, errors.New("connection reset")
		}
		status, text, _ := strings.Cut(answer, " ")
		var code int
		if _, err := fmt.Sscan(status, &code); err != nil {
			s.t.Fatal(err)
		}
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
	}))
	response, err := transport.RoundTrip(r)
	if err == nil {
		if _, err := io.ReadAll(response.Body); err != nil {
			s.t.Error(err)
		}
		response.Body.Close()
	} else if answer != "" {
		s.t.Error(err)
	}
}

// definition n, and an answer that shows it.
func definition(n int) string {
	return fmt.Sprintf(`{"target":{"handler":{"name":"f%d"}}}`, n)
}

func shows(status, n int, generation int64) string {
	return fmt.Sprintf(`%d {"name":"a","target":{"handler":{"name":"f%d"}},"status":{"generation":%d,"etag":"\"g%d\""}}`, status, n, generation, generation)
}

func pausedAt(generation int64, reason string) string {
	return fmt.Sprintf(`200 {"name":"a","target":{"handler":{"name":"f1"}},"paused":true,"status":{"generation":%d,"etag":"\"g%d\"","paused_reason":%q}}`, generation, generation, reason)
}

func refuses(status int, code string) string {
	return fmt.Sprintf(`%d {"status":%d,"code":%q}`, status, status, code)
}

// aRunIs is an answer that shows run r.
func aRunIs(status int, state string, attempt, fence int, more ...string) string {
	return fmt.Sprintf(`%d {"id":"r","job":"a","state":%q,"trigger":"request","attempt":%d,"fence":%d%s}`, status, state, attempt, fence, strings.Join(append([]string{""}, more...), ","))
}

const (
	late   = `"reason":"it had not started by 2026-11-21T08:30:00Z"`
	at9    = `"ended_at":"2026-11-21T09:00:00Z"`
	opened = `"started_at":"2026-11-21T08:59:00Z","attempts":[{"attempt":1,"started_at":"2026-11-21T08:00:00Z"}]`
	first  = `"started_at":"2026-11-21T08:00:00Z","attempts":[{"attempt":1,"started_at":"2026-11-21T08:00:00Z"}]`
)

// TestWhatBelfryMayAnswer are histories that have an order.
func TestWhatBelfryMayAnswer(t *testing.T) {
	for name, play := range map[string]func(s *script){
		"edits one after another": func(s *script) {
			s.ask("GET /v1/jobs/a", "", refuses(404, "job_not_found"))
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
			s.ask("POST /v1/jobs/a/pause", `{"reason":"x"}`, pausedAt(11, "x"))
			s.ask("POST /v1/jobs/a/pause", `{"reason":"x"}`, pausedAt(11, "x"))
			s.ask("POST /v1/jobs/a/resume", `{}`, shows(200, 1, 12))
			s.ask("DELETE /v1/jobs/a", "", "204 ")
			s.ask("DELETE /v1/jobs/a", "", refuses(404, "job_not_found"))
			s.ask("PUT /v1/jobs/a If-None-Match: *", definition(1), shows(201, 1, 14))
			s.ask("PUT /v1/jobs/a If-None-Match: *", definition(2), refuses(412, "job_exists"))
		},
		"an edit that is written again where clocks are stepped": func(s *script) {
			s.ClocksStep()
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(1), shows(200, 1, 11))
			s.ask(`PUT /v1/jobs/a If-Match: "g10"`, definition(2), refuses(412, "precondition_failed"))
		},
		"a lost edit that was done, found by repeating it with its old condition": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask(`PUT /v1/jobs/a If-Match: "g10"`, definition(2), "")
			s.ask(`PUT /v1/jobs/a If-Match: "g10"`, definition(2), shows(200, 2, 11))
			s.ask(`PUT /v1/jobs/a If-Match: "g10"`, definition(3), refuses(412, "precondition_failed"))
		},
		"a lost edit that was done much later": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "")
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(3), shows(200, 3, 11))
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 12))
		},
		"a lost edit that was never done": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), "")
			s.ask("GET /v1/jobs/a", "", refuses(404, "job_not_found"))
		},
		"a lost edit that was done before it was over, after its client had given up": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "")
			lost := s.way
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
			lost.Over()
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
		},
		"a lost edit that was over, and done, while its client waited": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "", func() { s.way.Over() })
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
		},
		"of two lost edits the one that is not over": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "")
			s.ask("PUT /v1/jobs/a", definition(3), "", func() { s.way.Over() })
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
		},
		"an edit that was over, and then answered": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10), func() { s.way.Over() })
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
		},
		"an answer that shows a later edit": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 2, 11), func() {
				s.ask("PUT /v1/jobs/a", definition(2), shows(200, 2, 11))
			})
		},
		"an answer that shows a later delete": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), `201 {"target":{},"status":{"generation":11}}`, func() {
				s.ask("DELETE /v1/jobs/a", "", "204 ")
			})
		},
		"a batch and a listing": func(s *script) {
			s.ask("POST /v1/jobs/batch", `{"jobs":[{"name":"a",`+definition(1)[1:]+`]}`, `200 {"items":[{"name":"a","status":201,"etag":"\"ga\""}]}`)
			s.ask("GET /v1/jobs", "", `200 {"items":[`+shows(200, 1, 10)[4:]+`]}`)
		},
		"what was throttled": func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), refuses(503, "throttled"))
			s.ask("GET /v1/jobs/a", "", refuses(404, "job_not_found"))
		},
		"one key, one run": func(s *script) {
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{}`, "")
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{}`, aRunIs(202, "queued", 0, 0))
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{"payload":1}`, refuses(409, "idempotency_key_reused"))
			s.clock = s.clock.Add(25 * time.Hour)
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{"payload":1}`, strings.Replace(aRunIs(202, "queued", 0, 0), `"r"`, `"s"`, 1))
		},
		"a run from start to end, and again": func(s *script) {
			s.ask("POST /v1/jobs/a/runs", `{}`, aRunIs(202, "scheduled", 0, 0))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "retrying", 1, 3))
			s.ask("POST /v1/runs/r/retry", `{}`, refuses(409, "run_not_ended"))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("POST /v1/runs/r/cancel", `{}`, refuses(409, "run_ended"))
			s.ask("POST /v1/runs/r/retry", `{}`, aRunIs(200, "queued", 3, 9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 4, 12, at9, `"result":{"a":1}`))
			s.ask("POST /v1/runs/r/retry", `{}`, refuses(409, "needs_force"))
			s.ask("POST /v1/runs/r/retry", `{"force":true}`, "")
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 4, 12, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 5, 15))
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "running", 5, 15))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "cancelled", 5, 15, at9))
			s.clock = s.clock.Add(25 * time.Hour)
			s.ask("GET /v1/runs/r", "", refuses(404, "run_not_found"))
		},
		"a refusal tells first that it has ended": func(s *script) {
			s.ask("POST /v1/runs/r/retry", `{}`, refuses(409, "run_skipped"))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 0, 0, at9))
		},
		"a fire that an edit takes back before its time": func(s *script) {
			s.ask("GET /v1/runs/r", "", `200 {"id":"r","job":"a","state":"scheduled","trigger":"schedule"}`)
			s.ask("GET /v1/runs/r", "", refuses(404, "run_not_found"))
		},
		"a workflow's run is opened, and cancelled": func(s *script) {
			s.ask("POST /v1/jobs/a/runs", `{}`, aRunIs(202, "queued", 0, 0))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 0, 0, opened))
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "running", 0, 0, opened))
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "cancelled", 0, 0, opened, at9))
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "cancelled", 0, 0, opened, at9)) // asked for at the same time
			s.ask("POST /v1/runs/r/retry", `{}`, refuses(409, "workflow_begun"))
		},
		"a workflow's run is over its time as it is cancelled": func(s *script) {
			s.ask("POST /v1/jobs/a/runs", `{}`, aRunIs(202, "queued", 0, 0))
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "running", 0, 0, opened))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "failed", 0, 0, opened, at9))
		},
		"a workflow's run that was a job's before": func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 1, 3, at9, first))
			s.ask("POST /v1/runs/r/retry", `{}`, aRunIs(200, "queued", 1, 3, first))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9, opened))
		},
		"skipped for overlap, and retried": func(s *script) {
			s.ask("POST /v1/jobs/a/runs", `{}`, aRunIs(202, "queued", 0, 0))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 0, 0, at9, `"reason":"other runs of the job were in progress"`))
			s.ask("POST /v1/runs/r/retry", `{}`, aRunIs(200, "queued", 0, 0))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
		},
		"skipped for others that waited, and retried": func(s *script) {
			s.ask("POST /v1/jobs/a/runs", `{}`, aRunIs(202, "queued", 0, 0))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 0, 0, at9, `"reason":"other runs of the job were in progress or in line"`))
			s.ask("POST /v1/runs/r/retry", `{}`, aRunIs(200, "queued", 0, 0))
		},
		"a fire that was claimed ahead, and taken back by an edit": func(s *script) {
			for _, state := range []string{"scheduled", "queued", "waiting"} {
				s.ask("GET /v1/runs/r", "", strings.Replace(aRunIs(200, state, 0, 0), "request", "schedule", 1))
				s.ask("GET /v1/runs/r", "", refuses(404, "run_not_found"))
			}
		},
		"a lost redrive that comes to a run which nobody had heard of": func(s *script) {
			s.ask("POST /v1/dead-letters/redrive", `{"matching":{}}`, "")
			lost := s.way
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 4, 11))
			lost.Over()
		},
		"opened again after attempts that nobody saw, and too late": func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 0, 0))
			s.ask("POST /v1/runs/retry", `{"runs":["r"]}`, `200 {"items":[{"status":200,"id":"r","state":"queued"}]}`)
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 1, 3, at9, late))
			s.ask("POST /v1/runs/r/retry", `{}`, aRunIs(200, "queued", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 1, 3, at9, late))
		},
		"opened again by a retry that was lost, after attempts that nobody saw, and too late": func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("POST /v1/runs/r/retry", `{}`, "")
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 4, 9, at9, late))
		},
		"opened again by a redrive that was lost, waiting with more attempts, and too late": func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "retrying", 1, 3))
			s.ask("POST /v1/dead-letters/redrive", `{"matching":{}}`, "")
			s.ask("GET /v1/runs/r", "", aRunIs(200, "waiting", 2, 6))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 2, 6, at9, late))
		},
		"opened again by a retry that was lost, cancelled, opened again and too late": func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("POST /v1/runs/r/retry", `{"force":true}`, "")
			s.ask("POST /v1/runs/cancel", `{"runs":["r"]}`, `200 {"items":[{"status":200,"id":"r","state":"cancelled"}]}`)
			s.ask("POST /v1/runs/r/cancel", `{}`, refuses(409, "run_ended"))
			s.ask("POST /v1/runs/retry", `{"runs":["r"]}`, `200 {"items":[{"status":200,"id":"r","state":"queued"}]}`)
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 2, 6, at9, late))
		},
		"a refusal tells first that it has ended, opened again and too late": func(s *script) {
			s.ask("POST /v1/runs/r/cancel", `{}`, refuses(409, "run_ended"))
			s.ask("POST /v1/runs/r/retry", `{}`, "")
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 2, 6, at9, late))
		},
		"opened again before its time, after attempts that nobody saw": func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("POST /v1/runs/retry", `{"runs":["r"]}`, `200 {"items":[{"status":200,"id":"r","state":"scheduled"}]}`)
			s.ask("GET /v1/runs/r", "", aRunIs(200, "scheduled", 2, 6))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 2, 6, at9, late))
		},
		"handed back before its time, by a clock that was ahead": func(s *script) {
			s.ClocksStep()
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "scheduled", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 2, 6))
		},
		"a redrive of nobody knows how many": func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("POST /v1/dead-letters/redrive", `{"matching":{}}`, refuses(503, "outcome_unknown"))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 4, 11))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			play(s)
			if report := Hold(t, s.Recorder); report.Operations == 0 && report.Refused == 0 {
				t.Error("nothing was recorded")
			}
		})
	}
}

// TestCheckerFindsWhatIsPlanted are histories that have none.
func TestCheckerFindsWhatIsPlanted(t *testing.T) {
	for name, row := range map[string]struct {
		thing string
		play  func(s *script)
	}{
		"stale read": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), shows(200, 2, 11))
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
		}},
		"a missed fire, retried": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 0, 0, at9, `"reason":"missed"`))
			s.ask("POST /v1/runs/r/retry", `{}`, aRunIs(200, "queued", 0, 0))
		}},
		"a run that was skipped for overlap is refused": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 0, 0, at9, `"reason":"other runs of the job were in progress"`))
			s.ask("POST /v1/runs/r/retry", `{}`, refuses(409, "run_skipped"))
		}},
		"skipped after an attempt": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 1, 3, at9))
		}},
		"too late after an attempt": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 1, 3, at9, late))
		}},
		"too late after attempts that nobody saw": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 0, 0))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 1, 3, at9, late))
		}},
		"opened again, started, and too late": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("POST /v1/runs/r/retry", `{}`, aRunIs(200, "queued", 3, 9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 4, 11, at9, late))
		}},
		"opened again perhaps, started, and too late": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("POST /v1/runs/r/retry", `{}`, "")
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 4, 11, at9, late))
		}},
		"a lost retry that was over before the attempt, and too late": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("POST /v1/runs/r/retry", `{}`, "")
			s.way.Over()
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 2, 6))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 2, 6, at9, late))
		}},
		"opened again after attempts that nobody saw, and skipped at its gate": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 0, 0))
			s.ask("POST /v1/runs/retry", `{"runs":["r"]}`, `200 {"items":[{"status":200,"id":"r","state":"queued"}]}`)
			s.ask("GET /v1/runs/r", "", aRunIs(200, "skipped", 1, 3, at9, `"reason":"a later run of the job waits in its place"`))
		}},
		"handed back, and scheduled": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "scheduled", 1, 3))
		}},
		"stale listing": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), shows(200, 2, 11))
			s.ask("GET /v1/jobs", "", `200 {"items":[`+shows(200, 1, 10)[4:]+`]}`)
		}},
		"lost update": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), shows(200, 2, 11), func() {
				s.ask("POST /v1/jobs/a/pause", `{"reason":"x"}`, pausedAt(12, "x"))
			})
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
		}},
		"acknowledged, then gone": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("GET /v1/jobs/a", "", refuses(404, "job_not_found"))
		}},
		"two winners of one If-Match": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask(`PUT /v1/jobs/a If-Match: "g10"`, definition(2), shows(200, 2, 11), func() {
				s.ask(`PUT /v1/jobs/a If-Match: "g10"`, definition(3), shows(200, 3, 12))
			})
		}},
		"two creators": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a If-None-Match: *", definition(1), shows(201, 1, 10), func() {
				s.ask("PUT /v1/jobs/a If-None-Match: *", definition(2), shows(201, 2, 11))
			})
		}},
		"refused though the condition held": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask(`PUT /v1/jobs/a If-Match: "g10"`, definition(2), refuses(412, "precondition_failed"))
		}},
		"throttled, and done": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), refuses(503, "throttled"))
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
		}},
		"a repeated PUT makes a new generation": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(1), shows(200, 1, 11))
		}},
		"a generation that restarts": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("DELETE /v1/jobs/a", "", "204 ")
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
		}},
		"resurrected delete": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("DELETE /v1/jobs/a", "", "204 ")
			s.ask("GET /v1/jobs/a", "", refuses(404, "job_not_found"))
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
		}},
		"a delete of what was not there is told as done": {"job default/a", func(s *script) {
			s.ask("DELETE /v1/jobs/a", "", "204 ", func() {
				s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			})
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
		}},
		"a lost edit that comes and goes": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "")
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
		}},
		"a lost edit that is done when it was over": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "")
			s.way.Over()
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
		}},
		"a lost edit that is done when it was over while its client waited": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "", func() {
				s.way.Over()
				s.ask("GET /v1/jobs/a", "", shows(200, 1, 10))
			})
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
		}},
		"an edit that never arrived, and was done": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("PUT /v1/jobs/a", definition(2), "", func() { s.way.Never() })
			s.ask("GET /v1/jobs/a", "", shows(200, 2, 11))
		}},
		"a lost retry that opens a run when it was over": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("POST /v1/runs/r/retry", `{}`, "")
			s.way.Over()
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 4, 11))
		}},
		"a lost redrive that opens a run when it was over": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("POST /v1/dead-letters/redrive", `{"matching":{}}`, "")
			s.way.Over()
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 4, 11))
		}},
		"a lost redrive that was over when a run was dead": {"run default/r", func(s *script) {
			s.ask("POST /v1/dead-letters/redrive", `{"matching":{}}`, "")
			s.way.Over()
			s.ask("GET /v1/runs/r", "", aRunIs(200, "dead", 3, 9, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 4, 11))
		}},
		"a pause that does not hold": {"job default/a", func(s *script) {
			s.ask("PUT /v1/jobs/a", definition(1), shows(201, 1, 10))
			s.ask("POST /v1/jobs/a/pause", `{}`, pausedAt(11, ""))
			s.ask("GET /v1/jobs/a", "", shows(200, 1, 12))
		}},
		"one key, two runs": {"key default/k", func(s *script) {
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{}`, aRunIs(202, "queued", 0, 0), func() {
				s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{}`, strings.Replace(aRunIs(202, "queued", 0, 0), `"r"`, `"s"`, 1))
			})
		}},
		"one key, two bodies": {"key default/k", func(s *script) {
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{}`, aRunIs(202, "queued", 0, 0))
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{"payload":1}`, aRunIs(202, "queued", 0, 0))
		}},
		"a key refused for nothing": {"key default/k", func(s *script) {
			s.ask("POST /v1/runs/batch", `{"runs":[{"job":"a","idempotency_key":"k"}]}`, `200 {"items":[{"status":202,"id":"r","state":"queued"}]}`)
			s.ask("POST /v1/jobs/a/runs Idempotency-Key: k", `{}`, refuses(409, "idempotency_key_reused"))
		}},
		"an accepted run is gone": {"run default/r", func(s *script) {
			s.ask("POST /v1/jobs/a/runs", `{}`, aRunIs(202, "queued", 0, 0))
			s.ask("GET /v1/runs/r", "", refuses(404, "run_not_found"))
		}},
		"a workflow's run succeeds after a cancel": {"run default/r", func(s *script) {
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "running", 0, 0, opened))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 0, 0, opened, at9))
		}},
		"a workflow's run starts as an attempt": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 0, 0, opened))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3))
		}},
		"a running attempt becomes a workflow's run": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 1, 3, first))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9, opened))
		}},
		"a run that ended without a start": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 1, 3, first))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9, first))
		}},
		"terminal state changed": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "failed", 1, 3, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9))
		}},
		"a terminal run runs again unasked": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 2, 6))
		}},
		"another result": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9, `"result":1`))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9, `"result":2`))
		}},
		"a run goes back": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 2, 6))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "queued", 1, 3))
		}},
		"an attempt under two fences": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 2, 6))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 2, 7))
		}},
		"cancelled, and goes on": {"run default/r", func(s *script) {
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "running", 1, 3))
			s.ask("GET /v1/runs/r", "", aRunIs(200, "running", 2, 6))
		}},
		"cancelled twice": {"run default/r", func(s *script) {
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "cancelled", 0, 0, at9))
			s.ask("POST /v1/runs/r/cancel", `{}`, aRunIs(200, "cancelled", 0, 0, at9))
		}},
		"ended for one, not for another": {"run default/r", func(s *script) {
			s.ask("POST /v1/runs/r/cancel", `{}`, refuses(409, "run_ended"))
			s.ask("POST /v1/runs/r/retry", `{}`, refuses(409, "run_not_ended"))
		}},
		"a retry opens what succeeded, without force": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", aRunIs(200, "succeeded", 1, 3, at9))
			s.ask("POST /v1/runs/retry", `{"runs":["r"]}`, `200 {"items":[{"status":200,"id":"r","state":"queued"}]}`)
		}},
		"an answer that is none of Belfry's": {"run default/r", func(s *script) {
			s.ask("GET /v1/runs/r", "", `200 {"id":`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			row.play(s)
			found := s.Check(5 * time.Minute).Failures
			if len(found) != 1 || found[0].Thing != row.thing || found[0].Verdict != porcupine.Illegal {
				t.Fatalf("found %+v, want %s to be illegal", found, row.thing)
			}
			if !strings.Contains(found[0].Text, "None of these fits next:\n") || !strings.Contains(string(found[0].page), "<html") {
				t.Errorf("explained as %q, drawn as %.100q", found[0].Text, found[0].page)
			}
		})
	}
}

// TestUnknownIsAFailure: a search that does not come to its end has shown nothing.
func TestUnknownIsAFailure(t *testing.T) {
	s := newScript(t)
	// Many lost edits whose orders are as good as each other, and a look that none of them leads to.
	for n := range 30 {
		s.ask("PUT /v1/jobs/a", definition(n), "")
	}
	s.ask("GET /v1/jobs/a", "", shows(200, 99, 10))
	found := s.Check(50 * time.Millisecond).Failures
	if len(found) != 1 || found[0].Verdict != porcupine.Unknown || !strings.Contains(found[0].Text, "in time, no order") {
		t.Errorf("found %+v, want a verdict of unknown", found)
	}
}

// TestLostInARowIsDecided: lost edits with no look in between leave no more states than there are definitions.
func TestLostInARowIsDecided(t *testing.T) {
	s := newScript(t)
	s.ask("PUT /v1/jobs/a", definition(0), shows(201, 0, 10))
	for n := range 2000 {
		s.ask("PUT /v1/jobs/a", definition(n%20), "")
		s.way.Over()
	}
	s.ask("GET /v1/jobs/a", "", shows(200, 7, 2004))
	Hold(t, s.Recorder)
	s.ask("GET /v1/jobs/a", "", shows(200, 8, 2004))
	if found := s.Check(5 * time.Minute).Failures; len(found) != 1 || found[0].Verdict != porcupine.Illegal {
		t.Errorf("found %+v, want an illegal history", found)
	}
}

// TestCovered: from a state that covers another each step leads to states that cover what it leads to from there.
func TestCovered(t *testing.T) {
	var all []jobState
	for _, exists := range []bool{false, true} {
		for lo := range int64(5) {
			for _, hi := range []int64{lo, lo + 1, 4, math.MaxInt64} {
				if s := (jobState{exists: exists, lo: lo, hi: hi}); hi >= lo {
					all = append(all, s)
					if exists {
						for _, base := range []string{"f", "g"} {
							s.base = base
							paused := s
							paused.paused, paused.reason = true, "x"
							all = append(all, s, paused)
						}
					}
				}
			}
		}
	}
	var steps []jobStep
	for _, verb := range []jobVerb{putJob, deleteJob, pauseJob, resumeJob, lookAtJob} {
		for _, status := range []int{0, 200, 201, 204, 404, 412} {
			for generation := range int64(5) {
				step := jobStep{verb: verb, base: "f", status: status, upTo: generation, seen: jobState{exists: true, lo: generation, hi: generation, base: "f"}}
				guarded, absent, stepped, gone, other := step, step, step, step, step
				guarded.match, guarded.etag = "e", generation
				absent.absent, stepped.stepped, gone.seen.exists = true, true, false
				other.base, other.seen.base = "g", "g"
				steps = append(steps, step, guarded, absent, stepped, gone, other)
			}
		}
	}
	compared := 0
	for _, wide := range all {
		for _, narrow := range all {
			if !wide.covers(narrow) {
				continue
			}
			for _, step := range steps {
				after := step.on(wide)
				for _, s := range step.on(narrow) {
					compared++
					if !slices.ContainsFunc(after, func(w jobState) bool { return w.covers(s) }) {
						t.Fatalf("%s leads from %s to %s, and from %s to %v", step, narrow, s, wide, after)
					}
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d states were compared", compared)
	}
}

// TestLostAndOverIsDecided: where requests are told to be over, many that are lost make no search long, neither for an order nor for none.
func TestLostAndOverIsDecided(t *testing.T) {
	for name, row := range map[string]struct {
		last int
		want porcupine.CheckResult
	}{
		"an order":     {1, porcupine.Ok},
		"and no order": {-1, porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.ask("PUT /v1/jobs/a", definition(0), shows(201, 0, 10))
			var sent []*Way
			for n := range 200 {
				s.ask("PUT /v1/jobs/a", definition(1), "")
				sent = append(sent, s.way)
				s.ask("GET /v1/jobs/a", "", shows(200, 0, 10))
				if n >= 4 { // some are under way at any time
					sent[n-4].Over()
				}
			}
			s.ask("GET /v1/jobs/a", "", shows(200, row.last, 11))
			for _, way := range sent {
				way.Over()
			}
			verdict := porcupine.Ok
			report := s.Check(5 * time.Minute)
			for _, f := range report.Failures {
				verdict = f.Verdict
			}
			if verdict != row.want || report.Unknown != 200 || report.Open != 0 {
				t.Errorf("%s: %s, want %s", report, verdict, row.want)
			}
		})
	}
}
