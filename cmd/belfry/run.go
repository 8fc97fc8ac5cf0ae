package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// cli is what all commands share.
type cli struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	config  configuration
	signing *signer // nil where requests are not signed
	address string
	caFile  string
	output  string // a form
	color   string
	zoned   string // name of the zone that times are shown in
	begun   bool   // the command line was understood; what goes wrong from here on is no mistake in it

	now    func() time.Time
	zone   *time.Location
	width  int  // columns that a line of a table may take, 0 for any
	colour bool // on stdout

	diskRoom func(folder string) (free, size uint64, err error) // in bytes, of the disk that a folder is on
}

// run is the whole program: it gives the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now, diskRoom: diskRoom}
	return c.run(ctx, args)
}

func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root()
	if slices.Contains(args, cobra.ShellCompRequestCmd) || slices.Contains(args, cobra.ShellCompNoDescRequestCmd) {
		c.complete(root) // a shell asks; for all else it would be work for nothing
	}
	root.SetArgs(args)
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.messages())
	cmd, err := root.ExecuteContextC(ctx)
	err = c.explain(err)
	code := exitCode(err)
	var usage usageError
	var chosen exit
	switch {
	case err == nil || errors.Is(err, errSaid):
	case !errors.As(err, &chosen) && (errors.As(err, &usage) || !c.begun):
		code = exitUsage
		fmt.Fprintf(c.messages(), "belfry: %v\nSee %s --help.\n", err, cmd.CommandPath())
	default:
		fmt.Fprintf(c.messages(), "belfry: %v\n", err)
	}
	return code
}

// present finds out how results are shown: the form, and what the terminal and its user's wishes make of a table.
func (c *cli) present() (err error) {
	if err := checkOutput(c.output); err != nil {
		return err
	}
	if c.zone, err = userZone(c.zoned); err != nil {
		return err
	}
	c.width = widthOf(c.stdout)
	c.colour, err = coloured(c.color, c.stdout)
	return err
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "belfry",
		Short: "A durable job scheduler",
		Long: `Belfry fires jobs to the second, on a schedule or on demand, and loses none over a crash.

Start one here with "belfry dev", give it a job with "belfry job apply", and see its runs with "belfry run list".`,
		Example: `  belfry dev --allow-exec
  belfry job apply -f job.json
  belfry run list --job hello
  belfry cron next "30 9 * * 1-5" --timezone Europe/Berlin`,
		Version:       thisBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
				return nil // what it completes configures itself, and says nothing of what is wrong
			}
			if err := noneEmpty(cmd.Flags()); err != nil {
				return err
			}
			if err := c.configure(cmd); err != nil && cmd.Annotations[anyConfig] == "" {
				return err
			}
			if err := c.present(); err != nil {
				return err
			}
			c.begun = true
			return nil
		},
	}
	c.flags(root.PersistentFlags())
	root.AddCommand(
		c.dev(), c.serve(), c.console(), c.worker(), c.tick(),
		c.job(), c.runs(), c.deadLetter(), c.queue(), c.gate(), c.stats(), c.schedule(), c.cron(), c.workflow(), c.simulate(), c.importing(), c.export(),
		c.backup(), c.restore(), c.doctor(), c.bench(), c.plan(), c.tokenCommand(), c.secret(), c.store(), c.tables(),
		c.configCommand(), c.completion(), c.man(), c.version(),
	)
	root.AddCommand(topics(root.PersistentFlags().FlagUsagesWrapped(widthOf(c.stdout)))...)
	root.CompletionOptions.DisableDefaultCmd = true // completion is one of them
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.Annotations = map[string]string{anyConfig: "yes"}
	root.SetFlagErrorFunc(flagMeant)
	root.InitDefaultHelpCmd()
	group(root)
	c.help(root)
	return root
}

