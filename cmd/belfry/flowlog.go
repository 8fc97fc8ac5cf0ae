package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// mostFollowed is how many running steps have their lines printed as these are written. The lines of the others come when they have ended.
const mostFollowed = 16

// flowLog prints what the steps of a workflow's run write, each under a line with its path, as tail does with files. While the run is followed it tells of
// each step that it starts and ends.
type flowLog struct {
	of    *waiter
	steps map[string]*waiter // by path: how far each has come
	seen  []wire.StepSummary // as last told
	last  *waiter            // whose lines were printed last
}

func newFlowLog(of *waiter) *flowLog { return &flowLog{of: of, steps: map[string]*waiter{}} }

// attemptless refuses an attempt of a workflow's run.
func attemptless(id string) error {
	return misused("--attempt: %s is the run of a workflow, and attempts are made of its steps; name one with --step, as \"belfry run steps %s\" shows them", id, id)
}

// follow tells what is new of the steps of a run, and prints what they wrote since.
func (f *flowLog) follow(ctx context.Context, r wire.Run) error {
	if f.of.view.Attempt != 0 {
		return attemptless(r.ID)
	}
	if slices.Equal(f.seen, r.Steps) && !slices.ContainsFunc(r.Steps, func(s wire.StepSummary) bool { return s.State == "running" }) {
		return nil
	}
	running := 0
	for s, err := range f.of.server.Steps(ctx, r.ID, client.StepFilter{}) {
		if err != nil {
			return err
		}
		if s.Kind != "task" {
			continue
		}
		if s.State == "running" {
			running++
		}
		if err := f.look(ctx, r.ID, s, s.State != "running" || running <= mostFollowed); err != nil {
			return err
		}
	}
	f.seen = r.Steps
	return nil
}

// look tells what is new of a step, and prints its lines where they are printed by now.
func (f *flowLog) look(ctx context.Context, id string, s wire.Step, printed bool) error {
	step := f.step(s)
	is := stepAsRun(id, s)
	if step.seen.ID != "" && ended(step.seen.State) || is.Attempt == 0 && !ended(is.State) {
		return nil
	}
	before, after := became(step.seen, is, f.of.moment)
	if err := f.tell(s.Path, before); err != nil {
		return err
	}
	if printed && is.Attempt > 0 {
		if err := step.printLog(ctx, is); err != nil {
			return err
		}
	}
	step.seen = is
	return f.tell(s.Path, after)
}

// step is how far a step has come. Of one that has begun by the first look, no more is printed than was wished; of the others, what all attempts write.
func (f *flowLog) step(s wire.Step) *waiter {
	step := f.steps[s.Path]
	if step == nil {
		step = &waiter{cli: f.of.cli, server: f.of.server, view: f.of.view, attempt: f.of.attempt, among: f}
		step.view.Step = s.Path
		if s.Attempt == 0 {
			step.attempt = 1
		}
		f.steps[s.Path] = step
	}
	return step
}

func (f *flowLog) tell(path string, said []string) error {
	lines := make([]string, len(said))
	for i, line := range said {
		lines[i] = "step " + path + ": " + line
	}
	return f.of.tell(lines)
}

// turn lets the lines of a step follow, where those of another were printed last.
func (f *flowLog) turn(to *waiter) error {
	if f.last == to {
		return nil
	}
	gap := ""
	if last := f.last; last != nil {
		if err := last.endLog(); err != nil {
			return err
		}
		if gap = "\n"; last.midLine {
			gap = "\n\n"
		}
		last.log, last.midLine = nil, false
	}
	f.last = to
	_, err := fmt.Fprintf(f.of.stdout, "%s==> %s <==\n", gap, to.view.Step)
	return err
}

// end ends the last line.
func (f *flowLog) end() error {
	if f.last == nil {
		return nil
	}
	return errors.Join(f.last.endLine(), f.last.endLog())
}

// stepLog is what a step wrote, as data.
type stepLog struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	Log     string `json:"log"`
}

// print prints what the newest attempt of each step has written by now, in the order of the workflow.
func (f *flowLog) print(ctx context.Context, id string) error {
	if f.of.view.Attempt != 0 {
		return attemptless(id)
	}
	logs := []stepLog{}
	for s, err := range f.of.server.Steps(ctx, id, client.StepFilter{}) {
		if err != nil {
			return err
		}
		if s.Kind != "task" || s.Attempt == 0 {
			continue
		}
		step := f.step(s)
		var text []byte
		write := step.write
		if f.of.structured() {
			write = func(more []byte) error { text = append(text, more...); return nil }
		}
		attempt, err := step.printParts(ctx, id, write)
		switch {
		case client.HasCode(err, "log_expired"):
			fmt.Fprintf(f.of.messages(), "The log of step %s was cleaned up.\n", s.Path)
		case err != nil:
			return err
		case attempt > 0:
			logs = append(logs, stepLog{s.Path, attempt, string(text)})
		}
	}
	if f.of.structured() {
		return f.of.print(map[string]any{"id": id, "steps": logs})
	}
	if f.last == nil {
		fmt.Fprintf(f.of.messages(), "No step of %s has written anything that is kept.\n", id)
	}
	return f.end()
}

// printParts prints a log up to where it is written by now, and gives whose it is: 0 for that of no attempt.
func (w *waiter) printParts(ctx context.Context, id string, write func([]byte) error) (attempt int, err error) {
	for view := w.view; ; {
		part, err := w.server.LogPart(ctx, id, view)
		if err == nil {
			err = write(part.Text)
		}
		if err != nil || part.Next >= part.Size {
			return part.Attempt, err
		}
		view = client.LogView{Step: view.Step, Attempt: part.Attempt, Offset: part.Next, Times: view.Times}
	}
}
