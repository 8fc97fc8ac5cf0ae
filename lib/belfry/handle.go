package belfry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Job is one attempt of a run, as its handler sees it.
type Job[T any] struct {
	Payload T // what [Enqueue] or [Payload] gave; the zero value where there was none

	Name    string    // of the job
	Run     string    // the run's ID, the same on every attempt: keep it beside an effect to have that only once
	Attempt int       // from 1
	Fence   uint64    // higher on every attempt of the run: who keeps the highest can refuse an older one that wakes up late
	Nominal time.Time // when the run was asked for, in UTC: the fire's time for a scheduled one

	// Log takes lines that are kept with the run, up to 256 KB an attempt; [Belfry.Log] shows them.
	Log *slog.Logger

	// Result, when the handler sets it and returns nil, is kept with the run as JSON, up to 256 KB. A json.RawMessage is kept to the
	// byte. A Go string in it that is not UTF-8 fails the run for good.
	Result any
}

// Handle has f run the job of this name, in this process, from [Belfry.Start] on. Payloads are decoded from JSON into a T; one that
// does not fit it, by an unknown field too, fails its run for good. A number in an any, as in a map[string]any, is a float64, which
// rounds integers above 2^53. Fields of int64, uint64, json.Number and json.RawMessage keep every digit.
//
// Where f returns nil, the run has succeeded. After an error it is tried again, with growing waits, until its attempts are spent;
// [Permanent] and [RetryAfter] say otherwise. A panic is an error. After a crash of the process f is called again, with the same
// Job.Run, also where it had just done its work: see [AtMostOnce].
//
// ctx ends with the job's [Timeout], when the run is cancelled, and when [Belfry.Stop] has no more time. f must return soon after:
// Go cannot stop a function.
//
// Handle belongs between [Open] and Start. It panics where the program cannot be right: a name that is taken or is none, f nil, or
// after Start. The options are checked when the job is stored, by Start.
func Handle[T any](b *Belfry, name string, f func(ctx context.Context, job *Job[T]) error, opts ...JobOption) {
	var call target.Func
	if f != nil {
		call = func(ctx context.Context, c target.Call) (target.Result, error) { return attempt(ctx, b, c, f) }
	}
	if err := b.handle(name, reflect.TypeFor[T](), call, opts); err != nil {
		panic("belfry: " + err.Error())
	}
}

func attempt[T any](ctx context.Context, b *Belfry, c target.Call, f func(context.Context, *Job[T]) error) (target.Result, error) {
	j := &Job[T]{Name: c.Job, Run: c.Run, Attempt: c.Attempt, Fence: c.Fence, Nominal: c.Nominal, Log: runLog(c.Log, b.now)}
	if err := decode(c.Payload, &j.Payload); err != nil {
		return target.Result{}, Permanent(fmt.Errorf("the payload does not fit %T: %w", j.Payload, err))
	}
	if err := b.call(ctx, func(ctx context.Context) error { return f(ctx, j) }); err != nil {
		return target.Result{}, err
	}
	if j.Result == nil {
		return target.Result{}, nil
	}
	body, err := wire.Encode(j.Result)
	if err != nil {
		return target.Result{}, Permanent(fmt.Errorf("the result, %T, has no JSON form: %w", j.Result, err))
	}
	return target.Result{Body: body, ContentType: "application/json"}, nil
}

// decode reads one JSON value that has no field unknown to the type, and nothing behind it.
func decode(payload []byte, into any) error {
	if len(payload) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the JSON value")
	}
	return nil
}

func runLog(to io.Writer, now func() time.Time) *slog.Logger {
	if to == nil {
		to = io.Discard
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Time(slog.TimeKey, now().UTC())
		}
		return a
	}}))
}

// kind is what Handle was told of a name.
type kind struct {
	payload reflect.Type
	policy  job.Definition // target, and how it runs; not when
	stored  bool           // the job stands as the code says
}

func (b *Belfry) handle(name string, payload reflect.Type, call target.Func, opts []JobOption) error {
	if err := job.ValidName(name); err != nil {
		return fmt.Errorf("handle %q: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.phase != opened {
		return fmt.Errorf("handle %s: after Start; Handle belongs between Open and Start", name)
	}
	if err := b.handlers.Register(name, call); err != nil {
		return err
	}
	k := &kind{payload: payload, policy: job.Definition{Target: target.Spec{Handler: &target.Handler{Name: name}}}}
	for _, o := range opts {
		o.apply(&k.policy)
	}
	b.kinds[name] = k
	return nil
}

// fits refuses a payload of another type than the handler's, where the handler is here. A nil without a type fits whatever can be nil.
func (b *Belfry) fits(name string, payload any) error {
	k := b.kind(name)
	if k == nil {
		return nil
	}
	got, fit := reflect.TypeOf(payload), false
	if got != nil {
		fit = got.AssignableTo(k.payload)
	} else {
		switch k.payload.Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
			fit = true
		}
	}
	if !fit {
		return &Error{Code: CodeInvalid, Message: fmt.Sprintf("payload: got a %v, want a %v: that is what the handler of %s takes", got, k.payload, name)}
	}
	return nil
}
