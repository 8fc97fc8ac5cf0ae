package node_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// TestP2_P4_TimersGoWhenTheyAreReadAndNotBefore: where expiry goes by the sweeps, timers are few, and a downtime longer than
// they are kept takes none that nobody has read.
func TestP2_P4_TimersGoWhenTheyAreReadAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Pointer[node.Node]
		s := memory.New(memory.Config{Now: func() time.Time { // as the program has it
			if n := n.Load(); n != nil {
				return n.Swept()
			}
			return time.Unix(0, 0)
		}})
		bucket := memblob.OpenBucket(nil)
		f := func(context.Context, *life, target.Call) (target.Result, error) { return target.Result{}, nil }
		swift := func(c *node.Config) {
			c.Every, c.LookAhead, c.CleansBySwept = 10*time.Minute, 14*time.Minute, true
		}
		timers := func() (count int) {
			if err := s.Export(t.Context(), func(item store.Item) error {
				if strings.HasPrefix(item.Partition, "due#") {
					count++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return count
		}
		l := begin(t, "first", s, bucket, f, swift)
		n.Store(l.Node)
		first := time.Now()
		l.put("often", time.Minute)
		l.put("hourly", time.Hour, func(d *job.Definition) { d.CatchUp.Mode = job.CatchUpAll })
		time.Sleep(8 * time.Hour)
		if n := timers(); n == 0 || n > 200 {
			t.Errorf("%d timers after eight hours, want those of some two hours", n)
		}
		l.stop()
		time.Sleep(12 * time.Hour)
		l = begin(t, "second", s, bucket, f, swift)
		n.Store(l.Node)
		time.Sleep(4*time.Hour + time.Minute)
		fires := map[int64]run.State{}
		for _, r := range l.runs("hourly") {
			fires[r.ID.Nominal] = r.State
		}
		for at := first.Truncate(time.Hour).Add(time.Hour); at.Before(time.Now().Add(-10 * time.Minute)); at = at.Add(time.Hour) {
			if fires[at.UnixMilli()] != run.Succeeded {
				t.Errorf("the fire of %s is %s", at, fires[at.UnixMilli()])
			}
		}
		if n := timers(); n > 300 {
			t.Errorf("%d timers after the downtime", n)
		}
		l.stop()
	})
}
