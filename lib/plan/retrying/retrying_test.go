package retrying_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/plan/retrying"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func answer(t *testing.T, q wire.RetryQuestion) wire.RetryPlan {
	t.Helper()
	made, err := retrying.Service{}.Retry(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

var seconds = schedule.Duration(time.Second)

// TestAttemptsBeginBetweenTheBoundsOfThePolicy compares with the sums that the policy itself gives.
func TestAttemptsBeginBetweenTheBoundsOfThePolicy(t *testing.T) {
	retry := job.Retry{MaxAttempts: 5, Initial: seconds, Factor: 2, Max: 300 * seconds}
	p := answer(t, wire.RetryQuestion{Retry: retry, Takes: 3 * seconds, Clients: 2000, Seed: 7})
	if len(p.Attempts) != 5 || p.Retry != retry {
		t.Fatalf("%+v", p)
	}
	for i, a := range p.Attempts {
		upTo := retry
		upTo.MaxAttempts = i + 1
		least, most := upTo.Waits()
		takes := 3 * float64(i)
		b := a.Begins
		if b.Least != least.Seconds()+takes || b.Most != most.Seconds()+takes {
			t.Errorf("attempt %d begins from %v to %v s, want %v to %v", a.Attempt, b.Least, b.Most, least.Seconds()+takes, most.Seconds()+takes)
		}
		if !(b.Least <= b.P10 && b.P10 <= b.P50 && b.P50 <= b.P90 && b.P90 <= b.Most) || i > 0 && (b.P10 == b.P90 || a.WithoutJitter <= b.P10 || a.WithoutJitter >= b.P90) {
			t.Errorf("attempt %d: %+v, without jitter %v", a.Attempt, b, a.WithoutJitter)
		}
	}
	// Waits are drawn evenly: half of the second attempts begin by the middle of a second, and a tenth of them in each tenth of it.
	second := p.Attempts[1]
	if middle := (second.Begins.Least + second.Begins.Most) / 2; second.Begins.P50 < middle-0.05 || second.Begins.P50 > middle+0.05 || second.Peak < 200 || second.Peak > 300 {
		t.Errorf("the second attempt: %+v", second)
	}
	if last := p.Attempts[4]; last.Peak > 100 || p.GivesUp.P50 != last.Begins.P50+3 || p.GivesUp.Most != last.Begins.Most+3 {
		t.Errorf("the last attempt: %+v, gives up %+v", last, p.GivesUp)
	}
	if p.Peak.WithJitter < p.Attempts[1].Peak || p.Peak.WithJitter > 300 || p.Peak.WithoutJitter != 2000 || p.Attempts[0].Peak != 2000 {
		t.Errorf("the worst tenth of a second: %+v", p.Peak)
	}
	// The fullest stretch is the worst tenth of a second of all, and stretches follow each other.
	tallest, end := wire.RetryPeak{}, p.Crowd[0].From
	for _, b := range p.Crowd {
		if b.From != end || b.To <= b.From {
			t.Errorf("a stretch from %v to %v after one to %v", b.From, b.To, end)
		}
		tallest, end = wire.RetryPeak{WithJitter: max(tallest.WithJitter, b.WithJitter), WithoutJitter: max(tallest.WithoutJitter, b.WithoutJitter)}, b.To
	}
	if tallest != p.Peak || p.Crowd[0].From > p.Attempts[1].Begins.P10 || end < p.Attempts[4].Begins.P90 {
		t.Errorf("the fullest stretch: %+v, want %+v; up to %v", tallest, p.Peak, end)
	}
	if again := answer(t, wire.RetryQuestion{Retry: retry, Takes: 3 * seconds, Clients: 2000, Seed: 7}); !reflect.DeepEqual(p, again) {
		t.Error("the same seed gives another answer")
	}
}

// Where the longest wait is the shortest there is no jitter, and retries that are close together count together.
func TestAPolicyWithoutJitter(t *testing.T) {
	wait := schedule.Duration(10 * time.Millisecond)
	p := answer(t, wire.RetryQuestion{Retry: job.Retry{MaxAttempts: 5, Initial: wait, Max: wait}, Clients: 30})
	if p.Peak != (wire.RetryPeak{WithJitter: 4 * 30, WithoutJitter: 4 * 30}) || p.Attempts[4].Peak != 30 {
		t.Errorf("the worst tenth of a second: %+v, that of the last attempt %d", p.Peak, p.Attempts[4].Peak)
	}
}

// TestWaitsAreThoseOfARun draws with lease.Backoff what each client waits.
func TestWaitsAreThoseOfARun(t *testing.T) {
	retry := job.Retry{MaxAttempts: 8, Initial: schedule.Duration(time.Millisecond), Factor: 1.7, Max: seconds}
	for _, clients := range []int{1, 7} {
		p := answer(t, wire.RetryQuestion{Retry: retry, Clients: clients, Seed: 5})
		draw := rand.New(rand.NewPCG(5, 0))
		begins := make([]time.Duration, clients)
		for n := 2; n <= 8; n++ {
			for i := range begins {
				begins[i] += lease.Backoff(retry, n-1, draw.Uint64())
			}
			sorted := slices.Sorted(slices.Values(begins))
			if got, want := p.Attempts[n-1].Begins.P50, sorted[(clients+1)/2-1].Seconds(); got != want {
				t.Errorf("of %d clients: attempt %d begins at %v s, want %v s", clients, n, got, want)
			}
			if b := p.Attempts[n-1].Begins; b.P10 < b.Least || b.P90 > b.Most || sorted[0]%time.Millisecond != 0 {
				t.Errorf("of %d clients: attempt %d begins at %+v", clients, n, b)
			}
		}
	}
}

// The peak of each stretch is counted, one by one.
func TestAStretchHasItsFullestTenthOfASecond(t *testing.T) {
	retry := job.Retry{MaxAttempts: 4, Initial: schedule.Duration(40 * time.Millisecond), Factor: 1.5, Max: seconds}
	p := answer(t, wire.RetryQuestion{Retry: retry, Clients: 300, Seed: 3})
	draw := rand.New(rand.NewPCG(3, 0))
	begins := make([]time.Duration, 300)
	var all []time.Duration
	for n := 1; n < 4; n++ {
		for i := range begins {
			begins[i] += lease.Backoff(retry, n, draw.Uint64())
		}
		all = append(all, begins...)
	}
	counted := 0
	for _, b := range p.Crowd {
		most := 0
		for _, first := range all {
			if first.Seconds() < b.From || first.Seconds() >= b.To {
				continue
			}
			within := 0
			for _, at := range all {
				if at >= first && at < first+100*time.Millisecond {
					within++
				}
			}
			most = max(most, within)
		}
		if b.WithJitter != most {
			t.Errorf("from %v to %v s: %d, want %d", b.From, b.To, b.WithJitter, most)
		}
		counted = max(counted, most)
	}
	if counted != p.Peak.WithJitter || counted <= p.Attempts[1].Peak {
		t.Errorf("the worst tenth of a second has %d, want %d, more than of one attempt", p.Peak.WithJitter, counted)
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

// The largest question is as large as the doc of Most says, and whoever no longer waits for it ends it: within it, and before what is left when all
// is drawn.
func TestTheLargestQuestionEndsWithItsContext(t *testing.T) {
	largest := wire.RetryQuestion{Retry: job.Retry{MaxAttempts: job.MaxAttempts}, Clients: retrying.Most}
	p := answer(t, largest)
	if last := p.Attempts[len(p.Attempts)-1]; last.Attempt != 100 || p.Clients != 10_000 || last.Begins.P50 <= last.Begins.Least || last.Peak == 0 {
		t.Errorf("the last attempt: %+v", last)
	}
	for _, asked := range []int{0, 50, 100} {
		if _, err := (retrying.Service{}).Retry(&countdown{t.Context(), asked}, largest); !errors.Is(err, context.Canceled) {
			t.Errorf("goes on for nobody after %d: %v", asked, err)
		}
	}
}

func TestAPolicyThatNoJobMayHaveIsRefused(t *testing.T) {
	if p := answer(t, wire.RetryQuestion{Clients: 1, Retry: job.Retry{MaxAttempts: 1}}); len(p.Attempts) != 1 || len(p.Crowd) != 0 || p.GivesUp.Most != 0 {
		t.Errorf("%+v", p)
	}
	if p := answer(t, wire.RetryQuestion{Clients: 1}); len(p.Attempts) != job.DefaultAttempts {
		t.Errorf("%d attempts by default", len(p.Attempts))
	}
	_, err := retrying.Service{}.Retry(t.Context(), wire.RetryQuestion{Retry: job.Retry{MaxAttempts: 101, Initial: 2 * seconds, Max: seconds, Factor: 11}, Takes: -1, Clients: retrying.Most + 1})
	var fields []string
	for _, e := range invalid.All(err) {
		fields = append(fields, e.Field)
	}
	if want := []string{"retry.max_attempts", "retry.max", "retry.factor", "duration", "clients"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("refused are %q, want %q", fields, want)
	}
}
