package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// kept is an exporter that keeps what it gets.
type kept struct {
	mu    sync.Mutex
	spans []trace.Data
}

func (k *kept) Export(d trace.Data) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, d)
}
func (k *kept) Flush(context.Context) error { return nil }
func (k *kept) Close(context.Context) error { return nil }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// tracer has IDs 1, 2, 3 …, which are small, so that every trace is chosen unless the ratio is 0.
func tracer(t *testing.T, ratio float64) (*trace.Tracer, *kept) {
	t.Helper()
	k := &kept{}
	var mu sync.Mutex
	id := uint64(0)
	tr, err := trace.New(trace.Config{Export: k, Ratio: ratio, Now: func() time.Time { return noon }, NewID: func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		id++
		return id
	}})
	if err != nil {
		t.Fatal(err)
	}
	return tr, k
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestHeadersAreReadAndWritten(t *testing.T) {
	o, ok := trace.Parse(parent)
	if !ok || o.Traceparent() != parent || o.ID() != "0af7651916cd43dd8448eb211c80319c" || !o.Sampled || o.Open {
		t.Errorf("read %+v, %v as %s", o, ok, o.Traceparent())
	}
	if got := o.XRay(); got != "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1" {
		t.Errorf("as X-Ray %s", got)
	}
	if back, ok := trace.ParseXRay(o.XRay()); !ok || back != o {
		t.Errorf("back as %+v, %v", back, ok)
	}
	for text, want := range map[string]trace.Origin{
		"Root=1-0af76519-16cd43dd8448eb211c80319c":                                                        {Context: trace.Context{Trace: o.Trace}, Open: true},
		"Self=1-67891234-12456789abcdef012345678; Root=1-0af76519-16cd43dd8448eb211c80319c ; Sampled=?":   {Context: trace.Context{Trace: o.Trace}, Open: true},
		"Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=0;Lineage=a:1|b:2":      {Context: trace.Context{Trace: o.Trace, Span: o.Span}},
		"Parent=b7ad6b7169203331;Sampled=1;Root=1-0af76519-16cd43dd8448eb211c80319c;CalledFrom=somewhere": o,
	} {
		if got, ok := trace.ParseXRay(text); !ok || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, wrong := range []string{
		"", "00", parent[:54], parent + "-more", "ff" + parent[2:], strings.ToUpper(parent), strings.Replace(parent, "0af7", "xaf7", 1),
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
	} {
		if o, ok := trace.Parse(wrong); ok {
			t.Errorf("%q was read as %+v", wrong, o)
		}
	}
	if o, ok := trace.Parse("42" + parent[2:] + "-more"); !ok || !o.Sampled {
		t.Errorf("a later version was not read")
	}
	for _, wrong := range []string{"", "Root=", "Root=2-0af76519-16cd43dd8448eb211c80319c", "Root=1-00000000-000000000000000000000000", "Parent=b7ad6b7169203331"} {
		if o, ok := trace.ParseXRay(wrong); ok {
			t.Errorf("%q was read as %+v", wrong, o)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add(parent)
	f.Add("Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1")
	f.Fuzz(func(t *testing.T, text string) {
		if o, ok := trace.Parse(text); ok {
			if again, ok := trace.Parse(o.Traceparent()); !ok || again != o {
				t.Errorf("%q: %+v and then %+v", text, o, again)
			}
		}
		if o, ok := trace.ParseXRay(text); ok && !o.IsZero() && !o.Open {
			if again, ok := trace.ParseXRay(o.XRay()); !ok || again != o {
				t.Errorf("%q: %+v and then %+v", text, o, again)
			}
		}
	})
}

func TestSpansJoin(t *testing.T) {
	tr, k := tracer(t, 1)
	ctx, server := tr.Begin(t.Context(), trace.Server, "PUT")
	below, client := trace.Child(ctx, trace.Client, "store write")
	carried := trace.From(below)
	client.End()
	server.Set("belfry.job", "report")
	server.Fail("no")
	server.End()
	server.End()
	server.Set("late", "word")

	stored, err := carried.MarshalBinary()
	if err != nil || len(stored) != 25 {
		t.Fatalf("%d bytes, %v", len(stored), err)
	}
	var read trace.Context
	if err := read.UnmarshalBinary(stored); err != nil || read != carried {
		t.Fatalf("%+v, %v, want %+v", read, err, carried)
	}
	elsewhere, attempt := tr.Begin(trace.With(context.Background(), trace.Origin{Context: read}), trace.Consumer, "attempt")
	if trace.From(elsewhere) != attempt.Context() {
		t.Error("the context does not carry the attempt")
	}
	attempt.Link(server.Context())
	attempt.End()
	within := tr.Of(ctx, server.Context(), trace.Producer, "claim")
	within.End()

	if len(k.spans) != 4 {
		t.Fatalf("%d spans, want 4", len(k.spans))
	}
	store, put, worked, claim := k.spans[0], k.spans[1], k.spans[2], k.spans[3]
	if put.Above != [8]byte{} || put.Local || store.Above != put.Span || !store.Local || worked.Above != store.Span || worked.Local ||
		claim.Above != put.Span || !claim.Local {
		t.Errorf("do not join: %+v", k.spans)
	}
	for _, s := range k.spans {
		if s.Trace != put.Trace || !s.Sampled || s.Start != noon || s.End != noon {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
	if want := fmt.Sprintf("%08x", noon.Unix()); put.ID()[:8] != want {
		t.Errorf("the trace is %s, want it to begin with the time, %s", put.ID(), want)
	}
	if len(put.Attrs) != 1 || put.Error != "no" || len(worked.Links) != 1 {
		t.Errorf("%+v, %+v", put, worked)
	}
}

func TestWhoBeganDecidesWhatIsRecorded(t *testing.T) {
	sampled, _ := trace.Parse(parent)
	unsampled, _ := trace.Parse(strings.TrimSuffix(parent, "1") + "0")
	undecided, _ := trace.ParseXRay("Root=1-0af76519-16cd43dd8448eb211c80319c")
	for name, row := range map[string]struct {
		ratio    float64
		from     *trace.Origin
		recorded bool
		carried  string // traceparent for those below; "*" for any
	}{
		"NewAndChosen":       {1, nil, true, "*"},
		"NewAndNot":          {0, nil, false, ""},
		"SampledAbove":       {0, &sampled, true, "*"},
		"UnsampledAbove":     {1, &unsampled, false, unsampled.Traceparent()},
		"UndecidedAndChosen": {1, &undecided, true, "*"},
		"UndecidedAndNot":    {0, &undecided, false, ""},
		"FromNowhere":        {1, new(trace.Origin), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tr, k := tracer(t, row.ratio)
			ctx := t.Context()
			if row.from != nil {
				ctx = trace.With(ctx, *row.from)
			}
			ctx, s := tr.Begin(ctx, trace.Server, "first")
			again, below := tr.Begin(ctx, trace.Internal, "below")
			got := trace.From(again).Traceparent()
			below.End()
			s.End()
			if (s != nil) != row.recorded || (below != nil) != row.recorded || (len(k.spans) == 2) != row.recorded {
				t.Errorf("recorded %v and %v, %d spans", s, below, len(k.spans))
			}
			if row.carried != "*" && got != row.carried || row.carried == "*" && got == "" {
				t.Errorf("carries %q, want %q", got, row.carried)
			}
			if row.from != nil && row.recorded && trace.From(ctx).Trace != row.from.Trace {
				t.Errorf("another trace: %s", trace.From(ctx).ID())
			}
		})
	}
}

func TestP11_SpansAndWordsAreBounded(t *testing.T) {
	tr, k := tracer(t, 1)
	ctx, first := tr.Begin(t.Context(), trace.Internal, "first")
	for range 1000 {
		_, s := trace.Child(ctx, trace.Client, "store get")
		s.End()
		first.Set("key", strings.Repeat("ä", 1000))
		first.Link(first.Context())
	}
	first.End()
	last := k.spans[len(k.spans)-1]
	if len(k.spans) > 200 || last.Missed != 1000-len(k.spans)+1 || len(last.Attrs) > 50 || len(last.Attrs[0].Value) > 600 || len(last.Links) > 10 {
		t.Errorf("%d spans, %d missed, %d words of %d bytes, %d links", len(k.spans), last.Missed, len(last.Attrs), len(last.Attrs[0].Value), len(last.Links))
	}
}

func TestNothingIsRecordedOfADroppedSpan(t *testing.T) {
	tr, k := tracer(t, 1)
	s := tr.Apart(trace.Internal, "tick")
	s.Drop()
	s.End()
	if len(k.spans) != 0 {
		t.Errorf("%+v", k.spans)
	}
}

func TestOffCostsNothing(t *testing.T) {
	var off *trace.Tracer
	var some trace.Context
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		ctx, s := off.Begin(ctx, trace.Consumer, "attempt")
		_, below := trace.Child(ctx, trace.Client, "target")
		below.Set("key", "value")
		below.SetInt("belfry.attempt", 3)
		below.Fail("why")
		below.End()
		off.Of(ctx, some, trace.Producer, "claim").End()
		off.Apart(trace.Internal, "tick").Drop()
		s.Link(trace.From(ctx))
		s.End()
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	if err := errors.Join(off.Flush(ctx), off.Close(ctx)); err != nil {
		t.Error(err)
	}
}

func TestStoreCallsAreSpans(t *testing.T) {
	tr, k := tracer(t, 1)
	s := trace.Store(memory.New(memory.Config{Now: time.Now}))
	ctx, first := tr.Begin(t.Context(), trace.Server, "first")
	put := store.Op{Kind: store.Put, Key: store.Key{Partition: "p", Sort: "s"}, If: store.Absent, Value: []byte("v"), Attempt: 1}
	for range 2 {
		_, _ = s.Write(ctx, put)
		put.Attempt++
	}
	_, _ = s.Get(ctx, put.Key)
	_, _ = s.Query(ctx, store.Range{Partition: "p"})
	_, _ = s.Get(t.Context(), put.Key) // of nothing that is recorded
	first.End()
	var names []string
	for _, d := range k.spans {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, ", "); got != "store write, store write, store get, store query, first" {
		t.Errorf("got %s", got)
	}
	if second := k.spans[1]; second.Error != "" || len(second.Attrs) != 2 || second.Attrs[1].Value != "conflict" {
		t.Errorf("a conflict is an answer: %+v", second)
	}
}

func TestLinesOfTheLogSayWhatTheyAreAbout(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(trace.Log(slog.NewJSONHandler(&out, nil))).With("process", "p1")
	tr, _ := tracer(t, 1)
	ctx := trace.Tell(t.Context(), slog.String("tenant", "acme"), slog.String("run", "report~1"))
	other := trace.Tell(ctx, slog.Int("attempt", 1))
	other = trace.Tell(other, slog.Int("attempt", 2), slog.String("run", "report~1"))
	trace.Tell(ctx, slog.Int("attempt", 9)) // another branch
	other, s := tr.Begin(other, trace.Consumer, "attempt")
	log.InfoContext(other, "ended", "run", "its own")
	if n := strings.Count(out.String(), `"attempt"`); n != 1 {
		t.Errorf("the attempt stands %d times in %s", n, out.String())
	}
	log.InfoContext(t.Context(), "apart")
	var line map[string]any
	decoder := json.NewDecoder(&out)
	if err := decoder.Decode(&line); err != nil {
		t.Fatal(err)
	}
	if line["tenant"] != "acme" || line["run"] != "its own" || line["attempt"] != 2.0 || line["trace"] != s.Context().ID() || line["process"] != "p1" {
		t.Errorf("got %v", line)
	}
	line = nil
	if err := decoder.Decode(&line); err != nil || len(line) != 4 {
		t.Errorf("got %v, %v", line, err)
	}
}
