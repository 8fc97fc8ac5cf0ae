package run_test

import (
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// The scopes of a run that were stopped are kept in its record, in their order; a run of which none was takes no byte for that.
func TestWhichScopesWereStoppedIsKept(t *testing.T) {
	r := run.Run{ID: run.RequestID("report", 1_800_000_000_000, 99), Tenant: "default", State: run.Running, Started: 1_800_000_000_100}
	plain, err := r.Item(1)
	if err != nil {
		t.Fatal(err)
	}
	stops := []run.Stop{{Scope: 0, By: -1}, {Scope: 299, By: 298}, {Scope: 4, By: 0}}
	for k, s := range stops {
		next := r.Stop(s)
		if len(r.Stops()) != k {
			t.Errorf("the run before has changed: %v", r.Stops())
		}
		r = next
	}
	op, err := r.Item(1)
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := run.FromItem(r.Tenant, r.ID, store.Item{Key: op.Key, Version: 2, Value: op.Value})
	if err != nil || !slices.Equal(read.Stops(), stops) {
		t.Errorf("got %v, %v, want %v", read.Stops(), err, stops)
	}
	if more := len(op.Value) - len(plain.Value); more > 3*4+4 {
		t.Errorf("three stops take %d bytes", more)
	}
	if again := r.Reopen(2, 1, ""); len(again.Stops()) != 0 {
		t.Errorf("opened again, the run has stops: %v", again.Stops())
	}
}
