package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

var testNow = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// drawn is what a table of a width looks like.
func drawn(t *testing.T, width int, colour bool, headings []string, rows ...[]string) string {
	t.Helper()
	zone, err := userZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	made := table{out: &out, headings: headings, width: width, colour: colour, zone: zone, now: testNow}
	for _, row := range rows {
		if err := made.add(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := made.flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTablesFitTheTerminal(t *testing.T) {
	headings := []string{"RUN", "STATE", "NOMINAL", "WHY"}
	rows := [][]string{
		{"report~0mwqktr68", "failed", clock(testNow.Add(-3 * time.Minute)), "permanent failure: exit code 3: the disk is full"},
		{"e-mail~0mwqktr68~1ciyl5bjdqdnu", "succeeded", clock(testNow.Add(2 * time.Hour)), ""},
	}
	for width, want := range map[int]string{
		0: `RUN                             STATE      NOMINAL                        WHY
report~0mwqktr68                failed     2026-11-21 09:57:00 (3m ago)   permanent failure: exit code 3: the disk is full
e-mail~0mwqktr68~1ciyl5bjdqdnu  succeeded  2026-11-21 12:00:00 (in 2h)
`,
		80: `RUN                             STATE      NOMINAL  WHY
report~0mwqktr68                failed     3m ago   permanent failure: exit cod…
e-mail~0mwqktr68~1ciyl5bjdqdnu  succeeded  in 2h
`,
		20: `RUN                             STATE      NOMINAL  WHY
report~0mwqktr68                failed     3m ago   permanent…
e-mail~0mwqktr68~1ciyl5bjdqdnu  succeeded  in 2h
`,
	} {
		// Lines are compared without what differs by the age's own width.
		got := drawn(t, width, false, headings, rows...)
		if squeeze(got) != squeeze(want) {
			t.Errorf("in %d columns:\n%s\nwant\n%s", width, got, want)
		}
		for _, line := range strings.Split(got, "\n") {
			if columnsOf(line) > width && width >= 80 {
				t.Errorf("%d columns, of %d: %s", columnsOf(line), width, line)
			}
		}
	}
	if got := drawn(t, 0, false, headings); got != "RUN  STATE  NOMINAL  WHY\n" {
		t.Errorf("an empty table is %q", got)
	}
}

func squeeze(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func TestWideSignsTakeTwoColumns(t *testing.T) {
	got := drawn(t, 24, false, []string{"JOB", "DETAIL"}, []string{"報告", "日本語の説明がとても長い"}, []string{"täglich", "e\u0301t\u00e9"}, []string{"👩‍👩‍👧", "x"})
	want := "JOB      DETAIL\n報告     日本語の説明が…\ntäglich  e\u0301t\u00e9\n👩‍👩‍👧       x\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatOthersWroteMovesNoCursor(t *testing.T) {
	got := drawn(t, 0, true, []string{"JOB", "WHY", "DETAIL"}, []string{"a\x1b[2Jb", "two\nlines\tand a tab", "\u202etxt.exe"})
	if strings.Contains(got, "\x1b[2J") || strings.Contains(got, "\u202e") || !strings.Contains(got, "two lines and a tab") || strings.Count(got, "\n") != 2 {
		t.Errorf("got %q", got)
	}
}

func TestStatesHaveColours(t *testing.T) {
	got := drawn(t, 0, true, []string{"STATE", "WHY"}, []string{"failed", "failed"}, []string{"odd", ""})
	if want := "\x1b[1mSTATE\x1b[0m   \x1b[1mWHY\x1b[0m\n\x1b[31mfailed\x1b[0m  failed\nodd\n"; strings.ReplaceAll(got, "   ", "  ") != strings.ReplaceAll(want, "   ", "  ") {
		t.Errorf("got %q", got)
	}
}

// A listing of any length is printed block by block; columns that were wide stay so.
func TestLongListingsAreNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	made := table{out: &out, headings: []string{"JOB", "WHEN"}, zone: time.UTC, now: testNow}
	for i := range block {
		if err := made.add([]string{fmt.Sprintf("a-rather-long-name-%d", i), "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(out.String(), "\n"); got != block+1 || len(made.held) != 0 {
		t.Errorf("%d lines are out and %d rows held, want %d and 0", got, len(made.held), block+1)
	}
	made.add([]string{"b", "y"})
	made.flush()
	if !strings.HasSuffix(out.String(), "\nb                       y\n") {
		t.Errorf("it ends with %q", out.String()[out.Len()-60:])
	}
}

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", -999 * time.Millisecond: "now", -time.Second: "1s ago", -59 * time.Second: "59s ago", -61 * time.Second: "1m1s ago", time.Minute: "in 1m",
		-10*time.Minute - 5*time.Second: "10m ago", 90 * time.Minute: "in 1h30m", -2 * time.Hour: "2h ago", 47 * time.Hour: "in 47h", -48 * time.Hour: "2d ago",
		400 * 24 * time.Hour: "in 400d", -3 * 365 * 24 * time.Hour: "3y ago",
	} {
		if got := age(testNow.Add(d), testNow); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

// atTerminal runs belfry as a process on a terminal of so many columns, and gives what appears there.
func atTerminal(t *testing.T, columns int, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "BELFRY_TEST_PROCESS=1", "TERM=xterm"), env...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 25, Cols: uint16(columns)})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(terminal) // ends with an error, when the process does
	if err := cmd.Wait(); err != nil {
		t.Fatalf("belfry %v: %v\n%s", args, err, out.String())
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

func TestTerminalsAndTheirUsersWishes(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	call(0, `{"description": "d", "schedule": {"cron": "0 9 * * *"}, "target": {"http": {"url": "https://example.org/`+strings.Repeat("long/", 40)+`"}}}`, "job", "apply", "a-job-with-a-name", "-f", "-")
	for _, columns := range []int{80, 140} {
		got := atTerminal(t, columns, []string{"NO_COLOR=1"}, "job", "list", "--address", address)
		if !strings.Contains(got, "a-job-with-a-name  ") || strings.Contains(got, "\x1b") || !strings.Contains(got, "…") {
			t.Errorf("%d columns, NO_COLOR: %q", columns, got)
		}
		for _, line := range strings.Split(got, "\n") {
			if columnsOf(line) > columns {
				t.Errorf("a line of %d columns on a terminal of %d: %s", columnsOf(line), columns, line)
			}
		}
	}
	for _, c := range []struct {
		env    string
		args   []string
		colour bool
	}{
		{"X=", nil, true},
		{"TERM=dumb", nil, false},
		{"NO_COLOR=", nil, true},
		{"X=", []string{"--color", "never"}, false},
		{"NO_COLOR=1", []string{"--color", "always"}, true},
		{"BELFRY_COLOR=never", nil, false},
		{"X=", []string{"-o", "json"}, false},
	} {
		got := atTerminal(t, 100, []string{c.env}, append([]string{"job", "list", "--address", address}, c.args...)...)
		if strings.Contains(got, "\x1b[") != c.colour {
			t.Errorf("%s %v: %q", c.env, c.args, got)
		}
	}
	if got := call(0, "", "job", "list").out; strings.Contains(got, "\x1b") || !strings.Contains(got, strings.Repeat("long/", 5)) {
		t.Errorf("into a pipe: %q", got)
	}
	if got := call(0, "", "job", "get", "a-job-with-a-name", "--timezone", "Asia/Tokyo").out; !strings.Contains(got, "18:00:00 JST (in ") {
		t.Errorf("in Tokyo: %s", got)
	}
}

func TestYAMLHasTheKeysOfJSON(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, `{"description": "yes", "labels": {"no": "1e3"}, "payload": {"n": 12345678901234567890, "x": null}, "target": {"http": {"url": "https://example.org/"}}}`, "job", "apply", "a", "-f", "-")
	shown := call(0, "", "job", "get", "a", "-o", "yaml").out
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	before := call(0, "", "job", "get", "a", "-o", "json").out
	call(0, "", "job", "apply", "-f", file)
	if after := call(0, "", "job", "get", "a", "-o", "json").out; after != before {
		t.Errorf("applying the YAML\n%s\nmade of\n%s\nthis:\n%s", shown, before, after)
	}
	call(0, `{"target": {"http": {"url": "https://example.org/"}}}`, "job", "apply", "b", "-f", "-")
	if got := call(0, "", "job", "list", "-o", "yaml").out; strings.Count(got, "\n- ") != 1 || !strings.HasPrefix(got, "- ") {
		t.Errorf("two jobs are listed as\n%s", got)
	}
	if got := call(0, "", "run", "list", "-o", "yaml").out; got != "[]\n" {
		t.Errorf("no run is listed as %q", got)
	}
}

func TestProgressOfLongWork(t *testing.T) {
	tell := func(total int64) string {
		var out lines
		synctest.Test(t, func(t *testing.T) {
			c := &cli{stderr: &out, now: time.Now}
			p := c.progress("importing jobs", total)
			for range 25 {
				time.Sleep(time.Second / 2)
				p.add(100)
				time.Sleep(time.Second / 2)
			}
			p.end()
			p.end()
		})
		return out.String()
	}
	want := "importing jobs: 1000 of 5000 (20%), 100/s, 40s left\nimporting jobs: 2000 of 5000 (40%), 100/s, 30s left\nimporting jobs: 2500 of 5000 (50%), 100/s, 25s left\n"
	if got := tell(5000); got != want {
		t.Errorf("in a log:\n%s\nwant\n%s", got, want)
	}
	if got := tell(0); !strings.HasSuffix(got, "importing jobs: 2500, 100/s, 25s so far\n") {
		t.Errorf("of nobody knows how many:\n%s", got)
	}
	synctest.Test(t, func(t *testing.T) {
		var out lines
		c := &cli{stderr: &out, now: time.Now}
		p := c.progress("importing jobs", 10)
		time.Sleep(progressAfter / 2)
		p.add(10)
		p.say("job %d was refused", 3)
		p.end()
		if got := out.String(); got != "job 3 was refused\n" {
			t.Errorf("short work says %q", got)
		}
	})
}

// On a terminal the line is drawn over, and gone in the end.
func TestProgressLeavesATerminalAsItWas(t *testing.T) {
	mine, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	defer theirs.Close()
	if err := pty.Setsize(mine, &pty.Winsize{Rows: 25, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TERM", "xterm")
	c := &cli{stderr: theirs, now: time.Now}
	p := c.progress("importing a great many jobs", 100)
	p.add(50)
	p.mu.Lock()
	p.draw()
	p.mu.Unlock()
	p.say("job 3 was refused")
	p.mu.Lock()
	p.draw()
	p.mu.Unlock()
	p.end()
	theirs.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(mine)
	const line = "\r\x1b[Kimporting a great many jobs:…"
	if got, want := out.String(), line+"\r\x1b[Kjob 3 was refused\r\n"+line+"\r\x1b[K"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A time that a table showed can be given back as it stands there.
func TestTimesAreReadAsTheyAreShown(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	var warned strings.Builder
	on := &cli{stderr: &warned}
	for _, c := range []struct{ text, want string }{
		{"2026-11-21T09:00:00Z", "2026-11-21T09:00:00Z"},
		{"2026-11-21 10:00:00", "2026-11-21T09:00:00Z"},
		{"2026-11-21 10:00", "2026-11-21T09:00:00Z"},
		{"2026-11-21", "2026-11-20T23:00:00Z"},
	} {
		got, err := on.instant("--from", c.text, berlin)
		if err != nil || clock(got) != c.want {
			t.Errorf("%q is %s, %v; want %s", c.text, clock(got), err, c.want)
		}
	}
	if _, err := on.instant("--from", "yesterday", berlin); err == nil || !strings.Contains(err.Error(), "in the zone CET") {
		t.Errorf("yesterday: %v", err)
	}
	if warned.Len() > 0 {
		t.Errorf("warned of %s", warned.String())
	}
}

// Flags read local times by the rule of schedule.Local, and say where it was needed.
func TestTimesThatAClockDoesNotShowOnce(t *testing.T) {
	for _, c := range []struct{ zone, text, first, says string }{
		{"America/New_York", "2027-03-14 02:30", "2027-03-14T03:01:00-04:00", "end of the gap, 2027-03-14T03:00:00-04:00"},
		{"America/New_York", "2027-11-07 01:30", "2027-11-07T01:31:00-04:00", "taken for the first, 2027-11-07T01:30:00-04:00"},
		{"America/New_York", "2027-03-14T02:30:00", "2027-03-14T03:01:00-04:00", "end of the gap, 2027-03-14T03:00:00-04:00"},
		{"Europe/Berlin", "2027-10-31T02:30", "2027-10-31T02:31:00+02:00", "the second is 2027-10-31T02:30:00+01:00"},
		{"America/Havana", "2027-03-14", "2027-03-14T01:01:00-04:00", "end of the gap"},
		{"America/New_York", "2027-11-07T01:30:00-05:00", "2027-11-07T01:31:00-05:00", ""},
		{"America/New_York", "2027-06-01 02:30", "2027-06-01T02:31:00-04:00", ""},
	} {
		got := belfry(t, "", "cron", "next", "* * * * *", "--timezone", c.zone, "--from", c.text, "-n", "1")
		if got.code != 0 || got.out != c.first+"\n" || (got.errors == "") != (c.says == "") || !strings.Contains(got.errors, c.says) {
			t.Errorf("%s in %s: code %d, %s%s", c.text, c.zone, got.code, got.out, got.errors)
		}
	}
}

func TestATZThatIsTakenForUTCIsNoZone(t *testing.T) {
	berlin := time.FixedZone("Local", 3600)
	for _, c := range []struct {
		tz    string
		local *time.Location
		want  bool
	}{{"CET-1CEST,M3.5.0,M10.5.0/3", time.UTC, true}, {"UTC", time.UTC, false}, {":Etc/UTC", time.UTC, false}, {"", time.UTC, false}, {":/etc/localtime", berlin, false}} {
		if got := unread(c.tz, c.local); got != c.want {
			t.Errorf("%q is unread: %v", c.tz, got)
		}
	}
}

func TestATriggerAtATimeThatTheClockSkips(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, `{"target": {"http": {"url": "http://127.0.0.1:9/x"}}}`, "job", "apply", "report", "-f", "-")
	got := call(0, "", "job", "trigger", "report", "--at", "2027-03-14 02:30", "--timezone", "America/New_York", "-o", "json")
	if !strings.Contains(got.out, `"2027-03-14T07:00:00Z"`) || !strings.Contains(got.errors, "end of the gap") {
		t.Errorf("%s%s", got.out, got.errors)
	}
}
func TestARunIsShownInTheUsersZone(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	var out strings.Builder
	c := &cli{stdout: &out, output: formTable, zone: time.FixedZone("CET", 3600), now: func() time.Time { return at.Add(time.Minute) }}
	r := wire.Run{ID: "a~1", State: "unknown", Reason: "restored", StartedAt: at, EndedAt: at.Add(time.Second), Attempts: []wire.Attempt{
		{Attempt: 1, Outcome: "handed_back", StartedAt: at, EndedAt: at.Add(5 * time.Second), Error: "restored"}}}
	if err := c.showRun(r); err != nil {
		t.Fatal(err)
	}
	if want := "attempt 1  2026-11-21 10:00:00 CET (1m ago), handed back after 5s: restored\n"; !strings.Contains(out.String(), want) {
		t.Errorf("it lacks %q:\n%s", want, out.String())
	}
	if got := why(r); got != "restored" {
		t.Errorf("why is %q, want what reason and error say said once", got)
	}
}
