package main

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestRunGetSaysWhyARunDoesNotGoOn(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	call(0, `{"name": "a", "target": {"exec": {"argv": ["true"]}}}`, "job", "apply", "-f", "-")
	id := decode[wire.Run](t, call(0, "", "job", "trigger", "a", "--delay", "24h", "-o", "json").out).ID
	call(0, "", "job", "pause", "a", "--reason", "db move")
	got := call(0, "", "run", "get", id).out
	for _, want := range []string{"db move", "Up to: belfry job resume a.", "Its time has not come. Until: "} {
		if !strings.Contains(got, want) {
			t.Errorf("shown as\n%s\nwant it to say %q", got, want)
		}
	}
	if r := decode[wire.Run](t, call(0, "", "run", "get", id, "-o", "json").out); len(r.Waiting) != 2 || r.Waiting[0].Code != "paused" {
		t.Errorf("waiting %+v", r.Waiting)
	}
}
