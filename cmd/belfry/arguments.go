package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// arguments say what the words in a command's usage line stand for.
var arguments = map[string]string{
	"":              "none",
	"EXPR":          "one EXPR; put it in quotes: 'minute hour day month weekday'",
	"RUN":           "RUN, a run's ID as \"belfry run list\" shows it",
	"NAME":          "NAME, a job's name as \"belfry job list\" shows it",
	"GATE":          "GATE, the name of a gate as \"belfry gate list\" shows it, or of a job for its own",
	"GATE...":       "GATE, one or more gates' names as \"belfry gate list\" shows them",
	"[GATE]":        "no more than one GATE, a gate's name",
	"[NAME...]":     "jobs' names as \"belfry job list\" shows them",
	"[NAME]":        "no more than NAME, a job's name",
	"[GENERATION]]": "NAME, a job's name, and with --diff no more than two generations",
	"[FILE]":        "no more than one FILE",
	"FILE":          "FILE, or - for standard input",
	"FILE...":       "FILE, one or more files, or - for standard input",
	"SECRET":        "SECRET, a name of letters, digits, dots, underscores and hyphens",
	"SECRET...":     "SECRET, one or more names as \"belfry secret list\" shows them",
	"KEYS":          "KEYS, a file",
	"QUEUE":         "QUEUE, the name of a queue as \"belfry queue list\" shows it",
	"TOKEN...":      "TOKEN, one or more tokens' IDs as \"belfry token list\" shows them",
	"[KEY]":         "no more than one KEY",
	"SETTING":       "SETTING, as \"belfry config show\" lists them",
	"VALUE...":      "SETTING and VALUE, or - to read VALUE from standard input",
	"SHELL":         "one of bash, zsh and fish",
	"PROFILE":       "PROFILE, as \"belfry config profiles\" lists them",
	"[COMMAND]":     "no more than one COMMAND",
	"PATH":          "RUN and PATH, the path of a step as \"belfry run steps\" shows it",
	"[RUN...]":      "runs' IDs as \"belfry dead-letter list\" shows them",
}

// wanting makes a check of a command's arguments say what would be right, by the command's usage line.
func wanting(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil || check(cmd, args) == nil {
			return nil
		}
		words := strings.Fields(cmd.Use)
		want := arguments[""]
		if last := len(words) - 1; last > 0 && !strings.HasPrefix(words[last-1], "-") { // behind a flag stands its value
			want = arguments[words[last]]
		}
		got := "no argument"
		switch {
		case len(args) == 1:
			got = fmt.Sprintf("the argument %q", short(args[0], 40))
		case len(args) > 1:
			got = fmt.Sprintf("%d arguments", len(args))
		}
		return misused("%s: got %s, want %s", cmd.CommandPath(), got, want)
	}
}
