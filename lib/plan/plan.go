package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What a plan is made of, as the API and the command line give it.
type (
	Plan     = wire.CapacityPlan
	Ticks    = wire.CapacityTicks
	Workers  = wire.CapacityWorkers
	API      = wire.CapacityAPI
	Queues   = wire.CapacityQueues
	Table    = wire.CapacityTable
	Key      = wire.CapacityKey
	Gate     = wire.CapacityGate
	Pass     = wire.CapacityPass
	GateLoad = wire.CapacityGateLoad
	Setting  = wire.CapacityParameter
	Quota    = wire.CapacityQuota
	Need     = wire.CapacityNeed
	Bill     = wire.CapacityBill
	BillLine = wire.CapacityBillLine
	Limit    = wire.CapacityLimit
	Verdict  = wire.CapacityVerdict
	Reason   = wire.CapacityReason
)

// Make makes the plan of a load that Check has found good.
func Make(l Load, t *cost.Tariff, u cost.Units, a Adapter) *Plan {
	p := &Plan{Load: l.told(), Region: t.Region, AsOf: t.AsOf, Quotas: QuotasRead, Prices: pricesOf(t)}
	d := demandOf(l, t, u, a)
	p.Ticks, p.Workers, p.API, p.Table, p.ObjectsASecond = d.ticks, rounded(d.workers), roundedAPI(d.api), d.table, d.objects
	p.Table.Records = l.Rate * Day * records(l, u)
	p.Gates = gatesFor(l, d.workers.Seconds)
	p.Queues = queuesFor(l, d.busiest, node.SharedLookAhead.Seconds())
	p.Settings = settingsFor(l, p, t)
	for i, key := range p.Table.Keys {
		p.Table.Keys[i].Reached = reached(l, t, u, a, func(d demand) float64 { return unitsOf(d.table, key.Key) }, key.Limit)
	}
	// What no load reaches is no limit.
	p.Table.Keys = slices.DeleteFunc(p.Table.Keys, func(k Key) bool { return math.IsInf(k.Reached, 1) })
	slices.SortStableFunc(p.Table.Keys, func(a, b Key) int { return cmp.Compare(a.Reached, b.Reached) }) // what bends first at the beginning
	p.Needs = needsFor(p)
	bends := limitsFor(l, p, t, u, a)
	for i, b := range bends {
		p.Limits = append(p.Limits, b.Limit)
		if p.First == nil && b.Exceeds {
			p.First = &bends[i].Limit
		}
	}
	p.Next = nextFor(l, p, t, u, a, bends)
	p.Verdict = verdictFor(p, bends)
	p.Bill = billFor(l, t, u, p.Table, d.shards, p.Verdict.Stacks)
	for _, s := range p.Settings { // each table is new
		switch s.Name {
		case warmWrites:
			p.Bill.Warm += t.Warm(s.Value-newWrites.Value*float64(p.Verdict.Stacks), 0)
		case warmReads:
			p.Bill.Warm += t.Warm(0, s.Value-newReads.Value*float64(p.Verdict.Stacks))
		}
	}
	return p
}

// utilization is how much of a provisioned capacity is meant to be used: what DynamoDB's auto scaling aims at by default.
const utilization = 0.7

// billFor is that of all the stacks that share the load.
func billFor(l Load, t *cost.Tariff, u cost.Units, table Table, shards, stacks int) Bill {
	b := Bill{Runs: l.Rate * cost.SecondsAMonth}
	t = t.Taking(l.Duration)
	month := cost.Amount{}.Plus(b.Runs, takes(l, u, l.Rate, cost.Full))
	unshared := t.Bill(cost.Amount{}.Plus(b.Runs, takes(l, u, l.Rate, cost.Lone)))
	for i, line := range t.Bill(month) { // the same services, in the same order
		b.Lines = append(b.Lines, BillLine{What: line.What, Dollars: line.Dollars, Apart: unshared[i].Dollars})
		b.Million += line.Dollars / b.Runs * 1e6
	}
	jobs := t.Bill(cost.Amount{Kept: table.JobsGB})
	idle := u.Idle
	idle.Shared *= float64(shards) / t.Stack.Shards
	idle.Reads *= float64(shards) / t.Stack.Shards
	stack := 0.0
	for _, line := range t.IdleMonth(idle, max(u.Metrics, u.Busy)) {
		stack += line.List
	}
	alone := func(what string, dollars float64) {
		b.Lines = append(b.Lines, BillLine{What: what, Dollars: dollars, Apart: dollars})
	}
	alone("definitions of jobs, stored", cost.Sum(jobs))
	if stacks == 1 {
		alone("the stack itself", stack)
	} else {
		alone(fmt.Sprintf("the %s stacks themselves", Count(float64(stacks))), stack*float64(stacks))
	}
	for _, line := range b.Lines {
		b.Total += line.Dollars
		b.Apart += line.Apart
	}
	b.Capacity = wire.CapacityOfTable(t.Compare(month.Writes+month.Shared, month.Reads, table.Writes/utilization, table.Reads/utilization))
	return b
}

// pricesOf are all that a bill is made with.
func pricesOf(t *cost.Tariff) (all []wire.CapacityPrice) {
	for _, p := range t.Prices {
		price := wire.CapacityPrice{What: p.What, Dollars: p.Dollars, Per: p.Per, Page: p.Page}
		for _, tier := range p.Tiers {
			price.Tiers = append(price.Tiers, wire.CapacityTier(tier))
		}
		all = append(all, price)
	}
	return all
}
