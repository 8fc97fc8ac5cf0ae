package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// to gives a caller of commands for one server, which fails the test on another exit code than the one asked for.
func to(t *testing.T, address string) func(code int, stdin string, args ...string) outcome {
	return func(code int, stdin string, args ...string) outcome {
		t.Helper()
		got := belfry(t, stdin, append(args, "--address", address)...)
		if got.code != code {
			t.Fatalf("belfry %s: code %d, want %d\n%s%s", strings.Join(args, " "), got.code, code, got.out, got.errors)
		}
		return got
	}
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestJobsAndRunsFromTheCommandLine(t *testing.T) {
	data := t.TempDir()
	address := dev(t, "--data", data, "--allow-exec")
	call := to(t, address)

	call(0, `{"name": "hello", "target": {"exec": {"argv": ["/bin/sh", "-c", "echo hello; cat"]}}, "payload": {"n": 1}}`, "job", "apply", "-f", "-")
	r := decode[wire.Run](t, call(0, "", "job", "trigger", "hello", "--payload", `{"n": 2}`, "--key", "k", "-o", "json").out)
	if again := decode[wire.Run](t, call(0, "", "job", "trigger", "hello", "--payload", `{"n": 2}`, "--key", "k", "-o", "json").out); again.ID != r.ID {
		t.Errorf("the same key gave %s and %s", r.ID, again.ID)
	}
	eventually(t, "the run succeeds", func() (bool, string) {
		got := call(0, "", "run", "get", r.ID, "-o", "json")
		return decode[wire.Run](t, got.out).State == "succeeded", got.out
	})
	if got := call(0, "", "run", "logs", r.ID).out; got != "hello\n{\"n\":2}" {
		t.Errorf("log %q", got)
	}
	if got := call(0, "", "run", "get", r.ID).out; !strings.Contains(got, "succeeded") || !strings.Contains(got, r.ID) {
		t.Errorf("shown as %s", got)
	}
	if got := decode[[]wire.Run](t, call(0, "", "run", "list", "--job", "hello", "--state", "succeeded", "-o", "json").out); len(got) != 1 {
		t.Errorf("%d runs listed, want 1", len(got))
	}
	if got := call(0, "", "run", "list", "--state", "failed", "-o", "json").out; got != "[]\n" {
		t.Errorf("an empty list is %q", got)
	}

	// What get shows, apply takes.
	file := filepath.Join(t.TempDir(), "job.json")
	shown := call(0, "", "job", "get", "hello", "-o", "json").out
	if err := os.WriteFile(file, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	call(0, "", "job", "apply", "-f", file)
	if again := call(0, "", "job", "get", "hello", "-o", "json").out; again != shown {
		t.Errorf("applying what was shown changed it:\n%s\n%s", shown, again)
	}
	call(0, `{"jobs": [{"name": "a", "target": {"http": {"url": "http://127.0.0.1:9/x"}}}, {"name": "b", "target": {"http": {"url": "http://127.0.0.1:9/x"}}}]}`, "job", "apply", "-f", "-")
	got := call(1, `[{"name": "c", "target": {"http": {"url": "http://127.0.0.1:9/x"}}}, {"name": "d", "tarjet": {}}]`, "job", "apply", "-f", "-")
	if !strings.Contains(got.out, "c  ") || !strings.Contains(got.errors, "d (standard input, line 1): ") || !strings.Contains(got.errors, "tarjet") {
		t.Errorf("a file with a wrong job: stdout %q, stderr %q", got.out, got.errors)
	}
	call(1, `{"target": {"http": {"url": "http://127.0.0.1:9/x"}}}`, "job", "apply", "-f", "-")
	call(1, `{"name": 1}`, "job", "apply", "-f", "-")
	call(1, `{`, "job", "apply", "-f", "-")
	if got := call(0, "", "job", "list", "-n", "2").out; strings.Count(got, "\n") != 3 || !strings.Contains(got, "on demand") {
		t.Errorf("listed as %q", got)
	}
	call(0, "", "job", "pause", "hello", "--reason", "a fire drill")
	if got := call(0, "", "job", "get", "hello").out; !strings.Contains(got, "a fire drill") {
		t.Errorf("paused: %s", got)
	}
	if got := decode[[]wire.Job](t, call(0, "", "job", "list", "--paused", "-o", "json").out); len(got) != 1 {
		t.Errorf("%d paused jobs, want 1", len(got))
	}
	call(0, "", "job", "resume", "hello")
	later := decode[wire.Run](t, call(0, "", "job", "trigger", "hello", "--delay", "1h", "-o", "json").out)
	call(0, "", "run", "cancel", later.ID, "--reason", "not needed")
	call(exitConflict, "", "run", "cancel", later.ID)
	call(0, "", "run", "retry", later.ID)
	call(0, "", "job", "delete", "hello", "a")
	if got := call(exitNotFound, "", "job", "get", "hello"); !strings.Contains(got.errors, "hello") {
		t.Errorf("stderr %q", got.errors)
	}
	if got := call(0, "", "doctor").out; strings.Contains(got, "problem") {
		t.Errorf("the doctor finds %s", got)
	}
	if got := belfry(t, "", "doctor", "--address", "http://127.0.0.1:1"); got.code != 1 || !strings.Contains(got.out, "problem") {
		t.Errorf("no server: %d %s", got.code, got.out)
	}
}

func TestFilesOfJobs(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	const target = `"target": {"http": {"url": "https://example.org/"}}`
	for _, c := range []struct{ text, says string }{
		{`"x"`, `standard input, line 1: got text, want a job as an object, an array of jobs, or {"jobs": [...]}`},
		{`null`, "got null, want a job"},
		{`5`, "got a number, want a job"},
		{``, "there is no job in standard input"},
		{"# later\n---\n", "there is no job in standard input"},
		{`{"jobs": 5}`, "jobs: got a number, want an array of jobs"},
		{`{"jobs": null}`, "jobs: got null, want an array of jobs"},
		{`{"jobs": [{` + target + `}], ` + target + `}`, `want nothing beside "jobs"`},
		{"[\n1]", "standard input, line 2: got a number, want an object"},
		{"{" + target + "}\n{\"name\": 1, " + target + `}`, "standard input, document 2, line 2: name: got a number, want text"},
		{`{"name": "a", "name": "b", ` + target + `}`, "line 1: name: given twice; first in line 1"},
		{"target: {}\npayload: {a: 1,\n  a: 2}\n", "standard input, line 3: a: given twice; first in line 2"},
		{"a: 1\n b: 2\n", "standard input, line 2: want YAML"},
		{"retry:\n  max_attemps: 3\n" + `"target": {"http": {"url": "https://example.org/"}}`, "n (standard input, line 1): The request does not have the form that /openapi.json describes.\n  line 2: retry.max_attemps: unknown field"},
		{`{"Name": "a", ` + target + `}`, "Name: unknown field"},
	} {
		got := call(1, c.text, "job", "apply", "n", "-f", "-")
		if !strings.Contains(got.errors, c.says) || strings.Contains(got.errors, "Go ") || strings.Count(got.out, "\n") > 1 {
			t.Errorf("%s: %q, stdout %q; want %q", c.text, got.errors, got.out, c.says)
		}
	}
	if got := call(0, `{"jobs": []}`, "job", "apply", "-f", "-"); got.out != "" {
		t.Errorf("no job was applied, and it prints %q", got.out)
	}
	call(0, `{"name": "a", "description": "<&>", `+target+`}`, "job", "apply", "-f", "-")
	if got := call(0, "", "job", "list", "-o", "json").out; !strings.Contains(got, `"<&>"`) {
		t.Errorf("listed as %s", got)
	}
}

func TestDeadLettersFromTheCommandLine(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	call(0, `{"target": {"exec": {"argv": ["/bin/sh", "-c", "echo broken >&2; exit 3"], "permanent_exit_codes": [3]}}}`, "job", "apply", "bad", "-f", "-")
	call(0, "", "job", "trigger", "bad")
	var letters []wire.DeadLetter
	eventually(t, "the dead letter is listed", func() (bool, string) {
		got := call(0, "", "dead-letter", "list", "--job", "bad", "-o", "json").out
		letters = decode[[]wire.DeadLetter](t, got)
		return len(letters) == 1, got
	})
	call(0, `{"target": {"exec": {"argv": ["true"]}}}`, "job", "apply", "bad", "-f", "-")
	if got := call(0, "", "dead-letter", "redrive", letters[0].ID).out; !strings.Contains(got, "queued") {
		t.Errorf("redriven: %s", got)
	}
	eventually(t, "the redriven run succeeds", func() (bool, string) {
		got := call(0, "", "run", "get", letters[0].ID, "-o", "json").out
		return decode[wire.Run](t, got).State == "succeeded", got
	})
	if got := call(1, "", "dead-letter", "redrive", letters[0].ID); !strings.Contains(got.errors, "1 of 1") {
		t.Errorf("redriven again: %s", got.errors)
	}
	call(0, `{"target": {"exec": {"argv": ["/bin/sh", "-c", "exit 3"]}}, "retry": {"max_attempts": 1}}`, "job", "apply", "bad", "-f", "-")
	for range 2 {
		call(6, "", "job", "trigger", "bad", "--wait")
	}
	letters = decode[[]wire.DeadLetter](t, call(0, "", "dead-letter", "list", "-o", "json").out)
	if len(letters) != 2 {
		t.Fatalf("dead letters %+v", letters)
	}
	if got := call(0, "", "dead-letter", "discard", letters[0].ID, "--note", "sent by hand").out; got != "1 dead letter discarded\n" {
		t.Errorf("discarded: %s", got)
	}
	if got := call(0, "", "run", "get", letters[0].ID).out; !strings.Contains(got, ": sent by hand\n") {
		t.Errorf("shown: %s", got)
	}
	call(0, "", "job", "delete", "bad")
	if got := call(0, "", "dead-letter", "discard", "--error", "EXIT CODE", "--yes"); got.out != "1 dead letter discarded\n" || got.errors != "1 dead letter matches.\n" {
		t.Errorf("discarded by their error: %s%s", got.out, got.errors)
	}
	if got := call(0, "", "dead-letter", "redrive", "--all", "--yes"); got.errors != "No dead letter matches.\n" {
		t.Errorf("nothing is left, but: %s%s", got.out, got.errors)
	}
}

const userCrontab = `PATH=/usr/bin:/bin
MAILTO=ann@example.org
*/5 * * * * true --quiet
@reboot start-it
0 9 * * 1 cat%first%second
`

func TestImportOfACrontab(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	plan := call(0, userCrontab, "import", "crontab", "-", "--dry-run", "--timezone", "Europe/Berlin").out
	for _, want := range []string{"3     created", "5     created", "1     setting", "2     note", "call nothing, for the server would refuse mail-ann-", "4     lost", "Europe/Berlin", "@reboot names no time"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	if got := call(0, "", "job", "list", "-o", "json").out; got != "[]\n" {
		t.Fatalf("a dry run made jobs: %s", got)
	}
	first := call(1, userCrontab, "import", "crontab", "-", "--timezone", "Europe/Berlin")
	if strings.Count(first.out, "created") != 2 || !strings.Contains(first.errors, "1 of 3 jobs were not kept") {
		t.Errorf("imported: %s%s", first.out, first.errors)
	}
	before := call(0, "", "job", "list", "--label", "source=crontab", "-o", "json").out
	second := call(1, userCrontab, "import", "crontab", "-", "--timezone", "Europe/Berlin")
	if strings.Count(second.out, "unchanged") != 2 {
		t.Errorf("imported again: %s", second.out)
	}
	jobs := decode[[]wire.Job](t, call(0, "", "job", "list", "--label", "source=crontab", "-o", "json").out)
	for i, j := range decode[[]wire.Job](t, before) {
		if jobs[i].Status.Generation != j.Status.Generation {
			t.Errorf("importing again made another generation of %s", j.Name)
		}
	}
	edited := strings.Replace(userCrontab, "*/5 * * * *", "*/6 * * * *", 1)
	if got := call(1, edited, "import", "crontab", "-", "--timezone", "Europe/Berlin"); strings.Count(got.out, "updated") != 1 || strings.Count(got.out, "unchanged") != 1 {
		t.Errorf("an edited schedule: %s", got.out)
	}
	// One of them is run now, to see that a worker gives it what cron would.
	var name string
	for _, j := range jobs {
		if strings.HasPrefix(j.Name, "cat-") {
			name = j.Name
		}
	}
	r := decode[wire.Run](t, call(0, "", "job", "trigger", name, "-o", "json").out)
	eventually(t, "the command ends", func() (bool, string) {
		got := call(0, "", "run", "get", r.ID, "-o", "json").out
		r = decode[wire.Run](t, got)
		return r.State == "succeeded", got
	})
	if got := call(0, "", "run", "logs", r.ID).out; got != "first\nsecond\n" {
		t.Errorf("log %q", got)
	}
	call(2, userCrontab, "import", "crontab", "-", "--timezone", "Mars/Base")
	call(1, "* * * * * x\x00\n", "import", "crontab", "-")
	call(1, userCrontab, "import", "crontab", "-", "--user", "nobody-of-that-name")
}

func TestAnImportGoesOnBehindWhatIsRefused(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir())) // which lets no job start a process
	got := call(1, userCrontab, "import", "crontab", "-", "--timezone", "UTC")
	for _, want := range []string{"3     lost", "5     lost", "2     note", "4     lost", "allow-exec"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the report lacks %q:\n%s", want, got.out)
		}
	}
	if !strings.Contains(got.errors, "3 of 3 jobs were not kept") {
		t.Errorf("stderr %q", got.errors)
	}
	got = belfry(t, userCrontab, "import", "crontab", "-", "--timezone", "UTC", "--address", "http://127.0.0.1:1")
	if got.code != exitNoAnswer || !strings.Contains(got.errors, "line 2, and those below it") || !strings.Contains(got.out, "4     lost") || strings.Contains(got.out, "5  ") {
		t.Errorf("without a server: code %d, %s%s", got.code, got.out, got.errors)
	}
}

