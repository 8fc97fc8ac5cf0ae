package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The log of a workflow's run is that of its steps, each under its path: as it is, and as it is written, with each start and end.
func TestTheLogsOfAWorkflowsRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	file := written(t, "job.yaml", fmt.Sprintf(`{name: etl, target: {workflow: {steps: {
  extract: {exec: {argv: [sh, -c, 'echo one; printf two']}},
  quiet: {exec: {argv: ["true"]}},
  parts: {needs: [extract], steps: {index: {retry: {max_attempts: 2, initial: 1ms, max: 1ms},
    exec: {argv: [sh, -c, 'echo try $BELFRY_ATTEMPT; until test -e %[1]s/go; do sleep 0.02; done; test $BELFRY_ATTEMPT = 2']}}}},
  load: {needs: [parts], exec: {argv: [echo, loaded]}},
  refund: {needs: [load], rule: one_failed, exec: {argv: [echo, refunded]}}}}}}
---
{name: silent, target: {workflow: {steps: {only: {exec: {argv: ["true"]}}}}}}`, dir))
	call(0, "", "job", "apply", "-f", file)
	opened := filepath.Join(dir, "go")
	t.Cleanup(func() { _ = os.WriteFile(opened, nil, 0o600) }) // else the attempt outlives the server
	id := decode[wire.Run](t, call(0, "", "job", "trigger", "etl", "-o", "json").out).ID

	const before = "==> extract <==\none\ntwo\n\n==> parts/index <==\ntry 1\n"
	eventually(t, "what its steps have written so far", func() (bool, string) {
		got := call(0, "", "run", "logs", id)
		return got.out == before, got.out
	})
	if got := call(9, "", "run", "logs", id, "--follow", "--timeout", "700ms"); got.out != before || !strings.Contains(got.errors, "  step extract: succeeded after ") || !strings.Contains(got.errors, "  step parts/index: attempt 1 runs") {
		t.Errorf("followed up to where it stands: %q, %s", got.out, got.errors)
	}
	followed := make(chan outcome, 1)
	go func() { followed <- call(0, "", "run", "logs", id, "--follow", "--tail", "1") }()
	if err := os.WriteFile(opened, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-followed; !strings.HasPrefix(got.out, "==> extract <==\ntwo\n\n==> parts/index <==\ntry ") || !strings.HasSuffix(got.out, "try 2\n\n==> load <==\nloaded\n") ||
		!strings.Contains(got.errors, "  step load: succeeded after ") || !strings.Contains(got.errors, "  step refund: skipped") || !strings.Contains(got.errors, "  step quiet: succeeded") {
		t.Errorf("followed to its end: %q, %s", got.out, got.errors)
	}
	const newest = "==> extract <==\none\ntwo\n\n==> parts/index <==\ntry 2\n\n==> load <==\nloaded\n"
	for _, more := range [][]string{nil, {"--follow"}} {
		if got := call(0, "", append([]string{"run", "logs", id}, more...)...); got.out != newest {
			t.Errorf("of one that has ended, %v: %q, %s", more, got.out, got.errors)
		}
	}
	if got := call(0, "", "run", "logs", id, "--tail", "1").out; got != strings.ReplaceAll(newest, "one\n", "") {
		t.Errorf("the last line of each: %q", got)
	}
	shown := decode[struct {
		ID    string
		Steps []stepLog
	}](t, call(0, "", "run", "logs", id, "-o", "json").out)
	if want := []stepLog{{"extract", 1, "one\ntwo"}, {"parts/index", 2, "try 2\n"}, {"load", 1, "loaded\n"}, {"quiet", 1, ""}}; shown.ID != id || !slices.Equal(shown.Steps, want) {
		t.Errorf("as data: %+v, want %+v", shown, want)
	}
	for _, more := range [][]string{nil, {"--follow"}, {"-o", "json"}} {
		if got := call(2, "", append([]string{"run", "logs", id, "--attempt", "1"}, more...)...); !strings.Contains(got.errors, "--attempt: "+id+" is the run of a workflow") || got.out != "" {
			t.Errorf("an attempt of the whole, %v: %q, %s", more, got.out, got.errors)
		}
	}
	if got := call(0, "", "job", "trigger", "etl", "--follow"); got.out != "==> extract <==\none\ntwo\n\n==> parts/index <==\ntry 1\ntry 2\n\n==> load <==\nloaded\n" ||
		!strings.Contains(got.errors, "  step extract: ") || !strings.Contains(got.errors, "  step parts/index: ") || !strings.Contains(got.errors, "  step load: succeeded") {
		t.Errorf("triggered and followed: %q, %s", got.out, got.errors)
	}
	silent := decode[wire.Run](t, call(0, "", "job", "trigger", "silent", "--wait", "-o", "json").out).ID
	if got := call(0, "", "run", "logs", silent); got.out != "" || !strings.Contains(got.errors, "No step of "+silent+" has written anything") {
		t.Errorf("of steps that wrote nothing: %q, %s", got.out, got.errors)
	}
}

// Of many steps that run at once, those beyond the bound have their lines printed when they have ended: none is left out.
func TestFollowingMoreStepsThanAreFollowedAtOnce(t *testing.T) {
	t.Parallel()
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	var steps, want []string
	for i := range mostFollowed + 8 {
		steps = append(steps, fmt.Sprintf(`s%02d: {exec: {argv: [sh, -c, 'echo of %d; sleep 1']}}`, i, i))
		want = append(want, fmt.Sprintf("==> s%02d <==\nof %d\n", i, i))
	}
	call(0, "{name: wide, target: {workflow: {steps: {"+strings.Join(steps, ", ")+"}}}}", "job", "apply", "-f", "-")
	got := call(0, "", "job", "trigger", "wide", "--follow")
	parts := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n\n")
	for i := range parts {
		parts[i] += "\n"
	}
	slices.Sort(parts)
	if !slices.Equal(parts, want) {
		t.Errorf("followed: %q", got.out)
	}
}
