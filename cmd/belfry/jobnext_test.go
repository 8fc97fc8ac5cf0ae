package main

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestJobNextShowsTheClockOfTheJob(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	const target = `"target": {"http": {"url": "http://127.0.0.1:9/x"}}`
	call(0, `[{"name": "a", "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, `+target+`}, {"name": "b", `+target+`}]`, "job", "apply", "-f", "-")
	got := call(0, "", "job", "next", "a", "--from", "2027-03-27T12:00:00Z", "-n", "2").out
	if !strings.Contains(got, "2027-03-28 03:00:00 +02:00  shifted: the clock skips 02:30:00\n") || strings.Count(got, "\n") != 3 {
		t.Errorf("shown as\n%s", got)
	}
	if fires := decode[wire.JobFires](t, call(0, "", "job", "next", "a", "-o", "json").out); len(fires.Fires) != 10 || fires.Timezone != "Europe/Berlin" {
		t.Errorf("fires %+v", fires)
	}
	if got := call(0, "", "job", "next", "b"); got.out != "" || !strings.Contains(got.errors, "on demand") {
		t.Errorf("on demand: %q %q", got.out, got.errors)
	}
	call(exitNotFound, "", "job", "next", "nobody")
	call(2, "", "job", "next", "a", "-n", "0")
}
