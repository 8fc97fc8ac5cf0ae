package belfrytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/belfry"
	"github.com/belfry-scheduler/belfry/lib/blob"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/internal/seam"
	"github.com/belfry-scheduler/belfry/lib/internal/virtual"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

const tenant = "default"

// Harness is a scheduler whose clock the test moves.
type Harness struct {
	// Belfry is what the code under test is given. Its Start and Stop may be called, as the code does, and need not be.
	Belfry *belfry.Belfry

	t       testing.TB
	control *control.Service
	blobs   *blob.Bucket
	pace    *pace
}

// New gives a scheduler in memory whose clock stands at begin, in whole milliseconds; without one at 2026-01-01T00:00:00Z, a
// Thursday. It ends with the test.
func New(t testing.TB, begin ...time.Time) *Harness {
	t.Helper()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if len(begin) > 0 {
		at = begin[0].UTC().Truncate(time.Millisecond)
	}
	h, err := build(t, at)
	if err != nil {
		t.Fatalf("belfrytest: %v", err)
	}
	return h
}

func build(t testing.TB, at time.Time) (*Harness, error) {
	ctx := t.Context()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := virtual.NewClock(at)
	d := virtual.NewDiary()
	chance := rand.New(rand.NewPCG(1, 2)) // the same in every run of the test
	var drawing sync.Mutex
	newID := func() uint64 {
		drawing.Lock()
		defer drawing.Unlock()
		return max(1, chance.Uint64())
	}
	stored := d.Watch(memory.New(memory.Config{}))
	waiting := queuelocal.New(queuelocal.Config{Now: c.Now})
	registry := metrics.New()
	blobs, err := bloblocal.Open(ctx, "mem://")
	if err != nil {
		return nil, err
	}
	layout, err := timer.Setup(ctx, stored, 1, at.UnixMilli(), newID)
	if err != nil {
		return nil, err
	}
	dispatcher, err := dispatch.New(dispatch.Config{Store: stored, Book: job.NewBook(stored, job.Compile),
		Queues: map[string]queue.Queue{job.DefaultQueue: waiting}, Layout: layout, Now: c.Now, Elapsed: c.Elapsed, NewID: newID, Log: log, Metrics: registry, Blobs: blobs,
		Still:     true,
		LookAhead: time.Millisecond, // nothing is claimed before its very instant
	})
	if err != nil {
		return nil, err
	}
	desk, err := lease.New(lease.Config{Dispatch: dispatcher, Queue: job.DefaultQueue, Blobs: blobs, Metrics: registry, Name: "test", Log: log})
	if err != nil {
		return nil, err
	}
	handlers := new(target.Registry)
	targets, err := target.New(target.Config{Now: c.Now, Handlers: handlers})
	if err != nil {
		return nil, err
	}
	turns := newTurns(desk, waiting, c.Now)
	rush := make(chan struct{})
	hand, err := worker.New(worker.Config{Source: turns, Targets: targets, Elapsed: c.Elapsed, Log: log, Concurrency: 1, Hurry: rush})
	if err != nil {
		return nil, err
	}
	dispatcher.Cancelled = hand.Cancelled
	service, err := control.New(control.Config{Store: stored, Blobs: blobs, Dispatch: dispatcher, Now: c.Now, NewID: newID, Log: log,
		Can: func(_ string, spec target.Spec) error { return targets.Can(spec) }})
	if err != nil {
		return nil, err
	}
	h := &Harness{t: t, control: service, blobs: blobs,
		pace: &pace{clock: c, diary: d, turns: turns, ticks: virtual.Ticks{Dispatch: dispatcher, Metrics: registry, Log: log}}}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	var ended error
	scheduler, stopped := seam.Over(seam.Parts{Control: service, Handlers: handlers, Now: c.Now, Log: log,
		Ready: func(context.Context) error { return nil },
		Hurry: sync.OnceFunc(func() { close(rush) }),
		Close: func() error {
			stop()
			<-turns.over
			return errors.Join(ended, stored.Close())
		},
	})
	h.Belfry, turns.stopped = scheduler.(*belfry.Belfry), stopped
	go func() {
		defer close(turns.over)
		ended = hand.Run(working)
	}()
	t.Cleanup(func() {
		if err := h.Belfry.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("belfrytest: stop: %v", err)
		}
	})
	return h, nil
}

// Now is what the clock of this scheduler shows.
func (h *Harness) Now() time.Time { return h.pace.clock.Now() }

