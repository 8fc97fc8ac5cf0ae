package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Machine is where a benchmark ran. What a system does not tell is left out.
type Machine struct {
	CPU        string `json:"cpu,omitempty"`
	Cores      int    `json:"cores"`
	Memory     int64  `json:"memory_bytes,omitempty"`
	System     string `json:"system"` // and its architecture
	Kernel     string `json:"kernel,omitempty"`
	FileSystem string `json:"file_system,omitempty"` // of the folder: its kind, and where it is mounted
	Go         string `json:"go"`
	Belfry     string `json:"belfry"`
	Volatile   bool   `json:"volatile"` // the folder lies in memory: its syncs cost nothing, and are worth nothing
}

// MachineOf looks at this host, and at what a folder lies on.
func MachineOf(folder, version string) Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Belfry: version}
	m.CPU = field("/proc/cpuinfo", "model name")
	m.Memory = kilobytes(field("/proc/meminfo", "MemTotal"))
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		m.FileSystem, m.Volatile = mountOf(string(mounts), absolute(folder))
	}
	return m
}

// field is the value of a line "name : value", "" where there is none.
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

// kilobytes reads "123 kB" as bytes, 0 for anything else.
func kilobytes(text string) int64 {
	digits, ok := strings.CutSuffix(text, " kB")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return n << 10
}

// absolute is a folder without symbolic links; of one that is not there yet, as far as there is something.
func absolute(folder string) string {
	path, err := filepath.Abs(folder)
	if err != nil {
		return folder
	}
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return real
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// mountOf finds in the kernel's list of mounts the one that a path lies on: the longest that is above it, and of those the last.
func mountOf(mounts, path string) (shown string, volatile bool) {
	longest := -1
	for line := range strings.Lines(mounts) {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
		before, after, ok := strings.Cut(line, " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(place) < 5 || len(kind) < 1 {
			continue
		}
		at := place[4]
		if above := at == "/" || path == at || strings.HasPrefix(path, at+"/"); above && len(at) >= longest {
			longest = len(at)
			shown, volatile = kind[0]+" at "+at, kind[0] == "tmpfs" || kind[0] == "ramfs"
		}
	}
	return shown, volatile
}

// resident is the memory that this process has now and had at most, in bytes; 0 where the system does not tell.
func resident() (now, most int64) {
	return kilobytes(field("/proc/self/status", "VmRSS")), kilobytes(field("/proc/self/status", "VmHWM"))
}
