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
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/blob"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/prometheus"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// process is the parts of a server, wired.
type process struct {
	store   *pebble.Store
	blobs   *blob.Bucket
	queues  map[string]queue.Queue
	node    *node.Node
	handler http.Handler
	name    string
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
	p.queues = queues
	remoteKey := make([]byte, 32)
	if _, err := crand.Read(remoteKey); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	p.name = fmt.Sprintf("%s-%d-%x", host, os.Getpid(), uint32(newID()))
	// The folder's lock is the store's, so the store comes first.
	// What has expired goes only behind the last sweep: after a long downtime nothing is cleaned up that no tick has read.
	var running atomic.Pointer[node.Node]
	swept := func() time.Time {
		if n := running.Load(); n != nil {
			return n.Swept()
		}
		return time.Unix(0, 0)
	}
	if p.store, err = openStore(s.data, log, swept); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.blobs, err = openBlobs(ctx, s.data); err != nil {
		return nil, err
	}
	vault, secrets, err := s.secrets.open(p.store)
	if err != nil {
		return nil, err
	}
	targets, err := target.New(target.Config{Secrets: secrets, Now: time.Now, AllowExec: s.allowExec, BaseEnv: os.Environ(), Addresses: s.addresses,
		UserAgent: "Belfry/" + thisBuild().Version})
	if err != nil {
		return nil, err
	}
	registry := metrics.New()
	if p.node, err = node.New(ctx, node.Config{
		Store: p.store, Queues: p.queues, Blobs: p.blobs, Targets: targets, Metrics: registry, Log: log, Name: p.name,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(p.began) }, NewID: newID, CleansBySwept: true,
		Lease: s.lease, Concurrency: s.concurrency, Grace: s.grace, Elsewhere: elsewhere, RemoteKey: remoteKey, Secrets: secrets,
	}); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", s.data, err)
	}
	running.Store(p.node)
	shown, err := prometheus.Handler(registry, time.Now)
	if err != nil {
		return nil, err
	}
	tokens, err := openTokens(p.store, log)
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

// close ends what openProcess opened, when nothing uses it any more.
func (p *process) close() error {
	var errs []error
	for _, q := range p.queues {
		errs = append(errs, q.Close())
	}
	if p.blobs != nil {
		errs = append(errs, p.blobs.Close())
	}
	return errors.Join(append(errs, p.store.Close())...)
}

func storeFolder(data string) string { return filepath.Join(data, "store") }

func blobFolder(data string) string { return filepath.Join(data, "blobs") }

// backup writes a backup of the running server.
func (p *process) backup(ctx context.Context, out io.Writer) error {
	_, _, err := backup.Write(ctx, out, backup.Source{Store: p.store, Blobs: p.blobs, Now: time.Now, Version: thisBuild().Version}, nil)
	return err
}

func openBlobs(ctx context.Context, data string) (*blob.Bucket, error) {
	path, err := filepath.Abs(blobFolder(data))
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	where := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	opened, err := bloblocal.Open(ctx, where.String())
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	return opened, nil
}

func openStore(data string, log *slog.Logger, now func() time.Time) (*pebble.Store, error) {
	if _, err := os.Stat(filepath.Join(data, unfinished)); err == nil {
		return nil, fmt.Errorf("data folder %s holds a restore that was cut short: remove it, and restore again", data)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	opened, err := pebble.Open(pebble.Config{Dir: storeFolder(data), Logger: log, Now: now})
	if errors.Is(err, pebble.ErrLocked) {
		return nil, fmt.Errorf("data folder %s is in use by another Belfry; stop it, or choose another with --data", data)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", data, err)
	}
	return opened, nil
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
