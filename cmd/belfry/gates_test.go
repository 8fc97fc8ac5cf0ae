package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Gates of files are made, changed and left alone, in all forms that a file of jobs has; one that is wrong keeps no other from being applied.
func TestGatesInFiles(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	apply := func(code int, text, want string, says ...string) {
		t.Helper()
		got := call(code, text, "gate", "apply", "-f", "-")
		var rows []string
		for i, line := range strings.Split(strings.TrimSpace(got.out), "\n") {
			if i > 0 {
				rows = append(rows, strings.Join(strings.Fields(line), " "))
			}
		}
		if strings.Join(rows, ", ") != want {
			t.Errorf("%s: %v, want %s", text, rows, want)
		}
		for _, word := range says {
			if !strings.Contains(got.errors, word) {
				t.Errorf("%s: %s, want it to say %q", text, got.errors, word)
			}
		}
	}
	apply(0, "name: a\nlimit: 2\n---\nname: b\nlimit: 3\norder: fifo\n", "a created 2, b created 3")
	shown := call(0, "", "gate", "get", "a", "-o", "yaml").out
	apply(0, `[{"name": "a", "limit": 2}, {"name": "b", "limit": 4, "order": "fifo"}]`, "a unchanged 2, b updated 4")
	apply(0, `{"gates": [{"name": "a", "limit": 5, "max_waiting": 0}]}`, "a updated 5")
	call(0, "", "gate", "close", "a", "--reason", "a fire drill")
	apply(0, shown, "a updated 2") // what get has shown, apply takes
	if g := decode[wire.Gate](t, call(0, "", "gate", "get", "a", "-o", "json").out); g.Closed == nil || g.Closed.Reason != "a fire drill" || g.Limit != 2 {
		t.Errorf("it stands as %+v", g)
	}
	apply(1, "name: c\nlimit: 0\n---\nname: d\nlimit: 1\nrate: {limit: 1}\n---\nname: e\nlimit: 1\n", "e created 1",
		"c (standard input, document 1, line 1)", "line 2: limit: got 0, want a whole number, at least 1, at most 1000; to let nobody in, close the gate", "rate: not available yet; leave it out")
	for text, says := range map[string]string{
		"limit: 1\n":              "the gate has no name",
		"5":                       `got a number, want a gate as an object, an array of gates, or {"gates": [...]}`,
		"gates: 5\n":              "gates: got a number, want an array of gates",
		"":                        "there is no gate in standard input",
		"name: job:a\nlimit: 1\n": "job:a is the own gate of a job",
		"name: x\nlimit: 1\n---\nname: x\nlimit: 2\n": "gate x stands in standard input, document 1, line 1, too",
	} {
		if got := call(1, text, "gate", "apply", "-f", "-"); !strings.Contains(got.errors, says) {
			t.Errorf("%q: %s, want it to say %q", text, got.errors, says)
		}
	}
	call(exitUsage, "", "gate", "apply")
}

// A gate is found by its name, and so is the own one of a job; what a job names is shown with it, and goes out and comes in again.
func TestGatesFromTheCommandLine(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir()))
	call(0, `{"limit": 10}`, "gate", "apply", "stripe", "-f", "-")
	call(0, `{"limit": 4}`, "gate", "apply", "report", "-f", "-")
	call(0, demand("charge", "gates: [stripe, {gate: report, units: 2}]")+"---\n"+demand("report", "overlap: queue")+"---\n"+demand("alone", "overlap: {policy: skip, limit: 7}"), "job", "apply", "-f", "-")
	if got := call(0, "", "job", "get", "charge").out; !strings.Contains(got, "stripe, report (2 units)\n") {
		t.Errorf("the job is shown as\n%s", got)
	}
	exported := call(0, "", "export").out
	if !strings.Contains(exported, "gates:\n- stripe\n- gate: report\n  units: 2\n") || !strings.Contains(call(0, exported, "job", "apply", "-f", "-").out, "unchanged") {
		t.Errorf("exported as\n%s", exported)
	}
	if got := call(1, demand("x", "gates: [none]"), "job", "apply", "-f", "-").errors; !strings.Contains(got, `gates[0].gate: got "none", want a gate that exists`) {
		t.Errorf("a gate that there is not: %s", got)
	}
	limits := map[string]string{"stripe": "10", "report": "4", "job:report": "1", "alone": "7", "job:alone": "7"}
	for name, want := range limits {
		if got := call(0, "", "gate", "get", name).out; !strings.Contains(got, "limit        "+want+"\n") {
			t.Errorf("%s is shown as\n%s", name, got)
		}
		call(0, "", "gate", "line", name)
	}
	call(0, demand("alone", "overlap: {policy: replace, limit: 7}"), "job", "apply", "-f", "-")
	if got := call(0, "", "gate", "get", "alone").out; !strings.Contains(got, "policy       replace\n") || !strings.Contains(got, "line         the latest waits, in place of the one before\n") {
		t.Errorf("where earlier runs give way it is shown as\n%s", got)
	}
	var names []string
	for _, g := range decode[[]wire.Gate](t, call(0, "", "gate", "list", "-o", "json").out) {
		names = append(names, g.Name)
	}
	if want := []string{"report", "stripe", "job:alone", "job:report"}; !slices.Equal(names, want) {
		t.Errorf("listed %v, want %v", names, want)
	}
	if got := call(0, "", "gate", "close", "stripe", "--reason", "they are down").out; !strings.Contains(got, "they are down, since ") {
		t.Errorf("closed: %s", got)
	}
	if got := call(0, "", "gate", "list").out; !strings.Contains(got, "closed: they are down\n") {
		t.Errorf("listed as\n%s", got)
	}
	if got := call(0, "", "gate", "open", "stripe").out; strings.Contains(got, "closed") {
		t.Errorf("opened: %s", got)
	}
	for verb, says := range map[string]string{"close": "pause that job", "open": "never stands still", "delete": "pause that job"} {
		if got := call(exitConflict, "", "gate", verb, "job:report").errors; !strings.Contains(got, says) {
			t.Errorf("%s of a job's own gate: %s", verb, got)
		}
		call(exitNotFound, "", "gate", verb, "none")
	}
	call(0, "", "gate", "delete", "stripe", "report")
	call(exitNotFound, "", "gate", "get", "stripe")
	call(0, "", "gate", "get", "report") // the job's
}

