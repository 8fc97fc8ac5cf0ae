package belfry

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Belfry is a scheduler that is open: in this process, or elsewhere. Its methods may be called by many goroutines at once.
type Belfry struct {
	engine   engine
	handlers *target.Registry
	log      *slog.Logger
	now      func() time.Time
	queue    string // of the jobs that are handled here

	mu    sync.Mutex
	kinds map[string]*kind // by name of the handler
	phase phase
	fault error // why the work has ended unasked

	callers sync.Map // the goroutines in which handlers run, by name

	stop   context.CancelFunc // of the work; nil before Start
	worked chan error         // gives the end of the work
	over   chan struct{}      // closed when all is closed
	ended  error              // what stopping found; read once over is closed
}

type phase uint8

const (
	opened phase = iota
	started
	stopped
)

// engine is what a Belfry stands on: a node in this process, a client of a remote one, or what belfrytest has.
type engine interface {
	local() bool

	// job gives a job, and the condition under which what was read still stands. One that is not there is no error.
	job(ctx context.Context, name string) (job.Definition, control.Match, error)
	put(ctx context.Context, name string, def job.Definition, only control.Match) error
	remove(ctx context.Context, name string) error
	pause(ctx context.Context, name, reason string) error
	resume(ctx context.Context, name string) error
	openLine(ctx context.Context, name string, o Opening) error

	// gate gives the definition of a gate, and the condition under which what was read still stands. One that is not there is no error.
	gate(ctx context.Context, name string) (gate.Definition, control.Match, error)
	putGate(ctx context.Context, name string, def gate.Definition, only control.Match) error

	trigger(ctx context.Context, job string, r control.Request) (Run, error)

	// triggerMany gives one verdict each, or an error and none. There are at most mostOrders.
	triggerMany(ctx context.Context, job string, requests []control.Request) ([]Enqueued, error)
	run(ctx context.Context, id string) (Run, error)
	runs(ctx context.Context, job string, states []State) iter.Seq2[Run, error]
	cancel(ctx context.Context, id, reason string) error
	retry(ctx context.Context, id string) error
	log(ctx context.Context, id string) ([]byte, error)

	ready(ctx context.Context) error

	// work runs what the handlers are for until ctx ends, then drains; hurry ends the drain.
	work(ctx context.Context) error
	hurry()
	close() error
}

// Open opens a scheduler. Nothing runs before [Belfry.Start].
//
//   - "memory:" is in this process, and gone with it: for tests and trials.
//   - "pebble:///var/lib/app" is in this process, its data in that folder, made when it is not there; "pebble:data" is a folder
//     below the working one. What was accepted survives a kill and a power cut. One process at a time has a folder
//     ([CodeInUse]); `belfry dev --data` opens the same one when the program is stopped.
//   - "http://host:7340" and "https://host" are a Belfry elsewhere. Handlers still run in this process, and in as many others as have
//     them: see [RemoteQueue] and [Token]. Opening calls nobody.
//
// Whatever Open gives must be closed by [Belfry.Stop]. ctx bounds the opening alone.
func Open(ctx context.Context, at string, opts ...Option) (*Belfry, error) {
	cfg := config{concurrency: 50, queue: job.DefaultQueue, log: slog.New(quiet{slog.Default().Handler()})}
	for _, o := range opts {
		o.apply(&cfg)
	}
	if cfg.concurrency < 1 || cfg.concurrency > 10_000 {
		return nil, refused(invalid.Field("concurrency", fmt.Sprint(cfg.concurrency), "1 to 10000"))
	}
	if err := cfg.checkCallbacks(); err != nil {
		return nil, refused(err)
	}
	if cfg.log == nil {
		return nil, refused(invalid.Missing("logger", "a logger, or no such option"))
	}
	scheme, rest, _ := strings.Cut(at, ":")
	wrong := refused(invalid.Field("url", at, `"memory:", "pebble:///a/folder", "pebble:folder", or "http://host:7340"`))
	handlers := new(target.Registry)
	var e engine
	var err error
	switch scheme {
	case "memory":
		if rest != "" {
			return nil, wrong
		}
		e, err = openEmbedded(ctx, "", handlers, cfg)
	case "pebble":
		folder, bad := url.PathUnescape(strings.TrimPrefix(rest, "//"))
		if bad != nil || folder == "" || strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///") {
			return nil, wrong
		}
		e, err = openEmbedded(ctx, folder, handlers, cfg)
	case "http", "https":
		e, err = openRemote(at, handlers, cfg)
	default:
		return nil, wrong
	}
	if err != nil {
		return nil, refused(err)
	}
	if e.local() {
		cfg.queue = job.DefaultQueue // there is no other in this process
	} else {
		for _, f := range cfg.named() {
			cfg.log.Warn("a remote Belfry goes by its own setting, and not by this option: see belfry serve --on-failed", "option", f.option, "job", f.callee[""])
		}
	}
	return over(e, handlers, clock, cfg), nil
}

func over(e engine, handlers *target.Registry, now func() time.Time, cfg config) *Belfry {
	return &Belfry{engine: e, handlers: handlers, log: cfg.log, now: now, queue: cfg.queue, kinds: map[string]*kind{}, worked: make(chan error, 1), over: make(chan struct{})}
}

// Start stores the jobs of all handlers, and begins to run what is due. It does not wait for the work: [Belfry.Stop] ends it. ctx bounds
// the storing alone, which a Stop ends too.
//
// What the code says of a job holds from here on: its options replace those of an earlier version of the program. Its schedule is
// [Belfry.Schedule]'s to say.
func (b *Belfry) Start(ctx context.Context) error {
	b.mu.Lock()
	if b.phase != opened {
		defer b.mu.Unlock()
		return &Error{Code: CodeInvalid, Message: "Start was called twice, or after Stop"}
	}
	b.phase = started
	names := make([]string, 0, len(b.kinds))
	for name := range b.kinds {
		names = append(names, name)
	}
	// The work outlives ctx, and carries what it carries.
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	b.mu.Unlock()

	storing, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(working, end)() // Stop waits for it
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		errs = append(errs, b.define(storing, name))
	}
	if err := errors.Join(errs...); err != nil {
		b.worked <- nil // nothing works; Stop still closes
		return err
	}
	go func() {
		err := b.engine.work(working)
		if err != nil && working.Err() == nil {
			b.log.Error("nothing is run any more", "error", err)
			b.mu.Lock()
			b.fault = fmt.Errorf("nothing is run any more: %w", err)
			b.mu.Unlock()
		}
		b.worked <- err
	}()
	return nil
}

// Ready tells whether the scheduler does its work: nil, or what is wrong. It suits a health check.
func (b *Belfry) Ready(ctx context.Context) error {
	b.mu.Lock()
	fault := b.fault
	b.mu.Unlock()
	if fault != nil {
		return refused(fault)
	}
	return refused(b.engine.ready(ctx))
}

// quiet lets warnings and errors pass.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
