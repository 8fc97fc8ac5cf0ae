package main

import (
	"strings"
	"testing"
)

// Whoever asks for a run of a paused job hears that it is held, and what lets it go.
func TestARunThatIsAskedForOfAPausedJobSaysSo(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	do := func(stdin string, args ...string) outcome {
		t.Helper()
		got := belfry(t, stdin, append(args, "--address", address)...)
		if got.code != exitOK {
			t.Fatalf("%v: %+v", args, got)
		}
		return got
	}
	do(`{"target": {"exec": {"argv": ["true"]}}}`, "job", "apply", "held", "-f", "-")
	do("", "job", "pause", "held", "--reason", "the database moves")
	const says = "Its job is paused (the database moves): it is held until the job is resumed. (belfry job resume held)"
	const flag = "To run it now, cancel this run and trigger the job with --ignore-pause."
	if got := do("", "job", "trigger", "held"); !strings.Contains(got.errors, says+" "+flag) || !strings.Contains(got.out, "queued") {
		t.Errorf("%+v", got)
	}
	if got := do("", "job", "trigger", "held", "-o", "name"); got.errors != "" {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "", "job", "trigger", "held", "--wait", "--timeout", "2s", "--address", address); got.code != exitTimeout || !strings.Contains(got.errors, says) {
		t.Errorf("%+v", got)
	}
	if got := do("", "job", "trigger", "held", "--ignore-pause", "--wait"); strings.Contains(got.errors, "paused") || !strings.Contains(got.out, "ignores the pause of its job") {
		t.Errorf("%+v", got)
	}
	if got := do(`[{"ignore_pause": true}, {"delay": "1h"}]`, "job", "trigger", "held", "-f", "-", "-o", "json"); strings.Count(got.out, `"status": 202`) != 2 {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "[]", "job", "trigger", "held", "-f", "-", "--ignore-pause", "--address", address); got.code != exitUsage || !strings.Contains(got.errors, "the file says the rest") {
		t.Errorf("%+v", got)
	}
	do("", "job", "resume", "held")
	if got := do("", "job", "trigger", "held", "--at", "2020-01-01T00:00:00Z"); !strings.Contains(got.errors, "The time is past: the run starts at once.") {
		t.Errorf("%+v", got)
	}
	if got := do("", "job", "trigger", "held", "--delay", "1h"); got.errors != "" {
		t.Errorf("%+v", got)
	}
}
