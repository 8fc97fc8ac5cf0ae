package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Mix is all that a seed draws before its world begins: what is switched off in it leaves the rest as it was.
//
// Seeds are to differ wildly. So most things are either off in a world or on at a rate of its own: a fault that always comes with all
// the others hides behind them, and a store that fails half of the time never gets far enough to show what fails late.
type Mix struct {
	Start   time.Time     // the true time at the begin
	Length  time.Duration // of the phase with faults
	Shape   Shape
	Latency Latency
	Faults  Faults
	Outages []Outage // beside those that Faults makes

	Pace    Pace
	Zones   []string // that jobs name
	Tenants []string
	Pools   []string // queues that jobs name
	Names   int      // of jobs a tenant has, that its clients know
	Clients []Role   // one each
	Jobs    JobRates
	Work    WorkRates

	Defaults dispatch.DefaultCallbacks // of jobs that name none themselves

	Counts bool // the sweeps count runs
}

// Outage is a time in which nothing is claimed, since something is away or wrong everywhere: what was due in it was missed.
type Outage struct {
	After, For time.Duration // after the begin of the world

	// Of what: of all hosts, where neither is said.
	Store bool
	Clock time.Duration // so far off is every host's clock, and right again at the end
	Spare bool          // with Clock: the first host's is right
}

func (o Outage) String() string {
	of := "hosts"
	switch {
	case o.Store:
		of = "the store"
	case o.Clock != 0:
		of = fmt.Sprintf("clocks, off by %s", o.Clock)
	}
	return fmt.Sprintf("after %s, for %s: %s", o.After.Round(time.Second), o.For.Round(time.Second), of)
}

// Role is what one client does: of whom, how often, and how much of what.
type Role struct {
	Tenant  string
	Think   time.Duration       // mean time between two operations
	Weights [operations]float64 // of each operation; 0: it never does that
	Persist float64             // chance to ask again where no answer came, each time
	Begins  bool                // with putting some jobs at once
	Off     bool                // a mask took it out
}

// JobRates are how often what occurs among the jobs: weights of the ways to say when, chances from 0 to 1 of the rest.
type JobRates struct {
	Cron, Every, At, OnDemand float64

	Bounds, Jitter, PausedAtBirth, Labels, AtMostOnce, Windows, LongRetries, ShortLived, Overlap float64

	Queued   float64 // of those with Overlap, whose runs wait their turn
	OneWaits float64 // of those with Overlap, of whose runs one waits at most: the first, or the latest
	Displace float64 // of those with Overlap, whose earlier runs give way to later ones
	Strict   float64 // of those with Overlap, whose lines stand still behind a run that ended badly
	Keyed    float64 // of those with Overlap, which have a limit for each value of a key

	Named float64 // whose runs pass gates that jobs share

	NamedKeyed float64 // of those gates: that each is passed by a key
	MaxWait    float64 // of those gates: that each bounds how long runs wait there; where any does, half of them let in by deadlines

	Callbacks float64
	Missed    float64 // which tell of missed fires
	Expiring  float64 // whose runs are skipped when they are too late
	Counted   float64 // with a schedule, which ends after so many fires
	Pausing   float64 // which so many bad ends in a row pause
	Deadlines float64 // whose runs are stopped when they have not ended in time
	Within    float64 // of callbacks that may have a window, which have one
	Window    schedule.Duration

	Requested float64 // of requests, which name whom to call themselves

	Workflows   float64
	Hurried     float64 // of those, whose runs have a time that some do not keep
	Caught      float64 // of their steps that may fail, whose failures others handle
	Stopping    float64 // of those, which a failure stops that nothing handles
	Scoped      float64 // of the scopes of those, which ask whether they run, and of the tasks behind them, which read what they give
	Waits       float64 // of the steps of those, which wait
	Stops       float64 // of the scopes of those, which a failure stops, or the end of their time
	IgnorePause float64 // of requests for runs
	Own         float64 // of requests for runs, which bring a policy of overlap
}

// WorkRates are the same of what runs do: weights of how long they take, chances of the rest.
type WorkRates struct {
	Short, Medium, Long float64

	Fail, Bad, Panic, Poison, RetryAfter, Deaf, Large, Fences float64
}

