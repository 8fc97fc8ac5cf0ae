package sim

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/linear"
)

// request is one that a host serves, with the writes that it has sent: some are done when its client has long given up, its host is dead,
// or its handler has answered that nobody knows. When the last of them has been done the recorder hears that it is over; without that
// each whose answer is lost could explain whatever comes after, and where many are lost no search for an order comes to an end.
type request struct {
	way  *linear.Way
	left atomic.Int64 // its handler, and writes on their way
}

type requestKey struct{}

// requestOf gives the request for which something is done, nil where a host does it of itself.
func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

// begin is the begin of a request at its host.
func begin(ctx context.Context, way *linear.Way) (context.Context, *request) {
	q := &request{way: way}
	q.left.Store(1)
	return context.WithValue(ctx, requestKey{}, q), q
}

// sends counts what is on its way to the store.
func (q *request) sends() {
	if q != nil && q.left.Add(1) == 1 {
		panic("sim: a request that was over has sent a write")
	}
}

// ends counts what will have no effect any more.
func (q *request) ends() {
	if q != nil && q.left.Add(-1) == 0 {
		q.way.Over()
	}
}

// sent is a call of the store whose writes land, whoever waits for them. What only requests write has one behind it: were a handler to
// write under a context that is not its request's, that would be taken for over too early.
func sent(ctx context.Context, ops []store.Op) *pending {
	q := requestOf(ctx)
	for _, o := range ops {
		if q == nil && (strings.HasPrefix(o.Key.Partition, "def#") || strings.HasPrefix(o.Key.Partition, "idem#")) {
			panic("sim: nobody's request writes " + o.Key.String())
		}
	}
	return &pending{landed: true, of: q}
}
