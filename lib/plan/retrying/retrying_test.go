package retrying_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/plan/retrying"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func answer(t *testing.T, q retrying.Question) wire.RetryPlan {
	t.Helper()
	q, err := q.Check()
	if err != nil {
		t.Fatal(err)
	}
	made, err := retrying.Answer(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

var seconds = schedule.Duration(time.Second)

// TestAttemptsBeginBetweenTheBoundsOfThePolicy compares with the sums that the policy itself gives.
func TestAttemptsBeginBetweenTheBoundsOfThePolicy(t *testing.T) {
	retry := job.Retry{MaxAttempts: 5, Initial: seconds, Factor: 2, Max: 300 * seconds}
	p := answer(t, retrying.Question{Retry: retry, Takes: 3 * time.Second, Clients: 2000, Seed: 7})
	if len(p.Attempts) != 5 || p.Tries != retry.Tries() || p.Retry != retry {
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
		if !(b.Least <= b.P10 && b.P10 <= b.P50 && b.P50 <= b.P90 && b.P90 <= b.Most) || i > 0 && (b.P10 == b.P90 || a.Alike <= b.P10 || a.Alike >= b.P90) {
			t.Errorf("attempt %d: %+v, alike %v", a.Attempt, b, a.Alike)
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
	if p.Peak.Spread < p.Attempts[1].Peak || p.Peak.Spread > 300 || p.Peak.Alike != 2000 || p.Attempts[0].Peak != 2000 {
		t.Errorf("the worst tenth of a second: %+v", p.Peak)
	}
	spread, alike, end := 0, 0, p.Crowd[0].From
	for _, b := range p.Crowd {
		if b.From != end || b.To <= b.From {
			t.Errorf("a stretch from %v to %v after one to %v", b.From, b.To, end)
		}
		spread, alike, end = spread+b.Spread, alike+b.Alike, b.To
	}
	if spread != 4*2000 || alike != 4*2000 {
		t.Errorf("%d and %d retries of 8000 are counted", spread, alike)
	}
	if again := answer(t, retrying.Question{Retry: retry, Takes: 3 * time.Second, Clients: 2000, Seed: 7}); !reflect.DeepEqual(p, again) {
		t.Error("the same seed gives another answer")
	}
}

// Where the longest wait is the shortest there is no jitter, and retries that are close together count together.
func TestAPolicyWithoutJitter(t *testing.T) {
	wait := schedule.Duration(10 * time.Millisecond)
	p := answer(t, retrying.Question{Retry: job.Retry{MaxAttempts: 5, Initial: wait, Max: wait}, Clients: 30})
	if p.Peak != (wire.RetryPeak{Spread: 4 * 30, Alike: 4 * 30}) || p.Attempts[4].Peak != 30 {
		t.Errorf("the worst tenth of a second: %+v, that of the last attempt %d", p.Peak, p.Attempts[4].Peak)
	}
}

func TestTheLargestQuestionIsAnswered(t *testing.T) {
	p := answer(t, retrying.Question{Retry: job.Retry{MaxAttempts: job.MaxAttempts}, Clients: retrying.Most, Seed: 1})
	retries := 0
	for _, b := range p.Crowd {
		retries += b.Spread
	}
	if want := (job.MaxAttempts - 1) * retrying.Most; retries != want || want > 2_000_000 {
		t.Errorf("%d retries are counted, want %d, of 2,000,000 that are allowed", retries, want)
	}
}

func TestAPolicyThatNoJobMayHaveIsRefused(t *testing.T) {
	if p := answer(t, retrying.Question{Clients: 1, Retry: job.Retry{MaxAttempts: 1}}); len(p.Attempts) != 1 || len(p.Crowd) != 0 || p.GivesUp.Most != 0 || p.Tries != "tries once" {
		t.Errorf("%+v", p)
	}
	if p := answer(t, retrying.Question{Clients: 1}); len(p.Attempts) != job.DefaultAttempts {
		t.Errorf("%d attempts by default", len(p.Attempts))
	}
	_, err := retrying.Question{Retry: job.Retry{MaxAttempts: 101, Initial: 2 * seconds, Max: seconds, Factor: 11}, Takes: -1, Clients: retrying.Most + 1}.Check()
	var fields []string
	for _, e := range invalid.All(err) {
		fields = append(fields, e.Field)
	}
	if want := []string{"retry.max_attempts", "retry.max", "retry.factor", "duration", "clients"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("refused are %q, want %q", fields, want)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	q, _ := retrying.Question{Clients: 1}.Check()
	if _, err := retrying.Answer(ended, q); !errors.Is(err, context.Canceled) {
		t.Errorf("goes on for nobody: %v", err)
	}
}
