package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// script is a server that gives its answers one after another, and keeps what it was asked.
type script struct {
	mu      sync.Mutex
	answers steps
	asked   []asked
}

// step is an answer, or the error in place of one.
type step struct {
	status int
	body   string
	header http.Header
	err    error
}

type steps = []step

type asked struct {
	method, path, query, key, match, body string
	accept                                string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.asked = append(s.asked, asked{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Idempotency-Key"), r.Header.Get("If-Match"), string(body), r.Header.Get("Accept")})
	if len(s.answers) == 0 {
		return nil, errors.New("the script has ended")
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	if next.err != nil {
		return nil, next.err
	}
	return &http.Response{StatusCode: next.status, Status: fmt.Sprint(next.status), Header: next.header, Body: io.NopCloser(strings.NewReader(next.body))}, nil
}

func answer(status int, body string, headers ...string) step {
	a := step{status: status, body: body, header: http.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		a.header.Set(headers[i], headers[i+1])
	}
	return a
}

func problem(status int, code string, headers ...string) step {
	text, _ := json.Marshal(wire.Problem{Title: "x", Status: status, Code: code, Detail: "what happened", Errors: []wire.FieldError{{Field: "queue", Message: "want another"}}})
	return answer(status, string(text), append(headers, "Content-Type", "application/problem+json")...)
}

var broken = step{err: &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}}

// with makes a client of a script, in virtual time: waits between tries cost nothing.
func with(t *testing.T, answers steps, test func(ctx context.Context, c *client.Client, s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: answers}
		n := 0
		c, err := client.New(client.Config{Address: "http://belfry.example/base/", HTTP: &http.Client{Transport: s}, NewKey: func() string {
			n++
			return fmt.Sprintf("key-%d", n)
		}})
		if err != nil {
			t.Fatal(err)
		}
		test(t.Context(), c, s)
	})
}

func TestP9_a_repeated_trigger_has_the_same_key(t *testing.T) {
	with(t, steps{broken, problem(503, "outcome_unknown", "Retry-After", "1"), answer(202, `{"id": "r1"}`), answer(202, `{"id": "r2"}`), answer(202, `{}`)},
		func(ctx context.Context, c *client.Client, s *script) {
			r, err := c.Trigger(ctx, "a", wire.Trigger{Payload: []byte(`{"x":1}`)}, "")
			if err != nil || r.ID != "r1" {
				t.Fatalf("got %+v, %v", r, err)
			}
			if _, err := c.Trigger(ctx, "a", wire.Trigger{}, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Trigger(ctx, "a", wire.Trigger{}, "mine"); err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, a := range s.asked {
				keys = append(keys, a.key)
			}
			if want := []string{"key-1", "key-1", "key-1", "key-2", "mine"}; !slices.Equal(keys, want) {
				t.Errorf("keys %v, want %v", keys, want)
			}
			if s.asked[0].body != s.asked[2].body || s.asked[0].path != "/base/v1/jobs/a/runs" {
				t.Errorf("asked %+v", s.asked)
			}
		})
}

func TestWhatIsSentAgain(t *testing.T) {
	busy := problem(429, "busy", "Retry-After", "1")
	for _, c := range []struct {
		name   string
		first  step
		do     func(ctx context.Context, c *client.Client) error
		tries  int
		waited time.Duration
	}{
		{"a read after a broken connection", broken, func(ctx context.Context, c *client.Client) error { _, err := c.Job(ctx, "a"); return err }, 2, 100 * time.Millisecond},
		{"a put after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.PutJob(ctx, "a", wire.Job{}, client.Condition{ETag: `"g1"`})
			return err
		}, 2, 100 * time.Millisecond},
		{"the opening of a line behind an end of a run, after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.OpenGate(ctx, "job:a", wire.OpenRequest{Run: "a~0mi4lf3k0", Since: time.UnixMilli(1)})
			return err
		}, 2, 100 * time.Millisecond},
		{"the opening of a line behind a run, whenever it ended, after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.OpenGate(ctx, "job:a", wire.OpenRequest{Run: "a~0mi4lf3k0"})
			return err
		}, 1, 0},
		{"the opening of a line behind whichever run, after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.OpenGate(ctx, "job:a", wire.OpenRequest{Key: "acme"})
			return err
		}, 1, 0},
		{"the opening of a gate that was closed, after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.OpenGate(ctx, "a", wire.OpenRequest{})
			return err
		}, 2, 100 * time.Millisecond},
		{"a cancel after a broken connection", broken, func(ctx context.Context, c *client.Client) error { _, err := c.Cancel(ctx, "r", ""); return err }, 1, 0},
		{"a retry after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.Retry(ctx, "r", wire.RetryRequest{})
			return err
		}, 1, 0},
		{"a redrive after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.Redrive(ctx, wire.Redrive{})
			return err
		}, 1, 0},
		{"a redrive of unknown outcome", problem(503, "outcome_unknown"), func(ctx context.Context, c *client.Client) error {
			_, err := c.Redrive(ctx, wire.Redrive{})
			return err
		}, 1, 0},
		{"a cancel of many after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.CancelMany(ctx, wire.CancelRuns{})
			return err
		}, 1, 0},
		{"a retry of many after a broken connection", broken, func(ctx context.Context, c *client.Client) error {
			_, err := c.RetryMany(ctx, wire.RetryRuns{})
			return err
		}, 1, 0},
		{"a cancel that was not done for load", busy, func(ctx context.Context, c *client.Client) error { _, err := c.Cancel(ctx, "r", ""); return err }, 2, time.Second},
		{"a pause through a proxy whose server is away", answer(502, "<html>"), func(ctx context.Context, c *client.Client) error { _, err := c.PauseJob(ctx, "a", ""); return err }, 2, 100 * time.Millisecond},
		{"what is invalid", problem(422, "invalid"), func(ctx context.Context, c *client.Client) error {
			_, err := c.PutJob(ctx, "a", wire.Job{}, client.Condition{})
			return err
		}, 1, 0},
		{"a server that is not ready", problem(503, "not_ready"), func(ctx context.Context, c *client.Client) error { _, err := c.Ready(ctx); return err }, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			with(t, steps{c.first, answer(200, `{}`)}, func(ctx context.Context, made *client.Client, s *script) {
				began := time.Now()
				err := c.do(ctx, made)
				if len(s.asked) != c.tries || (err == nil) != (c.tries == 2) {
					t.Errorf("%d tries and %v, want %d", len(s.asked), err, c.tries)
				}
				if waited := time.Since(began); waited != c.waited {
					t.Errorf("waited %s, want %s", waited, c.waited)
				}
			})
		})
	}
}

