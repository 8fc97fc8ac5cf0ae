package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/process"
)

// tree gives the module's root and all mutants of it.
func tree(t *testing.T) (garden, []mutant) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	return garden{root, t.TempDir(), 2 * time.Minute}, all
}

func recorded(t *testing.T) record {
	t.Helper()
	r, err := readRecord(recordFile)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each patch applies, changes something, and leaves Go that parses.
func TestEveryPatchAppliesToTheTree(t *testing.T) {
	g, all := tree(t)
	if len(all) < 60 {
		t.Errorf("%d mutants, want 60 at least", len(all))
	}
	for _, m := range all {
		if _, err := g.plant(m); err != nil {
			t.Errorf("%v\n(make the patch anew: docs/mutants.md says how)", err)
		}
	}
}

// beyond are rules of the protocol that its model does not take out: that the last write of a pass asks whose the shard is, and that a
// sweep arms a check last.
var beyond = []string{"uncond", "checkfirst"}

// The rules that the model of the protocol takes out, one at a time, each have a mutant in the code.
func TestEveryRuleOfTheProtocolHasItsMutant(t *testing.T) {
	_, all := tree(t)
	text, err := os.ReadFile("../model/errors.pml")
	if err != nil {
		t.Fatal(err)
	}
	rules := slices.Clone(beyond)
	for _, m := range regexp.MustCompile(`#define (\w+) *\(planted == \d+\)`).FindAllStringSubmatch(string(text), -1) {
		rules = append(rules, m[1])
	}
	if len(rules) == len(beyond) {
		t.Fatal("errors.pml takes out no rule")
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(all, func(m mutant) bool { return m.Rule == rule }) {
			t.Errorf("no mutant has Rule: %s", rule)
		}
	}
	for _, m := range all {
		if m.Rule != "" && !slices.Contains(rules, m.Rule) {
			t.Errorf("%s has Rule: %s, and there is none", m.Name, m.Rule)
		}
	}
}

// What is known of the mutants is of those that there are, each was found or is explained, and the page shows it.
func TestEveryMutantIsFoundOrExplained(t *testing.T) {
	_, all := tree(t)
	r := recorded(t)
	s := r.score(all)
	for _, name := range s.unknown {
		t.Errorf("%s was not run yet: make mutants-update MUTANTS=%s", name, name)
	}
	for _, name := range s.alive {
		t.Errorf("%s survives, and its header does not say why it is Equivalent", name)
	}
	for name := range r.Fates {
		if !slices.ContainsFunc(all, func(m mutant) bool { return m.Name == name }) {
			t.Errorf("%s has a record and no patch: make mutants-update", name)
		}
	}
	text, err := os.ReadFile(filepath.Join("../..", pageFile))
	if err != nil {
		t.Fatal(err)
	}
	page, err := r.page(string(text), all)
	if err != nil {
		t.Fatal(err)
	}
	if page != string(text) {
		t.Errorf("%s does not show what %s holds: go run ./tests/mutants -table", pageFile, recordFile)
	}
}

// canaries are the killers that the canary is tried on in each run of the tests; `make mutants` tries it on all.
var canaries = []suite{simulation, {Package: "tests/protocol", Run: "Scripts"}, {Package: "lib/run"}}

// The day it passes, the harness is broken.
func TestTheCanaryDies(t *testing.T) {
	g, all := tree(t)
	i := slices.IndexFunc(all, func(m mutant) bool { return m.Name == canary })
	if i < 0 {
		t.Fatalf("there is no %s", canary)
	}
	p, err := g.plant(all[i])
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range canaries {
		d, err := p.killer(t.Context(), s, 4)
		switch {
		case err != nil:
			t.Fatal(err)
		case d == nil:
			t.Errorf("%s finds nothing wrong with the canary", s)
		default:
			t.Logf("%s: %s", s, d.text(""))
		}
	}
}

// some is how many mutants a drawn seed plants.
const some = 5

// Some mutants are found again by what found them before: those whose names MUTANTS tells, else some that a drawn seed chooses.
func TestSomeMutantsDie(t *testing.T) {
	if !process.Drawn() && os.Getenv("MUTANTS") == "" {
		t.Skip("make test-deep plants some; MUTANTS=\"words of names\" tells which")
	}
	g, all := tree(t)
	r := recorded(t)
	var known []mutant
	for _, m := range all {
		if r.Fates[m.Name].quickest() != nil {
			known = append(known, m)
		}
	}
	if len(known) == 0 {
		t.Fatal("no mutant has a record of what found it")
	}
	// Not one behind the other: neighbours are of one area, and break one package.
	rounds := uint64((len(known) + some - 1) / some)
	var chosen []mutant
	for i := process.Seed(t) % rounds; i < uint64(len(known)); i += rounds {
		chosen = append(chosen, known[i])
	}
	if word := os.Getenv("MUTANTS"); word != "" {
		var err error
		if chosen, err = choose(known, strings.Fields(word)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range chosen {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			p, err := g.plant(m)
			if err != nil {
				t.Fatal(err)
			}
			before := r.Fates[m.Name].quickest()
			d, err := p.again(t.Context(), *before)
			switch {
			case err != nil:
				t.Fatal(err)
			case d == nil:
				t.Errorf("what found it before, %s, finds it no more. Does the test still look? If it was changed for good: make mutants-update MUTANTS=%s", before.text(""), m.Name)
			default:
				t.Log(d.text(""))
			}
		})
	}
}

func TestAPatchIsFoundWhereItsLinesAre(t *testing.T) {
	const old = "a\nb\nc\nd\ne\nf\ng\n"
	p, err := parsePatch("--- a/x.go\n+++ b/x.go\n@@ -2,5 +2,5 @@\n b\n c\n-d\n+D\n e\n f\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"in its place":      {old, "a\nb\nc\nD\ne\nf\ng\n"},
		"further down":      {"0\n1\n2\n3\n" + old, "0\n1\n2\n3\na\nb\nc\nD\ne\nf\ng\n"},
		"with another edge": {"a\nB\nc\nd\ne\nF\ng\n", "a\nB\nc\nD\ne\nF\ng\n"},
		"nearest of two":    {"b\nc\nd\ne\nf\nx\nx\nx\nb\nc\nd\ne\nf\n", "b\nc\nD\ne\nf\nx\nx\nx\nb\nc\nd\ne\nf\n"},
		"gone":              {"a\nb\nc\nX\ne\nf\ng\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p[0].apply(test.text)
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestWhatTestsSayIsUnderstood(t *testing.T) {
	for name, test := range map[string]struct {
		text      string
		simulated bool
		want      heard
	}{
		"all pass": {text: "=== RUN   TestA\n    a_test.go:3: a note\n--- PASS: TestA (0.00s)\nPASS\n"},
		"a subtest": {text: "=== RUN   TestA/b\n    a_test.go:3: P2: lost\n    --- FAIL: TestA/b (0.00s)\n",
			want: heard{death: death{Test: "TestA/b", Said: "a_test.go:3: P2: lost"}}},
		"a list": {text: "=== RUN   TestA\n    a_test.go:3: seed 4:\n        P2: lost\n--- FAIL: TestA (0.00s)\n",
			want: heard{death: death{Test: "TestA", Said: "a_test.go:3: seed 4: P2: lost"}}},
		"a panic":  {text: "=== RUN   TestA\npanic: at the disco\n", want: heard{death: death{Test: "TestA", Said: "panic: at the disco"}}},
		"too long": {text: "=== RUN   TestA\npanic: test timed out after 1m\n", want: heard{late: "TestA"}},
		"too long, several": {text: "=== RUN   TestA/b\n=== RUN   TestC\npanic: test timed out after 1m\n\trunning tests:\n\t\tTestA/b (59s)\n\t\tTestC (1s)\n\ngoroutine 7\n\t\tTestD (9m)\n",
			want: heard{late: "TestA/b"}},
		"a seed": {text: "=== RUN   TestSeeds\n    sim_test.go:3: seed 1: 99 steps, 3 calls\n    sim_test.go:4: seed 2 broke a promise; it was known after step 55 of 99:\n        P8: started\n",
			simulated: true,
			want: heard{death: death{Test: "TestSeeds", Seed: 2, Steps: 55, Said: "sim_test.go:4: seed 2 broke a promise; it was known after step 55 of 99: P8: started"},
				ended: map[uint64]int64{1: 99}}},
		"a seed that breaks down": {text: "=== RUN   TestSeeds\n    sim_test.go:3: seed 6: 99 steps, 3 calls\npanic: nil\n", simulated: true,
			want: heard{death: death{Test: "TestSeeds", Seed: 7, Said: "panic: nil"}, ended: map[uint64]int64{6: 99}}},
		"a seed that is cut short": {text: "=== RUN   TestSeeds\n    sim_test.go:3: seed 6: cut short after 99 steps\n    sim_test.go:3: seed 7: 9 steps, 3 calls\n--- PASS: TestSeeds\n", simulated: true,
			want: heard{death: death{Seed: 8}, ended: map[uint64]int64{7: 9}, short: []world{{6, 99}}}},
		"a seed that is undecided": {text: "=== RUN   TestSeeds\n    sim_test.go:3: seed 6: 9 steps, 3 calls\n    sim_test.go:4: seed 6 is undecided after its 9 steps:\n        undecided: P1\n--- FAIL: TestSeeds\n",
			simulated: true, want: heard{death: death{Seed: 7}, undecided: []uint64{6}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := watch(strings.NewReader(test.text), test.simulated)
			if test.want.ended == nil {
				test.want.ended = map[uint64]int64{}
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// What differs in how many seeds it had is named.
func TestSeedsAreToldOfEach(t *testing.T) {
	r := record{Fates: map[string]fate{"a": {Seeds: 12}, "b": {Seeds: 100}, "c": {Seeds: 12}, "d": {}}}
	if got, want := r.seeds(), "The simulation had 12 seeds for each, but 100 for `b`."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
