package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// poolFlags are the queues of a server beside the default one.
type poolFlags struct {
	here      []string
	elsewhere []string
}

func (p *poolFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&p.here, "queue", nil, "`QUEUE` whose runs this process works on, beside default; may be given more than once")
	f.StringArrayVar(&p.elsewhere, "remote-queue", nil, "`QUEUE` whose runs only \"belfry worker\" processes work on, or QUEUE=TENANT where it is not the tenant default's; may be given more than once")
}

// mostPools bounds the queues of a process: each may hold a great many messages.
const mostPools = 100

// open makes the queues, and tells of those served elsewhere whose runs they have.
func (p *poolFlags) open() (queues map[string]queue.Queue, elsewhere map[string]string, err error) {
	queues, elsewhere = map[string]queue.Queue{}, map[string]string{}
	add := func(flag, name string) error {
		switch {
		case job.ValidName(name) != nil:
			return misused("%s %q: want a name of 1 to 128 letters, digits, dots, underscores or hyphens", flag, name)
		case queues[name] != nil:
			return misused("%s %s: the queue was named before; want each once, and only one of --queue and --remote-queue for it", flag, name)
		}
		queues[name] = queuelocal.New(queuelocal.Config{})
		return nil
	}
	for _, text := range p.elsewhere {
		name, tenant, given := strings.Cut(text, "=")
		if !given {
			tenant = access.DefaultTenant
		}
		if err := access.ValidTenant(tenant); err != nil {
			return nil, nil, misused("--remote-queue %q: want NAME or NAME=TENANT; %w", text, err)
		}
		if err := add("--remote-queue", name); err != nil {
			return nil, nil, err
		}
		elsewhere[name] = tenant
	}
	for _, name := range p.here {
		if name == job.DefaultQueue && elsewhere[name] == "" {
			continue // it is there anyway
		}
		if err := add("--queue", name); err != nil {
			return nil, nil, err
		}
	}
	if queues[job.DefaultQueue] == nil {
		if err := add("--queue", job.DefaultQueue); err != nil {
			return nil, nil, err
		}
	}
	if len(queues) > mostPools {
		return nil, nil, misused("%d queues: want at most %d", len(queues), mostPools)
	}
	return queues, elsewhere, nil
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
		shown[i] = wire.Queue{Name: pool.Name, Priorities: map[string]wire.Depth{}, Workers: 1}
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
		if pool.Owner == "" {
			shown = append(shown, wire.Worker{ID: p.node.Name, Queue: pool.Name, Running: pool.Running, Concurrency: pool.Concurrency, StartedAt: p.began.UTC()})
		}
	}
	for _, w := range p.node.Remote.Workers(tenant) {
		shown = append(shown, wire.Worker{ID: w.Worker, Queue: w.Queue, Running: w.Running, Concurrency: w.Concurrency, StartedAt: w.First.UTC(),
			Remote: true, SeenAt: w.Last.UTC(), Handlers: w.Handlers, Labels: w.Labels})
	}
	return shown, nil
}
