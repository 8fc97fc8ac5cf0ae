package takeover_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

func TestStepsLongerThanTheirField(t *testing.T) {
	for cron, want := range map[string]string{
		"*/90 * * * *":                   "0 * * * *",
		"*/60 */24 */31 */12 *":          "*/60 */24 */31 */12 *",
		"*/61 */25 * * *":                "0 0 * * *",
		"5/90,*/7 10-20/99 * * *":        "5,*/7 10 * * *",
		"*/1440 * * * *":                 "0 * * * *",
		"*/99999999999999999999 * * * *": "0 * * * *",
		"* * */40 */13 *":                "* * 1 1 *",
		"* * */40 * 1":                   "* * */31 * 1", // a day has to match both
		"* * 1 * */8":                    "* * 1 * */7",
		"* * 1,*/40 * 1":                 "* * 1,1 * 1", // a day has to match one of them
		"* * * * */8":                    "* * * * 0",
		"*/0 * * * *":                    "*/0 * * * *",
		"*/x * * * *":                    "*/x * * * *",
		"@daily":                         "@daily",
		"*/90 * * * * *":                 "*/90 * * * * *",
	} {
		got, notes := takeover.Steps(cron)
		if got != want || (len(notes) > 0) != (cron != want) {
			t.Errorf("%s became %s with notes %v, want %s", cron, got, notes, want)
		}
	}
}

func TestSixFieldsAreShownAsTheyCanBeMeant(t *testing.T) {
	for six, want := range map[string]string{
		"0 9 * * 1-5 *":     `"9 * * 1-5 *" where the first is seconds, "0 9 * * 1-5" where the last is a year`,
		"0 9 1 jan * *":     `"0 9 1 jan *", without the year`, // no day of the month is called January
		"0 9 * * mon-fri *": `"0 9 * * mon-fri", without the year`,
		"0 0 9 * * MON":     `"0 9 * * MON", without seconds`,
		"0 0 9 * * Tuesday": `"0 9 * * Tue", without seconds`,
		"0 0 9 * jan *":     `"0 9 * jan *", without seconds`,
		"0 0 9 ? * 1":       `"0 9 * * 1", without seconds`,
		"0 0 9 * * ?":       `"0 9 * * *", without seconds`,
		"* * * * * *":       `"* * * * *", without seconds`,
		"0 9 * * 1 2027":    `"0 9 * * 1", without the year`,
		"0 9 31 2 * *":      `"0 9 31 2 *", without the year`,
		"0 */90 * * * 1":    `"*/90 * * * 1", without seconds`,
		"x 9 * * 1 y":       `"9 * * 1 y" where the first is seconds, "x 9 * * 1" where the last is a year`,
	} {
		if got := takeover.SixFields(strings.Fields(six)); got != want {
			t.Errorf("%s: write %s, want %s", six, got, want)
		}
	}
}

func TestNeverFires(t *testing.T) {
	if !takeover.NeverFires(schedule.Spec{Cron: "0 0 31 2 *"}) {
		t.Error("31 February fires")
	}
	for _, s := range []schedule.Spec{{Cron: "0 0 * * *"}, {Cron: "0 0 32 2 *"}, {Cron: "0 0 31 2 *", Timezone: "Mars/Base"}, {}} {
		if takeover.NeverFires(s) {
			t.Errorf("%+v never fires", s)
		}
	}
}

func TestDatesAsProgramsWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"2024-01-02T03:04:05Z":                                "2024-01-02T03:04:05Z",
		"2024-01-02T03:04:05.125+02:00":                       "2024-01-02T01:04:05.125Z",
		"2024-01-02 03:04:05+00:00":                           "2024-01-02T03:04:05Z",
		"2024-01-02 03:04:05.250000+01:00":                    "2024-01-02T02:04:05.25Z",
		"2024-01-02T03:04:05+0100":                            "2024-01-02T02:04:05Z",
		"datetime.datetime(2024, 1, 2, 3, 4, tzinfo=tzutc())": "2024-01-02T03:04:00Z",
		"datetime.datetime(2024, 1, 2, 3, 4, 5, 250000, tzinfo=datetime.timezone.utc)":    "2024-01-02T03:04:05.25Z",
		"datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=zoneinfo.ZoneInfo(key='Etc/UTC'))": "2024-01-02T03:04:05Z",
		"datetime.datetime(2024, 1, 2, 3, 4, tzinfo=tzlocal())":                           "",
		"datetime.datetime(2024, 1, 2, 3, 4)":                                             "",
		"datetime.datetime(2024, 13, 2, 3, 4, tzinfo=tzutc())":                            "",
		"2024-01-02 03:04:05": "",
		"yesterday":           "",
	} {
		at, err := takeover.Date(text)
		got := ""
		if err == nil {
			got = at.UTC().Format(time.RFC3339Nano)
		} else if !strings.Contains(err.Error(), "with its offset") {
			t.Errorf("%s: %v", text, err)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// What each import reads is not taken for something else, and is named to the others.
func TestFormsAreToldApart(t *testing.T) {
	texts := map[string]string{
		takeover.HowKubernetes:  "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: 0 3 * * *}\n",
		takeover.HowEventBridge: "{\n  \"Name\": \"a\",\n  \"ScheduleExpression\": \"rate(1 day)\"\n}\n",
		takeover.HowCrontab:     "# m h\nMAILTO=x\n0 3 * * 1-5 /usr/local/bin/report\n",
	}
	var hows []string
	for how, text := range texts {
		hows = append(hows, how)
		for other := range texts {
			what := takeover.Looks([]byte(text), other)
			if (what == "") != (how == other) || other != how && !strings.Contains(what, "belfry import") {
				t.Errorf("what is given by %q looks like %q to who wants %q", how, what, other)
			}
		}
	}
	slices.Sort(hows)
	for _, how := range hows {
		if err := takeover.Unlike([]byte("[Timer]\nOnCalendar=daily\n"), how); !strings.Contains(err.Error(), "a systemd timer; "+how) {
			t.Error(err)
		}
	}
}

// A form is known however its program wrote it: on one line or on many, and without what stands above it.
func TestFormsAsProgramsWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		`{"data": {"aws_region": "eu-west-1"}}`:                                                                "",
		`{"resource":{"aws_scheduler_schedule":{"x":{"schedule_expression":"rate(1 hour)"}}}}`:                 "a Terraform file",
		"{\n  \"variable\": {},\n  \"resource\": {\n    \"kubernetes_cron_job_v1\": {}\n  }\n}\n":              "a Terraform file",
		`{"format_version":"1.2","terraform_version":"1.5.7","planned_values":{}}`:                             "a Terraform file",
		`{"Resources":{"S":{"Type":"AWS::Scheduler::Schedule"}}}`:                                              "a CloudFormation or SAM template",
		"default   a   */5 * * * *   <none>   False   0   2m   3d   c   busybox   <none>\n":                    "a table that kubectl printed",
		"nightly   0 3 * * *   True   1   <none>   41d\r\n":                                                    "a table that kubectl printed",
		"NAMESPACE   NAME   SCHEDULE      TIMEZONE   SUSPEND\ndefault     a      */5 * * * *   <none>     F\n": "a table that kubectl printed",
	} {
		for _, how := range []string{takeover.HowKubernetes, takeover.HowEventBridge, takeover.HowCrontab} {
			if what := takeover.Looks([]byte(text), how); what != want {
				t.Errorf("%s looks like %q to who wants %q, want %q", text, what, how, want)
			}
		}
	}
}
