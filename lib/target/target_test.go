package target

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newSet builds a set that may reach the test servers and start processes, unless change says otherwise.
func newSet(t *testing.T, change func(*Config)) *Set {
	t.Helper()
	cfg := Config{
		Now:       func() time.Time { return noon },
		AllowExec: true,
		BaseEnv:   []string{"PATH=/usr/bin:/bin"},
		Addresses: AddressPolicy{AllowLoopback: true},
		Grace:     200 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func testCall() Call {
	return Call{Tenant: "default", Run: "run-1", Job: "report", Attempt: 2, Fence: 5, Nominal: noon, Payload: []byte(`{"n":1}`)}
}

// wantFailure makes sure that err is a verdict of this kind, and gives it.
func wantFailure(t *testing.T, err error, kind string, permanent bool) *Failure {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("got error %v, want a *Failure of kind %s", err, kind)
	}
	if f.Kind != kind || f.Permanent != permanent {
		t.Fatalf("got %s, permanent %t (%s); want %s, permanent %t", f.Kind, f.Permanent, f.Message, kind, permanent)
	}
	if f.Message == "" {
		t.Fatal("the failure says nothing")
	}
	return f
}

func wantCancelled(t *testing.T, err error) {
	t.Helper()
	var f *Failure
	if !errors.Is(err, context.Canceled) || errors.As(err, &f) {
		t.Fatalf("got %v, want the context's cancellation and no verdict on the job", err)
	}
}

// timedOut gives a context and the function that makes its time be over.
func timedOut(t *testing.T) (context.Context, func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, func() { cancel(context.DeadlineExceeded) }
}

// watchedLog is a log that tells when a text was written to it.
type watchedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
	want string
	seen chan struct{}
}

func watch(want string) *watchedLog { return &watchedLog{want: want, seen: make(chan struct{})} }

func (w *watchedLog) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := bytes.Contains(w.text.Bytes(), []byte(w.want))
	w.text.Write(p)
	if !had && bytes.Contains(w.text.Bytes(), []byte(w.want)) {
		close(w.seen)
	}
	return len(p), nil
}

func (w *watchedLog) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestConfigIsCheckedOnce(t *testing.T) {
	now := func() time.Time { return noon }
	for name, cfg := range map[string]Config{
		"no clock":       {},
		"negative grace": {Now: now, Grace: -1},
		"bad user agent": {Now: now, UserAgent: "two\nlines"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAnEmptySpecIsNotOurs(t *testing.T) {
	if _, err := newSet(t, nil).Call(t.Context(), Spec{}, testCall()); !errors.Is(err, ErrNotHere) {
		t.Fatalf("got %v, want ErrNotHere: a newer version may know this kind of target", err)
	}
}

func TestACallUnderAnEndedContextTouchesNothing(t *testing.T) {
	ran := false
	handlers := new(Registry)
	if err := handlers.Register("h", func(context.Context, Call) (Result, error) { ran = true; return Result{}, nil }); err != nil {
		t.Fatal(err)
	}
	s := newSet(t, func(c *Config) { c.Handlers = handlers })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Call(ctx, Spec{Handler: &Handler{Name: "h"}}, testCall())
	wantCancelled(t, err)
	ctx, end := timedOut(t)
	end()
	_, err = s.Call(ctx, Spec{Handler: &Handler{Name: "h"}}, testCall())
	wantFailure(t, err, KindConnect, false)
	if ran {
		t.Fatal("the handler ran")
	}
}

func TestACancellationKeepsItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	operator := errors.New("cancelled by the operator")
	cancel(operator)
	_, err := newSet(t, nil).Call(ctx, Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1"}}, testCall())
	wantCancelled(t, err)
	if !errors.Is(err, operator) {
		t.Fatalf("got %v, which has lost the cause", err)
	}
}

func TestMessagesAreOneBoundedLine(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"a\r\nb\x1b[31m\tc\x00", 100, "a b [31m c"},
		{"\xff\xfe", 100, "?"},
		{"aäää", 4, "aä…"}, // the cut falls into a letter
		{"äää", 4, "ää…"},
		{"", 4, ""},
	} {
		if got := oneLine(c.in, c.limit); got != c.want {
			t.Errorf("oneLine(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}
