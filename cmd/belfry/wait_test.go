package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestTriggerWaitsAndEndsWithTheOutcome(t *testing.T) {
	t.Parallel()
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	gate := filepath.Join(t.TempDir(), "gate")
	script := func(name, text string) {
		t.Helper()
		call(0, `{"target": {"exec": {"argv": ["/bin/sh", "-c", "`+text+`"], "permanent_exit_codes": [3]}}, "retry": {"max_attempts": 2, "initial": "1ms", "max": "1ms"}}`, "job", "apply", name, "-f", "-")
	}
	script("good", "echo one; echo two")
	script("bad", "echo first $BELFRY_ATTEMPT; exit 1")
	script("worse", "echo no; exit 3")
	script("slow", "echo begun; while [ ! -e "+gate+" ]; do sleep 0.02; done; echo opened")

	got := call(0, "", "job", "trigger", "good", "--wait", "-o", "json")
	if r := decode[wire.Run](t, got.out); r.State != "succeeded" || !strings.HasPrefix(got.errors, r.ID+"\n") || !strings.Contains(got.errors, "  succeeded after ") {
		t.Errorf("waited for: %s%s", got.out, got.errors)
	}
	if got := call(0, "", "job", "trigger", "good", "--follow"); got.out != "one\ntwo\n" {
		t.Errorf("followed: %q", got.out)
	}
	got = call(6, "", "job", "trigger", "bad", "--follow")
	if got.out != "first 1\nfirst 2\n" || !strings.Contains(got.errors, "attempt 2 failed: ") || !strings.Contains(got.errors, "ended as dead: ") {
		t.Errorf("a run that fails twice: %q, %s", got.out, got.errors)
	}
	call(6, "", "job", "trigger", "worse", "--wait")

	got = call(9, "", "job", "trigger", "slow", "--wait", "--timeout", "700ms")
	id, _, _ := strings.Cut(got.errors, "\n")
	if !strings.Contains(got.errors, "belfry run wait "+id) {
		t.Errorf("a timeout: %s", got.errors)
	}
	eventually(t, "what it has written can be read", func() (bool, string) {
		got := call(0, "", "run", "logs", id)
		return got.out == "begun\n", got.out
	})
	done := make(chan outcome, 1)
	go func() { done <- call(0, "", "run", "logs", id, "--follow") }()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.out != "begun\nopened\n" {
		t.Errorf("followed from the middle: %q, %s", got.out, got.errors)
	}
	for _, more := range [][]string{nil, {"--follow"}} {
		if got := call(0, "", append([]string{"run", "logs", id, "--tail", "9B"}, more...)...); got.out != "opened\n" {
			t.Errorf("the tail, %v: %q, %s", more, got.out, got.errors)
		}
	}
	if got := call(0, "", "run", "logs", id, "--tail", "1", "--since", "1h"); got.out != "opened\n" {
		t.Errorf("the last line: %q, %s", got.out, got.errors)
	}
	if got := call(0, "", "run", "logs", id, "--since", "2999-01-01"); got.out != "" {
		t.Errorf("since later: %q", got.out)
	}
	timed := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z begun\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z opened\n$`)
	for _, more := range [][]string{nil, {"--follow"}, {"--attempt", "1"}, {"--follow", "--attempt", "1"}} {
		if got := call(0, "", append([]string{"run", "logs", id, "-t"}, more...)...); !timed.MatchString(got.out) {
			t.Errorf("with times, %v: %q, %s", more, got.out, got.errors)
		}
	}
	for _, wrong := range [][]string{{"--tail", "0"}, {"--tail", "-5"}, {"--tail", "1000001"}, {"--attempt", "0"}, {"--attempt", "x"}, {"--since", "soon"}, {"--since", "-5m"}} {
		if got := call(2, "", append([]string{"run", "logs", id}, wrong...)...); !strings.Contains(got.errors, wrong[0]) || !strings.Contains(got.errors, "want") {
			t.Errorf("%v: %s", wrong, got.errors)
		}
	}
	if got := call(1, "", "run", "logs", id, "--attempt", "2"); !strings.Contains(got.errors, `attempt: got "2", want 1 to 1`) {
		t.Errorf("an attempt that never was: %s", got.errors)
	}
	if got := call(1, "", "run", "logs", id, "--attempt", "2", "--follow"); !strings.Contains(got.errors, "there is no attempt 2") {
		t.Errorf("an attempt that never was, followed: %s", got.errors)
	}
	call(2, "", "run", "logs", id, "--tail", "2MB")
	call(2, "", "run", "logs", id, "--tail", "some")
	if got := call(0, "", "run", "wait", id).out; !strings.Contains(got, "succeeded") {
		t.Errorf("waited for what has ended: %s", got)
	}
	call(3, "", "run", "wait", "good~0mi4lf3k0")
	call(2, "", "run", "wait", id, "--timeout", "soon")
	call(2, "", "job", "trigger", "good", "--timeout", "5s")
	call(2, "", "job", "trigger", "good", "--follow", "-o", "json")
}

func TestAnInterruptLeavesTheRunGoingOn(t *testing.T) {
	server, address, _ := startProcess(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	call(0, `{"target": {"exec": {"argv": ["sleep", "60"]}}, "timeout": "2m"}`, "job", "apply", "slow", "-f", "-")
	waiting := command(t, "job", "trigger", "slow", "--wait", "--address", address)
	var log lines
	waiting.Stderr = &log
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits", func() (bool, string) { return strings.Contains(log.String(), "attempt 1 runs"), log.String() })
	waiting.Process.Signal(os.Interrupt)
	over := signalled(waiting, os.Interrupt)
	waiting.Wait()
	over()
	id, _, _ := strings.Cut(log.String(), "\n")
	if code := waiting.ProcessState.ExitCode(); code != 130 || !strings.Contains(log.String(), id+" goes on") {
		t.Errorf("interrupted: code %d, %s", code, log.String())
	}
	if r := decode[wire.Run](t, call(0, "", "run", "get", id, "-o", "json").out); r.State != "running" {
		t.Errorf("the run is %s", r.State)
	}
	call(0, "", "run", "cancel", id)
	server.Process.Signal(syscall.SIGTERM)
}

func TestWhatIsSaidOfARunThatIsWaitedFor(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	attempt := func(n int, outcome, wrong string) wire.Attempt {
		return wire.Attempt{Attempt: n, Outcome: outcome, Error: wrong}
	}
	shown := &cli{zone: time.FixedZone("CET", 3600), now: func() time.Time { return at.Add(-time.Hour) }}
	var was wire.Run
	for _, c := range []struct {
		is            wire.Run
		before, after string
	}{
		{wire.Run{State: "scheduled", NominalTime: at}, "", "scheduled for 2026-11-21 10:00:00 CET (in 1h)"},
		{wire.Run{State: "scheduled", NominalTime: at.Add(-time.Hour), NextAttemptAt: at, Reason: "catch-up of a missed fire"}, "", "scheduled for 2026-11-21 10:00:00 CET (in 1h): catch-up of a missed fire"},
		{wire.Run{State: "queued"}, "", "queued"},
		{wire.Run{State: "queued"}, "", ""},
		{wire.Run{State: "queued", Waiting: []wire.Waiting{{Code: "queued", Text: "It waits."}}}, "", ""},
		{wire.Run{State: "queued", Waiting: []wire.Waiting{{Code: "not_due", Text: "Early."}, {Code: "no_worker", Text: "Nobody serves far.", Who: "belfry worker"}}}, "", "Nobody serves far. (belfry worker)"},
		{wire.Run{State: "queued", Waiting: []wire.Waiting{{Code: "no_worker", Text: "Nobody serves far.", Who: "belfry worker"}}}, "", ""},
		{wire.Run{State: "queued", Waiting: []wire.Waiting{{Code: "paused", Text: "Its job is paused."}}}, "", "Its job is paused."},
		{wire.Run{State: "queued", NextAttemptAt: at, Reason: "catch-up of a missed fire"}, "", "queued, not before 2026-11-21 10:00:00 CET (in 1h): catch-up of a missed fire"},
		{wire.Run{State: "running", Attempt: 1, Worker: "w", Attempts: []wire.Attempt{attempt(1, "running", "")}}, "attempt 1 runs on w", ""},
		{wire.Run{State: "retrying", Attempt: 1, NextAttemptAt: at, Attempts: []wire.Attempt{attempt(1, "failed", "no\nway")}}, "", "attempt 1 failed: no way; retrying, not before 2026-11-21 10:00:00 CET (in 1h)"},
		{wire.Run{State: "running", Attempt: 3, Attempts: []wire.Attempt{attempt(2, "crashed", "gone"), attempt(3, "running", "")}}, "attempt 2 crashed: gone; attempt 3 runs", ""},
		{wire.Run{State: "queued", Attempt: 3, Attempts: []wire.Attempt{attempt(3, "handed_back", "")}}, "", "attempt 3 handed back; queued"},
		{wire.Run{State: "succeeded", Attempt: 4, StartedAt: at, EndedAt: at.Add(2 * time.Second), Attempts: []wire.Attempt{attempt(4, "succeeded", "")}}, "", "succeeded after 2s"},
		{wire.Run{State: "dead", Attempt: 2, StartedAt: at.Add(time.Minute), EndedAt: at.Add(61 * time.Second), Reason: "attempts spent", Attempts: []wire.Attempt{
			{Attempt: 1, Outcome: "failed", StartedAt: at}, {Attempt: 2, Outcome: "failed", StartedAt: at.Add(time.Minute)}}}, "", "dead after 2 attempts in 1m1s: attempts spent"},
		{wire.Run{State: "skipped", Why: wire.NewWhy("overlap", "job:report", "", "skip", []string{"report~0mi4lf3k0"}, "")}, "",
			"skipped: report~0mi4lf3k0 was in progress (overlap: skip)"},
	} {
		before, after := became(was, c.is, shown.moment)
		if got := strings.Join(before, "; "); got != c.before {
			t.Errorf("%s: before the log it says %q, want %q", c.is.State, got, c.before)
		}
		if got := strings.Join(after, "; "); got != c.after {
			t.Errorf("%s: after the log it says %q, want %q", c.is.State, got, c.after)
		}
		was = c.is
	}
}
