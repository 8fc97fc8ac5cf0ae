package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestRunsInBulk(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	const idle = `"target": {"exec": {"argv": ["true"]}}`
	call(0, `[{"name": "a", "labels": {"team": "x"}, `+idle+`}, {"name": "b", `+idle+`}, {"name": "bad", "target": {"exec": {"argv": ["false"]}}, "retry": {"max_attempts": 1}}]`, "job", "apply", "-f", "-")
	var ids []string
	for range 12 {
		ids = append(ids, decode[wire.Run](t, call(0, "", "job", "trigger", "a", "--delay", "1h", "-o", "json").out).ID)
	}
	call(0, "", "job", "trigger", "b", "--delay", "1h")

	if got := call(2, "", "run", "cancel"); !strings.Contains(got.errors, "want runs, or a filter such as --job, or --all") {
		t.Errorf("of nothing: %s", got.errors)
	}
	if got := call(2, "", "run", "cancel", "--job", "a"); !strings.Contains(got.errors, "--yes") {
		t.Errorf("with nobody to ask: %s", got.errors)
	}
	call(2, "", "run", "cancel", ids[0], "--job", "a")
	if got := call(2, "", "run", "list", "--state", "succeded"); !strings.Contains(got.errors, `--state "succeded": want one of scheduled, `) || !strings.Contains(got.errors, "See belfry run list --help.") {
		t.Errorf("a state that is none: %s", got.errors)
	}
	got := call(0, "", "run", "cancel", "--job", "a", "--dry-run")
	if !strings.HasPrefix(got.errors, "12 runs match.\n  a~") || !strings.HasSuffix(got.errors, "  and 2 more\n") || got.out != "" {
		t.Errorf("counted: %s%s", got.out, got.errors)
	}
	if got := call(0, "", "run", "cancel", "--label", "team=x", "--max", "3", "--yes"); got.out != "3 runs cancelled\n" || !strings.Contains(got.errors, "3 runs match.") {
		t.Errorf("three of them: %s%s", got.out, got.errors)
	}
	if got := call(0, "", "run", "cancel", "--job", "a", "--yes"); got.out != "9 runs cancelled\n" {
		t.Errorf("the rest: %s%s", got.out, got.errors)
	}
	if got := call(0, "", "run", "cancel", "--job", "a", "--yes"); got.out != "" || got.errors != "No run matches.\n" {
		t.Errorf("once more: %s%s", got.out, got.errors)
	}
	// Named ones, of which one has ended and one is nowhere.
	got = call(1, "", "run", "cancel", ids[0], ids[1], "a~0mi4lf3k0")
	if got.out != "0 runs cancelled\n" || !strings.Contains(got.errors, "belfry: "+ids[0]+": ") || !strings.Contains(got.errors, "3 of 3 were not cancelled") {
		t.Errorf("by name: %s%s", got.out, got.errors)
	}
	// Of very many that are refused each is named, those behind the first hundred by the code alone.
	many := []string{"run", "cancel"}
	for i := range 120 {
		many = append(many, fmt.Sprintf("a~%09d", i))
	}
	got = call(1, "", many...)
	if strings.Count(got.errors, "belfry: a~") != 120 || strings.Count(got.errors, ": there is no run ") != 100 || strings.Count(got.errors, ": refused as run_not_found\n") != 20 ||
		!strings.Contains(got.errors, "120 of 120 were not cancelled") {
		t.Errorf("of 120 that are nowhere: %s", got.errors)
	}
	call(0, "", "job", "trigger", "b", "--key", "done")
	eventually(t, "a run has succeeded", func() (bool, string) {
		got := call(0, "", "run", "list", "--job", "b", "--state", "succeeded", "-o", "json").out
		return strings.Contains(got, `"id"`), got
	})
	done := decode[[]wire.Run](t, call(0, "", "run", "list", "--job", "b", "--state", "succeeded", "-o", "json").out)[0].ID
	for code, asked := range map[int][]string{7: {"run", "retry", done, "--force"}, 1: {"dead-letter", "redrive", done}} {
		if got := call(code, "", append(asked, "--ended-before", "2000-01-01T00:00:00Z")...); !strings.Contains(got.errors, "not before 2000-01-01T00:00:00Z") {
			t.Errorf("%q of what ended later: %s", asked, got.errors)
		}
	}
	if got := call(0, "", "run", "retry", "--job", "a", "--state", "cancelled", "--ended-before", "2000-01-01T00:00:00Z", "--dry-run").errors; got != "No run matches.\n" {
		t.Errorf("of what ended later: %s", got)
	}
	if got := call(0, "", "run", "retry", "--state", "succeeded", "--dry-run").errors; !strings.HasPrefix(got, "1 run matches.\n  b~") || !strings.Contains(got, "  would be refused: ") {
		t.Errorf("of what would be refused: %s", got)
	}
	if got := decode[[]wire.RunVerdict](t, call(0, "", "run", "retry", "--job", "a", "--state", "cancelled", "--per-second", "1000", "--yes", "-o", "json").out); len(got) != 12 || got[0].Problem != nil {
		t.Errorf("retried: %+v", got)
	}
	if got := decode[[]wire.Run](t, call(0, "", "run", "list", "--job", "a", "--state", "scheduled,queued", "-o", "json").out); len(got) != 12 {
		t.Errorf("%d runs wait again for their time, want 12", len(got))
	}
	for range 3 {
		call(6, "", "job", "trigger", "bad", "--wait")
	}
	if got := call(0, "", "run", "list", "--state", "dead", "--since", "1h", "-o", "json").out; strings.Count(got, `"id"`) != 3 {
		t.Errorf("listed: %s", got)
	}
	if got := call(0, "", "run", "list", "--error", "EXIT CODE", "-o", "json").out; strings.Count(got, `"id"`) != 3 {
		t.Errorf("listed by their error: %s", got)
	}
	if got := call(0, "", "dead-letter", "redrive", "--job", "bad", "--per-second", "1000", "--yes"); got.out != "3 dead letters queued again\n" {
		t.Errorf("redriven: %s%s", got.out, got.errors)
	}
}

