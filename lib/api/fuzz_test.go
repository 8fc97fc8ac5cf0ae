package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A story is requests to a new server, one a line: method, target, body and headers, with tabs between them. What a request is
// told it can hand on: <etag>, <run>, <next>, <ticket> and <fence> are those of the newest answer that had one.
const storyRequests = 10

var stories = []string{
	"PUT\t/v1/jobs/a\t{\"schedule\":{\"cron\":\"30 9 * * 1-5\",\"timezone\":\"Europe/Berlin\",\"jitter\":\"5s\"},\"target\":{\"http\":{\"url\":\"https://example.org/\",\"headers\":{\"A\":{\"secret\":\"s\"}}}},\"payload\":{\"a\":[1e2, null]},\"labels\":{\"team\":\"x\"},\"retry\":{\"max_attempts\":1,\"factor\":1.5},\"catch_up\":{\"mode\":\"all\"},\"guarantee\":\"at_most_once\"}\n" +
		"GET\t/v1/jobs/a\nPUT\t/v1/jobs/a?dry_run=true\t{\"target\":{\"handler\":{\"name\":\"echo\"}}}\tIf-Match: <etag>\nPOST\t/v1/jobs/a/pause\t{\"reason\":\"why\"}\nGET\t/v1/jobs?paused=true&label=team=x\nPOST\t/v1/jobs/a/resume\t{}\nDELETE\t/v1/jobs/a\t\tIf-Match: <etag>",
	"PUT\t/v1/jobs/b\t{\"schedule\":{\"every\":\"1s\",\"start\":\"2000-01-01T00:00:00Z\",\"end\":\"2099-01-01T00:00:00+01:00\"},\"target\":{\"handler\":{\"name\":\"fail\"}},\"retry\":{\"max_attempts\":1}}\n" +
		"GET\t/v1/jobs/b/runs?limit=1&state=failed\nGET\t/v1/jobs/b/runs?limit=1&state=failed&cursor=<next>\nGET\t/v1/dead-letters?job=b&limit=1\nGET\t/v1/dead-letters?job=b&limit=1&cursor=<next>\nPOST\t/v1/dead-letters/redrive\t{\"matching\":{\"job\":\"b\",\"error\":\"account\"},\"max\":2,\"per_second\":0.5,\"dry_run\":true}\nPOST\t/v1/runs/retry\t{\"runs\":[\"<run>\"],\"force\":true}\nPOST\t/v1/runs/cancel\t{\"matching\":{\"states\":[\"running\",\"retrying\"]},\"reason\":\"no\"}\nGET\t/v1/runs?from=2000-01-01T00:00:00Z&limit=2",
	"POST\t/v1/jobs/batch\t{\"jobs\":[{\"name\":\"c\",\"target\":{\"handler\":{\"name\":\"echo\"}}},{\"name\":\"d\",\"schedule\":{\"at\":\"2000-01-01T00:00:30Z\"},\"target\":{\"exec\":{\"argv\":[\"true\"],\"env\":{\"A\":\"b\"},\"dir\":\"/\"}}}]}\n" +
		"POST\t/v1/jobs/c/runs\t{\"payload\":{\"x\":1},\"delay\":\"1m30s\"}\tIdempotency-Key: k\nPOST\t/v1/runs/batch\t{\"runs\":[{\"job\":\"c\",\"idempotency_key\":\"k\"},{\"job\":\"d\",\"at\":\"2000-01-01T00:00:01Z\"}]}\nPOST\t/v1/runs/<run>/cancel\t{\"reason\":\"r\"}\nPOST\t/v1/runs/<run>/retry\t{\"force\":true}\nGET\t/v1/runs/<run>\nGET\t/v1/runs/<run>/logs",
	"PUT\t/v1/jobs/f\t{\"queue\":\"far\",\"priority\":\"high\",\"target\":{\"aws\":{\"arn\":\"arn:aws:sqs:eu-central-1:123456789012:q\"}}}\nPOST\t/v1/jobs/f/runs\t{}\n" +
		"POST\t/v1/work/take\t{\"queue\":\"far\",\"worker\":\"w\",\"max\":2,\"wait\":\"1s\",\"aws\":true,\"labels\":{\"zone\":\"eu\"}}\nPOST\t/v1/work/start\t{\"run\":\"<run>\",\"ticket\":\"<ticket>\",\"worker\":\"w\",\"start\":\"1\"}\nPOST\t/v1/work/renew\t{\"run\":\"<run>\",\"ticket\":\"<ticket>\",\"worker\":\"w\",\"start\":\"1\",\"fence\":<fence>}\nPOST\t/v1/work/finish\t{\"run\":\"<run>\",\"ticket\":\"<ticket>\",\"worker\":\"w\",\"start\":\"1\",\"fence\":<fence>,\"outcome\":\"succeeded\",\"result\":\"e30=\",\"log\":\"aGkK\"}\nPOST\t/v1/work/leave\t{\"run\":\"<run>\",\"ticket\":\"<ticket>\",\"worker\":\"w\",\"reason\":\"busy\"}\nGET\t/v1/workers\nGET\t/v1/queues",
	"PUT\t/v1/secrets/s\t{\"value\":\"v\"}\nGET\t/v1/secrets?limit=1\nPOST\t/v1/secret-keys/rotate\t{}\nDELETE\t/v1/secrets/s\nPOST\t/v1/tokens\t{\"name\":\"t\",\"scopes\":[\"read\"]}\nGET\t/v1/tokens\nDELETE\t/v1/tokens/0123456789abcdef\nPOST\t/v1/session\t{\"scopes\":[\"read\"],\"expires_in\":\"1h\"}\nDELETE\t/v1/session\nGET\t/v1/cron?expr=0%200%20L%20*%20*&timezone=Asia/Tokyo&from=2026-01-01T00:00:00Z&count=3\nOPTIONS\t/v1/jobs",
	"GET\t/readyz\t\tHost: evil.example\nGET\t/healthz\t\tAuthorization: Bearer bel_0123456789abcdef_x\nGET\t/metrics\nGET\t/openapi.json\nPOST\t/v1/jobs/a/runs\t{\"payload\":\t\"x\"}\tContent-Type: text/plain\nGET\t/v1/backup\nPUT\t/v1/jobs/a%2Fb\t{}\nGET\t/v1/jobs?cursor=MWE&limit=1000\nGET\t/v1/runs?cursor=MWF-MDAwMDAwMDAx",
}

