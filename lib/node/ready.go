package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Check is what was found of one thing that a node needs.
type Check struct {
	Name      string
	Err       error // nil where it works
	Attention bool  // it works, and somebody should look
	Detail    string
}

// checkTime bounds each look: who asks whether a node is ready wants to know within seconds.
const checkTime = 2 * time.Second

// Ready tells whether the node does its work: nil, or what is wrong.
func (n *Node) Ready(ctx context.Context) error {
	var errs []error
	for _, c := range n.Checks(ctx) {
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, c.Err))
		}
	}
	return errors.Join(errs...)
}

// Checks looks at all that the node needs: its clock, the store, ticks, queues and workers. Anybody may ask, so it names no
// queue, and no number of what is queued or running.
func (n *Node) Checks(ctx context.Context) []Check {
	checks := []Check{n.clockCheck(), n.storeCheck(ctx)}
	if n.Damaged != nil {
		checks = append(checks, n.dataCheck())
	}
	if !n.NoTicks {
		checks = append(checks, n.tickCheck())
	}
	return append(checks, n.queueCheck(ctx), n.workerCheck())
}

func (n *Node) clockCheck() Check {
	c := Check{Name: "clock"}
	if _, c.Err = n.Dispatch.Clock(); c.Err == nil {
		c.Detail = fmt.Sprintf("%s from the store's, of at most %s", n.Store.Skew().Abs().Round(time.Millisecond), dispatch.MaxSkew)
	}
	return c
}

func (n *Node) storeCheck(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c := Check{Name: "store"}
	asked := n.Elapsed()
	if _, err := n.Store.Get(ctx, timer.LayoutKey); err != nil {
		c.Err = fmt.Errorf("it does not answer: %w", err)
		return c
	}
	c.Detail = "answered after " + (n.Elapsed() - asked).Round(time.Microsecond).String()
	return c
}

// mostNamed is how many damaged files a check names.
const mostNamed = 10

// dataCheck tells of damage that any read has met since the start: other reads may do well, and what is damaged stays so.
func (n *Node) dataCheck() Check {
	found := n.Damaged()
	if len(found) == 0 {
		return Check{Name: "data", Detail: "no damage was met since the start"}
	}
	more := ""
	if len(found) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(found)-mostNamed)
		found = found[:mostNamed]
	}
	return Check{Name: "data", Err: fmt.Errorf("damaged: %s%s. What lies there cannot be read; \"belfry doctor --data DIR\" on the server's host "+
		"says what that is, \"belfry restore\" brings back a backup", strings.Join(found, ", "), more)}
}

// tickCheck stands for the disk as well: a tick that succeeded has written to the store and seen it synced.
func (n *Node) tickCheck() Check {
	age := max(0, n.Now().Sub(time.UnixMilli(n.lastOK.Load()))).Round(time.Millisecond)
	if age > 10*n.Every+n.LookAhead {
		return Check{Name: "ticks", Err: fmt.Errorf("none has succeeded for %s", age.Round(time.Second))}
	}
	return Check{Name: "ticks", Detail: fmt.Sprintf("the last one wrote to the store %s ago", age)}
}

func (n *Node) queueCheck(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c := Check{Name: "queues", Detail: "take messages"}
	for _, name := range slices.Sorted(maps.Keys(n.Queues)) {
		if _, err := n.Queues[name].Depth(ctx); err != nil {
			c.Err = errors.Join(c.Err, fmt.Errorf("one does not answer: %w", err))
		} else if _, full := n.Dispatch.Full(name); full {
			c.Attention, c.Detail = true, "one is full: requests for runs of its jobs are refused until some of what waits has run"
		}
	}
	return c
}

func (n *Node) workerCheck() Check {
	c := Check{Name: "workers", Detail: "have room"}
	for _, w := range n.workers {
		if w.Running() >= w.Concurrency {
			c.Detail = "all places of a queue are taken"
		}
	}
	if len(n.workers) == 0 {
		c.Detail = "are elsewhere"
	}
	return c
}
