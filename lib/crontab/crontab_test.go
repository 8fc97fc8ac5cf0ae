package crontab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/tests/script"
)

// Each file of testdata is a line of where the crontab comes from, the crontab, and what is to become of it.
func TestCrontabs(t *testing.T) {
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
		case "system":
			cfg.System, cfg.Origin = true, value
		case "user":
			cfg.User = value
		case "zone":
			cfg.Zone = value
		case "home":
			cfg.Home = value
		case "given":
			cfg.Zone, cfg.ZoneGiven = value, true
		case "users":
			cfg.IsUser = func(word string) bool { return slices.Contains(strings.Split(value, ","), word) }
		default:
			t.Fatalf("config %q", key)
		}
	}
	return cfg
}

func trace(t *testing.T, text string, cfg Config) string {
	t.Helper()
	file, err := Parse([]byte(text), cfg)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, j := range file.Jobs {
		fmt.Fprintf(&b, "%d job %s\n", j.Line, j.Name)
		if to := j.Def.Target.Email; to != nil {
			fmt.Fprintf(&b, "  mails %s\n", strings.Join(to.To, ", "))
			continue
		}
		e := j.Def.Target.Exec
		if when := j.Def.Schedule; when != nil {
			fmt.Fprintf(&b, "  when %s (%s)\n", when.Cron, when.Timezone)
		} else {
			b.WriteString("  on demand\n")
		}
		for _, arg := range e.Argv {
			fmt.Fprintf(&b, "  arg %q\n", arg)
		}
		for _, key := range slices.Sorted(maps.Keys(e.Env)) {
			fmt.Fprintf(&b, "  env %s=%s\n", key, e.Env[key])
		}
		if called := j.Def.On.Failed; called != nil {
			fmt.Fprintf(&b, "  failed: %s\n", called.Job)
		}
		if e.Dir != "" {
			fmt.Fprintf(&b, "  dir %s\n", e.Dir)
		}
	}
	for _, s := range file.Settings {
		fmt.Fprintf(&b, "%d set %s=%s\n", s.Line, s.Name, s.Value)
	}
	for _, n := range file.Notes {
		word := "note"
		if n.Lost {
			word = "lost"
		}
		fmt.Fprintf(&b, "%d %s %s\n", n.Line, word, n.Why)
	}
	return b.String()
}

func TestDefinitionIsWhatCronWouldDo(t *testing.T) {
	file := parse(t, "0 1 * * * backup\n", Config{User: "ann"})
	def := file.Jobs[0].Def
	if def.CatchUp.Mode != job.CatchUpNone || def.Retry.MaxAttempts != 1 || def.Guarantee != job.AtMostOnce || def.Timeout.Std() != 24*time.Hour {
		t.Errorf("catch-up %s, attempts %d, guarantee %s, timeout %s; want none, 1, at_most_once and 1d",
			def.CatchUp.Mode, def.Retry.MaxAttempts, def.Guarantee, def.Timeout)
	}
	if def.Schedule.Timezone != "UTC" {
		t.Errorf("zone %q where none is known, want UTC", def.Schedule.Timezone)
	}
	if def.Labels["source"] != "crontab" {
		t.Errorf("labels %v", def.Labels)
	}
}

