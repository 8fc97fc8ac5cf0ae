package queueing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/plan/queueing"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// config is a queue of one priority, long enough for three digits.
func config(workers int, rate float64, s wire.QueueService) wire.QueueQuestion {
	seconds := min(2_000_000/rate, 2_000_000)
	return wire.QueueQuestion{Workers: workers, Batch: 1, Rate: rate, Service: s, Shares: [3]float64{0, 1, 0},
		For: schedule.Duration(seconds * float64(time.Second)), Warm: new(schedule.Duration(seconds / 20 * float64(time.Second))), Seed: 7}
}

func simulated(t *testing.T, c wire.QueueQuestion) wire.QueuePlan {
	t.Helper()
	made, err := queueing.Simulate(t.Context(), c, queueing.Most)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// near fails where a figure is not within so much of what it should be, as a share of it.
func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s is %.5g, want %.5g within %.2g%%: it is off by %.2g%%", what, got, want, within*100, (got/want-1)*100)
	}
}

var second = schedule.Duration(time.Second)

// TestErlangC holds the formula to what tables of it have, and to its closed forms.
func TestErlangC(t *testing.T) {
	for _, c := range []struct {
		workers    int
		load, want float64
	}{
		{1, 0.5, 0.5},        // the utilization
		{2, 1, 1.0 / 3},      // 2a²/(2-a)/(...) in closed form: a²/(2+a)
		{2, 1.5, 2.25 / 3.5}, // the same
		{10, 8, 0.409180},    // Erlang's tables
		{5, 5, 1}, {5, 7, 1}, {1000, 0.001, 0},
	} {
		if got := queueing.ErlangC(c.workers, c.load); math.Abs(got-c.want) > 5e-6 {
			t.Errorf("Erlang C of %d workers under %g is %.6f, want %.6f", c.workers, c.load, got, c.want)
		}
	}
	// By the definition, summed up in logarithms: another way than the recursion.
	for _, workers := range []int{3, 17, 240} {
		load := 0.93 * float64(workers)
		term := func(n int) float64 {
			log, _ := math.Lgamma(float64(n + 1))
			return math.Exp(float64(n)*math.Log(load) - load - log)
		}
		below := 0.0
		for n := range workers {
			below += term(n)
		}
		all := term(workers) * float64(workers) / (float64(workers) - load)
		near(t, fmt.Sprint("Erlang C of ", workers), queueing.ErlangC(workers, load), all/(below+all), 1e-9)
	}
}

// TestQueuesOfErlang is M/M/c: the mean wait, who waits at all, the tail of the wait, the depth and the utilization.
func TestQueuesOfErlang(t *testing.T) {
	for _, c := range []struct {
		workers int
		load    float64
		within  float64 // some three standard errors
	}{{1, 0.5, 0.02}, {1, 0.8, 0.04}, {4, 3.2, 0.04}, {20, 17, 0.04}, {200, 190, 0.06}} {
		t.Run(fmt.Sprintf("%d workers, load %g", c.workers, c.load), func(t *testing.T) {
			t.Parallel()
			r := simulated(t, config(c.workers, c.load, wire.QueueService{Kind: queueing.Exponential, Mean: second}))
			theory := r.Theory
			if theory == nil || !theory.Exact {
				t.Fatalf("theory is %+v", theory)
			}
			near(t, "utilization", r.Utilization, c.load/float64(c.workers), 0.004)
			near(t, "share that waits", 1-r.Wait.None, theory.Waits, 0.02)
			near(t, "mean wait", r.Wait.Mean, theory.Wait, c.within)
			near(t, "mean depth", r.Depth, theory.Depth, c.within)
			if math.Abs(r.Wait.Mean-theory.Wait) > 1.5*r.Wait.Within {
				t.Errorf("mean wait %.4f ± %.4f, theory %.4f", r.Wait.Mean, r.Wait.Within, theory.Wait)
			}
			// Those who wait do so for an exponential time: P(W > t) = C exp(-(c-a)t).
			rest := float64(c.workers) - c.load
			near(t, "p99 of the wait", r.Wait.P99, math.Log(theory.Waits/0.01)/rest, c.within*1.3)
			for share, wait := range map[float64]*float64{0.5: theory.P50, 0.9: theory.P90, 0.99: theory.P99} {
				if longer := waitsLonger(c.workers, c.load, 1, *wait); *wait > 0 && math.Abs(longer-(1-share)) > 1e-9 || *wait == 0 && theory.Waits > 1-share {
					t.Errorf("of all %g wait no longer than %g s, and %g do", share, *wait, longer)
				}
			}
			near(t, "P(W > p90)", waitsLonger(c.workers, c.load, 1, max(r.Wait.P90, 0)), min(0.1, theory.Waits), 0.06)
		})
	}
}

