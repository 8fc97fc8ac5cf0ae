package simulate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// happened are events in short, a line each: offset from the beginning, event, attempt, and the offset of until.
func happened(events []simulate.Event) string {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	var lines []string
	for _, e := range events {
		line := fmt.Sprintf("%s %s %d", e.At.Sub(start), e.Event, e.Attempt)
		if e.Until != nil {
			line += fmt.Sprintf(" until %s", e.Until.Sub(start))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func asText(r simulate.Report) string {
	text, _ := json.Marshal(r)
	return string(text)
}

// once is a job that fires once, at 1m.
func once(more, outcomes string) string {
	return "until: 1m\nevents: true\njobs:\n  j: {schedule: {cron: \"* * * * *\"}, " + more + ", " + handler + "}\noutcomes:\n  j: " + outcomes + "\n"
}

func TestEventsOfARun(t *testing.T) {
	begins := "1m0s queued 0\n1m0s message_sent 0\n1m0s message_taken 0\n1m0s running 1\n"
	for _, c := range []struct{ name, text, want string }{
		{"it fails until its attempts are spent: a short wait is one in the queue, for a longer one a timer sends a new message",
			once("retry: {initial: 10s, factor: 10, max: 1h, max_attempts: 4}", "[{takes: 1s, fails: no}]"), begins + `1m1s retrying 1 until 1m21s
1m1s message_hidden 1 until 1m21s
1m21s message_taken 1
1m21s running 2
1m22s retrying 2 until 4m42s
1m22s message_hidden 2 until 4m42s
4m42s message_taken 2
4m42s running 3
4m43s retrying 3 until 38m3s
4m43s message_deleted 3
38m3s message_sent 3
38m3s message_taken 3
38m3s running 4
38m4s dead 4
38m4s message_deleted 4`},
		{"it succeeds at its second attempt", once("retry: {initial: 10s, max: 10s, max_attempts: 4}", "[{fails: no}, {takes: 2s}]"), begins + `1m0s retrying 1 until 1m10s
1m0s message_hidden 1 until 1m10s
1m10s message_taken 1
1m10s running 2
1m12s succeeded 2
1m12s message_deleted 2`},
		{"it runs into its timeout", once("timeout: 5s, retry: {max_attempts: 1}", "[{never: true}]"), begins + "1m5s dead 1\n1m5s message_deleted 1"},
		{"its worker dies: the message comes again when the lease is over, however often others look at it", once("timeout: 1h, retry: {max_attempts: 1}", "[{takes: 40s, crashes: true}, {}]"), begins + `1m40s worker_died 1
2m0s message_taken 1
2m0s queued 1
2m0s running 2
2m0s succeeded 2
2m0s message_deleted 2`},
		{"it is asked for ahead of time", "events: true\n" + onDemand("", "[{}]", "{at: 1m, do: trigger, job: j, as: a, delay: 1h}"),
			"1m0s scheduled 0 until 1h1m0s\n1h1m0s queued 0\n1h1m0s message_sent 0\n1h1m0s message_taken 0\n1h1m0s running 1\n1h1m0s succeeded 1\n1h1m0s message_deleted 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := play(t, c.text, simulate.Options{})
			if got := happened(r.Runs[0].Events); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			silent := play(t, strings.Replace(c.text, "events: true\n", "", 1), simulate.Options{})
			for i := range r.Runs {
				r.Runs[i].Events = nil
			}
			if asText(r) != asText(silent) {
				t.Error("the report is another one where events are asked for")
			}
		})
	}
}

// A policy of so many attempts has as many, and a dead letter at the end; a success has none.
func TestEventsCountAsThePolicyDoes(t *testing.T) {
	count := func(text string) map[string]int {
		counts := map[string]int{}
		for _, e := range play(t, text, simulate.Options{}).Runs[0].Events {
			counts[e.Event]++
		}
		return counts
	}
	for _, attempts := range []int{1, 2, 7, 100} {
		policy := fmt.Sprintf("retry: {initial: 1s, max: 2s, max_attempts: %d}", attempts)
		if got := count(once(policy, "[{fails: no}]")); got["running"] != attempts || got["retrying"] != attempts-1 || got["dead"] != 1 {
			t.Errorf("of %d attempts: %v", attempts, got)
		}
		got := count(once(policy, "["+strings.Repeat("{fails: no}, ", attempts-1)+"{}]"))
		if got["running"] != attempts || got["succeeded"] != 1 || got["dead"] != 0 {
			t.Errorf("success at attempt %d: %v", attempts, got)
		}
	}
}

func TestEventsOfSteps(t *testing.T) {
	r := play(t, "events: true\n"+flowed("steps: {a: {handler: {name: h}}, b: {needs: [a], handler: {name: h}}}", "w/a: [{takes: 1s}]"), simulate.Options{})
	for _, s := range r.Runs[0].Steps {
		if got := happened(s.Events); !strings.Contains(got, "message_taken") || !strings.Contains(got, "succeeded 1") {
			t.Errorf("step %s: %s", s.Path, got)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	r := play(t, once("retry: {initial: 1s, max: 1s, max_attempts: 10}", "[{fails: no}]"), simulate.Options{Events: 12})
	if r.Stopped == nil || r.Stopped.Bound != simulate.BoundEvents || r.Stopped.Limit != "12" {
		t.Errorf("stopped is %+v", r.Stopped)
	}
}