// The process of a job is run as a worker would, to see what the command really gets.
func TestCommandsGetWhatCronWouldGiveThem(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"arguments pass through one shell", `* * * * * echo "a  b" 'c $d' e\ f`, "a  b c $d e f\n"},
		{"escaped percent is a percent", `* * * * * echo 50\% $((5 \% 3))`, "50% 2\n"},
		{"percent begins the input", `* * * * * cat%one%two`, "one\ntwo\n"},
		{"input ends with one line's end", `* * * * * cat%one%`, "one\n"},
		{"escaped percent in the input", `* * * * * cat%100\% sure`, "100% sure\n"},
		{"no expansion in the input", `* * * * * cat%$HOME ` + "`id`" + ` \n 'q' "r"`, "$HOME `id` \\n 'q' \"r\"\n"},
		{"backslash before a backslash", `* * * * * printf '\%s' 'a\\'%x`, `a\\`},
		{"nothing to read without percent", `* * * * * cat`, ""},
		{"percent at the end is no input", `* * * * * cat%`, ""},
		{"environment of the lines above", "A='x y'\nB=$A\n* * * * * echo \"$A|$B|$PATH|$SHELL\"", "x y|$A|/usr/bin:/bin|/bin/sh\n"},
		{"later setting wins below it", "A=1\n* * * * * true\nA=2\n* * * * * echo $A", "2\n"},
		{"exit code of the command", "* * * * * cat; exit 3%in", "in\n: exit status 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			jobs := parse(t, c.line, Config{}).Jobs
			e := jobs[len(jobs)-1].Def.Target.Exec
			cmd := exec.Command(e.Argv[0], e.Argv[1:]...)
			for key, value := range e.Env {
				cmd.Env = append(cmd.Env, key+"="+value.Text)
			}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			got := ""
			if err := cmd.Run(); err != nil {
				got = ": " + err.Error()
			}
			if got = out.String() + got; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNamesStayWhenTheFileAroundThemChanges(t *testing.T) {
	before := parse(t, "1 * * * * alpha\n2 * * * * beta --x\n", Config{User: "ann"})
	after := parse(t, "# new\nPATH=/bin\n5 5 * * * beta --x\n1 * * * * alpha\n", Config{User: "ann"})
	names := func(f File) []string {
		var all []string
		for _, j := range f.Jobs {
			all = append(all, j.Name)
		}
		return slices.Sorted(slices.Values(all))
	}
	if !slices.Equal(names(before), names(after)) {
		t.Errorf("names %v became %v", names(before), names(after))
	}
	other := parse(t, "1 * * * * alpha\n", Config{User: "bob"})
	if other.Jobs[0].Name == before.Jobs[0].Name {
		t.Error("equal commands of two users have one name")
	}
	system := func(origin string) string {
		return parse(t, "1 * * * * root alpha\n", Config{User: "root", System: true, Origin: origin}).Jobs[0].Name
	}
	if system("a") == system("b") {
		t.Error("equal commands of two system crontabs have one name")
	}
}

func TestTextThatIsNoCrontab(t *testing.T) {
	for text, says := range map[string]string{
		"* * * * * a\x00b\n":                    "NUL bytes",
		strings.Repeat("#", MaxBytes+1):         "want at most",
		"\xff\xfe*\x00 \x00":                    "UTF-16",
		"\xfe\xff\x00*\x00 ":                    "UTF-16",
		"# old Mac\r0 3 * * * a\r0 4 * * * b\r": "carriage returns (CR) alone end its lines, want line feeds (LF): \"tr",
		"resource \"aws_scheduler_schedule\" \"a\" {\n  schedule_expression = \"rate(1 day)\"\n}\n": "it looks like a Terraform file; give what \"crontab -l\" prints",
		"NAME      SCHEDULE    SUSPEND\nnightly   0 3 * * *   False\n":                              "a table that kubectl printed",
		"AWSTemplateFormatVersion: '2010-09-09'\nResources: {}\n":                                   "a CloudFormation or SAM template",
		"apiVersion: batch/v1\nkind: CronJob\n":                                                     "belfry import kubernetes",
		"{\"ScheduleExpression\": \"rate(1 day)\"}\n":                                               "belfry import eventbridge",
		"[Unit]\nDescription=x\n[Timer]\nOnCalendar=daily\n":                                        "a systemd timer",
		"no crontab for ann\n":                      "an error of a command line",
		"locals {\n  cron = \"0 5 * * *\"\n}\n":     "it looks like a Terraform file",
		"Dear Ann,\nplease = run it\nevery night\n": "nothing in it is understood; give what \"crontab -l\" prints",
	} {
		if file, err := Parse([]byte(text), Config{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %+v, %v; want %q", text, file, err, says)
		}
	}
	for _, text := range []string{"", "\n", "# nothing yet\n", "MAILTO=ann\n", "1 2 3\n"} {
		if _, err := parseText(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	file := parse(t, "* * * * * caf\xe9\n", Config{})
	if len(file.Jobs) != 0 || len(file.Notes) != 1 || !file.Notes[0].Lost {
		t.Errorf("a line that is not UTF-8 gave %+v", file)
	}
}

func TestUnknownZoneLosesTheLinesBelowWithANote(t *testing.T) {
	file := parse(t, "0 1 * * * kept\nCRON_TZ=Mars/Olympus\n0 1 * * * lost\n", Config{})
	if len(file.Jobs) != 1 || len(file.Notes) != 2 || file.Notes[1].Line != 3 || !file.Notes[1].Lost {
		t.Errorf("got %+v", file)
	}
}

// A byte order mark begins the text, or one of the files that were joined to it.
func TestByteOrderMarksLoseNothing(t *testing.T) {
	lines := "0 1 * * * alpha\n# comment\nMAILTO=ann\n0 2 * * * beta\n"
	marked, err := parseText("\ufeff" + strings.Replace(lines, "MAILTO", "\ufeffMAILTO", 1))
	plain, _ := parseText(lines)
	text := func(f File) string {
		out, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if err != nil || text(marked) != text(plain) || len(marked.Jobs) != 2 {
		t.Errorf("%+v, %v", marked, err)
	}
	if file, err := parseText("\ufeff# comment\r\n\ufeff0 1 * * * alpha\r\n"); err != nil || len(file.Jobs) != 1 || len(file.Notes) != 0 {
		t.Errorf("%+v, %v", file, err)
	}
}

func parseText(text string) (File, error) { return Parse([]byte(text), Config{}) }

func TestZoneName(t *testing.T) {
	for value, want := range map[string]string{"Europe/Berlin": "Europe/Berlin", ":Europe/Berlin": "Europe/Berlin", "/usr/share/zoneinfo/Asia/Tokyo": "Asia/Tokyo",
		":/usr/share/zoneinfo/posix/UTC": "UTC", "posix/UTC": "UTC", "EST5EDT": "EST5EDT",
		"CET-1CEST,M3.5.0,M10.5.0/3": "", "JST-9": "", "UTC0": "", "<+03>-3": "", "Local": "", "/etc/localtime": "", "right/UTC": "", "": ""} {
		got, ok := ZoneName(value)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v; want %q", value, got, ok, want)
		}
	}
}

func parse(t *testing.T, text string, cfg Config) File {
	t.Helper()
	file, err := Parse([]byte(text), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Whatever a crontab holds, every line of it is accounted for, every job is one that the API takes, and names are unique.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		f.Add(string(text), true)
		f.Add(string(text), false)
	}
	f.Add("@reboot x\n\\%%\\\\%\n'=\n=\n\"a\"=\"\n* * * * *\r\n", false)
	f.Fuzz(func(t *testing.T, text string, system bool) {
		file, err := Parse([]byte(text), Config{System: system, User: "root", Home: "/root", Zone: "Europe/Berlin"})
		if err != nil {
			if len(text) <= MaxBytes && !strings.ContainsRune(text, 0) && !strings.Contains(text, "\r") && utf8.ValidString(text) &&
				!strings.Contains(err.Error(), "nothing in it is understood") {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		found := map[int]int{}
		names := map[string]bool{}
		for _, j := range file.Jobs {
			if j.Def.Target.Email == nil { // which is of a setting
				found[j.Line]++
			}
			if names[j.Name] || job.ValidName(j.Name) != nil {
				t.Errorf("line %d: name %q twice or not valid", j.Line, j.Name)
			}
			names[j.Name] = true
			if _, err := j.Def.WithDefaults().Validate(func(string) bool { return true }); err != nil {
				t.Errorf("line %d: %v", j.Line, err)
			}
		}
		for _, j := range file.Jobs {
			if called := j.Def.On.Failed; called != nil && !names[called.Job] {
				t.Errorf("line %d: it calls %s, which is no job of the file", j.Line, called.Job)
			}
		}
		for _, s := range file.Settings {
			found[s.Line]++
		}
		for _, n := range file.Notes {
			if n.Lost && found[n.Line] > 0 {
				t.Errorf("line %d is both lost and kept", n.Line)
			}
			if found[n.Line] == 0 {
				found[n.Line]++
			}
		}
		for i, line := range strings.Split(text, "\n") {
			content := strings.TrimLeft(strings.TrimRight(strings.TrimPrefix(line, "\ufeff"), "\r"), " \t")
			want := 1
			if !strings.Contains(content, "\r") && (content == "" || content[0] == '#') {
				want = 0
			}
			if found[i+1] != want {
				t.Errorf("line %d %q is accounted for %d times, want %d", i+1, line, found[i+1], want)
			}
		}
	})
}
