package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// refusals are expressions with the whole text of their refusal, without the field: every one names the part that is
// wrong, the token, and what would be right.
var refusals = []struct{ cron, want string }{
	{"61 * * * *", `got "61", want minute: 0 to 59`},
	{"* 24 * * *", `got "24", want hour: 0 to 23`},
	{"60 * * * * *", `got "60", want second: 0 to 59`},
	{"* * 0 * *", `got "0", want day-of-month: 1 to 31, L, L-n, LW or nW`},
	{"* * 32 * *", `got "32", want day-of-month: 1 to 31, L, L-n, LW or nW`},
	{"* * * 13 *", `got "13", want month: 1 to 12 or jan to dec`},
	{"0 0 * JANFEB *", `got "JANFEB", want month: 1 to 12 or jan to dec`},
	{"0 0 * anf *", `got "anf", want month: 1 to 12 or jan to dec`},
	{"* * * * 8", `got "8", want day-of-week: 0 to 7 or sun to sat (0 and 7 are Sunday), nL or n#k`},
	{"* * * * monday", `got "monday", want day-of-week: "mon": names have three letters`},
	{"* * * * Sunday,tues-Thursday", `got "Sunday", want day-of-week: "sun": names have three letters; cron: got "tues-Thursday", want day-of-week: "tue-thu": names have three letters`},
	{"* * * sept *", `got "sept", want month: "sep": names have three letters`},
	{"H * * * *", `got "H", want minute: a fixed value such as "0": "H" lets Jenkins pick one`},
	{"H(0-29)/10 * * * *", `got "H(0-29)/10", want minute: a fixed value such as "0": "H" lets Jenkins pick one`},
	{"0 0~5 * * *", `got "0~5", want hour: a fixed value such as "0": "~" picks one at random, and the field "jitter" spreads starts`},
	{"~ 3 * * *", `got "~", want minute: a fixed value such as "0": "~" picks one at random, and the field "jitter" spreads starts`},
	{"@every_minute", `got "@every_minute", want "* * * * *"`},
	{"@every_second", `got "@every_second", want "* * * * * *"`},
	{"0 9 * * MON-FRI *", `got "0 9 * * MON-FRI *", want six fields to begin with seconds; with a year at the end write "0 9 * * MON-FRI", and bound years by the fields "start" and "end"`},
	{"0 9 ? * 2-6 2027-2028", `got "0 9 ? * 2-6 2027-2028", want six fields to begin with seconds; with a year at the end write "0 9 * * mon-fri", and bound years by the fields "start" and "end"`},
	{"* * * * L", `got "L", want day-of-week: a weekday before the L, such as "5L" for the month's last Friday`},
	{"* * * * 5#6", `got "5#6", want day-of-week: a weekday and which one of the month, "5#1" to "5#5"`},
	{"* * * * 5#0", `got "5#0", want day-of-week: a weekday and which one of the month, "5#1" to "5#5"`},
	{"* * * * #2", `got "#2", want day-of-week: a weekday and which one of the month, "5#1" to "5#5"`},
	{"* * L-31 * *", `got "L-31", want day-of-month: "L-1" to "L-30", the days before the last one`},
	{"* * L-0 * *", `got "L-0", want day-of-month: "L-1" to "L-30", the days before the last one`},
	{"* * W * *", `got "W", want day-of-month: "1W" to "31W", the weekday nearest to that day, or "LW"`},
	{"* * 1-5W * *", `got "1-5W", want day-of-month: "1W" to "31W", the weekday nearest to that day, or "LW"`},
	{"* L * * *", `got "L", want hour: 0 to 23`},
	{"*/+5 * * * *", `got "*/+5", want minute: a step from 1 to 60 after the slash`},
	{"*/0 * * * *", `got "*/0", want minute: a step from 1 to 60 after the slash`},
	{"*/90 * * * *", `got "*/90", want minute: a step from 1 to 60 after the slash; write "0" for that value alone, or {"every": "90m"} instead of "cron"`},
	{"5/1440 * * * *", `got "5/1440", want minute: a step from 1 to 60 after the slash; write "5" for that value alone, or {"every": "1440m"} instead of "cron"`},
	{"* */25 * * *", `got "*/25", want hour: a step from 1 to 24 after the slash; write "0" for that value alone, or {"every": "25h"} instead of "cron"`},
	{"* * */40 * *", `got "*/40", want day-of-month: a step from 1 to 31 after the slash; write "1" for that value alone, or {"every": "40d"} instead of "cron"`},
	{"* * * */13 *", `got "*/13", want month: a step from 1 to 12 after the slash`},
	{"*/ * * * *", `got "*/", want minute: a step from 1 to 60 after the slash`},
	{"*/5/5 * * * *", `got "*/5/5", want minute: a step from 1 to 60 after the slash`},
	{"/5 * * * *", `got "/5", want minute: 0 to 59`},
	{"*,99 * * * *", `got "99", want minute: 0 to 59`},
	{"** * * * *", `got "**", want minute: 0 to 59`},
	{"*5 * * * *", `got "*5", want minute: 0 to 59`},
	{"1,,2 * * * *", `got "1,,2", want minute: a value on each side of every comma`},
	{"1, * * * *", `got "1,", want minute: a value on each side of every comma`},
	{"30-10 * * * *", `got "30-10", want minute: a range that runs upwards: "30-59,0-10"`},
	{"* 7-2 * * *", `got "7-2", want hour: a range that runs upwards: "7-23,0-2"`},
	{"* * * * fri-mon", `got "fri-mon", want day-of-week: a range that runs upwards: "5-6,0-1"`},
	{"* * * * sat-sun", `got "sat-sun", want day-of-week: a range that runs upwards: "6,0"`},
	{"* * * * MON-SUN", `got "MON-SUN", want day-of-week: a range that runs upwards: "0-6"`},
	{"* * * * saturday-sunday", `got "saturday-sunday", want day-of-week: a range that runs upwards: "6,0"`},
	{"* * * * Monday-Sunday", `got "Monday-Sunday", want day-of-week: a range that runs upwards: "0-6"`},
	{"* * * * SAT-SUN/2", `got "SAT-SUN/2", want day-of-week: a range that runs upwards: "6"`},
	{"* * * * fri-mon/2", `got "fri-mon/2", want day-of-week: a range that runs upwards: "5,0"`},
	{"* * * * wed-tue/2", `got "wed-tue/2", want day-of-week: a range that runs upwards: "3-6/2,0-2/2"`},
	{"* 22-2/2 * * *", `got "22-2/2", want hour: a range that runs upwards: "22,0-2/2"`},
	{"50-9/20 * * * *", `got "50-9/20", want minute: a range that runs upwards: "50"`},
	{"* * * nov-feb/3 *", `got "nov-feb/3", want month: a range that runs upwards: "11,2"`},
	{"* * * December-March *", `got "December-March", want month: a range that runs upwards: "12,1-3"`},
	{"* * * * fri-mon/9", `got "fri-mon/9", want day-of-week: a step from 1 to 7 after the slash`},
	{"* * * * 7-2", `got "7-2", want day-of-week: a range that runs upwards: "0-2"`},
	{"1-60 * * * *", `got "1-60", want minute: 0 to 59 at both ends of the range`},
	{"1- * * * *", `got "1-", want minute: 0 to 59 at both ends of the range`},
	{"-5 * * * *", `got "-5", want minute: 0 to 59`},
	{"1-2-3 * * * *", `got "1-2-3", want minute: 0 to 59 at both ends of the range`},
	{"001 * * * *", `got "001", want minute: 0 to 59`},
	{"٣ * * * *", "got \"٣ * * * *\", want printable ASCII characters, and blanks or tabs between the fields"},
	{"* * * * *\n", `got "* * * * *\n", want printable ASCII characters, and blanks or tabs between the fields`},
	{"* * ? * 1", `got "?", want day-of-month: "*" for any value`},
	{"0 0 30 2 *", `got "30", want day-of-month: a day that the chosen months and weekdays have; this would never fire`},
	{"0 0 31 2,4,6,9,11 *", `got "31", want day-of-month: a day that the chosen months and weekdays have; this would never fire`},
	{"0 0 31W 4 *", `got "31W", want day-of-month: a day that the chosen months and weekdays have; this would never fire`},
	{"0 0 L-30 4 *", `got "L-30", want day-of-month: a day that the chosen months and weekdays have; this would never fire`},
	{"0 0 */30 * 1#2", `got "*/30", want day-of-month: a day that the chosen months and weekdays have; this would never fire`},
	{"* * * *", `got "* * * *", want ` + wantFields + "; these are 4"},
	{"* * * * * * *", `got "* * * * * * *", want ` + wantFields + "; these are 7"},
	{" ", `got " ", want ` + wantFields + "; these are 0"},
	{"@reboot", `got "@reboot", want ` + wantMacro + ": a schedule knows time alone, so start the job when the machine starts"},
	{"@every 90s", `got "@every 90s", want the field "every" instead of "cron", such as {"every": "90s"}`},
	{"@fortnightly", `got "@fortnightly", want ` + wantMacro},
	{"@5minutes", `got "@5minutes", want ` + wantMacro},
	{"TZ=Europe/Berlin * * * * *", `got "TZ=Europe/Berlin * * * * *", want the expression alone: a time zone stands in the field "timezone"`},
	{"CRON_TZ=UTC * * * * *", `got "CRON_TZ=UTC * * * * *", want the expression alone: a time zone stands in the field "timezone"`},
}