func TestZoneOfTheHost(t *testing.T) {
	dir := t.TempDir()
	zones := filepath.Join(dir, "zoneinfo", "Asia")
	if err := os.MkdirAll(zones, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("zoneinfo/Asia/Tokyo", "")
	link := filepath.Join(dir, "localtime")
	if err := os.Symlink(filepath.Join(zones, "Tokyo"), link); err != nil {
		t.Fatal(err)
	}
	named, broken, none := write("timezone", "Europe/Paris\n"), write("broken", "Nowhere/Land\n"), filepath.Join(dir, "none")
	for _, c := range []struct{ tz, file, link, want string }{
		{"America/Lima", named, link, "America/Lima"},
		{":America/Lima", named, link, "America/Lima"},
		{"", named, link, "Europe/Paris"},
		{"", none, link, "Asia/Tokyo"},
		{"", broken, link, "Asia/Tokyo"},
		{":" + link, none, link, "Asia/Tokyo"},
		{"/usr/share/zoneinfo/America/Lima", none, link, "America/Lima"},
		{"EST5EDT4,M3.2.0,M11.1.0", none, link, ""},
		{"CET-1CEST,M3.5.0,M10.5.0/3", named, link, ""},
		{"europe/berlin", named, link, ""},
		{"", none, none, "UTC"},
		{"", broken, named, ""},
	} {
		got, err := hostZone(c.tz, c.file, c.link)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q, %s, %s: got %q, %v; want %q", c.tz, filepath.Base(c.file), filepath.Base(c.link), got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "--timezone Europe/Berlin") {
			t.Errorf("%q: %v does not ask for --timezone", c.tz, err)
		}
	}
}