func TestRetriesAreBounded(t *testing.T) {
	with(t, slices.Repeat(steps{broken}, 20), func(ctx context.Context, c *client.Client, s *script) {
		began := time.Now()
		_, err := c.Job(ctx, "a")
		var lost *client.Unreachable
		if !errors.As(err, &lost) || lost.Address != "http://belfry.example/base" {
			t.Errorf("got %v, want that the server could not be reached", err)
		}
		if len(s.asked) != 4 || time.Since(began) != 700*time.Millisecond {
			t.Errorf("%d tries in %s, want 4 in 700ms", len(s.asked), time.Since(began))
		}
	})
	with(t, slices.Repeat(steps{problem(503, "throttled", "Retry-After", "3600")}, 20), func(ctx context.Context, c *client.Client, s *script) {
		began := time.Now()
		if _, err := c.Job(ctx, "a"); !client.HasCode(err, "throttled") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != 15*time.Second {
			t.Errorf("waited %s, want three waits of at most 5s", waited)
		}
	})
	with(t, slices.Repeat(steps{broken}, 20), func(ctx context.Context, c *client.Client, s *script) {
		ctx, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
		defer cancel()
		if _, err := c.Job(ctx, "a"); err == nil || len(s.asked) != 2 {
			t.Errorf("%d tries and %v, want the context to end it in the second wait", len(s.asked), err)
		}
	})
}

func TestADeleteWhoseAnswerWasLostIsDone(t *testing.T) {
	with(t, steps{broken, problem(404, "job_not_found")}, func(ctx context.Context, c *client.Client, s *script) {
		if err := c.DeleteJob(ctx, "a", client.Condition{}); err != nil {
			t.Errorf("got %v", err)
		}
	})
	with(t, steps{problem(404, "job_not_found")}, func(ctx context.Context, c *client.Client, s *script) {
		if err := c.DeleteJob(ctx, "a", client.Condition{}); !client.HasCode(err, "job_not_found") {
			t.Errorf("got %v, want that there was none", err)
		}
	})
}