func TestParse_refusals_name_field_token_and_what_would_be_right(t *testing.T) {
	for _, c := range refusals {
		_, err := Spec{Cron: c.cron}.Compile()
		if err == nil || strings.ReplaceAll(err.Error(), "\n", "; ") != "cron: "+c.want {
			t.Errorf("%q\n\tgot  %v\n\twant cron: %s", c.cron, err, c.want)
		}
	}
}

// Six fields that mean something else with the year last are refused where somebody writes them; a stored job keeps its meaning.
func TestCheck_refuses_six_fields_of_two_meanings(t *testing.T) {
	for expr, both := range map[string][2]string{
		"0 9 * * 1-5 *":    {"0 9 * * jan-may *", "0 9 * * 1-5"},
		"0 0 12 1 1 *":     {"0 0 12 1 jan *", "0 0 12 1 1"},
		"30 0 12 1 */3 *":  {"30 0 12 1 jan-dec/3 *", "30 0 12 1 */3"},
		"0 9 * * 1,3-5 *":  {"0 9 * * jan,mar-may *", "0 9 * * 1,3-5"},
		"*/5 9 1 * 2/2  *": {"*/5 9 1 * feb/2 *", "*/5 9 1 * 2/2"},
	} {
		_, err := Spec{Cron: expr}.Check()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q; with", both[0])) || !strings.HasSuffix(err.Error(), fmt.Sprintf("%q", both[1])) {
			t.Errorf("%s gives %v, want %q", expr, err, both)
		}
		if _, err := (Spec{Cron: expr}).Compile(); err != nil {
			t.Errorf("%s as it is stored: %v", expr, err)
		}
		if _, err := (Spec{Cron: both[0]}).Check(); err != nil {
			t.Errorf("%s, as it should be written: %v", both[0], err)
		}
	}
	for _, expr := range []string{"*/5 * * * * *", "0 0 12 * * *", "0 0 12 1 * *", "0 9 * * jan-may *", "0 0 12 * 6-8 *", "0 30 12 1 1 *", "0 0 12 0 * *", "0 9 * * 1-5", "0 0 9 * 1-5 1"} {
		_, compiled := Spec{Cron: expr}.Compile()
		if _, err := (Spec{Cron: expr}).Check(); fmt.Sprint(err) != fmt.Sprint(compiled) {
			t.Errorf("%s: %v, but compiled %v", expr, err, compiled)
		}
	}
}

