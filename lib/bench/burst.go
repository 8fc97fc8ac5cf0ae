package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// BurstReport is what became of one-offs that were all due in one second.
type BurstReport struct {
	Runs      int          `json:"runs"`
	Seconds   float64      `json:"seconds"` // from the beginning of that second until the last run's end was durable
	PerSecond float64      `json:"per_second"`
	Synced    Synced       `json:"synced"`
	Groups    []BurstGroup `json:"groups"`
}

// BurstGroup is the runs of one tenant and priority. Times are from when each run was due to its start.
type BurstGroup struct {
	Priority string  `json:"priority"`
	Tenant   string  `json:"tenant"`
	Runs     int     `json:"runs"`
	Part     float64 `json:"part"` // of all runs
	First    float64 `json:"first_ms"`
	Half     float64 `json:"half_ms"`
	Last     float64 `json:"last_ms"`

	// Its part of those runs of all groups that started first.
	OfTenth float64 `json:"part_of_first_tenth"`
	OfHalf  float64 `json:"part_of_first_half"`
}

// tenants of a burst: three quarters of it are one's, and a quarter the other's. Of equal priority they should take turns until
// the smaller one has nothing left.
var burstTenants = []struct {
	name  string
	parts int
}{{"large", 3}, {"small", 1}}

type burstGroup struct {
	priority queue.Priority
	tenant   string
	late     []time.Duration
}

// burstStarts notes who started when, and in which order.
type burstStarts struct {
	now    func() time.Time
	mu     sync.Mutex
	groups []burstGroup
	order  []uint8
}

func (b *burstStarts) start(_ context.Context, call target.Call) (target.Result, error) {
	if call.Attempt > 1 {
		return target.Result{}, nil
	}
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.groups {
		if g := &b.groups[i]; string(g.priority) == call.Job && g.tenant == call.Tenant {
			g.late = append(g.late, now.Sub(call.Nominal))
			b.order = append(b.order, uint8(i))
		}
	}
	return target.Result{}, nil
}

// errSlow is that the second had come before all runs were asked for.
var errSlow = errors.New("the machine had other work")

// burst asks for all runs, ahead of their second, and measures until the last has ended. Where the second comes first, since the machine
// has other work, it begins anew, further ahead: by a second, eight, and a minute in the end.
func (l Lateness) burst(ctx context.Context, h Host) (BurstReport, error) {
	for spare := time.Second; ; spare *= 8 {
		report, err := l.burstWith(ctx, h, spare)
		if !errors.Is(err, errSlow) || spare > time.Minute {
			return report, err
		}
	}
}

// burstWith is burst, once. The queue has the room that it always has.
func (l Lateness) burstWith(ctx context.Context, h Host, spare time.Duration) (report BurstReport, err error) {
	b := &burstStarts{now: h.Now, order: make([]uint8, 0, l.Burst)}
	for _, p := range queue.Priorities {
		for _, t := range burstTenants {
			b.groups = append(b.groups, burstGroup{priority: p, tenant: t.name})
		}
	}
	handlers := new(target.Registry)
	if err := handlers.Register(lateJob, b.start); err != nil {
		return report, err
	}
	r, err := h.open(ctx, "burst-"+spare.String(), setup{workers: l.Workers, handlers: handlers})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, g := range b.groups {
		def := onDemand(lateJob)
		def.Priority = g.priority
		if _, _, err := r.node.Control.Put(ctx, g.tenant, string(g.priority), def, control.Match{}); err != nil {
			return report, err
		}
	}
	r.start(ctx)
	due, err := l.askAhead(ctx, r, b.groups, spare)
	if err != nil {
		return report, err
	}
	if err := r.until(ctx, due); err != nil {
		return report, err
	}
	before := r.mark()
	add, end := h.Tell("running what was due in one second", l.Burst)
	err = r.ended(ctx, 0, l.Burst, add)
	end()
	if err != nil {
		return report, err
	}
	after := r.mark()
	took := after.at - before.at
	report = BurstReport{Runs: l.Burst, Seconds: took.Seconds(), PerSecond: rate(l.Burst, took), Synced: after.synced(before, l.Burst)}
	report.Groups, err = b.shares(l.Burst)
	return report, err
}

