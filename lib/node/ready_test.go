package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

// mute is a queue that tells nothing of itself while it is told so.
type mute struct {
	queue.Queue
	silent atomic.Bool
}

func (m *mute) Depth(ctx context.Context) (map[queue.Priority]queue.Depth, error) {
	if m.silent.Load() {
		return nil, errors.New("connection refused")
	}
	return m.Queue.Depth(ctx)
}

func TestChecksTellWhichPartFailsAndNameNobodysQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		s := faulty.New(memory.New(memory.Config{}), func(_ context.Context, c faulty.Call) faulty.Fault {
			if broken.Load() {
				return faulty.Fault{Refuse: store.ErrThrottled}
			}
			return faulty.Fault{}
		})
		payroll := &mute{Queue: queuelocal.New(queuelocal.Config{Now: time.Now})}
		l := begin(t, "life", s, memblob.OpenBucket(nil), nil, func(cfg *node.Config) { cfg.Queues["payroll"] = payroll })
		synctest.Wait()
		failing := func() []string {
			t.Helper()
			var names []string
			for _, c := range l.Checks(t.Context()) {
				if c.Err != nil {
					names = append(names, c.Name)
				} else if c.Detail == "" {
					t.Errorf("%s does not say what was found", c.Name)
				}
				if text := fmt.Sprint(c); strings.Contains(text, "payroll") {
					t.Errorf("%s names a queue", text)
				}
			}
			return names
		}
		want := func(when string, names ...string) {
			t.Helper()
			if got := failing(); !slices.Equal(got, names) {
				t.Errorf("%s: failing %v, want %v", when, got, names)
			}
		}
		want("all is well")
		payroll.silent.Store(true)
		want("a queue that does not answer", "queues")
		payroll.silent.Store(false)
		broken.Store(true)
		want("a store that refuses, at once", "store")
		time.Sleep(time.Minute)
		want("a store that refuses for a minute", "store", "ticks")
		broken.Store(false)
		time.Sleep(time.Minute)
		want("all is well again")
		l.stop()
	})
}