// A schedule that never fires is told from one with a field that is wrong.
func TestErrNeverFires(t *testing.T) {
	end := time.Unix(0, 0).Add(time.Second)
	for _, s := range []Spec{{Cron: "0 0 31 2 *"}, {Cron: "0 0 30 2 *", Timezone: "Europe/Berlin"}, {Cron: "@yearly", Timezone: "Europe/Berlin", End: &end}} {
		if _, err := s.Compile(); !errors.Is(err, ErrNeverFires) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := (Spec{Cron: "0 0 32 2 *"}).Compile(); errors.Is(err, ErrNeverFires) {
		t.Errorf("a field that is wrong: %v", err)
	}
}

func TestParse_joins_the_refusals_of_all_fields(t *testing.T) {
	_, err := Spec{Cron: "61 1,24,25 * 0 mon", Timezone: "Mars", Jitter: Duration(time.Hour)}.Compile()
	var got []string
	for _, e := range invalid.All(err) {
		got = append(got, e.Field+" "+e.Got)
	}
	if want := `cron "61", cron "24", cron "25", cron "0", timezone "Mars", jitter "1h"`; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// Two ways to write one expression have the same bits.
func TestParse_ways_to_write_the_same(t *testing.T) {
	for _, c := range [][2]string{
		{"@hourly", "0 * * * *"}, {"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
		{"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {" @Daily\t", "@daily"},
		{"\t05  4 *\t* * ", "5 4 * * *"}, {"5 4 * * *", "0 5 4 * * *"},
		{"0 0 * jan,feb,mar,apr,may,jun * ", "0 0 * 1-6 *"}, {"0 0 * JUL,AUG,SEP,OCT,NOV,DEC *", "0 0 * 7-12 *"},
		{"0 0 * * sun,mon,tue,wed", "0 0 * * 0-3"}, {"0 0 * * THU,FRI,SAT", "0 0 * * 4-6"},
		{"0 0 * jan,Feb-APR SUN", "0 0 * 1,2-4 0"}, {"0 0 * * 7", "0 0 * * 0"}, {"0 0 * * 1-7/2", "0 0 * * 1,3,5,0"},
		{"0 0 * * 7/3", "0 0 * * 0,3,6"}, {"0 0 * * 5-7", "0 0 * * 5,6,0"}, {"0 0 * * 7-7", "0 0 * * 0"},
		{"5/15 * * * *", "5,20,35,50 * * * *"}, {"7/15 7/9 7/12 7/3 *", "7,22,37,52 7,16 7,19,31 7,10 *"}, {"10-30/10 * * * *", "10,20,30 * * * *"}, {"59/1 * * * *", "59 * * * *"},
		{"*/60 * * * *", "0 * * * *"}, {"0 0 */31 * *", "0 0 */31 */1 *"}, {"0 0 * * fril", "0 0 * * 5L"}, {"0 0 * * sun#2", "0 0 * * 7#2"},
		{"0 0 lw,l-3,15w * *", "0 0 LW,L-3,15W * *"}, {"0 0 * * 7L", "0 0 * * 0L"},
	} {
		a, b := compile(t, Spec{Cron: c[0]}), compile(t, Spec{Cron: c[1]})
		if a.cron != b.cron {
			t.Errorf("%q is %+v\n\t%q is %+v", c[0], a.cron, c[1], b.cron)
		}
	}
}

// The longest expression that anybody can mean fits, and no longer one is read.
func TestFault16_input_is_bounded(t *testing.T) {
	list := func(first, last int) string {
		var all []string
		for v := first; v <= last; v++ {
			all = append(all, fmt.Sprintf("%02d", v))
		}
		return strings.Join(all, ",")
	}
	longest := strings.Join([]string{list(0, 59), list(0, 59), list(0, 23), list(1, 31), list(1, 12), list(0, 7)}, " ")
	s := compile(t, Spec{Cron: longest})
	if next, _ := s.Next(time.Unix(0, 0)); next.Unix() != 1 {
		t.Errorf("every second fires at %v", next)
	}
	for _, spec := range []Spec{
		{Cron: strings.Repeat("*", 1<<20)},
		{Cron: strings.Repeat("1,", 400) + "1 * * * *"},
		{Cron: strings.Repeat("x,", 300) + "1 * * * *"},
		{Cron: "* * * * *", Timezone: strings.Repeat("A/", 1<<20)},
	} {
		if _, err := spec.Compile(); err == nil || len(err.Error()) > 400 {
			t.Errorf("%.40s… is accepted, or refused at length", spec.Cron)
		}
	}
}

// What is said to write for a range that runs over its field's end has the values that were meant: those of the range, went on with from the beginning.
func TestParse_what_a_range_over_the_end_is_to_be_written_as(t *testing.T) {
	for f := minute; f <= dayOfWeek; f++ {
		spec := &fields[f]
		count := spec.last - spec.first + 1
		for first := spec.first; first <= spec.last; first++ {
			for last := spec.first; last < first; last++ {
				for step := 1; step <= count; step++ {
					var got, want parsedField
					for v := first; v <= last+count; v += step {
						want.values |= 1 << (spec.first + (v-spec.first)%count)
					}
					written := strings.Trim(spec.upwards(first, last, step), `"`)
					for item := range strings.SplitSeq(written, ",") {
						if wrong := got.item(f, item); wrong != "" {
							t.Fatalf("%s %d-%d/%d: %q cannot be written: %s", spec.name, first, last, step, written, wrong)
						}
					}
					if got.values != want.values {
						t.Fatalf("%s %d-%d/%d: %q has the values %b, want %b", spec.name, first, last, step, written, got.values, want.values)
					}
				}
			}
		}
	}
}
