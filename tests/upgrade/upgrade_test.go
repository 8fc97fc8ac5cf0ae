package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// each runs a test over the store of every release.
func each(t *testing.T, do func(t *testing.T, place string, states map[string]string)) {
	found, err := filepath.Glob("testdata/*/runs.json")
	if err != nil || len(found) == 0 {
		t.Fatalf("no release has left a store: %v", err)
	}
	for _, listed := range found {
		place := filepath.Dir(listed)
		t.Run(filepath.Base(place), func(t *testing.T) {
			text, err := os.ReadFile(listed)
			must(t, err)
			states := map[string]string{}
			must(t, json.Unmarshal(text, &states))
			do(t, place, states)
		})
	}
}

func unpack(t *testing.T, file, dir string) {
	t.Helper()
	packed, err := os.Open(file)
	must(t, err)
	defer packed.Close()
	zip, err := gzip.NewReader(packed)
	must(t, err)
	for archive := tar.NewReader(zip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		if !filepath.IsLocal(head.Name) {
			t.Fatalf("%s names %q", file, head.Name)
		}
		path := filepath.Join(dir, head.Name)
		if head.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(path, 0o700))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		data, err := io.ReadAll(archive)
		must(t, err)
		must(t, os.WriteFile(path, data, 0o600))
	}
}

// TestStoresOfAllReleasesOpenAndFire opens the data folder of every release, reads all of its history, and goes on with it: what
// had ended stays as it is, what had not ends, and jobs fire.
func TestStoresOfAllReleasesOpenAndFire(t *testing.T) {
	each(t, func(t *testing.T, place string, states map[string]string) {
		dir := t.TempDir()
		unpack(t, filepath.Join(place, "store.tar.gz"), dir)
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(lived)
			f := openFolder(t, dir)
			defer f.close(t)
			began := time.Now()
			l := live(t, f.store, f.blobs, "later")
			defer l.stop()
			time.Sleep(3 * time.Minute)
			found := l.runs()
			for id, was := range states {
				now, ok := found[id]
				state, _ := run.ParseState(was)
				switch {
				case !ok:
					t.Errorf("%s, which was %s, is not there", id, was)
				case state.Ended() && now != was:
					t.Errorf("%s was %s and is %s", id, was, now)
				case (was == "queued") && now != "succeeded":
					t.Errorf("%s was %s and is %s", id, was, now)
				}
			}
			fired(t, l, began)
			readable(t, l)
			tried(t, l, filepath.Base(place))
		})
	})
}

// TestBackupsOfAllReleasesRestore restores every release's backup into another engine.
func TestBackupsOfAllReleasesRestore(t *testing.T) {
	each(t, func(t *testing.T, place string, states map[string]string) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(lived)
			file, err := os.Open(filepath.Join(place, "belfry.backup"))
			must(t, err)
			defer file.Close()
			blobs := blob.New(memblob.OpenBucket(nil))
			into := memory.New(memory.Config{})
			began := time.Now()
			report, err := backup.Restore(t.Context(), file, backup.Target{Store: into, Blobs: blobs}, backup.Options{Now: began, NewID: rand.Uint64})
			must(t, err)
			if len(report.Faults) > 0 || report.Jobs < 3 || report.Ahead < 1 {
				t.Errorf("the report says %+v", report)
			}
			l := live(t, into, blobs, "later")
			defer l.stop()
			time.Sleep(3 * time.Minute)
			found := l.runs()
			for id, was := range states {
				named, err := run.ParseID(id)
				must(t, err)
				state, _ := run.ParseState(was)
				if want := map[bool]string{true: was, false: "unknown"}[state.Ended()]; named.Time().Before(began) && found[id] != want {
					t.Errorf("%s was %s and is %s, want %s", id, was, found[id], want)
				}
			}
			fired(t, l, began)
			readable(t, l)
			tried(t, l, filepath.Base(place))
		})
	})
}

// fired wants the jobs to have run since.
func fired(t *testing.T, l *life, since time.Time) {
	t.Helper()
	for name, least := range map[string]int{"each": 2, "quick": 80} {
		runs, _, err := l.Control.Runs(t.Context(), "default", control.RunFilter{Job: name, From: since, States: []run.State{run.Succeeded}}, "", control.MaxLimit)
		if err != nil || len(runs) < least {
			t.Errorf("%s has run %d times since, %v; want %d at least", name, len(runs), err, least)
		}
	}
}

// defaults are the retries that releases gave to jobs which said nothing of them, where those of today are others.
var defaults = map[string]job.Retry{
	"v0.1.0-dev": {MaxAttempts: 5, Initial: schedule.Duration(time.Second), Factor: 2, Max: schedule.Duration(5 * time.Minute)},
}

// tried wants a stored job to keep the retries that it was stored with, and one that is applied anew to have those of today.
func tried(t *testing.T, l *life, release string) {
	t.Helper()
	today := job.Definition{}.WithDefaults().Retry
	want, changed := defaults[release]
	if !changed {
		want = today
	}
	get := func(name string) job.Retry {
		j, err := l.Control.Job(t.Context(), "default", name)
		must(t, err)
		return j.Def.Retry
	}
	if got := get("each"); got != want {
		t.Errorf("a job that was stored with %+v has %+v", want, got)
	}
	want.MaxAttempts = 1
	if got := get("slow-once"); got != want {
		t.Errorf("a job that was stored with %+v has %+v", want, got)
	}
	l.put("each", time.Minute)
	if got := get("each"); got != today {
		t.Errorf("a job that was applied again has %+v, want %+v", got, today)
	}
}

// readable wants results and logs to be there.
func readable(t *testing.T, l *life) {
	t.Helper()
	runs, _, err := l.Control.Runs(t.Context(), "default", control.RunFilter{Job: "large", States: []run.State{run.Succeeded}}, "", control.MaxLimit)
	if err != nil || len(runs) < 2 {
		t.Fatalf("%d runs with large results, %v", len(runs), err)
	}
	for _, r := range runs {
		data, _, err := l.Control.Result(t.Context(), r)
		if err != nil || !strings.HasPrefix(string(data), "result result") {
			t.Errorf("the result of %s is %.20q, %v", r.ID, data, err)
		}
		if log, err := l.Control.LogOf(t.Context(), r, 0); err != nil || string(log.Text()) != "a line of a log\n" {
			t.Errorf("the log of %s is %q, %v", r.ID, log.Text(), err)
		}
	}
}

// TestANewerStoreIsRefused: a change that older versions must not run on raises the format of the layout, which every engine's
// store has.
func TestANewerStoreIsRefused(t *testing.T) {
	s := memory.New(memory.Config{})
	must(t, s.Import(t.Context(), store.Item{Key: timer.LayoutKey, Version: 1, Value: []byte{record.Format + 1, 0xa0}}))
	_, err := timer.Setup(t.Context(), s, 1, 0, rand.Uint64)
	if !errors.Is(err, record.ErrNewer) || !strings.Contains(err.Error(), "newer version of Belfry") {
		t.Errorf("a newer layout gave %v", err)
	}
	_, err = backup.Open(bytes.NewReader([]byte("belfry-backup 2\n")))
	if !errors.Is(err, backup.ErrNewer) || !strings.Contains(err.Error(), "form 2") {
		t.Errorf("a newer backup gave %v", err)
	}
}