// Gates go out as files have them, and are the same on another server, which takes the jobs that name them in then.
func TestGatesAreExported(t *testing.T) {
	call, other := to(t, dev(t, "--data", t.TempDir())), to(t, dev(t, "--data", t.TempDir()))
	call(0, "name: b\nlimit: 3\norder: fifo\nmax_waiting: 0\n---\nname: a\nlimit: 2\n---\nname: c\nlimit: 1\nmax_wait: 90m\norder: deadline\n", "gate", "apply", "-f", "-")
	call(0, "", "gate", "close", "a")
	call(0, demand("charge", `gates: [b, {gate: a, key: "${ .payload.customer }"}]`)+"---\n"+demand("own", "overlap: queue"), "job", "apply", "-f", "-")
	if got := call(0, "", "job", "get", "charge").out; !strings.Contains(got, "b, a for each ${ .payload.customer }\n") {
		t.Errorf("the job is shown as\n%s", got)
	}
	gates, jobs := call(0, "", "gate", "export").out, call(0, "", "export").out
	if want := "name: a\nlimit: 2\n---\nname: b\nlimit: 3\nmax_waiting: 0\norder: fifo\n---\nname: c\nlimit: 1\norder: deadline\nmax_wait: 90m\n"; gates != want {
		t.Errorf("exported as\n%s\nwant\n%s", gates, want)
	}
	if got := call(0, "", "gate", "get", "c").out; !strings.Contains(got, "order        deadline\n") || !strings.Contains(got, "line         any number may wait, for 90m at the longest\n") {
		t.Errorf("a gate that bounds the wait is shown as\n%s", got)
	}
	if got := other(1, jobs, "job", "apply", "-f", "-"); !strings.Contains(got.errors, `gates[0].gate: got "b", want a gate that exists; make it first, by PUT /v1/gates/b or belfry gate apply`) {
		t.Errorf("without its gates a job is refused with\n%s", got.errors)
	}
	other(0, gates, "gate", "apply", "-f", "-")
	other(0, jobs, "job", "apply", "-f", "-")
	if again := other(0, "", "gate", "export").out + other(0, "", "export").out; again != gates+jobs {
		t.Errorf("from there they are\n%s", again)
	}
	other(0, call(0, "", "gate", "export", "-o", "json").out, "gate", "apply", "-f", "-")
}

// To open the gate of a job names the run behind which its line is seen to stand still, and when that ended: so no other is let go, and the request may be sent again.
func TestAnOpeningNamesTheRunThatIsSeen(t *testing.T) {
	const gate = `{"name": "job:a", "job": "a", "policy": "strict", "blocked_by": [{"run": "a~0mi4lf3k0", "key": "acme", "state": "dead", "since": "2026-11-21T18:05:32.004Z"},
		{"run": "a~0mi4lf3k1", "state": "dead", "since": "2026-11-21T18:05:33Z"}]}`
	first, second := time.Date(2026, 11, 21, 18, 5, 32, 4_000_000, time.UTC), time.Date(2026, 11, 21, 18, 5, 33, 0, time.UTC)
	var asked wire.OpenRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			asked = wire.OpenRequest{}
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
		case r.URL.Path != "/v1/gates/job:a":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status": 404, "code": "gate_not_found"}`))
			return
		}
		_, _ = w.Write([]byte(gate))
	}))
	t.Cleanup(server.Close)
	call := to(t, server.URL)
	for want, args := range map[wire.OpenRequest][]string{
		{Run: "a~0mi4lf3k1", Since: second, Reason: "x"}: {"a", "--reason", "x"},
		{Run: "a~0mi4lf3k0", Since: first, Key: "acme"}:  {"job:a", "--key", "acme"},
		{Run: "a~0mi4lf3k0", Since: first}:               {"a", "--run", "a~0mi4lf3k0"},
		{Key: "other"}:                                   {"a", "--key", "other"},
		{Run: "a~0mi4lf3k7"}:                             {"a", "--run", "a~0mi4lf3k7"},
	} {
		if call(0, "", append([]string{"gate", "open"}, args...)...); asked != want {
			t.Errorf("%v asks %+v, want %+v", args, asked, want)
		}
	}
}
