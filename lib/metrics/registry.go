// Package metrics counts what Belfry does. The domain counts on a Registry, which knows no exporter; package
// metrics/prometheus shows it at /metrics, and a Lambda can write the same families as logs.
//
// Every metric stands here, once, with all the values of its labels, or how many there can be: no tenant and no job can make series without
// a bound (P11, P12).
// Counting takes no lock, but for a name that is met for the first time, and allocates nothing. docs/metrics.md lists the metrics for operators.
package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

// Registry holds every metric. Its instruments may be used concurrently; values of labels are given in their order.
type Registry struct {
	Runs         *Counter // outcome: the state in which the run ended
	Skipped      *Counter // why: its code, or missed
	Overran      *Counter
	Lateness     *Histogram // of each run's first start, unless it was opened again before
	Steps        *Counter   // outcome: the state in which the step ended
	StepLateness *Histogram // of each step's first start
	Attempts     *Counter   // outcome
	Retries      *Counter
	DeadLetters  *Counter // kind
	JobsPaused   *Counter // by their runs
	Queue        *Gauge   // priority, state
	OldestDue    *Age     // Since(the shard's watermark, the oldest of all): before it nothing due is waiting
	Unowned      *Gauge
	Repairs      *Counter // kind
	Tick         *Histogram
	TickItems    *Counter   // kind
	Store        *Histogram // operation, result; see Store
	StoreUnits   *Sum       // operation, kind; see Consumed
	Throttled    *Counter   // by
	Unreadable   *Counter

	ExpressionWait *Histogram // of each text that a run evaluates

	GateLetIn   *Counter   // gate; see Gate
	GateSkipped *Counter   // gate; see Gate
	GateGaveWay *Counter   // gate; see Gate
	GateBlocked *Counter   // gate; see Gate
	GateWait    *Histogram // gate; see Gate

	// As the process saw them last, of the gates that have series of their own: gate.
	GateWaiting, GateInProgress *Gauge

	LastSuccess *Gauge // job_name; see JobEnded

	Check *Gauge // check

	gates Names // that have series of their own
	jobs  Names // that are watched
	all   []instrument
}

type instrument struct {
	family  *Family
	samples func(now time.Time) []Sample
}

