package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
)

// The server as it is, its cron every second: a sign-up sends one mail, users are counted, and it ends when it is told to.
func TestItServes(t *testing.T) {
	data := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-data", data, "-listen", "127.0.0.1:0", "-cron", "* * * * * *"}, stdout)
		ended <- err
		stdout.CloseWithError(io.EOF)
	}()
	lines := make(chan string, 1000) // more than it says in the time that it has
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
		close(lines)
	}()
	until := func(pattern string) string {
		t.Helper()
		for line := range lines {
			if found := regexp.MustCompile(pattern).FindString(line); found != "" {
				return found
			}
		}
		t.Fatalf("it ended without saying %s: %v", pattern, <-ended)
		return ""
	}
	address := until(`http://\S+`)
	ask := func(method, path string, status int) string {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status {
			t.Fatalf("%s %s: %s %q, %v, want %d", method, path, answer.Status, text, err, status)
		}
		return strings.TrimSpace(string(text))
	}
	first := ask("POST", "/signup?email=ann@example.org", http.StatusAccepted)
	if again := ask("POST", "/signup?email=ann@example.org", http.StatusAccepted); first != again || first == "" {
		t.Errorf("one sign-up made the runs %q and %q", first, again)
	}
	until(`mail to ann@example.org: welcome`)
	until(`1 users`)
	ask("POST", "/signup", http.StatusBadRequest)
	ask("GET", "/healthz", http.StatusOK)
	var shown []belfry.Run
	if err := json.Unmarshal([]byte(ask("GET", "/jobs", http.StatusOK)), &shown); err != nil || len(shown) < 2 {
		t.Errorf("it shows %+v, %v", shown, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}

	b, err := belfry.Open(t.Context(), "pebble://"+data)
	if err != nil {
		t.Fatal(err)
	}
	mails := 0
	for r, err := range b.Runs(t.Context(), "welcome") {
		if err != nil || r.State != belfry.Succeeded {
			t.Errorf("kept %+v, %v", r, err)
		}
		mails++
	}
	if mails != 1 {
		t.Errorf("%d mails, want 1", mails)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
