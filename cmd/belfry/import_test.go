package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

const twoCronJobs = `apiVersion: batch/v1
kind: CronJob
metadata: {name: invoices, namespace: billing}
spec:
  schedule: "30 6 1 * *"
  timeZone: Europe/Berlin
  suspend: true
  jobTemplate: {spec: {template: {spec: {containers: [{name: main, image: busybox, command: [echo, hello]}]}}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: broken, namespace: billing}
spec: {schedule: 61 * * * *, timeZone: UTC, jobTemplate: {spec: {template: {spec: {containers: [{name: main, command: [echo]}]}}}}}
`

func TestImportOfCronJobs(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	again := []string{"import", "kubernetes", "-", "--as", "exec", "--prefix", "prod.", "--label", "team=billing", "--paused=false"}
	first := call(1, twoCronJobs, again...)
	for _, want := range []string{"1     created  prod.billing.invoices", "10    lost", "want minute"} {
		if !strings.Contains(first.out, want) {
			t.Errorf("the report lacks %q:\n%s", want, first.out)
		}
	}
	if !strings.Contains(first.errors, "1 of 2 jobs were not kept") {
		t.Errorf("stderr %q", first.errors)
	}
	stands := decode[wire.Job](t, call(0, "", "job", "get", "prod.billing.invoices", "-o", "json").out)
	if stands.Paused || stands.Labels["team"] != "billing" || stands.Labels["namespace"] != "billing" {
		t.Errorf("got %+v", stands.Definition)
	}
	if second := call(1, twoCronJobs, again...); !strings.Contains(second.out, "unchanged") {
		t.Errorf("imported again:\n%s", second.out)
	}
	if third := call(1, twoCronJobs, again[:len(again)-1]...); !strings.Contains(third.out, "updated") { // for it is suspended
		t.Errorf("imported as the file has it:\n%s", third.out)
	}
}

// A dry run by which every line would be lost, before a server is asked of any, ends like another: with its summary and code 0. The import in
// earnest ends with 1.
func TestADryImportThatLosesAllSaysSo(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	for kind, source := range map[string]string{"crontab": "30 9 * * 1-5 echo hi\n", "kubernetes": twoCronJobs, "eventbridge": oneSchedule} {
		args := []string{"import", kind, "-", "--prefix", strings.Repeat("x", 128)}
		got := call(0, source, append(args, "--dry-run")...)
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		lost := 0
		for _, line := range lines[:len(lines)-1] {
			if fields := strings.Fields(line); len(fields) > 1 && fields[1] == "lost" {
				lost++
			}
		}
		if want := fmt.Sprintf("dry run, nothing was stored: %d lost, 0 unchanged", lost); lost == 0 || lines[len(lines)-1] != want {
			t.Errorf("%s with a prefix that is too long, want %q at its end:\n%s%s", kind, want, got.out, got.errors)
		}
		if got := call(0, source, append(args, "--dry-run", "-o", "json")...); strings.TrimSpace(got.out) != "[]" || !strings.Contains(got.errors, "not kept") {
			t.Errorf("%s for a program:\n%s%s", kind, got.out, got.errors)
		}
		if got := call(1, source, args...); !strings.Contains(got.errors, "were not kept") {
			t.Errorf("%s in earnest:\n%s%s", kind, got.out, got.errors)
		}
	}
}

// What a dry run prints for programs is what job apply makes the same jobs of.
func TestImportedDefinitionsCanBeApplied(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	folder := t.TempDir()
	for form, ending := range map[string]string{"yaml": ".yaml", "json": ".json"} {
		plan := call(0, twoCronJobs, "import", "kubernetes", "-", "--dry-run", "-o", form)
		if !strings.Contains(plan.errors, "line 10: billing/broken: not kept") {
			t.Errorf("stderr %q", plan.errors)
		}
		file := filepath.Join(folder, "jobs"+ending)
		if err := os.WriteFile(file, []byte(plan.out), 0o600); err != nil {
			t.Fatal(err)
		}
		call(0, "", "job", "apply", "-f", file)
	}
	if got := call(1, twoCronJobs, "import", "kubernetes", "-"); !strings.Contains(got.out, "unchanged") {
		t.Errorf("the import made something else than the file:\n%s", got.out)
	}
}

