package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestJobCalendar(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, `[{"name": "a", "schedule": {"cron": "0 12 * * *", "timezone": "Europe/Berlin"}, "target": {"http": {"url": "http://127.0.0.1:9/x"}}}]`, "job", "apply", "-f", "-")
	call(0, "", "job", "trigger", "a")
	got := call(0, "", "job", "calendar", "a").out
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) < 8 || len(lines) > 10 || !strings.HasPrefix(lines[0], "DAY ") || !strings.Contains(lines[0], "TO COME") {
		t.Errorf("shown as\n%s", got)
	}
	days := decode[wire.JobCalendar](t, call(0, "", "job", "calendar", "a", "--from", "2099-03-28", "--to", "2099-03-30", "-o", "json").out)
	if days.Timezone != "Europe/Berlin" || len(days.Days) != 3 || days.Days[1].Fires != 1 {
		t.Errorf("got %+v", days)
	}
	if got := call(0, "", "job", "calendar", "a", "--from", "2099-03-28", "--to", "2099-03-30").out; !strings.Contains(got, "23 hours: the clock changes") {
		t.Errorf("a day with a change of the clock is shown as\n%s", got)
	}
	if days := decode[wire.JobCalendar](t, call(0, "", "job", "calendar", "a", "--from", "2099-03-28", "--to", "2099-03-28", "--timezone", "Asia/Tokyo", "-o", "json").out); days.Timezone != "Asia/Tokyo" {
		t.Errorf("with a zone: %+v", days)
	}
	call(exitNotFound, "", "job", "calendar", "nobody")
	call(2, "", "job", "calendar", "a", "--from", "yesterday")
	call(1, "", "job", "calendar", "a", "--from", "2099-03-28", "--to", "2099-03-27")
}

func TestJobHistory(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	const job = `[{"name": "a", "timeout": "%s", "target": {"http": {"url": "http://127.0.0.1:9/x"}}}]`
	call(0, fmt.Sprintf(job, "1m"), "job", "apply", "-f", "-")
	if got := call(exitNotFound, "", "job", "history", "a", "--diff"); !strings.Contains(got.errors, "no other definition") {
		t.Errorf("one definition differs from another: %q", got.errors)
	}
	call(0, fmt.Sprintf(job, "2m"), "job", "apply", "-f", "-")
	call(0, "", "job", "pause", "a")
	history := decode[[]wire.Generation](t, call(0, "", "job", "history", "a", "-o", "json").out)
	if len(history) != 3 || !history[0].Definition.Paused || history[2].Definition.Timeout.Std() != time.Minute {
		t.Fatalf("got %+v", history)
	}
	lines := strings.Split(strings.TrimSpace(call(0, "", "job", "history", "a").out), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[1], "paused") || !strings.HasSuffix(lines[2], "timeout") || !strings.HasSuffix(lines[3], "the oldest that is kept") {
		t.Errorf("shown as\n%s", strings.Join(lines, "\n"))
	}
	if lines := strings.Split(strings.TrimSpace(call(0, "", "job", "history", "a", "-n", "1").out), "\n"); len(lines) != 2 || !strings.HasSuffix(lines[1], "paused") {
		t.Errorf("one of them is shown as\n%s", strings.Join(lines, "\n"))
	}
	if got := call(0, "", "job", "history", "a", "--diff").out; !strings.Contains(got, "\n+paused: true\n") || strings.Contains(got, "\n-timeout") {
		t.Errorf("the newest two differ as\n%s", got)
	}
	number := func(i int) string { return fmt.Sprint(history[i].Generation) }
	for _, args := range [][]string{{number(0), number(2)}, {number(2), number(0)}} {
		if got := call(0, "", append([]string{"job", "history", "a", "--diff"}, args...)...).out; !strings.Contains(got, "\n-timeout: 1m\n+timeout: 2m\n") || !strings.Contains(got, "\n+paused: true\n") {
			t.Errorf("%v differ as\n%s", args, got)
		}
	}
	if got := call(0, "", "job", "history", "a", number(1), "--diff").out; !strings.Contains(got, "+timeout: 2m") || strings.Contains(got, "paused") {
		t.Errorf("one and the one before it differ as\n%s", got)
	}
	call(0, "", "job", "delete", "a", "--yes")
	if got := call(0, "", "job", "history", "a").out; !strings.Contains(strings.Split(got, "\n")[1], "deleted") {
		t.Errorf("of a deleted job:\n%s", got)
	}
	if got := call(0, "", "job", "history", "a", "--diff").out; !strings.Contains(got, "\n-timeout: 2m\n") {
		t.Errorf("what was deleted is shown as\n%s", got)
	}
	call(exitNotFound, "", "job", "history", "nobody")
	call(exitNotFound, "", "job", "history", "a", "7", "--diff")
	call(2, "", "job", "history", "a", "x", "--diff")
	call(2, "", "job", "history", "a", number(0))
	call(2, "", "job", "history", "a", number(0), number(0), "--diff")
	call(2, "", "job", "history", "a", "-n", "-1")
}

func TestScheduleLoad(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	const target = `"target": {"http": {"url": "http://127.0.0.1:9/x"}}}`
	call(0, `[{"name": "a", "schedule": {"cron": "0 9 * * *"}, `+target+`, {"name": "b", "schedule": {"cron": "*/20 9 * * *"}, `+target+`, {"name": "c", "paused": true, "schedule": {"every": "1s"}, `+target+`]`, "job", "apply", "-f", "-")
	got := call(0, "", "schedule", "load", "--from", "2099-03-02", "--to", "2099-03-04", "--timezone", "UTC")
	if want := "FROM"; !strings.HasPrefix(got.out, want) || strings.Count(got.out, "\n") != 3 || !strings.Contains(got.out, "Mon 2099-03-02 09:00:00  4     ##############################\n") {
		t.Errorf("shown as\n%s", got.out)
	}
	for _, want := range []string{"8 runs of 2 jobs are due; 1 paused jobs are left out\n", "peak: 4 from 2099-03-02 09:00:00", ": b 3, a 1\n"} {
		if !strings.Contains(got.errors, want) {
			t.Errorf("it says %q, want %q in it", got.errors, want)
		}
	}
	load := decode[wire.ScheduleLoad](t, call(0, "", "schedule", "load", "--from", "2099-03-02", "--to", "2099-03-02 10:00", "--step", "10m", "--timezone", "UTC", "-o", "json").out)
	if len(load.Fires) != 60 || load.Total != 4 || load.Step != 600 {
		t.Errorf("got %+v", load)
	}
	call(2, "", "schedule", "load", "--from", "soon")
	call(1, "", "schedule", "load", "--step", "7s")
}
