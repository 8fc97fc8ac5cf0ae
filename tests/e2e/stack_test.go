//go:build emulators

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// patience bounds every wait for something that a stack does, and each request. It is no measure of how fast it should be: how late things
// were stands in the log.
const patience = 10 * time.Minute

// stack is a deployed one.
type stack struct {
	name, address, key string
	client             *http.Client
}

// session is what tests of one go share; names of jobs end with it, so that a stack may be tested again.
var session = strconv.FormatInt(time.Now().UnixMilli(), 36)

// opened gives the stack whose variables begin with prefix.
func opened(t testing.TB, prefix string) stack {
	t.Helper()
	s := stack{name: env(t, prefix+"STACK"), address: env(t, prefix+"ADDRESS"), key: os.Getenv(prefix + "API_KEY"),
		client: &http.Client{Timeout: patience}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

func env(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run these tests by make test-aws", name)
	}
	return value
}

// object is a JSON object as it came.
type object map[string]any

func (o object) text(name string) string { s, _ := o[name].(string); return s }

func (o object) number(name string) int { n, _ := o[name].(float64); return int(n) }

func (o object) list(name string) []object {
	var all []object
	items, _ := o[name].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		all = append(all, m)
	}
	return all
}

func (o object) time(t testing.TB, name string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, o.text(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return at
}

// ask sends one request to the API, and again where the answer says that nothing was done. It gives the status and the body.
func (s stack) ask(t testing.TB, method, path string, body any, headers ...string) (int, object) {
	t.Helper()
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	for again := 0; ; again++ {
		req, err := http.NewRequestWithContext(t.Context(), method, s.address+path, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		if s.key != "" {
			req.Header.Set("X-Api-Key", s.key)
		} else {
			sign(t, req, "execute-api", text)
		}
		answer, err := s.client.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		if (answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable) && again < 5 {
			<-time.After(time.Second)
			continue
		}
		said := object{}
		if len(got) > 0 {
			if err := json.Unmarshal(got, &said); err != nil {
				t.Fatalf("%s %s: %d %q is no JSON object", method, path, answer.StatusCode, got)
			}
		}
		return answer.StatusCode, said
	}
}

// must is ask where only one status will do.
func (s stack) must(t testing.TB, status int, method, path string, body any, headers ...string) object {
	t.Helper()
	got, said := s.ask(t, method, path, body, headers...)
	if got != status {
		t.Fatalf("%s %s: %d, want %d: %v", method, path, got, status, said)
	}
	return said
}

// put creates a job, which is deleted when the test ends. It gives the job's name.
func (s stack) put(t testing.TB, name string, definition object) string {
	t.Helper()
	name += "-" + session
	s.must(t, http.StatusCreated, "PUT", "/v1/jobs/"+name, definition)
	t.Cleanup(func() {
		// The test's own context is over by now.
		req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), "DELETE", s.address+"/v1/jobs/"+name, nil)
		if err != nil {
			return
		}
		if s.key != "" {
			req.Header.Set("X-Api-Key", s.key)
		} else {
			sign(t, req, "execute-api", nil)
		}
		if answer, err := s.client.Do(req); err == nil {
			answer.Body.Close()
		}
	})
	return name
}

// start asks for a run of a job, and gives its ID.
func (s stack) start(t testing.TB, job string, request object) string {
	t.Helper()
	return s.must(t, http.StatusAccepted, "POST", "/v1/jobs/"+job+"/runs", request).text("id")
}

// ended waits for the end of a run.
func (s stack) ended(t testing.TB, run string) object {
	t.Helper()
	return s.until(t, run, "succeeded", "failed", "cancelled", "skipped", "dead", "unknown")
}

// until waits for a run to be in one of some states.
func (s stack) until(t testing.TB, run string, states ...string) object {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		got := s.must(t, http.StatusOK, "GET", "/v1/runs/"+url.PathEscape(run), nil)
		for _, state := range states {
			if got.text("state") == state {
				return got
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s is %s after %v, want one of %v: %v", run, got.text("state"), patience, states, got)
		}
		<-time.After(500 * time.Millisecond) // nothing signals over HTTP
	}
}

