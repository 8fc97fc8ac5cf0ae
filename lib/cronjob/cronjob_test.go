package cronjob

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/tests/program"
	"github.com/belfry-scheduler/belfry/tests/script"
)

// Each file of testdata is a line of how CronJobs become jobs, the text as kubectl or a person writes it, and what is to become of it.
func TestCronJobs(t *testing.T) {
	script.Cases(t, func(t *testing.T, settings [][2]string, text string) string {
		return trace(t, text, configOf(t, settings))
	})
}

func configOf(t *testing.T, settings [][2]string) Config {
	t.Helper()
	var cfg Config
	for _, setting := range settings {
		key, value := setting[0], setting[1]
		switch key {
		case "way":
			cfg.Way = Way(value)
		case "url":
			cfg.URL = value
		case "zone":
			cfg.Zone = value
		default:
			t.Fatalf("config %q", key)
		}
	}
	return cfg
}

func trace(t *testing.T, text string, cfg Config) string {
	t.Helper()
	file, err := Read("-", []byte(text), cfg)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, j := range file.Jobs {
		d := j.Def
		fmt.Fprintf(&b, "%d job %s\n", j.Line, j.Name)
		if d.Schedule == nil {
			b.WriteString("  on demand\n")
		} else if d.Schedule.Cron != "" {
			fmt.Fprintf(&b, "  when %s (%s)\n", d.Schedule.Cron, d.Schedule.Timezone)
		} else {
			fmt.Fprintf(&b, "  when every %s, phase %s\n", d.Schedule.Every, d.Schedule.Phase)
		}
		if h := d.Target.HTTP; h != nil {
			fmt.Fprintf(&b, "  call %s\n", h.URL)
		} else if e := d.Target.Exec; e.Argv[2] == follow {
			fmt.Fprintf(&b, "  kubectl %s\n", strings.Join(e.Argv[4:], " "))
		} else {
			fmt.Fprintf(&b, "  argv %q in %q\n", e.Argv, e.Dir)
			for _, name := range slices.Sorted(maps.Keys(e.Env)) {
				fmt.Fprintf(&b, "  env %s=%s\n", name, e.Env[name])
			}
		}
		fmt.Fprintf(&b, "  timeout %s, attempts %d, catch-up %s %s, retention %s, paused %v\n",
			d.Timeout, d.Retry.MaxAttempts, d.CatchUp.Mode, d.CatchUp.Window, d.Retention, d.Paused)
		if d.ExpiresAfter != 0 {
			fmt.Fprintf(&b, "  expires after %s\n", d.ExpiresAfter)
		}
		if !d.Overlap.IsZero() {
			fmt.Fprintf(&b, "  overlap %s %d\n", d.Overlap.Policy, d.Overlap.Limit)
		}
		for _, name := range slices.Sorted(maps.Keys(d.Labels)) {
			fmt.Fprintf(&b, "  label %s=%s\n", name, d.Labels[name])
		}
	}
	for _, n := range file.Notes {
		word := "note"
		if n.Lost {
			word = "lost"
		}
		fmt.Fprintf(&b, "%d %s %s: %s\n", n.Line, word, n.Text, n.Why)
	}
	return b.String()
}

// What Kubernetes reads schedules with is asked for its fires, and Belfry must have the same.
func TestTranslatedSchedulesFireAsInKubernetes(t *testing.T) {
	minutes := []string{"0", "*/7", "?"}
	days := []string{"*", "?", "*/1", "*/2", "*/10,13", "1,*", "13", "5-10", "20/3", "1,*/9", "31"}
	weekdays := []string{"*", "?", "*/2", "5", "mon-FRI", "5/1", "1,*", "sun", "0,6", "*/1", "4/2,1"}
	compared := 0
	for _, day := range days {
		for _, weekday := range weekdays {
			expression := minutes[compared%len(minutes)] + " 3-21/6 " + day + " */2 " + weekday
			theirs, err := cron.ParseStandard(expression)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := schedule.Spec{Cron: translate(expression)}.Compile()
			if err != nil {
				t.Fatalf("%s became %s: %v", expression, translate(expression), err)
			}
			at, compares := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
			for compares < 300 {
				want := theirs.Next(at)
				if got, _ := ours.Next(at); !got.Equal(want) {
					t.Fatalf("%s became %s, which after %s fires at %s, want %s", expression, translate(expression), at, got, want)
				}
				at = want
				compares++
			}
			compared++
		}
	}
	if compared != len(days)*len(weekdays) {
		t.Errorf("%d expressions were compared", compared)
	}
}