// Advance moves the clock on by d, and runs on its way all that becomes due, each at its own instant: fires, enqueued runs, retries
// after their waits. It returns when everything due has been run; Advance(0) runs what is due already.
//
// Handlers run one at a time, in the order in which they become due, and take no time by this clock. What they enqueue is run
// too. Advance must not be called by a handler. After Belfry.Stop, nothing runs: Advance only moves the clock.
func (h *Harness) Advance(d time.Duration) {
	h.t.Helper()
	if d < 0 {
		h.t.Fatalf("belfrytest: Advance(%s): want a duration that is not negative", d)
	}
	h.AdvanceTo(h.Now().Add(d))
}

// AdvanceTo is [Harness.Advance] up to an instant.
func (h *Harness) AdvanceTo(at time.Time) {
	h.t.Helper()
	if at.Before(h.Now()) {
		h.t.Fatalf("belfrytest: AdvanceTo(%s): the clock is at %s, and goes forward alone", at.Format(time.RFC3339), h.Now().Format(time.RFC3339))
	}
	if err := h.pace.to(h.t.Context(), at); err != nil {
		h.t.Fatalf("belfrytest: at %s: %v", h.Now().Format(time.RFC3339), err)
	}
}

// Runs gives the runs of a job, the earliest nominal time first, with their results.
func (h *Harness) Runs(job string) []belfry.Run {
	h.t.Helper()
	var all []belfry.Run
	for r, err := range h.Belfry.Runs(h.t.Context(), job) {
		if err == nil && r.State == belfry.Succeeded {
			r, err = h.Belfry.Run(h.t.Context(), r.ID)
		}
		if err != nil {
			h.t.Fatalf("belfrytest: runs of %s: %v", job, err)
		}
		all = append(all, r)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// Request is a run that somebody asked for.
type Request[T any] struct {
	Payload T
	Run     belfry.Run // its Nominal is when it was asked to start
}

// Enqueued gives what [belfry.Enqueue] was asked for, of one job, in the order of the times for which it was asked: what has been
// run by now, and what has not.
func Enqueued[T any](h *Harness, job string) []Request[T] {
	h.t.Helper()
	var all []Request[T]
	for _, r := range h.Runs(job) {
		text, asked := h.payload(r.ID)
		if !asked {
			continue
		}
		request := Request[T]{Run: r}
		if err := json.Unmarshal(text, &request.Payload); err != nil {
			h.t.Fatalf("belfrytest: run %s carries %s, which is no %T: %v", r.ID, text, request.Payload, err)
		}
		all = append(all, request)
	}
	return all
}

// payload is what a run was asked for with; false for one of a schedule.
func (h *Harness) payload(id string) ([]byte, bool) {
	h.t.Helper()
	parsed, err := run.ParseID(id)
	if err == nil && !parsed.OnDemand() {
		return nil, false
	}
	var r run.Run
	if err == nil {
		r, err = h.control.Run(h.t.Context(), tenant, parsed)
	}
	text := r.Payload.Inline
	if err == nil && r.Payload.Blob != "" {
		text, err = h.blobs.Get(h.t.Context(), tenant, r.Payload.Blob)
	}
	if err != nil {
		h.t.Fatalf("belfrytest: payload of %s: %v", id, err)
	}
	return text, true
}

// RequireSucceeded ends the test unless exactly n runs of the job have succeeded, and none has ended otherwise.
func (h *Harness) RequireSucceeded(job string, n int) {
	h.t.Helper()
	h.require(job, n, "succeeded, and nothing else", func(s belfry.State) bool { return s == belfry.Succeeded }, belfry.State.Ended)
}

// RequireDeadLetters ends the test unless exactly n runs of the job have failed for good: by [belfry.Permanent], or since their
// attempts are spent.
func (h *Harness) RequireDeadLetters(job string, n int) {
	h.t.Helper()
	failed := func(s belfry.State) bool { return s == belfry.Dead || s == belfry.Failed }
	h.require(job, n, "failed for good", failed, failed)
}

func (h *Harness) require(job string, n int, what string, wanted, counted func(belfry.State) bool) {
	h.t.Helper()
	runs := h.Runs(job)
	found, other := 0, 0
	text := ""
	for _, r := range runs {
		switch {
		case wanted(r.State):
			found++
		case counted(r.State):
			other++
		}
		text += fmt.Sprintf("\n  %s  %s, attempt %d", r.Nominal.Format(time.RFC3339), r.State, r.Attempt)
		if r.Error != "" {
			text += ": " + r.Error
		}
	}
	if found != n || other != 0 {
		if text == "" {
			text = " none"
		}
		h.t.Fatalf("belfrytest: at %s, want %d runs of %s that have %s; its runs:%s", h.Now().Format(time.RFC3339), n, job, what, text)
	}
}
