package backup_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// The definition of a gate is part of a backup, and so is its closure. Who was in progress there is in nobody's way in a copy of the past.
func TestAGateWithANameInACopy(t *testing.T) {
	for name, resume := range map[string]bool{"a copy of the past": false, "one that goes on": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := live(t, emptyTarget(t), "original")
				for _, name := range []string{"open", "closed"} {
					if _, _, err := l.Control.PutGate(t.Context(), "default", name, gate.Definition{Limit: 1}, control.GateMatch{}); err != nil {
						t.Fatal(err)
					}
				}
				l.put("slow", 0, func(d *job.Definition) { d.Gates = []job.GateUse{{Gate: "open"}} })
				l.put("kept", 0, func(d *job.Definition) { d.Gates = []job.GateUse{{Gate: "closed"}} })
				if _, err := l.Control.CloseGate(t.Context(), "default", "closed", "", "a drill", control.Match{}); err != nil {
					t.Fatal(err)
				}
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
				copied, _ := past{text: out.Bytes()}.restore(t, backup.Options{Resume: resume})
				g, err := copied.Control.Gate(t.Context(), "default", "closed")
				if err != nil || g.Named.Closed == nil || g.Named.Closed.Reason != "a drill" {
					t.Errorf("the closed one is %+v, %v", g, err)
				}
				kept, next := copied.trigger("kept", 0), copied.trigger("slow", 0)
				time.Sleep(30 * time.Second)
				if r := copied.get(kept); !r.Waits() {
					t.Errorf("at the closed gate it is %s", r.State)
				}
				if r := copied.get(next); r.Waits() != resume {
					t.Errorf("at the other the next one is %s", r.State)
				}
				time.Sleep(10 * time.Minute)
				if r := copied.get(next); r.State != run.Succeeded {
					t.Errorf("at the other the next one ends as %s", r.State)
				}
			})
		})
	}
}