// FuzzRequests sends a story to a whole scheduler in memory. No answer is an error of the server's own, a refusal is a problem
// document, and what GET shows of a job PUT takes as no change.
func FuzzRequests(f *testing.F) {
	for _, story := range stories {
		f.Add(story)
	}
	// A server takes longer to make than a story to tell. So each story gets a tenant instead, of a server of many. Where it may
	// come to wait it needs virtual time, which begins with a new server.
	const many = 1000
	var served *server
	told := 0
	f.Fuzz(func(t *testing.T, story string) {
		requests := strings.Split(story, "\n")
		if len(requests) > storyRequests {
			return
		}
		if strings.Contains(story, "work") {
			synctest.Test(t, func(t *testing.T) { start(t, 0, everything(t)).tellAll(requests) })
			return
		}
		if told++; told%many == 1 {
			served = start(t, 0, everything(t))
		}
		s := &server{t: t, handler: served.handler, tokens: served.tokens, tenants: map[string]string{}}
		s.tellAll(requests, s.of(fmt.Sprint("t", told))...)
	})
}

// tellAll sends a story; headers come with each request.
func (s *server) tellAll(requests []string, headers ...string) {
	s.t.Helper()
	told := map[string]string{}
	for _, request := range requests {
		for name, value := range told {
			request = strings.ReplaceAll(request, "<"+name+">", value)
		}
		s.tell(request, told, headers...)
	}
}

