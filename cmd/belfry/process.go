package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/changes"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/console"
	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/prometheus"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/terminal"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// process is the parts of a server, wired.
type process struct {
	store   store.Store
	node    *node.Node
	targets *target.Set
	handler http.Handler
	began   time.Time

	failed <-chan struct{} // closed when the disk has failed; nil for what has none
	close  func() error    // gives the data back, when nothing uses it any more
	backup func(context.Context, io.Writer) error

	disk        *disk        // nil without a data folder
	certificate *certificate // nil without TLS

	changes changes.Hub
	queues  map[string]*queuelocal.Queue // those in this process's memory; nil for what is in front of a shared store
}

func openProcess(ctx context.Context, s settings, log *slog.Logger) (_ *process, err error) {
	p := &process{began: time.Now()}
	pools, elsewhere, err := s.pools.read()
	if err != nil {
		return nil, err
	}
	remoteKey := make([]byte, 32)
	if _, err := crand.Read(remoteKey); err != nil {
		return nil, err
	}
	registry := metrics.New()
	wire, err := p.open(ctx, s, pools, registry, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	tracer, ended, err := s.trace.open(ctx, log)
	if err != nil {
		return nil, err
	}
	leave := p.close
	p.close = func() error { defer ended(); return leave() }
	vault, secrets, err := s.secrets.open(p.store, log)
	if err != nil {
		return nil, err
	}
	callAWS, err := s.aws.open(ctx)
	if err != nil {
		return nil, err
	}
	calls := target.Config{Secrets: secrets, Now: time.Now, AllowExec: s.allowExec, BaseEnv: os.Environ(), Addresses: s.addresses, AWS: callAWS, ARNs: s.aws,
		UserAgent: "Belfry/" + thisBuild().Version}
	s.mail.add(&calls, log)
	if p.targets, err = target.New(calls); err != nil {
		return nil, err
	}
	if p.node, err = wire(node.Config{
		Targets: p.targets, Metrics: registry, Log: log,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(p.began) }, NewID: newID,
		Lease: s.lease, CatchUpRate: s.catchUpRate, Callbacks: s.callbacks.read(), Concurrency: s.concurrency, Grace: graceOf(s.grace), Elsewhere: elsewhere, RemoteKey: remoteKey, Secrets: secrets, Tracer: tracer,
		Changes: &p.changes,
	}); err != nil {
		return nil, err
	}
	scraped, err := prometheus.Handler(registry, time.Now)
	if err != nil {
		return nil, err
	}
	tokens, err := openTokens(p.store, log)
	if err != nil {
		return nil, err
	}
	gate, err := s.door.gate(ctx, tokens, s.place(), log)
	if err != nil {
		return nil, err
	}
	if s.door.tlsCert != "" {
		if p.certificate, err = readCertificate(s.door.tlsCert, s.door.tlsKey, log); err != nil {
			return nil, err
		}
	}
	shown := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range p.ready(r.Context()) {
			registry.Check.Set(float64(slices.Index(checkStates, c.State)), c.Name)
		}
		scraped.ServeHTTP(w, r)
	})
	var pages http.Handler
	if s.console {
		if pages, err = console.New(console.Config{Prefix: api.ConsolePath}); err != nil {
			return nil, err
		}
	}
	p.handler, err = api.New(api.Config{
		Control: p.node.Control, Gate: gate, Now: time.Now, Version: thisBuild().Version, Log: log,
		NewID: newID, Counts: registry, Tracer: tracer,
		Ready: p.ready, Queues: p.waiting, Workers: p.workers, Look: api.LookInto(p.queues, p.node.Elsewhere), Metrics: shown, Backup: p.backup, Secrets: vault, Remote: p.node.Remote, Console: pages,
		Simulator: simulate.Service{}, Planner: plan.Service{Store: plan.Adapter{Writes: dynamo.Parallel}}, Changes: &api.Changes{Hub: &p.changes, Complete: !s.engines.shared()},
		Local: s.local && !s.door.behindProxy, Hosts: s.hosts, BehindProxy: s.door.behindProxy,
	})
	return p, err
}

func openTokens(on store.Store, log *slog.Logger) (*access.Tokens, error) {
	return access.New(access.Config{Store: on, Now: time.Now, Random: crand.Reader, NewID: newID, Log: log})
}

