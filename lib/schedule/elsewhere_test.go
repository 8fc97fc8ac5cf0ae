package schedule

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

var november = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)

func TestPartsExplainTheFieldsOfAnExpression(t *testing.T) {
	for expr, want := range map[string][]Part{
		"30 9  * * 1-5": {{"minute", "30", 0, 2, "at minute 30"}, {"hour", "9", 3, 4, "at hour 9"}, {"day-of-month", "*", 6, 7, "every day of the month"},
			{"month", "*", 8, 9, "every month"}, {"day-of-week", "1-5", 10, 13, "on Monday to Friday"}},
		"*/10 0 0 L 3 *": {{"second", "*/10", 0, 4, "every 10 seconds"}, {"minute", "0", 5, 6, "at minute 0"}, {"hour", "0", 7, 8, "at hour 0"},
			{"day-of-month", "L", 9, 10, "on the last day of the month"}, {"month", "3", 11, 12, "in March"}, {"day-of-week", "*", 13, 14, "every day of the week"}},
		" @Daily": {{"macro", "@Daily", 1, 7, "the same as 0 0 * * *"}},
		"0 0 13 * 5": {{"minute", "0", 0, 1, "at minute 0"}, {"hour", "0", 2, 3, "at hour 0"},
			{"day-of-month", "13", 4, 6, "on day 13 of the month; a day that matches day-of-week alone is enough, too"}, {"month", "*", 7, 8, "every month"},
			{"day-of-week", "5", 9, 10, "on Friday; a day that matches day-of-month alone is enough, too"}},
	} {
		if got := compile(t, Spec{Cron: expr}).Parts(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is explained as\n%+v, want\n%+v", expr, got, want)
		}
	}
	if got := compile(t, Spec{Every: Duration(time.Hour)}).Parts(); got != nil {
		t.Errorf("an interval has parts: %v", got)
	}
}

func elsewhere(t *testing.T, expr, zone string) map[string]Elsewhere {
	t.Helper()
	of := map[string]Elsewhere{}
	for _, e := range compile(t, Spec{Cron: expr, Timezone: zone}).Elsewhere(november) {
		of[strings.Fields(e.System)[0]] = e
	}
	return of
}

func TestExpressionsAreWrittenForOtherSchedulers(t *testing.T) {
	for _, c := range []struct{ expr, zone, kubernetes, quartz, systemd, eventBridge string }{
		{"30 9 * * 1-5", "Europe/Berlin", "30 9 * * 1-5", "0 30 9 ? * MON-FRI", "OnCalendar=Mon..Fri *-*-* 09:30:00 Europe/Berlin", "cron(30 9 ? * MON-FRI *)"},
		{"*/15 * * * *", "", "*/15 * * * *", "0 0/15 * * * ?", "OnCalendar=*-*-* *:00/15:00", "cron(0/15 * * * ? *)"},
		{"@weekly", "", "0 0 * * 0", "0 0 0 ? * SUN", "OnCalendar=Sun *-*-* 00:00:00", "cron(0 0 ? * SUN *)"},
		{"0 0 13 * 5", "", "0 0 13 * 5", "0 0 0 13 * ? | 0 0 0 ? * FRI", "OnCalendar=*-*-13 00:00:00 | OnCalendar=Fri *-*-* 00:00:00", "cron(0 0 13 * ? *) | cron(0 0 ? * FRI *)"},
		{"0 18 L-2 1,7 *", "", "", "0 0 18 L-2 1,7 ?", "OnCalendar=*-01,07~03 18:00:00", ""},
		{"0 18 * * 5L", "", "", "0 0 18 ? * 6L", "OnCalendar=Fri *-*~07/1 18:00:00", "cron(0 18 ? * 6L *)"},
		{"0 18 * * 1#2", "", "", "0 0 18 ? * 2#2", "OnCalendar=Mon *-*-08..14 18:00:00", "cron(0 18 ? * 2#2 *)"},
		{"0 18 15W * *", "", "", "0 0 18 15W * ?", "", "cron(0 18 15W * ? *)"},
		{"0 0 1 * */7", "", "", "", "OnCalendar=Sun *-*-01 00:00:00", ""},
		{"*/20 0 0 * * 6,7", "", "", "0/20 0 0 ? * SAT,SUN", "OnCalendar=Sat,Sun *-*-* 00:00:00/20", ""},
	} {
		of := elsewhere(t, c.expr, c.zone)
		for system, want := range map[string]string{"Kubernetes": c.kubernetes, "Quartz": c.quartz, "systemd": c.systemd, "EventBridge": c.eventBridge} {
			e := of[system]
			if got := strings.Join(e.Expressions, " | "); got != want {
				t.Errorf("%q is %q in %s, want %q", c.expr, got, system, want)
			}
			if len(e.Expressions) != 1 && len(e.Notes) == 0 {
				t.Errorf("%s says nothing of why %q has %d expressions", system, c.expr, len(e.Expressions))
			}
		}
	}
}

