package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// held is what Hold says once all its runs are in flight.
const held = "held"

// Hold opens the store of a scale benchmark, puts runs in flight that never end, says so, and waits until the process is killed, or in
// ends because nobody is there any more who would.
func Hold(ctx context.Context, h Host, runs int, ahead time.Duration, in io.Reader, out io.Writer) (err error) {
	if err := h.check(); err != nil {
		return err
	}
	clock := &virtual{host: h.Now, ahead: ahead}
	h.Now = clock.now
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	handlers := new(target.Registry)
	if err := handlers.Register(scaleJob, func(ctx context.Context, _ target.Call) (target.Result, error) {
		<-ctx.Done()
		return target.Result{}, ctx.Err()
	}); err != nil {
		return err
	}
	r, err := h.open(ctx, scaleFolder, setup{workers: fewWorkers, room: runs + 1, handlers: handlers})
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
	if _, err := fmt.Fprintln(out, held); err != nil {
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
	if err := m.holdAndKill(ctx); err != nil {
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

func (m *scaling) holdAndKill(ctx context.Context) error {
	_, end := m.host.Tell("putting runs in flight in another process", 0)
	defer end()
	child := m.Child(ctx, m.host.Folder, m.clock.goOn())
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	var said strings.Builder
	child.Stderr = &said
	if err := child.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	failed := child.Process.Kill() // by SIGKILL: nothing of it gets to tidy up
	_ = child.Wait()               // it was killed
	if err == nil && strings.TrimSpace(line) != held {
		err = fmt.Errorf("it said %q", line)
	}
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("the process that was to be killed: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}
