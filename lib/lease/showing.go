package lease

import (
	"context"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
)

// showing is what an attempt shows of its log to those who read it in other processes on the store.
type showing struct {
	mu    sync.Mutex
	until time.Duration // by the process's own clock: whose log nobody has asked for lately is not shown

	turn  turn
	size  int64 // of what was shown last, in bytes as they were written; 0: nothing was
	ended bool
}

func (s *showing) want(until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = max(s.until, until)
}

func (s *showing) wanted(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now < s.until
}

// Show puts what the target has written so far where other processes on the store look for it, if any of them has lately. Who is in the worker's
// own process reads it there.
func (h *Held) Show(ctx context.Context, so runlog.Log) (read bool, err error) {
	s := &h.showing
	if !s.wanted(h.desk.Dispatch.Elapsed()) {
		return false, nil
	}
	s.turn.take()
	defer s.turn.give()
	if s.ended || so.Written() == s.size {
		return !s.ended, nil
	}
	data, err := so.Encode()
	if err == nil {
		s.size = so.Written() // what gives an error may be there
		err = h.putLive(ctx, data)
	}
	if err != nil {
		s.size = -1
		h.desk.Log.WarnContext(ctx, "a log is not shown to who reads it elsewhere", "run", h.name, "error", err)
	}
	return true, err
}

// conceal ends what is shown, and empties it where the log was kept: it will be where the run's record says. Should that fail, its day of expiry
// takes it: the end waits no longer for it.
func (h *Held) conceal(ctx context.Context, kept bool) {
	s := &h.showing
	s.turn.take()
	defer s.turn.give()
	if s.ended = true; s.size == 0 || !kept {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, concealFor)
	defer cancel()
	if err := h.putLive(ctx, nil); err != nil {
		h.desk.Log.DebugContext(ctx, "what was shown of a log stays for now", "run", h.name, "error", err)
	}
}

func (h *Held) putLive(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, h.desk.Dispatch.Lease/3)
	defer cancel()
	return h.desk.Blobs.PutLive(ctx, liveRef(*h.started), data)
}

// liveRef is where the newest attempt of a run shows its log. Whoever reads the run's record can tell it.
func liveRef(r run.Run) blob.Ref {
	return blob.Ref{Tenant: r.Tenant, Kind: blob.Log, ID: blobID(r), Expires: time.UnixMilli(r.Started).Add(liveFor)}
}

const concealFor = 2 * time.Second

// liveFor is for how long the place of a live log is kept, which is longer than an attempt may last, and no longer than logs are at the least.
const liveFor = 48 * time.Hour
