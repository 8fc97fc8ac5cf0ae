package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/terminal"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// How a run is waited for.
const (
	waitEvery   = 500 * time.Millisecond
	waitWithout = time.Minute // how long a server that does not answer is put up with
)

// waiter waits for the end of a run, tells on stderr what becomes of it, and prints its log as it is written.
type waiter struct {
	*cli
	server  *client.Client
	follow  bool
	timeout string
	view    client.LogView // of what is written already, what is printed; with an attempt, of that one alone; with a step, this is waited for

	seen    wire.Run // as last told
	attempt int      // whose log is being printed
	offset  int64    // how much of it was
	midLine bool     // the log's last line has not ended
	log     io.Writer
	endLog  func() error

	flow  *flowLog // of the run of a workflow that is followed
	among *flowLog // of a step: with whose lines its own are printed
}

func (w *waiter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.timeout, "timeout", "", "how long to wait: a `DURATION`, as 90s or 1h30m; without it, until the run has ended")
}

// wait gives the run when it has ended. An interrupt and the timeout leave the run going on, and say so.
func (w *waiter) wait(ctx context.Context, id string) (wire.Run, error) {
	ctx, end := interruptible(ctx, os.Interrupt, syscall.SIGTERM)
	defer end()
	var late <-chan time.Time
	if w.timeout != "" {
		d, err := schedule.ParseDuration(w.timeout)
		if err != nil {
			return wire.Run{}, misused("--timeout: %w", err)
		}
		if d <= 0 {
			return wire.Run{}, misused("--timeout %s: want more than 0", w.timeout)
		}
		timer := time.NewTimer(d.Std())
		defer timer.Stop()
		late = timer.C
	}
	poll := time.NewTicker(waitEvery)
	defer poll.Stop()
	answered := w.now()
	for {
		r, err := w.look(ctx, id)
		var lost *client.Unreachable
		switch {
		case err == nil && (ended(r.State) || w.view.Attempt != 0 && w.isOver(r)):
			return r, w.endLine()
		case err == nil:
			answered = w.now()
		case ctx.Err() != nil:
		case errors.As(err, &lost) && w.seen.ID != "" && w.now().Sub(answered) < waitWithout:
		default:
			return wire.Run{}, err
		}
		select {
		case <-poll.C:
		case <-late:
			return wire.Run{}, exiting(exitTimeout, fmt.Errorf("%s has not ended within %s and goes on; \"belfry run wait %s\" waits again", w.what(id), w.timeout, id))
		case <-ctx.Done():
			return wire.Run{}, exiting(exitInterrupted, fmt.Errorf("interrupted; %s goes on. \"belfry run wait %s\" waits again, \"belfry run cancel %s\" stops it", w.what(id), id, id))
		}
	}
}

// look reads the run and tells what is new. The state is read before the log: of a run that has ended the log is whole.
func (w *waiter) look(ctx context.Context, id string) (wire.Run, error) {
	r, err := w.standing(ctx, id)
	if err != nil {
		return r, err
	}
	before, after := became(w.seen, r, w.moment)
	if err := w.tell(before); err != nil {
		return r, err
	}
	switch {
	case !w.follow:
	case w.view.Step == "" && len(r.Steps) > 0:
		if w.flow == nil {
			w.flow = newFlowLog(w)
		}
		if err := w.flow.follow(ctx, r); err != nil {
			return r, err
		}
	default:
		if err := w.printLog(ctx, r); err != nil {
			return r, err
		}
	}
	w.seen = r
	return r, w.tell(after)
}

// standing reads what is waited for: a step is a run, as far as it is told of here.
func (w *waiter) standing(ctx context.Context, id string) (wire.Run, error) {
	if w.view.Step == "" {
		return w.server.Run(ctx, id)
	}
	s, err := w.server.Step(ctx, id, w.view.Step)
	if err == nil && s.Kind != "task" {
		err = fmt.Errorf("step %s of %s is a %s, which has no log; ask for that of a task", s.Path, id, s.Kind)
	}
	return stepAsRun(id, s), err
}

