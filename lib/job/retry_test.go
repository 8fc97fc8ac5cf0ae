package job_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

func retry(attempts int, initial time.Duration, factor float64, most time.Duration) job.Retry {
	return job.Retry{MaxAttempts: attempts, Initial: schedule.Duration(initial), Factor: factor, Max: schedule.Duration(most)}
}

// standard is what a definition has that says nothing of retries.
func standard() job.Retry { return job.Definition{}.WithDefaults().Retry }

func TestAWaitIsDrawnFromTheUpperHalfOfItsBound(t *testing.T) {
	for _, c := range []struct {
		retry       job.Retry
		n           int
		least, most time.Duration
	}{
		{standard(), 1, time.Second, 2 * time.Second},
		{standard(), 2, 2 * time.Second, 4 * time.Second},
		{standard(), 11, 1024 * time.Second, 2048 * time.Second},
		{standard(), 12, 30 * time.Minute, time.Hour},
		{standard(), 14, 30 * time.Minute, time.Hour},
		{retry(9, time.Second, 1, time.Minute), 1, time.Second, 2 * time.Second},
		{retry(9, time.Second, 1, time.Minute), 8, time.Second, 2 * time.Second},
		{retry(9, time.Second, 10, time.Minute), 2, 10 * time.Second, 20 * time.Second},
		{retry(9, time.Second, 10, time.Minute), 3, 30 * time.Second, time.Minute},
		// Where half of max is less than initial, initial is the minimum all the same.
		{retry(9, time.Minute, 2, time.Minute), 1, time.Minute, time.Minute},
		{retry(9, time.Minute, 2, time.Minute), 8, time.Minute, time.Minute},
		{retry(9, time.Minute, 2, 90*time.Second), 1, time.Minute, 90 * time.Second},
		{retry(9, time.Minute, 2, 90*time.Second), 8, time.Minute, 90 * time.Second},
		{retry(100, job.MaxRetryWait, 10, job.MaxRetryWait), 99, job.MaxRetryWait, job.MaxRetryWait},
		{retry(100, time.Millisecond, 10, job.MaxRetryWait), 99, job.MaxRetryWait / 2, job.MaxRetryWait},
		{retry(100, time.Millisecond, 10, job.MaxRetryWait), 1 << 30, job.MaxRetryWait / 2, job.MaxRetryWait},
	} {
		if least, most := c.retry.Wait(c.n); least != c.least || most != c.most {
			t.Errorf("%+v, failure %d: %s to %s, want %s to %s", c.retry, c.n, least, most, c.least, c.most)
		}
	}
}

func TestNoWaitIsShorterThanInitialOrLongerThanMax(t *testing.T) {
	for _, initial := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, time.Second, 7 * time.Minute, job.MaxRetryWait} {
		for _, factor := range []float64{1, 1.1, 2, 3.7, 10} {
			for _, wider := range []float64{1, 1.3, 2, 5, 1000} {
				r := retry(job.MaxAttempts, initial, factor, min(time.Duration(float64(initial)*wider), job.MaxRetryWait))
				before := time.Duration(0)
				for n := 1; n < r.MaxAttempts; n++ {
					least, most := r.Wait(n)
					if least < initial || most > r.Max.Std() || least > most || least < most/2 || most < before {
						t.Fatalf("%+v, failure %d: %s to %s, after %s at most", r, n, least, most, before)
					}
					before = most
				}
			}
		}
	}
}

// A target that is deployed, restarted or mended within hours fills no dead letters.
func TestByDefaultARunIsTriedForHours(t *testing.T) {
	r := standard()
	if least, most := r.Waits(); r.MaxAttempts != 15 || least < 2*time.Hour || most > 4*time.Hour+15*time.Minute {
		t.Errorf("%d attempts over %s to %s", r.MaxAttempts, least, most)
	}
	within, _ := retry(6, r.Initial.Std(), r.Factor, r.Max.Std()).Waits()
	if _, most := retry(7, r.Initial.Std(), r.Factor, r.Max.Std()).Waits(); within < 30*time.Second || most > 3*time.Minute {
		t.Errorf("after a minute's absence of its target a run goes on %s after its first attempt, or %s", within, most)
	}
	once := job.Definition{Guarantee: job.AtMostOnce}.WithDefaults().Retry
	if least, most := once.Waits(); once.MaxAttempts != 1 || least != 0 || most != 0 {
		t.Errorf("at most once: %d attempts over %s to %s", once.MaxAttempts, least, most)
	}
}

func TestHowLongARunIsTriedInWords(t *testing.T) {
	for want, r := range map[string]job.Retry{
		"tries 15 times over about 3 h":         standard(),
		"tries once":                            job.Definition{Guarantee: job.AtMostOnce}.WithDefaults().Retry,
		"tries 5 times over about 23 s":         retry(5, time.Second, 2, 5*time.Minute), // the default of before
		"tries twice over about 1.5 s":          retry(2, time.Second, 2, time.Minute),
		"tries 3 times over about 4.5 s":        retry(3, time.Second, 2, time.Minute),
		"tries 3 times over about 1 s":          retry(3, 250*time.Millisecond, 2, time.Minute),
		"tries 3 times over less than a second": retry(3, time.Millisecond, 2, time.Millisecond),
		"tries 3 times over about 59 s":         retry(3, 29500*time.Millisecond, 2, 29500*time.Millisecond),
		"tries 3 times over about 1 min":        retry(3, 29900*time.Millisecond, 2, 29900*time.Millisecond),
		"tries 4 times over about 1.5 min":      retry(4, 30*time.Second, 1, 30*time.Second),
		"tries twice over about 1 h":            retry(2, 59*time.Minute+50*time.Second, 2, 59*time.Minute+50*time.Second),
		"tries twice over about 24 h":           retry(2, 24*time.Hour, 2, 24*time.Hour),
		"tries twice over about 47 h":           retry(2, 47*time.Hour, 2, 47*time.Hour),
		"tries twice over about 2 days":         retry(2, 47*time.Hour+40*time.Minute, 2, 47*time.Hour+40*time.Minute),
		"tries 53 times over about 364 days":    retry(53, job.MaxRetryWait, 2, job.MaxRetryWait),
		"tries 100 times over about 2.5 days":   retry(100, time.Second, 2, 52*time.Minute),
	} {
		if got := r.Tries(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	if got := retry(1, time.Second, 2, time.Hour).Tries(); got != "tries once" {
		t.Errorf("a single attempt: %q", got)
	}
}
