package queueing

import (
	"math"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

const (
	stretches = 20
	student   = 2.093 // of 19 degrees of freedom, for 95 in 100
	steps     = 256   // of a histogram, between a number and its double
	least     = 1e-7  // seconds; what is less is no wait
	doublings = 50
)

// waits collects them in bounded memory.
type waits struct {
	warm, span float64
	n, none    int
	sum, max   float64
	counts     []int // by how long: steps for each doubling of least
	sums       [stretches]float64
	ns         [stretches]int
}

func newWaits(warm, span float64) waits {
	return waits{warm: warm, span: span, counts: make([]int, steps*doublings)}
}

// add counts who came at an instant and waited so long, unless it was before the counting.
func (w *waits) add(came, wait float64) {
	if came < w.warm {
		return
	}
	w.n++
	w.sum += wait
	w.max = max(w.max, wait)
	at := min(int((came-w.warm)/w.span*stretches), stretches-1)
	w.sums[at] += wait
	w.ns[at]++
	if wait < least {
		w.none++
		return
	}
	fraction, doubling := math.Frexp(wait / least)
	w.counts[min((doubling-1)*steps+int((fraction-0.5)*2*steps), len(w.counts)-1)]++
}

// clear forgets all of them.
func (w *waits) clear() {
	clear(w.counts)
	*w = waits{warm: w.warm, span: w.span, counts: w.counts}
}

// quantile is the wait that a share of the runs does not exceed.
func (w *waits) quantile(share float64) float64 {
	rank := int(math.Ceil(share * float64(w.n)))
	if rank <= w.none {
		return 0
	}
	seen := w.none
	for i, n := range w.counts {
		if seen += n; seen >= rank {
			middle := least * math.Ldexp(0.5+(float64(i%steps)+0.5)/(2*steps), i/steps+1)
			return min(middle, w.max)
		}
	}
	return w.max
}

// summary gives how far the true mean may be from theirs as half the width of the interval that holds it 19 times in 20, by the means of 20
// stretches of time.
func (w *waits) summary() wire.QueueWait {
	if w.n == 0 {
		return wire.QueueWait{}
	}
	out := wire.QueueWait{Runs: w.n, Mean: w.sum / float64(w.n), None: float64(w.none) / float64(w.n),
		P50: w.quantile(0.50), P90: w.quantile(0.90), P99: w.quantile(0.99), Max: w.max}
	var means []float64
	for i, n := range w.ns {
		if n > 0 {
			means = append(means, w.sums[i]/float64(n))
		}
	}
	if len(means) == stretches {
		mean, squares := 0.0, 0.0
		for _, m := range means {
			mean += m / stretches
		}
		for _, m := range means {
			squares += (m - mean) * (m - mean)
		}
		out.Within = student * math.Sqrt(squares/(stretches-1)/stretches)
	}
	return out
}
