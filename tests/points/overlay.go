package points

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// module is what this package is imported as.
const module = "github.com/belfry-scheduler/belfry/tests/points"

// change is a text that must stand so often in a file, and what stands there in its place.
type change struct {
	old, new string
	times    int // 0: at least once
}

// changes are what the overlay does to the product: a node has its store, its queues and its clock by way of this package, and the
// process its clock.
var changes = map[string][]change{
	"lib/node/node.go": {
		{"import (\n", "import (\n\t\"" + module + "\"\n", 1},
		{"\tif err := cfg.settle(); err != nil {\n", "\tcfg.Store, cfg.Queues, cfg.Now = points.Store(cfg.Store), points.Queues(cfg.Queues), points.Now\n\tif err := cfg.settle(); err != nil {\n", 1},
	},
	"cmd/belfry/process.go": {
		{"import (\n", "import (\n\t\"" + module + "\"\n", 1},
		{"queuelocal.Config{}", "queuelocal.Config{Now: points.Now}", 1},
		{"time.Now", "points.Now", 0},
	},
}

// Overlay writes what `go build -overlay` wants into a folder, and gives its file. root is that of the source.
func Overlay(root, folder string) (file string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for path, edits := range changes {
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return "", err
		}
		text := string(source)
		for _, c := range edits {
			if n := strings.Count(text, c.old); n == 0 || c.times > 0 && n != c.times {
				return "", fmt.Errorf("%s has %q %d times, and the overlay was made for another text: see tests/points/overlay.go", path, c.old, n)
			}
			text = strings.ReplaceAll(text, c.old, c.new)
		}
		over := filepath.Join(folder, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(over, []byte(text), 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(root, path)] = over
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	file = filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}