// TestQueuesOfPollaczekAndKhinchine is M/G/1, for each distribution: the wait goes by the variance of the durations.
func TestQueuesOfPollaczekAndKhinchine(t *testing.T) {
	for _, c := range []struct {
		service wire.QueueService
		want    float64 // (1+scv)/2 * load/(1-load) at a load of 0.7
		within  float64
	}{
		{wire.QueueService{Kind: queueing.Constant, Mean: second}, 0.7 / 0.3 / 2, 0.02},
		{wire.QueueService{Kind: queueing.Exponential, Mean: second}, 0.7 / 0.3, 0.03},
		{wire.QueueService{Kind: queueing.Lognormal, Mean: second, P99: 5 * second}, 0, 0.05},
	} {
		t.Run(c.service.Kind, func(t *testing.T) {
			t.Parallel()
			r := simulated(t, config(1, 0.7, c.service))
			want := c.want
			if c.service.Kind == queueing.Lognormal {
				// ln 5 = q sigma - sigma²/2 with q the 99th percentile of the normal distribution.
				const q = 2.3263478740408408
				sigma := q - math.Sqrt(q*q-2*math.Log(5))
				want = math.Exp(sigma*sigma) / 2 * 0.7 / 0.3
			}
			near(t, "mean wait", r.Wait.Mean, want, c.within)
			near(t, "what theory says of it", r.Theory.Wait, want, 1e-9)
			if !r.Theory.Exact {
				t.Error("it is exact, and not said to be")
			}
		})
	}
}

// TestTheApproximationIsOne says how good the formula is that is shown where none is exact.
func TestTheApproximationIsOne(t *testing.T) {
	r := simulated(t, config(8, 7, wire.QueueService{Kind: queueing.Constant, Mean: second}))
	if r.Theory.Exact {
		t.Error("it is said to be exact")
	}
	near(t, "mean wait", r.Wait.Mean, r.Theory.Wait, 0.10)
}

// TestLittlesLaw holds for any queue: the depth is the rate times the wait. Here with batches, bursts and priorities.
func TestLittlesLaw(t *testing.T) {
	c := config(30, 10, wire.QueueService{Kind: queueing.Lognormal, Mean: 4 * second, P99: 20 * second})
	c.Batch, c.AtOnce, c.Shares = 10, 0.5, [3]float64{0.2, 0.5, 0.3}
	c.For, c.Warm = 1200*60*second, new(60*60*second)
	r := simulated(t, c)
	near(t, "depth", r.Depth, float64(r.Wait.Runs)/(c.For-*c.Warm).Std().Seconds()*r.Wait.Mean, 0.001)
}

