package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/picture"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/terminal"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) workflow() *cobra.Command {
	cmd := &cobra.Command{Use: "workflow", Short: "Check, draw and try out workflows; works without a server",
		Long: `Check, draw and try out workflows. A file is YAML or JSON: a workflow alone, or a job with target.workflow. No server is asked.
docs/workflows.md says what a definition holds. "belfry job apply" makes the job of a workflow, "belfry run steps" and "belfry run graph" show its runs.`}
	cmd.AddCommand(c.workflowValidate(), c.workflowGraph(), c.workflowSimulate(), c.workflowSchema())
	return cmd
}

// checked is what a file of workflows says, or what is wrong with it.
type checked struct {
	File   string              `json:"file"`
	Line   int                 `json:"line,omitempty"` // where the workflow begins, in a file with several
	Valid  bool                `json:"valid"`
	Graph  *wire.WorkflowGraph `json:"graph,omitempty"`
	Errors []fileError         `json:"errors,omitempty"`
	More   int                 `json:"more_errors,omitempty"`

	workflow *flow.Workflow
}

// fileError is what is wrong at a place in a file.
type fileError struct {
	Line    int    `json:"line,omitempty"` // missing where the file could not be read
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// text is a line for people and editors, which find the place by its beginning.
func (e fileError) text(file string) string {
	if e.Line == 0 { // the message names the file
		return "belfry: " + e.Message
	}
	text := fmt.Sprintf("%s:%d: ", shownName(file), e.Line)
	if e.Field != "" {
		text += e.Field + ": "
	}
	return text + e.Message
}

func shownName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// workflowsIn checks each document of a file. The error is of a file that cannot be read at all.
func (c *cli) workflowsIn(file string) ([]checked, error) {
	text, err := c.readFile(file)
	if err != nil {
		return nil, err
	}
	values, err := manifest.Read(file, text)
	var wrong *manifest.Error
	if errors.As(err, &wrong) {
		return []checked{{File: file, Errors: []fileError{{Line: wrong.Line, Message: wrong.What}}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shownName(file), err)
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("there is no workflow in %s", shownName(file))
	}
	all := make([]checked, len(values))
	for i, v := range values {
		all[i] = checkedOf(v)
		all[i].File = file
		if len(values) > 1 {
			all[i].Line = v.Line
		}
	}
	return all, nil
}

func checkedOf(v *manifest.Value) checked {
	check := flow.Check
	if flow.IsJob(v) {
		check = flow.CheckJob
	}
	w, err := check(v, flow.AnyQueue)
	if err == nil {
		graph := api.GraphForm(w)
		return checked{Valid: true, Graph: &graph, workflow: w}
	}
	first, more := invalid.First(err, invalid.Most)
	found := checked{More: more}
	for _, e := range first {
		found.Errors = append(found.Errors, errorAt(v, e))
	}
	slices.SortStableFunc(found.Errors, func(a, b fileError) int { return a.Line - b.Line })
	return found
}

// errorAt finds the line of what is wrong.
func errorAt(v *manifest.Value, e *invalid.Error) fileError {
	return fileError{Line: v.LineOf(e.Field), Field: e.Field, Message: (&invalid.Error{Got: e.Got, Want: e.Want}).Error()}
}

// complain says on stderr what is wrong.
func (c *cli) complain(found checked) {
	for _, e := range found.Errors {
		fmt.Fprintln(c.messages(), terminal.Line(e.text(found.File)))
	}
	if found.More > 0 {
		fmt.Fprintf(c.messages(), "%s: and %d more\n", shownName(found.File), found.More)
	}
}

// oneWorkflow reads a file that has one.
func (c *cli) oneWorkflow(file string) (*flow.Workflow, error) {
	all, err := c.workflowsIn(file)
	switch {
	case err != nil:
		return nil, err
	case len(all) > 1:
		return nil, fmt.Errorf("%s has %d documents; want one workflow", shownName(file), len(all))
	case !all[0].Valid:
		c.complain(all[0])
		return nil, errSaid
	}
	return all[0].workflow, nil
}

func (c *cli) workflowValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say all that is wrong with workflows, and where",
		Long: `Say all that is wrong with workflows, and where: a line FILE:LINE: FIELD: MESSAGE for each error, on standard error. The exit code is
1 if anything is wrong. Of a workflow that is right it is told what each of its expressions reads. Whether a server has the queues that tasks name is not checked; POST /v1/workflows/validate does.`,
		Example: `  belfry workflow validate etl.yaml
  belfry workflow validate etl.yaml job-with-workflow.yaml -o json
  cat etl.yaml | belfry workflow validate -`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			var all []checked
			for _, file := range files {
				found, err := c.workflowsIn(file)
				if err != nil { // of the other files it is still told what is wrong
					found = []checked{{File: file, Errors: []fileError{{Message: err.Error()}}}}
				}
				all = append(all, found...)
			}
			var wrong error
			for _, found := range all {
				if !found.Valid {
					wrong = errSaid
				}
				switch {
				case c.structured():
				case found.Valid:
					fmt.Fprintf(c.stdout, "%s: %s\n", found.place(), countKinds(found.workflow))
					for _, e := range found.workflow.Expressions() {
						fmt.Fprintf(c.stdout, "  %s reads %s\n", terminal.Line(e.Field), cmp.Or(terminal.Line(strings.Join(e.Reads, ", ")), "nothing"))
					}
				default:
					c.complain(found)
				}
			}
			if c.structured() {
				if err := c.print(all); err != nil {
					return err
				}
			}
			return wrong
		},
	}
}

