package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A group's pattern, as it is shown, chooses what the group has: to list and to redrive.
func TestDeadLettersByCause(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	call(0, `[{"name": "a", "target": {"exec": {"argv": ["/bin/sh", "-c", "exit 3"]}}, "retry": {"max_attempts": 1}},
		{"name": "b", "target": {"exec": {"argv": ["/bin/sh", "-c", "exit 4"]}}, "retry": {"max_attempts": 1}},
		{"name": "c", "target": {"exec": {"argv": ["/bin/sh", "-c", "echo no disk >&2; exit 4"]}}, "retry": {"max_attempts": 1}}]`, "job", "apply", "-f", "-")
	if got := call(0, "", "dead-letter", "groups", "-o", "json").out; !strings.Contains(got, `"items": []`) {
		t.Errorf("of nothing: %s", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		call(0, "", "job", "trigger", name)
	}
	line := regexp.MustCompile(`(?m)^2 .* a, b +exit: exit code #$`)
	eventually(t, "the runs are given up", func() (bool, string) {
		got := call(0, "", "dead-letter", "groups").out
		return line.MatchString(got) && strings.Contains(got, "exit: exit code #: no disk"), got
	})
	groups := decode[wire.DeadLetterGroups](t, call(0, "", "dead-letter", "groups", "-o", "json").out)
	if len(groups.Items) != 2 || groups.LookedAt != 3 || groups.Items[0].Kind != "exit" {
		t.Errorf("groups %+v", groups)
	}
	if got := decode[[]wire.DeadLetter](t, call(0, "", "dead-letter", "list", "--pattern", groups.Items[0].Pattern, "-o", "json").out); len(got) != 2 {
		t.Errorf("listed by the pattern: %+v, want two", got)
	}
	if got := call(0, "", "dead-letter", "redrive", "--pattern", groups.Items[1].Pattern, "--dry-run").errors; !strings.HasPrefix(got, "1 dead letter matches.\n  c~") {
		t.Errorf("counted by the pattern: %s", got)
	}
}
