package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// folder writes files of a folder of its own.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// demand is a job on demand, as YAML.
func demand(name string, more ...string) string {
	return "name: " + name + "\ntarget: {http: {url: 'https://example.org/'}}\n" + strings.Join(more, "\n") + "\n"
}

func TestApplyOfFolders(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	dir := folder(t, map[string]string{
		"b.yaml":        demand("b1") + "---\n---\n" + demand("b2", "labels: {n: '007'}", "payload: {big: 123456789012345678901234567890, f: 1.50, yes: no}"),
		"a.json":        `{"jobs": [{"name": "a", "target": {"http": {"url": "https://example.org/"}}}]}`,
		"c.txt":         "not a job",
		".hidden.yaml":  "not: a job",
		"deep/d.yml":    demand("d"),
		".git/x.yaml":   "not: a job",
		"deep/e/f.yaml": demand("f"),
	})
	flat := call(0, "", "job", "apply", "-f", dir)
	for i, name := range []string{"a ", "b1", "b2"} {
		if rows := strings.Split(flat.out, "\n"); len(rows) != 5 || !strings.HasPrefix(rows[i+1], name) || !strings.Contains(rows[i+1], "created") {
			t.Errorf("applied as\n%s\nwant a, b1 and b2, in this order", flat.out)
		}
	}
	if got := call(0, "", "job", "get", "b2", "-o", "json").out; !strings.Contains(got, `"big": 123456789012345678901234567890`) || !strings.Contains(got, `"f": 1.50`) ||
		!strings.Contains(got, `"yes": "no"`) || !strings.Contains(got, `"n": "007"`) {
		t.Errorf("the payload became\n%s", got)
	}
	deep := call(0, "", "job", "apply", "-R", "-f", dir).out
	if strings.Count(deep, "unchanged") != 3 || strings.Count(deep, "created") != 2 {
		t.Errorf("with -R:\n%s", deep)
	}
	if got := call(1, "", "job", "apply", "-f", folder(t, map[string]string{"deep/a.yaml": demand("x")})); !strings.Contains(got.errors, ".yaml, .yml, .json") || !strings.Contains(got.errors, "-R") {
		t.Errorf("a folder without jobs: %s", got.errors)
	}
	twice := folder(t, map[string]string{"1.yaml": demand("new"), "2.yaml": "# again\n" + demand("new")})
	if got := call(1, "", "job", "apply", "-f", twice); !strings.Contains(got.errors, "2.yaml, line 2: job new stands in") || !strings.Contains(got.errors, "1.yaml, line 1, too") {
		t.Errorf("one job twice: %s", got.errors)
	}
	broken := folder(t, map[string]string{"1.yaml": demand("new"), "2.yaml": demand("x") + "---\na: b\n c: d\n"})
	if got := call(1, "", "job", "apply", "-f", broken); !strings.Contains(got.errors, "2.yaml, line 6: want YAML") {
		t.Errorf("a broken file: %s", got.errors)
	}
	if got := call(3, "", "job", "get", "new"); got.out != "" {
		t.Errorf("a job was applied although a file was broken: %s", got.out)
	}
}

