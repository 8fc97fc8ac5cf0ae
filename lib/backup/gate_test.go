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
				g, err := gate.FromItem("default", "job:slow", items[0])
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

// Who waited in line when a backup was taken waits for nobody in a copy of the past. Where the copy goes on with it, it starts in its turn.
func TestALineInACopy(t *testing.T) {
	for name, row := range map[string]struct {
		resume bool
		places int
	}{
		"a copy of the past": {false, 0},
		"one that goes on":   {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := live(t, emptyTarget(t), "original")
				l.put("slow", 0, func(d *job.Definition) { d.Overlap.Policy = job.OverlapQueue })
				var asked []run.ID
				for range 3 {
					asked = append(asked, l.trigger("slow", 0))
					time.Sleep(time.Second)
				}
				for _, id := range asked[1:] {
					if r := l.get(id); !r.Waits() {
						t.Fatalf("it is %s", r.Stage())
					}
				}
				var out bytes.Buffer
				if _, _, err := backup.Write(t.Context(), &out, backup.Source{Store: l.on.Store, Blobs: l.on.Blobs, Now: time.Now}, nil); err != nil {
					t.Fatal(err)
				}
				l.stop()
				copied, _ := past{text: out.Bytes()}.restore(t, backup.Options{Resume: row.resume})
				line, err := copied.Store.Query(t.Context(), gate.Gate{Tenant: "default", Name: "job:slow"}.Line(10))
				if err != nil || len(line.Items) != row.places {
					t.Errorf("%d places stand in line, %v; want %d", len(line.Items), err, row.places)
				}
				next := copied.trigger("slow", 0)
				time.Sleep(5 * time.Minute)
				if r := copied.get(next); r.State != run.Succeeded {
					t.Errorf("the next one is %s: %+v", r.Stage(), r.Wait)
				}
				var last int64
				for _, id := range asked {
					r := copied.get(id)
					times, _ := copied.called(id)
					switch {
					case !r.State.Ended() || (times > 0) != row.resume:
						t.Errorf("%s is %s, and was called %d times", id, r.Stage(), times)
					case row.resume && r.Started < last:
						t.Errorf("%s started before its turn", id)
					}
					last = r.Started
				}
			})
		})
	}
}
