package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/simulate/gantt"
)

// simulation is one "simulate".
type simulation struct {
	*cli
	recursive bool
	seed      *uint64
	cut       int
	chart     string
	most      int // runs in a table; 0: all
}

// Charts.
const (
	chartText = "text"
	chartSVG  = "svg"
)

func (c *cli) simulate() *cobra.Command {
	s := &simulation{cli: c}
	var seed uint64
	cmd := &cobra.Command{
		Use:   "simulate FILE...",
		Short: "Play scenarios in virtual time: what would happen, and when; works without a server",
		Long: `Play scenarios in virtual time: which runs would start when, what a downtime skips, what retries cost. It is Belfry's own scheduler
that runs, in memory and under a clock that goes from one event to the next; no target is called. A month takes seconds.

A scenario is a file of YAML or JSON with jobs, what their targets do, and what people do meanwhile; docs/simulate.md says all that
it may hold. The same file gives the same output, each time. Jitter and the waits between attempts are as long as they may be; with
--seed they are drawn.

A file that has "expect" is a test: what differs is printed, and the exit code is 1. Of several files, or of a folder, a line is
printed for each, so that a folder of scenarios is a test suite. A file that is no scenario ends with code 2.`,
		Example: `  belfry simulate night.yaml
  belfry simulate night.yaml -o json | jq '.runs[] | select(.state != "succeeded")'
  belfry simulate night.yaml --chart
  belfry simulate night.yaml --chart=svg > night.svg
  belfry simulate scenarios/ -R`,
		Annotations: map[string]string{anyConfig: "yes"},
		Args:        cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("seed") {
				s.seed = &seed
			}
			return s.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVarP(&s.recursive, "recursive", "R", false, "play the files of folders in a folder, too")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "`SEED` that jitter and the waits between attempts are drawn from; without it each is as long as it may be")
	cmd.Flags().IntVar(&s.cut, "cut", 0, "kill and recover the server after every `NUMBER` of writes, 10 or more; states and counts stay as they are without")
	cmd.Flags().StringVar(&s.chart, "chart", "", "draw a Gantt chart instead of the table, as `FORM`: text or svg")
	cmd.Flags().Lookup("chart").NoOptDefVal = chartText
	cmd.Flags().IntVarP(&s.most, "limit", "n", 100, "`NUMBER` of runs in the table, 0 for all; a step of a workflow counts as one; the summary counts all")
	return cmd
}

func (s *simulation) run(ctx context.Context, args []string) error {
	switch {
	case s.chart != "" && s.chart != chartText && s.chart != chartSVG:
		return misused("--chart=%s: want text or svg", s.chart)
	case s.chart != "" && s.structured():
		return misused("--chart and -o %s exclude each other", s.output)
	case s.cut != 0 && s.cut < simulate.LeastCut:
		return misused("--cut %d: want %d or more, or 0 for none", s.cut, simulate.LeastCut)
	case s.most < 0:
		return misused("-n %d: want 0 for all, or more", s.most)
	}
	var files []string
	suite := len(args) > 1
	for _, name := range args {
		found, err := filesOf(name, s.recursive)
		if err != nil {
			return exiting(exitUsage, err)
		}
		files = append(files, found...)
		suite = suite || len(found) != 1 || found[0] != name
	}
	if !suite {
		return s.one(ctx, files[0])
	}
	if s.chart != "" {
		return misused("--chart is for one file")
	}
	return s.suite(ctx, files)
}

// played is a scenario and what became of it.
type played struct {
	File        string                `json:"file"`
	Result      string                `json:"result"` // ok, differs or bad
	Mistakes    []simulate.Mistake    `json:"mistakes,omitempty"`
	Differences []simulate.Difference `json:"differences,omitempty"`
	More        int                   `json:"more,omitempty"` // mistakes or differences that are not listed
	Report      *simulate.Report      `json:"report,omitempty"`

	scenario simulate.Scenario
	said     []string // what is to be told on stderr
}

// Results of a scenario.
const (
	resultOK      = "ok"
	resultDiffers = "differs"
	resultBad     = "bad"
)

// read reads the scenario of a file, or says what is wrong with it.
func (s *simulation) read(file string) played {
	p := played{File: file, Result: resultBad}
	text, err := s.readFile(file)
	if err == nil {
		p.scenario, err = simulate.Parse(file, text)
	}
	var wrong *simulate.Mistaken
	switch {
	case errors.As(err, &wrong):
		p.Mistakes = wrong.Mistakes
		for _, m := range wrong.Mistakes {
			p.said = append(p.said, manifest.Place(file, 0, m.Line)+": "+m.Text())
		}
		p.more(wrong.More)
	case err != nil:
		p.said = []string{err.Error()}
	}
	return p
}

// play plays one file. The error is of what has nothing to do with the file.
func (s *simulation) play(ctx context.Context, file string) (played, error) {
	p := s.read(file)
	if len(p.said) > 0 {
		return p, nil
	}
	report, err := s.simulated(ctx, file, p.scenario)
	if err != nil {
		return p, fmt.Errorf("%s: %w", named(file), err)
	}
	p.Report, p.Result = &report, resultOK
	var more int
	if p.Differences, more, err = p.scenario.Expect.Compare(report); err != nil {
		return p, err
	}
	for _, d := range p.Differences {
		p.said = append(p.said, manifest.Place(file, 0, d.Line)+": "+d.String())
		p.Result = resultDiffers
	}
	p.more(more)
	return p, nil
}

