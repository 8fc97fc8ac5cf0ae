package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// machine is where it was measured. What a system does not tell is left out.
type machine struct {
	CPU        string  `json:"cpu,omitempty"`
	Cores      int     `json:"cores"`
	Memory     uint64  `json:"memory_bytes,omitempty"`
	System     string  `json:"system"`
	Kernel     string  `json:"kernel,omitempty"`
	FileSystem string  `json:"file_system,omitempty"`
	Sync       float64 `json:"fsync_ms"` // of 4 KB appended, the median
	Load       float64 `json:"load"`     // processes that wanted a core in the minute before
}

func machineOf(dir string) (machine, error) {
	m := machine{Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH}
	m.CPU = field("/proc/cpuinfo", "model name")
	if n, err := strconv.ParseUint(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		m.Memory = n << 10
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _ = strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	}
	if text, err := os.ReadFile("/proc/self/mounts"); err == nil {
		m.FileSystem = mountOf(string(text), dir)
	}
	if strings.HasPrefix(m.FileSystem, "tmpfs") || strings.HasPrefix(m.FileSystem, "ramfs") {
		return m, fmt.Errorf("%s lies in memory (%s), where a sync costs nothing and is worth nothing: choose a folder on a disk with -dir", dir, m.FileSystem)
	}
	took, err := syncTime(dir)
	m.Sync = took
	return m, err
}

// field is the value of a line "name : value".
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if got, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(got) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// mountOf finds what a folder lies on among lines "device folder kind options 0 0", as "ext4 of /dev/vda".
func mountOf(mounts, dir string) (shown string) {
	longest := -1
	for line := range strings.Lines(mounts) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		at := words[1]
		if above := at == "/" || dir == at || strings.HasPrefix(dir, at+"/"); above && len(at) >= longest {
			longest, shown = len(at), words[2]+" of "+words[0]
		}
	}
	return shown
}

// syncTime measures what all contestants but one wait for.
func syncTime(dir string) (ms float64, err error) {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	page := bytes.Repeat([]byte{1}, 4096)
	took := make([]time.Duration, 200)
	for n := range took {
		began := time.Now()
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took[n] = time.Since(began)
	}
	slices.Sort(took)
	return millis(quantile(took, 0.5)), nil
}

// dependency tells which version of a module this program was built with.
func dependency(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "of unknown version"
}
