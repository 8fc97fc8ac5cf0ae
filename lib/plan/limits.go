package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// What a limit is of, and so what can be done about it.
const (
	OfSetting = "setting" // a parameter of the template
	OfQuota   = "quota"   // of the account: AWS raises it on request
	OfDesign  = "design"  // Belfry's own, or one of AWS that is fixed
)

// Limit is something that bends as the load grows, everything else of the load being as it is.
type Limit struct {
	Name    string  `json:"name"`
	Of      string  `json:"of"`
	Reached float64 `json:"reached_at"` // runs a second in the busiest minute
	Exceeds bool    `json:"exceeded"`   // by this load
	Do      string  `json:"do"`
	Assumed bool    `json:"assumed"` // the figure rests on assumptions of the price file
}

// Need is a quota that this load needs more of.
type Need struct {
	Quota
	Needs float64 `json:"needs"`
}

// Workers is what the worker functions need.
type Workers struct {
	Seconds   float64 `json:"seconds_of_an_event"`
	Batch     float64 `json:"runs_of_an_event"`
	Starts    float64 `json:"starts_per_second"` // when most start
	Mean      float64 `json:"functions_mean"`    // over the month, by Little's law
	Even      float64 `json:"functions_even"`    // in the busiest minute, were its runs spread over it
	Burst     float64 `json:"functions_burst"`   // with those of its first second
	ScalingUp float64 `json:"seconds_to_scale"`  // from a pause to that many, by what Lambda adds
	InFlight  float64 `json:"messages_in_flight"`
}

func workersFor(l Load, t *cost.Tariff) Workers {
	w := Workers{
		Seconds: l.Duration.Seconds() + t.Assume(cost.WorkerMS)/1000,
		Batch:   t.Stack.Batch, Starts: l.starts(),
	}
	attempts := 1 + l.Retries
	// Little's law: so many are busy on average as come in the time that one takes. One that is quick takes the next only so often a second.
	busy := func(rate float64) float64 {
		events := rate * attempts / w.Batch
		return whole(max(events*w.Seconds, events/perFunction.Value))
	}
	w.Mean, w.Even, w.Burst = busy(l.Rate), busy(l.Peak), busy(w.Starts)
	const first = 5 // that a queue begins with
	most := w.Burst * l.Priority
	w.ScalingUp = whole(max(0, most-first) / pollers.Value * 60)
	w.InFlight = whole(w.Starts * l.Priority * attempts * w.Seconds)
	return w
}

// whole rounds up, but not for what is left of a sum of fractions.
func whole(v float64) float64 { return math.Ceil(v * (1 - 1e-9)) }

// limitsFor lists what bends, in the order in which a growing load comes upon it.
func limitsFor(l Load, p *Plan, t *cost.Tariff) []Limit {
	var limits []Limit
	add := func(of string, assumed bool, reached float64, do, name string, args ...any) {
		if reached <= 0 || math.IsInf(reached, 0) || math.IsNaN(reached) {
			return
		}
		limits = append(limits, Limit{Name: fmt.Sprintf(name, args...), Of: of, Reached: reached, Exceeds: reached < l.Peak, Do: do, Assumed: assumed})
	}
	// at is the load at which something that grows with it in proportion has grown from used to most.
	at := func(used, most float64) float64 { return l.Peak * most / used }

	w, k, table := p.Workers, p.Ticks, p.Table
	functions := w.Burst + float64(k.AtOnce) + p.API.Functions
	add(OfQuota, true, at(functions, newAccount.Value), "raise quota L-B99A9384",
		"functions at once in a new account: %s", Count(newAccount.Value))
	add(OfSetting, true, at(w.Burst*l.Priority, t.Stack.Workers["normal"]), fmt.Sprintf("NormalConcurrency, up to %s", Count(t.Stack.MostFunctions())),
		"worker functions of a priority, as deployed: %s", Count(t.Stack.Workers["normal"]))
	add(OfSetting, false, at(table.Writes, newWrites.Value), "WarmWrites and WarmReads, or let the load grow slowly",
		"writes that a new table is ready for: %s/s", Count(newWrites.Value))
	if claimed := l.fires() + l.Ahead; claimed > 0 {
		one := min(1+t.Stack.Helpers, t.Stack.Shards)
		usual := ticksFor(l, t, p.adapter, int(t.Stack.Shards), int(t.Stack.Helpers))
		add(OfSetting, true, usual.Pace/claimed, "nothing: its helpers take part", "one tick alone, %d MB", int(t.Stack.MemoryMB["tick"]))
		add(OfSetting, true, usual.Pace*one/claimed, "TickHelpers up to one less than Shards", "ticks at once, as deployed: %s", Count(one))
		if k.Shards > int(t.Stack.Shards) {
			add(OfSetting, true, usual.Most/claimed, fmt.Sprintf("Shards up to %d, before the table is made", timer.Buckets), "a tick for each of %s shards", Count(t.Stack.Shards))
		}
		most := ticksFor(l, t, p.adapter, timer.Buckets, -1)
		add(OfDesign, true, most.Most/claimed, "a second stack: more buckets would be another layout of the table", "a tick for each of %d shards", timer.Buckets)
	}
	add(OfQuota, true, at(functions, concurrent.Value), "raise quota L-B99A9384", "functions at once in an account: %s", Count(concurrent.Value))
	add(OfSetting, true, at(w.Burst*l.Priority, t.Stack.MostFunctions()), "spread jobs over three priorities; a Pool with belfry worker; a second stack",
		"worker functions of one priority: %s", Count(t.Stack.MostFunctions()))
	add(OfQuota, false, at(table.Writes, tableWrites.Value), "raise the quota", "writes of a table: %s/s", Count(tableWrites.Value))
	add(OfQuota, false, at(table.Reads, tableReads.Value), "raise the quota", "reads of a table: %s/s", Count(tableReads.Value))
	add(OfQuota, true, at(w.InFlight, inFlight.Value), "raise the quota, or spread over priorities", "messages in flight of a queue: %s", Count(inFlight.Value))
	for _, key := range table.Keys {
		add(OfDesign, false, key.Reached, doAbout(key.Key), "hot key %s, %s: %s units/s", key.Key, key.Unit, Count(key.Limit))
	}
	if p.API.Requests > 0 {
		add(OfSetting, false, at(p.API.Requests, t.Stack.APIRate), "ApiRate and ApiBurst", "requests to the API, as deployed: %s/s", Count(t.Stack.APIRate))
		add(OfQuota, false, at(p.API.Requests, gatewayRate.Value), "more runs in each POST /v1/runs/batch, or raise the quota", "requests to API Gateway: %s/s", Count(gatewayRate.Value))
	}
	if p.ObjectsASecond > 0 {
		add(OfDesign, false, at(p.ObjectsASecond, objectWrites.Value), "S3 splits prefixes by itself, in minutes; send IDs and not data", "objects written under one prefix: %s/s", Count(objectWrites.Value))
	}
	slices.SortStableFunc(limits, func(a, b Limit) int { return cmp.Compare(a.Reached, b.Reached) })
	return limits
}

