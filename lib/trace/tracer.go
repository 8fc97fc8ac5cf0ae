package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
)

// Config is what a Tracer stands on. All of it is required.
type Config struct {
	Export Exporter
	Now    func() time.Time
	NewID  func() uint64 // random, never 0
	Ratio  float64       // of the traces that begin here: so many are recorded, 0 to 1
}

// Exporter takes what was recorded. Its methods are called concurrently.
type Exporter interface {
	// Export takes a span that has ended. It does not wait for anybody, and drops what it cannot take.
	Export(Data)

	// Flush sends what was taken, before ctx ends.
	Flush(ctx context.Context) error

	// Close is a last Flush.
	Close(ctx context.Context) error
}

// Tracer begins spans. A nil one records nothing.
type Tracer struct{ cfg Config }

// New checks the configuration.
func New(cfg Config) (*Tracer, error) {
	if cfg.Export == nil || cfg.Now == nil || cfg.NewID == nil {
		return nil, errors.New("trace: Export, Now and NewID are required")
	}
	if cfg.Ratio < 0 || cfg.Ratio > 1 {
		return nil, errors.New("trace: Ratio is not from 0 to 1")
	}
	return &Tracer{cfg}, nil
}

// Begin begins a process's part of a trace: a span below what ctx carries, or a new trace, if chance has it so. What is not recorded
// has a nil span, and is not begun again below.
func (t *Tracer) Begin(ctx context.Context, kind Kind, name string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	carried := carriedBy(ctx)
	switch {
	case carried.span != nil:
		return Child(ctx, kind, name)
	case carried.off, carried.origin.Trace != [16]byte{} && !carried.origin.Open && !carried.origin.Sampled:
		return ctx, nil
	case carried.origin.Trace == [16]byte{} || carried.origin.Open:
		if !t.chosen() {
			return context.WithValue(ctx, key{}, &carry{off: true}), nil
		}
	}
	s := t.span(carried.origin.Context, kind, name)
	return context.WithValue(ctx, key{}, &carry{span: s}), s
}

// Of begins a span below one that was carried here, in a record or a message; nil where that is not recorded. It is not part of ctx,
// which is only asked whether the one above is of this process and under way.
func (t *Tracer) Of(ctx context.Context, above Context, kind Kind, name string) *Span {
	if t == nil || above.IsZero() || !above.Sampled {
		return nil
	}
	if s := carriedBy(ctx).span; s != nil && s.Context() == above {
		return s.child(kind, name)
	}
	return t.span(above, kind, name)
}

// Apart begins a new trace, if chance has it so, whatever ctx carries.
func (t *Tracer) Apart(kind Kind, name string) *Span {
	if t == nil || !t.chosen() {
		return nil
	}
	return t.span(Context{}, kind, name)
}

// Tell records a span that is over, and that whoever has seen its end knows all of. It names itself: see Context.Named.
func (t *Tracer) Tell(d Data) {
	if t == nil || d.IsZero() || !d.Sampled {
		return
	}
	d.Error = cut(d.Error)
	t.cfg.Export.Export(d)
}

// Flush sends what was recorded.
func (t *Tracer) Flush(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.cfg.Export.Flush(ctx)
}

// Close sends what was recorded, and ends the exporter.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.cfg.Export.Close(ctx)
}

// chosen draws whether a new trace is recorded.
func (t *Tracer) chosen() bool {
	return t.cfg.Ratio > 0 && float64(t.cfg.NewID()>>11)/(1<<53) < t.cfg.Ratio
}

// span begins the first span of this process in a trace. The trace may be new: X-Ray wants such names to begin with the time.
func (t *Tracer) span(above Context, kind Kind, name string) *Span {
	now := t.cfg.Now()
	s := &Span{tracer: t, data: Data{Name: name, Kind: kind, Start: now, Above: above.Span}}
	s.first = s
	s.data.Context = Context{Trace: above.Trace, Span: t.spanID(), Sampled: true}
	if above.Trace == [16]byte{} {
		id := &s.data.Context.Trace
		binary.BigEndian.PutUint64(id[8:], t.cfg.NewID())
		binary.BigEndian.PutUint64(id[:], t.cfg.NewID())
		binary.BigEndian.PutUint32(id[:], uint32(now.Unix()))
	}
	return s
}

func (t *Tracer) spanID() (id [8]byte) {
	binary.BigEndian.PutUint64(id[:], t.cfg.NewID())
	return id
}

type key struct{}

// carry is what a context has of a trace: a span under way here, or where the work came from, or word that nothing is recorded.
type carry struct {
	span   *Span
	origin Origin
	off    bool
}

var nothing = &carry{}

func carriedBy(ctx context.Context) *carry {
	if c, ok := ctx.Value(key{}).(*carry); ok {
		return c
	}
	return nothing
}

// With says where work came from. The zero Origin says: from nowhere that is recorded, and no trace is to begin with it.
func With(ctx context.Context, from Origin) context.Context {
	return context.WithValue(ctx, key{}, &carry{origin: from, off: from.Trace == [16]byte{}})
}

// From is the span that ctx carries, for those who continue it elsewhere; zero where there is none to be told.
func From(ctx context.Context) Context {
	c := carriedBy(ctx)
	switch {
	case c.span != nil:
		return c.span.Context()
	case c.origin.Open:
		return Context{}
	default:
		return c.origin.Context
	}
}

// Child begins a span below the one under way in ctx; nil where there is none.
func Child(ctx context.Context, kind Kind, name string) (context.Context, *Span) {
	above := carriedBy(ctx).span
	if above == nil {
		return ctx, nil
	}
	s := above.child(kind, name)
	if s == nil {
		return ctx, nil
	}
	return context.WithValue(ctx, key{}, &carry{span: s}), s
}

// Current is the span under way in ctx, nil where there is none.
func Current(ctx context.Context) *Span { return carriedBy(ctx).span }