func (f checked) place() string {
	if f.Line == 0 {
		return shownName(f.File)
	}
	return fmt.Sprintf("%s:%d", shownName(f.File), f.Line)
}

// countKinds is "valid, 6 steps: 4 tasks, 1 scope, 1 switch".
func countKinds(w *flow.Workflow) string {
	counts := map[flow.Kind]int{}
	for _, n := range w.Nodes {
		counts[n.Kind]++
	}
	var parts []string
	for kind := flow.KindTask; kind <= flow.KindWait; kind++ {
		switch n := counts[kind]; {
		case n == 1:
			parts = append(parts, "1 "+kind.String())
		case n > 1 && (kind == flow.KindPass || kind == flow.KindSwitch):
			parts = append(parts, fmt.Sprintf("%d %ses", n, kind))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, kind))
		}
	}
	return "valid, " + countOf(len(w.Nodes), "step") + ": " + strings.Join(parts, ", ")
}

func (c *cli) workflowGraph() *cobra.Command {
	var form drawing
	cmd := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw a workflow as text, Mermaid or SVG",
		Long:  `Draw a workflow as text, Mermaid or SVG. With -o json or yaml, print its steps as POST /v1/workflows/validate answers with them.`,
		Example: `  belfry workflow graph etl.yaml
  belfry workflow graph etl.yaml --format svg > etl.svg
  belfry workflow graph etl.yaml --format mermaid`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := form.check(c, cmd); err != nil {
				return err
			}
			w, err := c.oneWorkflow(args[0])
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(api.GraphForm(w))
			}
			return form.print(c, w, nil)
		},
	}
	form.flag(cmd)
	return cmd
}

// drawing is the form in which a workflow is drawn.
type drawing string

var drawings = map[drawing]func(*flow.Workflow, picture.Marks) string{"text": picture.Text, "mermaid": picture.Mermaid, "svg": picture.SVG}

func (d *drawing) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "format", "text", "`FORMAT` of the drawing: text, mermaid or svg")
}

func (d *drawing) check(c *cli, cmd *cobra.Command) error {
	switch {
	case drawings[*d] == nil:
		return misused("--format %s: want text, mermaid or svg", *d)
	case c.structured() && cmd.Flags().Changed("format"):
		return misused("--format %s: want it without -o %s, which prints the steps", *d, c.output)
	}
	return nil
}

func (d *drawing) print(c *cli, w *flow.Workflow, marks picture.Marks) error {
	_, err := fmt.Fprintln(c.stdout, strings.TrimRight(drawings[*d](w, marks), "\n"))
	return err
}

