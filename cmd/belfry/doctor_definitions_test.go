package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Open runs whose definition is gone, damaged, of a newer version or of no use here are named, of a data folder and of a server that runs on it; and so is why, and what to do.
func TestTheDoctorNamesRunsThatNobodyCanBringOn(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	spoils := []struct {
		name, says string
		spoil      func(store.Item) []byte
	}{
		{"damaged", "is damaged", func(i store.Item) []byte { return i.Value[:len(i.Value)/2] }},
		{"gone", "is gone", nil},
		{"newer", "is of a newer version of Belfry", func(i store.Item) []byte { return append([]byte{record.Format + 1}, i.Value[1:]...) }},
		{"field", "cannot be used by this version of Belfry: the workflow cannot be used: of_the_day: got an unknown field", func(i store.Item) []byte {
			return bytes.Replace(i.Value, []byte("on_failure"), []byte("of_the_day"), 1) // as long
		}},
	}
	ids := map[string]string{}
	t.Run("prepare", func(t *testing.T) {
		address := dev(t, "--data", data)
		call := to(t, address)
		for _, c := range append(spoils, struct {
			name, says string
			spoil      func(store.Item) []byte
		}{name: "fine"}) {
			apply := func(more string) {
				call(0, fmt.Sprintf(`{"name": %q, %s "target": {"workflow": {"on_failure": "stop", "steps": {"w": {"wait": {"for": "5h"}}}}}}`, c.name, more), "job", "apply", "-f", "-")
			}
			apply("")
			ids[c.name] = strings.TrimSpace(call(0, "", "job", "trigger", c.name, "-o", "name").out)
			eventually(t, "the run begins by the definition as it is now", func() (bool, string) {
				got := call(0, "", "run", "get", ids[c.name], "-o", "json").out
				return decode[wire.Run](t, got).State == "running", got
			})
			apply(`"description": "edited since",`)
		}
		if f := diagnosed(t, 0, "--address", address)["definitions"]; f.Found != "those of 5 open runs can be read" {
			t.Errorf("%+v", f)
		}
	})
	if t.Failed() {
		return
	}
	if f := diagnosed(t, 0, "--data", data)["definitions"]; f.Found != "those of 5 open runs can be read" {
		t.Errorf("%+v", f)
	}
	s, err := pebble.Open(pebble.Config{Dir: embed.StoreFolder(data), Logger: discardLog(), Now: longAgo})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range spoils {
		page, err := s.Query(t.Context(), store.Range{Partition: job.PastKey("default", c.name, 0).Partition})
		if err != nil || len(page.Items) != 1 {
			t.Fatal(page.Items, err)
		}
		op := store.Op{Kind: store.Delete, Key: page.Items[0].Key, Attempt: 1}
		if c.spoil != nil {
			op = store.Op{Kind: store.Put, Key: page.Items[0].Key, Value: c.spoil(page.Items[0]), Attempt: 1}
		}
		if _, err := s.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	named := func(args ...string) {
		t.Helper()
		got := belfry(t, "", append([]string{"doctor"}, args...)...)
		for _, c := range spoils {
			if n := strings.Count(got.out, "definitions: 1 run cannot go on: "+ids[c.name]+"\n"); n != 1 || !strings.Contains(got.out, c.says) {
				t.Errorf("%s: named %d times, want that it %s:\n%s%s", c.name, n, c.says, got.out, got.errors)
			}
		}
		if got.code != 1 || strings.Contains(got.out, ids["fine"]) || !strings.Contains(got.out, "use that version") {
			t.Errorf("code %d:\n%s%s", got.code, got.out, got.errors)
		}
	}
	named("--data", data)
	t.Run("server", func(t *testing.T) {
		address := dev(t, "--data", data)
		named("--address", address)
		call := to(t, address)
		for _, c := range spoils {
			if why := call(0, "", "run", "why", ids[c.name]).out; !strings.Contains(why, c.says) {
				t.Errorf("%s: %s", c.name, why)
			}
		}
		call(0, "", "run", "cancel", ids["gone"])
		if got := call(0, "", "run", "get", ids["gone"]).out; !strings.Contains(got, "cancelled") {
			t.Errorf("a cancelled run that nobody can read is\n%s", got)
		}
	})
}
