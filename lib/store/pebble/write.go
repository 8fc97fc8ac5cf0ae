package pebble

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
)

const (
	// inFlight bounds the requests that wait for their turn, and those that wait for the disk. Pebble itself blocks above
	// some 4,000 unsynced batches.
	inFlight = 512
	// batchBytes and batchOps are where a WriteEach is cut, so that a large one does not keep the others waiting.
	batchBytes = 1 << 20
	batchOps   = 250
)

// request is one batch on its way: made by the caller, decided by decideAll, finished by awaitAll. It owns copies of all
// that it needs, since a caller whose context ends leaves while it is still under way.
type request struct {
	*commit
	ops     []store.Op // without their values, which are in the batch
	keys    [][]byte
	seen    []glance
	stripes []uint32
	each    bool // each op on its own, else all or none

	batch   *pebble.Batch // what to write if every condition holds
	guessed bool          // the batch needs versions that only what stands can tell
	write   bool          // decided: the batch is in the log

	versions []uint64
	errs     []error // of each op, with each

	// A sweep's request deletes what has expired: ops and keys are those that its entries name.
	entries [][]byte
	now     int64
	expired int // how many items it deleted
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
	r := s.prepare(ops, false)
	if err := s.submit(ctx, r); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	if err := s.await(ctx, r); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return r.versions, nil
}

// WriteEach does each op on its own, as the port says. Batches of it go to the disk together.
func (s *Store) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	if err := store.CheckEach(ops); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("write each: %w", err)
	}
	defer s.leave()
	var under []*request
	for start := 0; start < len(ops); {
		end, bytes := start, 0
		for end < len(ops) && end-start < batchOps && (end == start || bytes+len(ops[end].Value) <= batchBytes) {
			bytes += len(ops[end].Value)
			end++
		}
		r := s.prepare(ops[start:end], true)
		if err := s.submit(ctx, r); err != nil {
			return nil, fmt.Errorf("write each: %w", err)
		}
		under = append(under, r)
		start = end
	}
	verdicts := make([]store.Verdict, 0, len(ops))
	for _, r := range under {
		if err := s.await(ctx, r); err != nil {
			return nil, fmt.Errorf("write each: %w", err)
		}
		for i, err := range r.errs {
			if c := store.AsConflict(err); c != nil {
				c.Op = len(verdicts)
			}
			verdicts = append(verdicts, store.Verdict{Version: r.versions[i], Err: err})
		}
	}
	return verdicts, nil
}

// prepare makes the batch in the caller's goroutine: a condition tells the version that its put will give, so all but puts
// under Any can be encoded before it is known whether they happen.
func (s *Store) prepare(ops []store.Op, each bool) *request {
	keyBytes, batchSize := 0, 16
	for i := range ops {
		n := keyLen(ops[i].Key)
		keyBytes += n
		if ops[i].Kind != store.Check {
			batchSize += n + 12
		}
		if ops[i].Kind == store.Put {
			batchSize += maxHeader + len(ops[i].Value)
		}
	}
	r := &request{
		ops: make([]store.Op, len(ops)), keys: make([][]byte, len(ops)), stripes: make([]uint32, len(ops)),
		seen: make([]glance, len(ops)),
		each: each, versions: make([]uint64, len(ops)), batch: s.db.NewBatchWithSize(batchSize), commit: newCommit(),
	}
	buf := make([]byte, 0, keyBytes)
	var head [maxHeader]byte
	for i := range ops {
		op := &ops[i]
		start := len(buf)
		buf = appendKey(buf, op.Key.Partition, op.Key.Sort)
		key := buf[start:len(buf):len(buf)]
		r.keys[i], r.stripes[i], r.seen[i] = key, s.stripe(op.Key.Partition), s.glance(key)
		switch op.Kind {
		case store.Put:
			guess, _ := op.If.Wants()
			r.guessed = r.guessed || op.If.IsAny()
			h := appendHeader(head[:0], header{version: guess + 1, expires: store.ExpirySeconds(op.Expires), attempt: op.Attempt})
			d := r.batch.SetDeferred(len(key), len(h)+len(op.Value))
			copy(d.Key, key)
			copy(d.Value[copy(d.Value, h):], op.Value)
			must(d.Finish())
		case store.Delete:
			must(r.batch.Delete(key, nil))
		}
		r.ops[i] = store.Op{Kind: op.Kind, Key: op.Key, If: op.If, Expires: op.Expires, Attempt: op.Attempt}
	}
	return r
}

// marks is how many groups of keys are told apart when the goroutine that decides asks whether a glance is still right. Two
// keys in one group cost a needless second read, nothing more.
const marks = 1 << 15

// glance is what a caller saw under a key before its request was queued. Reading is most of the work of a decision, and so
// it is done in as many goroutines as there are callers. The mark tells whether anything was written since: it grows after
// a write can be seen, so who reads it first, and then the item, has seen all writes that it counts.
type glance struct {
	header
	group uint32
	mark  uint64
	ok    bool
}

func (s *Store) mark(key []byte) uint32 { return uint32(maphash.Bytes(s.seed, key)) % marks }

func (s *Store) glance(key []byte) glance {
	group := s.mark(key)
	mark := s.marks[group].Load()
	h, _, err := s.load(key, false)
	return glance{header: h, group: group, mark: mark, ok: err == nil}
}

// must is for calls on a batch in memory, which have an error only in their signature.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// submit queues the request. When it gives an error, the request was not queued and nothing will be written.
func (s *Store) submit(ctx context.Context, r *request) error {
	select {
	case s.requests <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.failed:
		return s.failure
	}
}

// await waits for the answer. When it gives an error that is not the request's own, the write may still happen.
func (s *Store) await(ctx context.Context, r *request) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.failed:
		return unknown(s.failure)
	}
}

func unknown(cause error) error { return fmt.Errorf("%w: %w", store.ErrUnknown, cause) }

// decideAll is the one goroutine that decides and applies, in the order in which requests come: so what it reads cannot
// change before it writes, and the order of decisions is the order of the log.
func (s *Store) decideAll() {
	defer close(s.acks)
	d := decider{s: s}
	for r := range s.requests {
		if err := s.broken(); err != nil {
			r.lose(err)
			continue
		}
		d.decide(r)
		if r.write {
			// From here on a reader may see the write, so it must find the commit to wait for first.
			for i := range r.ops {
				if r.ops[i].Kind != store.Check {
					s.stripes[r.stripes[i]].Store(r.commit)
				}
			}
			if err := s.db.ApplyNoSyncWait(r.batch, pebble.Sync); err != nil {
				s.fail(err)
			}
			if err := s.broken(); err != nil {
				r.lose(err)
				continue
			}
			for _, key := range r.keys {
				s.marks[s.mark(key)].Add(1)
			}
		}
		// What changes nothing goes the same way: its verdict tells of what it saw, which must be synced as well.
		s.acks <- r
	}
}

// awaitAll answers requests in the order of the log, each when the disk has it. One sync of Pebble's serves all that wait.
func (s *Store) awaitAll() {
	for r := range s.acks {
		if r.write {
			if err := r.batch.SyncWait(); err != nil {
				s.fail(fmt.Errorf("sync the log: %w", err))
			}
		}
		if err := s.broken(); err != nil {
			r.lose(err)
			continue
		}
		// After a good sync nothing refers to the batch any more.
		must(r.batch.Close())
		close(r.done)
	}
}

// lose answers a request of which nobody knows whether the disk has it. Its batch is left to the garbage collector, since
// Pebble may still hold it.
func (r *request) lose(cause error) {
	r.err = unknown(cause)
	close(r.done)
}
