package schedule

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func instant(t testing.TB, text string) *time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return &at
}

func TestSpec_JSON_comes_back_as_it_went(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`{"cron":"*/5 * * * *","timezone":"Europe/Berlin","start":null,"end":null,"jitter":"0s"}`, `{"cron":"*/5 * * * *","timezone":"Europe/Berlin"}`},
		{`{"every":"1h30m","phase":"300s","jitter":"10s"}`, `{"every":"90m","phase":"5m","jitter":"10s"}`},
		{`{"at":"2026-11-21T09:00:00.250+01:00","start":"2026-01-01T00:00:00Z","end":"2027-01-01T00:00:00Z"}`,
			`{"at":"2026-11-21T09:00:00.25+01:00","start":"2026-01-01T00:00:00Z","end":"2027-01-01T00:00:00Z"}`},
	} {
		var spec Spec
		if err := json.Unmarshal([]byte(c.in), &spec); err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		compile(t, spec)
		if out, err := json.Marshal(spec); err != nil || string(out) != c.out {
			t.Errorf("%s\n\tgot  %s, %v\n\twant %s", c.in, out, err, c.out)
		}
	}
}

func TestSpec_refusals(t *testing.T) {
	const hour, ms = Duration(time.Hour), Duration(time.Millisecond)
	at, fine := instant(t, "2026-11-21T09:00:00Z"), instant(t, "2026-11-21T09:00:00.0001Z")
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, `cron: want a cron expression such as "30 9 * * 1-5", or "every" or "at" instead`},
		{Spec{Cron: "* * * * *", Every: hour}, `got "cron, every", want exactly one of "cron", "every" and "at"`},
		{Spec{Every: hour, At: at}, `got "every, at", want exactly one of "cron", "every" and "at"`},
		{Spec{Every: 999 * ms}, `every: got "999ms", want a duration of at least 1s, in whole milliseconds`},
		{Spec{Every: hour + 1}, `every: got "1h1ns", want a duration of at least 1s, in whole milliseconds`},
		{Spec{Every: -hour}, `every: got "-1h", want a duration of at least 1s, in whole milliseconds`},
		{Spec{Every: hour, Phase: hour}, `phase: got "1h", want a duration from 0s to below "every" (1h), in whole milliseconds`},
		{Spec{Every: hour, Phase: -ms}, `phase: got "-1ms", want a duration from 0s to below "every" (1h), in whole milliseconds`},
		{Spec{Cron: "* * * * *", Phase: ms}, `phase: got "1ms", want no phase without "every"`},
		{Spec{Every: hour, Timezone: "UTC"}, `timezone: got "UTC", want no time zone beside "every" or "at": only "cron" reads a wall clock`},
		{Spec{Cron: "* * * * *", Timezone: "Local"}, `timezone: got "Local", want ` + wantZone},
		{Spec{At: fine}, `at: got "2026-11-21T09:00:00.0001Z", want ` + wantInstant},
		{Spec{At: instant(t, "1969-12-31T23:59:59Z")}, `at: got "1969-12-31T23:59:59Z", want ` + wantInstant},
		{Spec{At: instant(t, "9999-12-31T23:59:59-01:00")}, `at: got "9999-12-31T23:59:59-01:00", want ` + wantInstant},
		{Spec{Every: hour, Start: fine}, `start: got "2026-11-21T09:00:00.0001Z", want ` + wantInstant},
		{Spec{Every: hour, Start: at, End: at}, `end: got "2026-11-21T09:00:00Z", want a time after "start", 2026-11-21T09:00:00Z`},
		{Spec{Every: hour, Jitter: 10*Duration(time.Minute) + ms}, `jitter: got "10m1ms", want a duration from 0s to 10m, in whole milliseconds`},
		{Spec{Every: hour, Jitter: -ms}, `jitter: got "-1ms", want a duration from 0s to 10m, in whole milliseconds`},
		{Spec{Cron: "0 0 29 2 *", Start: instant(t, "2026-01-01T00:00:00Z"), End: instant(t, "2028-02-29T00:00:00Z")},
			`end: got "2028-02-29T00:00:00Z", want a time after the first fire, 2028-02-29T00:00:00Z`},
		{Spec{Every: hour, Start: instant(t, "2026-01-01T00:00:01Z"), End: instant(t, "2026-01-01T00:59:59Z")},
			`end: got "2026-01-01T00:59:59Z", want a time after the first fire, 2026-01-01T01:00:00Z`},
		{Spec{At: at, End: at}, `end: got "2026-11-21T09:00:00Z", want a time after the first fire, 2026-11-21T09:00:00Z`},
		{Spec{At: at, Start: instant(t, "2026-11-21T09:00:00.001Z")}, `at: got "2026-11-21T09:00:00Z", want a time not before "start", 2026-11-21T09:00:00.001Z`},
		{Spec{Cron: "@yearly", Start: instant(t, "9999-06-01T00:00:00Z")},
			`start: got "9999-06-01T00:00:00Z", want a time with a fire after it before the year 10000`},
	} {
		_, err := c.spec.Compile()
		if err == nil || err.Error() != c.want {
			t.Errorf("%+v\n\tgot  %v\n\twant %s", c.spec, err, c.want)
		}
	}
}

