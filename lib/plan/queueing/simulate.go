package queueing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// ranks is how many priorities there are: high, normal and low.
const ranks = 3

// Most bounds the arrivals that are simulated: some seconds of work, and some hundreds of MB where all of them wait. A server does a tenth: a
// fifth of a second, and some dozens of MB.
const (
	Most       = 20_000_000
	MostServed = Most / 10
)

// Usual is what a question has that says no more than how many workers there are and how many runs come.
var Usual = wire.QueueQuestion{Batch: 1, Service: wire.QueueService{Kind: Constant, Mean: schedule.Duration(200 * time.Millisecond)},
	Every: schedule.Duration(time.Minute), For: schedule.Duration(10 * time.Minute), Seed: 1}

// Bounded answers what a server is asked.
type Bounded struct{}

// Queue is Simulate with the bound of a server.
func (Bounded) Queue(ctx context.Context, q wire.QueueQuestion) (wire.QueuePlan, error) {
	return Simulate(ctx, q, MostServed)
}

// settled gives a question its defaults. A tenth of the time is not counted, in which the queue fills. Where runs come in bursts it ends before one:
// of a burst that is not counted, no work may be left in what is.
func settled(q wire.QueueQuestion) wire.QueueQuestion {
	q.Batch, q.Service.Kind, q.Service.Mean = cmp.Or(q.Batch, Usual.Batch), cmp.Or(q.Service.Kind, Usual.Service.Kind), cmp.Or(q.Service.Mean, Usual.Service.Mean)
	q.Every, q.For, q.Seed = cmp.Or(q.Every, Usual.Every), cmp.Or(q.For, Usual.For), cmp.Or(q.Seed, Usual.Seed)
	q.Shares[1] = max(0, 1-q.Shares[0]-q.Shares[2]) // 0.9 and 0.1 leave a little less than nothing
	if q.Warm == nil {
		q.Warm = new(q.For / 10)
		if q.AtOnce > 0 {
			*q.Warm = schedule.Duration(q.Warm.Std().Truncate(q.Every.Std()))
		}
	}
	return q
}

// check tells what is wrong with a settled question and what would be right, by the names that the API has: those of the flags of `belfry plan queue`,
// with an underscore for a hyphen.
func check(c wire.QueueQuestion, most float64) error {
	var errs []error
	refuse := func(field, got, want string) { errs = append(errs, invalid.Field(field, got, want)) }
	if c.Workers < 1 || c.Workers > 1_000_000 {
		refuse("workers", fmt.Sprint(c.Workers), "1 to 1M")
	}
	if c.From < 0 || c.From > max(c.Workers, 0) {
		refuse("from", fmt.Sprint(c.From), "how many of the workers there are at the beginning: 1 up to all")
	}
	switch {
	case !(c.Grow >= 0 && c.Grow <= 1_000_000):
		refuse("grow", fmt.Sprint(c.Grow), "how many workers come in a minute after those at the beginning: 0 to 1M, as 300")
	case c.Grow > 0 && c.From == 0:
		refuse("grow", fmt.Sprint(c.Grow), "0 without from, which says how many of the workers there are at the beginning")
	case c.Grow == 0 && grows(c):
		refuse("grow", "0", "more than 0 where from is fewer than workers, as 300 a minute: else the others never come")
	}
	if c.Batch < 1 || c.Batch > queue.MaxBatch {
		refuse("batch", fmt.Sprint(c.Batch), fmt.Sprintf("1 to %d, which is what a worker takes at once", queue.MaxBatch))
	}
	rate := c.Rate > 0 && c.Rate <= 10_000_000
	if !rate {
		refuse("arrivals", fmt.Sprint(c.Rate), "more than 0 and at most 10M a second, such as 250 or 0.2")
	}
	isShare := func(field string, share float64) bool {
		ok := share >= 0 && share <= 1
		if !ok {
			refuse(field, fmt.Sprint(share), "a share from 0 to 1, such as 0.2")
		}
		return ok
	}
	share := isShare("at_once", c.AtOnce)
	every := c.Every.Std() >= time.Minute && c.Every.Std() <= 24*time.Hour
	if !every {
		refuse("burst_every", c.Every.String(), "1m to 24h, such as 1m for a burst at each full minute or 1h for one at each full hour")
	}
	errs = append(errs, CheckService(c.Service))
	high, low := c.Shares[0], c.Shares[2]
	if first, last := isShare("high", high), isShare("low", low); first && last && high+low > 1+slack {
		refuse("high", fmt.Sprint(high), fmt.Sprintf("a share that with that of low, %g, is at most 1; what is left is normal", low))
	}
	span := c.For.Std()
	if span < time.Second || span > 30*24*time.Hour {
		refuse("for", c.For.String(), "1s to 30d")
	} else if rate && share && every && arrivals(c, span.Seconds()) > most {
		if longest := longest(c, most).Truncate(time.Second); longest > 0 {
			refuse("for", c.For.String(), fmt.Sprintf("%s at the most: for longer, more than %g million runs come", longest, most/1e6))
		} else {
			bursts := ""
			if c.AtOnce > 0 {
				bursts = ", or fewer of the runs at once"
			}
			refuse("arrivals", fmt.Sprintf("%.0f", c.Rate), fmt.Sprintf("at most %.0f a second%s: more than %g million come within a second", math.Floor(most/arrivals(wire.QueueQuestion{Rate: 1, AtOnce: c.AtOnce, Every: c.Every}, 1)), bursts, most/1e6))
		}
	}
	if warm := c.Warm.Std(); warm < 0 || warm >= span {
		refuse("warm", c.Warm.String(), "less than the time that is simulated")
	}
	return errors.Join(errs...)
}

