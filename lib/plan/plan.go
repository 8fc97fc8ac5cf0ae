package plan

import (
	"cmp"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/node"
)

// Plan is what a load needs.
type Plan struct {
	Load     Load       `json:"load"`
	Region   string     `json:"region"`
	AsOf     string     `json:"prices_as_of"`
	Quotas   string     `json:"quotas_as_of"`
	Ticks    Ticks      `json:"ticks"`
	Workers  Workers    `json:"workers"`
	API      API        `json:"api"`
	Queues   Queues     `json:"queues"`
	Table    Table      `json:"table"`
	Gates    []GateLoad `json:"gates,omitempty"` // the bottleneck among them first
	Settings []Setting  `json:"settings"`        // of the template, that are not its defaults
	Needs    []Need     `json:"quotas_to_raise"`
	Bill     Bill       `json:"bill"`
	Limits   []Limit    `json:"limits"` // in the order in which a growing load comes upon them
	Verdict  Verdict    `json:"verdict"`

	// ObjectsASecond are the payloads and results that are objects, in the busiest minute.
	ObjectsASecond float64 `json:"objects_per_second"`

	adapter Adapter
}

// Bill is that of a month.
type Bill struct {
	Runs     float64       `json:"runs"`
	Lines    []BillLine    `json:"lines"`
	Total    float64       `json:"total"`
	Million  float64       `json:"of_a_million_runs"` // without what a stack costs that does nothing
	Apart    float64       `json:"if_no_messages_share_a_request"`
	Warm     float64       `json:"warm_once"`      // for WarmWrites and WarmReads, beside the month
	Capacity cost.Capacity `json:"table_capacity"` // of the line "DynamoDB"
}

// BillLine is a line of it, in dollars at list prices, without what is free.
type BillLine struct {
	What    string  `json:"what"`
	Dollars float64 `json:"dollars"`
}

// Make makes the plan of a load that Check has found good.
func Make(l Load, t *cost.Tariff, u cost.Units, a Adapter) *Plan {
	p := &Plan{Region: t.Region, AsOf: t.AsOf, Quotas: QuotasRead, adapter: a}
	d := demandOf(l, t, u, a)
	p.Load = l
	p.Ticks, p.Workers, p.API, p.Table, p.ObjectsASecond = d.ticks, d.workers.rounded(), d.api.rounded(), d.table, d.objects
	p.Gates = gatesFor(l, d.workers.Seconds)
	p.Queues = queuesFor(l, d.busiest, node.SharedLookAhead.Seconds())
	p.Bill = billFor(l, t, u, takes(l, u, l.Rate), p.Table, d.shards)
	p.Settings = settingsFor(l, p, t)
	for _, s := range p.Settings {
		switch s.Name {
		case warmWrites:
			p.Bill.Warm += t.Warm(s.Value-newWrites.Value, 0)
		case warmReads:
			p.Bill.Warm += t.Warm(0, s.Value-newReads.Value)
		}
	}
	p.Needs = needsFor(p)
	for i, key := range p.Table.Keys {
		p.Table.Keys[i].Reached = reached(l, t, u, a, func(d demand) float64 { return d.table.units(key.Key) }, key.Limit)
	}
	slices.SortStableFunc(p.Table.Keys, func(a, b Key) int { return cmp.Compare(a.Reached, b.Reached) }) // what bends first at the beginning
	p.Limits = limitsFor(l, p, t, u)
	p.Verdict = verdictFor(p)
	return p
}

// utilization is how much of a provisioned capacity is meant to be used: what DynamoDB's auto scaling aims at by default.
const utilization = 0.7

func billFor(l Load, t *cost.Tariff, u cost.Units, used cost.Amount, table Table, shards int) Bill {
	b := Bill{Runs: l.Rate * cost.SecondsAMonth}
	t = t.Taking(l.Duration)
	month := cost.Amount{}.Plus(b.Runs, used)
	for _, line := range t.Bill(month) {
		b.Lines = append(b.Lines, BillLine{line.What, line.Dollars})
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
	b.Lines = append(b.Lines, BillLine{"definitions of jobs, stored", cost.Sum(jobs)}, BillLine{"the stack itself", stack})
	for _, line := range b.Lines {
		b.Total += line.Dollars
	}
	// What messages share, they share only if they come together.
	apart, lone := used, u.Of(cost.Cron, cost.Lone)
	attempts := 1 + l.Retries
	apart.SQS, apart.Worker, apart.Logs = lone.SQS*attempts, lone.Worker*attempts, lone.Logs*attempts
	apart.API = l.asked()
	b.Apart = b.Total + cost.Sum(t.Bill(cost.Amount{}.Plus(b.Runs, apart))) - cost.Sum(t.Bill(month))
	b.Capacity = t.Compare(month.Writes+month.Shared, month.Reads, table.Writes/utilization, table.Reads/utilization)
	return b
}
