package cost

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Tariff is the prices of one region, and what a bill needs beside them.
type Tariff struct {
	Region  string             `json:"region"`
	AsOf    string             `json:"as_of"` // when the prices were read
	Prices  []Price            `json:"prices"`
	Stack   Stack              `json:"stack"`
	Assumed map[string]Assumed `json:"assumed"`
}

// Price is that of one thing.
type Price struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Per     float64 `json:"per"`
	Dollars float64 `json:"dollars"`
	Free    float64 `json:"free"` // a month, for ever and not for the first year
	Page    string  `json:"page"`
	Tiers   []Tier  `json:"tiers,omitempty"` // of a month's volume, ascending
}

// Tier is the price of what is beyond so much in a month.
type Tier struct {
	Above   float64 `json:"above"`
	Dollars float64 `json:"dollars"`
}

// Stack is what template.yaml makes of one.
type Stack struct {
	MemoryMB    map[string]float64 `json:"memory_mb"` // by function
	Mappings    float64            `json:"mappings"`  // queues that Lambda asks
	Alarms      float64            `json:"alarms"`    // metrics that alarms look at
	Dashboards  float64            `json:"dashboards"`
	Batch       float64            `json:"batch"`          // messages of an event
	Workers     map[string]float64 `json:"workers"`        // functions at once, by priority
	Helpers     float64            `json:"helpers"`        // ticks at once beside the one by the clock
	Choices     []float64          `json:"choices"`        // of functions at once, that the parameters for these leave, ascending
	Shards      float64            `json:"shards"`         // of a new table
	TickTimeout float64            `json:"tick_timeout_s"` // seconds
	LateAlarm   float64            `json:"late_alarm_s"`   // seconds by which one run in a hundred may be late
	APIRate     float64            `json:"api_rate"`       // requests a second
}

// MostFunctions is the last of Choices.
func (s Stack) MostFunctions() float64 {
	if len(s.Choices) == 0 {
		return 0
	}
	return s.Choices[len(s.Choices)-1]
}

// Choice is the least of Choices that is enough, or the last one.
func (s Stack) Choice(functions float64) float64 {
	for _, c := range s.Choices {
		if c >= functions {
			return c
		}
	}
	return s.MostFunctions()
}

type field struct {
	name string
	got  float64
}

// fields are those without which nothing can be planned.
func (s Stack) fields() []field {
	all := []field{{"batch", s.Batch}, {"choices", s.MostFunctions()}, {"shards", s.Shards}, {"tick_timeout_s", s.TickTimeout},
		{"late_alarm_s", s.LateAlarm}, {"api_rate", s.APIRate}}
	for _, function := range functions {
		all = append(all, field{"memory_mb." + function, s.MemoryMB[function]})
	}
	for _, priority := range priorities {
		all = append(all, field{"workers." + priority, s.Workers[priority]})
	}
	return all
}

// Assumed stands for what cannot be counted without AWS.
type Assumed struct {
	Value float64 `json:"value"`
	Why   string  `json:"why"`
}

// What is paid for, by the names of prices.json.
const (
	write, read            = "write", "read"
	storage, recovery      = "storage", "recovery"
	provisionedWrite       = "write_hour"
	provisionedRead        = "read_hour"
	requests, fair         = "sqs", "fair"
	invocations, gbSeconds = "call", "gbs"
	gateway                = "api"
	ticks                  = "scheduler"
	logs                   = "logs"
	metrics, alarms        = "metric", "alarm"
	dashboards, traces     = "dashboard", "trace"
	puts, gets, objects    = "put", "get", "object"
)

var priced = []string{write, read, storage, recovery, provisionedWrite, provisionedRead, requests, fair, invocations, gbSeconds, gateway, ticks,
	logs, metrics, alarms, dashboards, traces, puts, gets, objects}

var (
	functions  = []string{"api", "tick", "worker"}
	priorities = []string{"high", "normal", "low"}
)

// The assumptions, by the names of prices.json.
const (
	TargetMS   = "target_ms"
	WorkerMS   = "worker_ms"
	APIMS      = "api_ms"
	TickMS     = "tick_ms"
	LogBytes   = "log_bytes"
	Polls      = "polls"
	DynamoMS   = "dynamo_ms"
	SQSMS      = "sqs_ms"
	ClaimCPUMS = "claim_cpu_ms"
)