func stepAsRun(of string, s wire.Step) wire.Run {
	return wire.Run{ID: of, State: s.State, Attempt: s.Attempt, Attempts: s.Attempts, StartedAt: s.StartedAt, EndedAt: s.EndedAt, NextAttemptAt: s.NextAttemptAt,
		Worker: s.Worker, Reason: s.Reason}
}

// what is waited for.
func (w *waiter) what(id string) string {
	if w.view.Step != "" {
		return "step " + w.view.Step + " of " + id
	}
	return id
}

func (w *waiter) tell(said []string) error {
	for _, line := range said {
		if err := w.endLine(); err != nil {
			return err
		}
		fmt.Fprintf(w.messages(), "%s  %s\n", w.now().In(w.zone).Format(time.TimeOnly), line)
	}
	return nil
}

// isOver tells whether the attempt that is followed alone writes no more.
func (w *waiter) isOver(r wire.Run) bool {
	return r.Attempt > w.view.Attempt || r.Attempt == w.view.Attempt && r.State != "running"
}

// printLog prints what the log has more than was printed, and what further attempts wrote.
func (w *waiter) printLog(ctx context.Context, r wire.Run) error {
	last := r.Attempt
	if w.view.Attempt != 0 {
		last = min(last, w.view.Attempt)
	}
	if last == 0 || last < w.view.Attempt {
		return nil // it has not begun
	}
	for { // bounded by what the attempts wrote until now: each turn prints of it, or goes to the next attempt
		part, err := w.server.LogPart(ctx, r.ID, w.next())
		switch {
		case client.HasCode(err, "log_expired"):
			part = client.LogPart{Attempt: max(w.attempt, w.view.Attempt)}
		case err != nil:
			return err
		}
		if part.Attempt == 0 {
			return nil
		}
		if err := w.write(part.Text); err != nil {
			return err
		}
		if part.Attempt == w.attempt {
			part.Next = max(part.Next, w.offset) // who answers now may know less of it than who did before
		}
		w.attempt, w.offset = part.Attempt, part.Next
		switch {
		case part.Next < part.Size:
		case w.attempt < last:
			w.attempt, w.offset = w.attempt+1, 0
		default:
			return nil
		}
	}
}

// next is what is asked for of the log: what was not printed, or at first what was wished.
func (w *waiter) next() client.LogView {
	if w.attempt == 0 {
		return w.view
	}
	return client.LogView{Step: w.view.Step, Attempt: w.attempt, Offset: w.offset, Times: w.view.Times}
}

func (w *waiter) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if w.among != nil {
		if err := w.among.turn(w); err != nil {
			return err
		}
	}
	w.midLine = text[len(text)-1] != '\n'
	if w.log == nil {
		w.log, w.endLog = w.cli.log()
	}
	_, err := w.log.Write(text)
	return err
}

// endLine lets the next thing that is said begin a line of its own, on a terminal that shows both.
func (w *waiter) endLine() error {
	if w.flow != nil && w.flow.last != nil {
		return w.flow.last.endLine()
	}
	if !w.midLine || !isTerminal(w.stdout) {
		return nil
	}
	w.midLine = false
	if err := w.endLog(); err != nil {
		return err
	}
	_, err := io.WriteString(w.stdout, "\n")
	return err
}

func ended(state string) bool {
	switch state {
	case "pending", "scheduled", "queued", "waiting", "running", "retrying", "suspended":
		return false
	}
	return true
}

// became says in a line each what has become of a run since it was last looked at: before what its newest attempt has written,
// and after it.
func became(was, is wire.Run, moment func(time.Time) string) (before, after []string) {
	known := map[int]wire.Attempt{}
	for _, a := range was.Attempts {
		known[a.Attempt] = a
	}
	for _, a := range is.Attempts {
		old, seen := known[a.Attempt]
		switch {
		case seen && old.Outcome == a.Outcome, !seen && a.Attempt <= was.Attempt: // told
		case a.Outcome == "running":
			before = append(before, fmt.Sprintf("attempt %d runs%s", a.Attempt, on(is.Worker)))
		case a.Outcome == is.State: // which says it
		case a.Attempt < is.Attempt:
			before = append(before, endOf(a))
		default:
			after = append(after, endOf(a))
		}
	}
	if is.State != "running" && (is.State != was.State || !is.NextAttemptAt.Equal(was.NextAttemptAt)) { // a running one's attempt has said so
		after = append(after, stateOf(is, moment))
	}
	if text := heldUp(is); text != "" && text != heldUp(was) {
		after = append(after, text)
	}
	return before, after
}