func TestSpec_refusals_go_below_their_parent(t *testing.T) {
	_, err := Spec{Cron: "61 * * * *"}.Compile()
	if got := invalid.Under("schedule", err).Error(); !strings.HasPrefix(got, "schedule.cron: ") {
		t.Error(got)
	}
	_, err = Spec{Cron: "* * * * *", Every: Duration(time.Hour)}.Compile()
	if got := invalid.Under("schedule", err).Error(); !strings.HasPrefix(got, "schedule: got \"cron, every\"") {
		t.Error(got)
	}
}

func fires(s *Schedule, after time.Time, most int) string {
	var all []string
	for len(all) < most {
		next, ok := s.Next(after)
		if !ok {
			all = append(all, "none")
			break
		}
		all, after = append(all, next.Format(time.RFC3339Nano)), next
	}
	return strings.Join(all, " ")
}

func TestNext_of_every_is_anchored_to_the_epoch(t *testing.T) {
	s := compile(t, Spec{Every: Duration(90 * time.Minute), Phase: Duration(250 * time.Millisecond)})
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if got, want := fires(s, day, 3), "2026-01-01T00:00:00.25Z 2026-01-01T01:30:00.25Z 2026-01-01T03:00:00.25Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// Whatever else of the definition changes, the fires stay where they were.
	edited := compile(t, Spec{Every: Duration(90 * time.Minute), Phase: Duration(250 * time.Millisecond), Start: &day, Jitter: Duration(time.Second)})
	if got, want := fires(edited, day.Add(1234567*time.Millisecond), 5), fires(s, day.Add(1234567*time.Millisecond), 5); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNext_respects_start_and_end(t *testing.T) {
	start, end := instant(t, "2026-03-01T10:00:00Z"), instant(t, "2026-03-01T12:00:00Z")
	early, late := time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Cron: "0 * * * *"}, "2026-03-01T10:00:00Z 2026-03-01T11:00:00Z none"},
		{Spec{Every: Duration(time.Hour)}, "2026-03-01T10:00:00Z 2026-03-01T11:00:00Z none"},
		{Spec{At: start}, "2026-03-01T10:00:00Z none"},
	} {
		c.spec.Start, c.spec.End = start, end
		s := compile(t, c.spec)
		if got := fires(s, early, 9); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.spec, got, c.want)
		}
		if got := fires(s, late, 1); got != "none" {
			t.Errorf("%+v: fires at %s after the end of time", c.spec, got)
		}
		last, ok := s.Last(early, late)
		if n, more := s.Count(early, late, 99); !ok || !strings.HasSuffix(c.want, last.Format(time.RFC3339)+" none") || n != strings.Count(c.want, "Z") || more {
			t.Errorf("%+v: last %v, %d fires", c.spec, last, n)
		}
	}
}