func TestRefusalsSayWhatTheServerSaid(t *testing.T) {
	with(t, steps{problem(422, "invalid"), answer(500, "oops", "Content-Type", "text/html")}, func(ctx context.Context, c *client.Client, s *script) {
		_, err := c.PutJob(ctx, "a", wire.Job{}, client.Condition{})
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != "invalid" || refused.Status != 422 || refused.Errors[0].Field != "queue" {
			t.Fatalf("got %#v", err)
		}
		if text := err.Error(); !strings.Contains(text, "what happened") || !strings.Contains(text, "queue: want another") {
			t.Errorf("reads %q", text)
		}
		_, err = c.Run(ctx, "r")
		if !errors.As(err, &refused) || refused.Status != 500 || refused.Code != "" || !strings.Contains(err.Error(), "500") {
			t.Errorf("got %v", err)
		}
	})
	with(t, steps{answer(200, "<html>")}, func(ctx context.Context, c *client.Client, s *script) {
		c1, _ := client.New(client.Config{Address: "http://x", HTTP: &http.Client{Transport: s}, NewKey: func() string { return "k" }, Tries: 1})
		if _, err := c1.Job(ctx, "a"); err == nil || !strings.Contains(err.Error(), "not Belfry's") {
			t.Errorf("got %v", err)
		}
	})
}

