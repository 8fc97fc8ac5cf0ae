package node_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A server that makes up for missed fires is stopped and started again, twice and for some time. Never do more than the rate start in a second, but
// for what is due within the second of its return; each job starts once, and those of one job come a second apart, the oldest first.
func TestP2_P11_Fault17_ServerAwayAgainWhileFiresAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const herd, rate = 40, 2
		mem, bucket := vfs.NewMem(), memblob.OpenBucket(nil)
		var mu sync.Mutex
		var started []time.Time
		calls := map[string]int{}
		var all []time.Time // of the job that catches up in full: what it starts for
		f := func(_ context.Context, _ *life, call target.Call) (target.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, time.Now())
			calls[call.Run]++
			if call.Job == "all" {
				all = append(all, call.Nominal)
			}
			return target.Result{}, nil
		}
		slow := func(c *node.Config) { c.CatchUpRate = rate }
		s := openPebble(t, mem)
		l := begin(t, "life-0", s, bucket, f, slow)
		end := time.Now().Add(25 * time.Minute)
		for n := range herd {
			l.put(fmt.Sprintf("job-%d", n), 20*time.Minute, func(d *job.Definition) { d.Schedule.End = &end })
		}
		l.put("all", 2*time.Minute, func(d *job.Definition) { d.Schedule.End, d.CatchUp.Mode = &end, job.CatchUpAll })
		time.Sleep(time.Second)
		restart := func(name string, away time.Duration) {
			l.die(func() {})
			l.stop()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(away)
			s = openPebble(t, mem)
			l = begin(t, name, s, bucket, f, slow)
		}
		restart("life-1", 31*time.Minute)
		time.Sleep(4 * time.Second)
		restart("life-2", 15*time.Second)
		time.Sleep(5 * time.Second)
		restart("life-3", 20*time.Minute)
		time.Sleep(3 * time.Minute)
		l.stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(calls) != herd+12 {
			t.Errorf("%d runs have started, want %d", len(calls), herd+12)
		}
		for id, n := range calls {
			if n != 1 {
				t.Errorf("%s started %d times", id, n)
			}
		}
		for i := range started {
			if n := 2*rate + 1; i+n < len(started) && started[i+n].Sub(started[i]) < time.Second {
				t.Errorf("%d started within %s", n+1, started[i+n].Sub(started[i]))
			}
		}
		if !slices.IsSortedFunc(all, time.Time.Compare) {
			t.Errorf("the job that catches up in full started for %v", all)
		}
	})
}
