package main

import (
	"fmt"
	"io"
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
	{"work", "Jobs and runs:", []string{"job", "run", "dead-letter", "queue", "stats", "schedule", "cron", "workflow", "simulate", "import", "export"}},
	{"server", "Servers and workers:", []string{"dev", "serve", "console", "worker", "tick"}},
	{"care", "Taking care of a server:", []string{"backup", "restore", "doctor", "bench", "plan", "token", "secret", "store", "table", "move"}},
	{"tool", "This command:", []string{"config", "completion", "man", "version", "help"}},
}

// worksAlone marks a command that has subcommands, and does something without them.
const worksAlone = "alone"

// longestLine is how wide a paragraph of a help text is where the terminal is wider, or there is none.
const longestLine = 100

// help makes help texts fit the terminal, in code and not in templates: with text/template in it the linker keeps every method of every
// SDK, some 20 MB.
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
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd, width))
		return err
	})
	shown := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = reflow(cmd.Long, width)
		shown(cmd, args)
	})
}

// usage is what stands in a command's help below its description. Groups list their commands as they stand there, others by name.
func usage(cmd *cobra.Command, width int) string {
	var out strings.Builder
	part := func(title, text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			fmt.Fprintf(&out, "\n%s\n%s\n", title, text)
		}
	}
	out.WriteString("Usage:\n")
	if cmd.Runnable() && (!cmd.HasAvailableSubCommands() || cmd.Annotations[worksAlone] != "") {
		fmt.Fprintf(&out, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "  %s COMMAND\n", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		part("Aliases:", "  "+cmd.NameAndAliases())
	}
	part("Examples:", cmd.Example)
	if len(cmd.Groups()) == 0 {
		part("Commands:", commandLines(cmd.Commands()))
	}
	for _, g := range cmd.Groups() {
		part(g.Title, commandLines(ofGroup(cmd, g.ID)))
	}
	part("Flags:", cmd.LocalNonPersistentFlags().FlagUsagesWrapped(width))
	if cmd.HasParent() {
		return out.String() + "\n\"belfry help flags\" has the flags of every command.\n"
	}
	more := fmt.Sprintf("  %-26s%s\n", "belfry COMMAND --help", "What a command takes")
	for _, topic := range cmd.Commands() {
		if topic.IsAdditionalHelpTopicCommand() {
			more += fmt.Sprintf("  %-26s%s\n", "belfry help "+topic.Name(), topic.Short)
		}
	}
	part("More:", more)
	return out.String()
}

// ofGroup gives the commands of a group in the order of groups, where everyday's stand first.
func ofGroup(cmd *cobra.Command, id string) []*cobra.Command {
	var all []*cobra.Command
	for _, g := range groups {
		for _, name := range g.commands {
			for _, sub := range cmd.Commands() {
				if g.id == id && sub.Name() == name {
					all = append(all, sub)
				}
			}
		}
	}
	return all
}

func commandLines(all []*cobra.Command) string {
	wide := 0
	for _, cmd := range all {
		wide = max(wide, len(cmd.Name()))
	}
	var out strings.Builder
	for _, cmd := range all {
		if cmd.IsAvailableCommand() || cmd.Name() == "help" {
			fmt.Fprintf(&out, "  %-*s  %s\n", wide, cmd.Name(), cmd.Short)
		}
	}
	return out.String()
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
		return noCommand(found, strings.Join(rest, " "))
	}
	return found.Help()
}
