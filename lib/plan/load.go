package plan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cost"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Load is what a stack is to carry, as wire.CapacityLoad says.
type Load struct {
	Schedules int
	Rate      float64 // runs a second over the month
	Peak      float64 // runs a second in the busiest minute
	AtOnce    float64 // of that minute's runs, the share that is due in its first second
	Late      time.Duration
	Duration  time.Duration
	OnDemand  float64
	Ahead     float64
	Together  int     // runs that a request to the API asks for
	Retries   float64 // further attempts a run
	Payload   int     // bytes
	Result    int     // bytes
	Retention time.Duration
	Tenants   int
	Priority  float64
	HotJob    float64 // runs a second
	Gates     []Gate
	Passes    []Pass
	Shards    int // 0: as many as the load needs
	Helpers   int // -1: as many as the load needs
}

// Usual is the load of which nothing is said: what runs, and how often, is left to say.
func Usual(t *cost.Tariff) Load {
	return Load{AtOnce: 1, Late: time.Duration(t.Stack.LateAlarm * float64(time.Second)), Duration: time.Duration(t.Assume(cost.TargetMS) * float64(time.Millisecond)),
		Payload: 40, Retention: job.DefaultRetention, Together: 1, Tenants: 1, Priority: 1, Helpers: -1}
}

// told is the load in the form of an answer.
func (l Load) told() wire.CapacityLoad {
	return wire.CapacityLoad{Schedules: l.Schedules, Rate: l.Rate, Daily: l.Rate * Day, Peak: l.Peak, AtOnce: l.AtOnce, Late: schedule.Duration(l.Late), Duration: schedule.Duration(l.Duration),
		OnDemand: l.OnDemand, Ahead: l.Ahead, Together: l.Together, Retries: l.Retries, Payload: l.Payload, Result: l.Result, Retention: schedule.Duration(l.Retention), Tenants: l.Tenants,
		Priority: l.Priority, HotJob: l.HotJob, Gates: l.Gates, Passes: l.Passes, Shards: l.Shards, Helpers: l.Helpers}
}

// Asker is how somebody asks, which is how he is told what is wrong.
type Asker struct {
	Name  func(flag string) string // of a field
	Share func(v float64) string
	Daily bool // he has said how many runs there are in a day, not in a second
}

// Typist asks by the flags of the command line.
func Typist(daily bool) Asker {
	return Asker{func(flag string) string { return "--" + flag }, func(v float64) string { return fmt.Sprintf("%g%%", v*100) }, daily}
}

// caller asks by the query of the API.
func caller(daily bool) Asker {
	return Asker{func(flag string) string { return strings.ReplaceAll(flag, "-", "_") }, func(v float64) string { return fmt.Sprint(v) }, daily}
}

// rate names how many runs there are, in his terms, and how many of these are one a second.
func (a Asker) rate() (flag string, times float64) {
	if a.Daily {
		return "runs-per-day", Day
	}
	return "runs-per-second", 1
}

// Bounds of a load: beyond them a figure would be a guess about another design.
const (
	mostSchedules = 1_000_000_000
	mostRate      = 10_000_000
	mostTenants   = 1_000_000
	mostPayload   = 256 << 10
	mostTogether  = 1000

	// One run in a month. Below it there is nothing to plan, and figures that go by it would leave what a number can hold.
	leastRate  = 1.0 / cost.SecondsAMonth
	leastShare = 1e-6
)

