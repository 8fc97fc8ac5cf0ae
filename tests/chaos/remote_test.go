package chaos

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// A store and a queue of this process, for worker processes: the ports over net/rpc. It carries what a worker needs and
// the errors that one decides on. net/rpc wants the types of what it carries exported.

// remote is the serving side.
type remote struct {
	store store.Store
	queue queue.Queue
}

type (
	Operation struct {
		Kind    store.Kind
		Key     store.Key
		Absent  bool
		Version uint64 // 0: no condition on it
		Value   []byte
		Expires time.Time
		Attempt uint64
	}
	Written []Operation
	Failure struct {
		Text     string // "": none
		Is       int    // index into decided, -1 for others
		Conflict bool
		Op       int
		Absent   bool
		Version  uint64
		Standing store.Item
	}
	Versions struct {
		Versions []uint64
		Failure  Failure
	}
	Verdicts struct {
		Versions []uint64
		Failures []Failure
		Failure  Failure
	}
	Sending struct {
		Priority queue.Priority
		Batch    []queue.Outgoing
	}
	Receiving struct {
		Max              int
		Wait, Visibility time.Duration
	}
	Extending struct {
		Visibility time.Duration
		Batch      []queue.Message
	}
	Failures struct {
		Each    []Failure
		Failure Failure
	}
)

// decided are the errors that cross the wire as what they are.
var decided = []error{store.ErrTooLarge, store.ErrThrottled, store.ErrUnknown, store.ErrClosed, store.ErrBadCursor, queue.ErrFull, queue.ErrLimit, queue.ErrClosed}

func pack(err error) Failure {
	if err == nil {
		return Failure{}
	}
	f := Failure{Text: err.Error(), Is: -1}
	for i, known := range decided {
		if errors.Is(err, known) {
			f.Is = i
		}
	}
	if c := store.AsConflict(err); c != nil {
		f.Conflict, f.Op, f.Absent, f.Standing = true, c.Op, c.Cond.IsAbsent(), c.Standing
		f.Version, _ = c.Cond.Wants()
	}
	return f
}

func (f Failure) unpack() error {
	switch {
	case f.Text == "":
		return nil
	case f.Conflict:
		return &store.Conflict{Op: f.Op, Cond: condition(f.Absent, f.Version), Standing: f.Standing}
	case f.Is >= 0:
		return decided[f.Is]
	}
	return errors.New(f.Text)
}

func condition(absent bool, version uint64) store.Cond {
	switch {
	case absent:
		return store.Absent
	case version != 0:
		return store.Version(version)
	}
	return store.Any
}

func packEach(errs []error) []Failure {
	each := make([]Failure, len(errs))
	for i, err := range errs {
		each[i] = pack(err)
	}
	return each
}

func (w Written) ops() []store.Op {
	ops := make([]store.Op, len(w))
	for i, o := range w {
		ops[i] = store.Op{Kind: o.Kind, Key: o.Key, If: condition(o.Absent, o.Version), Value: o.Value, Expires: o.Expires, Attempt: o.Attempt}
	}
	return ops
}

// serveRemote gives the address that workers call.
func serveRemote(t *testing.T, r *remote) string {
	t.Helper()
	server := rpc.NewServer()
	if err := server.RegisterName("Remote", &remoteMethods{r}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", process.AnyPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // closed, at the end of the test
			}
			go server.ServeConn(connection)
		}
	}()
	return listener.Addr().String()
}

type remoteMethods struct{ r *remote }

func (m *remoteMethods) Get(keys []store.Key, items *[]store.Item) (err error) {
	*items, err = m.r.store.Get(context.Background(), keys...)
	return err
}

func (m *remoteMethods) Query(r store.Range, page *store.Page) (err error) {
	*page, err = m.r.store.Query(context.Background(), r)
	return err
}

func (m *remoteMethods) Write(w Written, out *Versions) error {
	got, err := m.r.store.Write(context.Background(), w.ops()...)
	*out = Versions{Versions: got, Failure: pack(err)}
	return nil
}

func (m *remoteMethods) WriteEach(w Written, out *Verdicts) error {
	got, err := m.r.store.WriteEach(context.Background(), w.ops()...)
	out.Failure = pack(err)
	for _, v := range got {
		out.Versions, out.Failures = append(out.Versions, v.Version), append(out.Failures, pack(v.Err))
	}
	return nil
}

