package points

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func must(t *testing.T, op store.Op, err error) store.Op {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func TestWhatACommitIs(t *testing.T) {
	t.Parallel()
	fire, asked := run.FireID("j", 60_000), run.RequestID("j", 60_000, 7)
	item := func(r run.Run) store.Op { op, err := r.Item(1); return must(t, op, err) }
	due := func(w timer.Timer) store.Op { op, err := w.Put(1); return must(t, op, err) }
	shard := func(s timer.Shard) store.Op { op, err := s.Put(1); return must(t, op, err) }
	dead := run.Run{ID: fire, Tenant: "t", Version: 4, State: run.Dead, Ended: 70_000, Attempt: 2}
	letter := func() store.Op { op, err := dead.DeadLetterOp(1); return must(t, op, err) }
	later := timer.NewFire("t", "j", 1, 60_000, 60_000)
	later.Version = 3
	edited := store.Op{Kind: store.Put, Key: job.Key("t", "j"), If: store.Version(2)}
	bound := store.Op{Kind: store.Put, Key: gate.Key("t", "j"), If: store.Version(2)}
	waits := run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Queued}.Join(gate.Name("j"), 60_000, 60_000)
	n := namer{shards: map[string]timer.Shard{}}
	for _, row := range []struct {
		want string // of all ops, with spaces between
		ops  []store.Op
	}{
		{"horizon", []store.Op{shard(timer.Shard{Epoch: 1, Horizon: 5})}},
		{"watermark", []store.Op{shard(timer.Shard{Epoch: 1, Horizon: 5, Watermark: 5})}},
		{"sweep", []store.Op{shard(timer.Shard{Epoch: 1, Horizon: 5, Watermark: 5, Swept: [timer.Sweeps]int64{1}})}},
		{"horizon watermark", []store.Op{shard(timer.Shard{Epoch: 2, Horizon: 9, Watermark: 9, Swept: [timer.Sweeps]int64{1}})}},
		{"setup", []store.Op{{Kind: store.Put, Key: timer.LayoutKey}, shard(timer.Shard{})}},
		{"to", []store.Op{due(later)}},
		{"successor", []store.Op{due(timer.NewFire("t", "j", 1, 60_000, 60_000))}},
		{"check", []store.Op{due(timer.NewCheck("t", fire, 60_000))}},
		{"trigger", []store.Op{due(timer.NewRequest(run.Run{ID: asked, Tenant: "t"}, 60_000, true))}},
		{"edit", []store.Op{edited, due(timer.NewFire("t", "j", 1, 60_000, 60_000))}},
		{"create", []store.Op{{Kind: store.Put, Key: job.Key("t", "j"), If: store.Absent}}},
		{"idempotency", []store.Op{{Kind: store.Put, Key: store.Key{Partition: "idem#t#k", Sort: "-"}}}},
		{"claim", []store.Op{item(run.Run{ID: fire, Tenant: "t", State: run.Queued, Trigger: run.BySchedule})}},
		{"claim", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 1, State: run.Queued, Trigger: run.BySchedule})}},
		{"fence", []store.Op{item(run.Run{ID: fire, Tenant: "t", State: run.Fenced, Generation: 2})}},
		{"request", []store.Op{item(run.Run{ID: asked, Tenant: "t", State: run.Scheduled, Trigger: run.ByRequest})}},
		{"request request-claim", []store.Op{item(run.Run{ID: asked, Tenant: "t", State: run.Queued, Trigger: run.ByRequest})}},
		{"request-claim", []store.Op{item(run.Run{ID: asked, Tenant: "t", Version: 1, State: run.Queued, Trigger: run.ByRequest})}},
		{"unbind", []store.Op{item(run.Run{ID: asked, Tenant: "t", Version: 2, State: run.Scheduled, Trigger: run.ByRequest})}},
		{"start", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 1, State: run.Running, Attempt: 1, Fence: 2})}},
		{"", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Running, Attempt: 1, Fence: 2, Lease: 90_000})}},
		{"finish", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Succeeded, Attempt: 1, Fence: 2})}},
		{"retry", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Retrying, Attempt: 1})}},
		{"long-retry", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Retrying, Attempt: 1}), due(timer.NewCheck("t", fire, 60_000))}},
		{"requeue", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Queued, Attempt: 1})}},
		{"finish dead-letter", []store.Op{item(dead), letter()}},
		{"redrive", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 5, State: run.Queued, Attempt: 2}), {Kind: store.Delete, Key: dead.DeadKey()}}},
		{"cancel", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 5, State: run.Cancelled})}},
		{"cancel", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Running, Cancel: true, Fence: 2})}},
		{"enter", []store.Op{bound}},
		{"join", []store.Op{bound, item(waits), {Kind: store.Put, Key: gate.PlaceOf(waits).Key("t")}}},
		{"let-in", []store.Op{bound, item(run.Run{ID: fire, Tenant: "t", Version: 3, State: run.Queued}), {Kind: store.Delete, Key: gate.PlaceOf(waits).Key("t")}}},
		{"let-in", []store.Op{bound, item(run.Run{ID: fire, Tenant: "t", Version: 3, State: run.Cancelled}), {Kind: store.Delete, Key: gate.PlaceOf(waits).Key("t")}}},
		{"open", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 2, State: run.Running, Started: 60_000})}},
		{"close", []store.Op{item(run.Run{ID: fire, Tenant: "t", Version: 3, State: run.Failed, Started: 60_000})}},
		{"release", []store.Op{item(run.Run{ID: fire.At("a/b"), Tenant: "t", State: run.Queued})}},
		{"step-start", []store.Op{item(run.Run{ID: fire.At("a/b"), Tenant: "t", Version: 1, State: run.Running, Attempt: 1, Fence: 2})}},
		{"", []store.Op{item(run.Run{ID: fire.At("a/b"), Tenant: "t", Version: 2, State: run.Running, Attempt: 1, Fence: 2})}},
		{"step-finish", []store.Op{item(run.Run{ID: fire.At("a/b"), Tenant: "t", Version: 2, State: run.Dead, Attempt: 1, Fence: 2})}},
	} {
		var got []string
		for _, op := range row.ops {
			got = append(got, n.of(op, row.ops)...)
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%v is %q, want %q", row.ops, got, row.want)
		}
	}
}

func TestEveryPointIsInTheDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, line := range strings.Split(string(text), "\n") {
		if cell, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " |"); row && strings.HasPrefix(line, "| `") {
			for _, name := range regexp.MustCompile("`([^` ]+)`").FindAllStringSubmatch(cell, -1) {
				told = append(told, name[1])
			}
		}
	}
	var are []string
	for _, point := range All() {
		if _, name, commit := strings.Cut(point, ":"); commit {
			point = name
		}
		are = append(are, point)
	}
	slices.Sort(are)
	slices.Sort(told)
	if are = slices.Compact(are); !slices.Equal(are, told) {
		t.Errorf("the tables of docs/chaos.md have\n%q, want\n%q", told, are)
	}
}

func TestTheOverlayFitsTheSource(t *testing.T) {
	t.Parallel()
	if _, err := Overlay("../..", t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestWhatTheEnvironmentNames(t *testing.T) {
	t.Parallel()
	k := fromEnvironment("before-commit:claim/2,after-send", "")
	var died []string
	for _, point := range []string{"before-commit:claim", "after-commit:claim", "before-commit:claim", "after-send"} {
		if k.here(point) {
			died = append(died, point)
		}
	}
	if !slices.Equal(died, []string{"before-commit:claim", "after-send"}) {
		t.Errorf("it dies at %q", died)
	}
	defer func() {
		if recover() == nil {
			t.Error("a point that there is not was taken")
		}
	}()
	fromEnvironment("before-commit:nothing", "")
}
