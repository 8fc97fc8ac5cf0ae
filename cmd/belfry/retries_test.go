package main

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// before is what a definition says that was stored when the default was five attempts over some seconds.
const before = "retry: {max_attempts: 5, initial: 1s, factor: 2, max: 5m}"

func TestAJobTellsHowLongItsRunsAreTried(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	for name, c := range map[string]struct{ says, want string }{
		"default": {"", "tries 15 times over about 3 h"},
		"part":    {"retry: {max_attempts: 3}", "tries 3 times over about 4.5 s"},
		"before":  {before, "tries 5 times over about 23 s"},
		"single":  {"retry: {max_attempts: 1}", "tries once"},
		"once":    {"guarantee: at_most_once", "tries once"},
	} {
		preview := call(0, demand(name, c.says), "job", "apply", "-f", "-", "--dry-run").out
		if !strings.HasPrefix(preview, name+" "+c.want+"\n--- /dev/null\n") {
			t.Errorf("a dry run of %s:\n%s\nwant it to begin with %q", name, preview, c.want)
		}
		call(0, demand(name, c.says), "job", "apply", "-f", "-")
		if got := call(0, "", "job", "get", name).out; !strings.Contains(got, "\non failure  "+c.want+"\n") {
			t.Errorf("%s:\n%s\nwant %q", name, got, c.want)
		}
		if j := decode[wire.Job](t, call(0, "", "job", "get", name, "-o", "json").out); j.Status.Tries != c.want {
			t.Errorf("%s: the API says %q, want %q", name, j.Status.Tries, c.want)
		}
	}
}

// What was stored with the defaults of before keeps them until somebody applies a file that says nothing of retries: that gets the defaults of
// today, and a dry run shows it.
func TestAStoredJobKeepsItsRetriesUntilItIsApplied(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, demand("old", before)+"---\n"+demand("part", before), "job", "apply", "-f", "-")
	kept := call(0, "", "job", "get", "old", "-o", "yaml").out
	call(0, "", "job", "pause", "old")
	call(0, "", "job", "resume", "old")
	call(0, kept, "job", "apply", "-f", "-")
	if j := decode[wire.Job](t, call(0, "", "job", "get", "old", "-o", "json").out); j.Retry.MaxAttempts != 5 || j.Retry.Max.String() != "5m" {
		t.Errorf("after a pause, a resume and its own file it has %+v", j.Retry)
	}
	files := demand("old") + "---\n" + demand("part", "retry: {max_attempts: 5}")
	got := call(8, files, "job", "apply", "-f", "-", "--dry-run", "--exit-code").out
	for _, want := range []string{
		"old tries 15 times over about 3 h; as it stands, it tries 5 times over about 23 s\n--- old as it stands\n",
		"\n-  max_attempts: 5\n+  max_attempts: 15\n   initial: 1s\n   factor: 2\n-  max: 5m\n+  max: 1h\n",
		"\n--- part as it stands\n", "dry run, nothing was stored: 2 updated, 0 unchanged\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the dry run lacks\n%s\nin\n%s", want, got)
		}
	}
	if strings.Contains(got, "part tries") { // its waits never come to where they are cut
		t.Errorf("the dry run tells of a change that is none:\n%s", got)
	}
	if got := call(0, files, "job", "apply", "-f", "-").out; strings.Count(got, "updated") != 2 {
		t.Errorf("applied:\n%s", got)
	}
	if got := call(0, files, "job", "apply", "-f", "-").out; strings.Count(got, "unchanged") != 2 {
		t.Errorf("applied again:\n%s", got)
	}
}
