package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Config is what a Worker stands on. Fields without a default are required.
type Config struct {
	Source  Source
	Targets *target.Set
	Elapsed func() time.Duration // since some start, by a clock that is never stepped
	Log     *slog.Logger         // default: discards
	Tracer  *trace.Tracer        // default: traces nothing

	Concurrency int           // attempts at once. Default 50
	Grace       time.Duration // how long attempts may go on after the worker was told to stop. Default 20s
	MaxLog      int           // bytes kept of what one attempt logs: a quarter of them its beginning, the others its end. Default and most runlog.MaxBytes

	// Hurry, when it is closed, ends the grace: its owner has no more time. Default: never.
	Hurry <-chan struct{}
}

// MaxBatch is how many runs a worker takes at once.
const MaxBatch = 10

// Worker takes runs from its source, starts them, calls their targets and reports what came of it.
type Worker struct {
	Config
	suspects chan struct{} // at most one run at a time whose next crash would be its last
	short    shortage

	mu      sync.Mutex
	running map[name]*attempt
}

// name is a run's own within a process.
type name struct{ tenant, run string }

// New checks the configuration.
func New(cfg Config) (*Worker, error) {
	if cfg.Source == nil || cfg.Targets == nil || cfg.Elapsed == nil {
		return nil, errors.New("worker: Source, Targets and Elapsed are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 50
	}
	if cfg.Grace == 0 {
		cfg.Grace = 20 * time.Second
	}
	if cfg.MaxLog == 0 || cfg.MaxLog > runlog.MaxBytes {
		cfg.MaxLog = runlog.MaxBytes
	}
	return &Worker{Config: cfg, suspects: make(chan struct{}, 1), short: shortage{turn: make(chan struct{}, 1), told: map[bool]time.Duration{}}, running: map[name]*attempt{}}, nil
}

// longPoll is how long one taking waits: long enough that an idle worker costs next to nothing.
const longPoll = 20 * time.Second

// Run works until ctx ends, then drains: it takes nothing more, hands back what has not started, lets attempts go on for the
// grace, and then stops and hands back what is left. It returns when nothing of it is under way any more: nil, or why the source
// refuses this worker for good.
func (w *Worker) Run(ctx context.Context) error {
	s, stop := w.shift(ctx)
	defer stop(nil)
	defer s.leases.begin(s.attempts)()
	refused := s.take()
	close(s.over)
	done := make(chan struct{})
	go func() { s.busy.Wait(); close(done) }()
	grace := time.NewTimer(w.Grace)
	defer grace.Stop()
	select {
	case <-done:
		return refused
	case <-w.Hurry:
	case <-grace.C:
	}
	w.Log.WarnContext(ctx, "the grace is over: attempts are stopped and handed back", "attempts", w.Running())
	stop(errStopped)
	<-done // bounded by the targets' own grace and the time-outs of the tries and writes
	return refused
}

// Pass takes the runs that may be started now, up to a batch and no more than Concurrency, and returns when they have ended. It is
// one turn of Run, for whoever is called with a batch or decides himself when there is something to do. left is how long it may go
// on, 0 for any time: what has not ended by then, or when ctx does, is stopped and handed back. What may take longer than that is not
// started, and left to others.
func (w *Worker) Pass(ctx context.Context, left time.Duration) error {
	offers, err := w.Source.Take(ctx, min(w.Concurrency, MaxBatch), 0)
	if err != nil {
		return err
	}
	s, stop := w.shift(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(errStopped) })()
	if left > 0 {
		defer time.AfterFunc(left, func() { stop(errStopped) }).Stop()
	}
	defer s.leases.begin(s.attempts)()
	s.left = left
	s.do(func() { s.start(offers, func() {}) })
	close(s.over)
	s.busy.Wait()
	return nil
}

// shift is one Run or Pass: what is under way in it.
type shift struct {
	*Worker
	taking   context.Context //nolint:containedctx // while it goes on, runs are started
	attempts context.Context //nolint:containedctx // of what has started, which outlives taking by the grace
	left     time.Duration   // how long it goes on, 0 for any time
	leases   *renewals
	busy     sync.WaitGroup
	idle     chan func()   // to those who have nothing to do
	over     chan struct{} // closed when nothing more is taken
}

func (w *Worker) shift(ctx context.Context) (*shift, context.CancelCauseFunc) {
	attempts, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	return &shift{Worker: w, taking: ctx, attempts: attempts, leases: newRenewals(w.Elapsed), idle: make(chan func()), over: make(chan struct{})}, stop
}

// do has f done by a goroutine that has nothing to do, or else by a new one, which stays for the next f: stacks grow with what is called,
// and to grow one for each run costs more than the rest of it. There are about as many as have had something to do at once, which the
// slots bound: one for each that was taken, and one for each that has just given its slot back.
func (s *shift) do(f func()) {
	select {
	case s.idle <- f:
		return
	default:
	}
	s.busy.Go(func() {
		for more := true; more; {
			f()
			select {
			case f = <-s.idle:
			case <-s.over:
				more = false
			}
		}
	})
}

