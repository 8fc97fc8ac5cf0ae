//go:build emulators

package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

const tenant = "default"

// place is a table, queues, and a file in which every call of a target is noted: what processes share.
type place struct {
	Name  string
	Calls string
	Role  string // of a process that is started to be killed
}

func awsConfig() aws.Config {
	return aws.Config{Region: "eu-central-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
	})}
}

func (p place) table() dynamo.Config {
	return dynamo.Config{AWS: awsConfig(), Table: p.Name, Endpoint: os.Getenv("BELFRY_TEST_DYNAMODB"), Random: rand.Uint64}
}

func (p place) queues() sqs.Config {
	return sqs.Config{Address: sqs.Address{Prefix: p.Name, Endpoint: os.Getenv("BELFRY_TEST_SQS")}, AWS: awsConfig(), Rand: rand.Float64}
}

// faults are what goes wrong with a process. Nil: nothing.
type faults struct {
	store faulty.Hook
	queue queuefaulty.Hooks
	call  target.Func // what the target does, after it was noted
}

// process is a scheduler over the place: a node that ticks, works and serves, with the clock of the test.
type process struct {
	*node.Node
	store *faulty.Store
}

// open wires one. clock may be ahead of the host's.
func (p place) open(ctx context.Context, clock func() time.Time, f faults, worker, ticks bool) (*process, error) {
	table, err := dynamo.Open(ctx, p.table())
	if err != nil {
		return nil, err
	}
	s := faulty.New(table, f.store)
	s.SetSkew(0) // the clock of a test may be ahead of the emulator's
	q, err := sqs.New(p.queues())
	if err != nil {
		return nil, err
	}
	wrapped := queuefaulty.Wrap(q, f.queue)
	handlers := new(target.Registry)
	if err := handlers.Register("note", func(ctx context.Context, call target.Call) (target.Result, error) {
		if err := p.note(call); err != nil {
			return target.Result{}, err
		}
		if f.call != nil {
			return f.call(ctx, call)
		}
		return target.Result{}, nil
	}); err != nil {
		return nil, err
	}
	targets, err := target.New(target.Config{Now: clock, Handlers: handlers})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	cfg := node.Config{
		Store: s, Queues: map[string]queue.Queue{"default": wrapped}, Blobs: blob.New(memblob.OpenBucket(nil)), Targets: targets,
		Metrics: metrics.New(), Now: clock, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64,
		Name: fmt.Sprintf("%s-%d-%d", p.Role, os.Getpid(), rand.Uint32()), Log: slog.New(slog.DiscardHandler),
		Shards: 2, LookAhead: 4 * time.Second, Every: 500 * time.Millisecond, Lease: 4 * time.Second, Shared: true, NoTicks: !ticks,
	}
	if worker {
		cfg.Serves = []string{"default"}
	}
	n, err := node.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &process{Node: n, store: s}, nil
}