func TestListingsReadEveryPage(t *testing.T) {
	pages := steps{answer(200, `{"items": [{"id": "1"}, {"id": "2"}], "next": "c1"}`), answer(200, `{"items": [], "next": "c2"}`), answer(200, `{"items": [{"id": "3"}]}`)}
	with(t, pages, func(ctx context.Context, c *client.Client, s *script) {
		var ids []string
		for r, err := range c.Runs(ctx, client.RunFilter{Job: "a", States: []string{"dead", "failed"}, Labels: map[string]string{"team": "billing"}, From: time.Unix(0, 0)}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		if !slices.Equal(ids, []string{"1", "2", "3"}) {
			t.Errorf("got %v", ids)
		}
		const filters = "&from=1970-01-01T00%3A00%3A00Z&job=a&label=team%3Dbilling&limit=200&state=dead%2Cfailed"
		for i, cursor := range []string{"", "cursor=c1", "cursor=c2"} {
			if got, want := s.asked[i].query, strings.TrimPrefix(cursor+filters, "&"); got != want {
				t.Errorf("page %d asked with %s, want %s", i, got, want)
			}
		}
	})
	with(t, pages, func(ctx context.Context, c *client.Client, s *script) {
		for range c.Runs(ctx, client.RunFilter{}) {
			break
		}
		if len(s.asked) != 1 {
			t.Errorf("%d pages read for one item", len(s.asked))
		}
	})
	with(t, pages, func(ctx context.Context, c *client.Client, s *script) {
		var ids []string
		for r, err := range c.Runs(ctx, client.RunFilter{Most: 3}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		if !slices.Equal(ids, []string{"1", "2", "3"}) || s.asked[0].query != "limit=3" || s.asked[2].query != "cursor=c2&limit=1" {
			t.Errorf("three wanted: got %v, asked with %+v", ids, s.asked)
		}
	})
	with(t, steps{pages[0], problem(422, "invalid")}, func(ctx context.Context, c *client.Client, s *script) {
		seen, failed := 0, false
		for _, err := range c.Runs(ctx, client.RunFilter{}) {
			if err != nil {
				failed = true
			} else {
				seen++
			}
		}
		if seen != 2 || !failed {
			t.Errorf("%d items, failed %v; want the first page and then the error", seen, failed)
		}
	})
}

// Every listing of the client goes on behind a page that the server ended early, and reads one of 8 MB, the largest there is.
func TestP11_EveryListingFollowsNext(t *testing.T) {
	count := func(listing iter.Seq2[string, error]) (n int, err error) {
		for _, err := range listing {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	for name, list := range map[string]func(context.Context, *client.Client) (int, error){
		"jobs": func(ctx context.Context, c *client.Client) (int, error) {
			return count(anyOf(c.Jobs(ctx, client.JobFilter{})))
		},
		"runs": func(ctx context.Context, c *client.Client) (int, error) {
			return count(anyOf(c.Runs(ctx, client.RunFilter{})))
		},
		"dead letters": func(ctx context.Context, c *client.Client) (int, error) {
			return count(anyOf(c.DeadLetters(ctx, wire.DeadFilter{})))
		},
		"tokens":  func(ctx context.Context, c *client.Client) (int, error) { return count(anyOf(c.Tokens(ctx))) },
		"secrets": func(ctx context.Context, c *client.Client) (int, error) { return count(anyOf(c.Secrets(ctx))) },
		"queues": func(ctx context.Context, c *client.Client) (int, error) {
			all, err := c.Queues(ctx)
			return len(all), err
		},
		"workers": func(ctx context.Context, c *client.Client) (int, error) {
			all, err := c.Workers(ctx)
			return len(all), err
		},
	} {
		large := `{"items": [{}, {}], "next": "c1"` + strings.Repeat(" ", 8_000_000-33) + "}"
		with(t, steps{answer(200, large), answer(200, `{"items": [], "next": "c2"}`), answer(200, `{"items": [{}]}`)}, func(ctx context.Context, c *client.Client, s *script) {
			if n, err := list(ctx, c); n != 3 || err != nil || len(s.asked) != 3 || !strings.Contains(s.asked[2].query, "cursor=c2") {
				t.Errorf("%s: %d items, %v, %d pages; want 3 of 3", name, n, err, len(s.asked))
			}
		})
	}
}

func anyOf[T any](listing iter.Seq2[T, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, err := range listing {
			if !yield("", err) {
				return
			}
		}
	}
}

func TestRequestsSayWhatWasAsked(t *testing.T) {
	with(t, steps{answer(201, `{"name": "a"}`, "ETag", `"g1"`), answer(200, `{"items": [{}]}`), answer(200, "text")}, func(ctx context.Context, c *client.Client, s *script) {
		stored, err := c.PutJob(ctx, "a b", wire.Job{Definition: job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}}}, client.Condition{ETag: `"g0"`})
		if err != nil || !stored.Created || stored.ETag != `"g1"` {
			t.Errorf("got %+v, %v", stored, err)
		}
		if got := s.asked[0]; got.path != "/base/v1/jobs/a%20b" || got.match != `"g0"` || got.body != `{"target":{"handler":{"name":"h"}}}` {
			t.Errorf("asked %+v", got)
		}
		if _, err := c.TriggerMany(ctx, []wire.JobTrigger{{Job: "a"}, {Job: "b", IdempotencyKey: "mine"}}); err != nil {
			t.Fatal(err)
		}
		if want := `{"runs":[{"job":"a","idempotency_key":"key-1"},{"job":"b","idempotency_key":"mine"}]}`; s.asked[1].body != want {
			t.Errorf("asked %s, want %s", s.asked[1].body, want)
		}
		if text, err := c.Logs(ctx, "a~1"); err != nil || string(text) != "text" {
			t.Errorf("log %q, %v", text, err)
		}
	})
}

// Requests that are JSON already go out as they are, those without a key with one each.
func TestDocumentsAreSentAsTheyAre(t *testing.T) {
	with(t, steps{answer(200, `{"items": [{}]}`)}, func(ctx context.Context, c *client.Client, s *script) {
		runs := []json.RawMessage{[]byte(`{"job":"a","nonsense":1.50}`), []byte(` { "job":"b","idempotency_key":"mine"}`), []byte(`{}`)}
		if _, err := c.TriggerDocuments(ctx, runs); err != nil {
			t.Fatal(err)
		}
		if want := `{"runs":[{"idempotency_key":"key-1","job":"a","nonsense":1.50},{"job":"b","idempotency_key":"mine"},{"idempotency_key":"key-2"}]}`; s.asked[0].body != want {
			t.Errorf("asked %s, want %s", s.asked[0].body, want)
		}
		for _, text := range []string{"null", "[]", "7", ""} {
			if _, err := c.TriggerDocuments(ctx, []json.RawMessage{[]byte(text)}); err == nil || len(s.asked) != 1 {
				t.Errorf("%q: %v after %d requests, want it refused unsent", text, err, len(s.asked))
			}
		}
	})
}

// Whoever passes requests on decides about them, and gets what came.
func TestOneRequestIsPassedOnAsItIs(t *testing.T) {
	with(t, steps{problem(503, "outcome_unknown", "X-Request-Id", "r"), broken}, func(ctx context.Context, c *client.Client, s *script) {
		got, err := c.Send(ctx, "PUT", "/v1/jobs/a%2Fb%20c", "b=2&a=%2B", http.Header{"If-Match": {`"g"`}}, []byte(`{ "x": 1 }`))
		if err != nil || got.StatusCode != 503 || got.Header.Get("X-Request-Id") != "r" {
			t.Fatalf("got %+v, %v", got, err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if refused := client.Refused(got, text); err != nil || refused.Code != "outcome_unknown" || refused.Status != 503 {
			t.Errorf("read as %+v, %v", refused, err)
		}
		if want := (asked{method: "PUT", path: "/base/v1/jobs/a%2Fb%20c", query: "b=2&a=%2B", match: `"g"`, body: `{ "x": 1 }`}); s.asked[0] != want {
			t.Errorf("sent %+v, want %+v", s.asked[0], want)
		}
		var lost *client.Unreachable
		if again, err := c.Send(ctx, "GET", "/v1/jobs", "", nil, nil); again != nil || !errors.As(err, &lost) || len(s.asked) != 2 { //nolint:bodyclose // there is none
			t.Errorf("after a break: %v, %v, %d requests; want it sent once", again, err, len(s.asked))
		}
		if again, err := c.Send(ctx, "GET", "/v1/%zz", "", nil, nil); err == nil { //nolint:bodyclose // there is none
			t.Errorf("a path that is none was sent: %v", again)
		}
	})
}

func TestAddressesThatAreNone(t *testing.T) {
	for _, address := range []string{"localhost:7340", "ftp://x", "http://", "::"} {
		if _, err := client.New(client.Config{Address: address, NewKey: func() string { return "" }}); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}

// Bytes that may be no text are asked for as such: API Gateway gives them to nobody else.
func TestBytesAreAskedForAsBytes(t *testing.T) {
	with(t, steps{answer(200, "a"), answer(200, "a"), answer(200, "a"), answer(200, "a"), answer(200, "{}")}, func(ctx context.Context, cl *client.Client, s *script) {
		_, err := cl.Logs(ctx, "r")
		_, err2 := cl.LogPart(ctx, "r", client.LogView{})
		_, err3 := cl.Payload(ctx, "r", "")
		_, _, err4 := cl.Result(ctx, "r", "")
		_, err5 := cl.Run(ctx, "r")
		if err := errors.Join(err, err2, err3, err4, err5); err != nil {
			t.Fatal(err)
		}
		for i, got := range s.asked {
			if want := map[bool]string{true: "application/octet-stream"}[i < 4]; got.accept != want {
				t.Errorf("%s accepts %q, want %q", got.path, got.accept, want)
			}
		}
	})
}

// What is large comes in parts, smaller ones where less is let through, and is whole in the end.
func TestAResultIsReadWhole(t *testing.T) {
	part := func(from int, text, size string) step {
		return answer(206, text, "Content-Type", "text/x", "Content-Range", fmt.Sprintf("bytes %d-%d/%s", from, from+len(text)-1, size))
	}
	of := func(whole string, s step) step {
		s.header.Set("ETag", `"`+whole+`"`)
		return s
	}
	const abcde = "NrvlDtloQdEEQ7y2cNZVTw" // of what is whole
	for name, c := range map[string]struct {
		answers steps
		want    string // "" for an error
		tries   int
	}{
		"all at once":           {steps{part(0, "abc", "3")}, "abc", 1},
		"in parts":              {steps{part(0, "abc", "5"), broken, part(3, "de", "5")}, "abcde", 3},
		"in smaller parts":      {steps{problem(413, "too_large"), part(0, "abc", "5"), problem(413, "too_large"), part(3, "de", "5")}, "abcde", 4},
		"of a server before":    {steps{answer(200, "abc", "Content-Type", "text/x")}, "abc", 1},
		"that is never let by":  {slices.Repeat(steps{problem(413, "too_large")}, 9), "", 7},
		"that does not go on":   {steps{part(0, "abc", "5"), part(3, "", "5")}, "", 2},
		"with more than it has": {steps{part(0, "abc", "2")}, "", 1},
		"of an unknown size":    {steps{part(0, "abc", "*")}, "", 1},
		"with its hash":         {steps{of(abcde, part(0, "abc", "5")), of(abcde, part(3, "de", "5"))}, "abcde", 2},
		"that was damaged":      {steps{of(abcde, part(0, "abc", "5")), of(abcde, part(3, "dE", "5"))}, "", 2},
		"that is made anew":     {steps{of("x", part(0, "abX", "5")), of(abcde, part(3, "de", "5"))}, "", 2},
		"that goes meanwhile":   {steps{part(0, "abc", "5"), problem(410, "result_expired")}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			with(t, c.answers, func(ctx context.Context, cl *client.Client, s *script) {
				data, mediaType, err := cl.Result(ctx, "r", "a/b")
				if string(data) != c.want || (err == nil) != (c.want != "") || err == nil && mediaType != "text/x" {
					t.Errorf("got %q of type %q, %v", data, mediaType, err)
				}
				if len(s.asked) != c.tries || s.asked[0].path != "/base/v1/runs/r/result" || s.asked[0].query != "step=a%2Fb" {
					t.Errorf("asked %d times: %+v", len(s.asked), s.asked)
				}
			})
		})
	}
}
