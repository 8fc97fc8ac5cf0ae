package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// Keys as the standard writes them.
const (
	newKey = "whsec_plJ3nmyCDGBKInavdOK15jsl4xKbIeTEYl9PqDKb6qU="
	oldKey = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	noKey  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// call is what a receiver got, and the key that it verifies with.
type call struct {
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func (c call) with(change func(*call)) call {
	c.Headers = maps.Clone(c.Headers)
	change(&c)
	return c
}

func (c call) verify(now time.Time) error {
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	return Verify(c.Key, header, []byte(c.Body), now)
}

// signedCall makes a call and gives it as it arrived.
func signedCall(t *testing.T, run string, sign target.Sign, now time.Time) call {
	t.Helper()
	got := call{Key: newKey, Headers: map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Body = string(body)
		for name := range r.Header {
			got.Headers[name] = r.Header.Get(name)
		}
	}))
	defer server.Close()
	set, err := target.New(target.Config{
		Now:       func() time.Time { return now },
		Addresses: target.AddressPolicy{AllowLoopback: true},
		Secrets: func(_ context.Context, _, name string) (string, error) {
			if key, ok := map[string]string{"new": newKey, "old": oldKey}[name]; ok {
				return key, nil
			}
			return "", errors.New("unknown")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	spec := target.Spec{HTTP: &target.HTTP{URL: server.URL, Sign: &sign}}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	payload := []byte(`{"report": "täglich", "n": [1, 2.50]}`)
	if _, err := set.Call(t.Context(), spec, target.Call{Run: run, Job: "report", Attempt: 1, Nominal: now, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSignedCallsAreVerifiedByTheStandardsLibrary(t *testing.T) {
	now := time.Now()
	good := signedCall(t, "report~0mwqknmhs", target.Sign{Secret: "new"}, now)
	rotating := signedCall(t, "team.report~0mwqknmhs~0123456789abc", target.Sign{Secret: "new", Previous: "old"}, now)
	cases := map[string]struct {
		call call
		good bool
	}{
		"as sent":                    {good, true},
		"while keys change, new":     {rotating, true},
		"while keys change, old":     {rotating.with(func(c *call) { c.Key = oldKey }), true},
		"old key after the change":   {good.with(func(c *call) { c.Key = oldKey }), false},
		"unknown key":                {rotating.with(func(c *call) { c.Key = noKey }), false},
		"changed body":               {good.with(func(c *call) { c.Body = strings.Replace(c.Body, "2.50", "2.5", 1) }), false},
		"changed ID":                 {good.with(func(c *call) { c.Headers["Webhook-Id"] = "report~0mwqknmht" }), false},
		"changed timestamp":          {good.with(func(c *call) { c.Headers["Webhook-Timestamp"] += "0" }), false},
		"without a signature":        {good.with(func(c *call) { c.Headers["Webhook-Signature"] = "" }), false},
		"sent again six minutes on":  {signedCall(t, "report~0mwqknmhs", target.Sign{Secret: "new"}, now.Add(-6*time.Minute)), false},
		"sent again two minutes on":  {signedCall(t, "report~0mwqknmhs", target.Sign{Secret: "new"}, now.Add(-2*time.Minute)), true},
		"another's, under this name": {good.with(func(c *call) { c.Headers["Webhook-Signature"] = rotating.Headers["Webhook-Signature"] }), false},
	}
	var names []string
	var calls []call
	for name, c := range cases {
		names, calls = append(names, name), append(calls, c.call)
		if err := c.call.verify(now); (err == nil) != c.good {
			t.Errorf("%s: the receiver of the docs says %v, want good %t", name, err, c.good)
		}
	}

	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := strings.Split(strings.TrimSpace(python(t, input, "verify.py")), "\n")
	if len(verdicts) != len(names) {
		t.Fatalf("%d verdicts over %d calls: %q", len(verdicts), len(names), verdicts)
	}
	for i, name := range names {
		if (verdicts[i] == "good") != cases[name].good {
			t.Errorf("%s: the standard's library says %s, want good %t", name, verdicts[i], cases[name].good)
		}
	}
}

// python runs a script with the packages of .ci/requirements.txt. Without them the test is left out, except in CI.
func python(t *testing.T, input []byte, script string) string {
	t.Helper()
	interpreter, err := filepath.Abs("../../.ci/venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(interpreter); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI must have the Python packages of .ci/requirements.txt (make venv): %v", err)
		}
		t.Skipf("needs the Python packages of .ci/requirements.txt: make venv")
	}
	cmd := exec.CommandContext(t.Context(), interpreter, script)
	cmd.Stdin = bytes.NewReader(input)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, failed.String())
	}
	return string(out)
}

// The docs show this receiver as it stands here, so that it is one that works.
func TestTheDocsShowTheReceiverThatIsTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("receiver.go")
	if err != nil {
		t.Fatal(err)
	}
	_, function, _ := strings.Cut(string(code), "func Verify")
	if function == "" || !strings.Contains(string(page), "func Verify"+function) {
		t.Error("docs/targets.md does not hold the function Verify of receiver.go as it is")
	}
}
