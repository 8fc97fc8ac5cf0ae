package dispatch

import (
	"errors"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// What takes too long each time is tried a few times, and has failed then, with the step's name. A try that was in time, or that failed of something else, begins anew; and who
// only looks counts nothing.
func TestAnEvaluationThatAlwaysTakesTooLongFails(t *testing.T) {
	d := &Dispatcher{evaluations: newEvaluating()}
	n := &flow.Node{Path: "parts/load"}
	try := func(once bool, with error) string {
		r := &reading{Dispatcher: d, head: run.Run{ID: run.FireID("etl", 0), Tenant: "acme"}, once: once}
		failed, err := r.evaluate(n, func(*flow.Evaluation) error { return with })
		if failed != nil {
			return failed.Error()
		}
		if !errors.Is(err, with) {
			t.Errorf("got %v, want %v", err, with)
		}
		return ""
	}
	away := errors.New("away")
	for i, with := range []error{ErrSlow, ErrSlow, ErrSlow, ErrSlow, nil, ErrSlow, ErrSlow, ErrSlow, ErrSlow, away, ErrSlow, ErrSlow, ErrSlow, ErrSlow} {
		if got := try(false, with) + try(true, ErrSlow); got != "" {
			t.Errorf("try %d has failed: %s", i, got)
		}
	}
	if got, want := try(false, ErrSlow), "too_slow: step parts/load: its expressions took longer than 5s, 5 times"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := try(false, ErrSlow); got != "" || len(d.evaluations.slow) != 1 {
		t.Errorf("got %q, and %d are remembered", got, len(d.evaluations.slow))
	}
}
