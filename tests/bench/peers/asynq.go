package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// asynqSettings are what decides Asynq's speed; README.md tells which won, and against which.
type asynqSettings struct {
	Servers     int           // in one process: each fetches one task at a time
	Concurrency int           // of each
	Inserters   int           // Asynq inserts one by one, so that many do it at once
	Retention   time.Duration // of finished tasks; none is Asynq's default, which deletes them
}

// asynqBest is by how Redis keeps data.
var asynqBest = map[string]asynqSettings{
	"always":   {Servers: 64, Concurrency: 16, Inserters: 64},
	"everysec": {Servers: 4, Concurrency: 16, Inserters: 64},
	"none":     {Servers: 4, Concurrency: 16, Inserters: 64},
}

func (s asynqSettings) String() string {
	kept := "finished tasks deleted"
	if s.Retention > 0 {
		kept = "Retention " + s.Retention.String()
	}
	return fmt.Sprintf("servers %d, Concurrency %d, %s; Enqueue, %d at once", s.Servers, s.Concurrency, kept, s.Inserters)
}

// asynqPeer is Asynq on a Redis of the harness that keeps data in one way.
type asynqPeer struct {
	dir      string
	fsync    string // always, everysec, none
	settings asynqSettings
}

const asynqQueue = "default"

// open starts a new Redis and gives how to reach it.
func (a asynqPeer) open(ctx context.Context) (*redisServer, asynq.RedisClientOpt, error) {
	server, err := startRedis(ctx, filepath.Join(a.dir, "redis"), a.fsync)
	if err != nil {
		return nil, asynq.RedisClientOpt{}, err
	}
	return server, asynq.RedisClientOpt{Network: "unix", Addr: server.socket}, nil
}

func (a asynqPeer) burnDown(ctx context.Context, jobs int) (burnt, error) {
	server, reach, err := a.open(ctx)
	if err != nil {
		return burnt{}, err
	}
	defer server.stop()
	one, leave := a.enqueue(reach, a.settings.Inserters)
	defer leave()
	began := time.Now()
	if _, err := concurrently(ctx, a.settings.Inserters, jobs, one); err != nil {
		return burnt{}, err
	}
	insertedIn := time.Since(began)

	var left atomic.Int64
	left.Store(int64(jobs))
	none := make(chan struct{})
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if left.Add(-1) == 0 {
			close(none)
		}
		return nil
	})
	reach.PoolSize = a.settings.Concurrency + 8 // and one for each of a server's loops
	began = time.Now()
	for range a.settings.Servers {
		worker := asynq.NewServer(reach, asynq.Config{
			Concurrency: a.settings.Concurrency, LogLevel: asynq.FatalLevel,
			TaskCheckInterval: 100 * time.Millisecond, // of an empty queue: at the end
		})
		if err := worker.Start(handler); err != nil {
			return burnt{}, err
		}
		defer worker.Shutdown() // bounded by its ShutdownTimeout
	}
	select {
	case <-none:
	case <-ctx.Done():
		return burnt{}, fmt.Errorf("Asynq has %d tasks to process: %w", left.Load(), ctx.Err())
	}
	// The handlers have returned, but a task counts when it is recorded.
	inspector := asynq.NewInspector(reach)
	defer inspector.Close()
	var queue *asynq.QueueInfo
	err = until(ctx, func() (bool, error) {
		var err error
		queue, err = inspector.GetQueueInfo(asynqQueue)
		return err == nil && queue.Active+queue.Pending == 0, err
	})
	if err != nil {
		return burnt{}, err
	}
	worked := time.Since(began)
	if queue.ProcessedTotal != jobs || queue.FailedTotal != 0 || queue.Scheduled+queue.Retry+queue.Archived != 0 {
		return burnt{}, fmt.Errorf("Asynq has processed %d tasks, %d of them failed; want %d", queue.ProcessedTotal, queue.FailedTotal, jobs)
	}
	return burnt{jobs, insertedIn, worked}, nil
}

func (a asynqPeer) insert(ctx context.Context, callers, jobs int) (inserted, error) {
	server, reach, err := a.open(ctx)
	if err != nil {
		return inserted{}, err
	}
	defer server.stop()
	one, leave := a.enqueue(reach, callers)
	defer leave()
	if _, err := concurrently(ctx, callers, warmUp*callers, one); err != nil {
		return inserted{}, err
	}
	took, err := concurrently(ctx, callers, jobs, one)
	if err != nil {
		return inserted{}, err
	}
	inspector := asynq.NewInspector(reach)
	defer inspector.Close()
	queue, err := inspector.GetQueueInfo(asynqQueue)
	if err != nil {
		return inserted{}, err
	}
	if queue.Pending != jobs+warmUp*callers {
		return inserted{}, fmt.Errorf("Asynq has %d tasks pending, want %d", queue.Pending, jobs+warmUp*callers)
	}
	return took, nil
}

// enqueue gives what inserts one task, by a client with a connection for each caller, and what closes that client.
func (a asynqPeer) enqueue(reach asynq.RedisClientOpt, callers int) (one func(context.Context, int) error, leave func()) {
	reach.PoolSize = callers
	client := asynq.NewClient(reach)
	var options []asynq.Option
	if a.settings.Retention > 0 {
		options = append(options, asynq.Retention(a.settings.Retention))
	}
	one = func(ctx context.Context, n int) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask("noop", []byte(`{"num":`+strconv.Itoa(n)+`}`), options...))
		return err
	}
	return one, func() { _ = client.Close() }
}
