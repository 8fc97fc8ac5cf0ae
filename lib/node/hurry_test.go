package node_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// The owner of a node that drains has run out of time: what still runs is handed back at once, whatever the grace.
func TestHurryEndsTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		hurry := make(chan struct{})
		l := begin(t, "life", memory.New(memory.Config{}), memblob.OpenBucket(nil), func(ctx context.Context, _ *life, _ target.Call) (target.Result, error) {
			close(started)
			<-ctx.Done()
			return target.Result{}, ctx.Err()
		}, func(c *node.Config) { c.Grace, c.Hurry = time.Hour, hurry })
		l.put("long", 0, func(d *job.Definition) { d.Timeout = schedule.Duration(2 * time.Hour) })
		if _, _, err := l.Control.Trigger(t.Context(), "default", "long", control.Request{}); err != nil {
			t.Fatal(err)
		}
		<-started
		began := time.Now()
		time.AfterFunc(3*time.Second, func() { close(hurry) })
		l.stop()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("stopped after %s, want the 3s that its owner had", took)
		}
		if r := l.runs("long")[0]; r.State != run.Queued || r.Failures+r.Crashes != 0 {
			t.Errorf("the run is %s, with %d failures and %d crashes", r.State, r.Failures, r.Crashes)
		}
	})
}
