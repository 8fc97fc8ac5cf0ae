package tick_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/tick"
)

// TestP11_WhatAnIdleMinuteCosts counts the requests of ticks that come each minute and find nothing due. It is what a month without a job
// pays for: go test ./lib/tick -run Idle -v.
func TestP11_WhatAnIdleMinuteCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		d := c.dispatcher()
		requests := d.Store.(slow).Store
		warm, err := tick.New(tick.Config{Dispatch: d, Metrics: metrics.New(), Owner: "warm", Counts: true})
		if err != nil {
			t.Fatal(err)
		}
		minute := func() {
			time.Sleep(time.Minute)
			if report, err := warm.Turn(t.Context(), tick.Turn{}); err != nil || report.Timers > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
		}
		for range 70 { // until all sweeps have begun
			minute()
		}
		methods := []faulty.Method{faulty.Get, faulty.Peek, faulty.Query, faulty.Write, faulty.WriteEach}
		before := map[faulty.Method]int{}
		for _, m := range methods {
			before[m] = requests.Count(m).Items
			if m == faulty.Query {
				before[m] = requests.Count(m).Calls
			}
		}
		const minutes = 10
		for range minutes {
			minute()
		}
		// Each shard is read and written once, and each of the 64 buckets is looked at by the main pass and by three sweeps. Once an hour each shard looks
		// whether it has counted anything, and whether anything is left to be done of what it has counted.
		want := map[faulty.Method]int{faulty.Get: shards, faulty.Query: 64 * 4, faulty.Write: shards}
		for _, m := range methods {
			got := requests.Count(m).Items
			if m == faulty.Query {
				got = requests.Count(m).Calls
			}
			got = (got - before[m]) / minutes
			t.Logf("%s: %d in an idle minute", m, got)
			if got != want[m] {
				t.Errorf("%s: %d in an idle minute, want %d", m, got, want[m])
			}
		}
		queries, writes := requests.Count(faulty.Query).Calls, requests.Count(faulty.Write).Items+requests.Count(faulty.WriteEach).Items
		for range 60 {
			minute()
		}
		queries, writes = requests.Count(faulty.Query).Calls-queries, requests.Count(faulty.Write).Items+requests.Count(faulty.WriteEach).Items-writes
		if queries != 60*64*4+2*shards || writes != 60*shards {
			t.Errorf("%d queries and %d writes in an idle hour, want %d and %d", queries, writes, 60*64*4+2*shards, 60*shards)
		}
	})
}