func TestStoreOfAStoppedServerCanBeRead(t *testing.T) {
	data := t.TempDir()
	t.Run("serve", func(t *testing.T) {
		call := to(t, dev(t, "--data", data))
		call(0, `{"target": {"http": {"url": "http://127.0.0.1:9/x"}}, "description": "look here"}`, "job", "apply", "report", "-f", "-")
		r := decode[wire.Run](t, call(0, "", "job", "trigger", "report", "--delay", "1h", "-o", "json").out)
		if err := os.WriteFile(filepath.Join(data, "id"), []byte(r.ID), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	id, _ := os.ReadFile(filepath.Join(data, "id"))
	for _, args := range [][]string{{"--job", "report"}, {"--run", string(id)}, {"shard#00/"}, {"meta/layout"}} {
		got := belfry(t, "", append([]string{"store", "show", "--data", data}, args...)...)
		if got.code != 0 || !strings.Contains(got.out, `"value": {`) {
			t.Errorf("%v: code %d, %s%s", args, got.code, got.out, got.errors)
		}
		if args[0] == "--job" && !strings.Contains(got.out, "look here") {
			t.Errorf("the job is shown as %s", got.out)
		}
	}
	for _, args := range [][]string{{"--job", "none"}, {"nothing/"}, {"no/such"}} {
		if got := belfry(t, "", append([]string{"store", "show", "--data", data}, args...)...); got.code != 1 {
			t.Errorf("%v: code %d %s", args, got.code, got.out)
		}
	}
	if got := belfry(t, "", "store", "show", "--data", filepath.Join(data, "none"), "--job", "x"); got.code != 1 || !strings.Contains(got.errors, "no store") {
		t.Errorf("no folder: %d %s", got.code, got.errors)
	}
	if _, err := os.Stat(filepath.Join(data, "none")); err == nil {
		t.Error("looking made a folder")
	}
}

// The line that dev prints must work as it is printed.
func TestTheFirstJobThatIsSuggested(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{true, false} {
		address := dev(t, "--data", t.TempDir(), "--allow-exec="+map[bool]string{true: "true", false: "false"}[allow])
		call := to(t, address)
		line := firstJob("belfry", address, allow)
		parts := regexp.MustCompile(`^echo '([^']*)' \| belfry (job apply .*); sleep 5; belfry (run list.*)$`).FindStringSubmatch(line)
		if parts == nil {
			t.Fatal(line)
		}
		for _, command := range parts[2:] {
			if got := belfry(t, parts[1], strings.Fields(command)...); got.code != 0 {
				t.Fatalf("%s: %s", command, got.errors)
			}
		}
		eventually(t, "a run succeeds", func() (bool, string) {
			got := call(0, "", "run", "list", "--job", "hello", "--state", "succeeded", "-o", "json").out
			return len(decode[[]wire.Run](t, got)) > 0, call(0, "", "run", "list").out
		})
	}
}

// What was printed may be cut, and whoever looks at the run is told, in lists too; of a run that is whole nothing is said.
func TestACutResultIsToldWhereRunsAreShown(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	for name, bytes := range map[string]string{"long": "262145", "whole": "262144", "short": "10"} {
		call(0, `{"name": "`+name+`", "target": {"exec": {"argv": ["head", "-c", "`+bytes+`", "/dev/zero"]}}}`, "job", "apply", "-f", "-")
		call(0, "", "job", "trigger", name, "--wait")
		cut := name == "long"
		listed := decode[[]wire.Run](t, call(0, "", "run", "list", "--job", name, "-o", "json").out)
		if len(listed) != 1 || listed[0].ResultCut != cut || len(listed[0].Result) != 0 {
			t.Errorf("%s: listed as %+v, want it cut: %t, and no result", name, listed, cut)
		}
		if r := decode[wire.Run](t, call(0, "", "run", "get", listed[0].ID, "-o", "json").out); r.ResultCut != cut {
			t.Errorf("%s: got with result_cut %t", name, r.ResultCut)
		}
		for _, args := range [][]string{{"run", "list", "--job", name}, {"run", "get", listed[0].ID}, {"job", "get", name}} {
			if got := call(0, "", args...).out; strings.Contains(got, cutResult) != cut {
				t.Errorf("%s: %v shows\n%s\nwant it to say that the result was cut: %t", name, args, got, cut)
			}
		}
	}
}
