package jobfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/target"
)

const (
	crontab     = "MAILTO=ops@example.org\n0 9 * * * /bin/report\n"
	cronJob     = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: 0 3 * * *, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}\n"
	eventbridge = `{"Name": "a", "ScheduleExpression": "rate(1 day)", "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": {"Arn": "arn:aws:lambda:eu-west-1:123456789012:function:x", "RoleArn": "arn:aws:iam::123456789012:role/r"}}`
	belfry      = "name: a\nschedule: {cron: 0 9 * * *}\ntarget: {exec: {argv: [a]}}\n"
)

func TestATextIsToldByItsForm(t *testing.T) {
	for text, want := range map[string]jobfile.Form{
		crontab: jobfile.Crontab, cronJob: jobfile.Kubernetes, eventbridge: jobfile.EventBridge, belfry: jobfile.Belfry,
		belfry + "---\n" + belfry: jobfile.Belfry, "[{\"target\": {}}]": jobfile.Belfry, "jobs:\n- target: {}\n": jobfile.Belfry,
	} {
		if got, err := jobfile.FormOf([]byte(text)); got != want || err != nil {
			t.Errorf("%s is %q, %v; want %s", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                              "nothing in it is understood",
		"a: 1\n":                        "nothing in it is understood",
		"resource \"aws_x\" \"y\" {\n}": "it looks like a Terraform file",
		"<!doctype html>":               "it looks like a web page",
	} {
		if got, err := jobfile.FormOf([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is %q, %v; want an error that says %q", text, got, err, says)
		}
	}
}

func TestEachFormIsTakenOver(t *testing.T) {
	for form, text := range map[jobfile.Form]string{jobfile.Crontab: crontab, jobfile.Kubernetes: cronJob, jobfile.EventBridge: eventbridge} {
		taken, err := jobfile.TakeOver(form, []byte(text), jobfile.Source{Zone: "Europe/Berlin"})
		if err != nil || len(taken.Jobs) == 0 {
			t.Errorf("%s: %+v, %v", form, taken, err)
		}
		if _, err := jobfile.TakeOver(form, []byte("\n\n"), jobfile.Source{}); form != jobfile.Crontab && err == nil {
			t.Errorf("%s: nothing is taken for something", form)
		}
	}
	if taken, err := jobfile.TakeOver(jobfile.Kubernetes, []byte(cronJob), jobfile.Source{URL: "https://example.org/{name}"}); err != nil || taken.Jobs[0].Def.Target.HTTP.URL != "https://example.org/a" {
		t.Errorf("by URL: %+v, %v", taken, err)
	}
	for _, form := range []jobfile.Form{"", "belfry", "x"} {
		if _, err := jobfile.TakeOver(form, []byte(crontab), jobfile.Source{}); err == nil {
			t.Errorf("%q is taken over", form)
		}
	}
	if _, err := jobfile.TakeOver(jobfile.Kubernetes, []byte(cronJob), jobfile.Source{Way: "pods"}); err == nil {
		t.Error("the way pods is taken")
	}
}

func TestWhoeverTakesOverChangesNamesLabelsAndPauses(t *testing.T) {
	taken, err := jobfile.TakeOver(jobfile.Crontab, []byte(crontab), jobfile.Source{})
	if err != nil {
		t.Fatal(err)
	}
	paused := true
	taken.Adjust(jobfile.Changes{Prefix: "web1.", Labels: map[string]string{"team": "ops"}, Paused: &paused})
	called := taken.Called()
	if len(taken.Jobs) != 2 || len(called) != 1 || !strings.HasPrefix(called[0].Name, "web1.mail-ops") {
		t.Fatalf("%+v calls %+v", taken.Jobs, called)
	}
	for _, j := range taken.Jobs {
		if !strings.HasPrefix(j.Name, "web1.") || j.Def.Labels["team"] != "ops" || j.Def.Labels["source"] != "crontab" || !j.Def.Paused {
			t.Errorf("%+v", j)
		}
		if on := j.Def.On.Failed; j.Name != called[0].Name && (on == nil || on.Job != called[0].Name) {
			t.Errorf("%s calls %+v", j.Name, on)
		}
	}
	taken.Without(map[string]string{called[0].Name: "no mail server"})
	if len(taken.Jobs) != 1 || taken.Jobs[0].Def.On.Failed != nil || len(taken.Notes) != 1 || !strings.Contains(taken.Notes[0].Why, "no mail server") {
		t.Errorf("%+v", taken)
	}
	taken.Adjust(jobfile.Changes{Prefix: strings.Repeat("x", 200)})
	if len(taken.Jobs) != 0 || !taken.Notes[1].Lost {
		t.Errorf("a name that is too long is kept: %+v", taken)
	}
}

func TestAFileIsReadAsItsJobs(t *testing.T) {
	documents, count, err := jobfile.Read(jobfile.Job, "jobs.yaml", []byte(belfry+"---\njobs:\n- target: {}\n  status: {name: b}\n- name: c\n  on: {failed: {job: a}, missed: {job: a, window: 1h}}\n"))
	if err != nil || count != 2 {
		t.Fatal(count, err)
	}
	var got []string
	for _, d := range documents {
		got = append(got, fmt.Sprint(d.Name, " at ", d.Place(), d.Calls()))
	}
	if text, want := strings.Join(got, "; "), "a at jobs.yaml, document 1, line 1[]; b at jobs.yaml, document 2, line 6[]; c at jobs.yaml, document 2, line 8[a]"; text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if text := string(documents[0].Text()); text != `{"name":"a","schedule":{"cron":"0 9 * * *"},"target":{"exec":{"argv":["a"]}}}` {
		t.Error(text)
	}
	for text, want := range map[string]string{
		"a: [\n":              "jobs.yaml, line 1: want YAML",
		"name: 1\n":           "jobs.yaml, line 1: name: got a number, want text",
		"text\n":              "jobs.yaml, line 1: got text, want a job",
		"jobs: 1\n":           "jobs: got a number",
		"jobs: []\nx: 1\n":    "want nothing beside",
		"- target: {}\n- 1\n": "line 2: got a number, want an object",
	} {
		_, _, err := jobfile.Read(jobfile.Job, "jobs.yaml", []byte(text))
		var wrong *jobfile.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || wrong.Line == 0 {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestADefinitionIsWrittenAsTheAPITakesIt(t *testing.T) {
	v, err := jobfile.Of(job.Definition{Target: target.Spec{Exec: &target.Exec{Argv: []string{"<&>"}}}, Payload: json.RawMessage(`{"n":12345678901234567890}`), Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(manifest.YAML(v)), "target:\n  exec:\n    argv:\n    - <&>\npayload:\n  \"n\": 12345678901234567890\nlabels:\n  a: b\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