// TestChangesOfTheClockAreToldOfWhereAFireMeetsOne: and what is said of Kubernetes is what the library does that it is made of.
func TestChangesOfTheClockAreToldOfWhereAFireMeetsOne(t *testing.T) {
	const skips, twice = "A time that the clock skips does not fire that day.", "A time that the clock shows twice fires twice."
	for _, c := range []struct {
		expr, zone string
		want       []string
	}{
		{"30 2 * * *", "Europe/Berlin", []string{skips, twice}},
		{"30 9 * * *", "Europe/Berlin", nil},
		{"30 2 * * *", "Asia/Tokyo", nil},
		{"*/15 * * * *", "Europe/Berlin", nil},
		{"0 12 * * *", "", nil},
	} {
		if got := elsewhere(t, c.expr, c.zone)["Kubernetes"].Notes; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q in %s: %q, want %q", c.expr, c.zone, got, c.want)
		}
	}
	where, err := LoadZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s, err := cron.ParseStandard("30 2 * * *")
	if err != nil {
		t.Fatal(err)
	}
	if first := s.Next(time.Date(2026, 10, 25, 0, 0, 0, 0, where)); s.Next(first).Sub(first) != time.Hour {
		t.Error("robfig no longer fires twice at a time that the clock shows twice")
	}
}

// TestKubernetesMakesTheSameOfWhatIsWrittenForIt compares fires with the library that it is made of, on a clock that never changes.
func TestKubernetesMakesTheSameOfWhatIsWrittenForIt(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 1))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	written := 0
	for range 2000 {
		expr := strings.Join([]string{
			pick("0", "*", "*/7", "5,10,11", "3-50/9", "59"), pick("*", "0", "*/5", "9-17", "22,23"),
			pick("*", "*", "1", "*/2", "1-31/2", "13,14,15", "L", "1,*"), pick("*", "*", "2", "*/3", "jan-mar"), pick("*", "*", "0", "7", "5-7", "*/2", "1,3", "5L", "sat"),
		}, " ")
		ours := compile(t, Spec{Cron: expr})
		of := elsewhere(t, expr, "")["Kubernetes"]
		if len(of.Expressions) == 0 {
			continue
		}
		written++
		theirs, err := cron.ParseStandard(of.Expressions[0])
		if err != nil {
			t.Fatalf("%q is written %q: %v", expr, of.Expressions[0], err)
		}
		at := november
		for range 30 {
			next, ok := ours.Next(at)
			if !ok {
				break
			}
			if got := theirs.Next(at); !got.Equal(next) {
				t.Fatalf("%q, written %q, fires after %v at %v, want %v", expr, of.Expressions[0], at, got, next)
			}
			at = next
		}
	}
	if written < 1000 {
		t.Errorf("only %d expressions were compared", written)
	}
}