// askAhead asks for the runs, and gives the second in which they are due: so far ahead, and by spare beyond that, that all of them have been
// asked for by then. Else the error is errSlow.
func (l Lateness) askAhead(ctx context.Context, r *rig, groups []burstGroup, spare time.Duration) (due time.Time, err error) {
	// How fast requests are taken is tried with some that are due when nobody looks any more.
	tried := min(2*maxBatch, max(l.Burst/10, 1))
	began := r.host.Elapsed()
	if err := r.askBurst(ctx, groups, r.host.Now().Add(1000*time.Hour), 0, tried, tried, func(int) {}); err != nil {
		return due, err
	}
	each := (r.host.Elapsed() - began) / time.Duration(tried)
	due = r.host.Now().Add(each*time.Duration(l.Burst)*3/2 + l.Ahead + spare).Truncate(time.Second)
	add, end := r.host.Tell("asking for what is due in one second", l.Burst)
	defer end()
	for first := 0; first < l.Burst; first += 4 * maxBatch {
		if err := r.askBurst(ctx, groups, due, first, min(4*maxBatch, l.Burst-first), l.Burst, add); err != nil {
			return due, err
		}
	}
	if late := r.host.Now().Sub(due); late > 0 {
		return due, fmt.Errorf("asking for the runs took %s longer than it had seemed: %w", late, errSlow)
	}
	return due, nil
}

// askBurst asks for some of all runs, for each group its part.
func (r *rig) askBurst(ctx context.Context, groups []burstGroup, due time.Time, first, n, all int, add func(int)) error {
	asked := make(map[string][]control.Asked)
	for i := first; i < first+n; i++ {
		g := groups[groupOf(i)]
		at := due.Add(time.Duration(i) * time.Second / time.Duration(all)).Truncate(time.Millisecond)
		asked[g.tenant] = append(asked[g.tenant], control.Asked{Job: string(g.priority), Request: control.Request{At: &at}})
	}
	for _, t := range burstTenants {
		for some := range slices.Chunk(asked[t.name], maxBatch) {
			if err := r.trigger(ctx, t.name, some); err != nil {
				return err
			}
			add(len(some))
		}
	}
	return nil
}

// groupOf deals runs out: priorities in turn, and of each priority three to the first tenant and one to the second.
func groupOf(i int) int {
	turn := i / len(queue.Priorities) % (burstTenants[0].parts + burstTenants[1].parts)
	g := i % len(queue.Priorities) * len(burstTenants)
	if turn >= burstTenants[0].parts {
		g++
	}
	return g
}

func (b *burstStarts) shares(all int) (out []BurstGroup, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	part := func(order []uint8, g int) float64 {
		n := 0
		for _, of := range order {
			if int(of) == g {
				n++
			}
		}
		return ratio(float64(n), float64(len(order)))
	}
	if len(b.order) != all {
		return nil, fmt.Errorf("%d of %d runs had started", len(b.order), all)
	}
	for i, g := range b.groups {
		shown := BurstGroup{Priority: string(g.priority), Tenant: g.tenant, Runs: len(g.late), Part: part(b.order, i),
			OfTenth: part(b.order[:len(b.order)/10], i), OfHalf: part(b.order[:len(b.order)/2], i)}
		if len(g.late) > 0 {
			slices.Sort(g.late)
			shown.First, shown.Half, shown.Last = millis(g.late[0]), millis(g.late[len(g.late)/2]), millis(g.late[len(g.late)-1])
			if g.late[0] < 0 {
				return nil, fmt.Errorf("a run started %s before its time", -g.late[0])
			}
		}
		out = append(out, shown)
	}
	return out, nil
}