// more notes how much is wrong beyond what is listed.
func (p *played) more(n int) {
	if p.More = n; n > 0 {
		p.said = append(p.said, fmt.Sprintf("%s: and %d more", named(p.File), n))
	}
}

// named is a file in messages.
func named(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

func (s *simulation) simulated(ctx context.Context, file string, scenario simulate.Scenario) (simulate.Report, error) {
	hours := func(d time.Duration) int64 { return int64(d / time.Hour) }
	total := int64(0)
	if !scenario.Until.IsZero() {
		total = hours(scenario.Until.Sub(scenario.Start))
	}
	told := s.progress("simulating "+named(file)+", in hours of its time", total)
	defer told.end()
	sofar := int64(0)
	return simulate.Play(ctx, scenario, simulate.Options{Seed: s.seed, Cut: s.cut, Progress: func(now time.Time, _ int) {
		if at := hours(now.Sub(scenario.Start)); at > sofar {
			told.add(at - sofar)
			sofar = at
		}
	}})
}

// end tells what is to be told, and with which code the command ends.
func (s *simulation) end(all ...played) error {
	code := exitOK
	for _, p := range all {
		for _, line := range p.said {
			fmt.Fprintln(s.messages(), line)
		}
		switch p.Result {
		case resultBad:
			code = exitUsage
		case resultDiffers:
			code = max(code, exitFailed)
		}
	}
	if code == exitOK {
		return nil
	}
	return exiting(code, errSaid)
}

// one shows what became of a single scenario.
func (s *simulation) one(ctx context.Context, file string) error {
	p, err := s.play(ctx, file)
	if err != nil || p.Report == nil {
		return errors.Join(err, s.end(p))
	}
	switch {
	case s.structured():
		err = s.print(p.Report)
	case s.chart == chartText:
		columns := s.width
		if columns == 0 {
			columns = longestLine
		}
		_, err = io.WriteString(s.stdout, s.chartOf(p).Text(columns))
	case s.chart == chartSVG:
		_, err = io.WriteString(s.stdout, s.chartOf(p).SVG())
	default:
		err = s.show(p)
	}
	if err != nil {
		return err
	}
	if p.Report.Stopped != nil {
		fmt.Fprintln(s.messages(), stoppedBy(*p.Report.Stopped))
	}
	return s.end(p)
}

// chartOf is the chart of a scenario's whole time: up to until, or to what happened last.
func (s *simulation) chartOf(p played) gantt.Chart {
	to := p.scenario.Until
	if last := simulate.Last(*p.Report); last.After(to) {
		to = last
	}
	return gantt.Chart{Title: named(p.File), Report: *p.Report, From: p.scenario.Start, To: to, Zone: s.shownIn()}
}

// stoppedBy says which bound ended a simulation.
func stoppedBy(by simulate.Stopped) string {
	at := by.At.Format(time.RFC3339)
	switch by.Bound {
	case simulate.BoundSpan:
		return fmt.Sprintf("The simulation was stopped at %s: without \"until\", a scenario lasts at most %s.", at, by.Limit)
	default:
		return fmt.Sprintf("The simulation was stopped at %s: it has more %s than a simulation may have, which is %s.", at, by.Bound, by.Limit)
	}
}

// stoppedInShort says it in a table.
func stoppedInShort(by simulate.Stopped) string {
	if by.Bound == simulate.BoundSpan {
		return "stopped after " + by.Limit
	}
	return "stopped at " + by.Limit + " " + by.Bound
}

// suite plays many scenarios, and prints a line for each.
func (s *simulation) suite(ctx context.Context, files []string) error {
	out := newRows(s.cli, []string{"FILE", "RESULT", "RUNS", "NOTE"})
	all := make([]played, 0, len(files))
	for _, file := range files {
		p, err := s.play(ctx, file)
		if err != nil {
			return endWith(out, err)
		}
		if err := out.add(p, p.row()); err != nil {
			return err
		}
		p.Report, p.scenario = nil, simulate.Scenario{} // a suite may be long
		all = append(all, p)
	}
	if err := out.end(); err != nil {
		return err
	}
	return s.end(all...)
}

func (p played) row() []string {
	row := []string{named(p.File), p.Result, "", ""}
	switch {
	case len(p.Mistakes) > 0:
		row[3] = exactly(len(p.Mistakes)+p.More, "mistake")
	case p.Report == nil:
		row[3] = "cannot be read"
	default:
		row[2] = fmt.Sprint(len(p.Report.Runs))
		var notes []string
		if n := len(p.Differences) + p.More; n > 0 {
			notes = append(notes, exactly(n, "difference"))
		} else if p.scenario.Expect == nil {
			notes = append(notes, "expects nothing")
		}
		if p.Report.Stopped != nil {
			notes = append(notes, stoppedInShort(*p.Report.Stopped))
		}
		row[3] = strings.Join(notes, ", ")
	}
	return row
}
