package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestAloneBelfryHelps(t *testing.T) {
	got := belfry(t, "")
	if got.code != exitOK || got.errors != "" || got.out != belfry(t, "", "--help").out {
		t.Errorf("code %d, %s%s", got.code, got.out, got.errors)
	}
	everyday, operators := strings.Index(got.out, "  job  "), strings.Index(got.out, "  doctor  ")
	if everyday < 0 || operators < everyday || strings.Contains(got.out, "--address") {
		t.Errorf("want everyday's commands before operators', and the flags of all in a topic of their own:\n%s", got.out)
	}
	if flags := belfry(t, "", "help", "flags").out; !strings.Contains(flags, "--address URL") || !strings.Contains(flags, "--output FORM") {
		t.Errorf("belfry help flags:\n%s", flags)
	}
}

func TestWhatWasProbablyMeant(t *testing.T) {
	for args, want := range map[string]string{
		"jobb":                       `there is no command "belfry jobb"; did you mean "belfry job"?`,
		"trigger report":             `did you mean "belfry job trigger"?`,
		"redrive":                    `did you mean "belfry dead-letter redrive"?`,
		"pause report":               `did you mean "belfry job pause"?`,
		"job lst":                    `there is no command "belfry job lst"; did you mean "belfry job list"?`,
		"help job lst":               `did you mean "belfry job list"?`,
		"job list --labl a=b":        "unknown flag: --labl; did you mean --label?",
		"job list --ouptut json":     "did you mean --output?",
		"job list --something-else":  "unknown flag: --something-else",
		"frobnicate":                 `there is no command "belfry frobnicate"; want one of backup, `,
		"frobnicate --address x":     `there is no command "belfry frobnicate"; want one of backup, `,
		strings.Repeat("job", 1_000): "there is no command",
	} {
		got := belfry(t, "", strings.Fields(args)...)
		if got.code != exitUsage || !strings.Contains(got.errors, want) {
			t.Errorf("%.40s: code %d, %s, want %s", args, got.code, got.errors, want)
		}
	}
}

// Whoever writes what other tools call it is understood, at each command of that kind.
func TestEveryListIsLsToo(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if alias := aliases[cmd.Name()]; alias != "" && !cmd.HasAlias(alias) {
			t.Errorf("%s has no alias %s", cmd.CommandPath(), alias)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(wholeTree())
	address := dev(t, "--data", t.TempDir())
	for _, args := range []string{"job ls", "run ls", "dead-letter ls", "token ls"} {
		if got := belfry(t, "", append(strings.Fields(args), "--address", address)...); got.code != exitOK {
			t.Errorf("%s: code %d, %s", args, got.code, got.errors)
		}
	}
	if got := belfry(t, "", "job", "describe", "nobody", "--address", address); got.code != exitNotFound {
		t.Errorf("job describe: code %d, %s", got.code, got.errors)
	}
	if got := belfry(t, "", "job", "rm", "nobody", "--address", address); got.code != exitNotFound {
		t.Errorf("job rm: code %d, %s", got.code, got.errors)
	}
}
