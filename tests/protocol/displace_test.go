package protocol_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A worker dies at any of its writes while a run of it makes an earlier one give way, which another worker has in progress. Both end within the promised time, the later one starts,
// and the earlier one has given way to it, or was done before.
func TestG1_G2_G4_Fault01_a_crash_at_each_write_while_a_run_gives_way(t *testing.T) {
	for _, policy := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		t.Run(string(policy), func(t *testing.T) {
			last, gave := false, 0
			for at := 0; !last && at < 100; at++ {
				w := newWorld(t)
				api := w.host("api")
				w.must(api.put(tenant, "a", passing(job.Overlap{Policy: policy, Limit: 1})))
				first := api.asks("a")
				ends := w.inProgress("w1")
				w.elapsed += time.Second
				second := api.asks("a")
				left := at
				last = !w.dies(func(op operation) bool {
					if op.writes() {
						left--
					}
					return left < 0
				})
				ends()
				for second := 0; second < 40*60 && w.open(); second += 20 {
					w.advance(20*time.Second, 20*time.Second, "ticks")
				}
				if got := w.stage(second); got != run.Succeeded {
					t.Errorf("a crash at write %d: the later one is %s", at, got)
				}
				r, _ := w.run(tenant, first)
				switch {
				case r.State == run.Succeeded && (!last || policy == job.OverlapCancel):
				case r.State == run.Cancelled && slices.Equal(r.Why.InTheWay, []string{second.String()}) && r.Why.Policy == string(policy):
					gave++
				default:
					t.Errorf("a crash at write %d: the earlier one is %s, for %+v", at, r.State, r.Why)
				}
				w.wants(w.check(w.now() - 1))
				if t.Failed() {
					return
				}
			}
			if !last || policy == job.OverlapReplace && gave == 0 {
				t.Errorf("it came to its end: %v, and %d gave way", last, gave)
			}
		})
	}
}

// The run of a workflow that is replaced ends at once, and its steps stop: what has not started never does, and what runs is asked to. So they do where whoever replaced it has died
// behind that write, and its check comes upon it.
func TestG1_W5_aWorkflowsRunIsReplaced(t *testing.T) {
	for _, dies := range []bool{false, true} {
		w := newWorld(t)
		api := w.host("api")
		w.must(api.put(tenant, "a", job.Definition{Overlap: job.Overlap{Policy: job.OverlapReplace}, Target: target.Spec{Workflow: json.RawMessage(`{"steps": {"w": {"wait": {"for": "20m"}}, "s": {"needs": ["w"], "handler": {"name": "note"}}}}`)}}))
		first := api.asks("a")
		open := w.restart("opener")
		w.must(open.worker.Pass(open.life, 0)) // opens it, and no more
		if r, _ := w.run(tenant, first); !r.Heads() {
			t.Fatalf("it is %s", r.State)
		}
		w.elapsed += time.Second
		second := api.asks("a")
		if dies {
			replaced := false
			w.dies(func(op operation) bool {
				r, _ := w.run(tenant, first)
				replaced = replaced || r.State.Ended()
				return replaced
			})
		} else {
			w.work()
		}
		if r, _ := w.run(tenant, first); r.State != run.Cancelled || !slices.Equal(r.Why.InTheWay, []string{second.String()}) {
			t.Errorf("it is %s, for %+v", r.State, r.Why)
		}
		for second := 0; second < 40*60; second += 20 {
			w.advance(20*time.Second, 20*time.Second, "ticks")
		}
		head, _ := w.run(tenant, first)
		steps, err := api.dispatch.Steps(t.Context(), head)
		w.must(err)
		for _, s := range steps {
			if s.State != run.Cancelled {
				t.Errorf("died: %v: step %s is %s", dies, s.ID.Step, s.State)
			}
		}
		if got := w.stage(second); got != run.Succeeded {
			t.Errorf("the later one is %s", got)
		}
		if t.Failed() {
			return
		}
	}
}
