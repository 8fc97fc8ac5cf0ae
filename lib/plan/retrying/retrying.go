// Package retrying says what a retry policy comes to: when each attempt begins, when a run gives up, and how a crowd of clients that fail
// together comes back.
//
// Every wait is drawn by lease.Backoff, as for a run. All chance comes from one seed: the same question gives the same answer, to the last
// bit, on the same architecture. Every client fails every attempt.
package retrying

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Usual is how many clients fail together unless told otherwise, and Most bounds them. Draws, of all attempts, are at most 100 times as many.
const (
	Usual = 10_000
	Most  = 10_000
)

// bins is in how many stretches the crowd is counted, and tenth is in how many seconds its peak is: the first retries of the default policy are
// spread over one second, so a whole one would not tell jitter from none.
const (
	bins  = 96
	tenth = 0.1
)

// Question is a policy, and who lives by it.
type Question struct {
	Retry   job.Retry
	Takes   time.Duration // each attempt, until it fails
	Clients int           // that fail first at one instant
	Seed    uint64
}

// Check gives the question with the defaults of a policy, or tells what is wrong with it, by the fields of a job and by "duration" and "clients".
func (q Question) Check() (Question, error) {
	retry, err := q.Retry.Check()
	q.Retry = retry
	wrong := []error{err}
	if q.Takes < 0 || q.Takes > job.MaxTimeout {
		wrong = append(wrong, invalid.Field("duration", schedule.Duration(q.Takes).String(), "a duration from 0s to "+schedule.Duration(job.MaxTimeout).String()))
	}
	if q.Clients < 1 || q.Clients > Most {
		wrong = append(wrong, invalid.Field("clients", fmt.Sprint(q.Clients), fmt.Sprintf("1 to %d", Most)))
	}
	return q, errors.Join(wrong...)
}

// Answer plays a question that Check has given. The error is that of the context.
func Answer(ctx context.Context, q Question) (wire.RetryPlan, error) {
	r := q.Retry
	plan := wire.RetryPlan{Retry: r, Takes: schedule.Duration(q.Takes), Clients: q.Clients, Seed: q.Seed, Tries: r.Tries()}
	random := rand.New(rand.NewPCG(q.Seed, 0))
	starts := make([]float64, q.Clients)                   // of the attempt, by client, in seconds from the first
	all := make([]float64, 0, q.Clients*(r.MaxAttempts-1)) // those of all retries
	var even []float64                                     // those of a client that waits as all do
	takes, same, least, most := q.Takes.Seconds(), 0.0, 0.0, 0.0
	for n := 1; n <= r.MaxAttempts; n++ {
		if err := ctx.Err(); err != nil {
			return wire.RetryPlan{}, err
		}
		if n > 1 {
			shortest, longest := r.Wait(n - 1)
			least, most = least+takes+shortest.Seconds(), most+takes+longest.Seconds()
			same += takes + (shortest + (longest-shortest)/2).Seconds()
			for i := range starts {
				starts[i] += takes + lease.Backoff(r, n-1, random.Uint64()).Seconds()
			}
			all = append(all, starts...)
			even = append(even, same)
		}
		sorted := slices.Sorted(slices.Values(starts))
		plan.Attempts = append(plan.Attempts, wire.RetryAttempt{Attempt: n, Begins: spread(least, most, sorted, 0), Alike: same, Peak: peak(sorted)})
		if n == r.MaxAttempts {
			plan.GivesUp = spread(least+takes, most+takes, sorted, takes)
		}
	}
	slices.Sort(all)
	plan.Peak = wire.RetryPeak{Spread: peak(all), Alike: peak(even) * q.Clients}
	plan.Crowd = crowd(all, even, q.Clients)
	return plan, nil
}

// spread tells of sorted instants, each so much later.
func spread(least, most float64, sorted []float64, later float64) wire.Spread {
	at := func(share float64) float64 { return sorted[int(math.Ceil(share*float64(len(sorted))))-1] + later }
	return wire.Spread{Least: least, P10: at(0.1), P50: at(0.5), P90: at(0.9), Most: most}
}

// peak is the most that fall into any tenth of a second.
func peak(sorted []float64) (most int) {
	first := 0
	for last, at := range sorted {
		for at-sorted[first] >= tenth {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// crowd counts retries in stretches of time, each as many times as long as the one before as makes them reach from the first retry to the last.
// Both are sorted; even are those of a client that waits as all do.
func crowd(all, even []float64, clients int) []wire.RetryBin {
	if len(all) == 0 {
		return []wire.RetryBin{}
	}
	from, to := min(all[0], even[0]), max(all[len(all)-1], even[len(even)-1])
	from = max(from*0.9, 1e-4)
	growth := math.Log(max(to*1.02/from, 1.1)) / bins
	out := make([]wire.RetryBin, bins)
	for i := range out {
		out[i].From, out[i].To = from*math.Exp(growth*float64(i)), from*math.Exp(growth*float64(i+1))
	}
	at := func(t float64) *wire.RetryBin { return &out[min(max(int(math.Log(t/from)/growth), 0), bins-1)] }
	for _, t := range all {
		at(t).Spread++
	}
	for _, t := range even {
		at(t).Alike += clients
	}
	return out
}
