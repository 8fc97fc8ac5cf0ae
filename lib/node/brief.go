package node

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// keepTimers is how long a timer stays after its wake where expiry goes by Swept. By then every sweep has looked at it; the rest
// is for clocks that are stepped.
const keepTimers = time.Hour

// brief lets timers expire soon, for an engine that cleans up by Swept. Where expiry goes by a clock a timer must stay for as long
// as ticks may be away; here none goes that no sweep has passed, however long they are.
type brief struct{ store.Store }

func (b brief) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	return b.Store.Write(ctx, shortened(ops)...)
}

func (b brief) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	return b.Store.WriteEach(ctx, shortened(ops)...)
}

// shortened gives the ops with timers that expire soon after their wake, which their sort keys begin with.
func shortened(ops []store.Op) []store.Op {
	timer := func(op store.Op) bool { return op.Kind == store.Put && strings.HasPrefix(op.Key.Partition, "due#") }
	if !slices.ContainsFunc(ops, timer) {
		return ops
	}
	ops = slices.Clone(ops) // the caller's own may be sent again
	for i := range ops {
		digits, _, _ := strings.Cut(ops[i].Key.Sort, "#")
		if wake, err := strconv.ParseInt(digits, 10, 64); err == nil && timer(ops[i]) {
			ops[i].Expires = time.UnixMilli(wake).Add(keepTimers)
		}
	}
	return ops
}