// runs lists all runs of a job, newest first.
func (s stack) runs(t testing.TB, job string) []object {
	t.Helper()
	var all []object
	for cursor := ""; ; {
		page := s.must(t, http.StatusOK, "GET", "/v1/jobs/"+job+"/runs?limit=1000"+cursor, nil)
		all = append(all, page.list("items")...)
		if page.text("next") == "" {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(page.text("next"))
	}
}

// tick has the function tick make a pass, as its schedule does, and waits for its end.
func (s stack) tick(t testing.TB) {
	t.Helper()
	call(t, "lambda", "POST", "/2015-03-31/functions/"+s.name+"-tick/invocations", nil, object{})
}

// logs gives all lines that a function of the stack has written.
func (s stack) logs(t testing.TB, function string) []string {
	t.Helper()
	var lines []string
	ask := object{"logGroupName": "/aws/lambda/" + s.name + "-" + function}
	for {
		var page struct {
			Events    []struct{ Message string }
			NextToken string
		}
		got := call(t, "logs", "POST", "/", http.Header{"X-Amz-Target": {"Logs_20140328.FilterLogEvents"}, "Content-Type": {"application/x-amz-json-1.1"}}, ask)
		if err := json.Unmarshal(got, &page); err != nil {
			t.Fatalf("logs of %s: %v", function, err)
		}
		for _, event := range page.Events {
			lines = append(lines, strings.Split(event.Message, "\n")...)
		}
		if page.NextToken == "" || page.NextToken == ask["nextToken"] {
			return lines
		}
		ask["nextToken"] = page.NextToken
	}
}

// send puts a message into a queue of the stack.
func (s stack) send(t testing.TB, queue, body string) {
	t.Helper()
	headers := func(target string) http.Header {
		return http.Header{"X-Amz-Target": {"AmazonSQS." + target}, "Content-Type": {"application/x-amz-json-1.0"}}
	}
	var found struct{ QueueUrl string }
	if err := json.Unmarshal(call(t, "sqs", "POST", "/", headers("GetQueueUrl"), object{"QueueName": s.name + "-" + queue}), &found); err != nil {
		t.Fatal(err)
	}
	call(t, "sqs", "POST", "/", headers("SendMessage"), object{"QueueUrl": found.QueueUrl, "MessageBody": body})
}

// deploy updates a stack with parameters.
func (s stack) deploy(t testing.TB, parameters ...string) {
	t.Helper()
	command := append(strings.Fields(env(t, "BELFRY_DEPLOY")), s.name)
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], parameters...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// call sends a request to a service of AWS and gives its answer.
func call(t testing.TB, service, method, path string, headers http.Header, body object) []byte {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	if endpoint == "" {
		endpoint = fmt.Sprintf("https://%s.%s.amazonaws.com", service, env(t, "AWS_REGION"))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, endpoint+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range headers {
		req.Header[name] = values
	}
	sign(t, req, service, text)
	client := http.Client{Timeout: patience}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", service, path, err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", service, path, err)
	}
	if answer.StatusCode/100 != 2 || answer.Header.Get("X-Amz-Function-Error") != "" {
		t.Fatalf("%s %s: %s %s", service, path, answer.Status, got)
	}
	return got
}

// sign signs a request with the credentials of the environment.
func sign(t testing.TB, req *http.Request, service string, body []byte) {
	t.Helper()
	sum := sha256.Sum256(body)
	who := aws.Credentials{AccessKeyID: env(t, "AWS_ACCESS_KEY_ID"), SecretAccessKey: env(t, "AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
	if err := v4.NewSigner().SignHTTP(req.Context(), who, req, hex.EncodeToString(sum[:]), service, env(t, "AWS_REGION"), time.Now()); err != nil {
		t.Fatal(err)
	}
}
