package plan

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// What a run takes of partitions that others share, in units. tests/cost counts their sum; which item takes them is the protocol's.
const (
	timerWrites = 1 // the timer that wakes for it, in the bucket of its minute
	runWrites   = 3 // its claim, its start and its end, in the partition of its job
	claimReads  = 1 // its job, read strongly by the tick
)

// Day is one in seconds.
const Day = 24 * 60 * minute

// partitionGB is how large a partition of DynamoDB grows before it is split.
const partitionGB = 10

// crowded tells whether so many runs a second are more than a page for each bucket of their minute.
func crowded(rate float64) bool { return rate*60/timer.Buckets > tick.PageSize }

// records is how many a run leaves, as they were counted: its own, and of its timers those that it does not share.
func records(l Load, u cost.Units) float64 {
	timers := func(kind cost.Kind) float64 { return u.Of(kind, cost.Full).Writes - runWrites }
	return 1 + l.fires()*timers(cost.Cron) + l.OnDemand*timers(cost.Immediate) + l.Ahead*timers(cost.Ahead)
}

// definitions is what a fire takes for definitions that no process remembers: the worker reads one, and so does the first sweep, which looks
// at the run.
func definitions(l Load) float64 {
	const cheap = 0.5
	if l.Schedules <= job.Remembered {
		return 0
	}
	return cheap * (1 + 1)
}

// takes is what one run of the load takes in a minute with so many runs a second, where it comes with so many others, as they were counted.
func takes(l Load, u cost.Units, rate float64, batch int) cost.Amount {
	var a cost.Amount
	plain := u.Of(cost.Cron, batch)
	fire := plain
	if batch == cost.Full && crowded(rate) { // counted with more jobs than are remembered
		fire = u.Of(cost.Dense, cost.Full)
		many := l
		many.Schedules = job.Remembered + 1
		fire.Reads -= definitions(many)
	}
	fire.Reads += definitions(l)
	a = a.Plus(l.fires(), fire)
	a = a.Plus(l.OnDemand, u.Of(cost.Immediate, batch))
	a = a.Plus(l.Ahead, u.Of(cost.Ahead, batch))
	if batch == cost.Full { // who asks for each by itself shares no request, whatever else is shared
		a.API = l.asked() * l.requests()
	}
	passes := l.passing()
	a.Writes += passes * gateWrites
	a.Reads += passes * gateReads
	a = a.Plus(l.Retries, u.Of(cost.Retried, batch).Plus(-1, plain))
	a = a.Retained(l.Retention.Hours() / 24)

	month := l.Retention.Hours() / 24 / 30
	gb := func(bytes int) float64 { return float64(bytes) / (1 << 30) }
	if asked := l.asked(); l.blob() {
		a.Objects += asked
		a.Fetched += asked * (1 + l.Retries)
		a.Lying += asked * gb(l.Payload) * month
	} else {
		a.Kept += asked * gb(l.Payload) * month
		a.Storage += asked * gb(l.Payload) * timer.Keep.Hours() / 24 / 30 // its timer has it too
	}
	// The end of a run is written with its result: a unit for each KB begun.
	switch record := plain.Kept * (1 << 30); {
	case l.Result > run.MaxResult:
		a.Objects++
		a.Lying += gb(l.Result) * month
	case l.Result > 0:
		a.Writes += math.Ceil((record+float64(l.Result))/1024) - 1
		a.Kept += gb(l.Result) * month
	}
	return a
}

func tableFor(l Load, t *cost.Tariff, a, idle cost.Amount, shards int) Table {
	k := Table{Dense: crowded(l.Peak), WritesOfARun: a.Writes + a.Shared, ReadsOfARun: a.Reads}
	// Ticks write timers and claims ahead, as the minutes go; workers write two for each attempt when runs start and end.
	const attempt = 2
	works := attempt * (1 + l.Retries)
	minute := float64(shards) / t.Stack.Shards / 60
	k.Writes = l.Peak*(k.WritesOfARun-works) + l.starts()*works + idle.Shared*minute
	k.Reads = l.Peak*k.ReadsOfARun + idle.Reads*minute
	k.JobsGB = float64(l.Schedules) * float64(jobSize()) / (1 << 30)
	runs := l.Rate * cost.SecondsAMonth
	k.StoredGB = k.JobsGB + (a.Storage+a.Kept)*runs
	k.ObjectsGB = a.Lying * runs
	k.RunsKept = l.Rate * l.Retention.Seconds()
	k.Partitions = int(math.Ceil(max(k.Writes/keyWrites.Value, k.Reads/keyReads.Value, k.StoredGB/partitionGB, 1)))
	k.Keys = keysFor(l, t, a)
	return k
}

// unitsOf are those of a key.
func unitsOf(k Table, key string) float64 {
	return k.Keys[slices.IndexFunc(k.Keys, func(k Key) bool { return k.Key == key })].Units
}

// keysFor are the partition keys that most of the load falls upon.
func keysFor(l Load, t *cost.Tariff, a cost.Amount) []Key {
	var keys []Key
	add := func(key, what, unit string, perRun float64) {
		if perRun <= 0 {
			return
		}
		limit := keyWrites.Value
		if unit == "read" {
			limit = keyReads.Value
		}
		keys = append(keys, Key{Key: key, What: what, Unit: unit, Units: l.Peak * perRun, Limit: limit})
	}
	tenants := float64(l.Tenants)
	add("ran#TENANT#0", "lists runs by time", "write", a.Index/tenants)
	add(fmt.Sprintf("due#MINUTE#%02d", timer.Buckets-1), fmt.Sprintf("timers, %d buckets of a minute", timer.Buckets), "write", timerWrites/float64(timer.Buckets))
	reads := claimReads + definitions(l)
	add(fmt.Sprintf("job#TENANT#%02d", job.Spread-1), fmt.Sprintf("definitions, %d of a tenant", job.Spread), "read", reads/tenants/job.Spread)
	if l.HotJob > 0 {
		add("run#TENANT#JOB#1", fmt.Sprintf("requests of the busiest job, %d of it", run.Spread), "write", l.HotJob/l.Peak*runWrites/run.Spread)
	}
	gateKeys(l, workersFor(l, t).Seconds, add)
	return keys
}

// jobSize is jobBytes, once.
var jobSize = sync.OnceValue(jobBytes)

// jobBytes is the size of an ordinary job's item, with what DynamoDB adds to each.
func jobBytes() int {
	const overhead = 100 + 42 // of an item that is stored, and the names and numbers beside its value
	def := job.Definition{
		Description: "Daily report to billing",
		Schedule:    &schedule.Spec{Cron: "*/5 * * * *", Timezone: "Europe/Berlin"},
		Target:      target.Spec{HTTP: &target.HTTP{URL: "https://example.org/hook"}},
		Payload:     []byte(`{"report": "daily"}`),
	}.WithDefaults()
	put, err := job.Job{Tenant: "default", Name: "nightly-report-0000001", Generation: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixMilli(), Def: def}.Put(1)
	if err != nil {
		panic("an ordinary job cannot be written: " + err.Error())
	}
	return store.Item{Key: put.Key, Value: put.Value}.Size() + overhead
}
