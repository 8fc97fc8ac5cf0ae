// Package emf writes a metrics.Registry as lines of CloudWatch's embedded metric format, for processes whose standard output CloudWatch
// Logs reads. A line is one JSON object; CloudWatch makes metrics of what its member _aws names. docs/metrics.md says what they are.
package emf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/metrics"
)

const (
	// Namespace is where the metrics stand in CloudWatch.
	Namespace = "Belfry"
	// StackDimension is the dimension that all of them have, beside their labels.
	StackDimension = "Stack"

	// maxValues is how many values of one metric a line may hold, by the format's specification.
	maxValues = 100
)

// Config is what an Emitter stands on. All of it is required.
type Config struct {
	Registry *metrics.Registry
	Out      io.Writer // standard output
	Stack    string    // the stack's name
	Now      func() time.Time
}

// Emitter writes what was counted since it last did.
type Emitter struct {
	cfg Config

	mu   sync.Mutex
	told map[string]metrics.Sample // by family and labels, as of the last Flush
}

// New checks the configuration.
func New(cfg Config) (*Emitter, error) {
	if cfg.Registry == nil || cfg.Out == nil || cfg.Now == nil || cfg.Stack == "" {
		return nil, errors.New("emf: Registry, Out, Stack and Now are required")
	}
	return &Emitter{cfg: cfg, told: map[string]metrics.Sample{}}, nil
}

// Unit is what CloudWatch calls a family's unit.
func Unit(f metrics.Family) string {
	if strings.HasSuffix(f.Name, "_seconds") {
		return "Seconds"
	}
	return "Count"
}

// Dimensions are the names of a metric's dimensions; none for a family that is written and not made a metric.
func Dimensions(f metrics.Family) []string {
	if f.Detail {
		return nil
	}
	names := []string{StackDimension}
	for _, l := range f.Labels {
		names = append(names, l.Name)
	}
	return names
}

// line is what is written in one line: metrics that have the same values of the same dimensions.
type line struct {
	dimensions []string
	members    map[string]any
	metrics    []metric
	values     map[string][]float64 // of histograms, which may be too many for one line
}

type metric struct {
	Name string
	Unit string
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

type metadata struct {
	Timestamp         int64 // Unix ms
	CloudWatchMetrics []directive
}

// Flush writes what has changed, one line for each combination of labels, at once. What could not be written is written the next
// time.
func (e *Emitter) Flush() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.cfg.Now()
	lines := map[string]*line{}
	told := maps.Clone(e.told)
	e.cfg.Registry.Each(now, func(f metrics.Family, samples []metrics.Sample) {
		for _, s := range samples {
			key := f.Name + "\x00" + strings.Join(s.Values, "\x00")
			values := news(f, s, told[key])
			told[key] = s
			if len(values) == 0 {
				continue
			}
			if f.Detail {
				e.line(lines, nil, nil).detail(f, s, values)
				continue
			}
			e.line(lines, f.Labels, s.Values).add(f, values)
		}
	})
	var text bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		if err := lines[key].write(&text, now); err != nil {
			return err
		}
	}
	if text.Len() > 0 {
		if _, err := e.cfg.Out.Write(text.Bytes()); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	e.told = told
	return nil
}

// news are the values that a sample has beyond what was told; none where nothing was counted or measured.
func news(f metrics.Family, now, before metrics.Sample) []float64 {
	switch f.Kind {
	case metrics.KindHistogram:
		return observed(now.Histogram, before.Histogram)
	case metrics.KindGauge:
		if now.Measured == before.Measured {
			return nil
		}
		return []float64{short(now.Value)}
	default:
		if more := now.Value - before.Value; more > 0 {
			return []float64{short(more)}
		}
		return nil
	}
}

// observed gives a value for each observation: the mean of those that fell into the same bucket. So the sum is the true one, and a
// percentile is off by a bucket's width at the most.
func observed(now, before metrics.Histo) (values []float64) {
	upTo := func(h metrics.Histo, bucket int) uint64 {
		switch {
		case bucket < len(h.Buckets):
			return h.Buckets[bucket]
		default:
			return h.Count
		}
	}
	var below uint64
	for bucket := range now.Sums {
		through := upTo(now, bucket) - upTo(before, bucket)
		count := through - below
		below = through
		if count == 0 {
			continue
		}
		sum := now.Sums[bucket]
		if bucket < len(before.Sums) {
			sum -= before.Sums[bucket]
		}
		mean := short(sum.Seconds() / float64(count))
		values = append(values, slices.Repeat([]float64{mean}, int(count))...)
	}
	return values
}

// short leaves microseconds: every byte of a line is paid for.
func short(v float64) float64 { return math.Round(v*1e6) / 1e6 }

func (e *Emitter) line(lines map[string]*line, labels []metrics.Label, values []string) *line {
	members := map[string]any{StackDimension: e.cfg.Stack}
	dimensions := []string{StackDimension}
	key := ""
	for i, l := range labels {
		members[l.Name] = values[i]
		dimensions = append(dimensions, l.Name)
		key += l.Name + "\x00" + values[i] + "\x00"
	}
	if lines[key] == nil {
		lines[key] = &line{dimensions: dimensions, members: members, values: map[string][]float64{}}
	}
	return lines[key]
}

func (l *line) add(f metrics.Family, values []float64) {
	l.metrics = append(l.metrics, metric{f.Name, Unit(f)})
	l.values[f.Name] = values
}

// detail puts what is not made a metric into the line, by its labels: {"belfry_store_units_total": {"Query": {"read": 1.5}}}. One without
// labels is a value, or the sum of its observations, by its name alone.
func (l *line) detail(f metrics.Family, s metrics.Sample, values []float64) {
	at := l.members
	path := append([]string{f.Name}, s.Values...)
	last := path[len(path)-1]
	for _, name := range path[:len(path)-1] {
		below, ok := at[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			at[name] = below
		}
		at = below
	}
	if f.Kind != metrics.KindHistogram {
		at[last] = values[0]
		return
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	at[last] = map[string]any{"count": len(values), "sum": short(sum)}
}

// write writes the line, and more of them for what does not fit.
func (l *line) write(to *bytes.Buffer, now time.Time) error {
	encoder := json.NewEncoder(to)
	for first := true; first || len(l.metrics) > 0; first = false {
		members := l.members
		if !first {
			members = map[string]any{}
			for _, name := range l.dimensions {
				members[name] = l.members[name]
			}
		}
		if len(l.metrics) > 0 {
			members["_aws"] = metadata{now.UnixMilli(), []directive{{Namespace, [][]string{l.dimensions}, l.metrics}}}
		}
		var more []metric
		for _, m := range l.metrics {
			values := l.values[m.Name]
			some := values[:min(len(values), maxValues)]
			members[m.Name] = some
			if len(some) == 1 {
				members[m.Name] = some[0]
			}
			if rest := values[len(some):]; len(rest) > 0 {
				l.values[m.Name] = rest
				more = append(more, m)
			}
		}
		if err := encoder.Encode(members); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
		l.metrics = more
	}
	return nil
}
