package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// every10 is a job that fires each ten minutes of an hour.
func every10(more, outcomes string, script ...string) string {
	if more != "" {
		more += ", "
	}
	if outcomes == "" {
		outcomes = "[{takes: 1m}]"
	}
	text := "until: 1h\njobs:\n  j: {schedule: {cron: \"*/10 * * * *\"}, timeout: 1h, " + more + handler + "}\noutcomes:\n  j: " + outcomes + "\n"
	if len(script) > 0 {
		text += "script:\n  - " + strings.Join(script, "\n  - ") + "\n"
	}
	return text
}

// ran are runs of every10 that took a minute from their time on.
func ran(minutes ...int) string {
	var lines []string
	for _, m := range minutes {
		at := time.Duration(m) * time.Minute
		lines = append(lines, fmt.Sprintf("j@%s %s..%s succeeded: succeeded", at, at, at+time.Minute))
	}
	return strings.Join(lines, "\n")
}

func TestWhatPeopleDo(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing: the last fire is at until, and ends after it", every10("", ""), ran(10, 20, 30, 40, 50, 60)},
		{"so many fires, those of a pause among them", every10("max_runs: 3", "", "{at: 15m, do: pause, job: j, reason: x}", "{at: 25m, do: resume, job: j}"), ran(10, 30)},
		{"so many fires, from the put that says another number", every10("max_runs: 1", "", `{at: 35m, do: put, job: j, definition: {schedule: {every: 10m}, max_runs: 2, timeout: 1h, `+handler+`}}`), ran(10, 40, 50)},
		{"two bad ends in a row pause it", every10("pause_after: 2, retry: {max_attempts: 1}", "[{fails: no}, {takes: 1m}, {fails: no}, {fails: no}, {takes: 1m}]"), "j@10m0s 10m0s..10m0s failed: dead, attempts spent\n" + ran(20) + "\nj@30m0s 30m0s..30m0s failed: dead, attempts spent\nj@40m0s 40m0s..40m0s failed: dead, attempts spent"},
		{"pause and resume", every10("", "", "{at: 15m, do: pause, job: j, reason: x}", "{at: 35m, do: resume, job: j}"), ran(10, 40, 50, 60)},
		{"a pause holds what is asked for, until it is over", onDemand("", "[{takes: 1s}]", "{at: 1m, do: pause, job: j}", "{at: 2m, do: trigger, job: j, as: a}", "{at: 9m, do: resume, job: j}"),
			"a=j@2m0s 9m0s..9m1s succeeded: succeeded"},
		{"and for ever where it is not", onDemand("", "[{takes: 1s}]", "{at: 1m, do: pause, job: j}", "{at: 2m, do: trigger, job: j, as: a}"), "a=j@2m0s: queued\n1 open"},
		{"a put holds from its instant on", every10("", "", `{at: 25m, do: put, job: j, definition: {schedule: {cron: "5,25,45 * * * *"}, timeout: 1h, `+handler+`}}`, "{at: 45m30s, do: delete, job: j}"), ran(10, 20, 45)},
		{"a put that was guarded by what stands no more", every10("", "", `{at: 5m, do: put, job: j, if_match: '"1"', definition: {`+handler+`}}`), ran(10, 20, 30, 40, 50, 60) + "\nline 1 at 5m0s: precondition_failed"},
		{"delete", every10("", "[{takes: 15m}]", "{at: 25m, do: delete, job: j}", "{at: 26m, do: trigger, job: j, as: a}", "{at: 27m, do: cancel, run: a}", "{at: 28m, do: delete, job: j}"),
			"j@10m0s 10m0s..25m0s succeeded: succeeded\nj@20m0s 20m0s..35m0s succeeded: succeeded\nline 2 at 26m0s: job_not_found\nline 3 at 27m0s: run_not_found\nline 4 at 28m0s: job_not_found"},
		{"trigger for later, and by a time", onDemand("", "[{}]", "{at: 1m, do: trigger, job: j, as: a, delay: 3h}", "{at: 2m, do: trigger, job: j, as: b, run_at: 2026-01-05T02:00:00Z}"),
			"b=j@2h0m0s 2h0m0s..2h0m0s succeeded: succeeded\na=j@3h1m0s 3h1m0s..3h1m0s succeeded: succeeded"},
		{"cancel at once", every10("", "[{takes: 25m}]", "{at: 15m, do: cancel, run: j@2026-01-05T00:10:00Z}", "{at: 17m, do: cancel, run: j@2026-01-05T00:10:00Z}", "{at: 18m, do: delete, job: j}"),
			"j@10m0s 10m0s..15m0s cancelled: cancelled, cancelled on request\nline 2 at 17m0s: run_ended"},
		{"cancel, and it takes its time to stop", every10("", "[{takes: 25m, stops_after: 90s}]", "{at: 15m, do: cancel, run: j@2026-01-05T00:10:00Z, reason: enough}", "{at: 16m, do: delete, job: j}"),
			"j@10m0s 10m0s..16m30s cancelled: cancelled, enough"},
		{"cancel at the end is too late", every10("", "[{takes: 25m}]", "{at: 18m, do: pause, job: j}", "{at: 35m, do: cancel, run: j@2026-01-05T00:10:00Z}"),
			"j@10m0s 10m0s..35m0s succeeded: succeeded\nline 2 at 35m0s: run_ended"},
		{"cancel all of a job, waiting, running and to be tried again", "workers: 2\n" + onDemand("", "[{fails: no}, {takes: 20s}]", triggerA, strings.ReplaceAll(triggerA, "a}", "b}"), "{at: 0s, do: trigger, job: j, as: c, delay: 1h}", "{at: 500ms, do: cancel, job: j}"),
			"a=j@0s 0s..0s failed: cancelled, cancelled on request\nb=j@0s 0s..500ms cancelled: cancelled, cancelled on request\nc=j@1h0m0s: cancelled, cancelled on request"},
		{"retry of what was done needs force", onDemand("", "[{takes: 1s}]", triggerA, "{at: 1m, do: retry, run: a}", "{at: 2m, do: retry, run: a, force: true}"),
			"a=j@0s 0s..1s succeeded 2m0s..2m1s succeeded: succeeded\nline 2 at 1m0s: needs_force"},
		{"a line of a value goes on by the value, or by the run behind which it stands still", onDemand(`overlap: {policy: strict, key: "${ .payload }"}, retry: {max_attempts: 1}`, "[{fails: no}, {fails: no}, {}]",
			"{at: 0s, do: trigger, job: j, as: a, payload: x}", "{at: 1s, do: trigger, job: j, as: b, payload: y}", "{at: 2s, do: trigger, job: j, as: c, payload: x}", "{at: 3s, do: trigger, job: j, as: d, payload: y}",
			"{at: 1m, do: open, gate: 'job:j'}", "{at: 2m, do: open, gate: 'job:j', run: c}", "{at: 3m, do: open, gate: 'job:j', key: x}", "{at: 4m, do: open, gate: 'job:j', run: b}"),
			"a=j@0s 0s..0s failed: dead, attempts spent\nb=j@1s 1s..1s failed: dead, attempts spent\nc=j@2s 3m0s..3m0s succeeded: succeeded\nd=j@3s 4m0s..4m0s succeeded: succeeded\nline 5 at 1m0s: invalid\nline 6 at 2m0s: run_not_blocking"},
		{"redrive of dead letters", onDemand("retry: {max_attempts: 1}", "[{fails: no}, {fails: no, permanent: true}, {}]", triggerA, strings.ReplaceAll(triggerA, "a}", "b}"), "{at: 1h, do: redrive, job: j}"),
			"a=j@0s 0s..0s failed 1h0m0s..1h0m0s succeeded: succeeded\nb=j@0s 0s..0s failed 1h0m0s..1h0m0s succeeded: succeeded"},
		{"down: what a fire misses, and what goes on", every10("", "[{takes: 15m}]", "{at: 12m, do: down, for: 22m}", "{at: 20m, do: trigger, job: j}", "{at: 35m, do: pause, job: j}"),
			"j@10m0s 10m0s..34m0s succeeded: succeeded\nj@30m0s 34m0s..49m0s succeeded: succeeded\nj: 1 skipped from 20m0s through 20m0s, missed: only the newest fire runs\nline 2 at 20m0s: not_ready"},
		{"down: a fire a little late is made up for", every10("", "", "{at: 18m, do: down, for: 4m}"), strings.Replace(ran(10, 20, 30, 40, 50, 60), "20m0s..21m0s", "22m0s..23m0s", 1)},
		{"down: a fire at its beginning is missed, one at its end is not", every10("catch_up: {mode: none}", "", "{at: 20m, do: down, for: 20m}"),
			ran(10, 40, 50, 60) + "\nj: 2 skipped from 20m0s through 30m0s, missed: catch-up is none"},
		{"down: what is too late to start is missed", every10("expires_after: 6m", "", "{at: 12m, do: down, for: 17m}"),
			ran(10, 30, 40, 50, 60) + "\nj: 1 skipped from 20m0s through 20m0s, missed: longer ago than expires_after"},
		{"down: only what may start still is made up for", every10("catch_up: {mode: all}, expires_after: 15m", "", "{at: 12m, do: down, for: 44m}"),
			strings.Replace(ran(10, 50, 60), "50m0s..51m0s", "56m0.22s..57m0.22s", 1) + "\nj: 3 skipped from 20m0s through 40m0s, missed: longer ago than expires_after"},
		{"down: what may start still, with its share of the jitter", strings.ReplaceAll(every10("catch_up: {mode: all}, expires_after: 5s", "", "{at: 12m, do: down, for: 44m}"), "schedule: {", "schedule: {jitter: 10m, "),
			"j@10m0s: skipped, it had not started by 2026-01-05T00:20:05Z\nj@50m0s 1h0m2s..1h1m2s succeeded: succeeded\nj@1h0m0s 1h10m0s..1h11m0s succeeded: succeeded\n" +
				"j: 3 skipped from 20m0s through 40m0s, missed: longer ago than expires_after"},
		{"down within down", every10("catch_up: {mode: none}", "", "{at: 11m, do: down, for: 20m}", "{at: 21m, do: down, for: 20m}", "{at: 22m, do: down, for: 1m}"),
			strings.Replace(ran(10, 40, 50, 60), "40m0s..41m0s", "41m0s..42m0s", 1) + "\nj: 2 skipped from 20m0s through 30m0s, missed: catch-up is none"},
		{"a worker dies while Belfry is down", every10("", "[{takes: 5m, crashes: true}, {takes: 1m}]", "{at: 12m, do: down, for: 7m}", "{at: 30m, do: pause, job: j}"),
			"j@10m0s 10m0s..19m30s crashed 19m30s..20m30s succeeded: succeeded\nj@20m0s 20m0s..21m0s succeeded: succeeded\nj@30m0s 30m0s..31m0s succeeded: succeeded"},
		{"workers: who comes first", "workers: 1\n" + onDemand("timeout: 1h", "[{takes: 1m}]", triggerA, strings.ReplaceAll(triggerA, "a}", "b}"), strings.ReplaceAll(triggerA, "a}", "c}"), strings.ReplaceAll(triggerA, "a}", "d}"), "{at: 90s, do: workers, n: 2}"),
			"a=j@0s 0s..1m0s succeeded: succeeded\nb=j@0s 1m0s..2m0s succeeded: succeeded\nc=j@0s 1m30s..2m30s succeeded: succeeded\nd=j@0s 2m0s..3m0s succeeded: succeeded"},
		{"workers: none, and some again", onDemand("timeout: 1h", "[{takes: 1m}]", triggerA, "{at: 30s, do: workers, n: 0}", "{at: 40s, do: trigger, job: j, as: b}", "{at: 13h, do: workers, n: 1}"),
			"a=j@0s 0s..1m0s succeeded: succeeded\nb=j@40s 13h0m0s..13h1m0s succeeded: succeeded"},
		{"workers: none for ever", onDemand("", "[{}]", "{at: 0s, do: workers, n: 0}", triggerA), "a=j@0s: queued\n1 open"},
		{"clock: forward over two fires", every10("", "", "{at: 15m, do: clock, by: 20m}"),
			"j@10m0s 10m0s..11m0s succeeded: succeeded\nj@30m0s 35m0s..36m0s succeeded: succeeded\nj@40m0s 40m0s..41m0s succeeded: succeeded\nj@50m0s 50m0s..51m0s succeeded: succeeded\n" +
				"j@1h0m0s 1h0m0s..1h1m0s succeeded: succeeded\nj: 1 skipped from 20m0s through 20m0s, missed: only the newest fire runs"},
		{"clock: back, and no fire comes twice", every10("", "", "{at: 25m, do: clock, by: -20m}"), ran(10, 20, 30, 40, 50, 60)},
		{"clock: ends none that lives", every10("", "[{takes: 9m}]", "{at: 15m, do: clock, by: 1m}", "{at: 25m, do: clock, by: -1m}", "{at: 32m, do: pause, job: j}"),
			"j@10m0s 10m0s..20m0s succeeded: succeeded\nj@20m0s 20m0s..28m0s succeeded: succeeded\nj@30m0s 30m0s..39m0s succeeded: succeeded"},
		{"clock: back by less than a worker waits", onDemand("", "[{}]", "{at: 0s, do: trigger, job: j, as: a, delay: 10s}", "{at: 5s, do: clock, by: -500ms}"), "a=j@10s 10s..10s succeeded: succeeded"},
		{"clock: while a worker is dead", onDemand("", "[{takes: 10s, crashes: true}, {}]", triggerA, "{at: 15s, do: clock, by: 5m}"), "a=j@0s 0s..5m45s crashed 5m45s..5m45s succeeded: succeeded"},
		{"down over the end: what was missed by then is made up for", every10("", "", "{at: 50m, do: down, for: 30m}"),
			ran(10, 20, 30, 40) + "\nj@1h0m0s 1h20m0.22s..1h21m0.22s succeeded: succeeded\nj: 1 skipped from 50m0s through 50m0s, missed: only the newest fire runs"},
		{"down for ever, nearly", onDemand("", "[{takes: 1s}]", "{at: 0s, do: trigger, job: j, as: a, delay: 1h}", "{at: 1s, do: down, for: 5h}"), "a=j@1h0m0s 5h0m1s..5h0m2s succeeded: succeeded"},
		{"overlap: skip", every10("overlap: skip", "[{takes: 25m}, {takes: 1m}]"), "j@10m0s 10m0s..35m0s succeeded: succeeded\nj@20m0s: skipped, other runs of the job were in progress\n" +
			"j@30m0s: skipped, other runs of the job were in progress\n" + ran(40, 50, 60)},
		{"jitter is as long as it may be", "until: 30m\njobs: {j: {schedule: {cron: \"*/10 * * * *\", jitter: 10m}, " + handler + "}}\n",
			"j@10m0s 20m0s..20m0s succeeded: succeeded\nj@20m0s 30m0s..30m0s succeeded: succeeded\nj@30m0s 40m0s..40m0s succeeded: succeeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := said(play(t, c.text, simulate.Options{})); got != c.want {
				t.Errorf("it says\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
