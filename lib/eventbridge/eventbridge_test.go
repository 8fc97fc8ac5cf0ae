package eventbridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/tests/script"
)

// Each file of testdata is a line of how schedules become jobs, the text as the AWS command line prints it, and what is to become
// of it.
func TestSchedules(t *testing.T) {
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
		case "url":
			cfg.URL = value
		case "zone":
			cfg.Zone = value
		case "now":
			now, err := time.Parse(time.RFC3339, value)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Now = now
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
		d, s := j.Def, j.Def.Schedule
		fmt.Fprintf(&b, "%d job %s: %s\n", j.Line, j.Name, d.Description)
		switch {
		case s == nil:
			b.WriteString("  on demand\n")
			s = &schedule.Spec{}
		case s.Cron != "":
			fmt.Fprintf(&b, "  when %s (%s)\n", s.Cron, s.Timezone)
		case s.Every != 0:
			fmt.Fprintf(&b, "  when every %s, phase %s\n", s.Every, s.Phase)
		default:
			fmt.Fprintf(&b, "  when %s\n", s.At.Format(time.RFC3339))
		}
		if s.Start != nil {
			fmt.Fprintf(&b, "  start %s\n", s.Start.Format(time.RFC3339Nano))
		}
		if s.End != nil {
			fmt.Fprintf(&b, "  end %s\n", s.End.Format(time.RFC3339Nano))
		}
		if h := d.Target.HTTP; h != nil {
			fmt.Fprintf(&b, "  call %s with %s\n", h.URL, d.Payload)
		} else {
			to, err := json.Marshal(d.Target.AWS)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  aws %s with %s\n", to, d.Payload)
		}
		fmt.Fprintf(&b, "  jitter %s, timeout %s, attempts %d up to %s apart, catch-up %s %s, paused %v\n", s.Jitter, d.Timeout, d.Retry.MaxAttempts,
			d.Retry.Max, d.CatchUp.Mode, d.CatchUp.Window, d.Paused)
		if d.ExpiresAfter != 0 {
			fmt.Fprintf(&b, "  expires after %s\n", d.ExpiresAfter)
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

func TestTextThatIsNoAnswerOfTheCommandLine(t *testing.T) {
	for text, says := range map[string]string{
		"{\"a\": ": "line 1: want JSON",
		"resource \"aws_scheduler_schedule\" \"nightly\" {\n  schedule_expression = \"rate(1 day)\"\n}\n":      "it looks like a Terraform file; give what \"aws scheduler get-schedule",
		"{\"version\": 4, \"terraform_version\": \"1.9.0\", \n\"terraform_version\": \"1.9.0\"}":               "a Terraform file",
		"Resources:\n  Nightly:\n    Type: AWS::Scheduler::Schedule\n    Properties:\n      Name: !Ref Name\n": "a CloudFormation or SAM template",
		"{\"Resources\": {\"Nightly\": {\"Type\": \"AWS::Scheduler::Schedule\", \"Properties\": {}}}}":         "a CloudFormation or SAM template",
		"NAME      SCHEDULE    SUSPEND\nnightly   0 3 * * *   False\n":                                         "a table that kubectl printed",
		"-----------------------\n|    ListSchedules    |\n+---------------------+\n":                          "a table that the AWS command line printed",
		"arn:aws:scheduler:eu-central-1:123456789012:schedule/default/a\t2024\n":                               "text that the AWS command line printed",
		"[{'Name': 'a', 'CreationDate': datetime.datetime(2024, 1, 1, 0, 0, tzinfo=tzlocal())}]":               "json.dumps",
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n":                                           "belfry import kubernetes",
		"0 3 * * * /usr/local/bin/report\n":                                                                    "belfry import crontab",
		"An error occurred (AccessDeniedException) when calling the ListSchedules operation\n":                 "an error of a command line",
		"{\"a\": 1}": "nothing in it is understood; give",
		"":           "it is empty; give",
	} {
		if file, err := Read("-", []byte(text), Config{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q gives %+v, %v; want %q", text, file, err, says)
		}
	}
}

// Whatever a text holds, jobs are such that the API takes them, and names are unique.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		f.Add(strings.Split(string(text), "\n----\n")[1], true)
	}
	for _, e := range []string{"cron(0/15 8-17 ? * 2#1 2026-2027)", "rate(999999999 days)", "at(2026-02-30T00:00:00)", "cron(/5 * 15W * ? *)", "cron(0 0 ? * FRIL *)"} {
		f.Add(fmt.Sprintf(`{"Name": "x", "ScheduleExpression": %q, "Target": {"Arn": "arn:aws:sns:x:y:z", "Input": "x"}, "StartDate": 1e300}`, e), false)
	}
	f.Fuzz(func(t *testing.T, text string, call bool) {
		cfg := Config{Now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
		if call {
			cfg.URL = "https://example.org/{group}/{name}"
		}
		documents, err := manifest.ReadEach("-", []byte(text))
		file, failed := Read("-", []byte(text), cfg)
		if err != nil && failed == nil {
			t.Fatalf("%v, but %v", err, failed)
		}
		if failed != nil {
			return
		}
		names := map[string]bool{}
		for _, j := range file.Jobs {
			if names[j.Name] {
				t.Errorf("name %q twice", j.Name)
			}
			names[j.Name] = true
			if err := takeover.Check(j.Name, j.Def); err != nil {
				t.Errorf("line %d: %v", j.Line, err)
			}
		}
		for _, d := range documents {
			v := d.Value
			if v == nil {
				continue // lost
			}
			if v.Kind == manifest.Object && !slices.ContainsFunc(file.Jobs, func(j takeover.Job) bool { return j.Line == v.Line }) &&
				!slices.ContainsFunc(file.Notes, func(n takeover.Note) bool { return n.Line >= v.Line }) &&
				v.Member("Schedules") == nil && v.Member("Rules") == nil {
				t.Errorf("line %d is dropped in silence", v.Line)
			}
		}
	})
}
