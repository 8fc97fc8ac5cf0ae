package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func handling(t *testing.T, f Func) (*Set, Spec) {
	t.Helper()
	handlers := new(Registry)
	if err := handlers.Register("report", f); err != nil {
		t.Fatal(err)
	}
	return newSet(t, func(c *Config) { c.Handlers = handlers; c.Grace = time.Second; c.MaxAbandoned = 2 }), Spec{Handler: &Handler{Name: "report"}}
}

func TestHandlerGetsTheCallAndGivesTheResult(t *testing.T) {
	var log bytes.Buffer
	s, spec := handling(t, func(_ context.Context, call Call) (Result, error) {
		_, _ = io.WriteString(call.Log, "working")
		return Result{Body: fmt.Appendf(nil, "%s %d %d %s", call.Run, call.Attempt, call.Fence, call.Payload), ContentType: "text/plain"}, nil
	})
	call := testCall()
	call.Log = &log
	got, err := s.Call(t.Context(), spec, call)
	if err != nil || string(got.Body) != `run-1 2 5 {"n":1}` || got.ContentType != "text/plain" || log.String() != "working" {
		t.Fatalf("got %q, %v, log %q", got.Body, err, log.String())
	}
}

func TestHandlerVerdicts(t *testing.T) {
	cause := errors.New("no such account")
	for _, c := range []struct {
		name      string
		err       error
		permanent bool
		wait      time.Duration
		message   string
	}{
		{"plain", cause, false, 0, "no such account"},
		{"permanent", Permanent(cause), true, 0, "no such account"},
		{"permanent, wrapped", fmt.Errorf("bill: %w", Permanent(cause)), true, 0, "bill: no such account"},
		{"later", RetryAfter(time.Minute, cause), false, time.Minute, "no such account"},
		{"much too late", RetryAfter(1000*time.Hour, cause), false, MaxRetryAfter, "no such account"},
		{"in the past", RetryAfter(-time.Minute, cause), false, 0, "no such account"},
		{"permanent after all", Permanent(RetryAfter(time.Minute, cause)), true, 0, "no such account"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, spec := handling(t, func(context.Context, Call) (Result, error) { return Result{Body: []byte("x")}, c.err })
			got, err := s.Call(t.Context(), spec, testCall())
			f := wantFailure(t, err, KindHandler, c.permanent)
			if f.RetryAfter != c.wait || f.Message != c.message || got.Body != nil {
				t.Errorf("got wait %v, message %q, body %q", f.RetryAfter, f.Message, got.Body)
			}
			if !errors.Is(err, c.err) {
				t.Error("the handler's own error is lost")
			}
		})
	}
	if Permanent(nil) != nil || RetryAfter(time.Second, nil) != nil {
		t.Error("no error became one")
	}
}

func TestFault28_a_panic_ends_its_run_and_not_the_worker(t *testing.T) {
	for name, f := range map[string]func(){
		"panic":             func() { panic("out of cheese") },
		"runtime error":     func() { var none []int; none[len(none)]++ },
		"nil panic":         func() { panic(nil) },
		"ends its own life": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s, spec := handling(t, func(context.Context, Call) (Result, error) { f(); return Result{}, nil })
			call := testCall()
			call.Log = &log
			_, err := s.Call(t.Context(), spec, call)
			wantFailure(t, err, KindPanic, false)
			if name != "ends its own life" && !strings.Contains(log.String(), "handler_test.go") {
				t.Errorf("no stack in the log: %q", log.String())
			}
		})
	}
}

func TestFault31_a_worker_without_the_handler_says_so(t *testing.T) {
	s, spec := handling(t, func(context.Context, Call) (Result, error) { return Result{}, nil })
	if err := s.Can(spec); err != nil {
		t.Fatal(err)
	}
	spec.Handler = &Handler{Name: "unheard-of"}
	for _, set := range []*Set{s, newSet(t, nil)} {
		_, err := set.Call(t.Context(), spec, testCall())
		var f *Failure
		if !errors.Is(err, ErrNotHere) || errors.As(err, &f) || !strings.Contains(err.Error(), "unheard-of") {
			t.Errorf("got %v, want ErrNotHere that names the handler, and no verdict on the run", err)
		}
		if err := set.Can(spec); !errors.Is(err, ErrNotHere) {
			t.Errorf("Can: %v", err)
		}
	}
}

func TestHandlerThatHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, spec := handling(t, func(ctx context.Context, _ Call) (Result, error) {
			<-ctx.Done()
			return Result{}, errors.New("query: connection closed") // drivers often hide the context's error
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := s.Call(ctx, spec, testCall())
		wantFailure(t, err, KindTimeout, false)

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		_, err = s.Call(ctx, spec, testCall())
		wantCancelled(t, err)
	})
}