// grows tells whether some of the workers come later.
func grows(c wire.QueueQuestion) bool { return c.From > 0 && c.From < c.Workers }

// period is how many seconds lie between two bursts.
func period(c wire.QueueQuestion) float64 { return c.Every.Std().Seconds() }

// arrivals is how many runs come in so many seconds, on average. A period that has begun has its burst.
func arrivals(c wire.QueueQuestion, seconds float64) float64 {
	return c.Rate * ((1-c.AtOnce)*seconds + c.AtOnce*period(c)*math.Ceil(seconds/period(c)))
}

// longest is the longest time in which no more than so many runs come.
func longest(c wire.QueueQuestion, most float64) time.Duration {
	seconds := math.Floor(most/(c.Rate*period(c))) * period(c)
	// What comes of the next period: its burst, and then the others one by one.
	if spread := c.Rate * (1 - c.AtOnce); spread > 0 {
		seconds += max(0, most-arrivals(c, seconds)-c.Rate*period(c)*c.AtOnce) / spread
	}
	return time.Duration(seconds * float64(time.Second))
}

// points is of how many stretches a result tells.
const points = 240

// minute is what workers that come are counted by.
const minute = 60.0

// slack is how far from another a number may be that is meant to be the same.
const slack = 1e-9

// attention is how many events pass between two looks at the context.
const attention = 4096

// Simulate plays a queue in which no more than so many runs arrive. The error joins an *invalid.Error for each field that is wrong, named as the API
// names it; or it is that of the context.
func Simulate(ctx context.Context, q wire.QueueQuestion, most int) (wire.QueuePlan, error) {
	q = settled(q)
	if err := check(q, float64(most)); err != nil {
		return wire.QueuePlan{}, err
	}
	s := newSimulation(q)
	for events := 0; ; events++ {
		if events%attention == 0 {
			if err := ctx.Err(); err != nil {
				return wire.QueuePlan{}, err
			}
		}
		arrival, departure, comes := s.nextArrival(), s.nextDeparture(), s.nextWorker()
		at := min(arrival, departure, comes)
		if at >= s.end {
			break
		}
		s.pass(at)
		switch at { // who comes or becomes free at an instant takes what comes at it
		case comes:
			s.there++
			s.free++
		case departure:
			s.free++
			s.leaves()
		default:
			s.arrive(at)
		}
		s.serve(at)
	}
	s.pass(s.end)
	return s.result(), nil
}

