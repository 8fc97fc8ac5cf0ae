package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A listing shows how the last runs of its jobs went, however many requests that takes.
func TestJobsAreListedWithTheirLastRuns(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	var jobs []string
	for i := range 150 {
		jobs = append(jobs, fmt.Sprintf(`{"name": "j%03d", "target": {"exec": {"argv": ["/bin/sh", "-c", "exit %d"]}}, "retry": {"max_attempts": 1}}`, i, i%2))
	}
	call(0, "["+strings.Join(jobs, ",")+"]", "job", "apply", "-f", "-")
	for _, name := range []string{"j000", "j001", "j149"} {
		call(0, "", "job", "trigger", name)
	}
	call(0, "", "job", "trigger", "j001", "--delay", "1h")
	want := map[string]string{"j000": `\+`, "j001": "!", "j149": "!"}
	eventually(t, "the runs end", func() (bool, string) {
		got := call(0, "", "job", "list", "--last-runs").out
		for name, mark := range want {
			if !regexp.MustCompile(`(?m)^` + name + ` +` + mark + ` +([-0-9: ]+\(.*\) +)?on demand`).MatchString(got) {
				return false, got
			}
		}
		return strings.Count(got, "\n") == 151, got
	})
	plain := call(0, "", "job", "list").out
	for _, line := range []string{`JOB +LAST RUN +SUCCEEDED +WHEN`, `j000 +succeeded +\d{4}-.* on demand`, `j001 +dead +on demand`, `j002 +on demand`} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(plain) {
			t.Errorf("no line %s in %s", line, plain)
		}
	}
	if got := call(0, "", "job", "list", "-n", "2", "-o", "json").out; strings.Contains(got, "last_") {
		t.Errorf("for programs it lists %s", got)
	}
	listed := decode[[]struct {
		Name            string
		LastRuns        []wire.LastRun `json:"last_runs"`
		LastSucceededAt time.Time      `json:"last_succeeded_at"`
	}](t, call(0, "", "job", "list", "--last-runs", "-n", "120", "-o", "json").out)
	if len(listed) != 120 || listed[1].Name != "j001" || len(listed[1].LastRuns) != 1 || listed[1].LastRuns[0].State != "dead" || listed[0].LastSucceededAt.IsZero() || !listed[1].LastSucceededAt.IsZero() || listed[2].LastRuns == nil {
		t.Errorf("listed %+v", listed[:min(3, len(listed))])
	}
}

func TestMarksHaveTheNewestRunLast(t *testing.T) {
	var runs []wire.LastRun
	for _, state := range []string{"running", "succeeded", "dead", "of a newer server"} {
		runs = append(runs, wire.LastRun{State: state})
	}
	if got := marks(runs); got != "?!+>" {
		t.Errorf("got %s", got)
	}
}