// Draw gives the mix of a seed.
func Draw(seed uint64) Mix {
	r := rand.New(rand.NewPCG(seed, 0x6d6978)) // "mix"
	m := Mix{Pace: Pace(weighted(r, 5, 3, 2))}
	m.drawTimes(r)
	m.drawShape(r)
	m.drawPeople(r)
	m.drawFaults(r)
	m.drawGates(rand.New(rand.NewPCG(seed, 0x686f6c64657273)))       // "holders"
	m.drawCallbacks(rand.New(rand.NewPCG(seed, 0x63616c6c736a7861))) // "calls", and three letters by which the first dozen worlds have none
	m.drawWorkflows(rand.New(rand.NewPCG(seed, 0x73746570)))         // "step"
	m.drawIgnored(rand.New(rand.NewPCG(seed, 0x69676e6f616d62)))     // "igno", and three letters as well
	m.drawMissed(rand.New(rand.NewPCG(seed, 0x6d6973736564636d)))    // "missed", and two letters by which they have none either
	m.drawRequested(rand.New(rand.NewPCG(seed, 0x61736b65646a61)))   // "asked", and two letters more
	m.drawOneWaits(rand.New(rand.NewPCG(seed, 0x6c61746572656b)))    // "later", and two letters by which the first dozen worlds have none
	m.drawDefaults(rand.New(rand.NewPCG(seed, 0x65766572796f66)))    // "every", and two letters again
	m.drawExpiring(rand.New(rand.NewPCG(seed, 0x7374616c65647a)))    // "stale", and two letters
	m.drawWithin(rand.New(rand.NewPCG(seed, 0x706f6f6c73656774)))    // "pools", and three letters
	m.drawCounts(rand.New(rand.NewPCG(seed, 0x636f756e74657175)))    // "count", and three letters by which the first dozen worlds have none
	m.drawKeyed(rand.New(rand.NewPCG(seed, 0x6b657973616161)))       // "keys", and three letters as well
	m.drawNamed(rand.New(rand.NewPCG(seed, 0x6e616d65616c65)))       // "name", and three letters by which the first dozen worlds have none
	m.drawNamedKeyed(rand.New(rand.NewPCG(seed, 0x6e616d656b6579)))  // "namekey"
	m.drawCaught(rand.New(rand.NewPCG(seed, 0x63617463686162)))      // "catch", and two letters by which no world up to the twenty-second has any
	m.drawScoped(rand.New(rand.NewPCG(seed, 0x73636f7065656761)))    // "scope", and three letters by which the first dozen worlds have none
	m.drawWaits(rand.New(rand.NewPCG(seed, 0x7761697463696f)))       // "wait", and three letters by which the worlds that are always the same have none
	m.drawStops(rand.New(rand.NewPCG(seed, 0x6c696d6974636167)))     // "limit", and three letters by which the worlds that are always the same have none
	m.drawDisplace(rand.New(rand.NewPCG(seed, 0x6769766573666d)))    // "gives", and two letters by which the worlds that are always the same have none
	m.drawCounted(rand.New(rand.NewPCG(seed, 0x656e647365756262)))   // "ends", and four letters by which the worlds that are always the same had none
	m.drawPausing(rand.New(rand.NewPCG(seed, 0x68616c746271776a)))   // "halt", and four letters as well
	m.drawDeadlines(rand.New(rand.NewPCG(seed, 0x64656164616e76)))   // "dead", and three letters by which the worlds that are always the same have none
	m.drawStrict(rand.New(rand.NewPCG(seed, 0x7374696c6c6a7763)))    // "still", and three letters by which the worlds that are always the same have none
	m.drawOwn(rand.New(rand.NewPCG(seed, 0x6f776e62656378)))         // "own", and four letters by which they have none either
	m.drawMaxWait(rand.New(rand.NewPCG(seed, 0x6f757473656175)))     // "outs", and three letters by which the worlds that are always the same have none
	return m
}

// zones are those that jobs name: of whole and half hours, of changes by one hour, by half of one and by two, at midnight and during
// Ramadan, and some whose clocks never change.
var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Africa/Cairo", "America/Havana",
	"Antarctica/Troll", "Asia/Kathmandu", "Pacific/Chatham", "America/Santiago", "Europe/Dublin", "Asia/Beirut", "Pacific/Apia"}

