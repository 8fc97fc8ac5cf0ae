package schedule

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"github.com/robfig/cron/v3"
)

// benchSink keeps the compiler from dropping what a benchmark computes.
var benchSink time.Time

// BenchmarkNext prints ours, gronx and robfig/cron side by side. Each call starts at the fire before it, so that a run
// walks over years and crosses transitions as often as real time does.
func BenchmarkNext(b *testing.B) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ name, expr, zone string }{
		{"every_5_min_UTC", "*/5 * * * *", "UTC"},
		{"every_5_min_Berlin", "*/5 * * * *", "Europe/Berlin"},
		{"workdays_New_York", "30 9 * * 1-5", "America/New_York"},
		{"monthly_Sydney", "0 3 1 * *", "Australia/Sydney"},
		{"night_Santiago", "15 0 * * *", "America/Santiago"},
		{"last_Friday_Cairo", "0 18 * * 5L", "Africa/Cairo"},
		{"leap_day_Berlin", "0 0 29 2 *", "Europe/Berlin"},
	} {
		loc, err := LoadZone(c.zone)
		if err != nil {
			b.Fatal(err)
		}
		// The walk starts again in 2090: all three stay in years they know.
		end := time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		walk := func(b *testing.B, next func(time.Time) time.Time) {
			b.ReportAllocs()
			at := from.In(loc)
			for b.Loop() {
				if at = next(at); at.IsZero() || at.Unix() > end {
					at = from.In(loc)
				}
			}
			benchSink = at
		}
		b.Run(c.name+"/belfry", func(b *testing.B) {
			s, err := Spec{Cron: c.expr, Timezone: c.zone}.Compile()
			if err != nil {
				b.Fatal(err)
			}
			walk(b, func(t time.Time) time.Time {
				next, _ := s.Next(t)
				return next
			})
		})
		b.Run(c.name+"/gronx", func(b *testing.B) {
			walk(b, func(t time.Time) time.Time {
				next, err := gronx.NextTickAfter(c.expr, t, false)
				if err != nil {
					return time.Time{}
				}
				return next
			})
		})
		if parsed, err := cron.ParseStandard(c.expr); err == nil { // it knows no 5L
			b.Run(c.name+"/robfig", func(b *testing.B) { walk(b, parsed.Next) })
		}
	}
}

// BenchmarkLast looks back over ten years of a job that fires every minute, as a catch-up does.
func BenchmarkLast(b *testing.B) {
	s, err := Spec{Cron: "* * * * *", Timezone: "Europe/Berlin"}.Compile()
	if err != nil {
		b.Fatal(err)
	}
	from, upTo := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		benchSink, _ = s.Last(from, upTo)
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Spec{Cron: "30 9 * * 1-5", Timezone: "Europe/Berlin"}).Compile(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefusal compiles every expression that fuzzing found and that is refused, and shows the slowest of them: each
// is taken at its best of several tries, so that the figure is the refusal's and not the machine's.
func BenchmarkRefusal(b *testing.B) {
	var refused []string
	for _, cron := range append(seedCrons(b), fuzzCorpus(b)...) {
		if _, err := (Spec{Cron: cron}).Compile(); err != nil {
			refused = append(refused, cron)
		}
	}
	best := make([]time.Duration, len(refused))
	for i := range best {
		best[i] = time.Hour
	}
	rounds := 0
	for b.Loop() {
		for i, cron := range refused {
			begin := time.Now()
			_, err := Spec{Cron: cron}.Compile()
			if best[i] = min(best[i], time.Since(begin)); err == nil {
				b.Fatal(cron)
			}
		}
		rounds++
	}
	slowest := 0
	for i := range best {
		if best[i] > best[slowest] {
			slowest = i
		}
	}
	b.ReportMetric(float64(len(refused)), "refusals")
	b.ReportMetric(float64(best[slowest].Nanoseconds()), "slowest-ns")
	b.Logf("slowest of %d, best of %d: %v, %q", len(refused), rounds, best[slowest], refused[slowest])
}

// fuzzCorpus reads the expressions that FuzzCompile keeps in testdata.
func fuzzCorpus(b *testing.B) []string {
	files, err := filepath.Glob("testdata/fuzz/FuzzCompile/*")
	if err != nil || len(files) == 0 {
		b.Fatal("no corpus: ", err)
	}
	var all []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		_, value, _ := strings.Cut(string(data), "string(")
		cron, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(value), ")"))
		if err != nil {
			b.Fatalf("%s: %v", file, err)
		}
		all = append(all, cron)
	}
	return all
}
