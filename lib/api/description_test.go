package api_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/api"
)

// Handlers of the same parts share their description; one that has other parts has its own, in whatever order they are made.
func TestDescriptionsAreOfTheirParts(t *testing.T) {
	with := func(version string, change func(*api.Config)) []byte {
		s := start(t, 0, func(c *api.Config) {
			c.Version = version
			change(c)
		})
		return s.send("GET", "/openapi.json", "").is(200).body
	}
	all := func(c *api.Config) { c.Backup = func(context.Context, io.Writer) error { return nil } }
	none := func(*api.Config) {}
	whole, less, newer := with("v1", all), with("v1", none), with("v2", all)
	if !bytes.Contains(whole, []byte(`"/v1/backup"`)) || bytes.Contains(less, []byte(`"/v1/backup"`)) || !bytes.Contains(newer, []byte(`"version":"v2"`)) {
		t.Error("a document is not that of its own server's parts and version")
	}
	if !bytes.Equal(with("v1", all), whole) || !bytes.Equal(with("v1", none), less) {
		t.Error("a document of the same parts differs")
	}
}