func TestADryRunShowsWhatWouldChange(t *testing.T) {
	t.Parallel()
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, demand("stays")+"---\n"+demand("changes", "schedule: {cron: '0 9 * * *'}", "labels: {team: billing}"), "job", "apply", "-f", "-")
	files := demand("stays") + "---\n" + demand("changes", "schedule: {cron: '30 9 * * *'}", "labels: {team: billing}") + "---\n" + demand("comes", "paused: true")
	got := call(0, files, "job", "apply", "-f", "-", "--dry-run")
	for _, want := range []string{
		"--- changes as it stands\n+++ changes (standard input, document 2, line 5)\n@@ -1,5 +1,5 @@\n schedule:\n-  cron: 0 9 * * *\n+  cron: 30 9 * * *\n   timezone: UTC\n target:\n   http:\n",
		"--- /dev/null\n+++ comes (standard input, document 3, line 10)\n@@ -0,0 +1,",
		"\n+paused: true\n",
		"dry run, nothing was stored: 1 created, 1 updated, 1 unchanged\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the dry run lacks\n%s\nin\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "stays") {
		t.Errorf("it shows a job that would not change:\n%s", got.out)
	}
	call(8, files, "job", "apply", "-f", "-", "--dry-run", "--exit-code")
	call(3, "", "job", "get", "comes")
	verdicts := decode[[]verdict](t, call(0, files, "job", "apply", "-f", "-", "--dry-run", "-o", "json").out)
	if len(verdicts) != 3 || verdicts[0].Job != nil || verdicts[1].Change != "updated" || verdicts[1].Was == nil || verdicts[1].Job == nil ||
		verdicts[2].Name != "comes" || verdicts[2].Was != nil || verdicts[2].Job == nil {
		t.Errorf("verdicts %+v", verdicts)
	}
	if got := call(0, files, "job", "apply", "-f", "-", "--dry-run", "--color", "always").out; !strings.Contains(got, "\x1b[31m-  cron: 0 9 * * *\x1b[0m\n\x1b[32m+  cron: 30 9 * * *\x1b[0m") {
		t.Errorf("in colour:\n%q", got)
	}
	refused := call(1, demand("comes", "queue: nowhere")+"---\n"+demand("too"), "job", "apply", "-f", "-", "--dry-run")
	if !strings.Contains(refused.errors, "comes (standard input, document 1, line 1)") || !strings.Contains(refused.errors, "line 3: queue: got") || !strings.Contains(refused.out, "1 created, 1 refused") {
		t.Errorf("a refused job: %s%s", refused.out, refused.errors)
	}
	call(0, files, "job", "apply", "-f", "-")
	if got := call(0, files, "job", "apply", "-f", "-", "--dry-run", "--exit-code").out; got != "dry run, nothing was stored: nothing would change, 3 unchanged\n" {
		t.Errorf("once applied:\n%s", got)
	}
}

func TestPruneDeletesWhatNoFileNames(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	const team, other = "labels: {team: a}", "labels: {team: b}"
	call(0, demand("one", team)+"---\n"+demand("two", team)+"---\n"+demand("three", team)+"---\n"+demand("four", other), "job", "apply", "-f", "-")
	prune := []string{"job", "apply", "-f", "-", "--prune", "--label", "team=a"}
	names := func() (all []string) {
		for _, j := range decode[[]wire.Job](t, call(0, "", "job", "list", "-o", "json").out) {
			all = append(all, j.Name)
		}
		return all
	}
	if got := call(2, demand("one", team), prune...); !strings.Contains(got.errors, "--yes") || len(names()) != 4 {
		t.Errorf("without a person to ask: %s, left %v", got.errors, names())
	}
	if got := call(2, demand("one", team), "job", "apply", "-f", "-", "--prune", "--yes"); !strings.Contains(got.errors, "--label") || len(names()) != 4 {
		t.Errorf("without a label: %s", got.errors)
	}
	call(1, demand("one", team, "queue: nowhere"), append(prune, "--yes")...)
	call(1, `{"jobs": []}`, append(prune, "--yes")...)
	if len(names()) != 4 {
		t.Errorf("pruned although a job was refused, or none was named: left %v", names())
	}
	if got := call(0, demand("one", team), append(prune, "--dry-run")...).out; !strings.Contains(got, "--- two as it stands\n+++ /dev/null\n") || !strings.Contains(got, "2 deleted, 1 unchanged") || len(names()) != 4 {
		t.Errorf("a dry run: %s, left %v", got, names())
	}
	got := call(0, demand("one", team), append(prune, "--yes")...).out
	if strings.Count(got, "deleted") != 2 || fmt.Sprint(names()) != "[four one]" {
		t.Errorf("pruned: %s, left %v", got, names())
	}
}

