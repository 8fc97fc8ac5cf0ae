// Package retrying says what a retry policy comes to: when each attempt begins, when a client gives up, and how a crowd of clients that fail
// together comes back.
//
// Every wait is drawn by lease.Backoff, as for a run. All chance comes from one seed: the same question gives the same answer. Every client fails
// every attempt, none is told by its target when to try again, and none waits for a worker.
package retrying

import (
	"cmp"
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

// bins is in how many stretches the time of the crowd is divided, and tenth is the time in which its peaks are counted: the first retries of the
// default policy are spread over one second, so a whole one would not tell jitter from none.
const (
	bins  = 96
	tenth = 100 * time.Millisecond
)

// Service answers what a server is asked.
type Service struct{}

// Retry plays a policy. What is left out of the question has its default. The error joins an *invalid.Error for each field that is wrong, named as
// in a job or "duration" or "clients"; or it is that of the context.
func (Service) Retry(ctx context.Context, q wire.RetryQuestion) (wire.RetryPlan, error) {
	q.Clients, q.Seed = cmp.Or(q.Clients, Usual), cmp.Or(q.Seed, 1)
	retry, err := q.Retry.Check()
	q.Retry = retry
	wrong := []error{err}
	if takes := q.Takes.Std(); takes < 0 || takes > job.MaxTimeout {
		wrong = append(wrong, invalid.Field("duration", q.Takes.String(), "a duration from 0s to "+schedule.Duration(job.MaxTimeout).String()))
	}
	if q.Clients < 1 || q.Clients > Most {
		wrong = append(wrong, invalid.Field("clients", fmt.Sprint(q.Clients), fmt.Sprintf("1 to %d", Most)))
	}
	if err := errors.Join(wrong...); err != nil {
		return wire.RetryPlan{}, err
	}
	return play(ctx, q)
}

// play plays a question that has no mistakes.
func play(ctx context.Context, q wire.RetryQuestion) (wire.RetryPlan, error) {
	r, takes := q.Retry, q.Takes.Std()
	plan := wire.RetryPlan{Retry: r, Takes: q.Takes, Clients: q.Clients, Seed: q.Seed}
	random := rand.New(rand.NewPCG(q.Seed, 0))
	begins := make([]time.Duration, q.Clients)                   // of the attempt, by client
	all := make([]time.Duration, 0, q.Clients*(r.MaxAttempts-1)) // those of all retries
	var even []time.Duration                                     // those of a client without jitter
	var same, least, most time.Duration
	for n := 1; n <= r.MaxAttempts; n++ {
		if n > 1 {
			shortest, longest := r.Wait(n - 1)
			least += takes + shortest.Truncate(time.Millisecond)
			most += takes + longest.Truncate(time.Millisecond)
			same += takes + (shortest + (longest-shortest)/2).Truncate(time.Millisecond)
			for i := range begins {
				begins[i] += takes + lease.Backoff(r, n-1, random.Uint64())
			}
			all = append(all, begins...)
			even = append(even, same)
		}
		sorted := slices.Sorted(slices.Values(begins))
		plan.Attempts = append(plan.Attempts, wire.RetryAttempt{Attempt: n, Begins: percentiles(least, most, sorted, 0), WithoutJitter: same.Seconds(), Peak: slices.Max(peaks(sorted))})
		if n == r.MaxAttempts {
			plan.GivesUp = percentiles(least+takes, most+takes, sorted, takes)
		}
		if err := ctx.Err(); err != nil {
			return wire.RetryPlan{}, err
		}
	}
	slices.Sort(all)
	if err := ctx.Err(); err != nil {
		return wire.RetryPlan{}, err
	}
	plan.Crowd = crowd(all, even, q.Clients)
	for _, b := range plan.Crowd {
		plan.Peak.WithJitter, plan.Peak.WithoutJitter = max(plan.Peak.WithJitter, b.WithJitter), max(plan.Peak.WithoutJitter, b.WithoutJitter)
	}
	return plan, nil
}

// percentiles tells of sorted times, each so much later.
func percentiles(least, most time.Duration, sorted []time.Duration, later time.Duration) wire.Percentiles {
	at := func(share float64) float64 {
		return (sorted[int(math.Ceil(share*float64(len(sorted))))-1] + later).Seconds()
	}
	return wire.Percentiles{Least: least.Seconds(), P10: at(0.1), P50: at(0.5), P90: at(0.9), Most: most.Seconds()}
}

// peaks is, for each of sorted times, how many of them are in the tenth of a second that begins with it.
func peaks(sorted []time.Duration) []int {
	out := make([]int, len(sorted))
	end := 0
	for first, at := range sorted {
		if first > 0 && at == sorted[first-1] {
			out[first] = out[first-1]
			continue
		}
		for end < len(sorted) && sorted[end]-at < tenth {
			end++
		}
		out[first] = end - first
	}
	return out
}

// crowd divides the time from the first retry to the last into stretches, each longer than the one before by the same factor, and gives each the
// fullest tenth of a second that begins in it. Both lists are sorted; even are the retries of one of the clients, without jitter.
func crowd(all, even []time.Duration, clients int) []wire.RetryBin {
	if len(all) == 0 {
		return []wire.RetryBin{}
	}
	from, to := min(all[0], even[0]).Seconds(), max(all[len(all)-1], even[len(even)-1]).Seconds()
	from = max(from*0.9, 1e-4)
	growth := math.Log(max(to*1.02/from, 1.1)) / bins
	out := make([]wire.RetryBin, bins)
	for i := range out {
		out[i].From, out[i].To = from*math.Exp(growth*float64(i)), from*math.Exp(growth*float64(i+1))
	}
	at := func(t time.Duration) *wire.RetryBin {
		return &out[min(max(int(math.Log(t.Seconds()/from)/growth), 0), bins-1)]
	}
	for i, count := range peaks(all) {
		b := at(all[i])
		b.WithJitter = max(b.WithJitter, count)
	}
	for i, count := range peaks(even) {
		b := at(even[i])
		b.WithoutJitter = max(b.WithoutJitter, count*clients)
	}
	return out
}