// The script that follows a Job is run, with a kubectl that is one of these scripts.
func TestFollowingAJob(t *testing.T) {
	for _, c := range []struct {
		name, create, get, out string
		code                   int
	}{
		{"completes", "echo job.batch/x created", "echo is:SuccessCriteriaMet Complete", "job.batch/x created\nthe log\n", 0},
		{"fails", "echo job.batch/x created", "echo is:FailureTarget Failed", "job.batch/x created\nthe log\nthe Job failed\n", jobFailed},
		{"is found by a second attempt", `echo 'error: failed to create job: jobs.batch "x" already exists' >&2; exit 1`, "echo is:Complete",
			"error: failed to create job: jobs.batch \"x\" already exists\nthe log\n", 0},
		{"cannot be made", "echo 'error: connection refused' >&2; exit 1", "exit 9", "error: connection refused\n", 1},
		{"cannot be seen", "echo made", "exit 1", "made\n", 1},
		{"is gone", "echo made", "true", "made\nthe Job was removed before its end was seen\n", jobFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >> %s/calls\ncase $1 in\ncreate) %s ;;\nget) %s ;;\nlogs) echo the log ;;\nesac\n", dir, c.create, c.get)
			if err := program.Write(filepath.Join(dir, "kubectl"), []byte(script)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/bin/sh", "-c", follow, "kubectl", "billing", "report")
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "BELFRY_RUN=billing.report~0mi8tpmg0"}
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || string(out) != c.out {
				t.Errorf("ended with %d and\n%swant %d and\n%s", code, out, c.code, c.out)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			fields := strings.Fields(string(calls))
			if name := fields[2]; len(name) > len("report-")+10 || !strings.HasPrefix(name, "report-") || strings.Join(fields[3:7], " ") != "--namespace billing --from cronjob/report" {
				t.Errorf("called with %q", fields)
			}
		})
	}
}

func TestTextThatIsNoManifest(t *testing.T) {
	for text, says := range map[string]string{
		"a: [\n": "line 1: want YAML",
		"resource \"kubernetes_cron_job_v1\" \"nightly\" {\n  metadata {\n    name = \"nightly\"\n  }\n}\n":                                                 "it looks like a Terraform file; give YAML or JSON of CronJobs: what \"kubectl get cronjobs",
		"NAME      SCHEDULE    TIMEZONE   SUSPEND   ACTIVE   LAST SCHEDULE   AGE\nnightly   0 3 * * *   <none>     False     0        <none>          2d\n": "a table that kubectl printed",
		"NAMESPACE   NAME      SCHEDULE    SUSPEND\nbilling     nightly   0 3 * * *   False\n":                                                              "a table that kubectl printed",
		"Name:                          nightly\nNamespace:                     default\nLabels:                        <none>\n":                           "what kubectl describe printed",
		"AWSTemplateFormatVersion: '2010-09-09'\nResources:\n  A:\n    Type: AWS::Scheduler::Schedule\n    Properties: {Name: !Ref B}\n":                    "a CloudFormation or SAM template",
		"{\"Name\": \"a\", \"ScheduleExpression\": \"rate(1 day)\"}":                                                                                        "belfry import eventbridge",
		"0 3 * * * /usr/local/bin/report\n": "belfry import crontab",
		"The connection to the server localhost:8080 was refused - did you specify the right host or port?\n": "an error of a command line",
		"# nothing\n":           "nothing in it is understood; give YAML",
		"":                      "it is empty; give YAML",
		"a: {b: 1}\n":           "nothing in it is understood; give YAML",
		"kind: {{ .Values.k }}": `render it with "helm template"`,
	} {
		if file, err := Read("-", []byte(text), Config{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q gives %+v, %v; want %q", text, file, err, says)
		}
	}
}

// Whatever a text holds, every CronJob in it gives a job that the API takes or a note that it is lost, and names are unique.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		for _, way := range []Way{Kubectl, Process, Call} {
			f.Add(strings.Split(string(text), "\n----\n")[1], string(way))
		}
	}
	f.Add(`{"kind": "CronJob", "apiVersion": "batch/v1", "metadata": {"name": "x"}, "spec": {"schedule": "@every 1h", "jobTemplate": {"spec": {"backoffLimit": -9223372036854775808, "activeDeadlineSeconds": 9223372036854775807}}}}`, "url")
	f.Fuzz(func(t *testing.T, text, way string) {
		documents, err := manifest.ReadEach("-", []byte(text))
		var values []*manifest.Value
		for _, d := range documents {
			if d.Err != nil {
				return // it may be lost or left out
			}
			values = append(values, d.Value)
		}
		file, failed := Read("-", []byte(text), Config{Way: Way(way), URL: "https://example.org/{namespace}/{name}"})
		if err == nil && failed != nil && count(values) > 0 || err != nil && failed == nil {
			t.Fatalf("%v, but %v", err, failed)
		}
		if failed != nil {
			return
		}
		names, lost := map[string]bool{}, 0
		for _, j := range file.Jobs {
			if names[j.Name] {
				t.Errorf("name %q twice", j.Name)
			}
			names[j.Name] = true
			if err := takeover.Check(j.Name, j.Def); err != nil {
				t.Errorf("line %d: %v", j.Line, err)
			}
		}
		for _, n := range file.Notes {
			if n.Lost {
				lost++
			}
		}
		if want := count(values); len(file.Jobs)+lost != want {
			t.Errorf("%d jobs and %d lost of %d CronJobs", len(file.Jobs), lost, want)
		}
	})
}

// count counts the CronJobs of documents and of lists and arrays in them.
func count(values []*manifest.Value) (n int) {
	for _, v := range values {
		kind, items := v.Member("kind"), v.Member("items")
		switch {
		case v.Kind == manifest.Array:
			n += count(v.Items)
		case kind == nil || kind.Kind != manifest.Text:
		case strings.HasSuffix(kind.Scalar, "List") && items != nil && items.Kind == manifest.Array:
			for _, item := range items.Items {
				if item.Kind == manifest.Object && item.Member("kind") == nil && kind.Scalar == "CronJobList" {
					n++
				} else {
					n += count([]*manifest.Value{item})
				}
			}
		case kind.Scalar == "CronJob":
			n++
		}
	}
	return n
}