// TestABurstWaitsByHand: all of a minute's runs at once, each of the same length, is known to the end.
func TestABurstWaitsByHand(t *testing.T) {
	c := wire.QueueQuestion{Workers: 7, Batch: 1, Rate: 10, AtOnce: 1, Service: wire.QueueService{Kind: queueing.Constant, Mean: second / 2},
		Shares: [3]float64{0, 1, 0}, For: 60 * second, Seed: 1}
	for batch, want := range map[int][2]float64{
		// 600 runs in 86 rounds of 7, the last one of 5: the n-th round waits n/2 s.
		1: {85 * 0.5, (7*0.5*84*85/2 + 5*85*0.5) / 600},
		// 60 batches of 10, in 9 rounds, the last one of 4.
		10: {8 * 0.5, (70*0.5*7*8/2 + 40*8*0.5) / 600},
	} {
		c.Batch = batch
		r := simulated(t, c)
		if r.Arrived != 600 || r.Started != 600 || math.Abs(r.Wait.Max-want[0]) > 1e-9 || math.Abs(r.Wait.Mean-want[1]) > 1e-9 {
			t.Errorf("batches of %d: %d of %d started, wait %g at most and %g on average, want %g and %g", batch, r.Started, r.Arrived, r.Wait.Max, r.Wait.Mean, want[0], want[1])
		}
		if r.Deepest != 600-7*batch {
			t.Errorf("batches of %d: %d deep, want %d", batch, r.Deepest, 600-7*batch)
		}
	}
}

// TestABurstAtEachFullHour: half of an hour's runs come at its beginning, and ten a second start until the queue is empty again; the others come one by one.
func TestABurstAtEachFullHour(t *testing.T) {
	q := wire.QueueQuestion{Workers: 10, Rate: 1, AtOnce: 0.5, Every: 3600 * second, Service: wire.QueueService{Kind: queueing.Constant, Mean: second}, For: 2 * 3600 * second}
	r := simulated(t, q)
	near(t, "arrived", float64(r.Arrived), 7200, 0.03)
	near(t, "deepest", float64(r.Deepest), 1790, 0.005)
	near(t, "longest wait", r.Wait.Max, 180, 0.1) // 1,800 of the burst and those that come meanwhile, ten a second, first come, first served
	for _, p := range r.Series {
		if since := math.Mod(p.At, 3600); p.Deepest > 200 != (since < 180) {
			t.Errorf("%g s after the full hour %d wait", since, p.Deepest)
		}
	}
	for span, warm := range map[schedule.Duration]schedule.Duration{2 * 3600 * second: 0, 12 * 3600 * second: 3600 * second} { // no burst is counted in part
		q.For = span
		if got := *simulated(t, q).Question.Warm; got != warm {
			t.Errorf("of %s %s are not counted", span, got)
		}
	}
}

// TestWorkersThatComeByHand: one is there, one more comes each second, until there are four; each takes a second for a run.
func TestWorkersThatComeByHand(t *testing.T) {
	c := wire.QueueQuestion{Workers: 4, From: 1, Grow: 60, Batch: 1, Rate: 0.5, AtOnce: 1, Service: wire.QueueService{Kind: queueing.Constant, Mean: second},
		Shares: [3]float64{0, 1, 0}, For: 60 * second, Seed: 1}
	r := simulated(t, c)
	// 30 runs: 1 starts at 0 s, 2 at 1 s, 3 at 2 s, and 4 each second from then on, the last 4 at 8 s.
	want := (2.0*1 + 3*2 + 4*(3+4+5+6+7+8)) / 30
	if r.Started != 30 || math.Abs(r.Wait.Max-8) > 1e-9 || math.Abs(r.Wait.Mean-want) > 1e-9 || r.Theory != nil {
		t.Errorf("%d started, wait %g at most and %g on average, want 8 and %g", r.Started, r.Wait.Max, r.Wait.Mean, want)
	}
	near(t, "utilization of those that are there", r.Utilization, 30.0/(1+2+3+57*4), 1e-9)
	near(t, "load upon those that are there at the end", r.Load, 0.5/4, 1e-9)
	// Of the 240 stretches of a quarter of a second, who starts in the 5th has waited for a second, and in the 33rd for 8.
	for i, want := range map[int][4]float64{0: {1, 1, 4, 0}, 4: {2, 2, 8, 1}, 32: {4, 4, 16, 8}} {
		p := r.Series[i]
		if math.Abs(p.Workers-want[0]) > 1e-9 || math.Abs(p.Busy-want[1]) > 1e-9 || math.Abs(p.Throughput-want[2]) > 1e-9 || p.P50 == nil || math.Abs(*p.P50-want[3]) > 0.005*want[3] || *p.P99 != *p.P50 {
			t.Errorf("stretch %d: %+v, want workers, busy, throughput and wait %v", i, p, want)
		}
	}
	if p := r.Series[1]; p.P50 != nil || p.P99 != nil || p.Throughput != 0 {
		t.Errorf("nothing starts between two seconds: %+v", p)
	}
	// Of a thousand, 11 have come by the end: nothing is divided by the others.
	c.Workers, c.Grow = 1000, 10
	some := simulated(t, c)
	near(t, "load upon ten", some.Load, 0.5/10, 1e-9)
	near(t, "utilization of few", some.Utilization, 30.0/(6*(1+2+3+4+5+6+7+8+9+10)), 1e-9)
	c.Workers, c.From, c.Grow = 4, 4, 0
	if r := simulated(t, c); math.Abs(r.Wait.Max-7) > 1e-9 {
		t.Errorf("all are there: the last waits %g s, want 7", r.Wait.Max)
	}
}

