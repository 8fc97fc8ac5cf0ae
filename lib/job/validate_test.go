package job_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func good() job.Definition {
	return job.Definition{
		Schedule: &schedule.Spec{Cron: "*/5 * * * *", Timezone: "Europe/Berlin"},
		Target:   target.Spec{HTTP: &target.HTTP{URL: "https://example.org/hook"}},
		Payload:  json.RawMessage(`{"report":"daily"}`),
		Labels:   map[string]string{"team": "billing"},
	}
}

func known(name string) bool { return name == job.DefaultQueue }

func fields(err error) []string {
	var names []string
	for _, e := range invalid.All(err) {
		names = append(names, e.Field)
	}
	slices.Sort(names)
	return names
}

func TestValidateNamesTheFieldThatIsWrong(t *testing.T) {
	d := func(v time.Duration) schedule.Duration { return schedule.Duration(v) }
	for name, row := range map[string]struct {
		change func(*job.Definition)
		field  string
	}{
		"Description":    {func(d *job.Definition) { d.Description = strings.Repeat("x", 1025) }, "description"},
		"Cron":           {func(d *job.Definition) { d.Schedule.Cron = "61 * * * *" }, "schedule.cron"},
		"Timezone":       {func(d *job.Definition) { d.Schedule.Timezone = "Mars/Olympus" }, "schedule.timezone"},
		"NoTarget":       {func(d *job.Definition) { d.Target = target.Spec{} }, "target"},
		"URL":            {func(d *job.Definition) { d.Target.HTTP.URL = "ftp://example.org" }, "target.http.url"},
		"LargePayload":   {func(d *job.Definition) { d.Payload = []byte(`"` + strings.Repeat("x", job.MaxPayload) + `"`) }, "payload"},
		"NoJSON":         {func(d *job.Definition) { d.Payload = []byte("{") }, "payload"},
		"Queue":          {func(d *job.Definition) { d.Queue = "nobody" }, "queue"},
		"Priority":       {func(d *job.Definition) { d.Priority = "urgent" }, "priority"},
		"Guarantee":      {func(d *job.Definition) { d.Guarantee = "exactly_once" }, "guarantee"},
		"CatchUp":        {func(d *job.Definition) { d.CatchUp.Mode = "some" }, "catch_up.mode"},
		"ShortWindow":    {func(x *job.Definition) { x.CatchUp.Window = d(time.Second) }, "catch_up.window"},
		"ShortTimeout":   {func(x *job.Definition) { x.Timeout = d(time.Millisecond) }, "timeout"},
		"LongTimeout":    {func(x *job.Definition) { x.Timeout = d(25 * time.Hour) }, "timeout"},
		"NegTimeout":     {func(x *job.Definition) { x.Timeout = d(-time.Second) }, "timeout"},
		"ShortRetention": {func(x *job.Definition) { x.Retention = d(time.Hour) }, "retention"},
		"LongRetention":  {func(x *job.Definition) { x.Retention = d(6 * 365 * 24 * time.Hour) }, "retention"},
		"ManyAttempts":   {func(d *job.Definition) { d.Retry.MaxAttempts = 101 }, "retry.max_attempts"},
		"NegAttempts":    {func(d *job.Definition) { d.Retry.MaxAttempts = -1 }, "retry.max_attempts"},
		"TwiceAtMost":    {func(d *job.Definition) { d.Guarantee, d.Retry.MaxAttempts = job.AtMostOnce, 2 }, "retry.max_attempts"},
		"ShortInitial":   {func(x *job.Definition) { x.Retry.Initial = d(time.Microsecond) }, "retry.initial"},
		"MaxBelow":       {func(x *job.Definition) { x.Retry.Initial, x.Retry.Max = d(time.Minute), d(time.Second) }, "retry.max"},
		"LongMax":        {func(x *job.Definition) { x.Retry.Max = d(8 * 24 * time.Hour) }, "retry.max"},
		"LongInitial":    {func(x *job.Definition) { x.Retry.Initial = d(8 * 24 * time.Hour) }, "retry.initial"},
		"TooManyToCount": {func(d *job.Definition) { d.Retry.MaxAttempts = 1_000_000_000_000 }, "retry.max_attempts"},
		"LongRetrying":   {func(x *job.Definition) { x.Retry.MaxAttempts, x.Retry.Max = 100, d(4*24*time.Hour) }, "retry.max"},
		"SmallFactor":    {func(d *job.Definition) { d.Retry.Factor = 0.5 }, "retry.factor"},
		"LargeFactor":    {func(d *job.Definition) { d.Retry.Factor = 11 }, "retry.factor"},
		"LabelName":      {func(d *job.Definition) { d.Labels = map[string]string{"a b": ""} }, "labels"},
		"LongLabel":      {func(d *job.Definition) { d.Labels["team"] = strings.Repeat("x", 129) }, "labels.team"},
		"NULInLabel":     {func(d *job.Definition) { d.Labels["team"] = "a\x00b" }, "labels.team"},
		"ManyLabels": {func(d *job.Definition) {
			for i := range 33 {
				d.Labels[strings.Repeat("l", i+1)] = ""
			}
		}, "labels"},
	} {
		t.Run(name, func(t *testing.T) {
			def := good().WithDefaults()
			row.change(&def)
			_, err := def.Validate(known)
			if got := fields(err); !slices.Equal(got, []string{row.field}) {
				t.Fatalf("got errors about %q (%v), want %q", got, err, row.field)
			}
			if all := invalid.All(err); all[0].Want == "" {
				t.Errorf("%v does not say what would be right", err)
			}
		})
	}
	def := good().WithDefaults()
	def.Queue, def.Priority, def.Schedule.Cron = "nobody", "urgent", "x"
	if _, err := def.Validate(known); !slices.Equal(fields(err), []string{"priority", "queue", "schedule.cron"}) {
		t.Errorf("of three wrong fields: %v", err)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	for name, change := range map[string]func(*job.Definition){
		"AtLeastOnce": func(*job.Definition) {},
		"AtMostOnce":  func(d *job.Definition) { d.Guarantee = job.AtMostOnce },
		"OnDemand":    func(d *job.Definition) { d.Schedule = nil },
		"LongInitial": func(d *job.Definition) { d.Retry.Initial = schedule.Duration(time.Hour) }, // the longest wait follows it
	} {
		t.Run(name, func(t *testing.T) {
			def := good()
			change(&def)
			def = def.WithDefaults()
			compiled, err := def.Validate(known)
			if err != nil || (compiled == nil) != (def.Schedule == nil) {
				t.Fatalf("%v, %v", compiled, err)
			}
			if def.Queue != "default" || def.Priority != queue.Normal || def.Timeout.Std() != 30*time.Second || def.Retention.Std() != 30*24*time.Hour ||
				def.CatchUp.Mode != job.CatchUpOne || def.CatchUp.Window.Std() != 365*24*time.Hour || def.Retry.Factor != 2 {
				t.Errorf("defaults %+v", def)
			}
			if want := map[bool]int{true: 1, false: 15}[def.Guarantee == job.AtMostOnce]; def.Retry.MaxAttempts != want {
				t.Errorf("%d attempts, want %d", def.Retry.MaxAttempts, want)
			}
			again := def.WithDefaults()
			one, err1 := record.Encode(def)
			two, err2 := record.Encode(again)
			if err1 != nil || err2 != nil || string(one) != string(two) {
				t.Errorf("defaults filled in twice differ: %+v", again)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"a", "0", "daily-report", "a.b_c-d", strings.Repeat("n", 128)} {
		if err := job.ValidName(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, name := range []string{"", "-a", ".a", "_a", "a b", "a/b", "a#b", "a~b", "ä", "a\n", "a\x00", strings.Repeat("n", 129)} {
		if err := job.ValidName(name); err == nil || !slices.Equal(fields(err), []string{"name"}) {
			t.Errorf("%q: %v", name, err)
		}
	}
	pattern := regexp.MustCompile(job.NamePattern) // which the API's document shows
	for a := range 256 {
		for b := range 256 {
			for _, name := range []string{string([]byte{byte(a)}), string([]byte{byte(a), byte(b)}), string([]byte{'a', byte(a), byte(b)})} {
				if valid := job.ValidName(name) == nil; valid != pattern.MatchString(name) {
					t.Fatalf("%q is taken: %t, unlike what its pattern says", name, valid)
				}
			}
		}
	}
}
