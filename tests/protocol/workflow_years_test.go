package protocol_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

const year = 365 * 24 * time.Hour

// lapse takes away what of these partitions is kept no longer than so long from now, as an engine does then, and all blobs like it.
func (w *world) lapse(after time.Duration, prefixes ...string) {
	for _, item := range w.items("") {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(item.Partition, p) }) &&
			!item.Expires.IsZero() && item.Expires.Before(w.clock().Add(after)) {
			_, err := w.kept.Write(context.Background(), store.Op{Kind: store.Delete, Key: item.Key, If: store.Any})
			w.must(err)
		}
	}
	_, err := w.blobs.DeleteExpired(context.Background(), w.clock().Add(after), 1000)
	w.must(err)
	clear(w.hosts) // and nobody remembers it
}

// The definition of a run is replaced, or its job deleted, while the run goes on for years, and when it is kept for years after its end: what it goes by
// stays as long, its payload too, and its place at the gate while it is under way.
func TestW8_ARunOfYearsKeepsItsDefinition(t *testing.T) {
	for name, replace := range map[string]func(*control.Service) error{
		"edited": func(s *control.Service) error {
			_, _, err := s.Put(context.Background(), tenant, "long", job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "act"}}, Overlap: job.Overlap{Policy: job.OverlapSkip}}, control.Match{})
			return err
		},
		"deleted": func(s *control.Service) error {
			return s.Delete(context.Background(), tenant, "long", control.Match{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := outlives(t, "1h")
			text := `{"timeout": "43800h", "steps": {"a": {"handler": {"name": "flaky"}, "retry": {"initial": "14m", "factor": 1, "max": "14m", "max_attempts": 2}},
				"b": {"needs": ["a"], "rule": "all_done", "handler": {"name": "act"}}}}`
			ctx, api := context.Background(), f.host("api").control
			_, _, err := api.Put(ctx, tenant, "long", job.Definition{Target: target.Spec{Workflow: []byte(text)}, Retention: schedule.Duration(year),
				Overlap: job.Overlap{Policy: job.OverlapSkip}}, control.Match{})
			f.must(err)
			payload := `"` + strings.Repeat("long", 200) + `"` // which is kept apart from the run
			r, _, err := api.Trigger(ctx, tenant, "long", control.Request{Payload: []byte(payload)})
			f.must(err)
			f.id = r.ID
			f.work()
			f.must(replace(api))
			f.lapse(5*year, "def#", "gate#")
			if name == "edited" {
				next, _, err := f.host("api").control.Trigger(ctx, tenant, "long", controlRequest())
				f.must(err)
				f.work()
				if second, _ := f.run(tenant, next.ID); second.State != run.Skipped {
					t.Errorf("a second run is %s beside the first, want it skipped", second.State)
				}
			}
			f.advance(20*time.Minute, time.Minute, "calm")
			if head, rows := f.head(), f.rows(); !head.State.Ended() || head.Reason == "" || len(rows) != 2 || string(rows["b"].Result.Inline) != payload {
				t.Errorf("the run is %s (%s) with %d steps, the second of which had %d bytes, want it ended behind both, with its payload", head.State, head.Reason, len(rows),
					len(rows["b"].Result.Inline))
			}
			f.lapse(6*year, "def#")
			g, err := f.host("api").control.Graph(ctx, tenant, f.id)
			if err != nil || len(g.Steps) != 2 {
				t.Errorf("the ended run shows %d steps (%v), want 2", len(g.Steps), err)
			}
		})
	}
}