func (m *remoteMethods) Send(s Sending, out *Failures) error {
	each, err := m.r.queue.Send(context.Background(), s.Priority, s.Batch...)
	*out = Failures{packEach(each), pack(err)}
	return nil
}

func (m *remoteMethods) Receive(r Receiving, out *[]queue.Message) (err error) {
	*out, err = m.r.queue.Receive(context.Background(), r.Max, r.Wait, r.Visibility)
	return err
}

func (m *remoteMethods) Delete(batch []queue.Message, out *Failures) error {
	each, err := m.r.queue.Delete(context.Background(), batch...)
	*out = Failures{packEach(each), pack(err)}
	return nil
}

func (m *remoteMethods) Extend(e Extending, out *Failures) error {
	each, err := m.r.queue.Extend(context.Background(), e.Visibility, e.Batch...)
	*out = Failures{packEach(each), pack(err)}
	return nil
}

func (m *remoteMethods) Depth(_ struct{}, out *map[queue.Priority]queue.Depth) (err error) {
	*out, err = m.r.queue.Depth(context.Background())
	return err
}

// far is the calling side, in the worker's process.
type far struct{ rpc *rpc.Client }

// call ends with its context; what it asked for may still happen, as over any network.
func (f far) call(ctx context.Context, method string, args, reply any) error {
	done := f.rpc.Go("Remote."+method, args, reply, make(chan *rpc.Call, 1)).Done
	select {
	case call := <-done:
		return call.Error
	case <-ctx.Done():
		return ctx.Err()
	}
}

type farStore struct{ far }

func (f farStore) Get(ctx context.Context, keys ...store.Key) (items []store.Item, err error) {
	err = f.call(ctx, "Get", keys, &items)
	return items, err
}

func (f farStore) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return f.Get(ctx, keys...)
}

func (f farStore) Query(ctx context.Context, r store.Range) (page store.Page, err error) {
	err = f.call(ctx, "Query", r, &page)
	return page, err
}

func asked(ops []store.Op) (w Written) {
	for _, o := range ops {
		version, _ := o.If.Wants()
		w = append(w, Operation{Kind: o.Kind, Key: o.Key, Absent: o.If.IsAbsent(), Version: version, Value: o.Value, Expires: o.Expires, Attempt: o.Attempt})
	}
	return w
}

func (f farStore) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	var out Versions
	if err := f.call(ctx, "Write", asked(ops), &out); err != nil {
		return nil, err
	}
	return out.Versions, out.Failure.unpack()
}

func (f farStore) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	var out Verdicts
	if err := f.call(ctx, "WriteEach", asked(ops), &out); err != nil {
		return nil, err
	}
	each := make([]store.Verdict, len(out.Failures))
	for i := range each {
		each[i] = store.Verdict{Version: out.Versions[i], Err: out.Failures[i].unpack()}
	}
	return each, out.Failure.unpack()
}

func (farStore) Skew() time.Duration { return 0 }
func (f farStore) Close() error      { return f.rpc.Close() }

type farQueue struct{ far }

func (f farQueue) each(ctx context.Context, method string, args any) ([]error, error) {
	var out Failures
	if err := f.call(ctx, method, args, &out); err != nil {
		return nil, err
	}
	each := make([]error, len(out.Each))
	for i := range each {
		each[i] = out.Each[i].unpack()
	}
	return each, out.Failure.unpack()
}

func (f farQueue) Send(ctx context.Context, p queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	return f.each(ctx, "Send", Sending{p, batch})
}

func (f farQueue) Receive(ctx context.Context, limit int, wait, visibility time.Duration) (got []queue.Message, err error) {
	err = f.call(ctx, "Receive", Receiving{limit, wait, visibility}, &got)
	return got, err
}

func (f farQueue) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	return f.each(ctx, "Delete", batch)
}

func (f farQueue) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	return f.each(ctx, "Extend", Extending{visibility, batch})
}

func (f farQueue) Depth(ctx context.Context) (depth map[queue.Priority]queue.Depth, err error) {
	err = f.call(ctx, "Depth", struct{}{}, &depth)
	return depth, err
}

func (f farQueue) Close() error { return f.rpc.Close() }