// tell sends one request of a story, and notes what it is told.
func (s *server) tell(request string, told map[string]string, headers ...string) {
	s.t.Helper()
	parts := strings.Split(request, "\t")
	parts = append(parts, "", "", "")
	method, at, body := parts[0], parts[1], parts[2]
	// What no server of net/http hands on to a handler.
	if target, err := url.ParseRequestURI(at); err != nil || target.Path == "" || strings.ContainsFunc(at, func(r rune) bool { return r <= ' ' || r == 0x7f }) || !token(method) {
		return
	}
	headers = slices.Clip(headers)
	for _, header := range parts[3:] {
		if name, value, ok := strings.Cut(header, ": "); ok && token(name) && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			headers = append(headers, name, value)
		}
	}
	r := s.send(method, at, body, headers...)
	r.check()
	if shown, isJob := strings.CutPrefix(at, "/v1/jobs/"); isJob && method == "PUT" && r.status < 400 && !strings.Contains(shown, "?") {
		s.putsWhatItGets(at, r, headers...)
	}
	var answer struct {
		ID, Run, Next, Ticket string
		Fence                 json.Number
		Items                 []struct{ ID, Run, Ticket string }
	}
	if etag := r.header.Get("ETag"); etag != "" {
		told["etag"] = etag
	}
	if json.Unmarshal(r.body, &answer) != nil {
		return
	}
	for _, item := range answer.Items {
		answer.ID, answer.Run, answer.Ticket = item.ID, item.Run, item.Ticket
	}
	for name, value := range map[string]string{"run": answer.Run, "next": answer.Next, "ticket": answer.Ticket, "fence": answer.Fence.String()} {
		if value != "" {
			told[name] = value
		}
	}
	if strings.Contains(answer.ID, "~") {
		told["run"] = answer.ID
	}
}

// token is what methods and names of headers are, after RFC 9110.
func token(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf || r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// check is what holds of any answer.
func (r reply) check() {
	r.t.Helper()
	if r.status >= 500 {
		r.t.Fatalf("%s: %d %s", r.what, r.status, r.body)
	}
	media, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	switch {
	case len(r.body) == 0:
	case err != nil:
		r.t.Fatalf("%s: a body of the type %q", r.what, r.header.Get("Content-Type"))
	case strings.HasSuffix(media, "json") && !json.Valid(r.body):
		r.t.Fatalf("%s: this is no JSON: %s", r.what, r.body)
	}
	if r.status < 400 {
		return
	}
	if media != "application/problem+json" {
		r.t.Fatalf("%s: %d with the type %q, want a problem document", r.what, r.status, media)
	}
	p := into[wire.Problem](r)
	if p.Status != r.status || p.Title != http.StatusText(r.status) || p.Code == "" || p.Detail == "" {
		r.t.Fatalf("%s: %d %s, want its status, title, code and detail", r.what, r.status, r.body)
	}
	for _, e := range p.Errors {
		if e.Message == "" {
			r.t.Fatalf("%s: nothing is said of %q in %s", r.what, e.Field, r.body)
		}
	}
	if (r.status == 429 || r.status == 503) && r.header.Get("Retry-After") == "" {
		r.t.Fatalf("%s: %d without Retry-After", r.what, r.status)
	}
}

// putsWhatItGets reads a job that was put, and puts it as it was read.
func (s *server) putsWhatItGets(at string, put reply, headers ...string) {
	s.t.Helper()
	got := s.send("GET", at, "", headers...).is(200)
	// Neither time nor conditions: the one goes on, and the other are of the state before.
	var sent []string
	for i := 0; i+1 < len(headers); i += 2 {
		if !strings.HasPrefix(strings.ToLower(headers[i]), "if-") {
			sent = append(sent, headers[i], headers[i+1])
		}
	}
	again := s.send("PUT", at, string(got.body), sent...).is(200)
	want := standing(put)
	for _, r := range []reply{got, again} {
		if !bytes.Equal(standing(r), want) {
			s.t.Fatalf("PUT %s told\n%s\nGET tells\n%s\nand putting that,\n%s", at, put.body, got.body, again.body)
		}
	}
}

// standing is a job's answer without its next fires, which time moves.
func standing(r reply) []byte {
	r.t.Helper()
	shown := into[wire.Job](r)
	shown.Status.NextRuns = nil
	text, err := json.Marshal(shown)
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}
