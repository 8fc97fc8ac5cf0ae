package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What a file says of overlapping runs is shown in words, goes out and comes in again, and a dry run shows its change.
func TestOverlapInFiles(t *testing.T) {
	here, there := to(t, dev(t, "--data", t.TempDir())), to(t, dev(t, "--data", t.TempDir()))
	files := demand("free") + "---\n" + demand("one", "overlap: skip") + "---\n" + demand("three", "overlap: {policy: skip, limit: 3}") + "---\n" + demand("said", "overlap: allow") + "---\n" + demand("line", "overlap: queue") +
		"---\n" + demand("short", "overlap: {policy: queue, limit: 2, max_waiting: 5}") + "---\n" + demand("wide", "overlap: {limit: 4}") +
		"---\n" + demand("soon", "overlap: skip", "retry: {max_attempts: 3}") + "---\n" + demand("each", `overlap: {policy: queue, limit: 2, key: "${ .payload.customer }"}`)
	here(0, files, "job", "apply", "-f", "-")
	const long = "; a run that keeps failing is in progress for about 3 h\n"
	for name, want := range map[string]string{"one": "skips a run while one is in progress" + long, "three": "skips a run while 3 are in progress" + long, "line": "a run waits while one is in progress, and is skipped while 1000 wait" + long,
		"short": "a run waits while 2 are in progress, and is skipped while 5 wait" + long, "wide": "a run waits while 4 are in progress" + long, "soon": "skips a run while one is in progress\n",
		"each": "a run waits while 2 are in progress that have the same value of ${ .payload.customer }, and is skipped while 1000 wait" + long, "free": "", "said": ""} {
		got := here(0, "", "job", "get", name).out
		_, says, found := strings.Cut(got, "\noverlap ")
		if found != (want != "") || !strings.HasPrefix(strings.TrimLeft(says, " "), want) {
			t.Errorf("%s is shown as\n%s\nwant %q of overlap", name, got, want)
		}
	}
	if got := here(0, files, "job", "apply", "-f", "-").out; strings.Count(got, "unchanged") != 9 {
		t.Errorf("applied again:\n%s", got)
	}
	for _, form := range []string{"yaml", "json"} {
		out := here(0, "", "export", "-o", form).out
		if want := map[string]string{"yaml": "overlap: skip\n", "json": `"overlap": "skip"`}[form]; strings.Count(out, want) != 2 || strings.Count(out, "overlap") != 7 {
			t.Errorf("exported as\n%s", out)
		}
		there(0, out, "job", "apply", "-f", "-")
		if again := there(0, "", "export", "-o", form).out; again != out {
			t.Errorf("it changed on its way:\n%s\n%s", out, again)
		}
	}
	got := here(0, demand("one", "overlap: {policy: skip, limit: 2}")+"---\n"+demand("three")+"---\n"+demand("free", "overlap: skip"), "job", "apply", "-f", "-", "--dry-run").out
	for _, want := range []string{"\n-overlap: skip\n+overlap:\n+  policy: skip\n+  limit: 2\n", "\n-overlap:\n-  policy: skip\n-  limit: 3\n", "\n+overlap: skip\n", "3 updated, 0 unchanged"} {
		if !strings.Contains(got, want) {
			t.Errorf("the dry run lacks %q in\n%s", want, got)
		}
	}
	refused := here(1, demand("x", "overlap: strictly")+"---\n"+demand("y", "overlap: {policy: skip, key: .job}", "unique: {for: 24h}")+"---\n"+demand("z", "overlap: skip"), "job", "apply", "-f", "-")
	for _, want := range []string{
		`x (standard input, document 1, line 1)`, `line 3: overlap: got "strictly", want one of allow, skip, queue, queue_one, queue_latest, cancel, replace or strict`,
		`overlap.key: got ".job", want an expression in it, such as ${ .payload.customer }`, "unique: not available yet; leave it out",
	} {
		if !strings.Contains(refused.errors, want) {
			t.Errorf("it lacks %q in\n%s", want, refused.errors)
		}
	}
	if !strings.Contains(refused.out, "z ") || !strings.Contains(refused.out, "created") {
		t.Errorf("the job that is right was not applied:\n%s", refused.out)
	}
}

