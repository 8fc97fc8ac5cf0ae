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
	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/prometheus"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// process is the parts of a server, wired.
type process struct {
	data    *embed.Data
	node    *node.Node
	handler http.Handler
	began   time.Time

	disk        disk
	certificate *certificate // nil without TLS
}

func openProcess(ctx context.Context, s settings, log *slog.Logger) (_ *process, err error) {
	p := &process{began: time.Now(), disk: disk{folder: s.data}}
	queues, elsewhere, err := s.pools.open()
	if err != nil {
		return nil, err
	}
	remoteKey := make([]byte, 32)
	if _, err := crand.Read(remoteKey); err != nil {
		return nil, err
	}
	if p.data, err = openData(ctx, s.data, log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.data.Close())
		}
	}()
	vault, secrets, err := s.secrets.open(p.data.Store)
	if err != nil {
		return nil, err
	}
	targets, err := target.New(target.Config{Secrets: secrets, Now: time.Now, AllowExec: s.allowExec, BaseEnv: os.Environ(), Addresses: s.addresses,
		UserAgent: "Belfry/" + thisBuild().Version})
	if err != nil {
		return nil, err
	}
	registry := metrics.New()
	if p.node, err = p.data.Node(ctx, node.Config{
		Queues: queues, Targets: targets, Metrics: registry, Log: log,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(p.began) }, NewID: newID,
		Lease: s.lease, Concurrency: s.concurrency, Grace: s.grace, Elsewhere: elsewhere, RemoteKey: remoteKey, Secrets: secrets,
	}); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", s.data, err)
	}
	scraped, err := prometheus.Handler(registry, time.Now)
	if err != nil {
		return nil, err
	}
	tokens, err := openTokens(p.data.Store, log)
	if err != nil {
		return nil, err
	}
	gate, err := s.door.gate(ctx, tokens, s.data, log)
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
	p.handler, err = api.New(api.Config{
		Control: p.node.Control, Gate: gate, Now: time.Now, Version: thisBuild().Version, Log: log,
		Ready: p.ready, Queues: p.waiting, Workers: p.workers, Metrics: shown, Backup: p.backup, Secrets: vault, Remote: p.node.Remote,
		Local: s.local && !s.door.behindProxy, Hosts: s.hosts, BehindProxy: s.door.behindProxy,
	})
	return p, err
}

func openTokens(on store.Store, log *slog.Logger) (*access.Tokens, error) {
	return access.New(access.Config{Store: on, Now: time.Now, Random: crand.Reader, NewID: newID, Log: log})
}

// backup writes a backup of the running server.
func (p *process) backup(ctx context.Context, out io.Writer) error {
	_, _, err := backup.Write(ctx, out, backup.Source{Store: p.data.Store, Blobs: p.data.Blobs, Now: time.Now, Version: thisBuild().Version}, nil)
	return err
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
		return slog.New(slog.NewTextHandler(out, &options)), nil
	case format == "json" || format == "auto":
		return slog.New(slog.NewJSONHandler(out, &options)), nil
	}
	return nil, misused("--log-format %q: want auto, text or json", format)
}

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
