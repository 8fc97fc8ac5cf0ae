package queueing

import (
	"math"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// ErlangC is the probability that a run must wait, where load (arrivals a second times the seconds that one takes) falls upon so many
// workers: A. K. Erlang, 1917. 1 where they cannot keep up.
func ErlangC(workers int, load float64) float64 {
	if load >= float64(workers) {
		return 1
	}
	blocked := 1.0
	for n := 1; n <= workers; n++ {
		blocked = erlangB(blocked, n, load)
	}
	return erlangC(blocked, workers, load)
}

// erlangB is the probability that all of so many workers are busy where nobody waits, from that of one worker fewer; of none it is 1. The recursion neither
// overflows nor cancels.
func erlangB(fewer float64, workers int, load float64) float64 {
	return load * fewer / (float64(workers) + load*fewer)
}

// erlangC is ErlangC, from Erlang B of the same workers, which must be able to keep up.
func erlangC(blocked float64, workers int, load float64) float64 {
	return blocked / (1 - load/float64(workers)*(1-blocked))
}

// TheoryOf gives what is true of it in the long run, for a stable queue with Poisson arrivals whose workers take one run at once; false for others.
func TheoryOf(c wire.QueueQuestion) (wire.QueueTheory, bool) {
	mean := c.Service.Mean.Std().Seconds()
	load := c.Rate * mean
	if c.AtOnce > 0 || c.Batch > 1 || grows(c) || load >= float64(c.Workers)*(1-slack) {
		return wire.QueueTheory{}, false
	}
	scv := variation(c.Service)
	t := wire.QueueTheory{Utilization: load / float64(c.Workers), Waits: ErlangC(c.Workers, load)}
	t.Wait = t.Waits * mean / (float64(c.Workers) - load) * (1 + scv) / 2
	t.Depth = c.Rate * t.Wait
	t.Exact = c.Service.Kind == Exponential || c.Workers == 1
	t.Name = map[bool]string{true: "M/M/c, Erlang C", false: "M/G/c, Allen-Cunneen"}[c.Service.Kind == Exponential]
	if c.Workers == 1 && c.Service.Kind != Exponential {
		t.Name = "M/G/1, Pollaczek-Khinchine"
	}
	// Priorities leave the mean as it is and spread the waits; of one alone, and exponential durations, each wait is known.
	if c.Service.Kind == Exponential && slices.Max(c.Shares[:]) >= 1-slack {
		quantile := func(share float64) *float64 {
			return new(max(0, math.Log(t.Waits/(1-share))) * mean / (float64(c.Workers) - load))
		}
		t.P50, t.P90, t.P99 = quantile(0.5), quantile(0.9), quantile(0.99)
	}
	return t, true
}

// exactly is up to which load Staff counts worker by worker. Beyond it one worker is a thousandth of them.
const exactly = 1000

// Staff is the fewest workers with which no more than a share of the runs waits longer than so many seconds, with Poisson arrivals and
// exponential durations. The load is in busy workers, as for ErlangC. Beyond a load of a thousand it is by the limit for many workers, the load and so many times its
// square root: S. Halfin and W. Whitt, "Heavy-traffic limits for queues with many exponential servers" (1981).
func Staff(load, mean, seconds, share float64) int {
	if load > exactly {
		root := math.Sqrt(load)
		low, high := 0.0, 40.0 // beyond it a float64 knows no share
		for range 50 {
			middle := (low + high) / 2
			if halfinWhitt(middle)*math.Exp(-middle*root/mean*seconds) > share {
				low = middle
			} else {
				high = middle
			}
		}
		return int(math.Ceil(load + high*root))
	}
	blocked := 1.0
	for n := 1; ; n++ {
		blocked = erlangB(blocked, n, load)
		if spare := float64(n) - load; spare > 0 && erlangC(blocked, n, load)*math.Exp(-spare/mean*seconds) <= share {
			return n
		}
	}
}

// halfinWhitt is ErlangC of very many workers, so many square roots of the load more than the load.
func halfinWhitt(spare float64) float64 {
	density := math.Exp(-spare*spare/2) / math.Sqrt(2*math.Pi)
	below := math.Erfc(-spare/math.Sqrt2) / 2
	return 1 / (1 + spare*below/density)
}
