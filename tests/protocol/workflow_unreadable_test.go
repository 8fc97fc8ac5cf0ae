package protocol_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// stages are where the run of a workflow stands when whoever comes to it next cannot read its definition.
var stages = map[string]func(*flowWorld){
	"step_queued":    func(f *flowWorld) { f.must(f.host("worker").worker.Pass(context.Background(), 0)) },
	"nobody_follows": func(f *flowWorld) { f.must(f.host("worker").worker.Pass(context.Background(), 0)); f.lose() },
	"waits":          func(f *flowWorld) { f.work() },
	"step_retries": func(f *flowWorld) {
		f.must(f.host("worker").worker.Pass(context.Background(), 0))
		f.hold(f.rows()["a"], "gone") // its lease runs out
	},
}

// spoils are what may have become of a definition since it was written, or what another version may have made of it.
var spoils = map[string]func(f *flowWorld, kept store.Item) []byte{
	"field": func(f *flowWorld, kept store.Item) []byte { return f.withField(kept) },
	"newer": func(_ *flowWorld, kept store.Item) []byte {
		return append([]byte{record.Format + 1}, kept.Value[1:]...)
	},
	"damaged": func(_ *flowWorld, kept store.Item) []byte { return kept.Value[:len(kept.Value)/2] },
	"gone":    func(*flowWorld, store.Item) []byte { return nil },
	"schedule": func(f *flowWorld, kept store.Item) []byte {
		f.compile = func(schedule.Spec) (job.Fires, error) { return nil, errors.New("no such zone here") }
		return kept.Value
	},
}

// withField is a replaced definition to which a newer version has added a field that this one does not know.
func (f *flowWorld) withField(kept store.Item) []byte {
	var past struct {
		Def   job.Definition `cbor:"1,keyasint"`
		Until int64          `cbor:"2,keyasint"`
	}
	f.must(record.Decode(kept.Value, &past))
	past.Def.Target.Workflow = []byte(`{"of_tomorrow": true, ` + string(past.Def.Target.Workflow[1:]))
	value, err := record.Encode(past)
	f.must(err)
	return value
}

// unreadable gives a world with the run of a workflow that stands at a stage, whose definition has become unreadable to all processes since, and what is to be put for it
// to be as it was.
func unreadable(t *testing.T, stage, spoil string) (f *flowWorld, mend func()) {
	f = newFlowWorld(newWorld(t), graphs["chain"])
	f.work()
	api := f.host("api").control
	_, _, err := api.Put(context.Background(), tenant, "other", job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "note"}}}, control.Match{})
	f.must(err)
	def := job.Definition{Schedule: &schedule.Spec{Every: schedule.Duration(300 * 24 * time.Hour)},
		Target: target.Spec{Workflow: []byte(`{"steps": {` + before + `"w": {"needs": ["a"], "wait": {"for": "10m"}}` + behind + `}}`)}}
	_, _, err = api.Put(context.Background(), tenant, "waits", def, control.Match{})
	f.must(err)
	_, err = api.Pause(context.Background(), tenant, "waits", "", control.Match{}) // its runs keep the generation in which they began
	f.must(err)
	r, _, err := api.Trigger(context.Background(), tenant, "waits", control.Request{IgnorePause: true})
	f.must(err)
	f.id, f.calls = r.ID, nil
	stages[stage](f)
	_, err = api.Resume(context.Background(), tenant, "waits", control.Match{})
	f.must(err)

	key := job.PastKey(tenant, "waits", f.head().Generation)
	kept := f.get(key)
	if !kept.Exists() {
		t.Fatal("the definition with which the run began is not kept")
	}
	put := func(value []byte) {
		op := store.Op{Kind: store.Put, Key: key, Value: value, Expires: kept.Expires, Attempt: f.newID()}
		if value == nil {
			op = store.Op{Kind: store.Delete, Key: key, Attempt: f.newID()}
		}
		_, err := f.store.Write(context.Background(), op)
		f.must(err)
		clear(f.hosts) // other processes, which remember nothing
	}
	put(spoils[spoil](f, kept))
	return f, func() { f.compile = job.Compile; put(kept.Value) }
}

// why is what a server that has just started tells of the run.
func (f *flowWorld) why() []control.WaitCode {
	standing, err := f.reader().Standing(context.Background(), f.head())
	f.must(err)
	var codes []control.WaitCode
	for _, w := range standing.Why() {
		codes = append(codes, w.Code)
	}
	return codes
}

