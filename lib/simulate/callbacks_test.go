package simulate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

const telling = `
jobs:
  a-report:
    schedule: {at: "2026-01-05T00:01:00Z"}
    target: {handler: {name: report}}
    retry: {max_attempts: 2, initial: 1s}
    on: {failed: {job: tell}, succeeded: {job: done}}
  done:
    target: {handler: {name: done}}
  tell:
    target: {handler: {name: tell}}
    on: {succeeded: {job: done}}
`

// What ends calls, as it does for real; and what is called, calls nothing.
func TestARunThatIsGivenUpCallsAnother(t *testing.T) {
	r := play(t, telling+`
outcomes:
  a-report: [{fails: "no"}]
`, simulate.Options{})
	got := said(r)
	if strings.Count(got, "tell@") != 1 || strings.Contains(got, "done@") {
		t.Errorf("played\n%s", got)
	}
	for _, one := range r.Runs {
		if want := map[string]string{"a-report": "schedule", "tell": "callback"}[one.Job]; one.Trigger != want {
			t.Errorf("%s: trigger %q, want %q", one.ID, one.Trigger, want)
		}
	}
}

// Nobody is there for a while: what was missed and dropped is told of once, by the ticks that come back.
func TestMissedFiresCallAnother(t *testing.T) {
	r := play(t, `
jobs:
  report:
    schedule: {cron: "*/5 * * * *"}
    target: {handler: {name: report}}
    catch_up: {mode: none}
    on: {missed: {job: tell}}
  tell:
    target: {handler: {name: tell}}
script:
  - {at: 7m, do: down, for: 31m}
until: 60m
`, simulate.Options{})
	if len(r.Skipped) != 1 || r.Skipped[0].Count < 4 {
		t.Fatalf("skipped %+v", r.Skipped)
	}
	told := 0
	for _, one := range r.Runs {
		if one.Job != "tell" {
			continue
		}
		told++
		if one.Trigger != "callback" || one.State != "succeeded" || one.StartedAt == nil || one.StartedAt.Sub(one.NominalTime) > 10*time.Second {
			t.Errorf("told by %+v", one)
		}
	}
	if told != 1 {
		t.Errorf("played\n%s", said(r))
	}
}

func TestWhatCannotBeCalledIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(telling, "{job: tell}", "{job: tel}", 1):                                             `jobs.a-report.on.failed.job: got "tel", want a job of this scenario; did you mean "tell"?`,
		strings.Replace(telling, "{succeeded: {job: done}}", "{failed: {job: tell}}", 1):                     "jobs.tell.on.failed.job: got \"tell\", want a job that does not call this one",
		strings.Replace(telling, "    on: {succeeded: {job: done}}", "    on: {failed: {job: a-report}}", 1): "want a job that does not call this one in its turn",
	} {
		_, err := simulate.Parse("test.yaml", []byte(begin+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
