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
