package metrics

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Kind is what a family measures.
type Kind string

// The kinds.
const (
	KindCounter   Kind = "counter"
	KindGauge     Kind = "gauge"
	KindHistogram Kind = "histogram"
)

// Other is the value of a label under which all values are counted that it does not declare. So no input, however wild, can
// grow the number of series.
const Other = "other"

// Label is one dimension of a family, with all the values that it can take beside Other.
type Label struct {
	Name   string
	Values []string
	Met    *Names // further values, known when they are met; nil where there are none
}

// places is how many values have a place.
func (l Label) places() int {
	n := len(l.Values) + 1
	if l.Met != nil {
		n += l.Met.Most
	}
	return n
}

// place is that of a value: those that are declared first, then those that were met, and Other last.
func (l Label) place(value string) int {
	if found := slices.Index(l.Values, value); found >= 0 {
		return found
	}
	if l.Met != nil {
		if found := slices.Index(l.Met.all(), value); found >= 0 {
			return len(l.Values) + found
		}
	}
	return l.places() - 1
}

// value is what has a place, and whether it is a known one, and not Other.
func (l Label) value(place int) (value string, known bool) {
	if place < len(l.Values) {
		return l.Values[place], true
	}
	if l.Met != nil {
		if all := l.Met.all(); place-len(l.Values) < len(all) {
			return all[place-len(l.Values)], true
		}
	}
	return Other, false
}

// Family is one metric: its name, what it means and along which labels it is split.
type Family struct {
	Name   string // as Prometheus wants it, with the unit as suffix
	Kind   Kind
	Help   string // one sentence
	Labels []Label
	Bounds []time.Duration // of a histogram: upper bounds of its buckets, ascending

	// Detail says that the family has many series, which are worth looking into and not worth watching. Where each series is paid
	// for, as in CloudWatch, it is written and not made a metric.
	Detail bool
}

// series is how many combinations of label values there are.
func (f *Family) series() int {
	n := 1
	for _, l := range f.Labels {
		n *= l.places()
	}
	return n
}

// index is the place of a combination of label values. What is not declared, or left out, is Other.
func (f *Family) index(values []string) int {
	at := 0
	for i, l := range f.Labels {
		n := l.places() - 1
		if i < len(values) {
			n = l.place(values[i])
		}
		at = at*l.places() + n
	}
	return at
}

// values is the combination at a place, and whether it is declared or met, without Other in it.
func (f *Family) values(at int) (values []string, declared bool) {
	values = make([]string, len(f.Labels))
	declared = true
	for i, l := range slices.Backward(f.Labels) {
		var known bool
		values[i], known = l.value(at % l.places())
		declared = declared && known
		at /= l.places()
	}
	return values, declared
}

// Sample is one series of a family at a moment.
type Sample struct {
	Values    []string // of the labels, in their order
	Value     float64  // of a counter or gauge
	Histogram Histo    // of a histogram
	Measured  uint64   // of a gauge: how often it was
}

// Histo is a histogram at a moment. Its buckets are those up to each of Bounds, and one beyond.
type Histo struct {
	Count   uint64
	Sum     time.Duration
	Buckets []uint64        // how many were at most Bounds[i], as Prometheus counts; those beyond the last are only in Count
	Sums    []time.Duration // of what fell into each bucket and into no lower one; one more than Buckets
}

// Counter only grows.
type Counter struct {
	family Family
	counts []atomic.Uint64
}

// Inc adds one to the series of the label values.
func (c *Counter) Inc(values ...string) { c.counts[c.family.index(values)].Add(1) }

// Add adds n, which nothing below zero changes.
func (c *Counter) Add(n int, values ...string) {
	if n > 0 {
		c.counts[c.family.index(values)].Add(uint64(n))
	}
}

// Value is the count of the series now.
func (c *Counter) Value(values ...string) uint64 { return c.counts[c.family.index(values)].Load() }

func (c *Counter) samples(time.Time) (all []Sample) {
	for i := range c.counts {
		values, declared := c.family.values(i)
		if n := c.counts[i].Load(); n > 0 || declared {
			all = append(all, Sample{Values: values, Value: float64(n)})
		}
	}
	return all
}

// Sum is a Counter of what does not come in whole numbers.
type Sum struct {
	family Family
	bits   []atomic.Uint64 // math.Float64bits
}

// Add adds v, which nothing below zero changes.
func (s *Sum) Add(v float64, values ...string) {
	if v <= 0 {
		return
	}
	bits := &s.bits[s.family.index(values)]
	for {
		old := bits.Load()
		if bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

func (s *Sum) samples(time.Time) (all []Sample) {
	for i := range s.bits {
		if v := math.Float64frombits(s.bits[i].Load()); v != 0 {
			values, _ := s.family.values(i)
			all = append(all, Sample{Values: values, Value: v})
		}
	}
	return all
}

// Gauge is a value as last measured.
type Gauge struct {
	family   Family
	bits     []atomic.Uint64 // math.Float64bits
	measured []atomic.Uint64
}

// Set sets the series of the label values.
func (g *Gauge) Set(v float64, values ...string) {
	at := g.family.index(values)
	g.bits[at].Store(math.Float64bits(v))
	g.measured[at].Add(1)
}

func (g *Gauge) samples(time.Time) (all []Sample) {
	for i := range g.bits {
		values, declared := g.family.values(i)
		if v := math.Float64frombits(g.bits[i].Load()); v != 0 || declared {
			all = append(all, Sample{Values: values, Value: v, Measured: g.measured[i].Load()})
		}
	}
	return all
}

// Age is the time since an instant, measured when it is read: it grows also when whoever sets it is stuck.
type Age struct {
	family   Family
	since    atomic.Int64 // Unix ns; 0: never set
	measured atomic.Uint64
}

// Since sets the instant.
func (a *Age) Since(t time.Time) {
	a.since.Store(t.UnixNano())
	a.measured.Add(1)
}

// samples are none before the instant was first set: an age of nothing would look like health.
func (a *Age) samples(now time.Time) []Sample {
	since := a.since.Load()
	if since == 0 {
		return nil
	}
	return []Sample{{Value: max(0, now.Sub(time.Unix(0, since)).Seconds()), Measured: a.measured.Load()}}
}

// Histogram counts durations in fixed buckets.
type Histogram struct {
	family Family
	series []cells
}

// cells have one bucket more than there are bounds; each counts its own only.
type cells struct {
	buckets []atomic.Uint64
	sums    []atomic.Int64
}

// Observe counts a duration in the series of the label values; below zero counts as zero.
func (h *Histogram) Observe(d time.Duration, values ...string) {
	d = max(0, d)
	s := &h.series[h.family.index(values)]
	at, _ := slices.BinarySearch(h.family.Bounds, d)
	s.buckets[at].Add(1)
	s.sums[at].Add(int64(d))
}

func (h *Histogram) samples(time.Time) (all []Sample) {
	for i := range h.series {
		s := &h.series[i]
		histo := Histo{Buckets: make([]uint64, len(h.family.Bounds)), Sums: make([]time.Duration, len(s.sums))}
		for b := range s.buckets {
			histo.Count += s.buckets[b].Load()
			histo.Sums[b] = time.Duration(s.sums[b].Load())
			histo.Sum += histo.Sums[b]
			if b < len(histo.Buckets) {
				histo.Buckets[b] = histo.Count
			}
		}
		values, _ := h.family.values(i)
		if histo.Count > 0 || len(values) == 0 {
			all = append(all, Sample{Values: values, Histogram: histo})
		}
	}
	return all
}