// drawTimes draws when the world begins, and how long it is looked at.
func (m *Mix) drawTimes(r *rand.Rand) {
	m.Zones = []string{"UTC", pick(r, zones), pick(r, zones), pick(r, zones)}[:1+r.IntN(4)]
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(3*365*24*60)) * time.Minute)
	switch m.Pace {
	case Seconds:
		m.Length = time.Duration(180+r.IntN(700)) * time.Second
	case Minutes:
		m.Length = time.Duration(30+r.IntN(200)) * time.Minute
	default:
		m.Length = time.Duration(12+r.IntN(60)) * time.Hour
	}
	m.Start = day
	before := time.Duration(r.Float64() * float64(m.Length))
	switch r.IntN(4) {
	case 0, 1: // near a change of clocks
		for _, zone := range slices.Backward(m.Zones) { // of the last zone that has one
			if change, ok := nextChange(zone, day); ok {
				m.Start = change.Add(-before)
				break
			}
		}
	case 2: // near the end of a month
		m.Start = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add(-before)
	}
	m.Start = m.Start.Truncate(time.Second).Add(time.Duration(r.IntN(1000)) * time.Millisecond)
}

// nextChange is when the clocks of a zone change next.
func nextChange(zone string, after time.Time) (time.Time, bool) {
	place, err := schedule.LoadZone(zone)
	if err != nil {
		panic(fmt.Sprintf("zone of a mix: %v", err))
	}
	_, end := after.In(place).ZoneBounds()
	return end.UTC(), !end.IsZero()
}

func (m *Mix) drawShape(r *rand.Rand) {
	m.Shape = Shape{Hosts: 1 + r.IntN(4)}
	if m.Shape.Alone = m.Pace != Hours && chance(r, 0.4); m.Shape.Alone {
		m.Shape.Hosts = 1
	}
	if chance(r, 0.8) {
		m.Latency = Latency{Store: rate(r, 1, time.Millisecond, 200*time.Millisecond), Queue: rate(r, 1, time.Millisecond, 200*time.Millisecond),
			Net: rate(r, 1, time.Millisecond, 200*time.Millisecond)}
	}
}

// drawPeople draws the clients, their jobs and what these do.
func (m *Mix) drawPeople(r *rand.Rand) {
	m.Tenants = []string{access.DefaultTenant, "acme", "rival"}[:1+r.IntN(3)]
	m.Pools = []string{job.DefaultQueue, "reports"}[:1+r.IntN(2)]
	m.Names = 2 + r.IntN(pick(r, []int{4, 10, 30}))
	for n := range 1 + r.IntN(5) {
		role := Role{Tenant: m.Tenants[n%len(m.Tenants)], Persist: pick(r, []float64{0, 0.5, 0.9, 1}),
			Think: rate(r, 1, m.Length/m.Pace.busy(), m.Length/60)}
		for op := range role.Weights {
			if chance(r, 0.65) {
				role.Weights[op] = usual[op] * math.Exp(2*r.Float64()-1)
			}
		}
		if n < len(m.Tenants) { // the first of each tenant makes the jobs
			role.Begins = true
			role.Weights[opPut]++
		}
		m.Clients = append(m.Clients, role)
	}
	for len(m.Tenants) > len(m.Clients) {
		m.Tenants = m.Tenants[:len(m.Clients)]
	}
	some := func(p, most float64) float64 {
		if !chance(r, p) {
			return 0
		}
		return r.Float64() * most
	}
	m.Jobs = JobRates{Cron: some(0.8, 1) + 0.01, Every: some(0.7, 1), At: some(0.4, 0.4), OnDemand: some(0.6, 0.6),
		Bounds: some(0.4, 0.6), Jitter: some(0.3, 0.7), PausedAtBirth: some(0.3, 0.4), Labels: some(0.7, 1), AtMostOnce: some(0.5, 0.6),
		Windows: some(0.5, 1), LongRetries: some(0.25, 0.4), ShortLived: some(0.6, 1)}
	m.Work = WorkRates{Short: some(0.9, 1) + 0.01, Medium: some(0.6, 0.5), Long: some(0.3, 0.1),
		Fail: some(0.6, 0.7), Bad: some(0.4, 0.5), Panic: some(0.3, 0.4), Poison: some(0.2, 0.15), RetryAfter: some(0.3, 0.7), Deaf: some(0.3, 0.3),
		Large: some(0.4, 0.4), Fences: some(0.7, 1)}
}

