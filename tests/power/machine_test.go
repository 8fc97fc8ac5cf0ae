package power

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/load"
)

// machine is one start of a scheduler, from the power coming on to the power going off.
type machine struct {
	disk    *disk
	store   *pebble.Store
	handler http.Handler
	off     context.Context // ends with the power
	stop    func() error    // ends what a dead machine would not even do
}

// boot starts a machine on a disk. An error is one that a cut may explain, if it came.
func boot(t *testing.T, d *disk, number int, sink http.Handler) (*machine, error) {
	off, powerOff := context.WithCancel(context.Background())
	m := &machine{disk: d, off: off}
	unplugged := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-d.cut:
			powerOff()
		case <-unplugged:
		}
	})
	var after []func() error // in the other order
	m.stop = func() error {
		powerOff()
		close(unplugged)
		watch.Wait()
		var errs []error
		for i := len(after) - 1; i >= 0; i-- {
			errs = append(errs, after[i]())
		}
		return errors.Join(errs...)
	}
	fail := func(err error) (*machine, error) { return nil, errors.Join(err, m.stop()) }

	// As lib/embed does it: the store first, whose lock is the folder's.
	var n *node.Node
	var known sync.RWMutex
	swept := func() time.Time {
		known.RLock()
		defer known.RUnlock()
		if n == nil {
			return time.Unix(0, 0)
		}
		return n.Swept()
	}
	var err error
	if m.store, err = pebble.Open(pebble.Config{Dir: "/data/store", FS: d, Now: swept, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return fail(err)
	}
	after = append(after, func() error {
		d.hasty.Store(true)
		return m.store.Close()
	})
	bucket, err := local.OpenOn(blobs{d}, "/data/blobs")
	if err != nil {
		return fail(err)
	}
	after = append(after, bucket.Close)
	targets, err := target.New(target.Config{Now: time.Now, AWS: m.calls(sink), ARNs: patterns(t)})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pool := queuelocal.New(queuelocal.Config{Now: time.Now})
	after = append(after, pool.Close)
	made, err := node.New(off, node.Config{
		Store: m.store, Queues: map[string]queue.Queue{job.DefaultQueue: pool}, Blobs: bucket, Targets: targets, Metrics: metrics.New(),
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Name: fmt.Sprint("life-", number),
		CleansBySwept: true, Hurry: off.Done(),
	})
	if err != nil {
		return fail(err)
	}
	known.Lock()
	n = made
	known.Unlock()
	tokens, err := access.New(access.Config{Store: m.store, Now: time.Now, Random: crand.Reader, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	m.handler, err = api.New(api.Config{Control: n.Control, Gate: gate, Now: time.Now,
		Ready:   func(context.Context) []wire.Check { return nil },
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- n.Run(off) }()
	after = append(after, func() error { return <-ran })
	return m, nil
}

func patterns(t *testing.T) []target.ARNPattern {
	all, err := target.ParseARNPatterns("arn:aws:lambda:*:*:function:*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// calls reaches the sink, as long as there is power.
func (m *machine) calls(sink http.Handler) target.CallAWS {
	return func(ctx context.Context, to target.AWS, call target.Call) (target.Result, error) {
		ctx, hangUp := context.WithCancel(ctx)
		defer hangUp()
		defer context.AfterFunc(m.off, hangUp)()
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/?"+load.Function(to.ARN), bytes.NewReader(call.Payload))
		for name, value := range map[string]string{"Belfry-Run": call.Run, "Belfry-Job": call.Job, "Belfry-Attempt": strconv.Itoa(call.Attempt),
			"Belfry-Fence": strconv.FormatUint(call.Fence, 10), "Belfry-Nominal-Time": call.Nominal.UTC().Format(time.RFC3339Nano)} {
			request.Header.Set(name, value)
		}
		if !m.disk.heard(func() {}) {
			return target.Result{}, errors.New("no power")
		}
		answer := httptest.NewRecorder()
		sink.ServeHTTP(answer, request)
		_, _ = call.Log.Write(answer.Body.Bytes())
		if answer.Code != http.StatusOK || answer.Body.Len() == 0 { // none: the sink saw the caller go
			return target.Result{}, fmt.Errorf("the sink answered %d", answer.Code)
		}
		return target.Result{Body: answer.Body.Bytes(), ContentType: "application/json"}, nil
	}
}

// line is what clients call through: to the machine of the moment, if there is one.
type line struct {
	mu sync.Mutex
	to *machine
}

func (l *line) plug(m *machine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = m
}

var errUnplugged = errors.New("connection reset by peer")

// RoundTrip gives an answer only where the power was still on when it left.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	m := l.to
	l.mu.Unlock()
	if m == nil {
		return nil, errUnplugged
	}
	ctx, hangUp := context.WithCancel(r.Context())
	defer hangUp()
	defer context.AfterFunc(m.off, hangUp)()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer r.Body.Close()
	inside := r.Clone(ctx)
	inside.RequestURI, inside.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:1"
	answer := httptest.NewRecorder()
	m.handler.ServeHTTP(answer, inside)
	var given *http.Response
	if !m.disk.heard(func() { given = answer.Result() }) {
		return nil, errUnplugged
	}
	if given.StatusCode == http.StatusInternalServerError {
		select {
		case <-m.store.Failed(): // the program ends at that, and with it its connections; what it acknowledges is heard
			return nil, errUnplugged
		default:
		}
	}
	return given, nil
}
