package linear_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/linear"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// Several clients fight over few jobs, runs and keys, while the store refuses, loses answers and lets writes land late, and the network
// loses requests and answers.
func TestP1_P6_P7_P8_P9_Fault01_Fault02_Fault04_Fault39_Fault51_contended(t *testing.T) {
	rounds := process.Number(t, "BELFRY_ROUNDS", 12)
	seed := process.Seed(t)
	for round := range rounds {
		t.Run(fmt.Sprint(seed+round), func(t *testing.T) {
			t.Logf("BELFRY_SEED=%d BELFRY_ROUNDS=1 go test ./tests/linear -count=1 -run contended", seed+round)
			recorder := linear.NewRecorder(time.Now)
			synctest.Test(t, func(t *testing.T) { contend(t, recorder, seed+round) })
			if report := linear.Hold(t, recorder); report.Lost == 0 || report.Operations < 500 {
				t.Errorf("too little happened: %s", report)
			}
		})
	}
}

// chance is one source for many.
type chance struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (c *chance) of(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func contend(t *testing.T, recorder *linear.Recorder, seed uint64) {
	luck := &chance{random: rand.New(rand.NewPCG(seed, 0))}
	var calm bool // set before it is read by those that it is for
	over := faulty.New(memory.New(memory.Config{Now: time.Now}), func(_ context.Context, c faulty.Call) faulty.Fault {
		luck.mu.Lock()
		defer luck.mu.Unlock()
		if calm {
			return faulty.Fault{}
		}
		write := c.Method == faulty.Write || c.Method == faulty.WriteEach
		switch n := luck.random.IntN(400); {
		case n < 3:
			return faulty.Fault{Refuse: store.ErrThrottled}
		case n < 6 && write:
			return faulty.Fault{Refuse: fmt.Errorf("lost on its way: %w", store.ErrUnknown)}
		case n < 12 && write:
			return faulty.Fault{Lose: fmt.Errorf("lost on its way back: %w", store.ErrUnknown)}
		case n < 14 && write:
			late := make(chan struct{})
			time.AfterFunc(time.Duration(luck.random.IntN(5000))*time.Millisecond, func() { close(late) })
			return faulty.Fault{Late: late}
		}
		return faulty.Fault{}
	})
	handler, stop := serve(t, over, luck)

	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	var clients sync.WaitGroup
	shared := &pool{}
	for n := range 5 {
		through := recorder.Transport("default", brittle{handler, luck})
		server, err := client.New(client.Config{Tries: 1, NewKey: func() string { panic("each brings its own") },
			HTTP: &http.Client{Transport: through, Timeout: 20 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		c := &contender{Client: server, luck: luck, pool: shared, number: n}
		clients.Go(func() {
			for range 90 {
				c.step(ctx)
				time.Sleep(time.Duration(luck.of(40)) * time.Millisecond)
			}
		})
	}
	clients.Wait()
	luck.mu.Lock()
	calm = true
	luck.mu.Unlock()
	time.Sleep(10 * time.Second) // what is late comes
	last, err := client.New(client.Config{Tries: 1, NewKey: crand.Text, HTTP: &http.Client{Transport: recorder.Transport("default", direct{handler})}})
	if err != nil {
		t.Fatal(err)
	}
	c := &contender{Client: last, luck: luck, pool: shared}
	for n := range jobs {
		_, _ = c.Job(ctx, nameOf(n))
	}
	for _, id := range shared.runs {
		_, _ = c.Run(ctx, id)
	}
	stop()
}

// serve runs a scheduler with its API.
func serve(t *testing.T, over store.Store, luck *chance) (handler http.Handler, stop func()) {
	handlers := new(target.Registry)
	if err := handlers.Register("f", func(ctx context.Context, call target.Call) (target.Result, error) {
		select {
		case <-time.After(time.Duration(luck.of(200)) * time.Millisecond):
		case <-ctx.Done():
			return target.Result{}, ctx.Err()
		}
		if luck.of(3) == 0 {
			return target.Result{}, errors.New("bad luck")
		}
		return target.Result{Body: fmt.Appendf(nil, "%d", call.Fence), ContentType: "application/json"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var n *node.Node
	for n == nil { // the store may refuse its setup
		n, err = node.New(t.Context(), node.Config{Store: over, Queues: map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{Now: time.Now})},
			Blobs: blob.New(memblob.OpenBucket(nil)), Targets: targets, Metrics: metrics.New(), Now: time.Now,
			Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Name: "life"})
		if err != nil && !errors.Is(err, store.ErrThrottled) && !errors.Is(err, store.ErrUnknown) {
			t.Fatal(err)
		}
	}
	tokens, err := access.New(access.Config{Store: over, Now: time.Now, Random: crand.Reader, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if handler, err = api.New(api.Config{Control: n.Control, Gate: gate, Now: time.Now,
		Ready:   func(context.Context) []wire.Check { return nil },
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	return handler, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// direct is a network without faults.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	inside := r.Clone(r.Context())
	inside.RequestURI, inside.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:1"
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, inside)
	return answer.Result(), nil
}

// brittle is one that loses requests and answers, and takes its time.
type brittle struct {
	http.Handler
	luck *chance
}

var errLost = errors.New("connection reset by peer")

func (b brittle) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(b.luck.of(20)) * time.Millisecond)
	if b.luck.of(50) == 0 {
		return nil, errLost
	}
	answer, err := direct{b.Handler}.RoundTrip(r)
	time.Sleep(time.Duration(b.luck.of(20)) * time.Millisecond)
	if b.luck.of(30) == 0 {
		return nil, errLost
	}
	return answer, err
}

// pool is what clients know of each other's doing.
type pool struct {
	mu    sync.Mutex
	etags []string
	runs  []string
	keys  int
}

func (p *pool) keep(etag string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if etag != "" {
		p.etags = append(p.etags, etag)
	}
}

func (p *pool) newest(luck int, from []string) string {
	if len(from) == 0 {
		return ""
	}
	return from[max(0, len(from)-1-luck)]
}

// contender is one of the clients.
type contender struct {
	*client.Client
	*pool
	luck   *chance
	number int
}

const jobs = 2

func nameOf(n int) string { return fmt.Sprint("job", n) }

// step asks for something. What comes of it is the recorder's business.
func (c *contender) step(ctx context.Context) {
	name := nameOf(c.luck.of(jobs))
	c.mu.Lock()
	etag, id, key := c.newest(c.luck.of(3), c.etags), c.newest(c.luck.of(5), c.runs), c.keys
	if c.keys++; c.luck.of(2) == 0 { // often one that another client has used, or uses now
		c.keys, key = key, max(0, key-c.luck.of(3))
	}
	c.mu.Unlock()
	if id == "" {
		id = "job0~0mi4lf3k0"
	}
	def := wire.Job{Definition: job.Definition{Description: fmt.Sprint(c.luck.of(4)), Target: target.Spec{Handler: &target.Handler{Name: "f"}},
		Retry: job.Retry{MaxAttempts: 2, Initial: schedule.Duration(20 * time.Millisecond)}}}
	if c.luck.of(3) == 0 {
		def.Schedule = &schedule.Spec{Every: schedule.Duration(time.Second)}
	}
	var got client.Stored
	switch c.luck.of(16) {
	case 0, 1:
		got, _ = c.PutJob(ctx, name, def, client.Condition{})
	case 2, 3:
		got, _ = c.PutJob(ctx, name, def, client.Condition{ETag: etag})
	case 4:
		got, _ = c.PutJob(ctx, name, def, client.Condition{Absent: true})
	case 5:
		got, _ = c.PauseJob(ctx, name, fmt.Sprint(c.luck.of(2)))
	case 6:
		got, _ = c.ResumeJob(ctx, name)
	case 7:
		_ = c.DeleteJob(ctx, name, client.Condition{ETag: []string{"", etag}[c.luck.of(2)]})
	case 8:
		got, _ = c.Job(ctx, name)
	case 9, 10, 11:
		r, err := c.Trigger(ctx, name, wire.Trigger{Payload: fmt.Appendf(nil, "%d", c.luck.of(2)), Delay: new(schedule.Duration(time.Duration(c.luck.of(2)) * time.Second))}, fmt.Sprint("key", key))
		if err == nil {
			c.mu.Lock()
			c.runs = append(c.runs, r.ID)
			c.mu.Unlock()
		}
	case 12:
		_, _ = c.Run(ctx, id)
	case 13:
		_, _ = c.Cancel(ctx, id, "enough")
	case 14:
		_, _ = c.Retry(ctx, id, wire.RetryRequest{Force: c.luck.of(2) == 0})
	case 15:
		_, _ = c.Redrive(ctx, wire.Redrive{Matching: &wire.DeadFilter{}, PerSecond: 100})
	}
	c.keep(got.ETag)
}