func TestJobsInBulk(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "---\n%s", demand(fmt.Sprintf("try-%02d", i), "labels: {half: '"+fmt.Sprint(i%2)+"'}"))
	}
	call(0, text.String()+"---\n"+demand("other"), "job", "apply", "-f", "-")
	paused := func() int {
		return len(decode[[]wire.Job](t, call(0, "", "job", "list", "--paused", "-o", "json").out))
	}

	call(2, "", "job", "pause", "--label", "half=1")
	if got := call(0, "", "job", "pause", "--prefix", "try-", "--dry-run").errors; !strings.HasPrefix(got, "12 jobs match.\n  try-00\n") || !strings.HasSuffix(got, "  and 2 more\n") || paused() != 0 {
		t.Errorf("counted: %s", got)
	}
	if got := call(0, "", "job", "pause", "--contains", "Y-0", "--dry-run").errors; !strings.HasPrefix(got, "10 jobs match.\n  try-00\n") {
		t.Errorf("counted by a part of the name: %s", got)
	}
	if got := call(0, "", "job", "pause", "--label", "half=1", "--yes", "--reason", "r"); got.out != "6 jobs paused\n" || paused() != 6 {
		t.Errorf("paused: %s, %d", got.out, paused())
	}
	if got := call(1, "", "job", "resume", "try-01", "none", "try-03"); got.out != "2 jobs resumed\n" || !strings.Contains(got.errors, "belfry: none: ") || !strings.Contains(got.errors, "1 of 3") || paused() != 4 {
		t.Errorf("resumed: %s%s", got.out, got.errors)
	}
	// Those that are paused keep their reason, and are not resumed by a filter that leaves them out.
	call(0, "", "job", "pause", "--prefix", "try-", "--active", "--yes", "--reason", "later")
	reasons := map[string]int{}
	for _, j := range decode[[]wire.Job](t, call(0, "", "job", "list", "--paused", "-o", "json").out) {
		reasons[j.Status.PausedReason]++
	}
	if reasons["r"] != 4 || reasons["later"] != 8 {
		t.Errorf("reasons of pauses: %v, want 4 of the first and 8 of the second", reasons)
	}
	call(2, "", "job", "label", "try-01")
	call(2, "", "job", "label", "try-01", "--set", "tier")
	if got := call(0, "", "job", "label", "--label", "half=1", "--set", "tier=1,note=a,b", "--remove", "half", "--yes"); got.out != "6 jobs labelled\n" {
		t.Errorf("labelled: %s%s", got.out, got.errors)
	}
	if got := call(0, "", "job", "label", "try-00", "--set", "tier=2", "-o", "json").out; !strings.Contains(got, `"change": "updated"`) {
		t.Errorf("one is labelled: %s", got)
	}
	if got := decode[wire.Job](t, call(0, "", "job", "get", "try-01", "-o", "json").out).Labels; fmt.Sprint(got) != "map[note:a,b tier:1]" {
		t.Errorf("labels of one: %v", got)
	}
	whole := call(0, "", "export", "--job", "try-02", "--job", "try-00").out
	if !strings.HasPrefix(whole, "name: try-02\n") || strings.Count(whole, "\n---\nname: try-00\n") != 1 {
		t.Errorf("two are exported: %s", whole)
	}
	call(3, "", "export", "--job", "none")
	call(2, "", "export", "--job", "try-00", "--paused")
	call(3, "", "job", "delete", "none")
	call(2, "", "job", "delete", "other", "--all")
	if got := call(0, "", "job", "delete", "--prefix", "try-", "--yes").out; got != "12 jobs deleted\n" {
		t.Errorf("deleted: %s", got)
	}
	if got := call(0, "", "job", "delete", "--prefix", "try-", "--yes").errors; got != "No job matches.\n" {
		t.Errorf("once more: %s", got)
	}
	if got := decode[[]wire.Job](t, call(0, "", "job", "list", "-o", "json").out); len(got) != 1 {
		t.Errorf("left: %+v", got)
	}
}