func (c *cli) workflowSimulate() *cobra.Command {
	var outcomes, input string
	cmd := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Show how a workflow goes if its steps come out as told",
		Long: `Show how a workflow goes if its steps come out as told, in virtual time: nothing runs and nothing waits. A file of outcomes, YAML or
JSON, says it by the paths of tasks and switches. What it does not mention succeeds in one second. Expressions are evaluated where all that
they read was told: the payload of the run by --input, and what tasks give as results. Of others, when holds, and a switch takes the way
without a condition:

  load: failed                   # or succeeded, dead, unknown, cancelled, skipped
  parts/index: {fails: 2}        # succeeds at the third attempt
  report: {takes: 5m}
  choose: {to: parts}            # a switch; {to: null} for none of its ways
  extract: {result: {rows: 3}}   # what expressions read

Steps are listed in the order in which they end.`,
		Example: `  belfry workflow simulate etl.yaml --outcomes outcomes.yaml
  belfry workflow simulate etl.yaml --input '{"day": "monday"}' -o json
  echo 'load: failed' | belfry workflow simulate etl.yaml --outcomes -`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" && outcomes == "-" {
				return misused("--outcomes -: standard input is the workflow already")
			}
			w, err := c.oneWorkflow(args[0])
			if err != nil {
				return err
			}
			told, err := c.outcomes(w, outcomes)
			if err != nil {
				return err
			}
			if input != "" && !json.Valid([]byte(input)) {
				return misused("--input: got %s, want JSON", invalid.Quote(input))
			}
			played, err := w.Simulate(cmd.Context(), told, json.RawMessage(input))
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(played)
			}
			return c.showPlayed(played)
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "`JSON` that the run brings as its payload, for expressions that read it")
	cmd.Flags().StringVar(&outcomes, "outcomes", "", "`FILE` of outcomes, - for standard input; all steps succeed by default")
	return cmd
}

// outcomes reads a file of them.
func (c *cli) outcomes(w *flow.Workflow, file string) (flow.Outcomes, error) {
	if file == "" {
		return nil, nil
	}
	text, err := c.readFile(file)
	if err != nil {
		return nil, fmt.Errorf("--outcomes: %w", err)
	}
	values, err := manifest.Read(file, text)
	var wrong *manifest.Error
	switch {
	case errors.As(err, &wrong):
		c.complain(checked{File: file, Errors: []fileError{{Line: wrong.Line, Message: wrong.What}}})
		return nil, errSaid
	case err != nil:
		return nil, fmt.Errorf("%s: %w", shownName(file), err)
	case len(values) == 0:
		return nil, nil
	case len(values) > 1:
		return nil, fmt.Errorf("%s has %d documents; want one with the outcomes by path", shownName(file), len(values))
	}
	told, err := w.ReadOutcomes(values[0].JSON())
	if err == nil {
		return told, nil
	}
	found := checked{File: file}
	first, more := invalid.First(err, invalid.Most)
	found.More = more
	for _, e := range first {
		found.Errors = append(found.Errors, errorAt(values[0], e))
	}
	c.complain(found)
	return nil, errSaid
}

func (c *cli) showPlayed(played flow.Played) error {
	out := newRows(c, []string{"STEP", "STATE", "ATTEMPTS", "STARTED", "ENDED"})
	for _, s := range played.Steps {
		attempts, started := "", ""
		if s.Attempts > 0 {
			attempts = fmt.Sprint(s.Attempts)
		}
		if s.StartedAfter != nil {
			started = s.StartedAfter.String()
		}
		if err := out.add(s, []string{s.Path, string(s.State), attempts, started, s.EndedAfter.String()}); err != nil {
			return err
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	for _, s := range played.Steps {
		if s.Input != nil {
			fmt.Fprintf(c.stdout, "\n%s is handed %s", s.Path, terminal.Line(string(s.Input)))
		}
		if s.Result != nil {
			fmt.Fprintf(c.stdout, "\n%s gives %s", s.Path, terminal.Line(string(s.Result)))
		}
		if s.Error != "" {
			fmt.Fprintf(c.stdout, "\n%s: %s", s.Path, terminal.Line(s.Error))
		}
		if s.CaughtBy != "" {
			fmt.Fprintf(c.stdout, "\n%s handles the failure of %s: %s", s.CaughtBy, s.Path, s.Code)
		}
	}
	if played.Output != nil {
		fmt.Fprintf(c.stdout, "\nThe run gives %s", terminal.Line(string(played.Output)))
	}
	why := "."
	if played.Reason != "" {
		why = ": " + played.Reason + "."
	}
	_, err := fmt.Fprintf(c.stdout, "\nThe workflow ends %s after %s%s\n", played.State, played.Takes, why)
	return err
}

func (c *cli) workflowSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of workflows, for editors",
		Long: `Print the JSON Schema of workflows, version 2020-12: editors complete and check a file with it while it is written. It takes a workflow
alone, or a job with target.workflow. "belfry workflow validate" also finds what a schema cannot say, as cycles.`,
		Example:     `  belfry workflow schema > workflow.schema.json`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.NoArgs,
		RunE:        func(*cobra.Command, []string) error { return c.print(flow.Schema()) },
	}
}
