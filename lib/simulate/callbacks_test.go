package simulate_test

import (
	"strings"
	"testing"

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
