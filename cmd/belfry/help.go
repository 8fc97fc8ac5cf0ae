package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
)

// groups are the headings that belfry --help lists commands under.
var groups = []struct {
	id, title string
	commands  []string
}{
	{"work", "Jobs and runs:", []string{"job", "run", "dead-letter", "queue", "cron", "simulate", "import", "export"}},
	{"server", "Servers and workers:", []string{"dev", "serve", "worker", "tick"}},
	{"care", "Taking care of a server:", []string{"backup", "restore", "doctor", "bench", "plan", "token", "secret", "store", "table", "move"}},
	{"tool", "This command:", []string{"config", "completion", "man", "version", "help"}},
}

// worksAlone marks a command that has subcommands, and does something without them.
const worksAlone = "alone"

// longestLine is how wide a paragraph of a help text is where the terminal is wider, or there is none.
const longestLine = 100

// help makes help texts fit the terminal.
func (c *cli) help(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
	}
	for _, cmd := range root.Commands() {
		for _, g := range groups {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.id
			}
		}
	}
	width := widthOf(c.stdout)
	root.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width),
		"{{if .Runnable}}", `{{if and .Runnable (or (not .HasAvailableSubCommands) (index .Annotations "`+worksAlone+`"))}}`, // "belfry job [flags]" does nothing
	).Replace(root.UsageTemplate()))
	shown := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = reflow(cmd.Long, width)
		shown(cmd, args)
	})
}

// reflow breaks the paragraphs of a text anew. Lines that are indented stay as they are.
func reflow(text string, width int) string {
	if width == 0 || width > longestLine {
		width = longestLine
	}
	var out []string
	for _, paragraph := range strings.Split(text, "\n\n") {
		if slices.ContainsFunc(strings.Split(paragraph, "\n"), func(line string) bool { return strings.HasPrefix(line, " ") }) {
			out = append(out, paragraph)
			continue
		}
		var lines []string
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && runewidth.StringWidth(line)+1+runewidth.StringWidth(word) > width {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		out = append(out, strings.Join(append(lines, line), "\n"))
	}
	return strings.Join(out, "\n\n")
}

// helpFor shows the help of the command that the arguments name.
func helpFor(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return misused("there is no command %q; want one of %s", strings.Join(append([]string{"belfry"}, args...), " "), subcommands(found))
	}
	return found.Help()
}
