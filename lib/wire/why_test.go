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
		if got := wire.NewWhy("overlap", "job:a", "skip", runs).Text; got != want {
			t.Errorf("of %q it says %q, want %q", runs, got, want)
		}
	}
}
