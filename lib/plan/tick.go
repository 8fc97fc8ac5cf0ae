package plan

import (
	"math"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// aim is how much of a minute ticks are planned to be busy: what is left is for a slow page, a tick that is started anew, and an hour in which
// requests take longer than is assumed.
const aim = 0.7

const minute = 60 // seconds

// Adapter is what an adapter of the store does at once: lib/store/dynamo's Parallel.
type Adapter struct{ Writes int }

// rounds are the requests that come one after the other for a page of a bucket, by the protocol's order: read the timers, read their jobs,
// write the successors, write the claims, send. Each sweep reads the timers again, and the first the definitions and the runs as well.
func rounds(a Adapter) (dynamo, sqs int) {
	pages := func(by int) int { return (tick.PageSize + by - 1) / by }
	reads := pages(store.MaxKeys)
	each := min(tick.PageSize, store.MaxEach)
	writes := pages(store.MaxEach) * ((each + a.Writes - 1) / a.Writes)
	const query = 1
	claim := query + reads + 2*writes
	sweeps := timer.Sweeps*query + 2*reads
	return claim + sweeps, pages(queue.MaxBatch)
}

// parallelBuckets is how many buckets of a shard one tick reads at once: the default of tick.Config.
const parallelBuckets = tick.DefaultParallel

func ticksFor(l Load, t *cost.Tariff, a Adapter, shards, helpers int) Ticks {
	round, sends := rounds(a)
	k := Ticks{
		Shards: shards, Buckets: timer.Buckets / shards, Minute: l.Peak * minute,
		Round: round, Sends: sends, RequestMS: t.Assume(cost.DynamoMS), SendMS: t.Assume(cost.SQSMS), CPUOfARunMS: t.Assume(cost.ClaimCPUMS),
		CPUOfATick: t.Stack.MemoryMB["tick"] / cpuMB, TimeoutAfter: t.Stack.TickTimeout,
	}
	claimed := l.claimed()
	k.OfShard = k.Minute / float64(shards)
	k.Pages = math.Ceil(k.Minute / timer.Buckets / tick.PageSize)
	k.Asks = k.OfShard > tick.CalledWork
	k.BucketPace = tick.PageSize / ((float64(round)*k.RequestMS + float64(sends)*k.SendMS) / 1000)
	k.CPUPace = k.CPUOfATick * 1000 / k.CPUOfARunMS
	k.Pace = min(k.BucketPace*float64(min(k.Buckets, parallelBuckets)), k.CPUPace)
	k.Most = k.Pace * float64(shards)
	need := int(whole(l.Peak * claimed / (aim * k.Pace)))
	k.AtOnce = min(max(1, need), shards)
	if helpers >= 0 {
		k.AtOnce = min(1+helpers, shards)
	}
	k.Helpers = k.AtOnce - 1
	k.Seconds = k.Minute * claimed / (k.Pace * float64(k.AtOnce))
	k.Spare = 1 - k.Seconds/minute
	k.Enough = k.Seconds <= aim*minute*(1+1e-9)
	return k
}

// shardsFor is the fewest shards that are not fewer than a new stack has, and let enough ticks work at once.
func shardsFor(l Load, t *cost.Tariff, a Adapter) int {
	shards := min(int(t.Stack.Shards), timer.Buckets)
	for shards < timer.Buckets && !ticksFor(l, t, a, shards, -1).Enough {
		shards *= 2
	}
	return shards
}
