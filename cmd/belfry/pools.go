package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// poolFlags are the queues of a server beside the default one.
type poolFlags struct {
	here      []string
	elsewhere []string
}

func (p *poolFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&p.here, "queue", nil, "`QUEUE` beside default, or QUEUE=LONGEST where its workers run no longer timeout, as in gpu=6h; more than once or with commas for several")
	called(f, "queue", "BELFRY_QUEUES")
	f.StringSliceVar(&p.elsewhere, "remote-queue", nil, "`QUEUE` whose runs only \"belfry worker\" processes work on, or QUEUE=TENANT where it is not the tenant default's; more than once or with commas for several")
}

// mostPools bounds the queues of a process: each may hold a great many messages.
const mostPools = 100

// read gives the queues, and tells of those served elsewhere whose runs they have.
func (p *poolFlags) read() (pools []cloud.Pool, elsewhere map[string]string, err error) {
	elsewhere = map[string]string{}
	add := func(flag string, pool cloud.Pool) error {
		if slices.ContainsFunc(pools, func(other cloud.Pool) bool { return other.Name == pool.Name }) {
			return misused("%s %s: the queue was named before; want each once, and only one of --queue and --remote-queue for it", flag, pool.Name)
		}
		pools = append(pools, pool)
		return nil
	}
	for _, text := range p.elsewhere {
		name, tenant, given := strings.Cut(text, "=")
		if !given {
			tenant = access.DefaultTenant
		}
		if job.ValidName(name) != nil {
			return nil, nil, misused("--remote-queue %q: want a name of 1 to 128 letters, digits, dots, underscores or hyphens", name)
		}
		if err := access.ValidTenant(tenant); err != nil {
			return nil, nil, misused("--remote-queue %q: want NAME or NAME=TENANT; %w", text, err)
		}
		if err := add("--remote-queue", cloud.Pool{Name: name}); err != nil {
			return nil, nil, err
		}
		elsewhere[name] = tenant
	}
	here, err := readPools(p.here)
	if err != nil {
		return nil, nil, err
	}
	for _, pool := range here {
		if err := add("--queue", pool); err != nil {
			return nil, nil, err
		}
	}
	if !slices.ContainsFunc(pools, func(pool cloud.Pool) bool { return pool.Name == job.DefaultQueue }) {
		pools = append(pools, cloud.Pool{Name: job.DefaultQueue})
	}
	if len(pools) > mostPools {
		return nil, nil, misused("%d queues: want at most %d", len(pools), mostPools)
	}
	return pools, elsewhere, nil
}

// readPools reads the values of --queue.
func readPools(texts []string) ([]cloud.Pool, error) {
	var pools []cloud.Pool
	for _, text := range texts {
		name, _, _ := strings.Cut(text, "=")
		if job.ValidName(name) != nil {
			return nil, misused("--queue %q: want a name of 1 to 128 letters, digits, dots, underscores or hyphens", name)
		}
		pool, err := cloud.ParsePool(text)
		if err != nil {
			return nil, misused("--queue %q: want NAME, or NAME=LONGEST with a timeout from 1s to %s, as in gpu=6h", text, schedule.Duration(job.MaxTimeout))
		}
		pools = append(pools, pool)
	}
	return pools, nil
}

// pools are those that a tenant may see, by name. Those on which this process works itself have runs of all tenants, and how many
// is only for the tenant whose the server is.
func (p *process) pools(ctx context.Context, tenant string) ([]node.Pool, error) {
	pools, err := p.node.Pools(ctx)
	slices.SortFunc(pools, func(a, b node.Pool) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(pools, func(pool node.Pool) bool { return cmp.Or(pool.Owner, defaultTenant) != tenant }), err
}

// waiting is what waits for workers, by pool.
func (p *process) waiting(ctx context.Context, tenant string) ([]wire.Queue, error) {
	pools, err := p.pools(ctx, tenant)
	if err != nil {
		return nil, err
	}
	elsewhere := map[string]int{}
	for _, w := range p.node.Remote.Workers(tenant) {
		elsewhere[w.Queue]++
	}
	shown := make([]wire.Queue, len(pools))
	for i, pool := range pools {
		shown[i] = wire.Queue{Name: pool.Name, Priorities: map[string]wire.Depth{}, Shared: p.node.Shared, Workers: min(1, pool.Concurrency)}
		if pool.Owner != "" {
			shown[i].Remote, shown[i].Workers = true, elsewhere[pool.Name]
			shown[i].Lacking = p.node.Remote.Lacking(tenant, pool.Name)
		}
		for priority, d := range pool.Depth {
			shown[i].Priorities[string(priority)] = wire.Depth{Ready: d.Ready, Delayed: d.Delayed, Taken: d.Taken}
		}
	}
	return shown, nil
}

// workers are those of this process, and the tenant's in others.
func (p *process) workers(ctx context.Context, tenant string) ([]wire.Worker, error) {
	pools, err := p.pools(ctx, tenant)
	if err != nil {
		return nil, err
	}
	shown := []wire.Worker{}
	for _, pool := range pools {
		if pool.Concurrency > 0 {
			shown = append(shown, wire.Worker{ID: p.node.Name, Queue: pool.Name, Running: pool.Running, Concurrency: pool.Concurrency, StartedAt: p.began.UTC()})
		}
	}
	for _, w := range p.node.Remote.Workers(tenant) {
		shown = append(shown, wire.Worker{ID: w.Worker, Queue: w.Queue, Running: w.Running, Concurrency: w.Concurrency, StartedAt: w.First.UTC(),
			Remote: true, SeenAt: w.Last.UTC(), Handlers: w.Handlers, Labels: w.Labels})
	}
	return shown, nil
}