// meanwhile gives the address of a server in front of another, which at the first deletion lets something happen before it.
func meanwhile(t *testing.T, address string, happen func()) string {
	t.Helper()
	behind, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete || r.URL.Path == "/v1/jobs/batch/delete" {
			once.Do(happen)
		}
		r.Host = behind.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// Between the look at the jobs and the deletion somebody takes the label off one: it is no longer one of those that may go.
func TestWhatWasChangedMeanwhileIsNotDeleted(t *testing.T) {
	address := dev(t, "--data", t.TempDir())
	const team, other = "labels: {team: a}", "labels: {team: b}"
	for _, c := range []struct {
		said string
		args []string
	}{
		{"belfry: two was changed since it was listed, and is not deleted: ", []string{"job", "apply", "-f", "-", "--prune", "--label", "team=a", "--yes"}},
		{"belfry: two: job two was changed meanwhile", []string{"job", "delete", "--label", "team=a", "--yes"}},
	} {
		call := to(t, address)
		call(0, demand("one", other)+"---\n"+demand("two", team)+"---\n"+demand("three", team), "job", "apply", "-f", "-")
		front := to(t, meanwhile(t, address, func() { call(0, demand("two", other), "job", "apply", "-f", "-") }))
		got := front(1, demand("one", other), c.args...)
		if !strings.Contains(got.errors, c.said) {
			t.Errorf("%v: %s%s", c.args, got.out, got.errors)
		}
		call(0, "", "job", "get", "two")
		call(3, "", "job", "get", "three") // of which nothing was changed
	}
}

func TestManyJobsEachWithItsVerdict(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	var text strings.Builder
	for i := range 4*chunkJobs + 50 {
		more := ""
		switch i {
		case 5, 300:
			more = "tarjet: {}" // the form is wrong: the server takes no job of that request
		case 301:
			more = "queue: nowhere"
		}
		fmt.Fprintf(&text, "---\n%s", demand(fmt.Sprintf("job-%03d", i), more))
	}
	got := call(1, text.String(), "job", "apply", "-f", "-", "-o", "json")
	verdicts := decode[[]wire.JobVerdict](t, got.out)
	if len(verdicts) != 4*chunkJobs+50 {
		t.Fatalf("%d verdicts", len(verdicts))
	}
	for i, v := range verdicts {
		bad := i == 5 || i == 300 || i == 301
		if v.Name != fmt.Sprintf("job-%03d", i) || (v.Problem != nil) != bad || bad == (v.Change == "created") {
			t.Errorf("verdict %d is %+v", i, v)
		}
	}
	if strings.Count(got.errors, "belfry: job-") != 3 || !strings.Contains(got.errors, "document 6, line 22): The request") || !strings.Contains(got.errors, "line 24: tarjet: unknown field") {
		t.Errorf("stderr %s", got.errors)
	}
}

// What is shown of a job, whole, is what apply takes, and changes nothing: its name stands at the top, and in files of before under status.
func TestApplyTakesWhatGetShows(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	const spec = `{"name": "report", "schedule": {"cron": "30 9 * * 1-5", "timezone": "Europe/Berlin"}, "target": {"http": {"url": "https://example.org/",
		"headers": {"Authorization": {"secret": "hook"}}}}, "payload": {"a": 1}, "overlap": {"policy": "queue", "limit": 2}, "labels": {"team": "billing"}}`
	call(0, spec, "job", "apply", "-f", "-")
	call(0, "", "job", "pause", "report", "--reason", "a holiday")
	stands := call(0, "", "job", "get", "report", "-o", "json").out
	for _, form := range []string{"yaml", "json"} {
		shown := call(0, "", "job", "get", "report", "-o", form).out
		if !strings.HasPrefix(strings.TrimLeft(shown, "{\n "), map[string]string{"yaml": "name: report\n", "json": `"name": "report"`}[form]) {
			t.Errorf("-o %s shows\n%s", form, shown)
		}
		listed := call(0, "", "job", "list", "-o", form).out
		before := strings.Replace(strings.Replace(shown, "name: report\n", "", 1), "status:\n", "status:\n  name: report\n", 1)
		before = strings.Replace(strings.Replace(before, `"name": "report",`, "", 1), `"status": {`, `"status": {"name": "report",`, 1)
		for what, text := range map[string]string{"get": shown, "list": listed, "a file of before": before} {
			name := filepath.Join(folder(t, map[string]string{"f." + form: text}), "f."+form)
			if got := call(0, "", "job", "apply", "-f", name).out; !strings.Contains(got, "unchanged") {
				t.Errorf("%s -o %s: apply says %s", what, form, got)
			}
		}
	}
	if now := call(0, "", "job", "get", "report", "-o", "json").out; now != stands {
		t.Errorf("it was\n%sand is\n%s", stands, now)
	}
}
