package wire_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestWhyInWords(t *testing.T) {
	for want, runs := range map[string][]string{
		"as many runs as are allowed were in progress (overlap: skip)":  nil,
		"a~1 was in progress (overlap: skip)":                           {"a~1"},
		"a~1 and a~2 were in progress (overlap: skip)":                  {"a~1", "a~2"},
		"a~1, a~2 and a~3 were in progress (overlap: skip)":             {"a~1", "a~2", "a~3"},
		"a~1, a~2 and at least 2 more were in progress (overlap: skip)": {"a~1", "a~2", "a~3", "a~4"},
	} {
		if got := wire.NewWhy("overlap", "job:a", "", "skip", runs, "other runs of the job were in progress").Text; got != want {
			t.Errorf("of %q it says %q, want %q", runs, got, want)
		}
	}
	for _, c := range []struct {
		code, policy string
		runs         []string
		reason, want string
	}{
		{"overlap", "queue_one", []string{"a~1", "a~2"}, "another run of the job waited already", "another run of the job waited already, and in its way were a~1 and a~2 (overlap: queue_one)"},
		{"overlap", "queue_one", []string{"a~1"}, "another run of the job waited already", "another run of the job waited already, and in its way was a~1 (overlap: queue_one)"},
		{"overlap", "queue_latest", []string{"a~2"}, "a later run of the job waits in its place", "a~2 came later and took its place (overlap: queue_latest)"},
		{"overlap", "replace", []string{"a~2"}, "a later run of the job takes its place", "a~2 came later and took its place (overlap: replace)"},
		{"overlap", "skip", []string{"a~1", "a~2"}, "other runs of the job were in progress or in line", "a~1 and a~2 were in progress or in line (overlap: skip)"},
		{"full", "queue", []string{"a~1"}, "", "a~1 was in progress or in line, which was full (overlap: queue)"},
		{"full", "", []string{"a~1", "b~1"}, "", "a~1 and b~1 were in progress or in line, which was full (gate: job:a)"},
		{"closed", "", nil, "", "the gate was closed, and nobody may wait there (gate: job:a)"},
		{"closed", "", []string{"a~1", "b~1"}, "", "the gate was closed, and a~1 and b~1 waited, as many as may (gate: job:a)"},
		{"max_wait", "", []string{"a~1", "b~1"}, "it had waited in line since 2026-11-25T09:00:00Z, for longer than 1h", "it had waited in line since 2026-11-25T09:00:00Z, for longer than 1h, while a~1 and b~1 were in progress or before it in line (gate: job:a, max_wait)"},
		{"max_wait", "", nil, "it had waited in line since 2026-11-25T09:00:00Z, for longer than 1h", "it had waited in line since 2026-11-25T09:00:00Z, for longer than 1h (gate: job:a, max_wait)"},
		{"expired", "", nil, "it had not started by 2026-11-25T09:00:00Z", "it had not started by 2026-11-25T09:00:00Z (expires_after)"},
	} {
		if got := wire.NewWhy(c.code, "job:a", "", c.policy, c.runs, c.reason).Text; got != c.want {
			t.Errorf("%s of %q: it says %q, want %q", c.code, c.policy, got, c.want)
		}
	}
}

// A run that was skipped at the gate of a value says which value that is, whether the gate is its job's own or one that jobs share.
func TestWhyNamesTheValue(t *testing.T) {
	one := []string{"a~1"}
	for want, why := range map[string]*wire.Why{
		"a~1 was in progress (overlap: skip, key: acme)":                                  wire.NewWhy("overlap", "job:a", "acme", "skip", one, ""),
		"a~1 was in progress or in line, which was full (gate: customer, key: acme)":      wire.NewWhy("full", "customer", "acme", "", one, ""),
		"the gate was closed, and a~1 waited, as many as may (gate: customer, key: acme)": wire.NewWhy("closed", "customer", "acme", "", one, ""),
		"the gate was closed, and nobody may wait there (gate: customer, key: acme)":      wire.NewWhy("closed", "customer", "acme", "", nil, ""),
	} {
		if why.Text != want || why.Key != "acme" {
			t.Errorf("%q with the key %q, want %q with acme", why.Text, why.Key, want)
		}
	}
}
