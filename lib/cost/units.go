package cost

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// Amount is what something has taken of what AWS charges for.
type Amount struct {
	Writes  float64 `json:"writes"`  // DynamoDB write units, but for those shared
	Shared  float64 `json:"shared"`  // of the minute and its shards
	Index   float64 `json:"index"`   // of the shared: those that list runs by time, in one partition of their tenant
	Reads   float64 `json:"reads"`   // DynamoDB read units
	Storage float64 `json:"storage"` // GB-months in DynamoDB until what was written expires, but for what is kept
	Kept    float64 `json:"kept"`    // GB-months of what is kept for a retention, at one of CountedRetention days
	SQS     float64 `json:"sqs"`     // requests
	Worker  float64 `json:"worker"`  // invocations
	Tick    float64 `json:"tick"`
	API     float64 `json:"api"`
	Objects float64 `json:"objects"` // S3 objects written
	Fetched float64 `json:"fetched"` // and read
	Lying   float64 `json:"lying"`   // GB-months in S3, at the same retention
	Logs    float64 `json:"logs"`    // bytes
}

// CountedRetention is for how many days the runs were kept that were counted.
const CountedRetention = 30

// Plus is a + n*b.
func (a Amount) Plus(n float64, b Amount) Amount {
	return Amount{
		Writes: a.Writes + n*b.Writes, Shared: a.Shared + n*b.Shared, Index: a.Index + n*b.Index, Reads: a.Reads + n*b.Reads,
		Storage: a.Storage + n*b.Storage, Kept: a.Kept + n*b.Kept, SQS: a.SQS + n*b.SQS,
		Worker: a.Worker + n*b.Worker, Tick: a.Tick + n*b.Tick, API: a.API + n*b.API,
		Objects: a.Objects + n*b.Objects, Fetched: a.Fetched + n*b.Fetched, Lying: a.Lying + n*b.Lying, Logs: a.Logs + n*b.Logs,
	}
}

// Retained is the same for runs that are kept for so many days.
func (a Amount) Retained(days float64) Amount {
	a.Kept *= days / CountedRetention
	a.Lying *= days / CountedRetention
	return a
}

// Kind is a kind of run that was counted.
type Kind string

// The kinds that were counted.
const (
	Cron      Kind = "cron"
	Dense     Kind = "cron, dense" // so many that each bucket of their minute has more than a page
	Immediate Kind = "immediate"
	Keyed     Kind = "immediate, with a key"
	Large     Kind = "immediate, 2 KB in and out"
	Ahead     Kind = "one-off, ahead"
	Retried   Kind = "retry, once"
	Dead      Kind = "dead, after 3"
)

// How runs come: one alone in its ten minutes, or so many at once that ten share what can be shared.
const (
	Lone = 1
	Full = 10
)

// Run is what one run of a kind takes, beyond what its minute would have taken.
type Run struct {
	Kind  Kind   `json:"run"`
	Batch int    `json:"batch"`
	Takes Amount `json:"takes"`
}

// Units is what was counted.
type Units struct {
	Idle    Amount `json:"idle"`    // a minute in which nothing is due, over 16 shards
	Metrics int    `json:"metrics"` // that such a minute tells CloudWatch
	Busy    int    `json:"busy"`    // and one with runs of all kinds
	Runs    []Run  `json:"runs"`
}

//go:embed units.json
var counted []byte

// Counted gives what was counted of this build.
func Counted() Units {
	var u Units
	if err := json.Unmarshal(counted, &u); err != nil {
		panic("units.json, which tests/cost writes: " + err.Error())
	}
	return u
}

// Of gives what a run of a kind takes.
func (u Units) Of(kind Kind, batch int) Amount {
	for _, r := range u.Runs {
		if r.Kind == kind && r.Batch == batch {
			return r.Takes
		}
	}
	panic(fmt.Sprintf("nothing was counted of %q in batches of %d", kind, batch))
}
