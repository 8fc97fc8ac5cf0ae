package control_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func TestFault31_ATargetThatNoWorkerCanRunIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.Service.Can = func(string, target.Spec) error { return errors.New("it was not started with --allow-exec") }
		_, _, err := g.Put(t.Context(), "acme", "j", job.Definition{Target: target.Spec{Exec: &target.Exec{Argv: []string{"true"}}}}, control.Match{})
		if wrong := invalid.All(err); len(wrong) != 1 || wrong[0].Field != "target" {
			t.Fatalf("got %v, want a refusal that names the target", err)
		}
		if _, err := g.Job(t.Context(), "acme", "j"); err == nil {
			t.Error("the job was written all the same")
		}
	})
}

func TestATimeoutThatItsQueueCannotRunIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.Dispatch.Longest = map[string]time.Duration{job.DefaultQueue: 14 * time.Minute}
		of := func(timeout time.Duration) error {
			_, _, err := g.Put(t.Context(), "acme", "j", definition(func(d *job.Definition) { d.Timeout = schedule.Duration(timeout) }), control.Match{})
			return err
		}
		if wrong := invalid.All(of(15 * time.Minute)); len(wrong) != 1 || wrong[0].Field != "timeout" || !strings.Contains(wrong[0].Want, "at most 14m") {
			t.Errorf("got %v, want a refusal that names the timeout and the longest", wrong)
		}
		if _, err := g.Job(t.Context(), "acme", "j"); err == nil {
			t.Error("the job was written all the same")
		}
		if err := of(14 * time.Minute); err != nil {
			t.Errorf("the longest timeout: %v", err)
		}
	})
}
