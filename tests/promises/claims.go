package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// claim is one promise or fault.
type claim struct {
	name string // "P6", "Fault19": no leading zeros
	text string
}

// deferred is why a claim has no test yet.
type deferred struct {
	owner, reason string
}

// test is something that runs and carries the names of claims.
type test struct {
	file, name string
	claims     []string
}

var claimName = regexp.MustCompile(`^(P|Fault)0*([1-9][0-9]*)$`)

// canonical gives the name of a claim without leading zeros, false for any other word.
func canonical(word string) (string, bool) {
	m := claimName.FindStringSubmatch(word)
	if m == nil {
		return "", false
	}
	return m[1] + m[2], true
}

// named lists the claims in the name of a test, whose words are set apart as Go does it in the names of subtests.
func named(name string) []string {
	var all []string
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_/ .:", r) }) {
		if claim, ok := canonical(word); ok && !slices.Contains(all, claim) {
			all = append(all, claim)
		}
	}
	return all
}

// lines are those of a text that say something, with their numbers.
func lines(text string, each func(line string) error) error {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := each(line); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

func parseClaims(text string) ([]claim, error) {
	var claims []claim
	seen := map[string]bool{}
	err := lines(text, func(line string) error {
		word, says, _ := strings.Cut(line, " ")
		name, ok := canonical(word)
		if !ok || name != word || says == "" {
			return fmt.Errorf("%q: want P or Fault with its number, a space, and what it says", line)
		}
		if seen[name] {
			return fmt.Errorf("%s stands twice", name)
		}
		seen[name] = true
		claims = append(claims, claim{name, says})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claims.txt, %w", err)
	}
	return claims, nil
}

func parseLater(text string) (map[string]deferred, error) {
	later := map[string]deferred{}
	err := lines(text, func(line string) error {
		word, rest, _ := strings.Cut(line, " ")
		owner, reason, ok := strings.Cut(rest, ": ")
		if !ok || owner == "" || reason == "" {
			return fmt.Errorf("%q: want the claim, a space, the work that owns it, a colon and the reason", line)
		}
		if _, ok := later[word]; ok {
			return fmt.Errorf("%s stands twice", word)
		}
		later[word] = deferred{owner, reason}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("later.txt, %w", err)
	}
	return later, nil
}

// report prints each claim with what holds it; the error lists all that is wrong.
func report(out io.Writer, claims []claim, later map[string]deferred, tests []test) error {
	var wrong []error
	holds := map[string][]test{}
	for _, t := range tests {
		for _, name := range t.claims {
			if !slices.ContainsFunc(claims, func(c claim) bool { return c.name == name }) {
				wrong = append(wrong, fmt.Errorf("%s: %s names %s, which claims.txt does not have", t.file, t.name, name))
			}
			holds[name] = append(holds[name], t)
		}
	}
	held := 0
	for _, c := range claims {
		fmt.Fprintf(out, "%-8s%s\n", c.name, c.text)
		for _, t := range holds[c.name] {
			fmt.Fprintf(out, "          %s: %s\n", t.file, t.name)
		}
		why, deferred := later[c.name]
		switch {
		case len(holds[c.name]) > 0 && deferred:
			wrong = append(wrong, fmt.Errorf("%s: later.txt leaves it to %s, but a test holds it by now: take that line out", c.name, why.owner))
		case len(holds[c.name]) > 0:
			held++
		case deferred:
			fmt.Fprintf(out, "          left to %s: %s\n", why.owner, why.reason)
		default:
			fmt.Fprintln(out, "          NO TEST")
			wrong = append(wrong, fmt.Errorf("%s: no test carries its name, and later.txt names no work that owns it", c.name))
		}
	}
	for name := range later {
		if !slices.ContainsFunc(claims, func(c claim) bool { return c.name == name }) {
			wrong = append(wrong, fmt.Errorf("later.txt names %s, which claims.txt does not have", name))
		}
	}
	fmt.Fprintf(out, "%d claims: %d held by %d tests, %d left to later work, %d wrong.\n", len(claims), held, len(tests), len(later), len(wrong))
	return errors.Join(wrong...)
}