// TestPrioritiesMoveWaitsAndMakeNone: an order that does not look at durations changes nobody's wait on average over all, and the turns
// keep a floor for low.
func TestPrioritiesMoveWaitsAndMakeNone(t *testing.T) {
	c := config(10, 9.3, wire.QueueService{Kind: queueing.Exponential, Mean: second})
	one := simulated(t, c)
	c.Shares = [3]float64{0.3, 0.4, 0.3}
	three := simulated(t, c)
	near(t, "mean wait over all", three.Wait.Mean, one.Wait.Mean, 0.001)
	high, normal, low := three.Ranks[0], three.Ranks[1], three.Ranks[2]
	if !(high.Mean < normal.Mean/2 && normal.Mean < low.Mean) {
		t.Errorf("waits of %.2f, %.2f and %.2f s by priority, want them in that order", high.Mean, normal.Mean, low.Mean)
	}
	sum := 0.0
	for _, w := range three.Ranks {
		sum += w.Mean * float64(w.Runs)
	}
	near(t, "the sum of all waits", sum, three.Wait.Mean*float64(three.Wait.Runs), 1e-9)

	// High alone is more than the workers can do: of 16 turns low keeps one, and normal three.
	c.Rate, c.Shares, c.For = 40, [3]float64{0.8, 0.1, 0.1}, 600*second
	c.Warm = new(schedule.Duration)
	full := simulated(t, c)
	if full.Load < 3.9 || full.Utilization < 0.99 {
		t.Errorf("load %.2f, utilization %.2f", full.Load, full.Utilization)
	}
	if low := full.Ranks[2]; float64(low.Runs) < 0.055*float64(full.Started) {
		t.Errorf("%d of %d runs that started are low: it starves", low.Runs, full.Started)
	}
}

