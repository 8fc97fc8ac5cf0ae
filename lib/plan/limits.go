package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// What a limit is of, and so what can be done about it.
const (
	OfSetting = "setting" // a parameter of the template
	OfQuota   = "quota"   // of the account: AWS raises it on request
	OfGate    = "gate"    // a limit that the jobs themselves name
	OfDesign  = "design"  // Belfry's own, or one of AWS that is fixed
)

// bend is a limit, and the parameter of the template that it bounds.
type bend struct {
	Limit
	setting string
	quota   string               // or the quota that it is, by its name
	of      func(demand) float64 // of which it is
}

// chance is the share of the runs that come evenly which may start later than is allowed.
const chance = 0.01

// workersFor gives them as they come out of the formulas; rounded makes whole functions of them.
func workersFor(l Load, t *cost.Tariff) Workers {
	w := Workers{
		Seconds: l.Duration.Seconds() + t.Assume(cost.WorkerMS)/1000,
		Batch:   t.Stack.Batch, Starts: l.starts(),
	}
	attempts := 1 + l.Retries
	// Little's law: so many are busy on average as come in the time that one takes. One that is quick takes the next only so often a second.
	busy := func(runs, batch float64) float64 {
		events := runs * attempts / batch
		return max(events*w.Seconds, events/perFunction.Value)
	}
	// An event has what there is when a function asks. What comes at once fills it; of what comes evenly there is as much as has come while one
	// request waited, which is one run where few come. Functions that are too few would find more, and let it wait for as long as a run takes.
	filled := func(runs float64) float64 { return min(w.Batch, max(1, runs*attempts*l.Priority)) }
	evenly := func(rate float64) float64 { return busy(rate, filled(rate*t.Assume(cost.SQSMS)/1000)) }
	even, once := 1-l.AtOnce, filled(l.Peak*l.AtOnce*minute)
	each := max(w.Seconds, 1/perFunction.Value)
	// What comes evenly comes by chance: more at times than its average.
	staffed := func(rate float64) float64 {
		if rate <= 0 {
			return 0
		}
		return float64(queueing.Staff(evenly(rate)*l.Priority, each, l.Late.Seconds(), chance)) / l.Priority
	}
	// A function that takes longer for an event than a burst may wait begins one of it and no more.
	starts := l.Peak * l.AtOnce * minute / max(l.Late.Seconds(), each)
	w.Mean, w.Even = busy(l.Rate*l.AtOnce, once)+evenly(l.Rate*even), evenly(l.Peak)
	w.Burst = staffed(l.Peak*even) + max(busy(starts, once), busy(l.Peak*l.AtOnce, once))
	// Of the queue of the most usual priority: the functions for what is even are there, since the minutes before need them too.
	usual := evenly(l.Rate*even) * l.Priority
	up := ramp{from: max(pollersFirst.Value, usual), grow: pollers.Value / minute, taken: usual, each: each}
	burst, steady := busy(l.Peak*l.AtOnce*minute, once)*l.Priority, evenly(l.Peak*even)*l.Priority
	up.most = up.enough(w.Burst*l.Priority, burst, steady, l.Late.Seconds())
	w.Burst = up.most / l.Priority
	up.most = whole(up.most) // there is no part of one
	w.From, w.ScalingUp, w.LastStart = min(up.from, up.most), up.full(), up.latest(burst, steady)
	w.Late = w.LastStart > l.latest()
	w.InFlight = max(l.Peak, starts+l.Peak*even) * l.Priority * attempts * w.Seconds
	return w
}

// rounded is how many functions there must be: whole ones.
func rounded(w Workers) Workers {
	for _, v := range []*float64{&w.Mean, &w.Even, &w.Burst, &w.From, &w.InFlight} {
		*v = whole(*v)
	}
	return w
}

// demand is what a load needs, before anything is rounded.
type demand struct {
	shards  int
	busiest cost.Amount // of a run, in the busiest minute
	ticks   Ticks
	workers Workers
	api     API
	table   Table
	objects float64
}