// drawFaults draws what goes wrong: each kind is on in a part of the seeds, some seeds have none, few have all.
func (m *Mix) drawFaults(r *rand.Rand) {
	on := pick(r, []float64{0, 0.15, 0.3, 0.5, 0.8}) // how many kinds this seed has
	some := func(least, most float64) float64 {
		if !chance(r, on) {
			return 0
		}
		return least * math.Pow(most/least, r.Float64())
	}
	every := func(least, most time.Duration) time.Duration {
		if !chance(r, on) {
			return 0
		}
		return rate(r, 1, least, most)
	}
	span := m.Length
	f := Faults{
		Refused: some(0.001, 0.1), Throttled: some(0.001, 0.2), Lost: some(0.001, 0.1), Late: some(0.0005, 0.02),
		Slow: some(0.001, 0.1), SlowFor: rate(r, 1, 100*time.Millisecond, 30*time.Second), Short: some(0.01, 0.5), Stale: some(0.01, 0.5),
		Away: every(span/5, span), AwayFor: rate(r, 1, span/200, span/5),
		SendFailed: some(0.01, 0.2), SendLost: some(0.01, 0.3), SendUnknown: some(0.01, 0.2), Doubled: some(0.01, 0.3), Delayed: some(0.01, 0.1),
		Reordered: some(0.01, 0.5), ReceiveLost: some(0.01, 0.2), EndedEarly: some(0.01, 0.2), DeleteFailed: some(0.01, 0.2),
		Blobs:       some(0.005, 0.1),
		RequestLost: some(0.01, 0.2), AnswerLost: some(0.01, 0.3), RequestDelayed: some(0.01, 0.1),
		Crash: every(span/20, span), CrashFor: rate(r, 1, time.Second, span/10), Stop: every(span/20, span),
		Pause: every(span/20, span), PauseFor: rate(r, 1, time.Second, 2*time.Minute),
		Step: every(span/10, span), StepBy: rate(r, 1, 100*time.Millisecond, time.Hour),
		Skew: rate(r, on, 10*time.Millisecond, 4*time.Second), Drift: some(1e-5, 1e-3),
	}
	with := func(on bool, companion *time.Duration) {
		if !on {
			*companion = 0
		}
	}
	with(f.Slow > 0, &f.SlowFor)
	with(f.Away > 0, &f.AwayFor)
	with(f.Crash > 0, &f.CrashFor)
	with(f.Pause > 0, &f.PauseFor)
	with(f.Step > 0, &f.StepBy)
	if chance(r, 0.15) {
		m.Outages = []Outage{m.drawOutage(r)}
	}
	f.Full, f.FullFor = every(span/10, span), rate(r, 1, time.Second, span/10)
	with(f.Full > 0, &f.FullFor)
	m.Faults = f
}

// drawOutage draws a time in which nobody is there, so long that fires are missed.
func (m *Mix) drawOutage(r *rand.Rand) Outage {
	longest := [...]time.Duration{time.Hour, 20 * time.Hour, 14 * 24 * time.Hour}[m.Pace]
	return Outage{After: time.Duration((0.2 + 0.6*r.Float64()) * float64(m.Length)), For: rate(r, 1, 6*time.Minute, longest)}
}

// drawGates draws how many jobs bound how many of their runs are in progress, from a stream of its own: a world in which none does is as it was
// before there were gates.
func (m *Mix) drawGates(r *rand.Rand) {
	if chance(r, 0.35) {
		m.Jobs.Overlap = pick(r, []float64{0.2, 0.5, 0.9})
		m.Jobs.Queued = pick(r, []float64{0, 0.3, 0.7, 1})
	}
}

// drawOneWaits draws of how many of these one run waits at most, from a stream of its own too.
func (m *Mix) drawOneWaits(r *rand.Rand) {
	if m.Jobs.Overlap > 0 && chance(r, 0.4) {
		m.Jobs.OneWaits = pick(r, []float64{0.3, 0.6, 0.9})
	}
}

