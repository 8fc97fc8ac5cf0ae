package run_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// The trace of a run is in its record and its message, as 29 bytes; a run that nobody traces has none of them.
func TestTheTraceIsInRecordAndMessage(t *testing.T) {
	from, _ := trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	plain := run.Run{ID: run.FireID("report", 1795251600123), Tenant: "acme", Version: 7, State: run.Queued, Generation: 3, Priority: queue.Normal}
	traced := plain
	traced.Trace = from.Context
	size := map[bool]int{}
	for _, r := range []run.Run{plain, traced} {
		op, err := r.Item(1)
		if err != nil {
			t.Fatal(err)
		}
		size[r.Trace.IsZero()] = len(op.Value)
		read, ok, err := run.FromItem("acme", r.ID, store.Item{Key: op.Key, Version: 7, Value: op.Value})
		if err != nil || !ok || read.Trace != r.Trace {
			t.Errorf("read %+v, %v, want the trace %s", read, err, r.Trace)
		}
		body, err := run.Message{Run: r, Sent: 1}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if m, err := run.DecodeMessage(body); err != nil || m.Run.Trace != r.Trace {
			t.Errorf("the message says %+v, %v, want the trace %s", m.Run, err, r.Trace)
		}
		shown, err := record.Explain(op.Value, run.Run{})
		if err != nil || r.Trace.IsZero() && shown["trace"] != nil || !r.Trace.IsZero() && shown["trace"] != r.Trace.Traceparent() {
			t.Errorf("is shown as %v, %v", shown, err)
		}
	}
	if more := size[false] - size[true]; more != 29 {
		t.Errorf("a trace takes %d bytes", more)
	}
}
