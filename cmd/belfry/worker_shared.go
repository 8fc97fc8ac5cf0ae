package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// workOn works on the queues of a shared store, without a server, until a signal or ctx ends it.
func (c *cli) workOn(ctx context.Context, s workerSettings) (err error) {
	began := time.Now()
	pools, err := readPools(s.queues)
	if err != nil {
		return err
	}
	o, err := s.engines.beside(ctx, c.stderr, pools, s.log, s.trace, s.scrape)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	receives, err := s.engines.receives(ctx, pools)
	if err != nil {
		return err
	}
	_, secrets, err := s.secrets.open(o.data.Store, o.log)
	if err != nil {
		return err
	}
	callAWS, err := s.aws.open(ctx)
	if err != nil {
		return err
	}
	calls := target.Config{Now: time.Now, AllowExec: s.allowExec, BaseEnv: os.Environ(), Addresses: s.addresses, AWS: callAWS, ARNs: s.aws,
		Secrets: secrets, UserAgent: "Belfry/" + thisBuild().Version}
	s.mail.add(&calls, o.log)
	targets, err := target.New(calls)
	if err != nil {
		return err
	}
	defer targets.Close()
	n, err := o.data.Node(ctx, node.Config{Targets: targets, Elapsed: func() time.Duration { return time.Since(began) }, Name: workerName(s.name),
		Lease: s.lease, Callbacks: s.callbacks.read(), Concurrency: s.concurrency, Grace: graceOf(s.grace), Serves: s.queues, NoTicks: true, MaxReceives: receives, Secrets: secrets, Tracer: o.tracer})
	if err != nil {
		return err
	}
	return c.untilStopped(ctx, o.log, targets, s.grace, func() error { return c.greetShared(n.Name, s) }, n.Run)
}

func (c *cli) greetShared(name string, s workerSettings) error {
	if c.structured() {
		return c.print(map[string]any{"worker": name, "store": s.engines.store, "queue": s.engines.queues, "blob": s.engines.blob, "queues": s.queues, "version": thisBuild().Version})
	}
	_, err := fmt.Fprintf(c.stdout, "Belfry %s is ready to work.\n  worker   %s\n%s  works on %s\n", thisBuild().Version, name, s.engines.shown(), strings.Join(s.queues, ", "))
	return err
}