// drawDisplace draws of how many of these earlier runs give way to later ones, from a stream of its own too.
func (m *Mix) drawDisplace(r *rand.Rand) {
	if m.Jobs.Overlap > 0 && chance(r, 0.4) {
		m.Jobs.Displace = pick(r, []float64{0.3, 0.6, 0.9})
	}
}

// drawKeyed draws how many of these have a limit for each value of a key, from a stream of its own too.
func (m *Mix) drawKeyed(r *rand.Rand) {
	if m.Jobs.Overlap > 0 && chance(r, 0.4) {
		m.Jobs.Keyed = pick(r, []float64{0.3, 0.6, 0.9})
	}
}

// drawNamed draws how many jobs pass gates that they share, from a stream of its own too.
func (m *Mix) drawNamed(r *rand.Rand) {
	if chance(r, 0.25) {
		m.Jobs.Named = pick(r, []float64{0.3, 0.6, 0.9})
	}
}

// drawNamedKeyed draws how many of these they pass by a key, from a stream of its own too.
func (m *Mix) drawNamedKeyed(r *rand.Rand) {
	if m.Jobs.Named > 0 && chance(r, 0.5) {
		m.Jobs.NamedKeyed = pick(r, []float64{0.3, 0.6, 0.9})
	}
}

// drawMaxWait draws how many of these gates bound how long runs wait there, from a stream of its own too. Half of the gates of such a world let in by deadlines, which its jobs have then.
func (m *Mix) drawMaxWait(r *rand.Rand) {
	if m.Jobs.Named > 0 && chance(r, 0.4) {
		m.Jobs.MaxWait = pick(r, []float64{0.3, 0.6, 1})
		if deadlines := pick(r, []float64{0.2, 0.5, 0.9}); m.Jobs.Deadlines == 0 {
			m.Jobs.Deadlines = deadlines
		}
	}
}

// drawCallbacks draws how many jobs call others, from a stream of its own too.
func (m *Mix) drawCallbacks(r *rand.Rand) {
	if chance(r, 0.3) {
		m.Jobs.Callbacks = pick(r, []float64{0.1, 0.4, 0.8})
	}
}

// drawIgnored draws how many requests for runs ignore the pause of their job, from a stream of its own too.
func (m *Mix) drawIgnored(r *rand.Rand) {
	if chance(r, 0.3) {
		m.Jobs.IgnorePause = pick(r, []float64{0.2, 0.5, 0.9})
	}
}

// drawMissed draws how many jobs call others when fires were missed, from a stream of its own too. Most such worlds have an outage, else hardly any
// are.
func (m *Mix) drawMissed(r *rand.Rand) {
	if !chance(r, 0.3) {
		return
	}
	m.Jobs.Missed = pick(r, []float64{0.2, 0.5, 0.9})
	if len(m.Outages) == 0 && chance(r, 0.8) {
		m.Outages = []Outage{m.drawOutage(r)}
	}
}

// drawExpiring draws how many jobs give their runs a time to start, from a stream of its own too.
func (m *Mix) drawExpiring(r *rand.Rand) {
	if chance(r, 0.3) {
		m.Jobs.Expiring = pick(r, []float64{0.2, 0.5, 0.9})
	}
}

// drawCounted draws how many schedules end after so many fires, from a stream of its own too.
func (m *Mix) drawCounted(r *rand.Rand) {
	if chance(r, 0.3) {
		m.Jobs.Counted = pick(r, []float64{0.2, 0.5, 0.9})
	}
}

// drawPausing draws how many jobs so many bad ends in a row pause, from a stream of its own too.
func (m *Mix) drawPausing(r *rand.Rand) {
	if chance(r, 0.3) {
		m.Jobs.Pausing = pick(r, []float64{0.2, 0.5, 0.9})
	}
}

// drawDeadlines draws how many jobs give their runs a time to end, from a stream of its own too.
func (m *Mix) drawDeadlines(r *rand.Rand) {
	if chance(r, 0.2) {
		m.Jobs.Deadlines = pick(r, []float64{0.2, 0.5, 0.9})
	}
}

// drawStrict draws of how many jobs with Overlap the lines stand still behind a run that ended badly, from a stream of its own too.
func (m *Mix) drawStrict(r *rand.Rand) {
	if m.Jobs.Overlap > 0 && chance(r, 0.4) {
		m.Jobs.Strict = pick(r, []float64{0.3, 0.6, 0.9})
	}
}

