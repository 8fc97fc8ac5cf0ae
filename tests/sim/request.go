package sim

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/belfry-scheduler/belfry/lib/job"
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
// write under a context that is not its request's, that would be taken for over too early. A job that its runs pause is edited by nobody's request: then the
// recorder hears of one, and done is to be called when the call of the store has an answer.
func (w *World) sent(ctx context.Context, ops []store.Op) (c *pending, done func()) {
	q := requestOf(ctx)
	if q != nil {
		return &pending{landed: true, of: q}, func() {}
	}
	if tenant, j, pauses := pauseAmong(ops); pauses {
		_, q = begin(ctx, w.heard.Paused(tenant, j.Name, j.Reason))
		return &pending{landed: true, of: q}, q.ends
	}
	for _, o := range ops {
		if strings.HasPrefix(o.Key.Partition, "def#") || strings.HasPrefix(o.Key.Partition, "idem#") {
			panic("sim: nobody's request writes " + o.Key.String())
		}
	}
	return &pending{landed: true}, func() {}
}

// pauseAmong is the job that is paused for its runs by a write, if that is one.
func pauseAmong(ops []store.Op) (tenant string, j job.Job, pauses bool) {
	for _, o := range ops {
		if rest, found := strings.CutPrefix(o.Key.Partition, "job#"); found && o.Kind == store.Put {
			tenant, _, _ = strings.Cut(rest, "#")
			j, err := job.FromItem(tenant, o.Key.Sort, store.Item{Key: o.Key, Version: 1, Value: o.Value})
			return tenant, j, err == nil && j.Def.Paused && strings.HasPrefix(j.Reason, "pause_after:")
		}
	}
	return "", job.Job{}, false
}
