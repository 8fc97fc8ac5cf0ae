package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSettings are what decides River's speed; README.md tells which won, and against which.
type riverSettings struct {
	Clients     int           // that work, in one process
	Workers     int           // MaxWorkers of each
	Cooldown    time.Duration // FetchCooldown
	Poll        time.Duration // FetchPollInterval
	Connections int           // of the pool
	Singles     int           // of the pool, where callers insert one by one; 0: one for each caller
	Batch       int           // jobs an insert of many
	Inserters   int           // that insert batches at once
	Fast        bool          // InsertManyFast, by COPY, else InsertMany
}

var riverBest = riverSettings{
	Clients: 1, Workers: 2000, Cooldown: 2 * time.Millisecond, Poll: 20 * time.Millisecond, Connections: 16, Batch: 5000, Inserters: 2, Fast: true,
}

func (s riverSettings) String() string {
	how := "InsertMany"
	if s.Fast {
		how = "InsertManyFast"
	}
	return fmt.Sprintf("clients %d, MaxWorkers %d, FetchCooldown %s, FetchPollInterval %s, connections %d; %s of %d, %d at once; one by one, %s",
		s.Clients, s.Workers, s.Cooldown, s.Poll, s.Connections, how, s.Batch, s.Inserters, s.singles())
}

// singles tells of the pool where callers insert one by one.
func (s riverSettings) singles() string {
	if s.Singles == 0 {
		return "a connection for each caller"
	}
	return fmt.Sprintf("%d connections", s.Singles)
}

// riverPeer is River on a PostgreSQL cluster of the harness.
type riverPeer struct {
	postgres  *postgres
	configure []string // of PostgreSQL
	settings  riverSettings
}

type noopArgs struct {
	Number int `json:"num"`
}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	left atomic.Int64
	none chan struct{} // closed when as many have been worked as there are
}

func (w *noopWorker) Work(context.Context, *river.Job[noopArgs]) error {
	if w.left.Add(-1) == 0 {
		close(w.none)
	}
	return nil
}

// open starts the cluster, with River's tables new.
func (r riverPeer) open(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	pool, err := r.postgres.start(ctx, r.configure, connections)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	// As River's own benchmark begins. The checkpoint makes the log segments of the round before fit for use again.
	for _, statement := range []string{"TRUNCATE river_job", "VACUUM FULL river_job", "VACUUM ANALYZE", "CHECKPOINT"} {
		if err == nil {
			_, err = pool.Exec(ctx, statement)
		}
	}
	if err != nil {
		leave(pool)
		return nil, err
	}
	return pool, nil
}

// leave gives a pool's connections up; what hangs is cut when the server ends.
func leave(pool *pgxpool.Pool) {
	left := make(chan struct{})
	go func() {
		pool.Close()
		close(left)
	}()
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case <-left:
	case <-over.C:
	}
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

func (r riverPeer) burnDown(ctx context.Context, jobs int) (burnt, error) {
	defer r.postgres.stop()
	pool, err := r.open(ctx, r.settings.Connections)
	if err != nil {
		return burnt{}, err
	}
	defer leave(pool)
	worker := &noopWorker{none: make(chan struct{})}
	worker.left.Store(int64(jobs))
	clients := make([]*river.Client[pgx.Tx], r.settings.Clients)
	for n := range clients {
		workers := river.NewWorkers()
		river.AddWorker(workers, worker)
		clients[n], err = river.NewClient(riverpgxv5.New(pool), &river.Config{
			FetchCooldown: r.settings.Cooldown, FetchPollInterval: r.settings.Poll, Logger: quiet(),
			Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: r.settings.Workers}},
			Workers: workers,
		})
		if err != nil {
			return burnt{}, err
		}
	}
	began := time.Now()
	if err := r.insertBatches(ctx, clients[0], jobs); err != nil {
		return burnt{}, err
	}
	inserted := time.Since(began)

	began = time.Now()
	for _, client := range clients {
		if err := client.Start(ctx); err != nil {
			return burnt{}, err
		}
		defer func() {
			// Under a deadline of its own: it is to leave in order when ctx has ended too.
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			_ = client.StopAndCancel(ending)
		}()
	}
	select {
	case <-worker.none:
	case <-ctx.Done():
		return burnt{}, fmt.Errorf("River has %d jobs to work: %w", worker.left.Load(), ctx.Err())
	}
	// The workers have returned, but a run counts when it is recorded.
	err = until(ctx, func() (bool, error) {
		var open bool
		err := pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM river_job WHERE state IN ('available', 'running'))").Scan(&open)
		return !open, err
	})
	if err != nil {
		return burnt{}, err
	}
	worked := time.Since(began)

	var completed, all int
	if err := pool.QueryRow(ctx, "SELECT count(*) FILTER (WHERE state = 'completed'), count(*) FROM river_job").Scan(&completed, &all); err != nil {
		return burnt{}, err
	}
	if completed != jobs || all != jobs {
		return burnt{}, fmt.Errorf("River has %d of %d jobs completed, want %d", completed, all, jobs)
	}
	return burnt{jobs, inserted, worked}, nil
}

// insertBatches inserts jobs in batches, some at once.
func (r riverPeer) insertBatches(ctx context.Context, client *river.Client[pgx.Tx], jobs int) error {
	batches := (jobs + r.settings.Batch - 1) / r.settings.Batch
	_, err := concurrently(ctx, r.settings.Inserters, batches, func(ctx context.Context, batch int) error {
		first := batch * r.settings.Batch
		many := make([]river.InsertManyParams, min(r.settings.Batch, jobs-first))
		for n := range many {
			many[n].Args = noopArgs{first + n}
		}
		if r.settings.Fast {
			_, err := client.InsertManyFast(ctx, many)
			return err
		}
		_, err := client.InsertMany(ctx, many)
		return err
	})
	return err
}

func (r riverPeer) insert(ctx context.Context, callers, jobs int) (inserted, error) {
	defer r.postgres.stop()
	connections := r.settings.Singles
	if connections == 0 {
		connections = callers
	}
	pool, err := r.open(ctx, connections)
	if err != nil {
		return inserted{}, err
	}
	defer leave(pool)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet()})
	if err != nil {
		return inserted{}, err
	}
	one := func(ctx context.Context, n int) error {
		_, err := client.Insert(ctx, noopArgs{n}, nil)
		return err
	}
	if _, err := concurrently(ctx, callers, warmUp*callers, one); err != nil {
		return inserted{}, err
	}
	took, err := concurrently(ctx, callers, jobs, one)
	if err != nil {
		return inserted{}, err
	}
	var found int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM river_job").Scan(&found); err != nil {
		return inserted{}, err
	}
	if found != jobs+warmUp*callers {
		return inserted{}, fmt.Errorf("River has %d jobs, want %d", found, jobs+warmUp*callers)
	}
	return took, nil
}
