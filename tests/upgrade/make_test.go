package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	crand "crypto/rand"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

var release = flag.String("release", "", "make the store of this release under testdata")

// born is when the stores of releases begin: the time of a bubble. Tests open them later in the same bubble's time.
const lived = 4 * time.Hour

// TestMake makes a store with every kind of record in every state, to see that it can; with -release, the one that is committed.
func TestMake(t *testing.T) {
	dir := t.TempDir()
	var states map[string]string
	var text []byte
	synctest.Test(t, func(t *testing.T) { states, text = makeStore(t, dir) })
	missing := []string{}
	for _, s := range run.States() {
		if !slices.Contains(slices.Collect(maps.Values(states)), s.String()) {
			missing = append(missing, s.String())
		}
	}
	if len(missing) > 0 {
		t.Errorf("no run is %s", strings.Join(missing, ", "))
	}
	if *release == "" {
		return
	}
	place := filepath.Join("testdata", *release)
	if err := os.Mkdir(place, 0o755); err != nil {
		t.Fatal(err) // what a release has written is never made again
	}
	listed, err := json.MarshalIndent(states, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"belfry.backup": text, "runs.json": append(listed, '\n'), "store.tar.gz": pack(t, dir)} {
		if err := os.WriteFile(filepath.Join(place, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func makeStore(t *testing.T, dir string) (map[string]string, []byte) {
	f := openFolder(t, dir)
	l := live(t, f.store, f.blobs, "first")
	l.put("each", time.Minute)
	l.put("cron", 0, func(d *job.Definition) {
		d.Schedule = &schedule.Spec{Cron: "*/5 * * * *", Timezone: "Europe/Berlin"}
		d.Labels, d.Description = map[string]string{"team": "billing"}, "with everything"
		d.Payload = json.RawMessage(`{"report":"daily"}`)
	})
	l.put("quick", time.Second, func(d *job.Definition) { d.Retention = schedule.Duration(24 * time.Hour) })
	l.put("paused", time.Minute)
	l.put("deleted", time.Minute)
	for _, name := range []string{"small", "large", "failed", "slow", "ahead"} {
		l.put(name, 0)
	}
	l.put("slow-once", 0, func(d *job.Definition) { d.Guarantee, d.Timeout = job.AtMostOnce, schedule.Duration(2*time.Second) })
	l.put("tell", 0)
	l.put("dead", 0, func(d *job.Definition) {
		d.Retry.MaxAttempts, d.PauseAfter, d.On.Failed, d.On.Recovered = 1, 5, &job.Callback{Job: "tell"}, &job.Callback{Job: "tell"}
	})
	l.put("retrying", 0, func(d *job.Definition) {
		d.Retry = job.Retry{MaxAttempts: 9, Initial: schedule.Duration(24 * time.Hour), Max: schedule.Duration(48 * time.Hour)}
	})
	l.put("slow-alone", 0, func(d *job.Definition) { d.Overlap.Policy = job.OverlapSkip })
	l.put("slow-turns", 0, func(d *job.Definition) { d.Overlap.Policy = job.OverlapQueue })
	strict := func(d *job.Definition) { d.Overlap.Policy = job.OverlapStrict }
	l.put("failed-line", 0, strict)
	l.put("failed-again", 0, strict, func(d *job.Definition) { d.Overlap.Key, d.Payload = "${ .payload }", json.RawMessage(`"acme"`) })
	stripe, err := gate.Named{Tenant: "default", Name: "stripe", Generation: 1, Def: gate.Definition{Limit: 5, MaxWait: schedule.Duration(time.Hour), Order: gate.OrderDeadline}}.Put(1)
	must(t, err)
	_, err = f.store.Write(t.Context(), stripe)
	must(t, err)
	l.put("flow", 0, func(d *job.Definition) {
		d.Target = target.Spec{Workflow: []byte(`{"steps": {"first": {"handler": {"name": "f"}}, "second": {"needs": ["first"], "handler": {"name": "f"}}}}`)}
	})
	time.Sleep(2*time.Minute + 200*time.Millisecond)
	for _, name := range []string{"flow", "small", "large", "failed", "slow-once", "dead", "slow-alone", "slow-alone"} { // of the last two, one is skipped
		l.trigger(name, control.Request{})
	}
	l.trigger("large", control.Request{Key: "a key", Payload: json.RawMessage(`"` + strings.Repeat("p", 1000) + `"`)})
	cancelled := l.trigger("ahead", control.Request{Delay: new(time.Hour)})
	l.trigger("ahead", control.Request{Delay: new(48 * time.Hour)})
	time.Sleep(5 * time.Second)
	_, err = l.Control.Cancel(t.Context(), "default", cancelled, "not wanted")
	must(t, err)
	_, err = l.Control.Pause(t.Context(), "default", "paused", "for a while", control.Match{})
	must(t, err)
	must(t, l.Control.Delete(t.Context(), "default", "deleted", control.Match{}))
	l.put("quick", 2*time.Second, func(d *job.Definition) { d.Retention = schedule.Duration(24 * time.Hour) }) // leaves fences and a past
	tokens, err := access.New(access.Config{Store: f.store, Now: time.Now, Random: crand.Reader, NewID: rand.Uint64})
	must(t, err)
	_, _, err = tokens.Create(t.Context(), "default", access.Request{Name: "deploys", Scopes: []access.Scope{access.Read}})
	must(t, err)
	key, err := secret.NewKey(crand.Reader)
	must(t, err)
	vault, err := secret.New(secret.Config{Store: f.store, Now: time.Now, Random: crand.Reader, NewID: rand.Uint64,
		Keys: func() (*secret.Ring, error) { return secret.ParseRing(key) }})
	must(t, err)
	_, _, err = vault.Set(t.Context(), "default", "hook-token", "a canary")
	must(t, err)
	l.stop()

	time.Sleep(2 * time.Hour) // a downtime, of which fires are skipped
	l = live(t, f.store, f.blobs, "second")
	time.Sleep(4 * time.Minute)
	l.trigger("retrying", control.Request{})
	crashed := l.trigger("slow", control.Request{})
	for range 3 { // the last of which waits when all is over
		l.trigger("slow-turns", control.Request{})
	}
	l.trigger("slow-turns", control.Request{Overlap: job.OwnOverlap{Policy: job.OverlapSkip}})
	again := l.trigger("failed-again", control.Request{})
	l.trigger("failed-line", control.Request{})
	time.Sleep(500 * time.Millisecond)
	_, err = l.Control.Retry(t.Context(), "default", again, false, time.Time{}) // keeps its place, and fails again
	must(t, err)
	l.trigger("failed-line", control.Request{}) // waits when all is over
	time.Sleep(2 * time.Second)
	for _, name := range []string{"failed-line", "failed-again"} {
		shown, err := l.Control.Gate(t.Context(), "default", gate.Name(name))
		if must(t, err); len(shown.Blocked) != 1 {
			t.Errorf("the line of %s does not stand still", name)
		}
	}
	l.stop()
	// As a kill -9 leaves it: running, with a worker that is gone.
	item, err := f.store.Get(t.Context(), crashed.Key("default"))
	must(t, err)
	r, _, err := run.FromItem("default", crashed, item[0])
	must(t, err)
	op, err := r.Start("gone", time.Now().UnixMilli(), 30*time.Second).Item(1)
	must(t, err)
	_, err = f.store.Write(t.Context(), op)
	must(t, err)

	_, err = lease.TicketKey(t.Context(), f.store, make([]byte, 32), 1) // as a server with workers elsewhere has it
	must(t, err)

	kinds := map[string]bool{}
	keeps, own, kept := 0, 0, 0
	for _, i := range storetest.Items(t, f.store) {
		kind, of, _ := strings.Cut(i.Partition, "#")
		kinds[kind] = true
		parts := strings.Split(of, "#")
		switch kind {
		case "run":
			id, err := run.IDFromSort(parts[1], i.Sort)
			must(t, err)
			r, _, err := run.FromItem(parts[0], id, i)
			must(t, err)
			if r.Keeps {
				keeps++
			}
			if r.Overlap != 0 {
				own++
			}
		case "gate":
			g, err := gate.FromItem(parts[0], parts[1], i)
			must(t, err)
			if slices.ContainsFunc(g.Entries, func(e gate.Entry) bool { return e.Kept }) {
				kept++
			}
		}
	}
	if keeps == 0 || own == 0 || kept == 0 {
		t.Errorf("%d runs have kept a place, %d have a policy of their own, and at %d gates a run keeps its place; want some of each", keeps, own, kept)
	}
	for _, of := range []map[string]any{job.Records(), run.Records(), gate.Records(), timer.Records(), tick.Records(), stats.Records(), control.Records(), access.Records(), secret.Records(), lease.Records()} {
		for kind := range of {
			if !kinds[kind] {
				t.Errorf("there is no record of kind %s", kind)
			}
		}
	}
	var text bytes.Buffer
	_, _, err = backup.Write(t.Context(), &text, backup.Source{Store: f.store, Blobs: f.blobs, Now: time.Now, Version: *release}, nil)
	must(t, err)
	states := l.runs()
	f.close(t)
	return states, text.Bytes()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pack gives a folder as a tar.gz.
func pack(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	must(t, archive.AddFS(os.DirFS(dir)))
	must(t, archive.Close())
	must(t, zip.Close())
	return out.Bytes()
}
