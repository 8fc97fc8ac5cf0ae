package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/tests/linear"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// Kind is what stays the same over all definitions of a job.
type Kind struct {
	AtMostOnce bool
	Exec       bool
	AWS        bool   // a function, whose name tells what is asked of it: see Function
	Queue      string // default: the default one
}

// Kinds are one of each, several of the usual ones.
var Kinds = []Kind{{}, {AtMostOnce: true}, {}, {AtMostOnce: true}, {Exec: true}, {}, {AtMostOnce: true}, {}, {Exec: true, AtMostOnce: true}, {}}

// Config says what a load is. Fields without a default are required.
type Config struct {
	Sink  *Sink  // the target of all jobs
	Self  string // a program that calls Report where ReportTo is set: the command of exec jobs
	Gate  *Gate
	Kinds []Kind // one client for each
	Seed  uint64 // of all choices

	// Reopen is how many clients more there are who redrive what is dead, wait long, and cancel, with jobs of the first kind. Default none.
	Reopen int

	Now    func() time.Time // the servers' time. Default: the host's
	Pace   int              // by how much schedules and delays are longer than seconds. Default 1
	Behind time.Duration    // by how much servers may take the time for earlier: those with a store elsewhere go by its clock. Default 0
	Token  string           // that clients show

	// Wrap gives what requests are sent through, over the connection to the server that the gate knows. Default: that alone
	Wrap func(http.RoundTripper) http.RoundTripper

	Observe func(Operation) // gets each request that has come to an end; called by many at once
}

// Operation is one request, as a client saw it. A repetition, as of one whose answer was lost, is one more.
type Operation struct {
	Client   string // makes one request at a time, but for triggers of one key, of which there may be two
	What     string // create, edit, pause, resume, delete, trigger, cancel, redrive, read
	Job      string
	Run      string // where the request names one
	Key      string // Idempotency-Key
	Request  any    // wire.Job of a create or edit, wire.Trigger of a trigger; else nil
	Answer   any    // client.Stored or wire.Run, where it was answered with success; else nil
	Sent     time.Time
	Answered time.Time
	Status   int   // HTTP status of a refusal, 0 where there was no answer or it was a success
	Err      error // nil: success
}

// Unknown tells whether it may have happened or not.
func (o Operation) Unknown() bool { return o.Err != nil && (o.Status == 0 || o.Status >= 500) }

// Load is what all clients share.
type Load struct {
	Seen *linear.Recorder // each request of the clients; to be held when they have come to an end

	cfg    Config
	server *client.Client
	http   *http.Client  // for what the server's own client never does
	enough chan struct{} // closed when the clients are to come to an end
	more   chan struct{} // holds one where something was answered since Until has looked
	ended  chan error

	mu        sync.Mutex
	asks      int // numbers given out
	histories []history
	accepted  []string // IDs of runs
	sightings map[string]sighting
	wrong     []string // answers that Belfry must not give
	answered  int
	lost      int
}

// anyServer is what requests name; the gate knows who that is.
const anyServer = "http://127.0.0.1"

// Start starts the clients, which go on until Finish, or until ctx ends.
func Start(ctx context.Context, cfg Config) (*Load, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Pace == 0 {
		cfg.Pace = 1
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Operation) {}
	}
	transport := &http.Transport{DialContext: cfg.Gate.dial, MaxIdleConnsPerHost: 20}
	context.AfterFunc(ctx, transport.CloseIdleConnections)
	var through http.RoundTripper = transport
	if cfg.Wrap != nil {
		through = cfg.Wrap(transport)
	}
	seen := linear.NewRecorder(cfg.Now)
	through = seen.Transport("default", through)
	server, err := process.Client(anyServer, cfg.Token, through)
	if err != nil {
		return nil, err
	}
	l := &Load{Seen: seen, cfg: cfg, server: server, http: &http.Client{Timeout: 20 * time.Second, Transport: through},
		enough: make(chan struct{}), more: make(chan struct{}, 1), ended: make(chan error, len(cfg.Kinds)+cfg.Reopen+1), sightings: map[string]sighting{}}
	for i, k := range cfg.Kinds {
		a := l.actor(uint64(i), fmt.Sprintf("job%d", i), k)
		go func() { l.ended <- a.run(ctx) }()
	}
	for i := range cfg.Reopen {
		a := l.actor(1<<31+uint64(i), fmt.Sprintf("again%d", i), cfg.Kinds[0])
		go func() { l.ended <- a.reopen(ctx) }()
	}
	go func() { l.ended <- l.watch(ctx, rand.New(rand.NewPCG(cfg.Seed, 1<<32))) }()
	return l, nil
}

func (l *Load) actor(stream uint64, name string, k Kind) *actor {
	return &actor{Load: l, rng: rand.New(rand.NewPCG(l.cfg.Seed, stream)), name: name, kind: k}
}

// Ended gives what the clients end with. None ends before Finish unless it gives up, with an error.
func (l *Load) Ended() <-chan error { return l.ended }

