package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/queue"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Bounds of what a shell is offered: a person waits with a finger on the key.
const (
	completionTime = time.Second
	completionMost = 100
)

const noFiles = cobra.ShellCompDirectiveNoFileComp

func (c *cli) completion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what makes a shell complete commands, flags, jobs and runs",
		Long: `Print the script that makes bash, zsh or fish complete commands, flags, and the names of jobs and runs, which the
server is asked for: a second at most. bash needs the package bash-completion.`,
		Example: `  belfry completion bash > belfry.bash  # to /etc/bash_completion.d/belfry, or ~/.local/share/bash-completion/completions/belfry
  belfry completion zsh > _belfry  # to a folder of $fpath
  belfry completion fish > belfry.fish  # to ~/.config/fish/completions`,
		Args:        cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:   shells,
		Annotations: map[string]string{anyConfig: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(c.stdout, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(c.stdout)
			}
			return cmd.Root().GenFishCompletion(c.stdout, true)
		},
	}
}

// complete makes shells offer what arguments and flags stand for, by their names, so that no command has to.
func (c *cli) complete(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.complete(sub)
	}
	words := strings.Fields(cmd.Use)
	if len(words) > 1 && cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
		switch strings.Trim(words[len(words)-1], "[].") {
		case "NAME":
			if cmd.HasParent() && cmd.Parent().Name() == "job" {
				cmd.ValidArgsFunction = c.offered(jobNames)
			}
		case "GATE":
			cmd.ValidArgsFunction = c.offered(gateNames)
		case "RUN":
			cmd.ValidArgsFunction = c.offered(runIDs)
		case "PROFILE":
			cmd.ValidArgsFunction = c.profileNames
		case "SETTING", "VALUE":
			cmd.ValidArgsFunction = settingWords
		case "FILE":
			// files, which shells know themselves
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		by := c.flagWords(flag.Name)
		if flag.Name == "auth" && !cmd.HasParent() { // of callers; a server has a flag of that name for whom it asks
			by = cobra.FixedCompletions([]string{authToken, authAPIKey, authIAM}, noFiles)
		}
		if flag.Name == "state" && cmd.Name() == "steps" {
			by = listed(slices.Concat([]string{string(flow.Pending)}, stateNames(), []string{string(flow.UpstreamFailed)}))
		}
		switch kind, _ := pflag.UnquoteUsage(flag); {
		case by != nil:
		case kind == "DIR":
			by = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case kind != "FILE":
			by = cobra.NoFileCompletions
		default:
			return // files, which shells know themselves
		}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, by) // the flag is there, and has none yet
	})
}

func (c *cli) flagWords(name string) cobra.CompletionFunc {
	switch name {
	case "job":
		return c.offered(jobNames)
	case "run":
		return c.offered(runIDs)
	case profileKey:
		return c.profileNames
	case "state":
		return listed(stateNames())
	case "sort":
		return cobra.FixedCompletions(orders, noFiles)
	case "scope":
		return listed(strings.Split(access.ScopeNames(), ", "))
	case "label":
		return c.offered(jobLabels)
	case "queue":
		return c.offered(queueNames)
	case "timezone":
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			names, _ := schedule.ZoneNames() // they are built in
			return names, noFiles
		}
	case "auth":
		return cobra.FixedCompletions([]string{authAuto, authRequired}, noFiles)
	case "missed":
		return cobra.FixedCompletions([]string{missedSkip, missedCatchUp}, noFiles)
	case "output":
		return cobra.FixedCompletions([]string{formTable, formJSON, formYAML, formName, formPath}, noFiles)
	case "color":
		return cobra.FixedCompletions([]string{"auto", "always", "never"}, noFiles)
	case "priority":
		return cobra.FixedCompletions([]string{string(queue.High), string(queue.Normal), string(queue.Low)}, noFiles)
	case "log-level":
		return cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, noFiles)
	case "log-format":
		return cobra.FixedCompletions([]string{"auto", "text", "json"}, noFiles)
	}
	return nil
}