// take takes runs and works on them until taking ends, or until the source refuses for good, which is its error.
func (s *shift) take() error {
	ctx := s.taking
	slots := make(chan struct{}, s.Concurrency)
	free := func() { <-slots }
	failures := 0
	for ctx.Err() == nil {
		s.short.over(s)
		room := s.reserve(ctx, slots)
		if room == 0 {
			break
		}
		offers, err := s.Source.Take(ctx, room, longPoll)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, ErrRefused):
			return err
		case err != nil:
			wait := min(time.Second<<min(failures, 4), 10*time.Second)
			failures++
			s.Log.WarnContext(ctx, "no runs are to be had", "error", err, "again_in", wait.String())
			s.sleep(ctx, wait)
		case failures > 0:
			s.Log.InfoContext(ctx, "runs are to be had again", "failures", failures)
			failures = 0
		}
		for range room - len(offers) {
			free()
		}
		if len(offers) > 0 {
			s.do(func() { s.start(offers, free) })
		}
	}
	return nil
}

// reserve takes slots: one at least, up to a batch; none when ctx has ended.
func (w *Worker) reserve(ctx context.Context, slots chan struct{}) int {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; n < MaxBatch; n++ {
		select {
		case slots <- struct{}{}:
		default:
			return n
		}
	}
	return MaxBatch
}

// patience is how long a suspect waits for its turn. A run whose time is near waits no longer either.
const patience = time.Second

// start starts what was offered of it that this worker can, and has what has begun called. ended is called for each, when nothing of it is
// under way any more. Nothing starts once taking has ended; what has started goes on until attempts ends.
func (s *shift) start(offers []Offer, ended func()) {
	leave := func(o Offer, why Leaving) {
		s.do(func() {
			o.Leave(context.WithoutCancel(s.attempts), why)
			ended()
		})
	}
	fit := offers[:0]
	var suspects []Offer
	for _, o := range offers {
		about := o.About()
		err := s.Targets.Can(about.Target)
		switch {
		case s.taking.Err() != nil:
			leave(o, Stopping)
		case err != nil:
			if about.First {
				s.Log.WarnContext(s.taking, "this worker cannot run it", "run", about.Run, "error", err)
			}
			leave(o, Incapable)
		case s.left > 0 && about.Timeout > s.left-patience:
			s.Log.WarnContext(s.taking, "a run may take longer than this worker lives: give its job a shorter timeout, or a queue whose workers live longer",
				"run", about.Run, "timeout", about.Timeout.String(), "left", s.left.String())
			leave(o, Incapable)
		case about.Suspect:
			suspects = append(suspects, o)
		default:
			fit = append(fit, o)
		}
	}
	if len(suspects) > 0 {
		s.do(func() { s.oneByOne(suspects, func(o Offer) { leave(o, Busy) }, ended) })
	}
	if len(fit) > 0 {
		s.launch(fit, ended)
	}
}

// launch has attempts begun, and each called by a goroutine of its own.
func (s *shift) launch(offers []Offer, ended func()) {
	s.Source.Start(s.taking, s.attempts, offers, func(i int, started Attempt, err error) {
		if err != nil {
			if !errors.Is(err, ErrGone) {
				s.Log.WarnContext(s.taking, "a run was not started", "run", offers[i].About().Run, "error", err)
			}
			ended()
			return
		}
		s.busy.Add(1)
		s.do(func() { s.attempt(started, ended) })
	})
}

// oneByOne lets runs whose next crash is their last go one at a time, in the order in which they were offered: any of them may be what kills its workers, and the
// culprit must not be mistaken for its neighbours. Those that would wait longer than a moment go elsewhere.
func (s *shift) oneByOne(suspects []Offer, leave func(Offer), ended func()) {
	moment, cancel := context.WithTimeout(s.taking, patience)
	defer cancel()
	for _, o := range suspects {
		if s.taking.Err() != nil || !s.alone(moment) {
			leave(o)
			continue
		}
		s.do(func() {
			s.launch([]Offer{o}, func() {
				<-s.suspects
				ended()
			})
		})
	}
}

// alone takes the place of the one suspect, unless ctx ends before it is free.
func (w *Worker) alone(ctx context.Context) bool {
	select {
	case w.suspects <- struct{}{}: // it is free, also where ctx has just ended
		return true
	default:
	}
	select {
	case w.suspects <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *Worker) sleep(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// register tells others in this process of an attempt. A run may have two here, an old one that was frozen past its lease and its
// successor.
func (w *Worker) register(a *attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[name{a.task.Tenant, a.task.Run}] = a
}

func (w *Worker) forget(a *attempt) {
	name := name{a.task.Tenant, a.task.Run}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[name] == a {
		delete(w.running, name)
	}
}

func (w *Worker) under(tenant string, id run.ID) *attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[name{tenant, id.String()}]
}

// Cancelled is a hint that a cancel was asked for: the attempt renews its lease at once, and so hears of it.
func (w *Worker) Cancelled(tenant string, id run.ID) {
	if a := w.under(tenant, id); a != nil {
		a.leases.hasten(&a.renewing)
	}
}

// LiveLog is what the attempt of a run under way here has written so far; false where there is none here.
func (w *Worker) LiveLog(tenant string, id run.ID) (so runlog.Log, ok bool) {
	a := w.under(tenant, id)
	if a == nil {
		return runlog.Log{}, false
	}
	so = a.log.Log(false)
	so.Attempt = a.task.Attempt
	return so, true
}

// Running counts the attempts under way.
func (w *Worker) Running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running)
}