// Assumptions are all of them, as pages list them.
var Assumptions = []string{TargetMS, WorkerMS, APIMS, TickMS, LogBytes, Polls, DynamoMS, SQSMS, ClaimCPUMS}

//go:embed prices.json
var listed []byte

// Listed gives the prices that this build brings.
func Listed() *Tariff {
	t, err := ReadTariff(listed)
	if err != nil {
		panic("prices.json: " + err.Error())
	}
	return t
}

// PriceFile is the text of those prices: what a file of one's own begins with.
func PriceFile() []byte { return bytes.Clone(listed) }

// ReadTariff reads a file of prices. The error names every field that is wrong, and what would be right.
func ReadTariff(text []byte) (*Tariff, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	t := new(Tariff)
	if err := decoder.Decode(t); err != nil {
		return nil, fmt.Errorf("%w; want JSON as `belfry plan prices` prints it", err)
	}
	var errs []error
	refuse := func(field, got, want string) { errs = append(errs, invalid.Field(field, got, want)) }
	if t.Region == "" {
		refuse("region", "", "the region that the prices are of, as us-east-1")
	}
	if t.AsOf == "" {
		refuse("as_of", "", "when the prices were read, as November 2026")
	}
	seen := map[string]bool{}
	for i, p := range t.Prices {
		field := fmt.Sprintf("prices[%d]", i)
		if seen[p.Name] || !slices.Contains(priced, p.Name) {
			refuse(field+".name", p.Name, "each of "+strings.Join(priced, ", ")+" once")
		}
		seen[p.Name] = true
		if !(p.Per > 0) {
			refuse(field+".per", fmt.Sprint(p.Per), "of how many the price is: above 0")
		}
		if !(p.Dollars >= 0) {
			refuse(field+".dollars", fmt.Sprint(p.Dollars), "0 or more")
		}
		above := 0.0
		for n, tier := range p.Tiers {
			if !(tier.Above > above) || !(tier.Dollars >= 0) {
				refuse(fmt.Sprintf("%s.tiers[%d]", field, n), fmt.Sprintf("%g dollars above %g", tier.Dollars, tier.Above), "above more than the tier before it, for 0 dollars or more")
			}
			above = tier.Above
		}
		if !(p.Free >= 0) {
			refuse(field+".free", fmt.Sprint(p.Free), "0 or more")
		}
	}
	for _, name := range priced {
		if !seen[name] {
			refuse("prices", "no "+name, "each of "+strings.Join(priced, ", ")+" once")
		}
	}
	for _, f := range t.Stack.fields() {
		if !(f.got > 0) {
			refuse("stack."+f.name, fmt.Sprint(f.got), "what template.yaml has: above 0")
		}
	}
	for _, name := range Assumptions {
		if !(t.Assumed[name].Value > 0) {
			refuse("assumed."+name+".value", fmt.Sprint(t.Assumed[name].Value), "above 0")
		}
	}
	return t, errors.Join(errs...)
}

// Price gives that of a thing.
func (t *Tariff) Price(name string) Price {
	for _, p := range t.Prices {
		if p.Name == name {
			return p
		}
	}
	panic("no price of " + name)
}

// Assume gives what stands for what cannot be counted.
func (t *Tariff) Assume(name string) float64 {
	v, ok := t.Assumed[name]
	if !ok {
		panic("nothing is assumed of " + name)
	}
	return v.Value
}

// Dollars is what a month's amount of something costs, whatever is free.
func (t *Tariff) Dollars(name string, of float64) float64 {
	p := t.Price(name)
	sum, dollars, from := 0.0, p.Dollars, 0.0
	for _, tier := range p.Tiers {
		sum += max(0, min(of, tier.Above)-from) / p.Per * dollars
		dollars, from = tier.Dollars, tier.Above
	}
	return sum + max(0, of-from)/p.Per*dollars
}

// BeyondFree is what it costs in an account that uses nothing else.
func (t *Tariff) BeyondFree(name string, of float64) float64 {
	return t.Dollars(name, max(0, of-t.Price(name).Free))
}

// Taking gives the same prices for targets that take so long.
func (t *Tariff) Taking(target time.Duration) *Tariff {
	other := *t
	other.Assumed = maps.Clone(t.Assumed)
	assumed := other.Assumed[TargetMS]
	assumed.Value = float64(target.Microseconds()) / 1000
	other.Assumed[TargetMS] = assumed
	return &other
}