// place is the flag that names where the tokens are.
func (s *settings) place() string {
	if s.engines.shared() {
		return "--store " + s.engines.store
	}
	return "--data " + s.data
}

// open opens what the data is kept in, and gives what wires a node over it.
func (p *process) open(ctx context.Context, s settings, pools []cloud.Pool, registry *metrics.Registry, log *slog.Logger) (func(node.Config) (*node.Node, error), error) {
	if s.engines.shared() {
		return p.openShared(ctx, s, pools, registry, log)
	}
	data, err := openData(ctx, s.data, log)
	if err != nil {
		return nil, err
	}
	p.store, p.failed, p.close, p.disk = data.Store, data.Failed(), data.Close, &disk{folder: s.data}
	p.backup = func(ctx context.Context, out io.Writer) error {
		_, _, err := backup.Write(ctx, out, backup.Source{Store: data.Store, Blobs: data.Blobs, Now: time.Now, Version: thisBuild().Version}, nil)
		return err
	}
	return func(cfg node.Config) (*node.Node, error) {
		cfg.Queues, cfg.Longest, p.queues = map[string]queue.Queue{}, map[string]time.Duration{}, map[string]*queuelocal.Queue{}
		for _, pool := range pools {
			p.queues[pool.Name] = queuelocal.New(queuelocal.Config{})
			cfg.Queues[pool.Name], cfg.Longest[pool.Name] = p.queues[pool.Name], pool.Longest
		}
		n, err := data.Node(ctx, cfg)
		if err != nil {
			err = fmt.Errorf("data folder %s: %w", s.data, err)
		}
		return n, err
	}, nil
}

// openShared is open for engines that other processes have too. A backup of them is AWS's to make.
func (p *process) openShared(ctx context.Context, s settings, pools []cloud.Pool, registry *metrics.Registry, log *slog.Logger) (func(node.Config) (*node.Node, error), error) {
	data, err := s.engines.open(ctx, pools, registry, log)
	if err != nil {
		return nil, err
	}
	receives, err := s.engines.receives(ctx, pools)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	p.store, p.close = data.Store, data.Close
	return func(cfg node.Config) (*node.Node, error) {
		cfg.MaxReceives = receives
		cfg.NoTicks, cfg.LookAhead, cfg.Every, cfg.Shards = s.noTicks, s.ticks.lookAhead, s.ticks.every, s.ticks.shards
		for _, pool := range pools {
			if _, others := cfg.Elsewhere[pool.Name]; !others && !s.noWork && (len(s.work) == 0 || slices.Contains(s.work, pool.Name)) {
				cfg.Serves = append(cfg.Serves, pool.Name)
			}
		}
		for _, name := range s.work {
			if !slices.Contains(cfg.Serves, name) {
				return nil, misused("--work %s: want default, or a queue that --queue names", name)
			}
		}
		return data.Node(ctx, cfg)
	}, nil
}

func openData(ctx context.Context, folder string, log *slog.Logger) (*embed.Data, error) {
	opened, err := embed.Open(ctx, folder, log)
	return opened, inUse(err)
}

func openStore(folder string, log *slog.Logger, now func() time.Time) (*pebble.Store, error) {
	opened, err := embed.OpenStore(folder, log, now)
	return opened, inUse(err)
}

// inUse says what would help where another process has the data folder.
func inUse(err error) error {
	if errors.Is(err, embed.ErrInUse) {
		return fmt.Errorf("%w; stop it, or choose another with --data", err)
	}
	return err
}

// newID draws from the process's own source, seeded by the system at its start; 0 means no ID.
func newID() uint64 {
	for {
		if id := rand.Uint64(); id != 0 {
			return id
		}
	}
}

func newLog(out io.Writer, format, level string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, misused("--log-level %q: want debug, info, warn or error", level)
	}
	options.Level = least
	switch {
	case format == "text" || format == "auto" && isTerminal(out):
		return slog.New(trace.Log(slog.NewTextHandler(out, &options))), nil
	case format == "json" || format == "auto":
		return slog.New(trace.Log(slog.NewJSONHandler(terminal.Escaped(out), &options))), nil
	}
	return nil, misused("--log-format %q: want auto, text or json", format)
}

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
