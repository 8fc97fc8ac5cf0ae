//go:build emulators

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A stack has no console of its own: belfry console shows it, with the caller's credential.
func theConsoleShowsTheStack(t *testing.T, f fixture) {
	job := f.stack.put(t, "console", object{"target": f.target.at("console").get()})
	if f.stack.key != "" {
		wrong := f.stack
		wrong.key = "no-key-of-this-stack"
		tab := consoleOf(t, wrong, "api-key")
		if status, said := tab.ask(t, "GET", "/v1/jobs", nil); status != http.StatusBadGateway || said.text("code") != "credential_refused" || !strings.Contains(said.text("detail"), "API key") {
			t.Errorf("with a key that is none: %d %v", status, said)
		}
	}
	auth := "api-key"
	if f.stack.key == "" {
		auth = "iam"
	}
	tab := consoleOf(t, f.stack, auth)
	tab.must(t, http.StatusOK, "GET", "/healthz", nil)
	page := tab.must(t, http.StatusOK, "GET", "/v1/jobs?limit=1000", nil)
	found := false
	for _, one := range page.list("items") {
		found = found || one.text("name") == job
	}
	if !found {
		t.Errorf("the job %s is not among those that the console shows", job)
	}
	run := tab.must(t, http.StatusAccepted, "POST", "/v1/jobs/"+job+"/runs", object{})
	if ended := f.stack.ended(t, run.text("id")); ended.text("state") != "succeeded" {
		t.Errorf("the run that was started through the console ended as %v", ended)
	}
	if status, said := tab.ask(t, "GET", "/v1/jobs/none-"+session, nil); status != http.StatusNotFound || said.text("code") != "job_not_found" {
		t.Errorf("a job that is none: %d %v", status, said)
	}
	// Pages ask by the clock where there is no stream; any other answer they would take for a fault.
	if status, said := tab.ask(t, "GET", "/v1/changes", nil); status != http.StatusNotFound || said.text("code") != "no_such_path" {
		t.Errorf("the stream of what changes, which a stack has not: %d %v", status, said)
	}
	asset := regexp.MustCompile(`src="(/console/[^"]+\.js)"`).FindSubmatch(tab.fetch(t, "/console"))
	if asset == nil {
		t.Fatal("the page names no script")
	}
	if script := tab.fetch(t, string(asset[1])); len(script) == 0 {
		t.Errorf("%s is empty", asset[1])
	}

	looks := consoleOf(t, f.stack, auth, "--read-only")
	looks.must(t, http.StatusOK, "GET", "/v1/jobs/"+job, nil)
	if status, said := looks.ask(t, "POST", "/v1/jobs/"+job+"/runs", object{}); status != http.StatusForbidden || !strings.Contains(said.text("detail"), "--read-only") {
		t.Errorf("with --read-only a run is started: %d %v", status, said)
	}
}

// tab is one that has signed in.
type tab struct{ base, secret string }

// consoleOf starts belfry console of a stack, until the test ends, and signs a tab in.
func consoleOf(t *testing.T, s stack, auth string, args ...string) tab {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), env(t, "BELFRY_BINARY"), append([]string{"console", "--output", "json", "--auth", auth, "--address", s.address}, args...)...)
	cmd.Env = append(os.Environ(), "BELFRY_CONFIG="+os.DevNull, "BELFRY_API_KEY="+s.key)
	var log bytes.Buffer
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var told struct{ Console string }
	err = json.NewDecoder(stdout).Decode(&told)
	go io.Copy(io.Discard, stdout)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // its context may have ended it before
	})
	base, key, is := strings.Cut(told.Console, "/console#key=")
	if err != nil || !is {
		t.Fatalf("belfry console printed %q, %v", told.Console, err)
	}
	opened := tab{base, key}
	opened.secret = opened.must(t, http.StatusCreated, "POST", "/v1/session", object{"name": "console", "scopes": []string{"read", "run", "write"}}).text("token")
	return opened
}

// fetch gives what a browser loads, a page or what it names.
func (b tab) fetch(t *testing.T, path string) []byte {
	t.Helper()
	status, got := b.send(t, http.MethodGet, path, nil)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %q", path, status, got)
	}
	return got
}

// ask sends one request of the tab to the API.
func (b tab) ask(t *testing.T, method, path string, body any) (int, object) {
	t.Helper()
	status, got := b.send(t, method, path, body)
	said := object{}
	if err := json.Unmarshal(got, &said); err != nil {
		t.Fatalf("%s %s: %d %q is no JSON object", method, path, status, got)
	}
	return status, said
}

func (b tab) send(t *testing.T, method, path string, body any) (int, []byte) {
	t.Helper()
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, b.base+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.secret)
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, got
}

func (b tab) must(t *testing.T, status int, method, path string, body any) object {
	t.Helper()
	got, said := b.ask(t, method, path, body)
	if got != status {
		t.Fatalf("console: %s %s: %d, want %d: %v", method, path, got, status, said)
	}
	return said
}