// Scenario 35: processes come to the run of a workflow whose definition they cannot read. It stays open and says why, each look is counted, other runs go on, and when
// somebody can read it, so does this one.
func TestW1_W2_W3_Scenario35_AWorkflowThatNobodyCanRead(t *testing.T) {
	for stage := range stages {
		for spoil := range spoils {
			t.Run(stage+"_"+spoil, func(t *testing.T) {
				f, mend := unreadable(t, stage, spoil)
				met := uncounted.Unreadable.Value()
				f.advance(20*time.Minute, 10*time.Second, "calm") // further apart, ticks judge no leases
				if uncounted.Unreadable.Value() == met {
					t.Error("nobody has counted it")
				}
				next, _, err := f.host("api").control.Trigger(context.Background(), tenant, "other", controlRequest())
				f.must(err)
				f.advance(time.Minute, 10*time.Second, "calm")
				if other, _ := f.run(tenant, next.ID); other.State != run.Succeeded {
					t.Errorf("a run of another job is %s", other.State)
				}
				if head := f.head(); !head.Heads() || !slices.Equal(f.why(), []control.WaitCode{control.WaitUnreadable}) {
					t.Fatalf("the run is %s, and waits for %q", head.State, f.why())
				}
				mend()
				f.calm()
				if head := f.head(); head.State != run.Succeeded || !slices.Equal(f.paths(), []string{"a", "b"}) {
					t.Errorf("once it can be read, the run is %s (%s), and its calls were %q", head.State, head.Reason, f.paths())
				}
			})
		}
	}
}

// A cancel of such a run is taken. It ends at once where nobody will ever read the definition, and else by whoever can.
func TestW5_Scenario35_ACancelOfAWorkflowThatNobodyCanRead(t *testing.T) {
	for stage := range stages {
		for spoil := range spoils {
			t.Run(stage+"_"+spoil, func(t *testing.T) {
				f, mend := unreadable(t, stage, spoil)
				_, err := f.host("api").control.Cancel(context.Background(), tenant, f.id, "it stands still")
				f.must(err)
				f.stopped = true
				f.advance(20*time.Minute, 10*time.Second, "calm") // further apart, ticks judge no leases
				lost := spoil == "gone" || spoil == "damaged"
				switch head := f.head(); {
				case lost && head.State != run.Cancelled:
					t.Fatalf("the run is %s, and waits for %q", head.State, f.why())
				case !lost && (!head.Heads() || !head.Cancel || f.why()[0] != control.WaitUnreadable):
					t.Fatalf("the run is %s, and waits for %q", head.State, f.why())
				}
				mend()
				f.calm()
				if head := f.head(); head.State != run.Cancelled || len(f.breaches) > 0 {
					t.Errorf("once it can be read, the run is %s (%s): %q", head.State, head.Reason, f.breaches)
				}
			})
		}
	}
}

// A run that has not begun is not begun by who cannot read its workflow, and is not lost either: its checks send it on.
func TestW1_Scenario35_AQueuedRunOfAWorkflowThatNobodyCanRead(t *testing.T) {
	f := newFlowWorld(newWorld(t), graphs["chain"])
	f.work()
	f.asks(before + `"w": {"needs": ["a"], "wait": {"for": "10m"}}` + behind)
	key := job.Key(tenant, "waits")
	put := func(change func(*job.Job)) {
		j := f.job(tenant, "waits")
		change(&j)
		op, err := j.Put(f.newID())
		f.must(err)
		_, err = f.store.Write(context.Background(), op)
		f.must(err)
		clear(f.hosts)
	}
	was := f.job(tenant, "waits").Def.Target.Workflow
	put(func(j *job.Job) { j.Def.Target.Workflow = []byte(`{"of_tomorrow": true, ` + string(was[1:])) })
	met := uncounted.Unreadable.Value()
	f.advance(time.Hour, time.Minute, "calm")
	if head := f.head(); head.State != run.Queued || head.Started != 0 || !slices.Equal(f.why(), []control.WaitCode{control.WaitUnreadable}) {
		t.Fatalf("the run is %s, and waits for %q", head.State, f.why())
	}
	if n := uncounted.Unreadable.Value() - met; n == 0 || n > 100 { // some twelve for each message that a check sends
		t.Errorf("in an hour %d looks were counted", n)
	}
	put(func(j *job.Job) { j.Def.Target.Workflow = was })
	f.calm()
	if head := f.head(); head.State != run.Succeeded {
		t.Errorf("once %s can be read, the run is %s (%s)", key, head.State, head.Reason)
	}
}
