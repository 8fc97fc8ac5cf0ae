package backup_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/timer"
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

// A copy that goes on soon ends who waits in line and is too late, also where that was so before the restore.
func TestWhoIsTooLateInACopy(t *testing.T) {
	const most = schedule.Duration(20 * time.Minute)
	for code, change := range map[string]func(*gate.Definition, *job.Definition){
		run.WhyMaxWait:  func(g *gate.Definition, _ *job.Definition) { g.MaxWait = most },
		run.WhyExpired:  func(_ *gate.Definition, d *job.Definition) { d.ExpiresAfter = most },
		run.WhyDeadline: func(_ *gate.Definition, d *job.Definition) { d.Deadline = most },
	} {
		for _, later := range []time.Duration{17 * time.Minute, 32 * time.Minute} { // its regular checks come 31 and 46 minutes on
			t.Run(fmt.Sprint(code, " ", later), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := live(t, emptyTarget(t), "original")
					def := gate.Definition{Limit: 1}
					l.put("slow", 0, func(d *job.Definition) { change(&def, d) })
					if _, _, err := l.Control.PutGate(t.Context(), "default", "stripe", def, control.GateMatch{}); err != nil {
						t.Fatal(err)
					}
					if _, err := l.Control.CloseGate(t.Context(), "default", "stripe", "", "", control.Match{}); err != nil {
						t.Fatal(err)
					}
					l.put("slow", 0, func(d *job.Definition) {
						change(&def, d)
						d.Gates = []job.GateUse{{Gate: "stripe", Units: 1}}
					})
					id := l.trigger("slow", 0)
					time.Sleep(5 * time.Second)
					if r := l.get(id); !r.Waits() {
						t.Fatalf("it is %s", r.Stage())
					}
					var out bytes.Buffer
					if _, _, err := backup.Write(t.Context(), &out, backup.Source{Store: l.on.Store, Blobs: l.on.Blobs, Now: time.Now}, nil); err != nil {
						t.Fatal(err)
					}
					l.stop()
					time.Sleep(later)
					copied, _ := past{text: out.Bytes()}.restore(t, backup.Options{Resume: true})
					check := timer.NewCheck("default", id, max(id.Nominal+time.Duration(most).Milliseconds(), time.Now().Add(time.Minute).UnixMilli()))
					if checks, err := copied.on.Store.Get(t.Context(), check.Key()); err != nil || !checks[0].Exists() {
						t.Errorf("no check of it lies there, and it is left to a sweep: %v", err)
					}
					time.Sleep(5 * time.Minute)
					if r := copied.get(id); !r.State.Ended() || r.Why.Code != code {
						t.Errorf("it is %s, %+v", r.Stage(), r.Why)
					}
				})
			})
		}
	}
}

// A line stands still in a copy of the past behind the run that was let in last under strict, where that has ended badly: as it did before the backup, or as unknown since it was in
// progress then. Who waited behind it is unknown as well, was never let in, and holds up nobody. Where the last one has ended well, nobody is held up.
func TestALineThatStandsStillInACopy(t *testing.T) {
	for name, row := range map[string]struct {
		job    string
		waited time.Duration // between the first and the second
		first  run.State
		key    string
	}{
		"behind one in progress":             {"slow", time.Second, run.Unknown, ""},
		"behind one in progress, at a value": {"slow", time.Second, run.Unknown, "acme"},
		"behind one that has ended badly":    {"fails", time.Minute, run.Dead, ""},
		"behind one that has ended well":     {"swift", 0, run.Succeeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := live(t, emptyTarget(t), "original")
				l.put(row.job, 0, func(d *job.Definition) {
					d.Overlap.Policy, d.Retry.MaxAttempts = job.OverlapStrict, 1
					if row.key != "" {
						d.Overlap.Key, d.Payload = "${ .payload }", []byte(`"`+row.key+`"`)
					}
				})
				first := l.trigger(row.job, 0)
				time.Sleep(row.waited + time.Second)
				var second run.ID
				if row.waited > 0 {
					second = l.trigger(row.job, 0)
					time.Sleep(5 * time.Second)
					if r := l.get(second); !r.Waits() {
						t.Fatalf("the second is %s", r.Stage())
					}
				}
				var out bytes.Buffer
				if _, _, err := backup.Write(t.Context(), &out, backup.Source{Store: l.on.Store, Blobs: l.on.Blobs, Now: time.Now}, nil); err != nil {
					t.Fatal(err)
				}
				l.stop()
				copied, report := past{text: out.Bytes()}.restore(t, backup.Options{})
				if r := copied.get(first); r.State != row.first {
					t.Fatalf("the first is %s", r.State)
				}
				var behind []string
				if row.waited > 0 {
					behind = []string{first.String()}
				}
				if report.Lines != len(behind) || !slices.Equal(report.Behind, behind) {
					t.Errorf("the report tells of %d lines that stand still, behind %v; want %v", report.Lines, report.Behind, behind)
				}
				third := copied.trigger(row.job, 0)
				time.Sleep(5 * time.Minute)
				if row.waited == 0 {
					if r := copied.get(third); r.State != run.Succeeded {
						t.Errorf("the third is %s", r.Stage())
					}
					return
				}
				shown, err := copied.Control.Gate(t.Context(), "default", "job:"+row.job)
				if err != nil || shown.Waiting != 1 || len(shown.Blocked) != 1 || shown.Blocked[0].Run != first.String() || shown.Blocked[0].Key != row.key {
					t.Fatalf("the gate is %+v, %v", shown, err)
				}
				if r := copied.get(third); !r.Waits() {
					t.Errorf("the third is %s", r.Stage())
				}
				if r := copied.get(second); r.State != run.Unknown {
					t.Errorf("the second is %s", r.Stage())
				}
				if _, err := copied.Control.OpenLine(t.Context(), "default", "job:"+row.job, "", control.Opening{Run: first.String()}, control.Match{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				if r := copied.get(third); !r.State.Ended() {
					t.Errorf("behind the opening the third is %s", r.Stage())
				}
			})
		})
	}
}
