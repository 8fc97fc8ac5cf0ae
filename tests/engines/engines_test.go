package engines

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/tests/sim"
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1) // as a world wants it
	os.Exit(m.Run())
}

// recorded gives what one world after the other does to its store, until they have done so many operations together.
func recorded(t *testing.T, operations int) []sim.Recording {
	t.Helper()
	var all []sim.Recording
	for seed := uint64(1); operations > 0; seed++ {
		if seed > 20 {
			t.Fatalf("twenty worlds do hardly anything to their stores: %d operations are missing", operations)
		}
		recording := sim.Recording{}
		sim.Run(t, sim.Config{Seed: seed, Most: uint64(min(2*operations, 12_000)), Keep: &recording})
		keep(recording)
		all = append(all, recording)
		operations -= len(recording)
	}
	return all
}

// keep puts off by a century when items expire: engines remove what has expired at moments of their own.
func keep(recording sim.Recording) {
	off := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.AddDate(100, 0, 0)
		}
	}
	for _, r := range recording {
		for i := range r.Ops {
			off(&r.Ops[i].Expires)
		}
		for i := range r.Items {
			off(&r.Items[i].Expires)
		}
		if conflict := store.AsConflict(r.Err); conflict != nil {
			off(&conflict.Standing.Expires)
		}
	}
}

// agrees replays a recording against an engine, and compares what stands at the end.
func agrees(t *testing.T, s store.Store, recording sim.Recording) {
	t.Helper()
	n, err := replay(t.Context(), s, recording)
	if err != nil {
		t.Fatal(err)
	}
	reference := memory.New(memory.Config{})
	if _, err := replay(t.Context(), reference, recording); err != nil {
		t.Fatalf("the engine that was recorded does not agree with itself: %v", err)
	}
	want, err := everything(t.Context(), reference, recording)
	if err != nil {
		t.Fatal(err)
	}
	got, err := everything(t.Context(), s, recording)
	if err != nil {
		t.Fatal(err)
	}
	if err := same(got, want); err != nil {
		t.Fatalf("at the end: %v", err)
	}
	t.Logf("%d operations, %d items at the end", n, len(want))
}

func TestPebbleAnswersAsMemory(t *testing.T) {
	for _, recording := range recorded(t, 20_000) {
		s, err := pebble.Open(pebble.Config{Dir: "store", FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		agrees(t, s, recording)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// forgetful is an engine that loses one thing.
type forgetful struct {
	store.Store
	attempt, deletes, standing bool
}

func (f forgetful) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	ops = append([]store.Op(nil), ops...)
	for i := range ops {
		if f.attempt {
			ops[i].Attempt = 0
		}
		if f.deletes && ops[i].Kind == store.Delete {
			ops[i].Kind = store.Check
		}
	}
	versions, err := f.Store.Write(ctx, ops...)
	if conflict := store.AsConflict(err); conflict != nil && f.standing {
		conflict.Standing.Value = nil
	}
	return versions, err
}

func TestDifferencesAreFound(t *testing.T) {
	recording := recorded(t, 4_000)[0]
	for name, f := range map[string]forgetful{"attempts": {attempt: true}, "deletes": {deletes: true}, "what stands": {standing: true}} {
		f.Store = memory.New(memory.Config{})
		if n, err := replay(t.Context(), f, recording); err == nil || strings.Contains(err.Error(), "nobody") {
			t.Errorf("an engine that forgets %s: %v after %d operations", name, err, n)
		}
	}
}