func doAbout(key string) string {
	switch {
	case len(key) > 4 && key[:4] == "ran#":
		return "share the load among tenants: each has an index of its own"
	case len(key) > 4 && key[:4] == "due#":
		return "a second stack"
	case len(key) > 4 && key[:4] == "job#":
		return "share the load among tenants: each has " + fmt.Sprint(job.Spread) + " partitions"
	default:
		return fmt.Sprintf("several jobs for the same target: each has %d partitions for requests", run.Spread)
	}
}

// needsFor are the quotas that this load needs more of than there is.
func needsFor(p *Plan) []Need {
	var needs []Need
	need := func(q Quota, of float64) {
		if of > q.Value {
			needs = append(needs, Need{q, math.Ceil(of)})
		}
	}
	// A tenth more than what is expected: a quota that is used up refuses, and what is refused is late.
	const spare = 1.1
	need(concurrent, spare*(p.Workers.Burst+float64(p.Ticks.AtOnce)+p.API.Functions))
	need(tableWrites, spare*p.Table.Writes)
	need(tableReads, spare*p.Table.Reads)
	need(inFlight, spare*p.Workers.InFlight)
	need(gatewayRate, spare*p.API.Requests)
	return needs
}

// Setting is a parameter of the template.
type Setting struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Short bool    `json:"short"` // more is needed than can be set
}

// settingsFor are those that are not as the template has them.
func settingsFor(l Load, p *Plan, t *cost.Tariff) []Setting {
	var settings []Setting
	functions := func(name string, usual, need float64) {
		if choice := t.Stack.Choice(need); choice > usual {
			settings = append(settings, Setting{name, choice, choice < need})
		}
	}
	if shards := float64(p.Ticks.Shards); shards != t.Stack.Shards {
		settings = append(settings, Setting{"Shards", shards, !p.Ticks.Enough})
	}
	functions("TickHelpers", t.Stack.Helpers, float64(p.Ticks.Helpers))
	// Named after the priority that most jobs have; of the others each needs its part.
	functions("NormalConcurrency", t.Stack.Workers["normal"], math.Ceil(p.Workers.Burst*l.Priority))
	if rest := math.Ceil(p.Workers.Burst * (1 - l.Priority) / 2); rest > 0 {
		functions("HighConcurrency", t.Stack.Workers["high"], rest)
		functions("LowConcurrency", t.Stack.Workers["low"], rest)
	}
	if p.API.Requests > t.Stack.APIRate {
		rate := math.Ceil(p.API.Requests)
		settings = append(settings, Setting{"ApiRate", rate, false}, Setting{"ApiBurst", 2 * rate, false})
	}
	if p.Table.Writes > newWrites.Value || p.Table.Reads > newReads.Value {
		settings = append(settings, Setting{"WarmWrites", math.Ceil(max(p.Table.Writes, newWrites.Value)), false},
			Setting{"WarmReads", math.Ceil(max(p.Table.Reads, newReads.Value)), false})
	}
	return settings
}

// API is what callers need.
type API struct {
	Requests  float64 `json:"requests_per_second"`
	Functions float64 `json:"functions"`
}

func apiFor(l Load, t *cost.Tariff) API {
	a := API{Requests: l.Peak * l.asked() / cost.Full}
	if a.Requests > 0 {
		a.Functions = math.Ceil(max(a.Requests*t.Assume(cost.APIMS)/1000, a.Requests/perFunction.Value))
	}
	return a
}

// Queues is what SQS carries.
type Queues struct {
	OfARun   float64 `json:"requests_of_a_run"`
	Requests float64 `json:"requests_per_second"`
	Messages float64 `json:"messages_waiting"` // for their second: claimed ahead, with a delay
	MaxDelay float64 `json:"longest_delay_seconds"`
	Batch    int     `json:"messages_of_a_request"`
}

func queuesFor(l Load, a cost.Amount, ahead float64) Queues {
	return Queues{OfARun: a.SQS, Requests: l.Peak * a.SQS, Messages: l.Peak * (l.fires() + l.Ahead) * ahead, MaxDelay: ahead, Batch: queue.MaxBatch}
}
