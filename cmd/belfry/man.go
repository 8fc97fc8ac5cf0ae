package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (c *cli) man() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write the manual pages, one for each command",
		Long:  `Write the manual pages for man(1), one for each command: the text that --help shows.`,
		Example: `  belfry man --dir man1 && man man1/belfry-job-apply.1
  sudo belfry man --dir /usr/local/share/man/man1`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{anyConfig: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return misused("want --dir DIR, the folder for the pages")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			return manTree(cmd.Root(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder `DIR` for the pages, made when it is not there")
	return cmd
}

// manTree writes the page of a command and those of the commands under it.
func manTree(cmd *cobra.Command, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), 0o644); err != nil { //nolint:gosec // everybody may read a manual
		return fmt.Errorf("manual pages: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			if err := manTree(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the manual page of a command, in the language of man(7). The pages of cobra come by a renderer of Markdown that would take 200 KB of this program.
func manPage(cmd *cobra.Command) string {
	var page strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }
	date := ""
	if at := built(); at != nil {
		date = at.UTC().Format(time.DateOnly)
	}
	line(`.TH "%s" "1" "%s" "Belfry %s" "Belfry"`, roff(strings.ToUpper(manName(cmd))), date, roff(thisBuild().Version))
	line(".SH NAME\n%s \\- %s", roff(manName(cmd)), roff(cmd.Short))
	if cmd.Runnable() {
		cmd.InheritedFlags() // brings those of the root in, for the synopsis
		line(".SH SYNOPSIS\n\\fB%s\\fR", roff(cmd.UseLine()))
	}
	line(".SH DESCRIPTION\n%s", manText(cmd.Long, cmd.Short))
	options := func(title string, flags *pflag.FlagSet) {
		if flags.HasAvailableFlags() {
			line(".SH %s", title)
			flags.VisitAll(func(f *pflag.Flag) { page.WriteString(manFlag(f)) })
		}
	}
	options("OPTIONS", cmd.NonInheritedFlags())
	options("GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(cmd.Example))
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, cmd.Parent().CommandPath())
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			also = append(also, sub.CommandPath())
		}
	}
	for i, path := range also {
		also[i] = `\fB` + roff(strings.ReplaceAll(path, " ", "-")) + `\fR(1)`
	}
	if len(also) > 0 {
		line(".SH SEE ALSO\n%s", strings.Join(also, ", "))
	}
	return page.String()
}

// manFlag is the entry of a flag, "" for a hidden one.
func manFlag(f *pflag.Flag) string {
	if f.Hidden || f.Deprecated != "" {
		return ""
	}
	value, usage := pflag.UnquoteUsage(f)
	name := `\fB` + roff("--"+f.Name) + `\fR`
	if f.Shorthand != "" {
		name = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + name
	}
	if value != "" {
		name += ` \fI` + roff(value) + `\fR`
	}
	return ".TP\n" + name + "\n" + roff(usage) + "\n"
}

// manText is the first text that says something, its paragraphs apart.
func manText(text, other string) string {
	if text == "" {
		text = other
	}
	return strings.ReplaceAll(roff(strings.TrimSpace(text)), "\n\n", "\n.PP\n")
}

// roff is text as it is: no backslash, hyphen or dot of it means anything to the formatter.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// built is the time of the commit that this binary was made of, so that the same commit gives the same pages; nil where Go noted
// none.
func built() *time.Time {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				return &at
			}
		}
	}
	return nil
}
