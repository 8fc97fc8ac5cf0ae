package cost

import (
	"fmt"
	"math"
)

// Line is one of a bill.
type Line struct {
	What    string
	Dollars float64
}

// Sum adds a bill up.
func Sum(bill []Line) (all float64) {
	for _, l := range bill {
		all += l.Dollars
	}
	return all
}

// Seconds is what invocations of a function take in GB-seconds: each is rounded up to a millisecond.
func (t *Tariff) Seconds(function string, times, ms float64) float64 {
	return times * t.Stack.MemoryMB[function] / 1024 * math.Ceil(ms) / 1000
}

// The services that a bill of runs has lines of.
const (
	DynamoDB   = "DynamoDB"
	Stored     = "stored"
	SQS        = "SQS"
	Lambda     = "Lambda"
	APIGateway = "API Gateway"
	Logs       = "logs"
	S3         = "S3"
)

// Bill is what so much of runs costs, by service, without what is free.
func (t *Tariff) Bill(used Amount) []Line {
	calls := used.Worker + used.API + used.Tick
	lies := used.Storage + used.Kept
	return []Line{
		{DynamoDB, t.Dollars(write, used.Writes+used.Shared) + t.Dollars(read, used.Reads)},
		{Stored, t.Dollars(storage, lies) + t.Dollars(recovery, lies)},
		{SQS, t.Dollars(requests, used.SQS) + t.Dollars(fair, used.SQS)},
		{Lambda, t.Dollars(invocations, calls) + t.Dollars(gbSeconds, t.Seconds("worker", used.Worker, t.Assume(WorkerMS)+t.Assume(TargetMS))+
			t.Seconds("api", used.API, t.Assume(APIMS)))},
		{APIGateway, t.Dollars(gateway, used.API)},
		{Logs, t.Dollars(logs, (used.Logs+calls*t.Assume(LogBytes))/(1<<30))},
		{S3, t.Dollars(puts, used.Objects) + t.Dollars(gets, used.Fetched) + t.Dollars(objects, used.Lying)},
	}
}

// MinutesAMonth is how often a stack ticks in a month of 30 days.
const MinutesAMonth = 30 * 24 * 60

// SecondsAMonth are those of the same month.
const SecondsAMonth = 60 * MinutesAMonth

// IdleLine is a line of the bill of a month: how much of something is used, what that costs by the list, and beyond what is free for ever.
type IdleLine struct {
	What   string
	Used   float64
	Unit   string
	List   float64
	Beyond float64
}

// IdleMonth is the bill of a month in which nothing runs, of a stack whose minutes take so much and which tells so many metrics.
func (t *Tariff) IdleMonth(minute Amount, told int) []IdleLine {
	line := func(what, unit, price string, of float64) IdleLine {
		return IdleLine{what, of, unit, t.Dollars(price, of), t.BeyondFree(price, of)}
	}
	month := Amount{}.Plus(MinutesAMonth, minute)
	return []IdleLine{
		line("EventBridge Scheduler, a tick a minute", "invocations", ticks, MinutesAMonth),
		line("Lambda, ticks", "requests", invocations, month.Tick),
		line("Lambda, ticks", "GB-seconds", gbSeconds, t.Seconds("tick", month.Tick, t.Assume(TickMS))),
		line("DynamoDB, ticks", "write units", write, month.Writes+month.Shared),
		line("DynamoDB, ticks", "read units", read, month.Reads),
		line(fmt.Sprintf("SQS, Lambda asking %.0f queues for messages", t.Stack.Mappings), "requests", requests, t.Stack.Mappings*t.Assume(Polls)),
		line("CloudWatch Logs", "GB", logs, (month.Logs+month.Tick*t.Assume(LogBytes))/(1<<30)),
		line("CloudWatch, metrics", "metrics", metrics, float64(told)),
		line("CloudWatch, alarms", "metrics looked at", alarms, t.Stack.Alarms),
		line("CloudWatch, dashboard", "dashboard", dashboards, t.Stack.Dashboards),
	}
}

// Warm is what it costs, once, to have a table ready for so many more units a second: taken as an hour of as much provisioned capacity.
func (t *Tariff) Warm(writes, reads float64) float64 {
	return t.Dollars(provisionedWrite, max(0, writes)) + t.Dollars(provisionedRead, max(0, reads))
}

// Capacity compares the two ways to pay for a table's reads and writes, in dollars of a month.
type Capacity struct {
	OnDemand    float64
	Provisioned float64
	BreakEven   float64 // from which use of what is provisioned that is the cheaper one, for writes
}

// Compare is a month of so many units, where provisioned capacity is for so many units a second and paid for each hour, used or not.
func (t *Tariff) Compare(writes, reads, writesASecond, readsASecond float64) Capacity {
	const hours = MinutesAMonth / 60
	return Capacity{
		OnDemand:    t.Dollars(write, writes) + t.Dollars(read, reads),
		Provisioned: t.Dollars(provisionedWrite, math.Ceil(writesASecond)*hours) + t.Dollars(provisionedRead, math.Ceil(readsASecond)*hours),
		BreakEven:   t.Dollars(provisionedWrite, 1) / t.Dollars(write, 3600),
	}
}
