package pebble

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// batchBytes and batchOps are where a WriteEach is cut, so that a large one does not keep the others waiting.
const (
	batchBytes = 1 << 20
	batchOps   = 250
)

// request is what one caller wants, on its way: made by the caller, decided by decideAll, answered with its group. It owns copies
// of all that it needs, since a caller whose context ends leaves while it is still under way.
type request struct {
	ops   []store.Op // their values are in buf
	parts []part
	buf   []byte
	each  bool // each op on its own, else all or none

	versions []uint64
	errs     []error // of each op, with each; none where all went well
	err      error

	imported bool // ops put versions as they are, whatever stands

	// A sweep's request deletes what has expired: ops and parts are of the items that its entries name.
	entries [][]byte
	now     int64
	expired int // how many items it deleted
}

// part is what the engine adds to an op.
type part struct {
	key    []byte // in the request's buf
	hash   uint64
	stripe uint32
	fresh  bool   // a put that mostly finds nothing
	seen   header // what was read under the key in this round
	round  uint32
}

var requests = sync.Pool{New: func() any { return new(request) }}

// mostKept is the largest buffer that is kept for the next request.
const mostKept = 64 << 10

// release gives back a request that was answered: nobody else has it any more.
func (r *request) release() {
	if cap(r.buf) > mostKept {
		return
	}
	clear(r.ops)
	clear(r.parts)
	*r = request{ops: r.ops[:0], parts: r.parts[:0], buf: r.buf[:0], versions: r.versions[:0]}
	requests.Put(r)
}

// Write does all or nothing, as the port says.
func (s *Store) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	if err := store.CheckWrite(ops); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	defer s.leave()
	if len(ops) == 0 {
		return nil, nil
	}
	r := s.prepare(ops)
	if err := s.decided(ctx, r); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	versions := slices.Clone(r.versions)
	r.release()
	return versions, nil
}

// WriteEach does each op on its own, as the port says. Parts of it go to the disk together.
func (s *Store) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	if err := store.CheckEach(ops); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	defer s.leave()
	type under struct {
		*request
		*commit
	}
	var all []under
	for start := 0; start < len(ops); {
		end, bytes := start, 0
		for end < len(ops) && end-start < batchOps && (end == start || bytes+len(ops[end].Value) <= batchBytes) {
			bytes += len(ops[end].Value)
			end++
		}
		r := s.prepare(ops[start:end])
		r.each = true
		c, err := s.submit(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("write each: %w", err)
		}
		all = append(all, under{r, c})
		start = end
	}
	verdicts := make([]store.Verdict, 0, len(ops))
	for _, u := range all {
		if err := s.await(ctx, u.commit); err != nil {
			return nil, fmt.Errorf("write each: %w", err)
		}
		for i, version := range u.versions {
			verdict := store.Verdict{Version: version}
			if u.errs != nil {
				verdict.Err = u.errs[i]
			}
			if c := store.AsConflict(verdict.Err); c != nil {
				c.Op = len(verdicts)
			}
			verdicts = append(verdicts, verdict)
		}
		u.release()
	}
	return verdicts, nil
}

// prepare copies the ops in the caller's goroutine, and does there what does not need what stands.
func (s *Store) prepare(ops []store.Op) *request {
	size := 0
	for i := range ops {
		size += keyLen(ops[i].Key)
		if ops[i].Kind == store.Put {
			size += len(ops[i].Value)
		}
	}
	r := requests.Get().(*request)
	r.buf = slices.Grow(r.buf[:0], size)
	r.ops = append(r.ops[:0], ops...)
	r.parts = slices.Grow(r.parts[:0], len(ops))[:len(ops)]
	r.versions = slices.Grow(r.versions[:0], len(ops))[:len(ops)]
	clear(r.versions)
	for i := range r.ops {
		op := &r.ops[i]
		start := len(r.buf)
		r.buf = appendKey(r.buf, op.Key.Partition, op.Key.Sort)
		r.parts[i] = s.part(r.buf[start:len(r.buf):len(r.buf)], op.Key.Partition)
		if op.Kind != store.Put {
			op.Value = nil
			continue
		}
		_, wants := op.If.Wants()
		r.parts[i].fresh = !wants
		start = len(r.buf)
		r.buf = append(r.buf, op.Value...)
		op.Value = r.buf[start:len(r.buf):len(r.buf)]
	}
	return r
}

func (s *Store) part(key []byte, partition string) part {
	return part{key: key, hash: maphash.Bytes(s.seed, key), stripe: s.stripe(partition)}
}

// must is for calls on a batch in memory, which have an error only in their signature.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// decided queues the request and waits for its answer.
func (s *Store) decided(ctx context.Context, r *request) error {
	c, err := s.submit(ctx, r)
	if err != nil {
		return err
	}
	if err := s.await(ctx, c); err != nil {
		return err
	}
	return r.err
}

// submit queues the request and gives what to wait for. When it gives an error, the request was not queued and nothing will be
// written.
func (s *Store) submit(ctx context.Context, r *request) (*commit, error) {
	for {
		s.queue.Lock()
		g := s.gathering
		if g.add(r) {
			first := len(g.requests) == 1
			s.queue.Unlock()
			if first {
				s.wake <- struct{}{} // has room: there is one for each group
			}
			return &g.commit, nil
		}
		s.queue.Unlock()
		select {
		case <-g.taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.failed:
			return nil, s.failure
		}
	}
}

// await waits until the group is answered. When it gives an error, the write may still happen, and the request is not the caller's.
func (s *Store) await(ctx context.Context, c *commit) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.failed:
		return unknown(s.failure)
	}
}

func unknown(cause error) error { return fmt.Errorf("%w: %w", store.ErrUnknown, cause) }
