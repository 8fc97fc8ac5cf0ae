package schedule

import (
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
		// A century is where the walk starts again: all three stay in years they know.
		walk := func(b *testing.B, next func(time.Time) time.Time) {
			b.ReportAllocs()
			at := from.In(loc)
			for b.Loop() {
				if at = next(at); at.IsZero() || at.Year() > 2090 {
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