// What a handler returns after its timeout tells where it was: it stands beside the timeout, and within the bound of a message.
func TestHandlersWordsStandBesideItsTimeout(t *testing.T) {
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		says func(ctx context.Context) error
		want string
	}{
		"Wrapped":     {func(ctx context.Context) error { return fmt.Errorf("step 3: %w", ctx.Err()) }, "the attempt ran into its timeout: step 3: context deadline exceeded"},
		"ItsOwn":      {func(context.Context) error { return lost }, "the attempt ran into its timeout: connection lost"},
		"ContextsOwn": {context.Context.Err, "the attempt ran into its timeout"},
		"Cause":       {context.Cause, "the attempt ran into its timeout"},
		"Lines":       {func(context.Context) error { return errors.New("a\nb\x00\xff") }, "the attempt ran into its timeout: a b ?"},
		"Nothing":     {func(context.Context) error { return errors.New("") }, "the attempt ran into its timeout"},
		"Long":        {func(context.Context) error { return errors.New(strings.Repeat("é", 1<<20)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said error
				s, spec := handling(t, func(ctx context.Context, _ Call) (Result, error) {
					<-ctx.Done()
					said = c.says(ctx)
					return Result{}, said
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := s.Call(ctx, spec, testCall())
				f := wantFailure(t, err, KindTimeout, false)
				if c.want != "" && f.Message != c.want {
					t.Errorf("got %q, want %q", f.Message, c.want)
				}
				if len(f.Message) > maxMessage+len("…") || !strings.HasPrefix(f.Message, "the attempt ran into its timeout") {
					t.Errorf("%d bytes: %.100q", len(f.Message), f.Message)
				}
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, said) {
					t.Errorf("%v lost a cause", err)
				}
			})
		})
	}
}

func TestHandlerThatFinishesWithinTheGraceHasFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer error
		s, spec := handling(t, func(ctx context.Context, _ Call) (Result, error) {
			<-ctx.Done()
			time.Sleep(500 * time.Millisecond)
			return Result{Body: []byte("done")}, answer
		})
		call := func() (Result, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return s.Call(ctx, spec, testCall())
		}
		if got, err := call(); err != nil || string(got.Body) != "done" {
			t.Errorf("got %q, %v", got.Body, err)
		}
		answer = Permanent(errors.New("no such account"))
		_, err := call()
		wantFailure(t, err, KindHandler, true)
	})
}

func TestP11_handlers_that_never_end_are_left_behind_and_bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, spec := handling(t, func(_ context.Context, call Call) (Result, error) {
			<-release
			_, _ = io.WriteString(call.Log, "too late")
			return Result{Body: []byte("too late")}, nil
		})
		var log bytes.Buffer
		call := testCall()
		call.Log = &log
		start := time.Now()
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := s.Call(ctx, spec, call)
			cancel()
			wantFailure(t, err, KindTimeout, false)
		}
		if took := time.Since(start); took != 2*(time.Minute+time.Second) {
			t.Errorf("two calls took %v, want two timeouts and two graces", took)
		}
		if n := s.Abandoned(); n != 2 {
			t.Errorf("%d are counted, want 2", n)
		}
		if err := s.Can(spec); !errors.Is(err, ErrNotHere) {
			t.Errorf("got %v: a worker full of hanging handlers must not take more", err)
		}

		close(release)
		synctest.Wait()
		if n := s.Abandoned(); n != 0 {
			t.Errorf("%d are counted after all have ended", n)
		}
		if err := s.Can(spec); err != nil {
			t.Errorf("the worker did not recover: %v", err)
		}
		if log.Len() != 0 {
			t.Errorf("a call that was over wrote to its log: %q", log.String())
		}
	})
}

func TestP11_handler_results_are_bounded(t *testing.T) {
	s, spec := handling(t, func(context.Context, Call) (Result, error) {
		return Result{Body: make([]byte, 10*MaxResultBytes)}, nil
	})
	_, err := s.Call(t.Context(), spec, testCall())
	wantFailure(t, err, KindResult, true)
}

func TestRegistryRefusesWhatWouldChangeAMeaning(t *testing.T) {
	f := func(context.Context, Call) (Result, error) { return Result{}, nil }
	r := new(Registry)
	if err := r.Register("a.b-c_1", f); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]error{
		"taken":    r.Register("a.b-c_1", f),
		"no name":  r.Register("", f),
		"bad name": r.Register("a b", f),
		"nil":      r.Register("x", nil),
	} {
		if bad == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