// flags are those that every command has. What they begin with is Belfry's own; configure gives them what the environment and
// config.toml say.
func (c *cli) flags(f *pflag.FlagSet) {
	f.String(profileKey, "", "`NAME` of the profile in config.toml; the one in force there by default")
	f.StringVar(&c.address, "address", client.DefaultAddress, "`URL` of the server")
	f.String("auth", "", "authentication `METHOD`: token, api-key, or iam for requests signed with AWS credentials")
	f.String("token-file", "", "`FILE` with the token that the server knows you by; BELFRY_TOKEN has a token itself")
	f.String("api-key-file", "", "`FILE` with the key of an API Gateway; BELFRY_API_KEY has a key itself")
	f.String("aws-profile", "", "`NAME` of the AWS profile whose credentials sign requests, with --auth iam")
	f.String("aws-region", "", "AWS `REGION` that requests are signed for; the one in the server's address by default")
	f.StringVar(&c.caFile, "ca-file", "", "`FILE` of certificates, as PEM, that may have signed the server's; those that the host trusts by default")
	f.StringVarP(&c.output, "output", "o", formTable, "`FORM` of the result: table, json, yaml, name, or jsonpath=TEMPLATE as kubectl has it")
	f.StringVar(&c.color, "color", "auto", "`WHEN` there are colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	f.StringVar(&c.zoned, "timezone", "", "IANA name of the `ZONE` that times are shown in; this host's by default")
}

// noneEmpty refuses flags that were given without a value, as by a variable of a shell that is not set: taken for flags that were left
// out, they would widen a filter to everything.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(flag *pflag.Flag) {
		empty := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if empty && err == nil {
			value, _ := pflag.UnquoteUsage(flag)
			example := ""
			if flag.DefValue != "" && flag.DefValue != "[]" {
				example = fmt.Sprintf(", such as --%s %s", flag.Name, flag.DefValue)
			}
			err = misused("--%s: got an empty text, want %s%s", flag.Name, value, example)
		}
	})
	return err
}

// group makes commands that only hold others refuse to run alone, unless they do something by themselves, and name those they
// hold; the others say which arguments they want.
func group(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		group(sub)
	}
	if alias := aliases[cmd.Name()]; alias != "" {
		cmd.Aliases = append(cmd.Aliases, alias)
	}
	if !cmd.HasSubCommands() {
		cmd.Args = wanting(cmd.Args)
	}
	if cmd.Name() == "help" && cmd.HasParent() { // cobra's own
		cmd.Short, cmd.Example = "Help for a command", "  belfry help job apply"
		cmd.Run, cmd.RunE = nil, helpFor
	}
	if cmd.HasSubCommands() {
		if cmd.Example == "" {
			cmd.Example = firstExamples(cmd)
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		}
		if cmd.RunE != nil {
			return
		}
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			return misused("want a command after %q: one of %s", cmd.CommandPath(), subcommands(cmd))
		}
	}
}

// aliases are what people of other tools write for our names of commands.
var aliases = map[string]string{"list": "ls", "delete": "rm", "get": "describe"}

// noCommand says what may have been meant: a name that is like the one that was given, or one of another command's.
func noCommand(parent *cobra.Command, name string) error {
	if near := invalid.Nearest(name, nameList(parent)); near != "" {
		return misused("there is no command %q; did you mean %q?", parent.CommandPath()+" "+name, parent.CommandPath()+" "+near)
	}
	var elsewhere []string
	for _, other := range parent.Commands() {
		if !parent.HasParent() && slices.Contains(nameList(other), name) {
			elsewhere = append(elsewhere, strconv.Quote(other.CommandPath()+" "+name))
		}
	}
	if elsewhere != nil {
		return misused("there is no command %q; did you mean %s?", parent.CommandPath()+" "+name, strings.Join(elsewhere, " or "))
	}
	return misused("there is no command %q; want one of %s", parent.CommandPath()+" "+name, subcommands(parent))
}

// flagMeant adds to the error of a flag that there is not what may have been meant.
func flagMeant(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := invalid.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return misused("%w; did you mean --%s?", err, near)
	}
	return err
}

// firstExamples shows one example of each command that another holds.
func firstExamples(cmd *cobra.Command) string {
	var lines []string
	for _, sub := range cmd.Commands() {
		if first, _, _ := strings.Cut(sub.Example, "\n"); first != "" && sub.IsAvailableCommand() {
			lines = append(lines, first)
		}
	}
	return strings.Join(lines, "\n")
}

func subcommands(cmd *cobra.Command) string { return strings.Join(nameList(cmd), ", ") }

func nameList(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			names = append(names, sub.Name())
		}
	}
	return names
}

// calling wraps a command that calls the server.
func (c *cli) calling(do func(ctx context.Context, server *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		server, err := c.client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), server, args)
	}
}
