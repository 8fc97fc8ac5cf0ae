package control_test

import (
	"errors"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
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
