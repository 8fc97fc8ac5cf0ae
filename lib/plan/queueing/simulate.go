package queueing

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
)

// Ranks is how many priorities there are: high, normal and low.
const Ranks = 3

// Config is a queue, its workers and what falls upon them.
type Config struct {
	Workers int            `json:"workers"`
	From    int            `json:"from"`    // of the workers, those who are there at the beginning; 0 for all
	Grow    float64        `json:"grow"`    // how many come in a minute, until all are there
	Batch   int            `json:"batch"`   // runs that a worker takes at once
	Rate    float64        `json:"rate"`    // arrivals a second, over a minute
	AtOnce  float64        `json:"at_once"` // the share of a minute's that comes in its first second, at one instant
	Service Service        `json:"service"`
	Shares  [Ranks]float64 `json:"shares"` // of the priorities, the highest first; together 1
	For     time.Duration  `json:"for"`
	Warm    time.Duration  `json:"warm"` // at the beginning, which is simulated and not counted
	Seed    uint64         `json:"seed"`
}

// Most bounds the arrivals that are simulated: some seconds of work, and some hundreds of MB where all of them wait.
const Most = 20_000_000

// Check tells what is wrong, by the flags of `belfry plan queue`, and what would be right.
func (c Config) Check() error {
	var errs []error
	refuse := func(flag, got, want string) { errs = append(errs, invalid.Field("--"+flag, got, want)) }
	if c.Workers < 1 || c.Workers > 1_000_000 {
		refuse("workers", fmt.Sprint(c.Workers), "1 to 1M")
	}
	if c.From < 0 || c.From > c.Workers {
		refuse("from", fmt.Sprint(c.From), "how many of --workers there are at the beginning: 1 up to all")
	}
	if !(c.Grow >= 0 && c.Grow <= 1_000_000) || c.Grow > 0 && c.From == 0 {
		refuse("grow", fmt.Sprint(c.Grow), "how many workers come in a minute, with --from: 0 to 1M, as 300")
	}
	if c.Batch < 1 || c.Batch > queue.MaxBatch {
		refuse("batch", fmt.Sprint(c.Batch), fmt.Sprintf("1 to %d, which is what a worker takes at once", queue.MaxBatch))
	}
	if !(c.Rate > 0 && c.Rate <= 10_000_000) {
		refuse("arrivals", fmt.Sprint(c.Rate), "more than 0 and at most 10M a second, such as 250, 1.5k or 0.2")
	}
	if !(c.AtOnce >= 0 && c.AtOnce <= 1) {
		refuse("at-once", fmt.Sprintf("%g%%", c.AtOnce*100), "a share from 0% to 100%")
	}
	errs = append(errs, c.Service.check())
	if high, low := c.Shares[0], c.Shares[2]; !(high >= 0 && low >= 0 && high+low <= 1) {
		refuse("high", fmt.Sprintf("%g%%", high*100), fmt.Sprintf("together with --low %g%% at most 100%%; what is left is normal", low*100))
	}
	switch {
	case c.For < time.Second || c.For > 30*24*time.Hour:
		refuse("for", c.For.String(), "1s to 30d")
	case c.Rate*c.For.Seconds() > Most:
		refuse("for", c.For.String(), fmt.Sprintf("%s at the most: %.0f runs a second for longer are more than %d million", time.Duration(Most/c.Rate*float64(time.Second)).Truncate(time.Second), c.Rate, Most/1_000_000))
	}
	if c.Warm < 0 || c.Warm >= c.For {
		refuse("warm", c.Warm.String(), "less than --for")
	}
	return errors.Join(errs...)
}

// Result is what became of it.
type Result struct {
	Config      Config       `json:"config"`
	Arrived     int          `json:"arrived"`
	Started     int          `json:"started"`
	Waiting     int          `json:"waiting_at_the_end"`
	Load        float64      `json:"load"`        // work that comes, by what the workers can do; above 1 the queue grows for ever
	Utilization float64      `json:"utilization"` // of the workers
	Batch       float64      `json:"mean_batch"`
	Depth       float64      `json:"mean_depth"`
	Deepest     int          `json:"deepest"`
	Wait        Wait         `json:"wait"`
	Ranks       [Ranks]*Wait `json:"by_priority"` // nil where none arrived
	Theory      *Theory      `json:"theory,omitempty"`
	Series      []Point      `json:"series"`
}