// A dry run says what this server would refuse and what it would change, stores nothing, and is no failure.
func TestADryRunOfAnImportAsksTheServer(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir())) // without --allow-exec
	for name, way := range map[string]struct {
		args    []string
		text    string
		summary string
	}{
		"crontab":     {[]string{"crontab", "-", "--timezone", "UTC"}, "30 9 * * 1-5 echo hi\n@reboot echo up\n", "dry run, nothing was stored: 2 lost, 0 unchanged"},
		"kubernetes":  {[]string{"kubernetes", "-", "--as", "exec"}, twoCronJobs, "dry run, nothing was stored: 2 lost, 0 unchanged"},
		"eventbridge": {[]string{"eventbridge", "-"}, oneSchedule, "dry run, nothing was stored: 1 lost, 0 unchanged"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(append([]string{"import"}, way.args...), "--dry-run")
			people := call(0, way.text, args...)
			for _, want := range []string{"1     lost", "this worker cannot run the target", way.summary} {
				if !strings.Contains(people.out, want) {
					t.Errorf("lacks %q:\n%s", want, people.out)
				}
			}
			for _, form := range []string{"yaml", "json"} {
				programs := call(0, way.text, append(args, "-o", form)...)
				if !strings.Contains(programs.errors, "line 1: ") || !strings.Contains(programs.errors, "the server would refuse it") || strings.Contains(programs.out, "refused") {
					t.Errorf("-o %s:\n%s\n%s", form, programs.out, programs.errors)
				}
			}
		})
	}
	args := []string{"import", "eventbridge", "-", "--target-url", "https://jobs.example.org/{group}/{name}"}
	for _, want := range []string{"created", "unchanged"} {
		for range 2 { // the second time as the first: nothing was stored
			got := call(0, oneSchedule, append(args, "--dry-run")...)
			if !strings.Contains(got.out, "1     "+want) || !strings.Contains(got.out, "30 22 * * 1-5") {
				t.Errorf("want %s:\n%s", want, got.out)
			}
		}
		call(0, oneSchedule, args...)
	}
	if got := call(0, oneSchedule, append(args, "--dry-run", "--paused")...); !strings.Contains(got.out, "dry run, nothing was stored: 1 updated, 0 unchanged") {
		t.Errorf("with --paused:\n%s", got.out)
	}
}

// Without a server a dry run shows what this program alone has checked, and says so. Where somebody has named the server, that is a failure.
func TestADryRunOfAnImportWithoutAServer(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	got := belfry(t, twoCronJobs, "import", "kubernetes", "-", "--dry-run", "--address", closed.URL)
	if got.code != exitNoAnswer || !strings.Contains(got.out, "1     job     billing.invoices") || strings.Contains(got.out, "nothing was stored") ||
		!strings.Contains(got.errors, "only local checks were made of line 1") {
		t.Errorf("a server that was named: code %d\n%s%s", got.code, got.out, got.errors)
	}

	var out, errs bytes.Buffer
	c := &cli{stdout: &out, stderr: &errs, now: time.Now, output: formTable}
	c.address = closed.URL
	c.config.settings = map[string]value{"address": {closed.URL, source{kind: fromDefault}}}
	server, err := client.New(client.Config{Address: closed.URL, NewKey: rand.Text})
	if err != nil {
		t.Fatal(err)
	}
	found := jobfile.Taken{Jobs: []takeover.Job{{Line: 7, Name: "a", Def: job.Definition{Target: target.Spec{HTTP: &target.HTTP{URL: "https://example.org/"}}}}}}
	if err := (&importOf{cli: c, dryRun: true}).apply(t.Context(), server, found); err != nil {
		t.Errorf("the built-in address: %v", err)
	}
	if !strings.Contains(out.String(), "7     job     a") || !strings.Contains(errs.String(), "only local checks were made: no server answers at "+closed.URL) {
		t.Errorf("the built-in address:\n%s%s", out.String(), errs.String())
	}

	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refuses.Close()
	if got := belfry(t, twoCronJobs, "import", "kubernetes", "-", "--dry-run", "--address", refuses.URL); got.code == 0 || !strings.Contains(got.out, "1     job     billing.invoices") ||
		!strings.Contains(got.errors, "only local checks were made") {
		t.Errorf("a server that gives no verdicts: code %d\n%s%s", got.code, got.out, got.errors)
	}
}

const oneSchedule = `{"Name": "nightly", "GroupName": "billing", "ScheduleExpression": "cron(30 22 ? * MON-FRI *)",
"Target": {"Arn": "arn:aws:lambda:eu-central-1:123456789012:function:totals", "Input": "{\"scope\": \"day\"}"}}`

