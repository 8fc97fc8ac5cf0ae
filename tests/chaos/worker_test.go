package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/rpc"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// workFor names the variable that makes this program a worker process on the store and queue at its address.
const workFor = "CHAOS_WORK_FOR"

const (
	workerName  = "CHAOS_WORKER"
	workerLease = 2 * time.Second
)

func work(address string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := workOn(ctx, address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func workOn(ctx context.Context, address string) error {
	calls, err := rpc.Dial("tcp", address)
	if err != nil {
		return err
	}
	name := os.Getenv(workerName)
	d, err := dispatcher(ctx, farStore{far{calls}}, farQueue{far{calls}})
	if err != nil {
		return err
	}
	targets, err := target.New(target.Config{Now: time.Now, Addresses: target.AddressPolicy{AllowLoopback: true}})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	desk, err := lease.New(lease.Config{Dispatch: d, Queue: job.DefaultQueue, Blobs: blob.New(memblob.OpenBucket(nil)), Metrics: metrics.New(), Name: name, Log: log})
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Source: desk, Targets: targets, Elapsed: d.Elapsed, Log: log, Grace: time.Millisecond})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func dispatcher(ctx context.Context, over store.Store, q queue.Queue) (*dispatch.Dispatcher, error) {
	layout, err := timer.Setup(ctx, over, 1, time.Now().UnixMilli(), newID)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return dispatch.New(dispatch.Config{
		Store: over, Book: job.NewBook(over, job.Compile), Queues: map[string]queue.Queue{job.DefaultQueue: q}, Layout: layout,
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: newID, Lease: workerLease,
	})
}

func newID() uint64 { return 1 + rand.Uint64N(1<<63) }

// Two worker processes share a store and a queue, which this process serves. One is stopped (SIGSTOP) with its calls under way,
// for longer than its leases. The other takes over: at least once runs again, at most once ends unknown. Then the targets of
// the first calls answer, and the first worker is woken (SIGCONT). Real are the processes, the signals, the HTTP calls, and all
// of the worker's code; the store is in memory.
func TestP5_P6_P7_Fault3_Fault36_a_worker_stopped_past_its_lease_and_woken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := &remote{store: memory.New(memory.Config{Now: time.Now}), queue: queuelocal.New(queuelocal.Config{Now: time.Now})}
	address := serveRemote(t, r)
	d, err := dispatcher(ctx, r.store, r.queue)
	if err != nil {
		t.Fatal(err)
	}
	service, err := control.New(control.Config{Store: r.store, Blobs: blob.New(memblob.OpenBucket(nil)), Dispatch: d, Now: time.Now, NewID: newID, Can: func(string, target.Spec) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	launchWorker := func(name string) (*exec.Cmd, *os.File) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), workFor+"="+address, workerName+"="+name)
		log := process.Log(t)
		cmd.Stderr = log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd, log
	}
	stands := func(id run.ID) run.Run {
		standing, err := service.Run(ctx, "default", id)
		if err != nil {
			t.Fatal(err)
		}
		return standing
	}

	stopped, log := launchWorker("stopped")
	h := newHeld(t)
	ids := map[string]run.ID{}
	for name, guarantee := range map[string]job.Guarantee{least: job.AtLeastOnce, most: job.AtMostOnce} {
		def := job.Definition{Guarantee: guarantee, Target: target.Spec{HTTP: &target.HTTP{URL: h.URL}}}
		if _, _, err := service.Put(ctx, "default", name, def, control.Match{}); err != nil {
			t.Fatal(err)
		}
		asked, _, err := service.Trigger(ctx, "default", name, control.Request{})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = asked.ID
	}
	first := map[string]*heldCall{}
	for range ids {
		c := h.next(t)
		first[c.run] = c
	}
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	launchWorker("other")
	second := h.next(t)
	if second.run != ids[least].String() || second.attempt != 2 || second.fence <= first[second.run].fence {
		t.Fatalf("after the lease: %+v, want attempt 2 of %s above fence %d", second, ids[least], first[second.run].fence)
	}
	second.letGo()
	process.Eventually(t, "the other worker's ends", func() (bool, error) {
		return stands(ids[least]).State == run.Succeeded && stands(ids[most]).State == run.Unknown,
			fmt.Errorf("at least once %s, at most once %s", stands(ids[least]).State, stands(ids[most]).State)
	})
	before := map[string]run.Run{least: stands(ids[least]), most: stands(ids[most])}

	for _, c := range first {
		c.letGo()
	}
	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, "the woken worker's late writes", func() (bool, error) {
		return refusedAll(process.Said(t, log), ids[least].String(), ids[most].String())
	})
	for name, was := range before {
		if is := stands(ids[name]); is.Version != was.Version || is.State != was.State {
			t.Errorf("%s: %s in version %d, after the late write %s in version %d", name, was.State, was.Version, is.State, is.Version)
		}
	}
	if got := load.FenceIn(before[least].Result.Inline); got != second.fence {
		t.Errorf("the result is of fence %d, want %d", got, second.fence)
	}
	if n := len(h.of(ids[most].String())); n != 1 {
		t.Errorf("at most once was called %d times", n)
	}
}