func demandOf(l Load, t *cost.Tariff, u cost.Units, a Adapter) demand {
	d := demand{shards: l.Shards, busiest: takes(l, u, l.Peak, cost.Full)}
	if d.shards == 0 {
		d.shards = shardsFor(l, t, a)
	}
	d.ticks = ticksFor(l, t, a, d.shards, l.Helpers)
	d.workers = workersFor(l, t)
	d.api = apiFor(l, t)
	d.table = tableFor(l, t, d.busiest, u.Idle, d.shards)
	d.objects = l.Peak * d.busiest.Objects
	return d
}

// functions are those of all kinds at once.
func (d demand) functions() float64 {
	return d.workers.Burst + float64(d.ticks.AtOnce) + d.api.Functions
}

// grown is the same load with so many runs a second in its busiest minute, and all else in proportion but the schedules.
func (l Load) grown(peak float64) Load {
	by := peak / l.Peak
	l.Rate, l.HotJob, l.Peak = l.Rate*by, l.HotJob*by, peak
	return l
}

// reached is the least rate of the busiest minute at which a need is more than there may be of it, by making the demand anew for each rate that
// is tried: what does not grow with the load, what grows by steps, and what a run takes more of in a minute that is crowded, are there as they
// are. It is infinite where no rate is too much, and 0 where every rate is.
func reached(l Load, t *cost.Tariff, u cost.Units, a Adapter, need func(demand) float64, most float64) float64 {
	beyond := func(peak float64) bool { return need(demandOf(l.grown(peak), t, u, a)) > most }
	low, high := 1e-6, 1e12
	switch {
	case !beyond(high):
		return math.Inf(1)
	case beyond(low):
		return 0
	}
	for high/low > 1+1e-9 {
		if middle := math.Sqrt(low * high); beyond(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// limitOf is one that is reached at some rate; none where no load reaches it.
func limitOf(l Load, of, page string, assumed bool, reached float64, do, name string, args ...any) []bend {
	if math.IsInf(reached, 1) || reached <= 0 {
		return nil
	}
	return []bend{{Limit: Limit{Name: fmt.Sprintf(name, args...), Of: of, Reached: reached, Times: reached / l.Peak, Exceeds: reached < l.Peak*(1-1e-6), Do: do, Assumed: assumed, Page: page}}}
}

// nextFor is what a load comes upon next that is carried as the plan says: with its parameters, and with the quotas that it wants raised. What the plan
// sets to just what the load takes, as WarmWrites and ApiRate, is no news.
func nextFor(l Load, p *Plan, t *cost.Tariff, u cost.Units, a Adapter, bends []bend) *Limit {
	var left []bend
	raised := func(b bend) bool {
		return b.quota == newAccount.Name || slices.ContainsFunc(p.Needs, func(n Need) bool { return n.Name == b.quota })
	}
	for _, b := range bends {
		if !b.Exceeds && !raised(b) {
			left = append(left, b)
		}
	}
	at := func(need func(demand) float64, most float64) float64 { return reached(l, t, u, a, need, most) }
	for _, s := range p.Settings {
		planned := func(reached float64, assumed bool, what string) {
			for _, b := range limitOf(l, OfSetting, "", assumed, reached, "a greater "+s.Name, "%s, as planned: %s", what, Count(s.Value)) {
				if !b.Exceeds {
					left = append(left, b)
				}
			}
		}
		switch s.Name {
		case "NormalConcurrency":
			planned(at(func(d demand) float64 { return d.workers.Burst * l.Priority }, s.Value), true, "worker functions of a priority")
		case "TickHelpers":
			most := min(1+s.Value, float64(p.Ticks.Shards))
			planned(aim*p.Ticks.Pace*most/l.claimed(), true, "helpers of a tick")
		}
	}
	for _, n := range p.Needs {
		for _, b := range bends {
			if b.quota == n.Name && b.of != nil {
				for _, b := range limitOf(l, OfQuota, n.Page, b.Assumed, at(b.of, n.Needs), b.Do, "%s, raised to %s", n.Name, Count(n.Needs)) {
					if !b.Exceeds {
						left = append(left, b)
					}
				}
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	next := slices.MinFunc(left, func(a, b bend) int { return cmp.Compare(a.Reached, b.Reached) }).Limit
	return &next
}

// limitsFor lists what bends, in the order in which a growing load comes upon it.
func limitsFor(l Load, p *Plan, t *cost.Tariff, u cost.Units, a Adapter) []bend {
	var limits []bend
	add := func(of, page string, assumed bool, reached float64, do, name string, args ...any) {
		limits = append(limits, limitOf(l, of, page, assumed, reached, do, name, args...)...)
	}
	at := func(need func(demand) float64, most float64) float64 { return reached(l, t, u, a, need, most) }
	quota := func(q Quota, assumed bool, need func(demand) float64, do, name string) {
		for _, b := range limitOf(l, OfQuota, q.Page, assumed, at(need, q.Value), do, name, Count(q.Value)) {
			b.quota, b.of = q.Name, need
			limits = append(limits, b)
		}
	}
	ofPriority := func(d demand) float64 { return d.workers.Burst * l.Priority }
	writes := func(d demand) float64 { return d.table.Writes }
	reads := func(d demand) float64 { return d.table.Reads }
	requests := func(d demand) float64 { return d.api.Requests }

	quota(newAccount, true, demand.functions, "raise quota L-B99A9384", "functions at once in a new account: %s")
	add(OfSetting, "", true, at(ofPriority, t.Stack.Workers["normal"]), fmt.Sprintf("NormalConcurrency, up to %s", Count(t.Stack.MostFunctions())),
		"worker functions of a priority, as deployed: %s", Count(t.Stack.Workers["normal"]))
	add(OfSetting, newWrites.Page, false, at(writes, newWrites.Value), "WarmWrites and WarmReads, or let the load grow slowly",
		"writes that a new table is ready for: %s/s", Count(newWrites.Value))
	if claimed := l.claimed(); claimed > 0 {
		one := min(1+t.Stack.Helpers, t.Stack.Shards)
		ticks := func(of, name string, most float64, pace float64, do string) {
			add(of, "", true, aim*pace*most/claimed, do, "%s, %.0f%% spare", fmt.Sprintf(name, Count(most)), (1-aim)*100)
		}
		usual := ticksFor(l, t, a, int(t.Stack.Shards), int(t.Stack.Helpers)).Pace
		ticks(OfSetting, "ticks at once, as deployed: %s", one, usual, "TickHelpers up to one less than Shards")
		if p.Ticks.Shards > int(t.Stack.Shards) {
			ticks(OfSetting, "a tick for each of %s shards", t.Stack.Shards, usual, fmt.Sprintf("Shards up to %d, before the table is made", timer.Buckets))
		}
		most := ticksFor(l, t, a, timer.Buckets, -1).Pace
		ticks(OfDesign, "a tick for each of %s shards", timer.Buckets, most, "a second stack: more buckets would be another layout of the table")
		limits[len(limits)-1].setting = "Shards"
	}
	quota(concurrent, true, demand.functions, "raise quota L-B99A9384", "functions at once in an account: %s")
	add(OfDesign, "", true, at(ofPriority, t.Stack.MostFunctions()), "spread jobs over three priorities; a Pool with belfry worker; a second stack",
		"worker functions of one priority: %s", Count(t.Stack.MostFunctions()))
	limits[len(limits)-1].setting = "NormalConcurrency"
	const provisioned = "a longer time to start, or jitter; provisioned mode of the queue, which the template has not: 1,000 more a minute, for a price; a Pool with belfry worker"
	add(OfDesign, pollers.Page, true, at(func(d demand) float64 { return d.workers.LastStart }, l.latest()), provisioned,
		"scaling up: %s functions of a queue, and %s more a minute", Count(pollersFirst.Value), Count(pollers.Value))
	add(OfDesign, pollersMost.Page, true, at(ofPriority, pollersMost.Value), "provisioned mode, which the template has not; a Pool with belfry worker; a second stack",
		"functions that a queue has at most: %s", Count(pollersMost.Value))
	quota(tableWrites, false, writes, "raise the quota", "writes of a table: %s/s")
	quota(tableReads, false, reads, "raise the quota", "reads of a table: %s/s")
	quota(inFlight, true, func(d demand) float64 { return d.workers.InFlight }, "raise the quota, or spread over priorities", "messages in flight of a queue: %s")
	for _, key := range p.Table.Keys {
		add(OfDesign, keyWrites.Page, false, key.Reached, doAbout(key.Key), "hot key %s, %s: %s units/s", key.Key, key.Unit, Count(key.Limit))
	}
	for _, g := range p.Gates {
		add(OfGate, "", true, g.Reached, "a higher limit, runs that take fewer units or are shorter, or fewer of them", "the gate %s: %d units, always taken", g.Name, g.Limit)
	}
	if p.API.Requests > 0 {
		add(OfSetting, "", false, at(requests, t.Stack.APIRate), "ApiRate and ApiBurst", "requests to the API, as deployed: %s/s", Count(t.Stack.APIRate))
		quota(gatewayRate, false, requests, "more runs in each POST /v1/runs/batch, or raise the quota", "requests to API Gateway: %s/s")
	}
	if p.ObjectsASecond > 0 {
		add(OfDesign, objectWrites.Page, false, at(func(d demand) float64 { return d.objects }, objectWrites.Value), "S3 splits prefixes by itself, in minutes; send IDs and not data",
			"objects written under one prefix: %s/s", Count(objectWrites.Value))
	}
	slices.SortStableFunc(limits, func(a, b bend) int { return cmp.Compare(a.Reached, b.Reached) })
	return limits
}

func doAbout(key string) string {
	switch {
	case len(key) > 4 && key[:4] == "ran#":
		return "share the load among tenants: each has an index of its own"
	case len(key) > 4 && key[:4] == "due#":
		return "a second stack"
	case strings.HasPrefix(key, "gate#"):
		return "several gates, each with a part of the limit, for jobs of their own"
	case len(key) > 4 && key[:4] == "job#":
		return "share the load among tenants: each has " + fmt.Sprint(job.Spread) + " partitions"
	default:
		return fmt.Sprintf("several jobs for the same target: each has %d partitions for requests", run.Spread)
	}
}

// needsFor are the quotas that this load needs more of than there is.
func needsFor(p *Plan) []Need {
	needs := []Need{}
	need := func(q Quota, of float64) {
		if of > q.Value {
			needs = append(needs, Need{CapacityQuota: q, Needs: math.Ceil(of)})
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

const warmWrites, warmReads = "WarmWrites", "WarmReads"

// settingsFor are those that are not as the template has them.
func settingsFor(l Load, p *Plan, t *cost.Tariff) []Setting {
	settings := []Setting{}
	functions := func(name string, usual, need float64) {
		if choice := t.Stack.Choice(need); choice > usual {
			settings = append(settings, Setting{Name: name, Value: choice, Needs: need, Short: choice < need})
		}
	}
	if shards := float64(p.Ticks.Shards); shards != t.Stack.Shards {
		needs := shards
		if p.Ticks.Shards == timer.Buckets && l.Helpers < 0 {
			needs = max(shards, whole(shards*p.Ticks.Seconds/(aim*minute)))
		}
		settings = append(settings, Setting{Name: "Shards", Value: shards, Needs: needs, Short: needs > shards})
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
		settings = append(settings, Setting{Name: "ApiRate", Value: rate, Needs: rate}, Setting{Name: "ApiBurst", Value: 2 * rate, Needs: 2 * rate})
	}
	warm := func(name string, units float64, least Quota) Setting {
		units = math.Ceil(max(units, least.Value))
		return Setting{Name: name, Value: units, Needs: units}
	}
	if p.Table.Writes > newWrites.Value || p.Table.Reads > newReads.Value {
		settings = append(settings, warm(warmWrites, p.Table.Writes, newWrites), warm(warmReads, p.Table.Reads, newReads))
	}
	return settings
}

func apiFor(l Load, t *cost.Tariff) API {
	a := API{Requests: l.Peak * l.asked() * l.requests()}
	if a.Requests > 0 {
		a.Functions = max(a.Requests*t.Assume(cost.APIMS)/1000, a.Requests/perFunction.Value)
	}
	return a
}

// roundedAPI is the same for the functions of the API.
func roundedAPI(a API) API {
	a.Functions = whole(a.Functions)
	return a
}

func queuesFor(l Load, a cost.Amount, ahead float64) Queues {
	return Queues{OfARun: a.SQS, Requests: l.Peak * a.SQS, Messages: l.Peak * l.claimed() * ahead, MaxDelay: ahead, Batch: queue.MaxBatch}
}
