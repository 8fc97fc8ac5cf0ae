package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/terminal"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// showDiff prints what a dry run would change of a job, as a unified diff of YAML, and before it how long the job's runs are tried, where that
// is new. Of a job that would stay as it is it
// says nothing.
func (a *apply) showDiff(v verdict, place string) error {
	was, err := definitionText(v.Was)
	if err != nil {
		return err
	}
	is, err := definitionText(v.Job)
	if err != nil {
		return err
	}
	old, next := v.Name+" as it stands", v.Name+" ("+place+")"
	switch v.Change {
	case "unchanged":
		return nil
	case "created":
		old = "/dev/null"
	case "deleted":
		next = "/dev/null"
	}
	var text strings.Builder
	switch {
	case v.Job == nil, v.Job.Retry.Tries() == "":
	case v.Was == nil, v.Was.Retry.Tries() == "":
		fmt.Fprintln(&text, terminal.Line(v.Name), v.Job.Retry.Tries())
	case v.Was.Retry.Tries() != v.Job.Retry.Tries():
		fmt.Fprintln(&text, terminal.Line(v.Name), v.Job.Retry.Tries()+"; as it stands, it", v.Was.Retry.Tries())
	}
	a.writeDiff(&text, old, was, next, is)
	_, err = io.WriteString(a.stdout, text.String())
	return err
}

// writeDiff writes two texts, each under its name, as a unified diff.
func (c *cli) writeDiff(text *strings.Builder, old, was, next, is string) {
	fmt.Fprintln(text, c.tint("--- "+terminal.Line(old), bold))
	fmt.Fprintln(text, c.tint("+++ "+terminal.Line(next), bold))
	for _, line := range unified(linesOf(was), linesOf(is)) {
		switch line[0] {
		case '-':
			line = c.tint(line, red)
		case '+':
			line = c.tint(line, green)
		case '@':
			line = c.tint(line, faint)
		}
		fmt.Fprintln(text, line)
	}
}

func (c *cli) tint(text, colour string) string {
	if !c.colour {
		return text
	}
	return paint(text, colour)
}

// definitionText is a job's definition as YAML, without what only the server says of it; "" for none.
func definitionText(j *wire.Job) (string, error) {
	if j == nil {
		return "", nil
	}
	value, err := jobfile.Of(j.Definition)
	if err != nil {
		return "", fmt.Errorf("show %s: %w", j.Name, err)
	}
	return string(manifest.YAML(value)), nil
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// around is how many lines that stay are shown around those that change.
const around = 3

// edit is a line of a diff: ' ' stays, '-' goes, '+' comes.
type edit struct {
	sign byte
	line string
}

// unified is the difference of two texts in hunks, as diff -u has it.
func unified(old, next []string) []string {
	edits := editsOf(old, next)
	var text []string
	oldLine, nextLine := 1, 1
	for i := 0; i < len(edits); {
		if edits[i].sign == ' ' {
			i, oldLine, nextLine = i+1, oldLine+1, nextLine+1
			continue
		}
		// A hunk goes on as long as the next change is near enough for their surroundings to touch.
		end, quiet := i, 0
		for k := i; k < len(edits) && quiet <= 2*around; k++ {
			if edits[k].sign == ' ' {
				quiet++
			} else {
				quiet, end = 0, k+1
			}
		}
		first := max(0, i-around)
		last := min(len(edits), end+around)
		hunk := edits[first:last]
		olds, nexts := 0, 0
		for _, e := range hunk {
			if e.sign != '+' {
				olds++
			}
			if e.sign != '-' {
				nexts++
			}
		}
		text = append(text, fmt.Sprintf("@@ -%s +%s @@", lineSpan(oldLine-(i-first), olds), lineSpan(nextLine-(i-first), nexts)))
		for _, e := range hunk {
			text = append(text, string(e.sign)+e.line)
		}
		for _, e := range edits[i:last] {
			if e.sign != '+' {
				oldLine++
			}
			if e.sign != '-' {
				nextLine++
			}
		}
		i = last
	}
	return text
}

// lineSpan is the lines of a hunk as diff -u counts them: of none, the line before.
func lineSpan(first, count int) string {
	if count == 0 {
		first--
	}
	return fmt.Sprintf("%d,%d", first, count)
}

// maxTable bounds the work of finding what two texts have in common. Definitions are far below it.
const maxTable = 4 << 20

// editsOf finds the longest common subsequence of lines. Beyond the bound everything goes and everything comes.
func editsOf(old, next []string) []edit {
	rows, columns := len(old)+1, len(next)+1
	common := make([]int, 0)
	if rows*columns <= maxTable {
		common = make([]int, rows*columns) // at i, j: how many lines old[i:] and next[j:] have in common
		for i := len(old) - 1; i >= 0; i-- {
			for j := len(next) - 1; j >= 0; j-- {
				if old[i] == next[j] {
					common[i*columns+j] = common[(i+1)*columns+j+1] + 1
				} else {
					common[i*columns+j] = max(common[(i+1)*columns+j], common[i*columns+j+1])
				}
			}
		}
	}
	var edits []edit
	i, j := 0, 0
	for i < len(old) || j < len(next) {
		switch {
		case len(common) > 0 && i < len(old) && j < len(next) && old[i] == next[j]:
			edits = append(edits, edit{' ', old[i]})
			i, j = i+1, j+1
		case i < len(old) && (j == len(next) || len(common) == 0 || common[(i+1)*columns+j] >= common[i*columns+j+1]):
			edits = append(edits, edit{'-', old[i]})
			i++
		default:
			edits = append(edits, edit{'+', next[j]})
			j++
		}
	}
	return edits
}
