package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// exitCodes says what each code means; docs/cli.md has the same words.
var exitCodes = []struct {
	code int
	says string
}{
	{exitOK, "it is done"},
	{exitFailed, "it failed, for a reason that has no number of its own; standard error says which"},
	{exitUsage, "the command line or the configuration is wrong; nothing was done"},
	{exitNotFound, "what was named is not there: no such job, run or other thing"},
	{exitNoAnswer, "the server cannot be reached, or gave no answer"},
	{exitRefused, "credentials are missing, wrong or expired, or do not allow this"},
	{exitOutcome, "the run that was waited for ended, and not as succeeded"},
	{exitConflict, "what stands does not allow it: it exists already, has ended, or was changed meanwhile"},
	{exitDiffers, "a dry run with --exit-code found that something would change"},
	{exitTimeout, "what was waited for did not come in the time that was given; it may still come"},
	{exitInterrupted, "an interrupt ended the waiting; what was waited for goes on"},
}

// topics are help texts that belong to no one command; flags are those that each command has.
func topics(flags string) []*cobra.Command {
	var codes strings.Builder
	for _, e := range exitCodes {
		fmt.Fprintf(&codes, "  %3d  %s\n", e.code, e.says)
	}
	var settings strings.Builder
	line := func(name, says string) { fmt.Fprintf(&settings, "  %-19s  %s\n", name, says) }
	line("BELFRY_CONFIG", "path of config.toml")
	line("BELFRY_PROFILE", "the profile in force")
	for _, s := range profileSettings {
		line(s.variable(), s.says)
	}
	line("BELFRY_DATA", "data folder, for commands that want one in any case")
	line("BELFRY_...", "any flag of "+strings.Join(roles, ", ")+", as in BELFRY_LISTEN; lists have commas")
	line("NO_COLOR", "no colours, unless it is empty")
	line("TERM", "dumb: neither colours nor lines that are drawn over")
	line("TZ", "the host's zone")
	return []*cobra.Command{
		{Use: "flags", Short: "Flags of every command", Long: "Every command takes these, before or behind its own.\n\n" + strings.TrimSuffix(flags, "\n")},
		{Use: "exit-codes", Short: "What the exit codes of commands mean", Long: "A number keeps its meaning, so that a script may go by it.\n\n" + strings.TrimSuffix(codes.String(), "\n")},
		{Use: "environment", Short: "Which variables commands read", Long: `A setting comes from a flag, else from the environment, else from config.toml; "belfry config show" tells which.

` + strings.TrimSuffix(settings.String(), "\n")},
	}
}
