package backup_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Who was in progress when a backup was taken has ended in a copy, and is in nobody's way. Where the copy goes on with it, it keeps its place.
func TestPlacesAtAGateInACopy(t *testing.T) {
	for name, row := range map[string]struct {
		resume bool
		places int
		next   run.State
	}{
		"a copy of the past": {false, 0, run.Succeeded},
		"one that goes on":   {true, 1, run.Skipped},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := live(t, emptyTarget(t), "original")
				l.put("slow", 0, func(d *job.Definition) { d.Overlap.Policy = job.OverlapSkip })
				before := l.trigger("slow", 0)
				time.Sleep(5 * time.Second)
				if r := l.get(before); r.State != run.Running {
					t.Fatalf("it is %s", r.State)
				}
				var out bytes.Buffer
				if _, _, err := backup.Write(t.Context(), &out, backup.Source{Store: l.on.Store, Blobs: l.on.Blobs, Now: time.Now}, nil); err != nil {
					t.Fatal(err)
				}
				l.stop()
				copied, _ := past{text: out.Bytes()}.restore(t, backup.Options{Resume: row.resume})
				items, err := copied.Store.Get(t.Context(), gate.Key("default", "slow"))
				if err != nil {
					t.Fatal(err)
				}
				g, err := gate.FromItem("default", "slow", items[0])
				if err != nil || len(g.Entries) != row.places {
					t.Errorf("the gate holds %+v, %v", g.Entries, err)
				}
				next := copied.trigger("slow", 0)
				time.Sleep(5 * time.Minute)
				if r := copied.get(next); r.State != row.next {
					t.Errorf("the next one is %s: %+v", r.State, r.Why)
				}
				if times, _ := copied.called(before); (times > 0) != row.resume {
					t.Errorf("the one before was called %d times", times)
				}
			})
		})
	}
}