// A person is asked, and anything but yes is no.
func TestTheQuestionBeforeManyAreChanged(t *testing.T) {
	address := dev(t, "--data", t.TempDir())
	call := to(t, address)
	call(0, demand("a")+"---\n"+demand("b"), "job", "apply", "-f", "-")
	for _, c := range []struct {
		answer string
		left   int
	}{{"\n", 2}, {"no\n", 2}, {"\x04", 2}, {"y\n", 0}} {
		cmd := command(t, "job", "delete", "--all", "--address", address)
		cmd.Env = append(cmd.Env, "TERM=xterm")
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 25, Cols: 80})
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		block := make([]byte, 1024)
		for !strings.Contains(said.String(), "[y/N]") {
			n, err := terminal.Read(block)
			if said.Write(block[:n]); err != nil {
				t.Fatalf("it said %q, and %v", said.String(), err)
			}
		}
		if _, err := terminal.WriteString(c.answer); err != nil {
			t.Fatal(err)
		}
		for {
			n, err := terminal.Read(block)
			if said.Write(block[:n]); err != nil {
				break // the process has gone
			}
		}
		code := 0
		if err := cmd.Wait(); err != nil {
			code = cmd.ProcessState.ExitCode()
		}
		_ = terminal.Close()
		left := len(decode[[]wire.Job](t, call(0, "", "job", "list", "-o", "json").out))
		if left != c.left || (code == 0) != (c.left == 0) || !strings.Contains(said.String(), "2 jobs match.") {
			t.Errorf("after %q: %d jobs left, code %d, it said\n%s", c.answer, left, code, said.String())
		}
	}
}

// A file asks for many runs: each has its verdict, what is refused is named by its line, and with keys the file may be sent again.
func TestRunsAreAskedForByAFile(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, demand("a")+"---\n"+demand("b"), "job", "apply", "-f", "-")
	var lines strings.Builder
	for i := range 250 {
		fmt.Fprintf(&lines, `{"job": "a", "delay": "1h", "payload": {"n": %d}, "key": "k%d"}`+"\n", i, i)
	}
	first := decode[[]asked](t, call(0, lines.String(), "job", "trigger", "-f", "-", "-o", "json").out)
	again := decode[[]asked](t, call(0, lines.String(), "job", "trigger", "-f", "-", "-o", "json").out)
	if len(first) != 250 || len(again) != 250 || first[0].Status != 202 {
		t.Fatalf("%d and %d verdicts, the first %+v", len(first), len(again), first[0])
	}
	for i := range first {
		if first[i].ID != again[i].ID || first[i].Job != "a" {
			t.Fatalf("%d: %+v, and sent again %+v", i, first[i], again[i])
		}
	}
	if got := call(0, "", "run", "list", "--job", "a", "--scheduled", "-n", "0", "-o", "json").out; strings.Count(got, `"nominal_time"`) != 250 {
		t.Errorf("%d runs are there, want 250", strings.Count(got, `"nominal_time"`))
	}
	// A list of YAML, the job and the keys by the command line.
	const list = "- payload: {n: 1}\n  delay: 1h\n- {job: b, delay: 2h}\n"
	first = decode[[]asked](t, call(0, list, "job", "trigger", "b", "-f", "-", "--key", "list", "-o", "json").out)
	again = decode[[]asked](t, call(0, `{"runs": [{"payload": {"n": 1}, "delay": "1h"}, {"job": "b", "delay": "2h"}]}`, "job", "trigger", "b", "-f", "-", "--key", "list", "-o", "json").out)
	if len(first) != 2 || len(again) != 2 || first[0].ID != again[0].ID || first[1].ID != again[1].ID {
		t.Errorf("%+v, and sent again %+v", first, again)
	}
	// The right ones are done though others are wrong.
	got := call(1, `{"job": "b", "delay": "1h"}
{"job": "none", "delay": "1h"}
{"job": "b", "deley": "1h"}
{"job": "b", "delay": "soon"}
{"job": "b", "delay": "3h"}
`, "job", "trigger", "-f", "-")
	for _, want := range []string{"belfry: none (standard input, line 2): ", "belfry: b (standard input, line 3): ", "deley: unknown field", "belfry: b (standard input, line 4): ", "3 of 5 runs were refused"} {
		if !strings.Contains(got.errors, want) {
			t.Errorf("not told is %q: %s", want, got.errors)
		}
	}
	if strings.Count(got.out, "refused") != 3 || strings.Count(got.out, " b~") != 2 {
		t.Errorf("printed: %s", got.out)
	}
	for text, want := range map[string]string{`{"payload": 1}`: "line 1: job: missing", "[1]": "got a number, want an object", `{"job": "a", "key": "x", "idempotency_key": "y"}`: "want one of them", "{": "line 1"} {
		if got := call(1, text, "job", "trigger", "-f", "-"); !strings.Contains(got.errors, want) {
			t.Errorf("%s: %s", text, got.errors)
		}
	}
	call(2, "", "job", "trigger")
	call(2, "", "job", "trigger", "-f", "-", "--wait")
	call(2, "", "job", "trigger", "-f", "-", "--payload", "1")
}