// Until waits until so many requests were answered: how much happens in a time depends on the machine.
func (l *Load) Until(ctx context.Context, answered int) error {
	for {
		l.mu.Lock()
		enough := l.answered >= answered
		l.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-l.more:
		case err := <-l.ended:
			return fmt.Errorf("a client gave up: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Finish tells the clients to come to an end, and waits until they have. They want a server for that.
func (l *Load) Finish() error {
	close(l.enough)
	var errs []error
	for range cap(l.ended) {
		errs = append(errs, <-l.ended)
	}
	return errors.Join(errs...)
}

// Outcome is what a load has come to.
type Outcome struct {
	Violations     []string // each begins with the promise: "P2: …"
	Answered, Lost int      // requests
	Jobs, Runs     int
	States         map[string]int // runs, by state
	Calls, Stale   int            // of targets; with a fence below one that was seen
}

func (r Outcome) String() string {
	return fmt.Sprintf("%d requests answered and %d lost, %d jobs, %d runs %v, %d calls, %d of them stale: %d violations",
		r.Answered, r.Lost, r.Jobs, r.Runs, r.States, r.Calls, r.Stale, len(r.Violations))
}

// Judge waits until every run has ended, and holds all that was seen against the promises. It does so again, until ctx ends, while one
// seems broken: a fire that was due before its job was deleted has no run until a tick comes to it, which the lease of one that was
// killed may put off.
func (l *Load) Judge(ctx context.Context) (Outcome, error) {
	unrested := process.Until(ctx, func() (bool, error) { return l.atRest(ctx) })
	var found Outcome
	var err error
	_ = process.Until(ctx, func() (bool, error) { // what it comes to is in the two above
		found, err = l.judged(context.WithoutCancel(ctx))
		return err == nil && len(found.Violations) == 0, err
	})
	if unrested != nil {
		found.Violations = append([]string{fmt.Sprintf("P4: not every run has ended: %v", unrested)}, found.Violations...)
	}
	return found, err
}

func (l *Load) judged(ctx context.Context) (Outcome, error) {
	e, err := l.collect(ctx)
	if err != nil {
		return Outcome{}, err
	}
	r := Outcome{Answered: l.answered, Lost: l.lost, Jobs: len(l.histories), Calls: len(e.calls), States: map[string]int{}}
	r.Violations = append(append(e.violations(), l.wrong...), l.cfg.Sink.problems()...)
	for _, of := range e.runs {
		for _, run := range of {
			r.Runs++
			r.States[run.State]++
		}
	}
	for _, c := range e.calls {
		if c.answer == http.StatusConflict {
			r.Stale++
		}
	}
	return r, nil
}

// atRest tells whether every run has ended; the error tells of one that has not.
func (l *Load) atRest(ctx context.Context) (bool, error) {
	for r, err := range l.server.Runs(ctx, client.RunFilter{States: []string{"scheduled", "queued", "running", "retrying"}}) {
		if err != nil {
			return false, err
		}
		return false, fmt.Errorf("run %s is %s", r.ID, r.State)
	}
	return true, nil
}

// collect reads all runs, and the results of those that succeeded.
func (l *Load) collect(ctx context.Context) (evidence, error) {
	// The calls first: should runs still be under way, none is blamed for a call that came after it was read.
	e := evidence{histories: l.histories, sightings: l.sightings, results: map[string]output{}, runs: map[string][]run{}, calls: l.cfg.Sink.seen()}
	var mu sync.Mutex
	var errs []error
	var readers sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, h := range l.histories {
		for r, err := range l.server.Runs(ctx, client.RunFilter{Job: h.job}) {
			if err != nil {
				return e, err
			}
			e.runs[h.job] = append(e.runs[h.job], r)
			if r.State != "succeeded" {
				continue
			}
			slots <- struct{}{}
			readers.Go(func() {
				defer func() { <-slots }()
				full, err := l.server.Run(ctx, r.ID)
				var log []byte
				if h.kind.Exec || h.kind.AWS {
					var unread error
					log, unread = l.server.Logs(ctx, r.ID)
					err = errors.Join(err, unread)
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
					return
				}
				e.results[r.ID] = output{result: textOf(full.Result), log: string(log), logs: h.kind.Exec || h.kind.AWS}
			})
		}
	}
	readers.Wait()
	return e, errors.Join(errs...)
}

// output is what is kept of a run that succeeded.
type output struct {
	result string
	logs   bool // there is a log, which says what the result does
	log    string
}

// textOf is a result as its target gave it: JSON of an http target, text of a command's output.
func textOf(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	return string(result)
}

// FenceIn reads the fence in a result.
func FenceIn(result json.RawMessage) uint64 {
	var a Answer
	_ = json.Unmarshal([]byte(textOf(result)), &a) // what is none has no fence
	return a.Fence
}

func (l *Load) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

func (l *Load) count(n *int) {
	l.mu.Lock()
	*n++
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *Load) number() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks++
	return l.asks
}

func (l *Load) accept(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted = append(l.accepted, id)
}

// watch looks at accepted runs while all is going on: an end that was shown must stay.
func (l *Load) watch(ctx context.Context, rng *rand.Rand) error {
	every := time.NewTicker(15 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-l.enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
		if err := l.cfg.Gate.wait(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		id := ""
		if n := len(l.accepted); n > 0 {
			id = l.accepted[n-1-rng.IntN(min(n, 200))]
		}
		l.mu.Unlock()
		if id == "" {
			continue
		}
		seen := Operation{Client: "watch", What: "read", Run: id, Sent: l.cfg.Now()}
		r, err := l.server.Run(ctx, id)
		seen.Answered, seen.Answer, seen.Err = l.cfg.Now(), r, err
		var refused *client.Error
		if errors.As(err, &refused) {
			seen.Status = refused.Status
		}
		l.cfg.Observe(seen)
		switch {
		case seen.Status == http.StatusNotFound:
			l.complain("P1: run %s was accepted and is not there", id)
		case err != nil || r.EndedAt.IsZero():
		default:
			now := sighting{state: r.State, ended: r.EndedAt, fence: r.Fence}
			l.mu.Lock()
			if before, seen := l.sightings[id]; seen && before != now {
				l.wrong = append(l.wrong, fmt.Sprintf("P7: run %s ended as %+v, then as %+v", id, before, now))
			}
			l.sightings[id] = now
			l.mu.Unlock()
		}
	}
}
