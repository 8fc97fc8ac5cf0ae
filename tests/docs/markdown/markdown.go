// Package markdown reads out of the project's pages what tests hold them to: their links, and the commands that a reader
// is told to run.
package markdown

import (
	"fmt"
	"regexp"
	"strings"
)

// Link is a link to a place in the repository.
type Link struct {
	Line   int    // from 1
	Target string // as written: "store.md#keys", "#keys"
}

// Block is a fenced block of commands: its fence reads "```sh", "```sh run=NAME" where a test asks for it by name, or
// "```sh needs=WHAT" where it wants what the machine of a test has not.
type Block struct {
	Line  int    // of the first command, from 1
	Name  string // "" where the fence has none
	Needs string // "" where a test can run it
	Text  string // ends with a newline
}

var (
	inline  = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	defined = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s+<?([^\s>]+)`)
	code    = regexp.MustCompile("`[^`]*`")
	scheme  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
	heading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
)

// Links lists the links of a page that lead into the repository; those with a scheme, as https:, lead elsewhere.
func Links(page string) []Link {
	var links []Link
	walk(page, func(line int, text string) {
		text = code.ReplaceAllString(text, "")
		for _, m := range append(inline.FindAllStringSubmatch(text, -1), defined.FindAllStringSubmatch(text, -1)...) {
			if !scheme.MatchString(m[1]) {
				links = append(links, Link{line, m[1]})
			}
		}
	}, nil)
	return links
}

// HasAnchor tells whether a page has a heading that a link to #anchor leads to.
func HasAnchor(page, anchor string) bool {
	found := false
	walk(page, func(_ int, text string) {
		if m := heading.FindStringSubmatch(text); m != nil && slug(m[1]) == anchor {
			found = true
		}
	}, nil)
	return found
}

// Commands lists the blocks of a page whose fence says sh, marked or not. Two blocks of one name are an error.
func Commands(page string) ([]Block, error) {
	var blocks []Block
	var err error
	seen := map[string]bool{}
	walk(page, nil, func(line int, fence, text string) {
		words := strings.Fields(fence)
		if len(words) == 0 || words[0] != "sh" {
			return
		}
		block := Block{Line: line, Text: text}
		for _, word := range words[1:] {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "run":
				block.Name = value
			case "needs":
				block.Needs = value
			default:
				err = fmt.Errorf("line %d: got %q, want run=NAME or needs=WHAT", line, word)
			}
		}
		if block.Name != "" && seen[block.Name] {
			err = fmt.Errorf("line %d: a second block run=%s", line, block.Name)
		}
		seen[block.Name] = true
		blocks = append(blocks, block)
	})
	return blocks, err
}

// Example is a command of a session and what it shows.
type Example struct {
	Line    int    // from 1
	Command string // what stands behind "$ ", and the file behind it where it ends with <<'END'
	Shows   string // without the newline at its end
}

// Sessions lists the examples of the blocks of a page whose fence says console, in their order.
func Sessions(page string) []Example {
	var all []Example
	walk(page, nil, func(line int, fence, text string) {
		if fence != "console" {
			return
		}
		line-- // of the newline that is put before it
		for i, part := range strings.Split("\n"+text, "\n$ ") {
			if i > 0 {
				command, shows, _ := strings.Cut(part, "\n")
				if strings.HasSuffix(command, "<<'END'") {
					file, after, _ := strings.Cut(shows, "\nEND")
					command, shows = command+"\n"+file+"\nEND\n", strings.TrimPrefix(after, "\n")
				}
				all = append(all, Example{line, command, strings.TrimRight(shows, "\n")})
			}
			line += strings.Count(part, "\n") + 1
		}
	})
	return all
}

// Marked gives the text of the block that a page marks with run=name.
func Marked(page, name string) (string, error) {
	blocks, err := Commands(page)
	if err != nil {
		return "", err
	}
	for _, block := range blocks {
		if block.Name == name {
			return block.Text, nil
		}
	}
	return "", fmt.Errorf("no block marked ```sh run=%s", name)
}

// Row is a line of a table.
type Row struct {
	Line  int // counted from 1
	Cells int
	Head  int // how many cells the first row of its table has
}

// Rows gives all rows of all tables that a page has outside of fenced blocks. A "|" separates cells in code, too, unless it is written "\|".
func Rows(page string) (rows []Row) {
	head, last := 0, 0
	walk(page, func(line int, text string) {
		text = strings.TrimSpace(text)
		if !strings.HasPrefix(text, "|") {
			return
		}
		text = strings.ReplaceAll(text, `\|`, "")
		cells := strings.Count(strings.TrimSuffix(text[1:], "|"), "|") + 1
		if line != last+1 {
			head = cells
		}
		last = line
		rows = append(rows, Row{line, cells, head})
	}, nil)
	return rows
}

// walk calls prose for each line outside of fenced blocks, and fenced for each block with the line its text begins at.
func walk(page string, prose func(line int, text string), fenced func(line int, fence, text string)) {
	var body strings.Builder
	inside, fence, began := "", "", 0
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		marks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case inside == "" && len(marks) >= 3:
			inside, fence, began = marks, strings.TrimSpace(trimmed[len(marks):]), i+2
			body.Reset()
		case inside != "" && trimmed == inside:
			if fenced != nil {
				fenced(began, fence, body.String())
			}
			inside = ""
		case inside != "":
			body.WriteString(line + "\n")
		case prose != nil:
			prose(i+1, line)
		}
	}
}

// slug is the anchor that hosts of Git repositories give to a heading: lower case, spaces to hyphens, signs left out.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.ReplaceAll(title, "`", "")) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}
