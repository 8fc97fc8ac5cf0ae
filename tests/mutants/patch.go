package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// patch is what a unified diff says, by file.
type patch []change

// change is what becomes of one file.
type change struct {
	File  string // from the module's root
	hunks []hunk
}

// hunk is one place of a file. Lines keep their newlines.
type hunk struct {
	line     int // where it began when it was made, counted from 1
	old, new []string
	// lead and tail are how many lines at either end are the same in old and new. They may be left away where the file has drifted.
	lead, tail int
}

func parsePatch(text string) (patch, error) {
	var p patch
	var at *hunk
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "--- "):
			at = nil
		case strings.HasPrefix(line, "+++ "):
			p = append(p, change{File: strings.TrimPrefix(strings.TrimSpace(line[4:]), "b/")})
		case strings.HasPrefix(line, "@@ "):
			if len(p) == 0 {
				return nil, errors.New("a hunk before the first file")
			}
			begin, _, _ := strings.Cut(strings.TrimPrefix(line, "@@ -"), ",")
			n, err := strconv.Atoi(begin)
			if err != nil {
				return nil, fmt.Errorf("hunk %q: %w", strings.TrimSpace(line), err)
			}
			file := &p[len(p)-1]
			file.hunks = append(file.hunks, hunk{line: n})
			at = &file.hunks[len(file.hunks)-1]
		case at == nil:
			return nil, fmt.Errorf("line %q: want --- a/file, +++ b/file, @@", strings.TrimSpace(line))
		case line == "\n": // an editor has taken the blank of an empty line
			at.old, at.new = append(at.old, line), append(at.new, line)
		case line[0] == ' ':
			at.old, at.new = append(at.old, line[1:]), append(at.new, line[1:])
		case line[0] == '-':
			at.old = append(at.old, line[1:])
		case line[0] == '+':
			at.new = append(at.new, line[1:])
		default:
			return nil, fmt.Errorf("line %q of a hunk: want it to begin with a blank, + or -", strings.TrimSpace(line))
		}
	}
	for _, c := range p {
		for i := range c.hunks {
			h := &c.hunks[i]
			if slices.Equal(h.old, h.new) {
				return nil, fmt.Errorf("%s: the hunk at line %d changes nothing", c.File, h.line)
			}
			for h.lead < min(len(h.old), len(h.new)) && h.old[h.lead] == h.new[h.lead] {
				h.lead++
			}
			for h.tail < min(len(h.old), len(h.new))-h.lead && h.old[len(h.old)-1-h.tail] == h.new[len(h.new)-1-h.tail] {
				h.tail++
			}
		}
	}
	return p, nil
}

// apply gives the file with the change made. Its hunks are looked for by their lines, the nearest to where they were made first: the
// file may have moved on above them, and lines at their edges may have changed, but for one on each side.
func (c change) apply(text string) (string, error) {
	lines := slices.Collect(strings.Lines(text))
	drift := 0
	for _, h := range c.hunks {
		at, fuzz := h.find(lines, h.line-1+drift)
		if at < 0 {
			return "", fmt.Errorf("%s: the lines of the hunk at line %d are not there any more: make the patch anew", c.File, h.line)
		}
		head, tail := min(fuzz, max(h.lead-1, 0)), min(fuzz, max(h.tail-1, 0))
		drift = at - head - (h.line - 1) + len(h.new) - len(h.old)
		lines = slices.Replace(lines, at, at+len(h.old)-head-tail, h.new[head:len(h.new)-tail]...)
	}
	return strings.Join(lines, ""), nil
}

// find gives where the hunk's old lines stand, and how many of its edges had to be left away; -1 for nowhere.
func (h hunk) find(lines []string, near int) (at, fuzz int) {
	for fuzz = range 3 {
		head, tail := min(fuzz, max(h.lead-1, 0)), min(fuzz, max(h.tail-1, 0))
		old := h.old[head : len(h.old)-tail]
		best := -1
		for i := 0; i+len(old) <= len(lines); i++ {
			if slices.Equal(lines[i:i+len(old)], old) && (best < 0 || apart(i, near+head) < apart(best, near+head)) {
				best = i
			}
		}
		if best >= 0 {
			return best, fuzz
		}
	}
	return -1, 0
}

func apart(a, b int) int { return max(a-b, b-a) }