// New makes a registry with everything at zero.
func New() *Registry {
	r := &Registry{gates: Names{Most: MostGates}, jobs: Names{Most: MostJobs}}
	r.Runs = r.counter("belfry_runs_total", "Runs that ended, by the state in which they did.",
		Label{Name: "outcome", Values: []string{"succeeded", "failed", "cancelled", "skipped", "dead", "unknown"}})
	r.Skipped = r.counter("belfry_runs_skipped_total", "Runs that were skipped, by what for: the code of their why, and missed for fires that catch-up drops.",
		Label{Name: "why", Values: []string{"overlap", "full", "closed", "max_wait", "expired", "missed"}})
	r.Skipped.family.Detail = true
	r.Overran = r.counter("belfry_runs_past_deadline_total", "Runs that were stopped since they had not ended by their deadline, when they had ended.")
	late := []time.Duration{
		time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
		50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
		2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
		5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	}
	r.Lateness = r.histogram("belfry_lateness_seconds", "Start of a run's first attempt minus its nominal time, unless the run was opened again before it.", late)
	r.Steps = r.counter("belfry_steps_total", "Steps of workflows that were released and ended, by the state in which they did.",
		Label{Name: "outcome", Values: []string{"succeeded", "failed", "cancelled", "dead", "unknown"}})
	r.StepLateness = r.histogram("belfry_step_lateness_seconds",
		"Start of a step's first attempt minus the end of the step that it follows from, or minus the opening of its run.", late)
	r.Attempts = r.counter("belfry_attempts_total", "Attempts that ended, by how they did.",
		Label{Name: "outcome", Values: []string{"succeeded", "failed", "crashed", "cancelled", "handed_back"}})
	r.Retries = r.counter("belfry_retries_total", "Attempts that were put off to a later try.")
	r.DeadLetters = r.counter("belfry_dead_letters_total",
		"Runs that became dead letters, as failed for good or dead, and messages that no worker could handle.",
		Label{Name: "kind", Values: []string{"failed", "dead", "message"}})
	r.JobsPaused = r.counter("belfry_jobs_paused_total", "Jobs that were paused for their runs, as many of which had ended badly in a row as pause_after says.")
	r.JobsPaused.family.Detail = true
	r.Queue = r.gauge("belfry_queue_messages", "Messages in the queues, as last counted.",
		Label{Name: "priority", Values: []string{"high", "normal", "low"}}, Label{Name: "state", Values: []string{"ready", "delayed", "taken"}})
	r.OldestDue = r.age("belfry_oldest_due_seconds",
		"How long ago the oldest due timer was due that no tick has handled yet, at most; it grows while no tick runs.")
	r.Unowned = r.gauge("belfry_unowned_shards",
		"Shards that the last tick could neither pass over nor find in the hands of another tick.")
	r.Repairs = r.counter("belfry_sweep_repairs_total",
		"What sweeps and check timers mended: runs claimed that had none, messages sent again, leases expired, check timers set.",
		Label{Name: "kind", Values: []string{"claimed", "resent", "expired", "watched"}})
	r.Tick = r.histogram("belfry_tick_seconds", "Duration of a tick over all its shards.",
		[]time.Duration{
			time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
			500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
		})
	r.TickItems = r.counter("belfry_tick_items_total",
		"What ticks did: timers handled, runs claimed, claims sent again, fires skipped, messages sent, sends left to a check timer, jobs parked.",
		Label{Name: "kind", Values: []string{"timers", "claimed", "resent", "skipped", "sent", "unsent", "parked"}})
	r.TickItems.family.Detail = true
	r.Store = r.histogram("belfry_store_seconds", "Duration of the calls of the store, by what came of them.",
		[]time.Duration{
			50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
			2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
			100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
			5 * time.Second, 10 * time.Second,
		},
		Label{Name: "operation", Values: []string{opGet, opPeek, opQuery, opWrite, opWriteEach}},
		Label{Name: "result", Values: []string{resultOK, resultConflict, resultThrottled, resultUnknown, resultError}})
	r.Store.family.Detail = true
	r.StoreUnits = r.sum("belfry_store_units_total", "Capacity units that the store consumed, where it counts them.",
		Label{Name: "operation", Values: []string{"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}},
		Label{Name: "kind", Values: []string{unitsRead, unitsWrite}})
	r.StoreUnits.family.Detail = true
	r.Throttled = r.counter("belfry_throttled_total",
		"Refusals for load, by who refused: the store one of its operations, the queue a message, the API a request.",
		Label{Name: "by", Values: []string{throttledStore, "queue", "api"}})
	r.Unreadable = r.counter("belfry_unreadable_total", "Times that a record was met which could not be read and was left where it is, or a run which stands still for that.")
	r.ExpressionWait = r.histogram("belfry_expression_wait_seconds", "How long expressions of runs have waited for their turn, each time that some were evaluated.",
		[]time.Duration{
			time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
			time.Minute, 5 * time.Minute,
		})
	r.ExpressionWait.family.Detail = true
	gates := Label{Name: "gate", Values: []string{OwnGates}, Met: &r.gates}
	r.GateLetIn = r.counter("belfry_gate_let_in_total", "Runs that were let in at a gate, which were then in progress there.", gates)
	r.GateSkipped = r.counter("belfry_gate_skipped_total", "Runs that were skipped at a gate, because as many were in progress or waited as it allows, or it was closed and as many waited, or they had waited for as long as they may.", gates)
	r.GateGaveWay = r.counter("belfry_gate_gave_way_total", "Runs in progress at a gate that were ended for a later one, or asked to stop.", gates)
	r.GateBlocked = r.counter("belfry_gate_blocked_total", "How often a line with runs in it was found to stand still behind a run that ended badly: when that ends, when a run joins, and at least every 16 minutes by checks. Where none may wait, when a run is skipped for that.", gates)
	r.GateWait = r.histogram("belfry_gate_wait_seconds", "How long runs have waited in line at a gate that were let in.",
		[]time.Duration{
			100 * time.Millisecond, time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
			time.Hour, 4 * time.Hour, 24 * time.Hour,
		}, gates)
	own := Label{Name: "gate", Met: &r.gates}
	r.GateWaiting = r.gauge("belfry_gate_waiting", "Runs that wait in line at a gate, as this process saw it last.", own)
	r.GateInProgress = r.gauge("belfry_gate_in_progress", "Runs that are in progress at a gate, as this process saw it last.", own)
	for _, f := range []*Family{&r.GateLetIn.family, &r.GateSkipped.family, &r.GateGaveWay.family, &r.GateBlocked.family, &r.GateWait.family, &r.GateWaiting.family, &r.GateInProgress.family} {
		f.Detail = true
	}
	// The label is not "job": under that name Prometheus has whom it asked.
	r.LastSuccess = r.gauge("belfry_job_last_success_timestamp_seconds",
		"When a run of a job last succeeded, in seconds since 1970, as this process saw it; 0 where it saw one fail and none succeed.",
		Label{Name: "job_name", Met: &r.jobs})
	r.Check = r.gauge("belfry_check_state", "What /readyz checks, looked at for each scrape: 0 all is well, 1 attention, 2 failing.",
		Label{Name: "check", Values: []string{"clock", "store", "data", "ticks", "queues", "workers", "disk", "certificate"}})
	return r
}

// Gate is the value of the label gate that a gate is counted under: its name, if it has asked for series of its own and they are not used up,
// and OwnGates, if it has not.
func (r *Registry) Gate(name string, own bool) string {
	if !own {
		return OwnGates
	}
	return r.gates.Meet(name)
}

// JobEnded notes the end of an attempt of a job that asks to be watched, or of a run where that is a workflow: when it succeeded, or that it did not. A job
// of which this process has seen no success has 0. Where as many jobs as may be are watched, the others are left out: one number for several would
// tell of none.
func (r *Registry) JobEnded(job string, succeeded bool, at time.Time) {
	r.jobs.Meet(job)
	if succeeded && slices.Contains(r.jobs.all(), job) {
		r.LastSuccess.Set(float64(at.UnixMilli())/1000, job)
	}
}

// Each gives every family with its series at a moment, in the order of the documentation. A series whose labels are all
// declared is given from the start, so that an alarm sees its first change; sums, and histograms split by labels, are given when used.
func (r *Registry) Each(now time.Time, visit func(Family, []Sample)) {
	for _, i := range r.all {
		visit(*i.family, i.samples(now))
	}
}

// SetQueue sets the gauge of the queue's messages.
func (r *Registry) SetQueue(depth map[queue.Priority]queue.Depth) {
	for _, p := range queue.Priorities {
		r.Queue.Set(float64(depth[p].Ready), string(p), "ready")
		r.Queue.Set(float64(depth[p].Delayed), string(p), "delayed")
		r.Queue.Set(float64(depth[p].Taken), string(p), "taken")
	}
}

// Consumed counts what a request of the store has consumed.
func (r *Registry) Consumed(operation string, read, write float64) {
	r.StoreUnits.Add(read, operation, unitsRead)
	r.StoreUnits.Add(write, operation, unitsWrite)
}

const (
	unitsRead  = "read"
	unitsWrite = "write"
)

// Families lists what a registry holds, in the order of the documentation.
func Families() []Family {
	var all []Family
	New().Each(time.Time{}, func(f Family, _ []Sample) { all = append(all, f) })
	return all
}

func (r *Registry) counter(name, help string, labels ...Label) *Counter {
	c := &Counter{family: Family{Name: name, Kind: KindCounter, Help: help, Labels: labels}}
	c.counts = make([]atomic.Uint64, c.family.series())
	r.all = append(r.all, instrument{&c.family, c.samples})
	return c
}

func (r *Registry) sum(name, help string, labels ...Label) *Sum {
	s := &Sum{family: Family{Name: name, Kind: KindCounter, Help: help, Labels: labels}}
	s.bits = make([]atomic.Uint64, s.family.series())
	r.all = append(r.all, instrument{&s.family, s.samples})
	return s
}

func (r *Registry) gauge(name, help string, labels ...Label) *Gauge {
	g := &Gauge{family: Family{Name: name, Kind: KindGauge, Help: help, Labels: labels}}
	g.bits = make([]atomic.Uint64, g.family.series())
	g.measured = make([]atomic.Uint64, len(g.bits))
	r.all = append(r.all, instrument{&g.family, g.samples})
	return g
}

func (r *Registry) age(name, help string) *Age {
	a := &Age{family: Family{Name: name, Kind: KindGauge, Help: help}}
	r.all = append(r.all, instrument{&a.family, a.samples})
	return a
}

func (r *Registry) histogram(name, help string, bounds []time.Duration, labels ...Label) *Histogram {
	h := &Histogram{family: Family{Name: name, Kind: KindHistogram, Help: help, Labels: labels, Bounds: bounds}}
	h.series = make([]cells, h.family.series())
	for i := range h.series {
		h.series[i].buckets = make([]atomic.Uint64, len(bounds)+1)
		h.series[i].sums = make([]atomic.Int64, len(bounds)+1)
	}
	r.all = append(r.all, instrument{&h.family, h.samples})
	return h
}
