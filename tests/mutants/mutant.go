package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is one planted bug.
type mutant struct {
	Name  string // of its file, without the ending: "12-fence-newest-only"
	Area  string
	What  string   // which rule it breaks, in a sentence
	Holds []string // the promises and faults that it breaks: "P8", "Fault13"
	Rule  string   // its name where the model of the protocol takes out the same rule, "" for none
	Tests []suite  // the ordinary tests that are tried, in this order
	NoSim string   // why the simulation cannot find it, "" where it can
	From  uint64   // the first seed that the simulation has for it
	// Equal is why nothing can find it: the changed program does the same. "" for the others.
	Equal string
	patch patch
}

// suite is some tests of a package.
type suite struct {
	Package string // folder, from the module's root
	Run     string // for -test.run; "" for all
}

func (s suite) String() string {
	if s.Run == "" {
		return s.Package
	}
	return s.Package + ":" + s.Run
}

// canary and sound are mutants that hold the harness: one that every killer must find, one that none may.
const (
	canary = "00-canary"
	sound  = "00-sound"
)

var fileName = regexp.MustCompile(`^[0-9]{2}-[a-z0-9-]+\.patch$`)

// load reads all mutants, sorted by name.
func load(dir fs.FS) ([]mutant, error) {
	names, err := fs.Glob(dir, "*.patch")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []mutant
	var errs []error
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		if !fileName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%s: want a name such as 07-fence-is-lost.patch", name))
			continue
		}
		m, err := parse(strings.TrimSuffix(path.Base(name), ".patch"), string(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, m)
	}
	return all, errors.Join(errs...)
}

// parse reads a mutant: its header, and after an empty line the patch.
func parse(name, text string) (mutant, error) {
	m := mutant{Name: name, From: 1}
	header, diff, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(header) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			return m, fmt.Errorf("header line %q: want Key: value", strings.TrimSpace(line))
		}
		switch key {
		case "Area":
			m.Area = value
		case "What":
			m.What = value
		case "Breaks":
			m.Holds = strings.Split(value, ", ")
		case "Rule":
			m.Rule = value
		case "Tests":
			for _, one := range strings.Fields(value) {
				pkg, run, _ := strings.Cut(one, ":")
				m.Tests = append(m.Tests, suite{pkg, run})
			}
		case "No-Simulation":
			m.NoSim = value
		case "From":
			from, err := strconv.ParseUint(value, 10, 64)
			if err != nil || from == 0 {
				return m, fmt.Errorf("header From: %s: want the first seed, from 1 on", value)
			}
			m.From = from
		case "Equivalent":
			m.Equal = value
		default:
			return m, fmt.Errorf("header %s is not known: Area, What, Breaks, Rule, Tests, From, No-Simulation, Equivalent are", key)
		}
	}
	var err error
	if m.patch, err = parsePatch(diff); err != nil {
		return m, err
	}
	switch {
	case m.Area == "" || m.What == "" || len(m.Holds) == 0 || len(m.Tests) == 0:
		return m, errors.New("a header wants Area, What, Breaks and Tests")
	case len(m.patch) == 0 && name != sound:
		return m, errors.New("it changes nothing")
	}
	return m, nil
}