// TestTheSameSeedIsTheSame: a result can be had again, and another seed is another world.
func TestTheSameSeedIsTheSame(t *testing.T) {
	c := config(5, 4, wire.QueueService{Kind: queueing.Lognormal, Mean: second, P99: 4 * second})
	c.For, c.Warm, c.Shares = 1200*second, new(60*second), [3]float64{0.2, 0.6, 0.2}
	text := func() string {
		all, err := json.Marshal(simulated(t, c))
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	first := text()
	if text() != first {
		t.Error("the same seed gave another result")
	}
	c.Seed++
	if text() == first {
		t.Error("another seed gave the same result")
	}
}

// TestTheSeriesIsTheWhole: the points of a chart add up to what is told in figures.
func TestTheSeriesIsTheWhole(t *testing.T) {
	c := config(12, 11, wire.QueueService{Kind: queueing.Exponential, Mean: second})
	c.For, c.Warm, c.AtOnce = 47*60*second, new(schedule.Duration), 0.3
	r := simulated(t, c)
	depth, busy, deepest, started := 0.0, 0.0, 0, 0.0
	for _, p := range r.Series {
		started += p.Throughput * c.For.Std().Seconds() / float64(len(r.Series))
		if p.Workers < 12-1e-9 || p.Workers > 12+1e-9 || (p.P50 == nil) != (p.Throughput == 0) || p.P50 != nil && (*p.P50 > *p.P99 || *p.P99 > r.Wait.Max) {
			t.Errorf("%+v", p)
		}
		depth += p.Depth / float64(len(r.Series))
		busy += p.Busy / float64(len(r.Series))
		deepest = max(deepest, p.Deepest)
	}
	near(t, "depth", depth, r.Depth, 1e-6)
	near(t, "busy", busy, r.Utilization*12, 1e-6)
	near(t, "started", started, float64(r.Started), 1e-9)
	if deepest != r.Deepest {
		t.Errorf("the series is %d deep, the result %d", deepest, r.Deepest)
	}
}

// waitsLonger is the probability that a run waits longer than so many seconds, with exponential durations.
func waitsLonger(workers int, load, mean, seconds float64) float64 {
	if load >= float64(workers) {
		return 1
	}
	return queueing.ErlangC(workers, load) * math.Exp(-(float64(workers)-load)/mean*seconds)
}

func TestStaffIsTheFewest(t *testing.T) {
	for _, load := range []float64{0.3, 1, 5, 48, 950.5, 1000.5, 4000, 60_000} {
		for _, seconds := range []float64{0, 0.001, 1} {
			n := queueing.Staff(load, 0.24, seconds, 0.01)
			most := 0 // as many more or fewer as the limit for many workers may be wrong by
			if load > 1000 {
				most = 1
			}
			if waitsLonger(n+most, load, 0.24, seconds) > 0.01 || n > 1+most && waitsLonger(n-1-most, load, 0.24, seconds) <= 0.01 {
				t.Errorf("%d workers for a load of %g and %g s", n, load, seconds)
			}
		}
	}
	if n := queueing.Staff(1e13, 0.24, 1, 0.01); n < 1e13 || n > 1e13+1e8 {
		t.Errorf("%d workers for ten million millions", n)
	}
}

func TestBadInputNamesItsField(t *testing.T) {
	good := config(5, 4, wire.QueueService{Kind: queueing.Constant, Mean: second})
	for field, spoil := range map[string]func(*wire.QueueQuestion){
		"workers":      func(c *wire.QueueQuestion) { c.Workers = 0 },
		"from":         func(c *wire.QueueQuestion) { c.From = 6 },
		"grow":         func(c *wire.QueueQuestion) { c.Grow = 1 },
		"grow ":        func(c *wire.QueueQuestion) { c.From = 4 },
		"batch":        func(c *wire.QueueQuestion) { c.Batch = 11 },
		"arrivals":     func(c *wire.QueueQuestion) { c.Rate = math.NaN() },
		"at_once":      func(c *wire.QueueQuestion) { c.AtOnce = 1.2 },
		"burst_every":  func(c *wire.QueueQuestion) { c.Every = 30 * second },
		"distribution": func(c *wire.QueueQuestion) { c.Service.Kind = "normal" },
		"duration":     func(c *wire.QueueQuestion) { c.Service.Mean = 25 * 3600 * second },
		"p99": func(c *wire.QueueQuestion) {
			c.Service = wire.QueueService{Kind: queueing.Lognormal, Mean: second, P99: 20 * second}
		},
		"high":  func(c *wire.QueueQuestion) { c.Shares = [3]float64{0.7, 0, 0.4} },
		"high ": func(c *wire.QueueQuestion) { c.Shares = [3]float64{-0.1, 0, 1} },
		"low":   func(c *wire.QueueQuestion) { c.Shares = [3]float64{0.7, 0, 1.4} },
		"for":   func(c *wire.QueueQuestion) { c.Rate = 1e6 },
		"warm":  func(c *wire.QueueQuestion) { c.Warm = &c.For },
	} {
		c := good
		spoil(&c)
		_, err := queueing.Simulate(t.Context(), c, queueing.Most)
		if wrong := invalid.All(err); len(wrong) != 1 || wrong[0].Field != strings.TrimSpace(field) || wrong[0].Want == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestNoMoreArriveThanAreAllowed: a minute that has begun has its whole burst, however short it is, and the longest time that a refusal names is
// taken.
func TestNoMoreArriveThanAreAllowed(t *testing.T) {
	for _, c := range []struct {
		rate, atOnce float64
		span         time.Duration
		field, says  string
	}{
		{1000, 0, 34 * time.Minute, "for", "33m20s at the most"},
		{1000, 1, 33*time.Minute + time.Second, "for", "33m0s at the most"},
		{1000, 0.5, 33*time.Minute + 30*time.Second, "for", "33m0s at the most"},
		{1000, 0.1, 40 * time.Minute, "for", "33m15s at the most"}, // 33 minutes, and what comes of the next one behind its burst
		{10_000_000, 1, time.Second, "arrivals", "at most 33333 a second, or fewer of the runs at once"},
		{10_000_000, 0, time.Second, "arrivals", "at most 2000000 a second: more"},
	} {
		q := wire.QueueQuestion{Workers: 1_000_000, Rate: c.rate, AtOnce: c.atOnce, For: schedule.Duration(c.span)}
		_, err := queueing.Bounded{}.Queue(t.Context(), q)
		wrong := invalid.All(err)
		if len(wrong) != 1 || wrong[0].Field != c.field || !strings.Contains(wrong[0].Want, c.says) {
			t.Errorf("%g a second, %g at once, for %s: %v", c.rate, c.atOnce, c.span, err)
			continue
		}
		if strings.Contains(wrong[0].Got, "e+") {
			t.Errorf("got %s", wrong[0].Got)
		}
		if c.field == "for" {
			longest, _, _ := strings.Cut(wrong[0].Want, " ")
			q.For, _ = schedule.ParseDuration(longest)
		} else {
			q.Rate = map[float64]float64{0: 2_000_000, 1: 33_333}[c.atOnce]
		}
		r, err := queueing.Bounded{}.Queue(t.Context(), q)
		if err != nil || r.Arrived > queueing.MostServed*101/100 || r.Arrived < queueing.MostServed*97/100 {
			t.Errorf("%g a second, %g at once, for %s: %d runs came, %v", q.Rate, c.atOnce, q.For, r.Arrived, err)
		}
	}
}

// TestWhatIsLeftOutHasItsDefault, and what is answered can be asked again.
func TestWhatIsLeftOutHasItsDefault(t *testing.T) {
	r := simulated(t, wire.QueueQuestion{Workers: 50, Rate: 20})
	want := wire.QueueQuestion{Workers: 50, Batch: 1, Rate: 20, Service: wire.QueueService{Kind: "constant", Mean: second / 5}, Shares: [3]float64{0, 1, 0},
		Every: 60 * second, For: 600 * second, Warm: new(60 * second), Seed: 1}
	if !reflect.DeepEqual(r.Question, want) {
		t.Errorf("%+v", r.Question)
	}
	if again := simulated(t, r.Question); !reflect.DeepEqual(again, r) {
		t.Error("the question that was answered has another answer")
	}
	if r := simulated(t, wire.QueueQuestion{Workers: 50, Rate: 20, Shares: [3]float64{0.9, 0, 0.1}}); r.Question.Shares[1] != 0 {
		t.Errorf("%g of the runs are normal", r.Question.Shares[1])
	}
}

// TestOfABurstAllIsCountedOrNone: a warm-up that cut a minute in two would leave out the runs of its burst, and keep the work.
func TestOfABurstAllIsCountedOrNone(t *testing.T) {
	for _, c := range []struct {
		span time.Duration
		warm time.Duration
	}{{time.Minute, 0}, {5 * time.Minute, 0}, {9*time.Minute + 59*time.Second, 0}, {10 * time.Minute, time.Minute}, {29 * time.Minute, 2 * time.Minute}} {
		q := wire.QueueQuestion{Workers: 60, Rate: 200, AtOnce: 0.95, For: schedule.Duration(c.span)}
		r := simulated(t, q)
		if got := r.Question.Warm.Std(); got != c.warm {
			t.Errorf("of %s, %s is warm-up, want %s", c.span, got, c.warm)
		}
		if c.warm == 0 && r.Arrived != r.Wait.Runs+r.Waiting {
			t.Errorf("of %s, %d runs came, and %d are counted", c.span, r.Arrived, r.Wait.Runs)
		}
		if r.Waiting == 0 { // where bursts are gone by the end, none is cut there either
			near(t, "depth by Little's law", r.Depth, float64(r.Wait.Runs)/(c.span-c.warm).Seconds()*r.Wait.Mean, 0.001)
		}
	}
	if r := simulated(t, wire.QueueQuestion{Workers: 100, Rate: 10, AtOnce: 0.95, For: 60 * second}); r.Arrived != r.Wait.Runs {
		t.Errorf("%d runs came in a minute, and %d are counted", r.Arrived, r.Wait.Runs)
	}
}

// TestTheMeanIsSaidToBeRightWhereChanceAloneMovesIt: not where bursts, workers that come, or a queue that grows do.
func TestTheMeanIsSaidToBeRightWhereChanceAloneMovesIt(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*wire.QueueQuestion)
		said   bool
	}{
		"steady":            {func(*wire.QueueQuestion) {}, true},
		"all from":          {func(c *wire.QueueQuestion) { c.From = 5 }, true},
		"bursts":            {func(c *wire.QueueQuestion) { c.AtOnce = 0.1 }, false},
		"full":              {func(c *wire.QueueQuestion) { c.Rate = 5 }, false},
		"too few":           {func(c *wire.QueueQuestion) { c.Rate = 6 }, false},
		"workers that come": {func(c *wire.QueueQuestion) { c.From, c.Grow = 4, 60 }, false},
	} {
		q := wire.QueueQuestion{Workers: 5, Rate: 4.5, Service: wire.QueueService{Kind: queueing.Exponential, Mean: second}, Shares: [3]float64{0: 0.5}, For: 3600 * second}
		c.change(&q)
		r := simulated(t, q)
		if r.Wait.Within > 0 != c.said || r.Ranks[0].Within > 0 != c.said || r.Ranks[1].Within > 0 != c.said {
			t.Errorf("%s: right to %g, %g and %g", what, r.Wait.Within, r.Ranks[0].Within, r.Ranks[1].Within)
		}
	}
}

// TestAFullQueueHasNoTheory: 57 workers for 57 s of work a second, whichever way the product is rounded.
func TestAFullQueueHasNoTheory(t *testing.T) {
	c := wire.QueueQuestion{Workers: 57, Batch: 1, Rate: 100, Service: wire.QueueService{Kind: queueing.Constant, Mean: schedule.Duration(570 * time.Millisecond)}}
	if theory, ok := queueing.TheoryOf(c); ok {
		t.Errorf("%+v", theory)
	}
}

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestASimulationEndsWithItsContext(t *testing.T) {
	q := wire.QueueQuestion{Workers: 100, Rate: 100, For: 600 * second} // 120,000 events
	for _, asked := range []int{0, 5, 25} {
		if _, err := (queueing.Bounded{}).Queue(&countdown{t.Context(), asked}, q); !errors.Is(err, context.Canceled) {
			t.Errorf("goes on for nobody after %d: %v", asked, err)
		}
	}
	if _, err := (queueing.Bounded{}).Queue(&countdown{t.Context(), 40}, q); err != nil {
		t.Errorf("asks too often: %v", err)
	}
}

func BenchmarkSimulate(b *testing.B) {
	c := config(2400, 10_000, wire.QueueService{Kind: queueing.Lognormal, Mean: 240 * second / 1000, P99: second})
	c.For, c.Warm = 10*second, new(schedule.Duration)
	for b.Loop() {
		if _, err := queueing.Simulate(b.Context(), c, queueing.Most); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/run")
}