// stateOf is a run's state, with what belongs to it.
func stateOf(is wire.Run, moment func(time.Time) string) string {
	line := is.State
	switch {
	case is.State == "scheduled":
		at := is.NominalTime
		if is.NextAttemptAt.After(at) {
			at = is.NextAttemptAt
		}
		line += " for " + moment(at)
	case (is.State == "retrying" || is.State == "queued") && !is.NextAttemptAt.IsZero():
		line += ", not before " + moment(is.NextAttemptAt)
	case ended(is.State) && took(is) != "":
		line += " after " + tookInAll(is)
	}
	if reason := reasonOf(is); reason != "" {
		line += ": " + terminal.Line(reason)
	}
	return line
}

// heldUp says of a run what keeps it from going on until somebody does something, and who; "" where time alone does.
func heldUp(r wire.Run) string {
	for _, w := range r.Waiting {
		switch w.Code {
		case string(control.WaitPaused), string(control.WaitNoWorker), string(control.WaitJobDeleted):
			text := terminal.Line(w.Text)
			if w.Who != "" {
				text += " (" + terminal.Line(w.Who) + ")"
			}
			return text
		}
	}
	return ""
}

// mayIgnore says of a run that a pause holds how another one is asked for that it does not hold; "" of any other.
func mayIgnore(r wire.Run) string {
	for _, w := range r.Waiting {
		if w.Code == string(control.WaitPaused) {
			return " To run it now, cancel this run and trigger the job with --ignore-pause."
		}
	}
	return ""
}

// tookInAll is the time from the start of a run's first attempt to its end, with the waits between attempts.
func tookInAll(r wire.Run) string {
	if len(r.Attempts) > 1 {
		r.StartedAt = r.Attempts[0].StartedAt
		return fmt.Sprintf("%d attempts in %s", r.Attempt, took(r))
	}
	return took(r)
}

func on(worker string) string {
	if worker == "" {
		return ""
	}
	return " on " + worker
}

func endOf(a wire.Attempt) string {
	text := fmt.Sprintf("attempt %d %s", a.Attempt, strings.ReplaceAll(a.Outcome, "_", " "))
	if a.Error != "" {
		text += ": " + terminal.Line(a.Error)
	}
	return text
}

// outcomeOf is the exit code of a run that was waited for.
func outcomeOf(r wire.Run) error {
	if r.State == "succeeded" {
		return nil
	}
	text := r.ID + " ended as " + r.State
	if reason := why(r); reason != "" {
		text += ": " + terminal.Line(reason)
	}
	return exiting(exitOutcome, errors.New(text))
}

func (c *cli) runWait() *cobra.Command {
	w := &waiter{cli: c}
	cmd := &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait until a run has ended; its outcome is the exit code",
		Long: `Wait until a run has ended, and tell on standard error what becomes of it. The exit code is 0 if it succeeded, 6 if it ended
otherwise, and 9 if --timeout was over before. The run goes on when the waiting is broken off.`,
		Example: `  belfry run wait report~0mi4lf3k0
  belfry run wait report~0mi4lf3k0 --follow --timeout 10m`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			w.server = server
			return w.waitAndShow(ctx, args[0])
		}),
	}
	w.flags(cmd)
	cmd.Flags().BoolVar(&w.follow, "follow", false, "print the run's log as it is written")
	return cmd
}

// waitAndShow waits, shows the run unless its log was, and ends with its outcome.
func (w *waiter) waitAndShow(ctx context.Context, id string) error {
	if w.follow && w.structured() {
		return misused("--follow prints a log, and --output %s the run: they exclude each other", w.output)
	}
	r, err := w.wait(ctx, id)
	if err != nil {
		return err
	}
	if !w.follow {
		if err := w.showRun(r); err != nil {
			return err
		}
	}
	return outcomeOf(r)
}
