package main

import (
	"strings"
	"testing"
)

// One command says of any run why it does not go on, or has ended as it did.
func TestRunWhy(t *testing.T) {
	here := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	here(0, demand("held", "paused: true")+"---\n"+demand("brief", "expires_after: 1s")+"---\n"+demand("other", "expires_after: 1s", "overlap: queue"), "job", "apply", "-f", "-")
	held := strings.Fields(here(0, "", "job", "trigger", "held", "-o", "name").out)[0]
	held = strings.TrimPrefix(held, "run/")
	if got := here(0, "", "run", "why", held).out; !strings.Contains(got, "paused") || !strings.Contains(got, "Up to:") {
		t.Errorf("held: %s", got)
	}
	ahead := strings.TrimPrefix(strings.Fields(here(0, "", "job", "trigger", "brief", "--delay", "1h", "-o", "name").out)[0], "run/")
	if got := here(0, "", "run", "why", ahead).out; !strings.Contains(got, "Until:") {
		t.Errorf("not due: %s", got)
	}
	here(0, "", "run", "cancel", ahead)
	if got := here(0, "", "run", "why", ahead).out; !strings.HasPrefix(got, "It is cancelled: ") {
		t.Errorf("cancelled: %s", got)
	}
	if got := here(0, "", "run", "why", ahead, "-o", "json").out; !strings.Contains(got, `"state": "cancelled"`) || !strings.Contains(got, `"reason"`) {
		t.Errorf("as data: %s", got)
	}
}
