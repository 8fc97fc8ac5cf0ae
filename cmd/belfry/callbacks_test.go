package main

import (
	"fmt"
	"strings"
	"testing"
)

// What a file says of callbacks is shown in words, goes out and comes in again, whichever order the jobs stand in; a dry run knows of what the same files put.
func TestCallbacksInFiles(t *testing.T) {
	here, there := to(t, dev(t, "--data", t.TempDir())), to(t, dev(t, "--data", t.TempDir()))
	files := demand("a", "on: {failed: {job: tell}, succeeded: {job: b}, missed: {job: tell, window: 10m}}") + "---\n" + demand("b", "on: {failed: {job: tell}}") + "---\n" + demand("tell")
	for _, args := range [][]string{{"--dry-run"}, nil} {
		if got := here(0, files, append([]string{"job", "apply", "-f", "-"}, args...)...).out; !strings.Contains(got, "created") {
			t.Errorf("%q gives\n%s", args, got)
		}
	}
	for name, want := range map[string]string{"a": "b when a run has succeeded, tell when a run has failed, tell when fires were missed (together with others of 10m)\n", "b": "tell when a run has failed\n", "tell": ""} {
		got := here(0, "", "job", "get", name).out
		_, says, found := strings.Cut(got, "\ncalls ")
		if found != (want != "") || !strings.HasPrefix(strings.TrimLeft(says, " "), want) {
			t.Errorf("%s is shown as\n%s\nwant %q of what it calls", name, got, want)
		}
	}
	if got := here(0, files, "job", "apply", "-f", "-").out; strings.Count(got, "unchanged") != 3 {
		t.Errorf("applied again:\n%s", got)
	}
	for _, form := range []string{"yaml", "json"} {
		out := here(0, "", "export", "-o", form).out
		there(0, out, "job", "apply", "-f", "-")
		if again := there(0, "", "export", "-o", form).out; again != out {
			t.Errorf("it changed on its way:\n%s\n%s", out, again)
		}
	}
	if got := here(0, demand("b"), "job", "apply", "-f", "-", "--dry-run").out; !strings.Contains(got, "\n-\"on\":\n-  failed:\n-    job: tell\n") {
		t.Errorf("the dry run tells\n%s", got)
	}
	refused := here(1, demand("x", "on: {failed: {job: tel}}")+"---\n"+demand("y", "on: {missed: {sns: tell}}")+"---\n"+demand("z", "on: {failed: {job: z}}"), "job", "apply", "-f", "-")
	for _, want := range []string{
		`line 3: on.failed.job: got "tel", want a job that exists`, "on.missed.sns: not taken here; name a job that has such a target", `on.failed.job: got "z", want another job`,
	} {
		if !strings.Contains(refused.errors, want) {
			t.Errorf("it lacks %q in\n%s", want, refused.errors)
		}
	}
}

// The operator names a job for all that name none, in the configuration too.
func TestCallbacksOfAllJobs(t *testing.T) {
	t.Setenv("BELFRY_ON_RECOVERED", "default=tell,acme=other")
	here := to(t, dev(t, "--data", t.TempDir(), "--allow-exec", "--on-failed", "tell"))
	exec := func(name, command string) string {
		return fmt.Sprintf("name: %s\ntarget: {exec: {argv: [/bin/sh, -c, %q]}}\nretry: {max_attempts: 1}\n", name, command)
	}
	here(0, exec("a", "exit 1")+"---\n"+exec("tell", "cat"), "job", "apply", "-f", "-")
	tells := func(event string) {
		t.Helper()
		here(0, "", "job", "trigger", "a")
		eventually(t, "it is told that a run has "+event, func() (bool, string) {
			got := here(0, "", "run", "list", "--job", "tell", "--state", "succeeded", "-o", "json").out
			return strings.Contains(got, `"event": "`+event+`"`) || strings.Contains(got, `"event":"`+event+`"`), got
		})
	}
	tells("failed")
	here(0, exec("a", "exit 0"), "job", "apply", "-f", "-")
	tells("recovered")
	if got := here(0, "", "job", "get", "a").out; strings.Contains(got, "calls") {
		t.Errorf("the job is shown with what it does not say:\n%s", got)
	}
}

// A request names whom its run calls, by flags and in a file of requests.
func TestCallbacksOfRequests(t *testing.T) {
	here := to(t, dev(t, "--data", t.TempDir()))
	here(0, demand("a")+"---\n"+demand("tell")+"---\n"+demand("done"), "job", "apply", "-f", "-")
	out := here(0, "", "job", "trigger", "a", "--on-failed", "tell", "--on-succeeded", "done", "--delay", "1h").out
	if !strings.Contains(out, "done when a run has succeeded, tell when a run has failed") {
		t.Errorf("it is shown as\n%s", out)
	}
	here(0, `{"job": "a", "on": {"failed": {"job": "tell"}}, "delay": "1h"}`, "job", "trigger", "-f", "-")
	for _, c := range []struct {
		stdin, want string
		args        []string
	}{
		{"", `on.failed.job: got "tel", want a job that exists`, []string{"a", "--on-failed", "tel"}},
		{"", `on.succeeded.job: got "a", want another job`, []string{"a", "--on-succeeded", "a"}},
		{`{"job": "a", "on": {"missed": {"job": "tell"}}}`, "on.missed", []string{"-f", "-"}},
	} {
		if got := here(1, c.stdin, append([]string{"job", "trigger"}, c.args...)...).errors; !strings.Contains(got, c.want) {
			t.Errorf("%q says\n%s\nwant %s", c.args, got, c.want)
		}
	}
	if got := here(2, "{}", "job", "trigger", "a", "-f", "-", "--on-failed", "tell").errors; !strings.Contains(got, "beside -f") {
		t.Errorf("beside a file it says\n%s", got)
	}
}

// More jobs than one request takes: who is called is put before who calls, and a dry run knows of all.
func TestCallbacksOfManyJobs(t *testing.T) {
	here := to(t, dev(t, "--data", t.TempDir()))
	var files strings.Builder
	for n := range chunkJobs + 20 {
		fmt.Fprintf(&files, "%s---\n", demand(fmt.Sprintf("caller-%03d", n), fmt.Sprintf("on: {failed: {job: called-%03d}}", n)))
	}
	for n := range chunkJobs + 20 {
		fmt.Fprintf(&files, "%s---\n", demand(fmt.Sprintf("called-%03d", n)))
	}
	here(0, files.String(), "job", "apply", "-f", "-", "--dry-run")
	if got := here(0, files.String(), "job", "apply", "-f", "-").out; strings.Count(got, "created") != 2*(chunkJobs+20) {
		t.Errorf("applied:\n%s", got)
	}
}