// Point is a stretch of the simulated time.
type Point struct {
	At      float64 `json:"at"` // seconds: its beginning
	Depth   float64 `json:"mean_depth"`
	Deepest int     `json:"deepest"`
	Busy    float64 `json:"busy"` // workers, on average
}

// points is of how many stretches a result tells.
const points = 240

// minute is what bursts repeat by.
const minute = 60.0

// Simulate runs it. The configuration is one that Check has found good.
func Simulate(c Config) *Result {
	s := newSimulation(c)
	for {
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
	return s.result()
}

// simulation is one under way. All times are seconds from its beginning.
type simulation struct {
	Config
	end, warm float64
	now       float64
	duration  func() float64
	arrivals  *rand.Rand
	ranks     *rand.Rand
	single    float64 // the next arrival that comes alone
	burst     float64 // the next instant at which many come
	owed      float64 // of a burst, the part of a run

	lines [Ranks]line
	turn  int
	depth int
	there int // workers
	free  int
	busy  departures

	arrived, started, events int
	waits                    [Ranks]waits
	all                      waits
	depthTime, busyTime      float64 // over what is counted
	deepest                  int
	series                   []Point
}

func newSimulation(c Config) *simulation {
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(c.Seed, n)) }
	s := &simulation{Config: c, end: c.For.Seconds(), warm: c.Warm.Seconds(), duration: c.Service.draw(stream(1)), arrivals: stream(2), ranks: stream(3),
		free: c.Workers, burst: math.Inf(1), single: math.Inf(1), series: make([]Point, points)}
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
		s.owed += s.Rate * minute * s.AtOnce
		n := int(s.owed)
		s.owed -= float64(n)
		s.burst += minute
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
		switch v := s.ranks.Float64(); {
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
			slowest = max(slowest, s.duration())
		}
		s.events++
		s.free--
		s.busy.push(at + slowest)
	}
	if at >= s.warm {
		s.deepest = max(s.deepest, s.depth)
	}
	p := &s.series[s.point(at)]
	p.Deepest = max(p.Deepest, s.depth)
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
		p.Deepest = max(p.Deepest, s.depth)
		from = end
	}
	s.now = to
}

func (s *simulation) result() *Result {
	span := s.end - s.warm
	r := &Result{Config: s.Config, Arrived: s.arrived, Started: s.started, Waiting: s.depth, Deepest: s.deepest,
		Load:        s.Rate / float64(s.Batch) * s.meanEvent() / float64(s.Workers),
		Utilization: s.busyTime / span / float64(s.Workers), Depth: s.depthTime / span, Wait: s.all.summary(), Series: s.series}
	if s.events > 0 {
		r.Batch = float64(s.started) / float64(s.events)
	}
	for rank := range s.waits {
		if s.Shares[rank] > 0 && s.waits[rank].n > 0 {
			w := s.waits[rank].summary()
			r.Ranks[rank] = &w
		}
	}
	width := s.end / points
	for i := range s.series {
		s.series[i].Depth /= width
		s.series[i].Busy /= width
	}
	if t, ok := TheoryOf(s.Config); ok {
		r.Theory = &t
	}
	return r
}

// meanEvent is how long a full batch keeps a worker, on average: until the slowest of it has ended.
func (s *simulation) meanEvent() float64 {
	mean := s.Service.Mean.Seconds()
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
		draw := s.Service.draw(rand.New(rand.NewPCG(s.Seed, 4)))
		sum := 0.0
		for range sample {
			slowest := 0.0
			for range s.Batch {
				slowest = max(slowest, draw())
			}
			sum += slowest
		}
		return sum / sample
	}
}
