package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Func is a Go function that runs can call. It should return soon after ctx has ended: nothing can stop it if it does not.
// An error is retried unless it is (or wraps) one made by Permanent; RetryAfter delays the next attempt.
type Func func(ctx context.Context, call Call) (Result, error)

// Registry holds the Go functions of a program by name. Its zero value is empty and ready; it is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	funcs map[string]Func
}

// Register adds a function. It refuses a bad name, nil, and a name that is taken: a job must never change its meaning by
// the order in which packages happen to register.
func (r *Registry) Register(name string, f Func) error {
	if err := validHandlerName(name); err != nil {
		return fmt.Errorf("register handler: %w", err)
	}
	if f == nil {
		return fmt.Errorf("register handler %s: the function is nil", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.funcs[name]; taken {
		return fmt.Errorf("register handler %s: the name is taken", name)
	}
	if r.funcs == nil {
		r.funcs = map[string]Func{}
	}
	r.funcs[name] = f
	return nil
}

func (r *Registry) find(name string) (Func, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f, ok := r.funcs[name]
	return f, ok
}

func (r *Registry) names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.funcs))
}

func (s *Set) canHandle(name string) error {
	if _, ok := s.cfg.Handlers.find(name); !ok {
		return fmt.Errorf("%w: it has no handler %q", ErrNotHere, oneLine(name, 128))
	}
	if n := s.Abandoned(); n >= s.cfg.MaxAbandoned {
		return fmt.Errorf("%w: %d handlers that ignored their timeout still run in it; restart it", ErrNotHere, n)
	}
	return nil
}

// callHandler waits for the function, and a grace longer than its context. A function that goes on after that is left
// behind, because Go cannot stop it: the attempt ends as a timeout (or as the cancellation), the function's context stays
// ended, its log goes nowhere, its answer is dropped. Its effects may still come, also beside those of a next attempt: that
// is what Call.Fence is for. Each one left behind is counted until it ends, and too many of them close this worker to
// handlers, so that a hanging one cannot fill its memory.
func (s *Set) callHandler(ctx context.Context, name string, call Call) (Result, error) {
	f, ok := s.cfg.Handlers.find(name)
	if !ok {
		return Result{}, s.canHandle(name)
	}
	h := new(handlerCall)
	if !bounded(ctx, s.cfg.Grace, func() {
		defer func() {
			if h.settled.Swap(true) {
				s.abandoned.Add(-1)
			}
		}()
		h.guard(ctx, f, call)
	}) {
		s.abandoned.Add(1)
		if h.settled.Swap(true) {
			s.abandoned.Add(-1)
		}
		return Result{}, ended(ctx)
	}
	got := h.answer
	if got.err != nil {
		return Result{}, handlerFailure(ctx, got.err)
	}
	if len(got.result.Body) > call.most() {
		return Result{}, tooLarge("the handler's result", call)
	}
	return got.result, nil
}

// handlerFailure takes a verdict that the handler gave; else, after the end of ctx, whatever came out is its doing, and the handler's own
// words stand beside that.
func handlerFailure(ctx context.Context, err error) error {
	var told *verdict
	var panicked *panicError
	switch {
	case errors.As(err, &told):
		f := failed(KindHandler, err, "%v", err)
		f.Permanent, f.RetryAfter, f.Code = told.permanent, told.wait, codeIn(err)
		return f
	case errors.As(err, &panicked):
		return failed(KindPanic, nil, "%s", panicked.what)
	case ctx.Err() != nil:
		said := err.Error()
		if said == ctx.Err().Error() { // which says nothing more
			said = ""
		}
		return withCause(endedSaying(ctx, said), err)
	default:
		f := failed(KindHandler, err, "%v", err)
		f.Code = codeIn(err)
		return f
	}
}

// withCause adds an error of the handler's to what a failure wraps.
func withCause(failure, err error) error {
	var f *Failure
	if errors.As(failure, &f) {
		f.cause = errors.Join(f.cause, err)
	}
	return failure
}

// panicError is the answer of a function that did not return one.
type panicError struct{ what string }

func (p *panicError) Error() string { return "panic: " + p.what }

type answer struct {
	result Result
	err    error
}

// handlerCall is one call of a function.
type handlerCall struct {
	answer // once it has ended

	settled atomic.Bool // set by the function's end and by giving up on it; who comes second takes it off the count
}

// guard gives exactly one answer, whatever the function does: a panic becomes a Failure, because one job must not take
// the worker, and its neighbours in it, with it; so does a function that ends its goroutine (runtime.Goexit, as testing's
// FailNow does).
func (h *handlerCall) guard(ctx context.Context, f Func, call Call) {
	h.err = &endedGoroutine
	defer func() {
		if thrown := recover(); thrown != nil {
			_, _ = fmt.Fprintf(call.Log, "panic: %v\n%s", thrown, debug.Stack())
			h.err = &panicError{fmt.Sprint(thrown)}
		}
	}()
	h.result, h.err = f(ctx, call)
}

var endedGoroutine = panicError{"the handler ended its goroutine instead of returning"}
