package invalid

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"schedule", "target", "timeout", "retry", "as", strings.Repeat("x", 65)}
	for given, want := range map[string]string{
		"shedule": "schedule", "shcedule": "schedule", "Schedule": "schedule", "scheduling": "", "timeuot": "timeout", "rety": "retry", "retries": "",
		"at": "", "": "", "ass": "", strings.Repeat("x", 64): "", "targte": "target", "tagret": "target",
	} {
		if got := Nearest(given, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", given, got, want)
		}
	}
}
