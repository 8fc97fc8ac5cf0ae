package node_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// TestP2_P5_P7_Fault01_Fault02_ABadStore has a store that throttles, loses answers, and writes late, for minutes. Afterwards each
// fire has one run, which has ended; nothing at most once was called twice, and no run is dead for what the store did.
func TestP2_P5_P7_Fault01_Fault02_ABadStore(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				random := rand.New(rand.NewPCG(seed, 45))
				var bad atomic.Bool
				s := faulty.New(memory.New(memory.Config{}), func(_ context.Context, c faulty.Call) faulty.Fault {
					mu.Lock()
					defer mu.Unlock()
					if !bad.Load() || random.IntN(100) >= 30 {
						return faulty.Fault{}
					}
					if c.Method != faulty.Write && c.Method != faulty.WriteEach {
						if random.IntN(30) == 0 { // a pass reads hundreds of times
							return faulty.Fault{Refuse: store.ErrThrottled}
						}
						return faulty.Fault{}
					}
					switch random.IntN(4) {
					case 0:
						return faulty.Fault{Refuse: store.ErrThrottled}
					case 1:
						return faulty.Fault{Refuse: store.ErrUnknown}
					case 2:
						late := make(chan struct{})
						time.AfterFunc(time.Duration(random.IntN(60_000))*time.Millisecond, func() { close(late) })
						return faulty.Fault{Late: late}
					}
					return faulty.Fault{Lose: store.ErrUnknown}
				})
				calls := map[string]int{}
				l := begin(t, "life", s, memblob.OpenBucket(nil), func(ctx context.Context, _ *life, call target.Call) (target.Result, error) {
					mu.Lock()
					calls[call.Run]++
					wait := time.Duration(random.IntN(3000)) * time.Millisecond
					mu.Unlock()
					select {
					case <-time.After(wait):
					case <-ctx.Done():
					}
					return target.Result{}, ctx.Err()
				})
				l.put("most", 2*time.Second, atMostOnce)
				l.put("least", 2*time.Second)
				first := time.Now()
				bad.Store(true)
				time.Sleep(3 * time.Minute)
				bad.Store(false)
				last := time.Now()
				time.Sleep(40 * time.Minute)
				for _, name := range []string{"most", "least"} {
					seen := map[int64]bool{}
					for _, r := range l.runs(name) {
						seen[r.ID.Nominal] = true
						if r.ID.Time().After(last) {
							continue
						}
						switch {
						case r.State == run.Succeeded:
						case r.State == run.Unknown && name == "most":
						default:
							t.Errorf("%s is %s (%s): %+v", r.ID, r.State, r.Reason, r.Attempts)
						}
						mu.Lock()
						if n := calls[r.ID.String()]; name == "most" && n > 1 {
							t.Errorf("%s was called %d times", r.ID, n)
						}
						mu.Unlock()
					}
					for at := first.Truncate(2 * time.Second).Add(2 * time.Second); at.Before(last); at = at.Add(2 * time.Second) {
						if !seen[at.UnixMilli()] {
							t.Errorf("%s has no run for %s", name, at)
						}
					}
				}
				l.stop()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
