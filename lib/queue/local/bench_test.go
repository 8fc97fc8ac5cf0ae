package local_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
)

// BenchmarkThroughBatches is the life of a message: sent, received and deleted, ten at a time.
func BenchmarkThroughBatches(b *testing.B) {
	q := local.New(local.Config{})
	batch := make([]queue.Outgoing, queue.MaxBatch)
	for i := range batch {
		batch[i] = queue.Outgoing{Body: make([]byte, 120), Group: "default"}
	}
	b.ReportAllocs()
	for b.Loop() {
		send(b, q, queue.Normal, batch...)
		if _, err := q.Delete(b.Context(), receive(b, q, queue.MaxBatch, 0, time.Minute)...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*queue.MaxBatch)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkSendDelayed fills a queue with a million delayed messages.
func BenchmarkSendDelayed(b *testing.B) {
	for b.Loop() {
		q := local.New(local.Config{Capacity: 1_000_000, Bytes: 1 << 30})
		batch := make([]queue.Outgoing, queue.MaxBatch)
		for i := range 100_000 {
			for j := range batch {
				batch[j] = queue.Outgoing{Body: make([]byte, 100), Delay: time.Duration((i*7919+j)%900_000+1) * time.Millisecond}
			}
			send(b, q, queue.Normal, batch...)
		}
	}
	b.ReportMetric(float64(b.N*1_000_000)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkLateness is how late an idle receiver gets a message delayed by 20 ms.
func BenchmarkLateness(b *testing.B) {
	q := local.New(local.Config{})
	var late []time.Duration
	for b.Loop() {
		due := time.Now().Add(20 * time.Millisecond)
		send(b, q, queue.Normal, queue.Outgoing{Body: []byte("x"), Delay: 20 * time.Millisecond})
		got := receive(b, q, 1, time.Second, time.Minute)
		late = append(late, time.Since(due))
		if _, err := q.Delete(b.Context(), got...); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs-late")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs-late")
}

// BenchmarkPeek is a look at one's own hundreds of messages beside a million of another group, and at a million of one's own. The lock is held for
// about as long.
func BenchmarkPeek(b *testing.B) {
	q := local.New(local.Config{Capacity: 1_000_000, Bytes: 1 << 30})
	fill := func(group string, batches int) {
		batch := make([]queue.Outgoing, queue.MaxBatch)
		for i := range batches {
			for j := range batch {
				batch[j] = queue.Outgoing{Body: make([]byte, 120), Group: group, Delay: time.Duration((i*7919+j)%800_000) * time.Millisecond}
			}
			send(b, q, queue.Priorities[i%3], batch...)
		}
	}
	fill("theirs", 100_000)
	fill("ours", 50)
	for _, group := range []string{"ours", "theirs"} {
		b.Run(group, func(b *testing.B) {
			for b.Loop() {
				look(b, q, group, queue.MaxLook)
			}
		})
	}
}