func TestNext_gives_UTC_without_a_monotonic_reading(t *testing.T) {
	s := compile(t, Spec{Cron: "* * * * *", Timezone: "Asia/Tokyo"})
	next, _ := s.Next(time.Now())
	if next.Location() != time.UTC || strings.Contains(next.String(), "m=") {
		t.Error(next)
	}
}

func TestNext_allocates_nothing(t *testing.T) {
	at := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
	for _, spec := range []Spec{
		{Cron: "30 2 * * 1-5", Timezone: "Europe/Berlin"}, {Cron: "0 0 29 2 *", Timezone: "America/Santiago"}, {Cron: "* * * * * *"},
		{Cron: "0 0 L,15W * 5#1", Timezone: "Europe/Berlin"}, {Every: Duration(time.Minute)},
	} {
		s := compile(t, spec)
		if n := testing.AllocsPerRun(100, func() {
			at, _ := s.Next(at)
			s.Last(at.AddDate(-3, 0, 0), at)
			s.Count(at, at.Add(time.Hour), 10)
		}); n != 0 {
			t.Errorf("%+v: %v allocations", spec, n)
		}
	}
}

func TestLast_and_Count(t *testing.T) {
	from, upTo := *instant(t, "2016-02-29T00:00:00Z"), *instant(t, "2026-02-28T23:59:59.9995Z")
	for _, c := range []struct {
		spec  Spec
		last  string
		limit int
		n     int
		more  bool
	}{
		{Spec{Cron: "0 0 29 2 *"}, "2024-02-29T00:00:00Z", 3, 3, false},
		{Spec{Cron: "0 0 29 2 *"}, "2024-02-29T00:00:00Z", 2, 2, true},
		{Spec{Cron: "* * * * *"}, "2026-02-28T23:59:00Z", 1000, 1000, true},
		{Spec{Every: Duration(time.Second)}, "2026-02-28T23:59:59Z", 1 << 40, 315619200, false},
		{Spec{Every: Duration(time.Second)}, "2026-02-28T23:59:59Z", 0, 0, true},
		{Spec{Every: Duration(1500 * time.Millisecond), Phase: Duration(time.Millisecond)}, "2026-02-28T23:59:58.501Z", 5, 5, true},
		{Spec{At: instant(t, "2016-02-29T00:00:00Z")}, "2016-02-29T00:00:00Z", 5, 1, false},
		{Spec{At: instant(t, "2016-02-28T23:59:59.999Z")}, "none", 5, 0, false},
		{Spec{At: instant(t, "2026-03-01T00:00:00Z")}, "none", 5, 0, false},
	} {
		s := compile(t, c.spec)
		got := "none"
		if last, ok := s.Last(from, upTo); ok {
			got = last.Format(time.RFC3339Nano)
		}
		n, more := s.Count(from, upTo, c.limit)
		if got != c.last || n != c.n || more != c.more {
			t.Errorf("%+v: last %s, %d fires (more: %v); want %s, %d (%v)", c.spec, got, n, more, c.last, c.n, c.more)
		}
	}
	at := *instant(t, "2026-01-01T00:00:00.777Z")
	s := compile(t, Spec{At: &at})
	for before := range 40 {
		for after := range 40 {
			from, upTo := at.Add(-time.Duration(before)*time.Millisecond), at.Add(time.Duration(after)*time.Millisecond)
			if last, ok := s.Last(from, upTo); !ok || !last.Equal(at) {
				t.Errorf("no fire in [%v, %v]", from, upTo)
			}
		}
	}
	if _, ok := compile(t, Spec{Cron: "* * * * *"}).Last(upTo, from); ok {
		t.Error("a range that runs backwards holds a fire")
	}
}
