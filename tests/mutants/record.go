package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// fate is what became of a mutant in a full run.
type fate struct {
	Simulation *death `json:"simulation,omitempty"`
	Tests      *death `json:"tests,omitempty"`
	Seeds      int    `json:"seeds,omitempty"` // how many histories the simulation had for it

	// What ran out of time before it found anything, which is no finding.
	LateSeeds []uint64 `json:"lateSeeds,omitempty"`
	LateTests []string `json:"lateTests,omitempty"`
}

// quickest is what finds the mutant soonest, nil where nothing does. An ordinary test is preferred to a seed of about the same time:
// a seed tells another history when the simulation is changed.
func (f fate) quickest() *death {
	if f.Tests == nil || f.Simulation != nil && f.Simulation.Seconds < f.Tests.Seconds-5 {
		return f.Simulation
	}
	return f.Tests
}

// record is what a full run has found, by mutant.
type record struct {
	Fates map[string]fate `json:"fates"`
}

const recordFile = "killers.json"

func readRecord(file string) (record, error) {
	r := record{Fates: map[string]fate{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func (r record) write(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// score counts what found how many.
type score struct {
	all, killed    int // mutants, the two that hold the harness apart; equivalent ones are not counted
	equal          int
	within, inSim  int // those that the simulation can find, and has found
	tests, rules   int // found by ordinary tests; mutants that take out a rule of the protocol
	rulesInSim     int
	alive, unknown []string // neither found nor equivalent; without a record
}

func (r record) score(mutants []mutant) score {
	var s score
	for _, m := range mutants {
		f, known := r.Fates[m.Name]
		switch {
		case m.Name == canary || m.Name == sound:
			continue
		case m.Equal != "":
			s.equal++
			continue
		case !known:
			s.unknown = append(s.unknown, m.Name)
			continue
		}
		s.all++
		if f.Simulation != nil || f.Tests != nil {
			s.killed++
		} else if known {
			s.alive = append(s.alive, m.Name)
		}
		if f.Tests != nil {
			s.tests++
		}
		if m.NoSim == "" {
			s.within++
		}
		if f.Simulation != nil {
			s.inSim++
		}
		if m.Rule != "" {
			s.rules++
			if f.Simulation != nil {
				s.rulesInSim++
			}
		}
	}
	return s
}

func (s score) String() string {
	pending := ""
	if n := len(s.unknown); n > 0 {
		pending = fmt.Sprintf("; %d were not run yet", n)
	}
	return fmt.Sprintf("%d of %d planted bugs found (%d more change nothing that anybody could see): %d by ordinary tests alone, %d of the %d within its reach by the simulation alone, among them %d of the protocol's %d rules",
		s.killed, s.all, s.equal, s.tests, s.inSim, s.within, s.rulesInSim, s.rules) + pending
}

// The lines of the page between which the table stands.
const (
	tableBegin = "<!-- made by make mutants-update: begin -->\n"
	tableEnd   = "<!-- made by make mutants-update: end -->\n"
)

// page gives docs/mutants.md with the table as it is to be.
func (r record) page(text string, mutants []mutant) (string, error) {
	head, rest, ok := strings.Cut(text, tableBegin)
	_, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", errors.New("docs/mutants.md has lost the lines between which its table stands")
	}
	return head + tableBegin + r.table(mutants) + tableEnd + tail, nil
}

func (r record) table(mutants []mutant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s. %s\n", r.score(mutants), r.seeds())
	var areas []string
	for _, m := range mutants {
		if !slices.Contains(areas, m.Area) {
			areas = append(areas, m.Area)
		}
	}
	for _, area := range areas {
		fmt.Fprintf(&b, "\n### %s\n\n| mutant | what it does wrong | breaks | the simulation | ordinary tests |\n|---|---|---|---|---|\n", title(area))
		for _, m := range mutants {
			if m.Area != area {
				continue
			}
			f, known := r.Fates[m.Name]
			what := m.What
			if !known && area != "harness" {
				what += " Not run yet."
			}
			if m.Rule != "" {
				what += " (" + m.Rule + ")"
			}
			if m.Equal != "" {
				what += " Equivalent, because " + m.Equal
			}
			simulated, tested := f.Simulation.cell(m.NoSim)+f.lateSeeds(), f.Tests.cell("")+f.lateTests()
			switch m.Name { // what make mutants asks of them, and fails without
			case canary:
				simulated, tested = "finds it", "every killer finds it"
			case sound:
				simulated, tested = "finds nothing", "none finds anything"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, what, strings.Join(m.Holds, ", "), simulated, tested)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// seeds says how many histories the simulation had for each.
func (r record) seeds() string {
	had := map[int][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Fates)) {
		if n := r.Fates[name].Seeds; n > 0 {
			had[n] = append(had[n], "`"+name+"`")
		}
	}
	counts := slices.SortedFunc(maps.Keys(had), func(a, b int) int { return cmp.Or(len(had[b])-len(had[a]), a-b) })
	if len(counts) == 0 {
		return "The simulation was not run."
	}
	text := fmt.Sprintf("The simulation had %d seeds for each", counts[0])
	for _, n := range counts[1:] {
		text += fmt.Sprintf(", but %d for %s", n, strings.Join(had[n], ", "))
	}
	return text + "."
}

func (f fate) lateSeeds() string {
	if len(f.LateSeeds) == 0 {
		return ""
	}
	return "; out of time: seeds " + strings.Trim(fmt.Sprint(f.LateSeeds), "[]")
}

func (f fate) lateTests() string {
	if len(f.LateTests) == 0 {
		return ""
	}
	return "; out of time: " + strings.Join(f.LateTests, ", ")
}

// when is how far the world had come that shows a mutant.
func (d *death) when() string {
	if d.Steps == 0 {
		return "panic"
	}
	return thousands(d.Steps) + " steps"
}

func (d *death) cell(reason string) string {
	switch {
	case d == nil && reason != "":
		return "out of its reach: " + reason
	case d == nil:
		return "–"
	case d.Package == simulation.Package:
		return fmt.Sprintf("seed %d, %s", d.Seed, d.when())
	}
	return fmt.Sprintf("`%s` `%s`", d.Package, breakable(d.Test))
}

// breakable shortens the names of tests that carry many promises.
func breakable(test string) string {
	const most = 60
	if len(test) <= most {
		return test
	}
	return "…" + test[len(test)-most:]
}

func title(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
