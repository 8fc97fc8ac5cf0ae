package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A listing leaves out what is not due unless it is asked for, and puts first what changed last where that is.
func TestWhatHappensNowIsListed(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	call(0, `{"target": {"exec": {"argv": ["true"]}}}`, "job", "apply", "a", "-f", "-")
	trigger := func(args ...string) string {
		return decode[wire.Run](t, call(0, "", append([]string{"job", "trigger", "a", "-o", "json"}, args...)...).out).ID
	}
	soon, far := trigger("--delay", "1m"), trigger("--delay", "2h") // the one is sent at once, the other waits in the store
	first := trigger("--wait")
	second := trigger("--wait")
	call(0, "", "run", "retry", first, "--force")
	call(0, "", "run", "wait", first)

	gone := trigger("--delay", "3h")
	call(0, "", "run", "cancel", gone)

	ahead := time.Now().Add(time.Hour).Format(time.RFC3339)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{second, first}},
		{[]string{"--job", "a"}, []string{second, first}},
		{[]string{"--state", "cancelled"}, []string{gone}},
		{[]string{"--scheduled"}, []string{gone, far, soon, second, first}},
		{[]string{"--state", "scheduled"}, []string{far, soon}},
		{[]string{"--state", "queued"}, nil},
		{[]string{"--state", "succeeded,scheduled"}, []string{far, soon, second, first}},
		{[]string{"--from", ahead}, []string{gone, far}},
		{[]string{"--to", ahead}, []string{second, first}},
		{[]string{"--sort", "due"}, []string{second, first}},
		{[]string{"--sort", "oldest"}, []string{first, second}},
		{[]string{"--sort", "oldest", "--scheduled", "-n", "3"}, []string{first, second, soon}},
		{[]string{"--sort", "changed"}, []string{first, second}},
		{[]string{"--sort", "changed", "-n", "1"}, []string{first}},
		{[]string{"--sort", "changed", "--job", "a", "-n", "0"}, []string{first, second}},
		{[]string{"--sort", "changed", "--scheduled"}, []string{gone, first, second, far, soon}},
	} {
		got := call(0, "", append([]string{"run", "list", "-o", "name"}, c.args...)...)
		if !slices.Equal(strings.Fields(got.out), c.want) || got.errors != "" {
			t.Errorf("%q: %q, want %q; %s", c.args, strings.Fields(got.out), c.want, got.errors)
		}
	}
	if got := call(0, "", "run", "list", "--sort", "changed").out; !strings.HasPrefix(got, "RUN ") || !strings.Contains(got, " CHANGED ") {
		t.Errorf("by change it shows %s", got)
	}
	if got := call(0, "", "job", "get", "a").out; strings.Contains(got, far) || !strings.Contains(got, second) {
		t.Errorf("the last runs of a job are %s", got)
	}
	if got := call(2, "", "run", "list", "--sort", "age"); !strings.Contains(got.errors, `--sort "age": want one of due, oldest, changed`) {
		t.Errorf("by age: %s", got.errors)
	}
}

// A job that asks for it has its last success in the metrics, and others have not. A workflow succeeds with its run, and not with a step.
func TestWatchedJobsTellWhenTheyLastSucceeded(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	job := func(name, command, label string) {
		call(0, fmt.Sprintf(`{"target": {"exec": {"argv": ["%s"]}}, "retry": {"max_attempts": 1}, "labels": {"belfry.alert": "%s"}}`, command, label), "job", "apply", name, "-f", "-")
	}
	job("fine", "true", "success")
	job("broken", "false", "success")
	job("quiet", "true", "no")
	for name, last := range map[string]string{"flow": "true", "half": "false"} {
		call(0, fmt.Sprintf(`{"target": {"workflow": {"defaults": {"retry": {"max_attempts": 1}}, "steps": {"a": {"exec": {"argv": ["true"]}}, "b": {"needs": ["a"], "exec": {"argv": ["%s"]}}}}},
			"labels": {"belfry.alert": "success"}}`, last), "job", "apply", name, "-f", "-")
	}
	for _, name := range []string{"fine", "quiet", "flow"} {
		call(0, "", "job", "trigger", name, "--wait")
	}
	for _, name := range []string{"broken", "half"} {
		call(6, "", "job", "trigger", name, "--wait")
	}
	eventually(t, "the metrics have them", func() (bool, string) {
		answer, err := http.Get(address + "/metrics")
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		got := regexp.MustCompile(`(?m)^belfry_job_last_success_timestamp_seconds\{.*$`).FindAllString(string(text), -1)
		slices.Sort(got)
		return len(got) == 4 && strings.HasSuffix(got[0], `{job_name="broken"} 0`) && strings.Contains(got[1], `{job_name="fine"} 1.`) &&
			strings.Contains(got[2], `{job_name="flow"} 1.`) && strings.HasSuffix(got[3], `{job_name="half"} 0`), fmt.Sprint(got)
	})
}

// What is ready is due and not begun: not what is sent ahead, not what a worker has, and not what is between two attempts.
func TestAQueueCountsWhatReallyWaits(t *testing.T) {
	t.Parallel()
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec", "--concurrency", "1"))
	call(0, `{"target": {"exec": {"argv": ["false"]}}, "retry": {"initial": "10m", "max": "10m"}}`, "job", "apply", "later", "-f", "-")
	call(0, `{"target": {"exec": {"argv": ["sleep", "600"]}}}`, "job", "apply", "slow", "-f", "-")
	state := func(id, want string) {
		eventually(t, id+" is "+want, func() (bool, string) {
			got := decode[wire.Run](t, call(0, "", "run", "get", id, "-o", "json").out)
			return got.State == want, got.State
		})
	}
	trigger := func(args ...string) string {
		return decode[wire.Run](t, call(0, "", append([]string{"job", "trigger", "-o", "json"}, args...)...).out).ID
	}
	state(trigger("later"), "retrying")
	state(trigger("slow"), "running")
	for range 3 {
		trigger("slow")
	}
	trigger("slow", "--delay", "1m")
	trigger("slow", "--delay", "2h") // in the store
	eventually(t, "they are counted", func() (bool, string) {
		got := call(0, "", "queue", "list").out
		return regexp.MustCompile(`(?m)^default +1 +3 +1 +2$`).MatchString(got), got
	})
	if got := strings.Fields(call(0, "", "run", "list", "--state", "queued", "-o", "name").out); len(got) != 3 {
		t.Errorf("queued are %q", got)
	}
}
