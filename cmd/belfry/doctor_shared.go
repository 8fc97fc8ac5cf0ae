package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// sharedFindings looks at engines that processes share. It asks for more than the work needs: how they are set up is told to those
// who may describe tables and queues.
func (c *cli) sharedFindings(ctx context.Context, e examination) ([]finding, error) {
	if err := e.engines.check(); err != nil {
		return nil, err
	}
	pools, _, err := (&poolFlags{here: e.queues}).read()
	if err != nil {
		return nil, err
	}
	data, err := cloud.Open(ctx, cloud.Config{Store: e.engines.store, Queue: e.engines.queues, Blob: e.engines.blob, Queues: pools,
		OpenBlob: openBlob, Now: time.Now, NewID: newID})
	if err != nil {
		return nil, badAddress(err)
	}
	found, err := c.enginesFindings(ctx, e, pools, data)
	return found, errors.Join(err, data.Close())
}

func (c *cli) enginesFindings(ctx context.Context, e examination, pools []cloud.Pool, data *cloud.Data) ([]finding, error) {
	var found []finding
	usable := data.Check(ctx)
	if usable != nil {
		found = append(found, finding{Check: "engines", Status: findProblem, Found: "not all can be used from here", Why: usable.Error(),
			Help: "A process with these settings would not start."})
	} else {
		found = append(found, fine("engines", "table, queues and bucket can be used from here"))
		found = append(found, c.tickFindings(ctx, data.Store)...)
	}
	cfg, err := tableConfig(ctx, e.engines.store)
	if err != nil {
		return nil, err
	}
	if table, err := dynamo.Describe(ctx, cfg); err == nil {
		found = append(found, tableFindings(table)...)
	} else if usable == nil {
		found = append(found, finding{Check: "table", Status: findAttention, Found: err.Error(), Why: "How the table is set up is not known here. The work does not need to know it."})
	}
	var setups []finding
	for _, pool := range pools {
		cfg, err := pool.Queues(ctx, e.engines.queues, newID)
		if err != nil {
			return nil, err
		}
		queues, err := sqs.Describe(ctx, cfg)
		if err != nil {
			return nil, err
		}
		for _, q := range queues {
			if q.Err == nil || usable == nil {
				setups = append(setups, setupFinding(q))
			}
		}
	}
	return append(found, together(setups)...), nil
}

// tickless is how long nobody may have ticked: a schedule comes each minute, and may be a minute late.
const tickless = 3 * time.Minute

// tickFindings say whether somebody ticks, and whether this host's clock is right.
func (c *cli) tickFindings(ctx context.Context, from store.Store) []finding {
	failed := func(err error) []finding {
		return []finding{{Check: "ticks", Status: findProblem, Found: err.Error()}}
	}
	layout, err := timer.ReadLayout(ctx, from)
	if err != nil {
		return failed(err)
	}
	if layout.Shards == 0 {
		return []finding{{Check: "ticks", Status: findAttention, Found: "nobody has ever worked on this table",
			Why: "It is empty. The first process sets it up.", Help: "Start a server or a tick, or deploy the stack."}}
	}
	keys := make([]store.Key, layout.Shards)
	for n := range keys {
		keys[n] = timer.ShardKey(n)
	}
	items, err := from.Get(ctx, keys...)
	if err != nil {
		return failed(err)
	}
	var oldest time.Time
	for n, item := range items {
		shard, err := timer.ShardFromItem(n, item)
		if err != nil {
			return failed(err)
		}
		if at := time.UnixMilli(max(shard.Passed, 0)); n == 0 || at.Before(oldest) {
			oldest = at
		}
	}
	skew := from.Skew()
	since := c.now().Add(skew).Sub(oldest).Round(time.Second)
	ticks := fine("ticks", "each of %s was looked at in the last %s", countOf(layout.Shards, "shard"), since)
	if since > tickless {
		found := fmt.Sprintf("nobody has looked at a shard since %s", clock(oldest))
		if oldest.UnixMilli() == 0 {
			found = "nobody has looked at a shard yet"
		}
		ticks = finding{Check: "ticks", Status: findProblem, Found: found, Why: "Nothing fires while nobody ticks.", Help: "Start a server or \"belfry tick\", or look at the log of the tick function and at its schedule."}
	}
	return []finding{ticks, clockFinding(skew)}
}