func TestARunThatWasSkippedSaysWhatWasInItsWay(t *testing.T) {
	var out strings.Builder
	c := &cli{stdout: &out, output: formTable}
	r := wire.Run{ID: "report~0mi4lf3k1", Job: "report", State: "skipped", Reason: "overlap", Why: wire.NewWhy("overlap", "job:report", "", "skip", []string{"report~0mi4lf3k0"}, "")}
	if err := c.showRun(r); err != nil {
		t.Fatal(err)
	}
	const want = "report~0mi4lf3k0 was in progress (overlap: skip)"
	if !strings.Contains(out.String(), "reason  "+want+"\n") {
		t.Errorf("it lacks %q:\n%s", want, out.String())
	}
	if row := runRow(r); row[len(row)-1] != want {
		t.Errorf("listed as %q", row)
	}
}

// A job fires each second and takes longer, in a process of its own: what is skipped says so in a list, alone, to who waits for it and in metrics.
func TestRunsThatOverlapAreSkipped(t *testing.T) {
	t.Parallel()
	_, address, _ := startProcess(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	call(0, `{"name": "report", "schedule": {"every": "1s"}, "target": {"exec": {"argv": ["sleep", "5"]}}, "overlap": "skip", "labels": {"belfry.metrics": "gate"}}`, "job", "apply", "-f", "-")
	var skipped []wire.Run
	eventually(t, "runs are skipped", func() (bool, string) {
		got := call(0, "", "run", "list", "--job", "report", "--state", "skipped", "-o", "json")
		skipped = decode[[]wire.Run](t, got.out)
		return len(skipped) >= 3, got.out
	})
	r := skipped[len(skipped)-1]
	if r.Why == nil || r.Why.Code != "overlap" || r.Why.Gate != "job:report" || r.Why.Policy != "skip" || len(r.Why.InTheWay) != 1 {
		t.Fatalf("%s: why %+v", r.ID, r.Why)
	}
	want := r.Why.InTheWay[0] + " was in progress (overlap: skip)"
	if got := call(0, "", "run", "get", r.ID).out; !regexp.MustCompile(`(?m)^state +skipped\nreason +` + regexp.QuoteMeta(want) + `$`).MatchString(got) {
		t.Errorf("alone:\n%s", got)
	}
	if got := call(0, "", "run", "list", "--state", "skipped").out; !strings.Contains(got, want) {
		t.Errorf("listed:\n%s", got)
	}
	if first := decode[wire.Run](t, call(0, "", "run", "get", r.Why.InTheWay[0], "-o", "json").out); slices.Contains([]string{"scheduled", "skipped"}, first.State) || first.Attempt != 1 {
		t.Errorf("in its way was %+v", first)
	}

	// Of a job that runs on demand, whoever waits is told.
	call(0, `{"name": "once", "target": {"exec": {"argv": ["sleep", "600"]}}, "timeout": "1h", "overlap": "skip"}`, "job", "apply", "-f", "-")
	first := decode[wire.Run](t, call(0, "", "job", "trigger", "once", "-o", "json").out)
	eventually(t, "the first is running", func() (bool, string) {
		got := call(0, "", "run", "get", first.ID, "-o", "json").out
		return decode[wire.Run](t, got).State == "running", got
	})
	second := call(exitOutcome, "", "job", "trigger", "once", "--wait")
	for _, says := range []string{"  skipped: " + first.ID + " was in progress (overlap: skip)\n", " ended as skipped: " + first.ID + " was in progress (overlap: skip)\n"} {
		if !strings.Contains(second.errors, says) {
			t.Errorf("it lacks %q:\n%s", says, second.errors)
		}
	}
	id, _, _ := strings.Cut(second.errors, "\n")
	if got := decode[wire.Run](t, call(0, "", "run", "retry", id, "-o", "json").out); got.State != "queued" || got.Why != nil {
		t.Errorf("retried while there is no room: %+v", got)
	}
	call(0, "", "run", "cancel", first.ID)
	eventually(t, "the second has its turn", func() (bool, string) {
		got := call(0, "", "run", "get", id, "-o", "json").out
		return decode[wire.Run](t, got).State == "running", got
	})
	call(0, "", "run", "cancel", id)

	_, shown := fetched(t, address+"/metrics")
	for name, least := range map[string]int{`belfry_gate_skipped_total{gate="job:report"}`: 3, `belfry_gate_let_in_total{gate="job:report"}`: 1,
		`belfry_gate_skipped_total{gate="job:*"}`: 1, `belfry_gate_let_in_total{gate="job:*"}`: 2} {
		found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\d+)$`).FindStringSubmatch(shown)
		var n int
		if found != nil {
			fmt.Sscan(found[1], &n)
		}
		if n < least {
			t.Errorf("%s is %v, want %d or more", name, found, least)
		}
	}
}

// Each value of a key has a limit and a line of its own: the gate's listing has both values, and the line that of one or of both.
func TestGatesOfValues(t *testing.T) {
	t.Parallel()
	_, address, _ := startProcess(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	call(0, `{"name": "import", "target": {"exec": {"argv": ["sleep", "600"]}}, "timeout": "1h", "overlap": {"policy": "queue", "key": "${ .payload.customer }"}}`, "job", "apply", "-f", "-")
	ids := map[string][]string{}
	for _, customer := range []string{"acme", "acme", "other", "acme"} {
		r := decode[wire.Run](t, call(0, "", "job", "trigger", "import", "--payload", `{"customer": "`+customer+`"}`, "-o", "json").out)
		ids[customer] = append(ids[customer], r.ID)
		eventually(t, "it runs, or waits", func() (bool, string) {
			got := call(0, "", "run", "get", r.ID, "-o", "json").out
			return slices.Contains([]string{"running", "waiting"}, decode[wire.Run](t, got).State), got
		})
	}
	acme := ids["acme"]
	listed := decode[[]wire.Gate](t, call(0, "", "gate", "list", "-o", "json").out)
	if len(listed) != 1 || listed[0].Key != "${ .payload.customer }" || listed[0].InProgress != 2 || listed[0].Waiting != 2 || listed[0].MoreKeys ||
		!slices.Equal(listed[0].Keys, []wire.KeyGate{{Key: "acme", InProgress: 1, Waiting: 2}, {Key: "other", InProgress: 1}}) {
		t.Errorf("the gate is listed as %+v", listed)
	}
	if got := call(0, "", "gate", "list").out; !regexp.MustCompile(`(?m)^job:import +queue +1 +2 +2 +2 +for each \$\{ \.payload\.customer }\n- acme +1 +1 +2\n- other +1 +1 +0$`).MatchString(got) {
		t.Errorf("in a table:\n%s", got)
	}
	for _, asked := range [][]string{nil, {"--key", "acme"}} {
		line := decode[[]wire.InLine](t, call(0, "", append([]string{"gate", "line", "import", "-o", "json"}, asked...)...).out)
		if len(line) != 2 || line[0].ID != acme[1] || line[1].ID != acme[2] || line[0].Key != "acme" {
			t.Errorf("the line of %q is %+v", asked, line)
		}
	}
	if got := call(0, "", "gate", "line", "import", "--key", "other", "-o", "json").out; len(decode[[]wire.InLine](t, got)) != 0 {
		t.Errorf("the line of another:\n%s", got)
	}
	if got := call(0, "", "run", "get", acme[2]).out; !strings.Contains(got, "One run is before it in line at the gate job:import for the key acme, and "+acme[0]+" is in progress") {
		t.Errorf("who waits is shown as\n%s", got)
	}
	call(0, "", "run", "cancel", acme[0])
	eventually(t, "the next one has its turn", func() (bool, string) {
		got := call(0, "", "run", "get", acme[1], "-o", "json").out
		return decode[wire.Run](t, got).State == "running", got
	})
	call(0, "", "job", "delete", "import")
}
