package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// showing is what an attempt shows of its log to those who read it in other processes on the store.
type showing struct {
	dispatch *dispatch.Dispatcher
	blobs    *blob.Bucket
	log      *slog.Logger
	ref      blob.Ref

	mu     sync.Mutex
	until  time.Duration      // by the process's own clock: whose log nobody has asked for lately is not shown
	ended  bool               // nothing more is shown
	giveUp context.CancelFunc // of what was shown last; nil for nothing

	turn turn
	size int64         // of what was shown last, in bytes as they were written; 0: nothing was
	next time.Duration // not before
}

// showing makes that of an attempt that holds a run.
func (d *Desk) showing(r run.Run) *showing {
	return &showing{dispatch: d.Dispatch, blobs: d.Blobs, log: d.Log, ref: liveRef(r)}
}

// liveRef is where the newest attempt of a run shows its log. Whoever reads the run's record can tell it.
func liveRef(r run.Run) blob.Ref {
	return blob.Ref{Tenant: r.Tenant, Kind: blob.Log, ID: blobID(r), Expires: time.UnixMilli(r.Started).Add(liveFor)}
}

const (
	liveFor    = 48 * time.Hour // longer than an attempt may last, and no longer than logs are kept at the least
	showApart  = time.Second    // whatever a worker elsewhere does; who is as told shows it every two
	concealFor = 2 * time.Second
)

// touched says that somebody has just asked for the log.
func (s *showing) touched() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = s.dispatch.Elapsed() + readFor + s.dispatch.Lease/3
}

func (s *showing) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dispatch.Elapsed() < s.until
}

// show puts what the target has written so far where other processes on the store look for it, if any of them has asked lately.
func (s *showing) show(ctx context.Context, so runlog.Log) (read bool, err error) {
	if !s.wanted() {
		return false, nil
	}
	s.turn.take()
	defer s.turn.give()
	ctx, done := s.begin(ctx)
	defer done()
	now := s.dispatch.Elapsed()
	if ctx.Err() != nil || so.Written() == s.size || now < s.next {
		return ctx.Err() == nil, nil
	}
	data, err := so.Encode()
	if err == nil {
		s.size, s.next = so.Written(), now+showApart // what gives an error may be there
		err = s.put(ctx, data, s.dispatch.Lease/3)
	}
	if err != nil {
		s.size = -1
		if ctx.Err() != nil {
			return false, nil // given up, as it has ended
		}
		s.log.WarnContext(ctx, "a log is not shown to who reads it elsewhere", "blob", s.ref.ID, "error", err)
	}
	return true, err
}

// begin gives a show a context that ends with what is shown.
func (s *showing) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		cancel()
	}
	s.giveUp = cancel
	return ctx, cancel
}

// end gives up what is being shown, and has nothing more shown.
func (s *showing) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.giveUp != nil {
		s.giveUp()
	}
}

// conceal ends what is shown, and empties it where the log was kept: it will be where the run's record says. It waits for no show under way, which it
// gives up. Should the emptying fail, or what was given up come after it, its day of expiry takes it: the end waits no longer for it.
func (s *showing) conceal(ctx context.Context, kept bool) {
	s.end()
	s.turn.take()
	defer s.turn.give()
	if s.size == 0 || !kept {
		return
	}
	if err := s.put(ctx, nil, concealFor); err != nil {
		s.log.DebugContext(ctx, "what was shown of a log stays for now", "blob", s.ref.ID, "error", err)
	}
}

func (s *showing) put(ctx context.Context, data []byte, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.blobs.PutLive(ctx, s.ref, data)
}