// note writes that the target was called, before anything can kill the process.
func (p place) note(call target.Call) error {
	f, err := os.OpenFile(p.Calls, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d\n", call.Run, call.Attempt)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// rig is a place and the process of the test itself.
type rig struct {
	*testing.T
	place
	*process
	ahead atomic.Int64 // how far the clock is ahead of the host's
	mu    sync.Mutex
	f     faults
}

var places atomic.Int64

// newRig makes table and queues, and starts a process over them.
func newRig(t *testing.T, f faults, worker, ticks bool) *rig {
	t.Helper()
	t.Parallel()
	r := &rig{T: t, place: place{Name: "adapters-" + strconv.FormatInt(places.Add(1), 10), Calls: filepath.Join(t.TempDir(), "calls"), Role: "test"}, f: f}
	if os.Getenv("BELFRY_TEST_DYNAMODB") == "" || os.Getenv("BELFRY_TEST_SQS") == "" {
		t.Fatal("BELFRY_TEST_DYNAMODB and BELFRY_TEST_SQS are not set: run make deep-emulators")
	}
	if err := dynamo.CreateTable(t.Context(), r.table()); err != nil {
		t.Fatal(err)
	}
	if _, err := sqs.Create(t.Context(), r.queues(), r.Name+"-dead", 20); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.process, err = r.open(t.Context(), r.now, faults{store: r.hook, queue: f.queue, call: f.call}, worker, ticks); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.process.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

// hook hands on to the fault of the store, which may be changed.
func (r *rig) hook(ctx context.Context, c faulty.Call) faulty.Fault {
	r.mu.Lock()
	hook := r.f.store
	r.mu.Unlock()
	if hook == nil {
		return faulty.Fault{}
	}
	return hook(ctx, c)
}

func (r *rig) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.f.store = nil
}

// job puts one; a test under faults tries until it is answered, as a client does.
func (r *rig) job(name string, change func(*job.Definition)) {
	r.Helper()
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
	if change != nil {
		change(&def)
	}
	var err error
	r.until("the job is put", func() bool {
		_, _, err = r.Control.Put(r.Context(), tenant, name, def, control.Match{})
		var refused *control.Refusal
		return err == nil || errors.As(err, &refused) && refused.RetryAfter == 0
	})
	if err != nil {
		r.Fatal(err)
	}
}

// trigger asks for runs of a job, each under its key, until each was answered.
func (r *rig) trigger(name string, n int) {
	r.Helper()
	var asking sync.WaitGroup
	for i := range n {
		asking.Go(func() {
			r.until("the run is accepted", func() bool {
				_, _, err := r.Control.Trigger(r.Context(), tenant, name, control.Request{Key: fmt.Sprint(name, "-", i)})
				return err == nil
			})
		})
	}
	asking.Wait()
}

// patience bounds every wait for other processes and engines, where it would hang.
const patience = 5 * time.Minute

// until waits for something that no signal tells of, since it happens in other processes.
func (r *rig) until(what string, is func() bool) {
	r.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	for every := time.NewTicker(100 * time.Millisecond); ; {
		if is() {
			every.Stop()
			return
		}
		select {
		case <-every.C:
		case <-over.C:
			r.Errorf("after %s still not so: %s", patience, what)
			return
		}
	}
}

// later lets the clock go on to where the first sweep looks, then its checks, and the next ones.
func (r *rig) later() {
	r.Helper()
	for _, ahead := range []time.Duration{4 * time.Minute, 9 * time.Minute, 19 * time.Minute} {
		r.ahead.Store(int64(ahead))
		at := r.now().UnixMilli()
		r.until("the first sweep has come so far", func() bool { return r.swept() > at-200_000 })
		select {
		case <-time.After(2 * time.Second): // for workers: nothing tells that they have nothing to do
		case <-r.Context().Done():
		}
	}
}

// swept is up to where the first sweep has come, Unix ms.
func (r *rig) swept() int64 {
	first := int64(math.MaxInt64)
	for n := range r.Dispatch.Layout.Shards {
		items, err := r.store.Get(r.Context(), timer.ShardKey(n))
		if err != nil {
			return 0
		}
		s, err := timer.ShardFromItem(n, items[0])
		if err != nil {
			r.Fatal(err)
		}
		first = min(first, s.Swept[0])
	}
	return first
}

// runs lists those of a job.
func (r *rig) runs(name string) (all []run.Run) {
	r.Helper()
	for cursor := ""; ; {
		page, next, err := r.Control.Runs(r.Context(), tenant, control.RunFilter{Job: name}, cursor, control.MaxLimit)
		if err != nil {
			return nil
		}
		if all = append(all, page...); next == "" {
			return all
		}
		cursor = next
	}
}

// ended waits until so many runs of a job have, and gives them all.
func (r *rig) ended(name string, n int) []run.Run {
	r.Helper()
	r.until(fmt.Sprintf("%d runs of %s have ended", n, name), func() bool {
		ended := 0
		for _, one := range r.runs(name) {
			if one.State.Ended() {
				ended++
			}
		}
		return ended >= n
	})
	return r.runs(name)
}

// called is how often the target was called, by run.
func (r *rig) called() map[string]int {
	r.Helper()
	text, err := os.ReadFile(r.Calls)
	if err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(string(text)) {
		id, _, _ := strings.Cut(line, " ")
		calls[id]++
	}
	return calls
}

// child starts this program again, as a process over the same place that can be killed, and gives what tells that it has ended.
func (r *rig) child(role string) <-chan error {
	r.Helper()
	p := r.place
	p.Role = role
	text, err := json.Marshal(p)
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.CommandContext(r.Context(), os.Args[0], "-test.run", "^$")
	cmd.Env = append(os.Environ(), "BELFRY_TEST_CHILD="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended
}

func TestMain(m *testing.M) {
	text := os.Getenv("BELFRY_TEST_CHILD")
	if text == "" {
		os.Exit(m.Run())
	}
	var p place
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.live(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// die is kill -9: nothing of this process happens any more.
func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// live is what a child does until it dies.
func (p place) live(ctx context.Context) error {
	var f faults
	var calls atomic.Int64
	switch p.Role {
	case "ticks": // until it has claimed, and is about to send
		f.queue.Send = func(queue.Priority, queue.Outgoing) queuefaulty.Fate { die(); return queuefaulty.Fate{} }
	case "works": // until several of its runs are under way
		f.call = func(ctx context.Context, _ target.Call) (target.Result, error) {
			if calls.Add(1) == 4 {
				die()
			}
			<-ctx.Done()
			return target.Result{}, ctx.Err()
		}
	case "eats": // until it comes upon the payload that kills
		f.call = func(_ context.Context, call target.Call) (target.Result, error) {
			if call.Job == "poison" {
				die()
			}
			return target.Result{}, nil
		}
	}
	n, err := p.open(ctx, time.Now, f, p.Role != "ticks", p.Role != "works")
	if err != nil {
		return err
	}
	return n.Run(ctx)
}

func every(d time.Duration) *schedule.Spec { return &schedule.Spec{Every: schedule.Duration(d)} }