func stateNames() []string {
	var names []string
	for _, state := range runs.States() {
		names = append(names, state.String())
	}
	return names
}

// listed offers words that may stand in a list with commas, each once.
func listed(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndex(begun, ",")+1]
		named := strings.Split(before, ",")
		var offered []string
		for _, word := range words {
			if !slices.Contains(named, word) {
				offered = append(offered, before+word)
			}
		}
		return offered, noFiles
	}
}

// asking asks the server for words that begin like the one that is typed, until offer has enough.
type asking func(ctx context.Context, server *client.Client, begun string, offer func(word, says string) bool) error

func jobNames(ctx context.Context, server *client.Client, begun string, offer func(word, says string) bool) error {
	for j, err := range server.Jobs(ctx, client.JobFilter{Prefix: begun}) {
		if err != nil || !offer(j.Name, when(j)) {
			return err
		}
	}
	return nil
}

func gateNames(ctx context.Context, server *client.Client, _ string, offer func(word, says string) bool) error {
	for g, err := range server.Gates(ctx) {
		if err != nil || !offer(g.Name, fmt.Sprintf("limit %d", g.Limit)) {
			return err
		}
	}
	return nil
}

// jobLabels gives the labels that jobs have, as a filter takes them.
func jobLabels(ctx context.Context, server *client.Client, _ string, offer func(word, says string) bool) error {
	seen := map[string]bool{}
	for j, err := range server.Jobs(ctx, client.JobFilter{}) {
		if err != nil {
			return err
		}
		for name, value := range j.Labels {
			if label := name + "=" + value; !seen[label] {
				seen[label] = true
				if !offer(label, "") {
					return nil
				}
			}
		}
	}
	return nil
}

// queueNames gives those that workers elsewhere serve.
func queueNames(ctx context.Context, server *client.Client, _ string, offer func(word, says string) bool) error {
	queues, err := server.Queues(ctx)
	for _, q := range queues {
		if q.Remote && !offer(q.Name, "") {
			break
		}
	}
	return err
}

// runIDs gives the newest, of the job that the word names already, where it does.
func runIDs(ctx context.Context, server *client.Client, begun string, offer func(word, says string) bool) error {
	f := client.RunFilter{Most: completionMost} // older ones that begin alike are no better guess
	if name, _, named := strings.Cut(begun, "~"); named {
		f.Job = name
	}
	for r, err := range server.Runs(ctx, f) {
		if err != nil || !offer(r.ID, r.State+" "+age(r.NominalTime, time.Now())) {
			return err
		}
	}
	return nil
}

// offered asks the server as long as a person would wait. Where nothing comes, nothing is offered: an error has no place in a
// line that is being typed.
func (c *cli) offered(ask asking) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		c.stderr = io.Discard // warnings have none either
		if c.configure(cmd) != nil {
			return nil, noFiles
		}
		server, err := c.client()
		if err != nil {
			return nil, noFiles
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		var words []string
		_ = ask(ctx, server, begun, func(word, says string) bool {
			if strings.HasPrefix(word, begun) && !slices.Contains(args, word) {
				words = append(words, cobra.CompletionWithDesc(word, terminal.Line(says)))
			}
			return len(words) < completionMost
		})
		return words, noFiles
	}
}

func (c *cli) profileNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	f, err := readConfig(configPath())
	if err != nil {
		return nil, noFiles
	}
	return f.profiles(), noFiles
}

// settingWords are what config set and unset take: settings of a profile, and those of commands that run for long.
func settingWords(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		values := map[string][]string{"auth": {authToken, authAPIKey, authIAM}, "output": {formTable, formJSON, formYAML, formName, formPath}, "color": {"auto", "always", "never"}}
		if words := values[args[0]]; words != nil {
			return words, noFiles
		}
		return nil, cobra.ShellCompDirectiveDefault // a value, perhaps a file
	}
	words := settingNames()
	for _, name := range roles {
		if role := roleNamed(cmd.Root(), name); role != nil {
			for _, key := range roleKeys(role) {
				words = append(words, name+"."+key)
			}
		}
	}
	return words, noFiles
}
