package target

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/internal/room"
)

// Config is what a worker's operator decides about targets.
type Config struct {
	// Now is the clock, for a Retry-After that names a date. Required.
	Now func() time.Time

	// AllowExec lets jobs start processes on this host. Whoever may write a job then owns this host's user.
	AllowExec bool

	// BaseEnv is what processes inherit, as "NAME=value". Names that begin with BELFRY_ are left out: they configure the
	// worker, and may hold what a job must not see.
	BaseEnv []string

	// Addresses are those that http targets may reach beyond the public ones.
	Addresses AddressPolicy

	// Secrets is where the secrets come from that jobs name. Default NoSecrets.
	Secrets Secrets

	// RootCAs are the authorities trusted for https; nil is the host's own list.
	RootCAs *x509.CertPool

	// UserAgent is sent where a job sets none. Default "Belfry".
	UserAgent string

	// Handlers are the Go functions that jobs may name; nil is none.
	Handlers *Registry

	// AWS makes the calls of aws targets; nil: this worker makes none.
	AWS CallAWS

	// ARNs are what jobs may name as aws targets, and as their roles. None: no job may.
	ARNs []ARNPattern

	// Email sends the mails of email targets; nil: this worker sends none.
	Email SendEmail

	// MailFrom is the address that mails come from. Required with Email. A job may name another one of its domain.
	MailFrom string

	// MailTo are the addresses that jobs may mail to. None: any.
	MailTo []MailPattern

	// Grace is how long a process or handler has to end after it was told to, before it is killed or left behind, and how
	// long a process's output is awaited after its end. Default 5s.
	Grace time.Duration

	// MaxAbandoned is how many handlers that did not heed their context may go on in this process before it takes no more
	// handler runs. Default 64.
	MaxAbandoned int
}

// Set calls targets. It is safe for concurrent use.
type Set struct {
	cfg       Config
	shared    *http.Transport // keeps connections: for calls that carry an Idempotency-Key
	fresh     *http.Transport // a connection for each call: for calls at most once
	abandoned atomic.Int64
	starting  chan struct{} // one slot: who starts a process
	large     *room.Room    // for large results

	mu       sync.Mutex
	families map[*family]struct{} // those of attempts that have not ended
	killed   bool                 // what starts now is killed, too
}

// New checks the configuration; it opens nothing.
func New(cfg Config) (*Set, error) {
	if cfg.Now == nil {
		return nil, errors.New("target: Config.Now is required")
	}
	if cfg.Grace < 0 || cfg.MaxAbandoned < 0 {
		return nil, errors.New("target: Config.Grace and Config.MaxAbandoned cannot be negative")
	}
	if cfg.Email != nil && ValidAddress("", cfg.MailFrom) != nil {
		return nil, errors.New("target: Config.MailFrom is no address, and is required with Config.Email")
	}
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	if cfg.MaxAbandoned == 0 {
		cfg.MaxAbandoned = 64
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "Belfry"
	}
	if cfg.Secrets == nil {
		cfg.Secrets = NoSecrets
	}
	if !isFieldValue(cfg.UserAgent) {
		return nil, errors.New("target: Config.UserAgent is no header value")
	}
	if cfg.Handlers == nil {
		cfg.Handlers = new(Registry)
	}
	return &Set{cfg: cfg, shared: sharedTransport(cfg), fresh: freshTransport(cfg), starting: make(chan struct{}, 1), large: room.Of(largeResults), families: map[*family]struct{}{}}, nil
}

// Can says whether this worker is able to call the target: nil, or an error that wraps ErrNotHere and says what is missing.
// A worker that cannot must hand the run back for another one.
func (s *Set) Can(spec Spec) error {
	switch {
	case spec.HTTP != nil:
		return nil
	case spec.Exec != nil && !s.cfg.AllowExec:
		return fmt.Errorf("%w: it was not started with --allow-exec", ErrNotHere)
	case spec.Exec != nil:
		return nil
	case spec.Handler != nil:
		return s.canHandle(spec.Handler.Name)
	case spec.AWS != nil:
		return s.canAWS()
	case spec.Email != nil:
		return s.canEmail()
	default:
		return fmt.Errorf("%w: its kind is not known to this version", ErrNotHere)
	}
}

// Now is the time by the clock of the set.
func (s *Set) Now() time.Time { return s.cfg.Now() }

// Abilities are what Can asks of a worker beside http.
type Abilities struct {
	Handlers []string // by name
	Exec     bool     // it starts processes
	AWS      bool     // it calls AWS
	Email    bool     // it sends mails
}

// Able says what this worker can do.
func (s *Set) Able() Abilities {
	return Abilities{Handlers: s.cfg.Handlers.names(), Exec: s.cfg.AllowExec, AWS: s.canAWS() == nil, Email: s.canEmail() == nil}
}

