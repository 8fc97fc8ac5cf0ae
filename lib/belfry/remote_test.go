package belfry

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// server runs a Belfry elsewhere, as `belfry serve --remote-queue go` does, and gives its address and a token.
func server(t *testing.T, scopes ...access.Scope) (address, token string) {
	t.Helper()
	began := time.Now()
	stored := memory.New(memory.Config{Now: time.Now})
	targets, err := target.New(target.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(t.Context(), node.Config{
		Store: stored, Blobs: blob.New(memblob.OpenBucket(nil)), Targets: targets, Metrics: metrics.New(), Name: "server",
		Queues: map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{}), "go": queuelocal.New(queuelocal.Config{})},
		Now:    time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: newID,
		Elsewhere: map[string]string{"go": access.DefaultTenant}, RemoteKey: make([]byte, 32),
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := access.New(access.Config{Store: stored, Now: time.Now, Random: crand.Reader, NewID: newID})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := api.New(api.Config{Control: n.Control, Remote: n.Remote, Gate: gate, Now: time.Now, Version: "test",
		Ready: func(ctx context.Context) []wire.Check {
			return []wire.Check{{Name: "store", State: wire.CheckOK, Detail: "answers"}}
		},
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err = tokens.Create(t.Context(), access.DefaultTenant, access.Request{Name: "program", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(handler)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		served.Close()
	})
	return served.URL, token
}

func wait(t *testing.T, b *Belfry, id string) Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := b.Wait(ctx, id)
	if err != nil {
		t.Fatalf("run %s is %+v: %v", id, r, err)
	}
	return r
}

// The same program as over a folder, over a server: its handlers run here.
func TestHandlersServeARemoteBelfry(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	program := func() *Belfry { return open(t, address, Token(token), RemoteQueue("go")) }
	b := program()
	fired := make(chan time.Time, 100)
	Handle(b, "email", func(_ context.Context, job *Job[mail]) error {
		job.Log.Info("sending", "to", job.Payload.To)
		if job.Payload.To == "" {
			return WithCode("no_address", Permanent(errors.New("nobody")))
		}
		if job.Attempt == 1 {
			return errors.New("busy")
		}
		job.Result = job.Payload.To
		return nil
	}, Backoff(time.Millisecond, 10*time.Millisecond))
	Handle(b, "tick", func(_ context.Context, job *Job[struct{}]) error { fired <- job.Nominal; return nil })
	start(t, b)
	if err := b.Ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if err := b.Schedule(t.Context(), "tick", "@every 1s"); err != nil {
		t.Fatal(err)
	}

	asks := program() // another process, which handles nothing
	start(t, asks)
	r := enqueue(t, asks, "email", mail{To: "ann@example.org"}, Key("one"))
	if again := enqueue(t, asks, "email", mail{To: "ann@example.org"}, Key("one")); again.ID != r.ID {
		t.Errorf("one key gave %s and %s", r.ID, again.ID)
	}
	if got := wait(t, asks, r.ID); got.State != Succeeded || got.Attempt != 2 || string(got.Result) != `"ann@example.org"` || !strings.Contains(got.Error, "busy") {
		t.Errorf("ended as %+v", got)
	}
	if log, err := asks.Log(t.Context(), r.ID); err != nil || !strings.Contains(string(log), "sending") {
		t.Errorf("log %q, %v", log, err)
	}
	dead := enqueue(t, asks, "email", mail{})
	if got := wait(t, asks, dead.ID); got.State != Failed || got.Error != "handler:no_address: nobody" {
		t.Errorf("ended as %+v", got)
	}
	for got, err := range asks.Runs(t.Context(), "email", Failed) {
		if err != nil || got.ID != dead.ID {
			t.Errorf("dead letters: %+v, %v", got, err)
		}
	}
	first, second := <-fired, <-fired
	if second.Sub(first) != time.Second {
		t.Errorf("fired for %s and %s", first, second)
	}
	if err := errors.Join(b.Pause(t.Context(), "tick", "enough"), b.Resume(t.Context(), "tick"), b.Unschedule(t.Context(), "tick"), asks.Unschedule(t.Context(), "nothing")); err != nil {
		t.Error(err)
	}
	if _, err := Enqueue(t.Context(), asks, "other", 1); !HasCode(err, CodeJobNotFound) {
		t.Errorf("no such job: %v", err)
	}
	if err := asks.Cancel(t.Context(), r.ID, ""); !HasCode(err, CodeRunEnded) {
		t.Errorf("cancel of what has ended: %v", err)
	}
	if err := b.Schedule(t.Context(), "tick", "0 25 * * *"); !HasCode(err, CodeInvalid) || !strings.Contains(err.Error(), "hour") {
		t.Errorf("a bad expression: %v", err)
	}
}

// A worker that is stopped hands its run back, and the next one has it.
func TestARunMovesToTheNextProgram(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run, access.Work)
	started := make(chan int, 10)
	program := func(patient bool) *Belfry {
		b := open(t, address, Token(token), RemoteQueue("go"))
		Handle(b, "slow", func(ctx context.Context, job *Job[string]) error {
			started <- job.Attempt
			if patient {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, MaxAttempts(1), Timeout(time.Hour))
		start(t, b)
		return b
	}
	first := program(false)
	r := enqueue(t, first, "slow", "")
	<-started
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // so that the server sees it go before its run comes back
	defer cancel()
	if err := first.Stop(soon); err != nil {
		t.Error(err)
	}
	second := program(true)
	if got := wait(t, second, r.ID); got.State != Succeeded || got.Attempt != 2 {
		t.Errorf("ended as %+v", got)
	}
}

func TestWhatARemoteBelfryRefuses(t *testing.T) {
	address, token := server(t, access.Read, access.Write, access.Run) // not work
	said := make(chan string, 1)
	b, err := Open(t.Context(), address, Token(token), RemoteQueue("go"), Logger(slog.New(errorsTo(said))))
	if err != nil {
		t.Fatal(err)
	}
	Handle(b, "a", func(context.Context, *Job[string]) error { return nil })
	start(t, b)
	if text := <-said; !strings.Contains(text, "nothing is run any more") {
		t.Errorf("it logged %q", text)
	}
	if err := b.Ready(t.Context()); !HasCode(err, CodeForbidden) || !strings.Contains(err.Error(), "nothing is run any more") {
		t.Errorf("a program that may not work is ready: %v", err)
	}
	if err := b.Stop(t.Context()); err == nil {
		t.Error("a program that may not work has stopped well")
	}

	stranger := open(t, address, RemoteQueue("go"))
	Handle(stranger, "a", func(context.Context, *Job[string]) error { return nil })
	if err := stranger.Start(t.Context()); !HasCode(err, CodeNoToken) {
		t.Errorf("without a token: %v", err)
	}
	away := open(t, "http://127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Enqueue(ctx, away, "a", ""); !HasCode(err, CodeUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	for _, at := range []string{"http://", "https:///x"} {
		if _, err := Open(t.Context(), at); !HasCode(err, CodeInvalid) {
			t.Errorf("open %s: %v", at, err)
		}
	}
}

// errorsTo is a handler of the first error that is logged.
type errorsTo chan<- string

func (errorsTo) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (e errorsTo) Handle(_ context.Context, r slog.Record) error {
	select {
	case e <- r.Message:
	default:
	}
	return nil
}
func (e errorsTo) WithAttrs([]slog.Attr) slog.Handler { return e }
func (e errorsTo) WithGroup(string) slog.Handler      { return e }