// simulation is one under way. All times are seconds from its beginning.
type simulation struct {
	wire.QueueQuestion
	end, warm float64
	now       float64
	duration  func() float64
	arrivals  *rand.Rand
	priority  *rand.Rand
	single    float64 // the next arrival that comes alone
	burst     float64 // the next instant at which many come
	owed      float64 // of a burst, the part of a run

	lines [ranks]line
	turn  int
	depth int
	there int // workers
	free  int
	busy  departures

	arrived, started, events int
	waits                    [ranks]waits
	all                      waits
	depthTime, busyTime      float64 // over what is counted
	thereTime                float64
	deepest                  int
	series                   []wire.QueuePoint
	stretch                  int   // of the series, the one that runs have started in last
	within                   waits // of those that started in it
}

func newSimulation(c wire.QueueQuestion) *simulation {
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(c.Seed, n)) }
	s := &simulation{QueueQuestion: c, end: c.For.Std().Seconds(), warm: c.Warm.Std().Seconds(), duration: Draw(c.Service, stream(1)), arrivals: stream(2), priority: stream(3),
		free: c.Workers, burst: math.Inf(1), single: math.Inf(1), series: make([]wire.QueuePoint, points)}
	if c.From > 0 {
		s.free = c.From
	}
	s.there = s.free
	for i := range s.series {
		s.series[i].At = s.end * float64(i) / points
	}
	if c.AtOnce > 0 {
		s.burst = 0
	}
	if c.AtOnce < 1 {
		s.single = s.gap()
	}
	span := max(s.end-s.warm, 1e-9)
	s.all = newWaits(s.warm, span)
	for i := range s.waits {
		s.waits[i] = newWaits(s.warm, span)
	}
	s.within = newWaits(0, s.end)
	return s
}

func (s *simulation) gap() float64 { return s.arrivals.ExpFloat64() / (s.Rate * (1 - s.AtOnce)) }

func (s *simulation) nextArrival() float64 { return min(s.single, s.burst) }

func (s *simulation) nextWorker() float64 {
	if s.there == s.Workers || s.Grow == 0 {
		return math.Inf(1)
	}
	return float64(s.there+1-s.From) / s.Grow * minute
}

func (s *simulation) nextDeparture() float64 {
	if len(s.busy) == 0 {
		return math.Inf(1)
	}
	return s.busy[0]
}

func (s *simulation) leaves() { s.busy.pop() }

// arrive takes what comes at an instant.
func (s *simulation) arrive(at float64) {
	if s.burst <= s.single {
		s.owed += s.Rate * period(s.QueueQuestion) * s.AtOnce
		n := int(s.owed)
		s.owed -= float64(n)
		s.burst += period(s.QueueQuestion)
		for range n {
			s.join(at)
		}
		return
	}
	s.single = at + s.gap()
	s.join(at)
}

func (s *simulation) join(at float64) {
	rank := 1
	if s.Shares[1] < 1 {
		switch v := s.priority.Float64(); {
		case v < s.Shares[0]:
			rank = 0
		case v >= 1-s.Shares[2]:
			rank = 2
		}
	}
	s.lines[rank].push(at)
	s.arrived++
	s.depth++
}

// serve gives what waits to who is free.
func (s *simulation) serve(at float64) {
	stretch := s.point(at)
	if stretch != s.stretch {
		s.told()
		s.stretch = stretch
	}
	for s.free > 0 && s.depth > 0 {
		n := min(s.Batch, s.depth)
		slowest := 0.0
		for range n {
			rank := s.pick()
			came := s.lines[rank].pop()
			s.depth--
			s.started++
			s.waits[rank].add(came, at-came)
			s.all.add(came, at-came)
			s.within.add(came, at-came)
			slowest = max(slowest, s.duration())
		}
		s.events++
		s.free--
		s.busy.push(at + slowest)
	}
	if at >= s.warm {
		s.deepest = max(s.deepest, s.depth)
	}
	p := &s.series[stretch]
	p.Deepest = max(p.Deepest, s.depth)
}

