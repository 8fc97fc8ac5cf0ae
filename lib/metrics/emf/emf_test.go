package emf_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/emf"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func emitter(t *testing.T, r *metrics.Registry) (*emf.Emitter, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	e, err := emf.New(emf.Config{Registry: r, Out: &out, Stack: "belfry", Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return e, &out
}

// document is a line, read as CloudWatch reads it.
type document struct {
	members map[string]any
	values  map[string][]float64 // by metric, then its dimensions: belfry_runs_total{Stack=belfry,outcome=dead}
}

// read holds lines to the format's specification: "Specification: Embedded metric format" in the CloudWatch User Guide.
func read(t *testing.T, text string) []document {
	t.Helper()
	var all []document
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" {
			continue
		}
		d := document{values: map[string][]float64{}}
		if err := json.Unmarshal([]byte(line), &d.members); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, d)
		if len(line) > 256<<10 {
			t.Errorf("a line of %d bytes", len(line))
		}
		about, made := d.members["_aws"]
		if !made {
			continue
		}
		var meta struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct {
					Name, Unit        string
					StorageResolution int
				}
			}
		}
		again, _ := json.Marshal(about)
		strict := json.NewDecoder(bytes.NewReader(again))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&meta); err != nil || meta.Timestamp != noon.UnixMilli() || len(meta.CloudWatchMetrics) == 0 {
			t.Fatalf("%s: %v", line, err)
		}
		for _, m := range meta.CloudWatchMetrics {
			if m.Namespace != "Belfry" || len(m.Metrics) == 0 || len(m.Metrics) > 100 || len(m.Dimensions) == 0 {
				t.Errorf("%s: %+v", line, m)
			}
			for _, set := range m.Dimensions {
				var named []string
				for _, dimension := range set {
					value, ok := d.members[dimension].(string)
					if !ok || value == "" || len(value) > 1024 || len(dimension) > 250 {
						t.Errorf("%s: the dimension %s is %v", line, dimension, d.members[dimension])
					}
					named = append(named, dimension+"="+value)
				}
				if len(set) > 30 {
					t.Errorf("%s: %d dimensions", line, len(set))
				}
				for _, one := range m.Metrics {
					key := one.Name + "{" + strings.Join(named, ",") + "}"
					if one.Unit != "Seconds" && one.Unit != "Count" || d.values[key] != nil {
						t.Errorf("%s: %+v", line, one)
					}
					switch value := d.members[one.Name].(type) {
					case float64:
						d.values[key] = []float64{value}
					case []any:
						for _, v := range value {
							number, ok := v.(float64)
							if !ok {
								t.Errorf("%s: %s has the value %v", line, one.Name, v)
							}
							d.values[key] = append(d.values[key], number)
						}
						if len(value) == 0 || len(value) > 100 {
							t.Errorf("%s: %d values of %s", line, len(value), one.Name)
						}
					default:
						t.Errorf("%s: %s is %v", line, one.Name, value)
					}
				}
			}
		}
	}
	return all
}

// values puts together what lines say of each metric.
func values(all []document) map[string][]float64 {
	sum := map[string][]float64{}
	for _, d := range all {
		for key, values := range d.values {
			sum[key] = append(sum[key], values...)
		}
	}
	return sum
}

