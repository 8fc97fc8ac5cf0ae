package backup_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

const benchItems = 200_000

func benchTarget(b *testing.B) backup.Target {
	b.Helper()
	s, err := pebble.Open(pebble.Config{Dir: b.TempDir(), Now: func() time.Time { return time.Unix(0, 0) }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	bucket := blob.New(memblob.OpenBucket(nil))
	b.Cleanup(func() {
		bucket.Close()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return backup.Target{Store: s, Blobs: bucket}
}

// benchSource holds ended runs of 100 jobs.
func benchSource(b *testing.B) backup.Source {
	b.Helper()
	on := benchTarget(b)
	if _, err := timer.Setup(b.Context(), on.Store, 1, taken.UnixMilli(), rand.Uint64); err != nil {
		b.Fatal(err)
	}
	items := make([]store.Item, 0, 1000)
	for i := range benchItems {
		r := run.Run{ID: run.FireID(fmt.Sprintf("job-%02d", i%100), taken.UnixMilli()-int64(i)*1000), Tenant: "default", State: run.Succeeded, Generation: 1,
			Worker: "worker", Result: run.Ref{Inline: fmt.Appendf(nil, "%0180d", i), Type: "text/plain"}, Expires: taken.UnixMilli()}
		op, err := r.Item(uint64(i + 1))
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, store.Item{Key: op.Key, Version: 3, Value: op.Value, Expires: op.Expires, Attempt: op.Attempt})
		if len(items) == cap(items) {
			if err := on.Store.Import(b.Context(), items...); err != nil {
				b.Fatal(err)
			}
			items = items[:0]
		}
	}
	return backup.Source{Store: on.Store, Blobs: on.Blobs, Now: func() time.Time { return taken }}
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(benchItems*b.N)/b.Elapsed().Seconds(), "items/s")
}

func BenchmarkWrite(b *testing.B) {
	from := benchSource(b)
	for b.Loop() {
		if _, _, err := backup.Write(b.Context(), io.Discard, from, nil); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

func BenchmarkRestore(b *testing.B) {
	var text bytes.Buffer
	if _, _, err := backup.Write(b.Context(), &text, benchSource(b), nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		into := benchTarget(b)
		if _, err := backup.Restore(b.Context(), bytes.NewReader(text.Bytes()), into, backup.Options{Now: taken.Add(time.Hour), NewID: rand.Uint64}); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
	b.ReportMetric(float64(text.Len())/benchItems, "bytes/item")
}
