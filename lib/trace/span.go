package trace

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is which side of a call a span is.
type Kind uint8

// The kinds, as OpenTelemetry has them.
const (
	Internal Kind = iota
	Server
	Client
	Producer
	Consumer
)

// Attr is a word about a span. Keys follow OpenTelemetry's conventions where it has one, and begin with "belfry." where not.
type Attr struct{ Key, Value string }

// Data is a span that has ended.
type Data struct {
	Context
	Above  [8]byte // the span above it, zero for the first of a trace
	Local  bool    // it is a part of the span above: one of the same process, or the run that a step is of
	Name   string  // of few different ones
	Kind   Kind
	Start  time.Time
	End    time.Time
	Attrs  []Attr
	Links  []Context // spans of other traces that led to it
	Error  string    // why it failed, "" where it did not
	Missed int       // spans below it that were not recorded, since they were too many
}

// Bounds of what is recorded.
const (
	maxAttrs   = 32
	maxText    = 512 // bytes of a value or an error
	maxLinks   = 8
	maxSpans   = 128 // below the first span of a process
	cutOffMark = "…"
)

// Span is something under way that is recorded. All methods of a nil Span do nothing; it may be used concurrently.
type Span struct {
	tracer *Tracer
	first  *Span // of this process in the trace
	spans  atomic.Int32

	mu    sync.Mutex
	ended bool
	data  Data
}

func (s *Span) child(kind Kind, name string) *Span {
	if s.first.spans.Add(1) > maxSpans {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.data.Missed++
		return nil
	}
	t := s.tracer
	c := &Span{tracer: t, first: s.first}
	c.data = Data{Name: name, Kind: kind, Start: t.cfg.Now(), Above: s.data.Span, Local: true,
		Context: Context{Trace: s.data.Trace, Span: t.spanID(), Sampled: true}}
	return c
}

// Context names the span; zero for a nil one.
func (s *Span) Context() Context {
	if s == nil {
		return Context{}
	}
	return s.data.Context // never changed
}

// Rename gives a name that was not known at the beginning.
func (s *Span) Rename(name string) {
	s.change(func(d *Data) { d.Name = name })
}

// Set says something about the span.
func (s *Span) Set(key, value string) {
	s.change(func(d *Data) {
		if len(d.Attrs) < maxAttrs {
			d.Attrs = append(d.Attrs, Attr{key, cut(value)})
		}
	})
}

// SetInt is Set for a number.
func (s *Span) SetInt(key string, value int64) {
	if s != nil {
		s.Set(key, strconv.FormatInt(value, 10))
	}
}

// Link names a span of another trace that led to this one.
func (s *Span) Link(c Context) {
	s.change(func(d *Data) {
		if !c.IsZero() && len(d.Links) < maxLinks {
			d.Links = append(d.Links, c)
		}
	})
}

// Fail says that it failed, and why.
func (s *Span) Fail(why string) {
	s.change(func(d *Data) { d.Error = cut(why) })
}

// End ends the span, once.
func (s *Span) End() {
	if s == nil {
		return
	}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	s.data.End = s.tracer.cfg.Now()
	data := s.data
	s.mu.Unlock()
	s.tracer.cfg.Export.Export(data)
}

// Drop ends the span without a record of it.
func (s *Span) Drop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *Span) change(change func(*Data)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		change(&s.data)
	}
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText - len(cutOffMark)
	for end > 0 && text[end]&0xc0 == 0x80 { // inside a character
		end--
	}
	return text[:end] + cutOffMark
}
