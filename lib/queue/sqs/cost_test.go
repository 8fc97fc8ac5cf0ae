package sqs_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// The figures of docs/queue.md: go test ./lib/queue/sqs -run Cost -v
func TestCostOfAnIdlePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pool()
		s.latency = 10 * time.Millisecond
		q := over(t, s)
		for start := time.Now(); time.Since(start) < time.Hour; {
			if got, err := q.Receive(t.Context(), queue.MaxBatch, queue.MaxWait, time.Minute); err != nil || len(got) > 0 {
				t.Fatalf("received %v, %v", got, err)
			}
		}
		asked := s.requests("ReceiveMessage")
		t.Logf("an idle pool with one worker process makes %d requests an hour, %d in 30 days", asked, asked*24*30)
		if asked < 3*175 || asked > 3*181 {
			t.Errorf("%d requests in an hour, want about 540", asked)
		}
		q.Close()
	})
}

// A server looks at its queues each few seconds.
func TestCostOfLooking(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		for start := time.Now(); time.Since(start) < time.Hour; time.Sleep(5 * time.Second) {
			depth, err := q.Depth(t.Context())
			if err != nil || len(depth) != 3 {
				t.Fatal(depth, err)
			}
			clear(depth) // the caller's own
		}
		asked := s.requests("GetQueueAttributes")
		t.Logf("to tell the depth of a pool costs %d requests an hour, %d in 30 days", asked, asked*24*30)
		if asked > 3*181 {
			t.Errorf("%d requests in an hour, want about 540", asked)
		}
		send(t, q, queue.High, "new")
		time.Sleep(30 * time.Second)
		if depth, err := q.Depth(t.Context()); err != nil || depth[queue.High].Ready != 1 {
			t.Errorf("half a minute later the depth is %v, %v", depth, err)
		}
	})
}

// At most 0.4 requests a run with full batches, though a worker settles each run by itself. One that has few places left takes
// fewer at once.
func TestCostOfARun(t *testing.T) {
	t.Run("worker_with_room", func(t *testing.T) { costOfRuns(t, 100, 0.4) })
	t.Run("worker_at_its_limit", func(t *testing.T) { costOfRuns(t, 50, 0.5) })
}

func costOfRuns(t *testing.T, atOnce int, budget float64) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 2000
		s := pool()
		s.latency = 10 * time.Millisecond
		q := over(t, s)
		for i := range runs / queue.MaxBatch {
			batch := make([]queue.Outgoing, queue.MaxBatch)
			for j := range batch {
				batch[j] = queue.Outgoing{Body: fmt.Appendf(nil, "%d", i*queue.MaxBatch+j), Group: "default"}
			}
			if errs, err := q.Send(t.Context(), queue.Priorities[i%3], batch...); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		slots := make(chan struct{}, atOnce)
		var under sync.WaitGroup
		for taken := 0; taken < runs; {
			slots <- struct{}{}
			<-slots
			got, err := q.Receive(t.Context(), min(queue.MaxBatch, atOnce-len(slots)), queue.MaxWait, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			taken += len(got)
			for _, m := range got {
				slots <- struct{}{}
				under.Go(func() {
					defer func() { <-slots }()
					time.Sleep(100 * time.Millisecond)
					if errs, err := q.Delete(t.Context(), m); err != nil || errs[0] != nil {
						t.Error(errs, err)
					}
				})
			}
		}
		under.Wait()
		q.Close()
		all := 0
		for _, operation := range []string{"GetQueueUrl", "SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"} {
			all += s.requests(operation)
			t.Logf("%-28s %4d for %d runs", operation, s.requests(operation), runs)
		}
		each := float64(all) / runs
		t.Logf("%.2f requests a run", each)
		if each > budget {
			t.Errorf("want %v at most", budget)
		}
	})
}

// While high never ends, normal and low keep their floors, and high its place.
func TestFloors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pool()
		s.latency = 10 * time.Millisecond
		q := over(t, s)
		for _, p := range queue.Priorities {
			for range 200 {
				batch := make([]queue.Outgoing, queue.MaxBatch)
				for j := range batch {
					batch[j].Body = []byte("x")
				}
				if _, err := q.Send(t.Context(), p, batch...); err != nil {
					t.Fatal(err)
				}
			}
		}
		taken := map[queue.Priority]int{}
		for range 160 {
			got, err := q.Receive(t.Context(), queue.MaxBatch, queue.MaxWait, time.Hour)
			if err != nil || len(got) == 0 {
				t.Fatal(got, err)
			}
			for _, m := range got {
				taken[m.Priority]++
			}
		}
		t.Logf("of 1600 messages: %v", taken)
		if taken[queue.Low] < 80 || taken[queue.Normal] < 200 || taken[queue.High] < 1000 {
			t.Errorf("taken %v, want at least 80 of low, 200 of normal and 1000 of high", taken)
		}
		q.Close()
	})
}
