package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md and the tables of docs/configuration.md, instead of comparing them")

// What docs/reference/cli.md says is what the commands say of themselves.
func TestTheReferenceIsTheCode(t *testing.T) {
	held(t, filepath.Join("..", "..", "docs", "reference", "cli.md"), func(string) string { return reference(wholeTree()) })
}

// The tables of docs/configuration.md are those of the settings that the commands take.
func TestTheConfigurationPageIsTheCode(t *testing.T) {
	root := wholeTree()
	held(t, filepath.Join("..", "..", "docs", "configuration.md"), func(page string) string {
		page = between(t, page, "profiles", profileTable(root))
		for _, name := range roles {
			if role := roleNamed(root, name); role != nil {
				page = between(t, page, name, roleTable(role))
			}
		}
		return page
	})
}

func wholeTree() *cobra.Command {
	return (&cli{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, now: time.Now}).root()
}

// held compares a page with what it should be, or writes it.
func held(t *testing.T, path string, want func(page string) string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	made := want(string(page))
	if made == string(page) {
		return
	}
	if !*update {
		had, has := firstDifference(string(page), made)
		t.Fatalf("%s is not what the code says; make generate writes it\n  page: %s\n  code: %s", path, had, has)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(made), 0o644); err != nil {
		t.Fatal(err)
	}
}

func firstDifference(a, b string) (string, string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return as[i], bs[i]
		}
	}
	return fmt.Sprintf("%d lines", len(as)), fmt.Sprintf("%d lines", len(bs))
}

// between puts a table between the two marks of a page.
func between(t *testing.T, page, name, table string) string {
	t.Helper()
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("the page lacks %q, or %q after it", begin, end)
	}
	return before + begin + table + end + after
}

func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Reference of the commands\n\nThis page is made from the commands (`make generate`); [cli.md](../cli.md) tells how to use them.\n")
	b.WriteString("[configuration.md](../configuration.md) says what else than flags sets things, [cli.md](../cli.md#exit-codes) what exit codes mean.\n\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "- %s", strings.TrimSuffix(g.title, ":"))
		lead := ": "
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.id && cmd.IsAvailableCommand() {
				fmt.Fprintf(&b, "%s[`%s`](#belfry-%[2]s)", lead, cmd.Name())
				lead = ", "
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## Flags of every command\n\n" + flagTable(root.PersistentFlags()))
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				describe(&b, sub)
				visit(sub)
			}
		}
	}
	visit(root)
	return b.String()
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n", cmd.CommandPath(), markdown(cmd.Short))
	if cmd.HasSubCommands() {
		b.WriteString("\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(b, "- [`%s`](#%s): %s\n", sub.CommandPath(), strings.ReplaceAll(sub.CommandPath(), " ", "-"), markdown(sub.Short))
			}
		}
	} else {
		cmd.InheritedFlags() // brings those of the root in
		fmt.Fprintf(b, "\n```text\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "\n%s\n", paragraphs(cmd.Long))
	}
	if !cmd.HasSubCommands() && cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	if flags := flagTable(cmd.LocalNonPersistentFlags()); flags != "" {
		b.WriteString("\n" + flags)
	}
}

// paragraphs is a help text as Markdown; what is indented there is a block.
func paragraphs(text string) string {
	all := strings.Split(text, "\n\n")
	for i, p := range all {
		if strings.HasPrefix(p, "  ") {
			all[i] = "```text\n" + p + "\n```"
		} else {
			all[i] = markdown(p)
		}
	}
	return strings.Join(all, "\n\n")
}

var markdownSigns = strings.NewReplacer("*", `\*`, "<", `\<`, "|", `\|`)

func markdown(text string) string { return markdownSigns.Replace(text) }

func flagTable(flags *pflag.FlagSet) string {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + kind)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, defaultOf(f), markdown(usage)))
	})
	if rows == nil {
		return ""
	}
	return "| flag | default | |\n|---|---|---|\n" + strings.Join(rows, "")
}

func defaultOf(f *pflag.Flag) string {
	if slices.Contains([]string{"", "false", "0", "[]", "0s"}, f.DefValue) {
		return ""
	}
	return "`" + f.DefValue + "`"
}

func profileTable(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("| setting | flag | environment | default | |\n|---|---|---|---|---|\n")
	for _, s := range profileSettings {
		flag, standard := "", ""
		if f := root.PersistentFlags().Lookup(flagOf(s.name)); f != nil {
			flag, standard = "`--"+f.Name+"`", defaultOf(f)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", s.name, flag, s.variable(), standard, markdown(s.says))
	}
	return b.String()
}

func roleTable(role *cobra.Command) string {
	var b strings.Builder
	b.WriteString("| setting | flag | environment | default | |\n|---|---|---|---|---|\n")
	for _, key := range roleKeys(role) {
		f := role.LocalNonPersistentFlags().Lookup(flagOf(key))
		_, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, "| `%s` | `--%s` | `%s` | %s | %s |\n", key, f.Name, variableOfFlag(f), defaultOf(f), markdown(usage))
	}
	return b.String()
}

// Two things of one name would be set by one variable.
func TestNoVariableMeansTwoThings(t *testing.T) {
	root := wholeTree()
	of := map[string]string{variableOf(profileKey): "the profile", "BELFRY_CONFIG": "the file"}
	for _, s := range profileSettings {
		of[s.variable()] = "a profile's " + s.name
	}
	for _, name := range roles {
		role := roleNamed(root, name)
		if role == nil {
			t.Errorf("there is no command %s", name)
			continue
		}
		for _, key := range roleKeys(role) {
			flag := role.LocalNonPersistentFlags().Lookup(flagOf(key))
			if what := of[variableOfFlag(flag)]; what != "" {
				t.Errorf("%s would set %s and %s of %s", variableOfFlag(flag), what, key, name)
			}
		}
	}
}

// Scripts go by exit codes: each has its line in docs/cli.md, in the words of the help.
func TestEveryExitCodeIsDocumented(t *testing.T) {
	var listed []string
	for _, e := range exitCodes {
		listed = append(listed, fmt.Sprint(e.code))
	}
	var there []string
	for _, m := range regexp.MustCompile(`(?m)^\texit\w+\s+= (\d+)`).FindAllStringSubmatch(readText(t, "exit.go"), -1) {
		there = append(there, m[1])
	}
	if !slices.Equal(listed, there) {
		t.Errorf("exitCodes has %v, exit.go %v", listed, there)
	}
	held(t, filepath.Join("..", "..", "docs", "cli.md"), func(page string) string {
		table := "| code | |\n|---|---|\n"
		for _, e := range exitCodes {
			table += fmt.Sprintf("| %d | %s |\n", e.code, markdown(e.says))
		}
		return between(t, page, "exit codes", table)
	})
}

// A flag is shown with what it takes, --job JOB, and not with the type that a program has for it.
func TestEveryFlagSaysWhatItTakes(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if kind, _ := pflag.UnquoteUsage(f); kind != strings.ToUpper(kind) {
				t.Errorf("%s --%s %s: want a word such as FILE, in `` in its text", cmd.CommandPath(), f.Name, kind)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(wholeTree())
}