// Call makes one attempt and waits for its end, at the latest Config.Grace twice over after ctx has ended. The error is
//   - nil: the target did its work,
//   - a *Failure (by errors.As): it did not, or nobody can tell; a deadline of ctx is one of these, of KindTimeout,
//     or of KindConnect where nothing was sent,
//   - an error that wraps ErrNotHere: nothing was tried, another worker may,
//   - an error that wraps ErrShort: nothing was sent and nothing ran, this worker may try again in a moment, or another,
//   - else ctx's own: the attempt was cancelled, and its effect is unknown, unless it wraps ErrUnsent, too.
//
// Call never tries twice: retries are the caller's. What ctx ends by context.WithDeadlineCause with a cause of its own
// counts as a cancellation, not as the job's timeout.
func (s *Set) Call(ctx context.Context, spec Spec, call Call) (Result, error) {
	call.room = s.large.Place(call.Tenant)
	result, err := s.call(ctx, spec, call)
	if err != nil {
		call.room.Give()
		return result, err
	}
	result.room = call.room
	return result, nil
}

func (s *Set) call(ctx context.Context, spec Spec, call Call) (Result, error) {
	if err := s.Can(spec); err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		return Result{}, unsent(ctx)
	}
	known, err := s.reveal(ctx, spec, call.Tenant)
	if err != nil {
		return Result{}, err
	}
	log := &callLog{to: call.Log}
	defer log.close()
	call.Log = log
	switch {
	case spec.HTTP != nil:
		return s.callHTTP(ctx, *spec.HTTP, call, known)
	case spec.Exec != nil:
		return s.callExec(ctx, *spec.Exec, call, known)
	case spec.AWS != nil:
		return s.callAWS(ctx, *spec.AWS, call)
	case spec.Email != nil:
		return s.callEmail(ctx, *spec.Email, call)
	default:
		return s.callHandler(ctx, spec.Handler.Name, call)
	}
}

// bounded runs f in a goroutine, and returns true when f has ended. It waits at the latest until a grace after ctx has ended: false says that
// f goes on, and that what f writes must not be read.
func bounded(ctx context.Context, grace time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	left := time.NewTimer(grace)
	defer left.Stop()
	select {
	case <-done:
		return true
	case <-left.C:
		return false
	}
}

// Kill ends at once what exec targets have started and what has not ended, with its family: for a process that is about to end itself
// without the grace, beside whose next start none of it is to go on. It waits for their ends for a hundred looks at the most: one that waits for
// a disk does not end before the disk answers.
func (s *Set) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	kill(slices.Collect(maps.Keys(s.families))...)
}

// lives notes a family that Kill is to end, until the function that it gives is called.
func (s *Set) lives(f *family) (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.families[f] = struct{}{}
	if s.killed {
		kill(f)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.families, f)
	}
}

// Abandoned counts the handlers that did not heed the end of their context and still run.
func (s *Set) Abandoned() int { return int(s.abandoned.Load()) }

// Close lets go of idle connections. Calls under way are not touched: their contexts end them.
func (s *Set) Close() {
	s.shared.CloseIdleConnections()
	s.fresh.CloseIdleConnections()
}

// callLog keeps the promises of Call.Log: one writer at a time, none after the end, and no error that could break a
// process's output pipe.
type callLog struct {
	mu     sync.Mutex
	to     io.Writer
	closed bool
}

func (l *callLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil && !l.closed {
		_, _ = l.to.Write(p)
	}
	return len(p), nil
}

func (l *callLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// capture keeps the beginning of what is written to it.
type capture struct {
	ctx  context.Context //nolint:containedctx // of the call, for whose result there may be no room yet
	most int
	room *room.Place

	kept      []byte
	truncated bool
}

// captureOf keeps what the call keeps of a result.
func captureOf(ctx context.Context, call Call) capture {
	return capture{ctx: ctx, most: call.most(), room: call.room}
}

// Write waits for room where it is large. Its error is that of the call's context.
func (c *capture) Write(p []byte) (int, error) {
	if c.most > MaxResultBytes && len(c.kept)+len(p) > MaxResultBytes {
		if err := c.room.Take(c.ctx); err != nil {
			c.truncated = true
			return 0, err
		}
	}
	left := c.most - len(c.kept)
	c.kept = append(c.kept, p[:min(left, len(p))]...)
	c.truncated = c.truncated || len(p) > left
	return len(p), nil
}

// result is what was kept, of a text without the part of a character that the cut has left.
func (c *capture) result() Result {
	if !c.truncated {
		return Result{Body: c.kept}
	}
	return Result{Body: WholeText(c.kept), Truncated: true}
}

// WholeText leaves out the beginning of a character at the end of what was cut off, where the rest is text: with it, all would be bytes.
// What is no text anyway stays as it is.
func WholeText(cut []byte) []byte {
	end := len(cut)
	for end > 0 && len(cut)-end < utf8.UTFMax && !utf8.RuneStart(cut[end-1]) {
		end--
	}
	if end == 0 || utf8.FullRune(cut[end-1:]) || !utf8.Valid(cut[:end-1]) {
		return cut
	}
	return cut[:end-1]
}