// told has the series tell of the runs that started in a stretch which is over.
func (s *simulation) told() {
	if s.within.n == 0 {
		return
	}
	p, p50, p99 := &s.series[s.stretch], s.within.quantile(0.50), s.within.quantile(0.99)
	p.Throughput, p.P50, p.P99 = float64(s.within.n)/(s.end/points), &p50, &p99
	s.within.clear()
}

// pick is whose turn it is, as in the real queues: that of the pattern, or the highest that has something.
func (s *simulation) pick() int {
	rank := int(queue.Turns[s.turn])
	for at := 0; s.lines[rank].empty(); at++ {
		rank = at
	}
	s.turn = (s.turn + 1) % len(queue.Turns)
	return rank
}

func (s *simulation) point(at float64) int { return min(int(at/s.end*points), points-1) }

// pass lets the time go on: nothing changes up to an instant.
func (s *simulation) pass(to float64) {
	depth, busy := float64(s.depth), float64(s.there-s.free)
	if counted := to - max(s.now, s.warm); counted > 0 {
		s.depthTime += depth * counted
		s.busyTime += busy * counted
		s.thereTime += float64(s.there) * counted
	}
	for from := s.now; from < to; {
		i := s.point(from)
		end := to
		if i < points-1 {
			end = min(to, s.series[i+1].At)
		}
		if end <= from {
			i, end = i+1, min(to, s.end*float64(i+2)/points)
		}
		p := &s.series[i]
		p.Depth += depth * (end - from)
		p.Busy += busy * (end - from)
		p.Workers += float64(s.there) * (end - from)
		p.Deepest = max(p.Deepest, s.depth)
		from = end
	}
	s.now = to
}

func (s *simulation) result() wire.QueuePlan {
	s.told()
	span := s.end - s.warm
	r := wire.QueuePlan{Question: s.QueueQuestion, Arrived: s.arrived, Started: s.started, Waiting: s.depth, Deepest: s.deepest,
		Load:        s.Rate / float64(s.Batch) * s.meanEvent() / float64(s.there),
		Utilization: s.busyTime / s.thereTime, Depth: s.depthTime / span, Wait: s.all.summary(), Series: s.series}
	if s.events > 0 {
		r.Batch = float64(s.started) / float64(s.events)
	}
	// The mean of each stretch says how right that of all is only where they differ by chance: not by when bursts or workers come, and not since the
	// queue grows.
	steady := s.AtOnce == 0 && r.Load < 1-slack && !grows(s.QueueQuestion)
	if !steady {
		r.Wait.Within = 0
	}
	for rank := range s.waits {
		if s.Shares[rank] > 0 && s.waits[rank].n > 0 {
			r.Ranks[rank] = s.waits[rank].summary()
			if !steady {
				r.Ranks[rank].Within = 0
			}
		}
	}
	width := s.end / points
	for i := range s.series {
		s.series[i].Depth /= width
		s.series[i].Busy /= width
		s.series[i].Workers /= width
	}
	if t, ok := TheoryOf(s.QueueQuestion); ok {
		r.Theory = &t
	}
	return r
}

// meanEvent is how long a full batch keeps a worker, on average: until the slowest of it has ended.
func (s *simulation) meanEvent() float64 {
	mean := s.Service.Mean.Std().Seconds()
	switch {
	case s.Batch == 1 || s.Service.Kind == Constant:
		return mean
	case s.Service.Kind == Exponential:
		longest := 0.0
		for n := 1; n <= s.Batch; n++ {
			longest += mean / float64(n)
		}
		return longest
	default:
		// By a sample of its own, which takes nothing from what is simulated.
		const sample = 20_000
		duration := Draw(s.Service, rand.New(rand.NewPCG(s.Seed, 4)))
		sum := 0.0
		for range sample {
			slowest := 0.0
			for range s.Batch {
				slowest = max(slowest, duration())
			}
			sum += slowest
		}
		return sum / sample
	}
}