// Check tells what is wrong with a load, by the names that who asks has given, and what would be right.
func (l Load) Check(by Asker) error {
	var errs []error
	refuse := func(flag, got, want string) { errs = append(errs, invalid.Field(by.Name(flag), got, want)) }
	share := func(flag string, v float64) {
		if !(v >= 0 && v <= 1) {
			refuse(flag, by.Share(v), fmt.Sprintf("a share from %s to %s", by.Share(0), by.Share(1)))
		}
	}
	rate, times := by.rate()
	if l.Schedules < 0 || l.Schedules > mostSchedules {
		refuse("schedules", fmt.Sprint(l.Schedules), "0 to 1G")
	}
	rated := l.Rate >= leastRate*(1-1e-9) && l.Rate <= mostRate // else what goes by it says nothing
	if !rated {
		refuse(rate, digits(l.Rate*times), fmt.Sprintf("at least %.1g, which is a run a month, and at most %s", leastRate*times, Count(mostRate*times)))
	}
	peaked := rated && l.Peak >= l.Rate*(1-1e-9) && l.Peak <= mostRate
	if rated && !peaked {
		refuse("peak", digits(l.Peak), fmt.Sprintf("runs a second in the busiest minute: at least the %s of the average, by %s, and at most 10M", digits(math.Ceil(l.Rate*1e6)/1e6), by.Name(rate)))
	}
	share("at-once", l.AtOnce)
	share("on-demand", l.OnDemand)
	share("ahead", l.Ahead)
	if l.OnDemand >= 0 && l.OnDemand <= 1 && l.Ahead >= 0 && l.Ahead <= 1 && l.OnDemand+l.Ahead > 1+1e-9 {
		refuse("ahead", by.Share(l.Ahead), fmt.Sprintf("together with %s at most %s, so %s or less", by.Name("on-demand"), by.Share(1), by.Share(math.Round((1-l.OnDemand)*1e9)/1e9)))
	}
	if l.asked() > 0 && (l.Together < 1 || l.Together > mostTogether) {
		refuse("runs-in-request", fmt.Sprint(l.Together), fmt.Sprintf("1 to %d runs that a request to the API asks for", mostTogether))
	}
	if rated && l.fires() > 0 && l.Schedules == 0 {
		refuse("schedules", "0", fmt.Sprintf("how many jobs have a schedule; or %s for %s where none has", by.Share(1), by.Name("on-demand")))
	} else if fires := l.Rate * l.fires(); rated && fires > float64(l.Schedules)*(1+1e-9) {
		refuse("schedules", fmt.Sprint(l.Schedules), fmt.Sprintf("at least %.0f for %s fires a second: a schedule fires once a second at the most", math.Ceil(fires*(1-1e-9)), digits(fires)))
	}
	if l.Late < time.Second || l.Late > time.Hour {
		refuse("late", l.Late.String(), "1s to 1h")
	}
	if l.Duration <= 0 || l.Duration > 14*time.Minute {
		refuse("duration", l.Duration.String(), "more than 0s and at most 14m, which is what a worker function has")
	}
	if !(l.Retries >= 0 && l.Retries <= 100) {
		refuse("retry-rate", fmt.Sprint(l.Retries), fmt.Sprintf("further attempts a run, 0 to 100: %s where one in twenty is tried again", by.Share(0.05)))
	}
	if l.Payload < 0 || l.Payload > mostPayload {
		refuse("payload", fmt.Sprint(l.Payload), "0 to 256KB, which is what a request may bring")
	}
	if l.Result < 0 || l.Result > mostPayload {
		refuse("result", fmt.Sprint(l.Result), "0 to 256KB")
	}
	if l.Retention < job.MinRetention || l.Retention > job.MaxRetention {
		refuse("retention", days(l.Retention), fmt.Sprintf("%s to %s", days(job.MinRetention), days(job.MaxRetention)))
	}
	if l.Tenants < 1 || l.Tenants > mostTenants {
		refuse("tenants", fmt.Sprint(l.Tenants), "1 to 1M")
	}
	if !(l.Priority > 1.0/3-0.01 && l.Priority <= 1) {
		refuse("priority", by.Share(l.Priority), fmt.Sprintf("the share of the most usual of three priorities: %s to %s", by.Share(0.34), by.Share(1)))
	}
	if l.HotJob != 0 && !(l.HotJob >= leastRate*(1-1e-9)) || peaked && l.HotJob > l.Peak*(1+1e-9) {
		refuse("hot-job", digits(l.HotJob), fmt.Sprintf("runs a second of one job: 0, or %.1g, which is one a month, up to %s", leastRate, by.Name("peak")))
	}
	if l.Shards != 0 && !(timer.Layout{Shards: l.Shards}).Valid() {
		refuse("shards", fmt.Sprint(l.Shards), fmt.Sprintf("a power of two from 1 to %d", timer.Buckets))
	}
	if l.Helpers < -1 || l.Helpers > timer.Buckets {
		refuse("helpers", fmt.Sprint(l.Helpers), fmt.Sprintf("0 to %d", timer.Buckets))
	}
	return errors.Join(append(errs, l.checkGates(by)...)...)
}

// digits writes a number as it was sent, but for what its reckoning has left behind the twelfth digit.
func digits(v float64) string { return strconv.FormatFloat(v, 'g', 12, 64) }

func days(d time.Duration) string { return fmt.Sprintf("%gd", d.Hours()/24) }

// fires is the share of runs that a schedule asks for.
func (l Load) fires() float64 {
	if fires := 1 - l.OnDemand - l.Ahead; fires > 1e-9 { // 0.7 and 0.2 and 0.1 are all
		return fires
	}
	return 0
}

// asked is the share that comes by the API.
func (l Load) asked() float64 { return l.OnDemand + l.Ahead }

// requests is how many requests to the API a run is asked for by.
func (l Load) requests() float64 { return 1 / float64(max(1, l.Together)) }

// claimed is the share that ticks claim. Who asks for a run that is to start at once claims and sends it; ticks only sweep it.
func (l Load) claimed() float64 { return l.fires() + l.Ahead }

// blob tells whether a payload is an object.
func (l Load) blob() bool { return l.Payload > run.MaxInline }

// latest is how many seconds after it is due a run may start. Functions are reckoned so that the last one starts at that bound: a millionth is left to the
// reckoning.
func (l Load) latest() float64 { return l.Late.Seconds() * (1 + 1e-6) }

// starts is how many runs a second must start when most do: those of the first second of a minute are spread over Late by then.
func (l Load) starts() float64 {
	late := l.Late.Seconds()
	burst := l.Peak * minute * l.AtOnce / late
	return max(l.Peak, burst+l.Peak*(1-l.AtOnce))
}
