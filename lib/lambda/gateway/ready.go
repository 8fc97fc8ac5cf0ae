package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// ready is what the function needs to do its work.
func (g *gateway) ready(ctx context.Context) []wire.Check {
	var shown []wire.Check
	for _, c := range g.Node.Checks(ctx) {
		one := wire.Check{Name: c.Name, State: wire.CheckOK, Detail: c.Detail}
		switch {
		case c.Err != nil:
			one.State, one.Detail = wire.CheckFailing, c.Err.Error()
		case c.Attention:
			one.State = wire.CheckAttention
		}
		shown = append(shown, one)
	}
	return append(shown, g.ticks(ctx))
}

// tickless is how long a shard may be without a tick: two of them may be two minutes apart, and one of them may fail.
const tickless = 4 * time.Minute

// ticks tells whether somebody ticks, by what ticks write. A minute-old answer is good enough, and half the price.
func (g *gateway) ticks(ctx context.Context) wire.Check {
	c := wire.Check{Name: "ticks"}
	keys := make([]store.Key, g.Node.Dispatch.Layout.Shards)
	for n := range keys {
		keys[n] = timer.ShardKey(n)
	}
	items, err := g.Data.Store.Peek(ctx, keys...)
	var oldest int64
	for n, item := range items {
		var s timer.Shard
		if s, err = timer.ShardFromItem(n, item); err != nil {
			break
		}
		if n == 0 || s.Passed < oldest {
			oldest = s.Passed
		}
	}
	age := g.Now().Sub(time.UnixMilli(oldest)).Round(time.Second)
	switch {
	case err != nil:
		c.State, c.Detail = wire.CheckFailing, err.Error()
	case oldest == 0:
		c.State, c.Detail = wire.CheckAttention, "have not come to every part of the work yet: the first comes a minute after the deployment"
	case age > tickless:
		c.State, c.Detail = wire.CheckFailing, fmt.Sprintf("none has come to some part of the work for %s: see the schedule and the log of the function tick", age)
	default:
		c.State, c.Detail = wire.CheckOK, fmt.Sprintf("the last one came %s ago", max(age, 0))
	}
	return c
}
