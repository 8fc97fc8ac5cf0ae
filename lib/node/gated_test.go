package node_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// TestG1_G4_ProcessesShareAGate has two processes that work on a job whose runs take longer than its fires are apart. One leaves in the middle of it,
// and comes back under another name.
func TestG1_G4_ProcessesShareAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2
		var mu sync.Mutex
		inside, most := 0, 0
		by := map[string]bool{}
		work := func(ctx context.Context, l *life, _ target.Call) (target.Result, error) {
			mu.Lock()
			inside++
			most = max(most, inside)
			by[l.Name] = true
			mu.Unlock()
			defer func() {
				mu.Lock()
				inside--
				mu.Unlock()
			}()
			select {
			case <-time.After(7 * time.Second):
				return target.Result{}, nil
			case <-ctx.Done():
				return target.Result{}, ctx.Err()
			}
		}
		s, bucket, share := memory.New(memory.Config{}), memblob.OpenBucket(nil), sharing("default")
		one := begin(t, "one", s, bucket, work, share)
		two := begin(t, "two", s, bucket, work, share)
		one.put("often", 2*time.Second, func(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapSkip, Limit: limit} })
		time.Sleep(3 * time.Minute)
		two.stop()
		time.Sleep(time.Minute)
		begin(t, "three", s, bucket, work, share)
		time.Sleep(3 * time.Minute)
		states := map[run.State]int{}
		began := map[string]run.Run{}
		runs := one.runs("often")
		one.stop()
		for _, r := range runs {
			began[r.ID.String()] = r
		}
		now := time.Now().Add(-time.Minute).UnixMilli()
		for _, r := range runs {
			if r.ID.Nominal > now {
				continue
			}
			states[r.State]++
			if r.State != run.Skipped {
				continue
			}
			if r.Why.Gate != "job:often" || r.Why.Policy != "skip" || len(r.Why.InTheWay) != limit {
				t.Errorf("%s was skipped for %+v", r.ID, r.Why)
			}
			for _, id := range r.Why.InTheWay {
				if other := began[id]; other.Started == 0 || other.Started > r.Ended || other.Ended != 0 && other.Ended < r.ID.Nominal {
					t.Errorf("%s was skipped at %d, and %s in its way was in progress from %d to %d", r.ID, r.Ended, id, other.Started, other.Ended)
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if states[run.Succeeded] < 60 || states[run.Skipped] < 60 || states[run.Succeeded]+states[run.Skipped] < 170 || most != limit || len(by) != 3 {
			t.Errorf("%v, %d at once, by %v", states, most, by)
		}
	})
}