// drawOwn draws how many requests bring a policy of overlap, from a stream of its own too. In a few worlds they do though no job bounds anything.
func (m *Mix) drawOwn(r *rand.Rand) {
	if chance(r, 0.05) || m.Jobs.Overlap > 0 && chance(r, 0.4) {
		m.Jobs.Own = pick(r, []float64{0.2, 0.5, 0.9})
	}
}

// drawWithin draws how many callbacks tell of all within a window, from a stream of its own too.
func (m *Mix) drawWithin(r *rand.Rand) {
	if chance(r, 0.5) {
		m.Jobs.Within = pick(r, []float64{0.3, 0.7, 1})
		m.Jobs.Window = schedule.Duration(pick(r, windows[m.Pace]))
		if m.Jobs.Callbacks == 0 && chance(r, 0.5) {
			m.Jobs.Callbacks = pick(r, []float64{0.4, 0.8})
		}
	}
}

// drawCounts draws whether the sweeps count runs, from a stream of its own too.
func (m *Mix) drawCounts(r *rand.Rand) { m.Counts = chance(r, 0.4) }

// drawRequested draws how many requests name whom to call, from a stream of its own too.
func (m *Mix) drawRequested(r *rand.Rand) {
	if chance(r, 0.3) {
		m.Jobs.Requested = pick(r, []float64{0.1, 0.4, 0.8})
	}
}

// drawDefaults draws whom the jobs call that name nobody themselves, from a stream of its own too. Some of those are not there.
func (m *Mix) drawDefaults(r *rand.Rand) {
	if !chance(r, 0.3) {
		return
	}
	draw := func() dispatch.DefaultCallee {
		all := dispatch.DefaultCallee{}
		if chance(r, 0.7) {
			all[""] = nameOf(r.IntN(m.Names))
		}
		for _, tenant := range m.Tenants {
			if chance(r, 0.3) {
				all[tenant] = nameOf(r.IntN(2 * m.Names))
			}
		}
		return all
	}
	m.Defaults = dispatch.DefaultCallbacks{Failed: draw(), Missed: draw()}
	if chance(r, 0.5) {
		m.Defaults.Recovered = draw()
	}
}

// callsForAll tells whether jobs that name nobody call somebody.
func (m *Mix) callsForAll() bool {
	return len(m.Defaults.Failed)+len(m.Defaults.Missed)+len(m.Defaults.Recovered) > 0
}

// rate draws a duration between least and most, each order of magnitude as likely as another; 0 where it is off.
func rate(r *rand.Rand, on float64, least, most time.Duration) time.Duration {
	if !chance(r, on) {
		return 0
	}
	most = max(most, least)
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), r.Float64())).Round(time.Millisecond)
}

// String is the whole mix, for whoever reads a failing seed.
func (m Mix) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "begin    %s, %s with faults, at the pace of %s\n", m.Start.UTC().Format(time.RFC3339Nano), m.Length, m.Pace)
	fmt.Fprintf(&b, "shape    %s\n", settings(m.Shape))
	fmt.Fprintf(&b, "latency  %s\n", settings(m.Latency))
	fmt.Fprintf(&b, "faults   %s\n", settings(m.Faults))
	for _, o := range m.Outages {
		fmt.Fprintf(&b, "outage   %s\n", o)
	}
	fmt.Fprintf(&b, "zones    %s\n", strings.Join(m.Zones, " "))
	fmt.Fprintf(&b, "jobs     up to %d a tenant, in queues %s: %s\n", m.Names, strings.Join(m.Pools, " "), settings(m.Jobs))
	fmt.Fprintf(&b, "work     %s\n", settings(m.Work))
	if m.callsForAll() {
		fmt.Fprintf(&b, "defaults of callbacks: %v\n", m.Defaults)
	}
	for _, c := range m.Clients {
		fmt.Fprintf(&b, "client   of %s, every %s, persists %.2g, begins %t:", c.Tenant, c.Think, c.Persist, c.Begins)
		for op, weight := range c.Weights {
			if weight > 0 {
				fmt.Fprintf(&b, " %s %.2g", operation(op), weight)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ahead is how far ahead runs are asked for.
func (m Mix) ahead() time.Duration { return min(m.Length/2, 40*m.Pace.unit()) }
