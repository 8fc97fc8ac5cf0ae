package points

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// What the environment tells such a process.
const (
	Variable = "BELFRY_KILL_AT"     // POINT or POINT/N, several with commas between: at the N-th time that it comes there, or to another
	Died     = "BELFRY_KILLED_AT"   // a file into which it writes the point at which it dies
	Not      = "BELFRY_KILL_NOT"    // how long it lives at least: a duration
	Ahead    = "BELFRY_CLOCK_AHEAD" // how far its clock is ahead of the host's: a duration
)

// When it dies, as a point begins.
const (
	before = "before"
	amid   = "amid"
	after  = "after"
)

// All gives every point at which a process with a store and a queue can die.
func All() []string {
	var all []string
	commits := []string{Setup, Horizon, To, Successor, Claim, Check, Index, Print, Sweep, Watermark, Create, Edit, Fence, Unbind, Idempotency, Trigger,
		Request, RequestClaim, Start, Finish, Retry, LongRetry, Requeue, DeadLetter, Redrive, Cancel}
	for _, commit := range commits {
		all = append(all, before+"-commit:"+commit, after+"-commit:"+commit)
	}
	for _, each := range []string{Claim, Check, Fence, Index} {
		all = append(all, amid+"-commit:"+each)
	}
	all = append(append(all, Gates()...), Flows()...)
	return append(all, before+"-send", amid+"-send", after+"-send", before+"-ack", after+"-ack", before+"-hide", after+"-hide", after+"-receive")
}

// Gates gives those points that only runs of jobs with a limit come to.
func Gates() []string {
	var all []string
	for _, commit := range []string{Enter, Join, LetIn} {
		all = append(all, before+"-commit:"+commit, after+"-commit:"+commit)
	}
	return all
}

// Flows gives those points that only runs of workflows come to.
func Flows() []string {
	var all []string
	for _, commit := range []string{Open, Release, StepStart, StepFinish, Close} {
		all = append(all, before+"-commit:"+commit, after+"-commit:"+commit)
	}
	return append(all, amid+"-commit:"+Release)
}

// killer dies at the first of its points that the process comes to.
type killer struct {
	points map[string]*atomic.Int64 // how often it is to be come to; not changed any more
	told   string                   // the file that is told; "" for none
	from   time.Time                // not before
	dying  atomic.Bool
	names  namer
}

// one is the killer of this process.
var one = fromEnvironment(os.Getenv(Variable), os.Getenv(Died))

func fromEnvironment(text, told string) *killer {
	k := &killer{points: map[string]*atomic.Int64{}, told: told, names: namer{shards: map[string]timer.Shard{}}}
	if text == "" {
		return k
	}
	k.from = time.Now().Add(duration(Not))
	for _, one := range strings.Split(text, ",") {
		point, times, found := strings.Cut(one, "/")
		n := 1
		var err error
		if found {
			n, err = strconv.Atoi(times)
		}
		if err != nil || n < 1 || !slices.Contains(All(), point) {
			panic(fmt.Sprintf("%s=%q: want points, as before-commit:claim, and from which time on, as /2", Variable, one))
		}
		k.points[point] = new(atomic.Int64)
		k.points[point].Store(int64(n))
	}
	return k
}

// ahead is by how much the clock of this process is ahead.
var ahead = duration(Ahead)

// duration reads one from the environment, 0 where there is none.
func duration(variable string) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("%s=%q: want a duration", variable, text))
	}
	return d
}

// Now is the clock of this process.
func Now() time.Time { return time.Now().Add(ahead) }

// here tells whether the process is to die at this point, now.
func (k *killer) here(point string) bool {
	left := k.points[point]
	return left != nil && !time.Now().Before(k.from) && left.Add(-1) == 0
}

// die is kill -9: nothing of this process happens any more.
func (k *killer) die(point string) {
	if k.dying.Swap(true) {
		select {} // another thread was first
	}
	if k.told != "" {
		_ = os.WriteFile(k.told, []byte(point), 0o600)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until the signal has come to this thread
}

func (k *killer) at(point string) {
	if k.here(point) {
		k.die(point)
	}
}

// Store wraps one. It dies at commits.
func Store(s store.Store) store.Store { return killing{s, one} }

type killing struct {
	store.Store
	k *killer
}

// commits gives what the ops are, each once.
func (k *killer) commits(ops, beside []store.Op) (names []string) {
	if len(k.points) == 0 {
		return nil
	}
	for _, op := range ops {
		for _, name := range k.names.of(op, beside) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s killing) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	names := s.k.commits(ops, ops)
	for _, name := range names {
		s.k.at(before + "-commit:" + name)
	}
	versions, err := s.Store.Write(ctx, ops...)
	if err == nil {
		for _, name := range names {
			s.k.at(after + "-commit:" + name)
		}
	}
	return versions, err
}

func (s killing) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	names := s.k.commits(ops, nil)
	for _, name := range names {
		s.k.at(before + "-commit:" + name)
		if len(ops) > 1 && s.k.here(amid+"-commit:"+name) {
			_, _ = s.Store.WriteEach(ctx, ops[:len(ops)/2]...)
			s.k.die(amid + "-commit:" + name)
		}
	}
	verdicts, err := s.Store.WriteEach(ctx, ops...)
	for i, v := range verdicts {
		if v.Err == nil {
			for _, name := range s.k.commits(ops[i:i+1], nil) {
				s.k.at(after + "-commit:" + name)
			}
		}
	}
	return verdicts, err
}

// Queues wraps each. They die at sends, receipts and acknowledgements.
func Queues(all map[string]queue.Queue) map[string]queue.Queue {
	wrapped := map[string]queue.Queue{}
	for name, q := range all {
		wrapped[name] = killingQueue{q, one}
	}
	return wrapped
}

type killingQueue struct {
	queue.Queue
	k *killer
}

func (q killingQueue) Send(ctx context.Context, p queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	q.k.at(before + "-send")
	if len(batch) > 1 && q.k.here(amid+"-send") {
		_, _ = q.Queue.Send(ctx, p, batch[:len(batch)/2]...)
		q.k.die(amid + "-send")
	}
	errs, err := q.Queue.Send(ctx, p, batch...)
	q.k.at(after + "-send")
	return errs, err
}

func (q killingQueue) Receive(ctx context.Context, most int, wait, visibility time.Duration) ([]queue.Message, error) {
	messages, err := q.Queue.Receive(ctx, most, wait, visibility)
	if len(messages) > 0 {
		q.k.at(after + "-receive")
	}
	return messages, err
}

func (q killingQueue) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	q.k.at(before + "-ack")
	errs, err := q.Queue.Delete(ctx, batch...)
	q.k.at(after + "-ack")
	return errs, err
}

func (q killingQueue) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	q.k.at(before + "-hide")
	errs, err := q.Queue.Extend(ctx, visibility, batch...)
	q.k.at(after + "-hide")
	return errs, err
}
