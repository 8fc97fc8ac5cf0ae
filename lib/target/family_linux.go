package target

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// family is the processes that come of one attempt: those in its process group, those whose environment has its mark, as the system
// shows it, and those that descend from any of these. Children inherit the mark, whatever session they make for themselves and
// whoever becomes their parent. Missed is who has got rid of its environment and of all its ancestors too.
//
// A cgroup would miss none, but few workers may make one: those in containers, and started by hand, may not.
type family struct {
	leader *os.Process
	mark   string // "NAME=value"
	gone   bool   // the process group, whose number may be another's now

	known map[int]uint64 // those that were found, by number; with it their start tells them from a later process
}

func newFamily(leader *os.Process, mark string) *family {
	return &family{leader: leader, mark: mark, known: map[int]uint64{}}
}

// terminate asks all to end.
func (f *family) terminate() {
	find([]*family{f}) // while those live from whom they descend
	terminateGroup(f.leader)
	f.signal(syscall.SIGTERM)
}

// lives tells whether any of them lives.
func (f *family) lives() bool {
	if !f.gone && groupLives(f.leader) {
		return true // looking often keeps the group's number ours
	}
	f.gone = true
	for pid, start := range f.known {
		if p, ok := readProcess(pid); ok && p.start == start {
			return true
		}
	}
	return findTwice([]*family{f})
}

// How often the processes are looked at while they are killed, and how long after each other.
const (
	killLooks = 100
	killLook  = 10 * time.Millisecond
)

// kill kills families, and what they start meanwhile.
func kill(families ...*family) {
	freeze(families)
	for _, f := range families {
		if !f.gone {
			killGroup(f.leader)
		}
		f.gone = true
		f.signal(syscall.SIGKILL)
	}
	for tries := killLooks; tries > 0 && findTwice(families); tries-- {
		freeze(families)
		for _, f := range families {
			f.signal(syscall.SIGKILL)
		}
	}
}

// freeze stops all, so that nobody starts another who is not found while its parent is killed.
func freeze(families []*family) {
	for tries := killLooks; tries > 0; tries-- {
		_, more := find(families)
		if !more {
			return
		}
		for _, f := range families {
			f.signal(syscall.SIGSTOP)
		}
	}
}

// signal sends a signal to those that were found, SIGTERM only to those beyond the group, which has got it.
func (f *family) signal(signal syscall.Signal) {
	for pid, start := range f.known {
		process, err := os.FindProcess(pid) // from here on it is this process, though its number may be another's soon
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok && p.start == start && (signal != syscall.SIGTERM || p.group != f.leader.Pid) {
			_ = process.Signal(signal) // it may have ended, or have become another user's
		}
		_ = process.Release()
	}
}

// findTwice tells whether any lives, by two looks: one that is becoming another program has no environment for a moment, and is not seen then.
func findTwice(families []*family) bool {
	if living, _ := find(families); living {
		return true
	}
	<-time.After(killLook)
	living, _ := find(families)
	return living
}

// find looks through all processes, and tells whether any of the families' lives, and whether there are more than were known.
func find(families []*family) (living, more bool) {
	entries, _ := os.ReadDir("/proc") // not to be had: none is found
	all := make(map[int]process, len(entries))
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				environment, _ := os.ReadFile("/proc/" + entry.Name() + "/environ") // another user's: empty
				p.mark = markIn(environment)
				all[pid] = p
			}
		}
	}
	for _, f := range families {
		found := map[int]uint64{}
		for pid, p := range all {
			if f.has(all, pid) {
				found[pid] = p.start
				more = more || f.known[pid] != p.start
			}
		}
		f.known = found
		living = living || len(found) > 0
	}
	return living, more
}

// has tells whether a process belongs to the family, by itself or by an ancestor.
func (f *family) has(all map[int]process, pid int) bool {
	for range len(all) { // parents form no ring, but they were not all read at one moment
		p, ok := all[pid]
		start, known := f.known[pid]
		switch {
		case !ok:
			return false
		case known && start == p.start, p.mark == f.mark, p.group == f.leader.Pid && !f.gone:
			return true
		}
		pid = p.parent
	}
	return false
}

// process is what the system tells of one that lives.
type process struct {
	parent, group int
	start         uint64 // in ticks since the system's
	mark          string
}

// readProcess reads what the system tells of a process, false where there is none or it is dead.
func readProcess(pid int) (p process, lives bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	// "PID (NAME) STATE PARENT GROUP ...", where the name may hold anything; the start is the 22nd field.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return p, false
	}
	p.parent, _ = strconv.Atoi(fields[1])
	p.group, _ = strconv.Atoi(fields[2])
	p.start, err = strconv.ParseUint(fields[19], 10, 64)
	return p, err == nil
}

// markIn finds the mark in an environment, "" where there is none.
func markIn(environment []byte) string {
	for pair := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.HasPrefix(pair, []byte(markName+"=")) {
			return string(pair)
		}
	}
	return ""
}