func TestImportOfSchedules(t *testing.T) {
	const function = "arn:aws:lambda:eu-central-1:123456789012:function:totals"
	call := to(t, dev(t, "--data", t.TempDir(), "--aws-target", function))
	if got := call(0, oneSchedule, "import", "eventbridge", "-", "--prefix", "native.", "--paused"); !strings.Contains(got.out, "created") {
		t.Errorf("as a target of AWS:\n%s", got.out)
	}
	var native job.Definition
	if err := json.Unmarshal([]byte(call(0, "", "job", "get", "native.billing.nightly", "-o", "json").out), &native); err != nil || native.Target.AWS == nil || native.Target.AWS.ARN != function {
		t.Errorf("%+v, %v", native.Target, err)
	}
	for _, result := range []string{"created", "unchanged"} {
		got := call(0, oneSchedule, "import", "eventbridge", "-", "--target-url", "https://jobs.example.org/{group}/{name}")
		if !strings.Contains(got.out, result) {
			t.Errorf("want %s:\n%s", result, got.out)
		}
	}
	var def job.Definition
	stands := call(0, "", "job", "get", "billing.nightly", "-o", "json").out
	if err := json.Unmarshal([]byte(stands), &def); err != nil || def.Target.HTTP == nil || def.Target.HTTP.URL != "https://jobs.example.org/billing/nightly" {
		t.Errorf("%v in %s", err, stands)
	}
}

func TestWrongFlagsOfImports(t *testing.T) {
	for _, args := range [][]string{
		{"kubernetes", "-", "--as", "pod"},
		{"kubernetes", "-", "--as", "exec", "--target-url", "https://example.org"},
		{"kubernetes", "-", "--timezone", "Mars/Base"},
		{"eventbridge", "-", "--timezone", "Mars/Base"},
		{"kubernetes", "-", "--label", "team"},
		{"eventbridge", "-", "--target-url", "nowhere", "--label", "team"},
	} {
		if got := belfry(t, "{}", append([]string{"import"}, append(args, "--dry-run")...)...); got.code != exitUsage {
			t.Errorf("%v: code %d, %s", args, got.code, got.errors)
		}
	}
	if got := belfry(t, "a: [", "import", "kubernetes", "-", "--dry-run"); got.code != 1 || !strings.Contains(got.errors, "line 1") {
		t.Errorf("code %d, %s", got.code, got.errors)
	}
}

// A file in which nothing is understood is an error that says what it looks like, with and without --dry-run.
func TestImportOfWhatIsSomethingElse(t *testing.T) {
	terraform := "resource \"aws_scheduler_schedule\" \"nightly\" {\n  schedule_expression = \"rate(1 day)\"\n}\n"
	table := "NAME      SCHEDULE    SUSPEND   ACTIVE\nnightly   0 3 * * *   False     0\n"
	stack := "AWSTemplateFormatVersion: '2010-09-09'\nResources:\n  Nightly: {Type: AWS::Scheduler::Schedule, Properties: {Name: !Ref N}}\n"
	for _, from := range []struct{ kind, how string }{
		{"crontab", `"crontab -l"`}, {"kubernetes", `"kubectl get cronjobs --all-namespaces -o yaml"`}, {"eventbridge", `"aws scheduler get-schedule`},
	} {
		for text, what := range map[string]string{terraform: "a Terraform file", table: "a table that kubectl printed", stack: "a CloudFormation or SAM template"} {
			for _, flags := range [][]string{nil, {"--dry-run"}, {"--dry-run", "-o", "json"}} {
				got := belfry(t, text, append([]string{"import", from.kind, "-"}, flags...)...)
				if got.code != 1 || got.out != "" || !strings.Contains(got.errors, "it looks like "+what) || !strings.Contains(got.errors, from.how) {
					t.Errorf("%s of %s %v: code %d, %s%s", from.kind, what, flags, got.code, got.out, got.errors)
				}
			}
		}
	}
}

// What never fires becomes a job on demand that a server takes, and that can be triggered.
func TestImportOfWhatNeverFires(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	got := call(0, "0 0 31 2 * echo by-hand\n", "import", "crontab", "-", "--timezone", "UTC")
	if !strings.Contains(got.out, "created") || !strings.Contains(got.out, `runs on demand alone, by "belfry job trigger"`) {
		t.Errorf("got %s", got.out)
	}
	if again := call(0, "0 0 31 2 * echo by-hand\n", "import", "crontab", "-", "--timezone", "UTC"); !strings.Contains(again.out, "unchanged") {
		t.Errorf("imported again: %s", again.out)
	}
}
