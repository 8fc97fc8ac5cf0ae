package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// cli is what all commands share.
type cli struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	address string
	output  string // formTable, formJSON or formYAML
	color   string
	zoned   string // name of the zone that times are shown in
	begun   bool   // the command line was understood; what goes wrong from here on is no mistake in it

	now    func() time.Time
	zone   *time.Location
	width  int  // columns that a line of a table may take, 0 for any
	colour bool // on stdout
}

// run is the whole program: it gives the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := exitCode(err)
	if err != nil && !c.begun {
		code = exitUsage
	}
	switch {
	case err == nil || errors.Is(err, errSaid):
	case code == exitUsage:
		fmt.Fprintf(stderr, "belfry: %v\nSee belfry --help, or --help after any command.\n", err)
	default:
		fmt.Fprintf(stderr, "belfry: %v\n", err)
	}
	return code
}

// present finds out how results are shown: the form, and what the terminal and its user's wishes make of a table.
func (c *cli) present() (err error) {
	if c.output != formTable && c.output != formJSON && c.output != formYAML {
		return misused("--output %q: want table, json or yaml", c.output)
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
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := c.present(); err != nil {
				return err
			}
			c.begun = true
			return nil
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	address := os.Getenv("BELFRY_ADDRESS")
	if address == "" {
		address = client.DefaultAddress
	}
	root.PersistentFlags().StringVar(&c.address, "address", address, "server to call; BELFRY_ADDRESS sets the default")
	root.PersistentFlags().StringVarP(&c.output, "output", "o", "table", "form of the result: table, json or yaml")
	root.PersistentFlags().StringVar(&c.color, "color", "auto", "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	root.PersistentFlags().StringVar(&c.zoned, "timezone", "", "IANA name of the zone that times are shown in; this host's by default")
	root.AddCommand(c.dev(), c.serve(), c.job(), c.runs(), c.deadLetter(), c.cron(), c.importing(), c.store(), c.doctor(), c.version())
	group(root)
	return root
}

// group makes commands that only hold others refuse to run alone, and name those they hold; the others say which arguments
// they want.
func group(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		group(sub)
	}
	if !cmd.HasSubCommands() {
		cmd.Args = wanting(cmd.Args)
	}
	if cmd.HasSubCommands() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misused("there is no command %q; want one of %s", cmd.CommandPath()+" "+args[0], subcommands(cmd))
			}
			return nil
		}
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			return misused("want a command after %q: one of %s", cmd.CommandPath(), subcommands(cmd))
		}
	}
}

func subcommands(cmd *cobra.Command) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			names = append(names, sub.Name())
		}
	}
	return strings.Join(names, ", ")
}

// client gives the client of the server that --address names.
func (c *cli) client() (*client.Client, error) {
	made, err := client.New(client.Config{Address: c.address, NewKey: rand.Text})
	if err != nil {
		return nil, usageError{err}
	}
	return made, nil
}

// explain adds what would help to errors that say too little by themselves.
func explain(err error) error {
	var lost *client.Unreachable
	if errors.As(err, &lost) {
		return fmt.Errorf("%w\nIs it running? Start it with \"belfry dev\", or name another server with --address", err)
	}
	return err
}

// calling wraps a command that calls the server.
func (c *cli) calling(do func(ctx context.Context, server *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		server, err := c.client()
		if err != nil {
			return err
		}
		return explain(do(cmd.Context(), server, args))
	}
}
