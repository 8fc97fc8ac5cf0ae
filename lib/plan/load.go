package plan

import (
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Load is what a stack is to carry.
type Load struct {
	Schedules int     `json:"schedules"`
	Rate      float64 `json:"runs_per_second"` // over the month
	Peak      float64 `json:"peak"`            // runs a second in the busiest minute
	AtOnce    float64 `json:"at_once"`         // of that minute's runs, the share that is due in its first second

	// Late is by when these must have started.
	Late time.Duration `json:"late"`

	Duration  time.Duration `json:"duration"`   // of a target
	OnDemand  float64       `json:"on_demand"`  // share of the runs that are asked for, to start at once
	Ahead     float64       `json:"ahead"`      // and of those that are asked for ahead of their time; the rest are fires
	Retries   float64       `json:"retry_rate"` // further attempts a run
	Payload   int           `json:"payload"`    // bytes that a request brings
	Result    int           `json:"result"`     // bytes that a target answers
	Retention time.Duration `json:"retention"`
	Tenants   int           `json:"tenants"`  // that share the load evenly
	Priority  float64       `json:"priority"` // share of the runs that have the most usual priority
	HotJob    float64       `json:"hot_job"`  // runs a second, on demand, of the busiest job

	Gates  []Gate `json:"gates,omitempty"`  // that each tenant has
	Passes []Pass `json:"passes,omitempty"` // who passes them; of a gate without any, all runs do

	Shards  int `json:"shards"`  // 0: as many as the load needs
	Helpers int `json:"helpers"` // ticks at once beside the one by the clock; -1: as many as the load needs
}

// Bounds of a load: beyond them a figure would be a guess about another design.
const (
	mostSchedules = 1_000_000_000
	mostRate      = 10_000_000
	mostTenants   = 1_000_000
	mostPayload   = 256 << 10
)

// Check tells what is wrong with a load, by flag, and what would be right.
func (l Load) Check() error {
	var errs []error
	refuse := func(flag, got, want string) { errs = append(errs, invalid.Field("--"+flag, got, want)) }
	share := func(flag string, v float64) {
		if !(v >= 0 && v <= 1) {
			refuse(flag, fmt.Sprintf("%g%%", v*100), "a share from 0% to 100%")
		}
	}
	if l.Schedules < 0 || l.Schedules > mostSchedules {
		refuse("schedules", Count(float64(l.Schedules)), "0 to 1G, such as 10M")
	}
	if !(l.Rate > 0 && l.Rate <= mostRate) {
		refuse("runs-per-second", Count(l.Rate), "more than 0 and at most 10M, such as 100k, 1.5k or 0.2")
	}
	if !(l.Peak >= l.Rate && l.Peak <= mostRate) {
		refuse("peak", Count(l.Peak), "runs a second in the busiest minute: at least --runs-per-second, and at most 10M")
	}
	share("at-once", l.AtOnce)
	share("on-demand", l.OnDemand)
	share("ahead", l.Ahead)
	if l.OnDemand >= 0 && l.Ahead >= 0 && l.OnDemand+l.Ahead > 1 {
		refuse("ahead", fmt.Sprintf("%g%%", l.Ahead*100), fmt.Sprintf("together with --on-demand at most 100%%, so %g%% or less", 100-l.OnDemand*100))
	}
	if l.OnDemand+l.Ahead < 1 && l.Schedules == 0 {
		refuse("schedules", "0", "how many jobs have a schedule, such as 10M; or --on-demand 100% where none has")
	} else if fires := l.Rate * (1 - l.OnDemand - l.Ahead); fires > float64(l.Schedules) {
		refuse("schedules", Count(float64(l.Schedules)), fmt.Sprintf("at least %s for %s fires a second: a schedule fires once a second at the most", Count(fires), Count(fires)))
	}
	if l.Late < time.Second || l.Late > time.Hour {
		refuse("late", l.Late.String(), "1s to 1h")
	}
	if l.Duration <= 0 || l.Duration > 14*time.Minute {
		refuse("duration", l.Duration.String(), "more than 0s and at most 14m, which is what a worker function has")
	}
	if !(l.Retries >= 0 && l.Retries <= 100) {
		refuse("retry-rate", fmt.Sprint(l.Retries), "further attempts a run, 0 to 100: 5% or 0.05 where one in twenty is tried again")
	}
	if l.Payload < 0 || l.Payload > mostPayload {
		refuse("payload", Bytes(float64(l.Payload)), "0 to 256KB, which is what a request may bring")
	}
	if l.Result < 0 || l.Result > mostPayload {
		refuse("result", Bytes(float64(l.Result)), "0 to 256KB")
	}
	if l.Retention < job.MinRetention || l.Retention > job.MaxRetention {
		refuse("retention", days(l.Retention), fmt.Sprintf("%s to %s", days(job.MinRetention), days(job.MaxRetention)))
	}
	if l.Tenants < 1 || l.Tenants > mostTenants {
		refuse("tenants", fmt.Sprint(l.Tenants), "1 to 1M")
	}
	if !(l.Priority > 1.0/3-0.01 && l.Priority <= 1) {
		refuse("priority", fmt.Sprintf("%g%%", l.Priority*100), "the share of the most usual of three priorities: 34% to 100%")
	}
	if !(l.HotJob >= 0 && l.HotJob <= l.Peak) {
		refuse("hot-job", Count(l.HotJob), "runs a second of one job: 0 up to --peak")
	}
	if l.Shards != 0 && !(timer.Layout{Shards: l.Shards}).Valid() {
		refuse("shards", fmt.Sprint(l.Shards), fmt.Sprintf("a power of two from 1 to %d", timer.Buckets))
	}
	if l.Helpers < -1 || l.Helpers > timer.Buckets {
		refuse("helpers", fmt.Sprint(l.Helpers), fmt.Sprintf("0 to %d", timer.Buckets))
	}
	return errors.Join(append(errs, l.checkGates()...)...)
}

func days(d time.Duration) string { return fmt.Sprintf("%gd", d.Hours()/24) }

// fires is the share of runs that a schedule asks for.
func (l Load) fires() float64 { return max(0, 1-l.OnDemand-l.Ahead) }

// asked is the share that comes by the API.
func (l Load) asked() float64 { return l.OnDemand + l.Ahead }

// claimed is the share that ticks claim. Who asks for a run that is to start at once claims and sends it; ticks only sweep it.
func (l Load) claimed() float64 { return l.fires() + l.Ahead }

// blob tells whether a payload is an object.
func (l Load) blob() bool { return l.Payload > run.MaxInline }

// starts is how many runs a second must start when most do: those of the first second of a minute are spread over Late by then.
func (l Load) starts() float64 {
	late := l.Late.Seconds()
	burst := l.Peak * minute * l.AtOnce / late
	return max(l.Peak, burst+l.Peak*(1-l.AtOnce))
}
