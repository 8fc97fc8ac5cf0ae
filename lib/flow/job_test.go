package flow

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
)

func TestJobsWithAWorkflow(t *testing.T) {
	const steps = "target:\n  workflow:\n    steps: {a: {pass: {}}}\n"
	for text, want := range map[string][]string{
		"name: etl\nschedule: {cron: '0 4 * * *', timezone: Europe/Berlin}\noverlap: skip\nlabels: {team: x}\nretention: 90d\nqueue: slow\npriority: low\npayload: {a: 1}\ncatch_up: {mode: all}\n" + steps: nil,
		"timeout: 1h\nretry: {max_attempts: 3}\nguarantee: at_most_once\ngates: [api]\n" + steps: {
			"timeout: want " + ofSteps["timeout"], "retry: want " + ofSteps["retry"], "guarantee: want " + ofSteps["guarantee"], "gates: want " + ofSteps["gates"]},
		"shcedule: {cron: '* * * * *'}\n" + steps:                  {`shcedule: got an unknown field, want a known one; did you mean "schedule"?`},
		"schedule: {cron: '61 * * * *'}\n" + steps:                 {`schedule.cron: got "61", want minute: 0 to 59`},
		"schedule: {every: 5}\n" + steps:                           {`schedule: want what a job takes there: got "5", want a duration such as "90s", "5m", "1h30m" or "30d", in quotes`},
		"schedule: {corn: x}\n" + steps:                            {`schedule: want what a job takes there: unknown field "corn"`},
		"overlap: queue\n" + steps:                                 nil,
		"overlap: {policy: strict, limit: 2}\n" + steps:            {`overlap.limit: got "2", want 1 under strict, or the field left out: one run follows the other`},
		"target: {workflow: {steps: {a: {needs: [b], pass: {}}}}}": {`target.workflow.steps.a.needs[0]: got "b", want the name of a step in the same scope, which are a`},
		"name: a b\nlabels: {team: 5}\ncatch_up: all\npaused: 1\nretention: 5\n" + steps: {
			`name: got "a b", want 1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit`,
			"labels: got a number, want text in quotes", "catch_up: got text, want an object", "paused: got a number, want true or false",
			`retention: got "5", want a duration such as "90s", "5m", "1h30m" or "30d", in quotes`},
		"name: 5\nlabels: x\nschedule: {cron: 5}\noverlap: 5\n" + steps: {"name: got a number, want text in quotes", "labels: got text, want an object",
			"schedule.cron: got a number, want text in quotes", `overlap: want what a job takes there: the name of a policy, such as "queue", or {"policy": "queue", "limit": 3, "max_waiting": 100}`},
		"target: {workflow: []}": {"target.workflow: got an array, want a workflow as an object with steps"},
		"target: {workflow: {steps: {a: {pass: {}}}}, http: {url: x}}":   {"target.http: want nothing beside workflow"},
		"target: {http: {url: x}}":                                       {"target.workflow: want a workflow, which is missing: this job has another target"},
		"target: x":                                                      {"target: got text, want an object with workflow"},
		"target: {workflow: {timeout: 1, steps: {a: {pass: {}}}}}\na: 1": {"a: got an unknown field, want one of description, schedule, target, payload, queue, priority, catch_up, retention, labels, paused, overlap, expires_after, deadline, max_runs, pause_after or on", `target.workflow.timeout: got a number, want a duration such as "90s", "1h30m" or "30d"`},
	} {
		values, err := manifest.Read("job.yaml", []byte(text))
		if err != nil || !IsJob(values[0]) {
			t.Fatal(text, err)
		}
		w, err := CheckJob(values[0], AnyQueue)
		var got []string
		for _, e := range invalid.All(err) {
			got = append(got, e.Error())
		}
		if !reflect.DeepEqual(got, want) || (w == nil) != (want != nil) {
			t.Errorf("%s\n%q\nwant %q", text, got, want)
		}
	}
}

func TestThePageNamesWhatIsToCome(t *testing.T) {
	page, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Not built yet")
	for _, name := range slices.Concat(stepFieldsToCome, workflowShape.later) {
		if !strings.Contains(list, "`"+name+"`") {
			t.Errorf("docs/workflows.md does not name %s", name)
		}
	}
}

// The API takes the workflow of a job, and no job.
func TestAJobWhereAWorkflowIsWantedIsToldSo(t *testing.T) {
	_, err := Read([]byte(`{"target": {"workflow": {"steps": {"a": {"pass": {}}}}}}`))
	if want := "target: got an unknown field, want what the job has in target.workflow, by itself"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