func TestAnInvocationWritesWhatItCounted(t *testing.T) {
	r := metrics.New()
	e, out := emitter(t, r)
	r.Runs.Add(2, "succeeded")
	r.Runs.Inc("dead")
	r.Retries.Inc()
	r.Lateness.Observe(40 * time.Millisecond)
	r.Lateness.Observe(44 * time.Millisecond)
	r.Lateness.Observe(2 * time.Hour)
	r.OldestDue.Since(noon.Add(-90 * time.Second))
	r.Unowned.Set(0)
	r.Consumed("Query", 1.5, 0)
	r.Consumed("PutItem", 0, 1)
	r.Store.Observe(3*time.Millisecond, "query", "ok")
	r.Store.Observe(5*time.Millisecond, "query", "ok")
	r.ExpressionWait.Observe(7 * time.Millisecond)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	all := read(t, out.String())
	got := values(all)
	for key, want := range map[string][]float64{
		"belfry_runs_total{Stack=belfry,outcome=succeeded}": {2},
		"belfry_runs_total{Stack=belfry,outcome=dead}":      {1},
		"belfry_retries_total{Stack=belfry}":                {1},
		"belfry_lateness_seconds{Stack=belfry}":             {0.042, 0.042, 7200},
		"belfry_oldest_due_seconds{Stack=belfry}":           {90},
		"belfry_unowned_shards{Stack=belfry}":               {0},
	} {
		if !slices.Equal(got[key], want) {
			t.Errorf("%s: %v, want %v", key, got[key], want)
		}
		delete(got, key)
	}
	if len(got) != 0 || len(all) != 3 {
		t.Errorf("%d lines, and beside what was counted %v:\n%s", len(all), got, out)
	}
	base := all[slices.IndexFunc(all, func(d document) bool { return d.members["belfry_retries_total"] != nil })].members
	units, _ := json.Marshal(base["belfry_store_units_total"])
	calls, _ := json.Marshal(base["belfry_store_seconds"])
	waits, _ := json.Marshal(base["belfry_expression_wait_seconds"])
	if string(units) != `{"PutItem":{"write":1},"Query":{"read":1.5}}` || string(calls) != `{"query":{"ok":{"count":2,"sum":0.008}}}` || string(waits) != `{"count":1,"sum":0.007}` {
		t.Errorf("details: %s, %s, %s", units, calls, waits)
	}
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	r := metrics.New()
	e, out := emitter(t, r)
	flush := func() map[string][]float64 {
		t.Helper()
		out.Reset()
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		return values(read(t, out.String()))
	}
	if flush(); out.Len() > 0 {
		t.Errorf("nothing was counted, and it wrote %s", out)
	}
	r.Runs.Inc("succeeded")
	r.Unowned.Set(1)
	r.Lateness.Observe(time.Second)
	flush()
	if flush(); out.Len() > 0 {
		t.Errorf("nothing has changed, and it wrote %s", out)
	}
	r.Runs.Add(3, "succeeded")
	r.Unowned.Set(1)
	r.Lateness.Observe(900 * time.Millisecond)
	got := flush()
	want := map[string][]float64{"belfry_runs_total{Stack=belfry,outcome=succeeded}": {3}, "belfry_unowned_shards{Stack=belfry}": {1},
		"belfry_lateness_seconds{Stack=belfry}": {0.9}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestAnIdleTickWritesOneLine holds what a month without a run costs in logs.
func TestAnIdleTickWritesOneLine(t *testing.T) {
	r := metrics.New()
	e, out := emitter(t, r)
	for range 3 {
		out.Reset()
		r.Tick.Observe(180 * time.Millisecond)
		r.OldestDue.Since(noon.Add(150 * time.Second))
		r.Unowned.Set(0)
		for range 80 {
			r.Store.Observe(4*time.Millisecond, "query", "ok")
			r.Consumed("Query", 0.5, 0)
		}
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != 1 || out.Len() > 600 {
			t.Errorf("%d lines, %d bytes:\n%s", n, out.Len(), out)
		}
		read(t, out.String())
	}
	t.Logf("%s", out)
}

func TestManyValuesTakeSeveralLines(t *testing.T) {
	r := metrics.New()
	e, out := emitter(t, r)
	sum := 0.0
	for i := range 1234 {
		r.Lateness.Observe(time.Duration(i) * time.Millisecond)
		r.Tick.Observe(time.Duration(i) * time.Millisecond)
		sum += float64(i) / 1000
	}
	r.Retries.Inc()
	r.Consumed("Query", 1, 0)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	all := read(t, out.String())
	got := values(all)
	late := got["belfry_lateness_seconds{Stack=belfry}"]
	total := 0.0
	for _, v := range late {
		total += v
	}
	if len(late) != 1234 || math.Abs(total-sum) > 0.01 || len(got["belfry_tick_seconds{Stack=belfry}"]) != 1234 || len(got["belfry_retries_total{Stack=belfry}"]) != 1 || len(all) != 13 {
		t.Errorf("%d lines, %d values of together %v, want 13, 1234, %v", len(all), len(late), total, sum)
	}
	units := 0
	for _, d := range all {
		if d.members["belfry_store_units_total"] != nil {
			units++
		}
	}
	if units != 1 {
		t.Errorf("units stand in %d lines", units)
	}
}

func TestP11_WildLabelsMakeFewLines(t *testing.T) {
	r := metrics.New()
	e, out := emitter(t, r)
	for i := range 1000 {
		r.Runs.Inc(fmt.Sprint("wild ", i))
		r.Consumed(fmt.Sprint("Wild", i), 1, 1)
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := values(read(t, out.String())); len(got) != 1 || got["belfry_runs_total{Stack=belfry,outcome=other}"][0] != 1000 {
		t.Errorf("got %v", got)
	}
}

// What gates count stands in the log, by name where a job asks for that, and is no metric: each would be paid for, and other functions meet
// other names.
func TestGatesStandInTheLog(t *testing.T) {
	r := metrics.New()
	e, out := emitter(t, r)
	for _, want := range []string{`{"job:*":1,"job:report":2}`, `{"job:report":2,"job:sweep":2}`} {
		r.GateSkipped.Add(2, r.Gate("job:report", true))
		if strings.Contains(want, "sweep") {
			r.GateSkipped.Add(2, r.Gate("job:sweep", true))
		} else {
			r.GateSkipped.Inc(r.Gate("job:hourly", false))
		}
		out.Reset()
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		lines := read(t, out.String())
		if len(lines) != 1 || len(lines[0].values) != 0 {
			t.Fatalf("got %v, want one line without metrics", lines)
		}
		if got, _ := json.Marshal(lines[0].members["belfry_gate_skipped_total"]); string(got) != want {
			t.Errorf("skipped: %s, want %s", got, want)
		}
	}
}

type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left > 0 {
		b.left--
		return 0, errors.New("the pipe is broken")
	}
	return len(p), nil
}

func TestWhatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	r := metrics.New()
	out := &broken{left: 1}
	var kept bytes.Buffer
	e, err := emf.New(emf.Config{Registry: r, Out: writers{out, &kept}, Stack: "belfry", Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	r.Retries.Inc()
	if err := e.Flush(); err == nil {
		t.Error("no error")
	}
	r.Retries.Inc()
	if err := e.Flush(); err != nil {
		t.Error(err)
	}
	if got := values(read(t, kept.String()))["belfry_retries_total{Stack=belfry}"]; !slices.Equal(got, []float64{2}) {
		t.Errorf("got %v, want 2", got)
	}
}

type writers struct {
	first, second interface{ Write([]byte) (int, error) }
}

func (w writers) Write(p []byte) (int, error) {
	if n, err := w.first.Write(p); err != nil {
		return n, err
	}
	return w.second.Write(p)
}

// TestNamesFitCloudWatch holds names and dimensions to CloudWatch's bounds, for every family.
func TestNamesFitCloudWatch(t *testing.T) {
	for _, f := range metrics.Families() {
		if len(f.Name) > 255 || len(emf.Dimensions(f)) > 30 || f.Detail != (len(emf.Dimensions(f)) == 0) {
			t.Errorf("%s with %v", f.Name, emf.Dimensions(f))
		}
	}
}
