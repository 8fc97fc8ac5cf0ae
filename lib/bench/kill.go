package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// held is what Hold says, with a number, once as many of its runs have begun as do, and the others are queued.
const held = "held %d\n"

// Hold opens the store of a scale benchmark and asks for runs that never end. As many begin as there are workers, and the others are
// queued: it says how many have begun, and waits until the process is killed, or in ends because nobody is there any more who would.
func Hold(ctx context.Context, h Host, runs, workers int, ahead time.Duration, in io.Reader, out io.Writer) (err error) {
	if err := h.check(); err != nil {
		return err
	}
	clock := &virtual{host: h.Now, ahead: ahead}
	h.Now = clock.now
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	handlers := new(target.Registry)
	var begun atomic.Int64
	if err := handlers.Register(scaleJob, func(ctx context.Context, _ target.Call) (target.Result, error) {
		begun.Add(1)
		<-ctx.Done()
		return target.Result{}, ctx.Err()
	}); err != nil {
		return err
	}
	r, err := h.open(ctx, scaleFolder, setup{workers: workers, room: runs + 1, handlers: handlers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.put(ctx, scaleJob, onDemand(scaleJob)); err != nil {
		return err
	}
	r.start(ctx)
	for first := 0; first < runs; first += maxBatch {
		asked := make([]control.Asked, min(maxBatch, runs-first))
		for i := range asked {
			asked[i] = control.Asked{Job: scaleJob, Request: control.Request{Payload: payload(first + i)}}
		}
		if err := r.trigger(ctx, tenant, asked); err != nil {
			return err
		}
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for begun.Load() < int64(min(runs, workers)) {
		if err := r.wait(ctx, poll.C); err != nil {
			return fmt.Errorf("%d of %d runs have begun: %w", begun.Load(), min(runs, workers), err)
		}
	}
	if _, err := fmt.Fprintf(out, held, begun.Load()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// kill has another process put runs in flight on the loaded store, kills it, and starts behind it.
func (m *scaling) kill(ctx context.Context) (report KillReport, err error) {
	if err := m.rig.close(); err != nil {
		return report, err
	}
	m.rig = nil
	if report.Begun, err = m.holdAndKill(ctx); err != nil {
		return report, err
	}
	report.InFlight = m.InFlight
	took, err := m.restart(ctx)
	if err != nil {
		return report, err
	}
	report.Restart = millis(took)
	add, end := m.host.Tell("running what was in flight", m.InFlight)
	defer end()
	began := m.host.Elapsed()
	m.rig.start(ctx)
	if err := m.rig.ended(ctx, 0, m.InFlight, add); err != nil {
		return report, err
	}
	took = m.host.Elapsed() - began
	report.Resumed, report.ResumeTook, report.ResumeSpeed = m.InFlight, took.Seconds(), rate(m.InFlight, took)
	return report, m.rig.rest()
}

// holdAndKill tells how many runs had begun in the process that it killed.
func (m *scaling) holdAndKill(ctx context.Context) (begun int, err error) {
	_, end := m.host.Tell("putting runs in flight in another process", 0)
	defer end()
	child := m.Child(ctx, m.host.Folder, m.clock.goOn())
	in, err := child.StdinPipe()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var said strings.Builder
	child.Stderr = &said
	if err := child.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	failed := child.Process.Kill() // by SIGKILL: nothing of it gets to tidy up
	_ = child.Wait()               // it was killed
	if err == nil {
		if _, wrong := fmt.Sscanf(line, held, &begun); wrong != nil {
			err = fmt.Errorf("it said %q: %w", line, wrong)
		}
	}
	if err = errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("the process that was to be killed: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return begun, nil
}
