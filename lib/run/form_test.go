package run_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/record/recordtest"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

func TestARunIsWrittenAsItsTagsSay(t *testing.T) {
	recordtest.Run(t, (*run.Run).WriteFields, (*run.Run).ReadFields)
}

func TestAMessageIsWrittenAsItsTagsSay(t *testing.T) {
	recordtest.Run(t, run.WriteMessage, run.ReadMessage)
}

// ordinary is a run as most are when they are finished.
func ordinary() run.Run {
	return run.Run{ID: run.RequestID("report", 1_800_000_000_000, 99), Tenant: "default", Version: 3, State: run.Succeeded, Generation: 1_795_251_600_123,
		Trigger: run.ByRequest, Priority: queue.Normal, Epoch: 7, Created: 1_800_000_000_000, Started: 1_800_000_000_100, Ended: 1_800_000_000_200, Attempt: 1,
		Fence: 2, Expires: 1_800_600_000_000, Attempts: []run.Attempt{{Number: 1, Started: 1_800_000_000_100, Ended: 1_800_000_000_200, Outcome: run.OutcomeSucceeded}}}
}

// BenchmarkRecord shows what writing and reading a run's record costs by hand, and by the tags of its struct.
func BenchmarkRecord(b *testing.B) {
	r := ordinary()
	op, err := r.Item(1)
	if err != nil {
		b.Fatal(err)
	}
	item := store.Item{Key: op.Key, Version: 3, Value: op.Value}
	b.Run("write/hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := record.Write(r.Size())
			r.WriteFields(&w)
			_ = w.Stored()
		}
	})
	b.Run("write/tags", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := record.Encode(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write/item", func(b *testing.B) { // with its key
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Item(1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read/hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := run.FromItem("default", r.ID, item); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read/tags", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var back run.Run
			if err := record.Decode(item.Value, &back); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMessage shows the same of a run's message, with the run's ID.
func BenchmarkMessage(b *testing.B) {
	m := run.Message{Run: ordinary(), Sent: 1_800_000_000_000}
	m.Run.State, m.Run.Ended, m.Run.Attempts = run.Queued, 0, nil
	body, err := m.Encode()
	if err != nil {
		b.Fatal(err)
	}
	var w run.WireMessage
	if err := record.Decode(body, &w); err != nil {
		b.Fatal(err)
	}
	b.Run("write/hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write/tags", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.ID = m.Run.ID.String()
			if _, err := record.Encode(w); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read/hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := run.DecodeMessage(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read/tags", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var w run.WireMessage
			if err := record.Decode(body, &w); err != nil {
				b.Fatal(err)
			}
			if _, err := run.ParseID(w.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkID(b *testing.B) {
	id := run.RequestID("report", 1_800_000_000_000, 99)
	text := id.String()
	b.Run("String", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = id.String()
		}
	})
	b.Run("Parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := run.ParseID(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = id.Key("default")
		}
	})
}
