package target

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// family is the processes that come of one attempt: those in its process group, those whose environment has its mark, as the system
// shows it, and those that descend from any of these. Children inherit the mark, whatever session they make for themselves and
// whoever becomes their parent. Missed is who has got rid of its environment and of all its ancestors too.
//
// Who was found once belongs to it until its own end is read, whatever a later look through all processes finds: when its parent has ended,
// nothing else may tell any more where it comes from.
//
// A cgroup would miss none, but few workers may make one: those in containers, and started by hand, may not.
type family struct {
	leader *os.Process
	mark   string // "NAME=value"

	mu     sync.Mutex // one asks or kills at a time: who asks continues what another has stopped to kill it
	system *system
	since  uint64          // when the leader started: who started earlier does not come of it
	gone   bool            // the process group, whose number may be another's now
	known  map[int]*member // those that were found, by number; nil before the first look
}

// member is a process of a family.
type member struct {
	start  uint64 // tells it from a later process of its number
	parent int
	beyond bool // another user's: no signal reaches it
	killed bool
}

func newFamily(leader *os.Process, mark string) *family {
	return &family{leader: leader, mark: mark}
}

// begin makes ready for looks. Until then a family costs nothing: most attempts end by themselves.
func (f *family) begin() {
	if f.known != nil {
		return
	}
	f.known = map[int]*member{}
	if f.system == nil {
		f.system = newSystem()
	}
	if p, err := f.system.read(f.leader.Pid); err == nil {
		f.since = p.start
	}
}

// terminate asks all to end. It stops all first. Otherwise one could start another between a look and the signals, and end by its signal:
// the new one might have neither the mark nor a living ancestor, and would never be found. SIGCONT follows SIGTERM, so that all can end in
// order. It also continues those that somebody else had stopped, as systemd does: they could not end in order otherwise.
//
// The order of the signals hides the stop from the family. A shell with job control waits for its children to stop: it is stopped before
// them and continued after them, and sees nothing. When a parent ends, the system sends SIGHUP to a group of its children if one of
// them is stopped: children are continued before their parents, and the leader last. The leader's own parent, the worker, waits for
// its end only. A process that ignores SIGTERM goes on as before; a few of its system calls may return EINTR, as after any stop.
func (f *family) terminate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin()
	freeze([]*family{f})
	terminateGroup(f.leader)
	f.signal(syscall.SIGTERM)
	f.signal(syscall.SIGCONT)
}

// lives tells whether any of them lives.
func (f *family) lives() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.gone && groupLives(f.leader) {
		return true // looking often keeps the group's number ours
	}
	f.gone = true
	for pid, m := range f.known {
		if _, err := f.system.is(pid, m.start); !errors.Is(err, errDead) {
			return true
		}
	}
	return findTwice([]*family{f})
}

// killLooks bounds the looks of one freeze and the rounds of one kill, and killLook is the pause between them. For stillLooks of them those
// are waited for that do not stop, because they wait for a disk.
const (
	killLooks  = 100
	killLook   = 10 * time.Millisecond
	stillLooks = 10
)

// kill kills families, and what they start meanwhile.
func kill(families ...*family) {
	for _, f := range families {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.begin()
	}
	for tries := killLooks; tries > 0 && len(families) > 0; tries-- {
		freeze(families)
		for _, f := range families {
			f.signal(syscall.SIGKILL)
			if !f.gone {
				killGroup(f.leader)
			}
			f.gone = true
		}
		if !findTwice(families) {
			return
		}
		<-time.After(killLook)
	}
}

// freeze stops all, so that nobody starts another who is not found. It is done when a look that began after all were still finds nobody
// new: one that has got the signal, but still runs, may be about to start another.
func freeze(families []*family) {
	for looks, waits := killLooks, stillLooks; looks > 0 && waits > 0; looks-- {
		still := true
		for _, f := range families {
			still = f.stop() && still
		}
		_, more := find(families)
		switch {
		case more:
		case still:
			return
		default:
			waits--
			<-time.After(killLook)
		}
	}
}

// stop sends SIGSTOP to those that run, and tells whether there were none.
func (f *family) stop() (still bool) {
	still = true
	for _, pid := range f.elders() {
		if m := f.known[pid]; !m.killed && !f.system.still(pid) {
			f.send(pid, syscall.SIGSTOP)
			still = still && (m.beyond || f.known[pid] == nil)
		}
	}
	return still
}

// signal sends a signal to those that were found, children before their parents, and SIGTERM only to those beyond the group, which has got it.
func (f *family) signal(signal syscall.Signal) {
	for _, pid := range slices.Backward(f.elders()) {
		f.send(pid, signal)
	}
}

func (f *family) send(pid int, signal syscall.Signal) {
	m := f.known[pid]
	process, err := os.FindProcess(pid) // from here on it is this process, though its number may be another's soon
	if err != nil {
		return
	}
	defer func() { _ = process.Release() }()
	p, err := f.system.is(pid, m.start)
	if errors.Is(err, errDead) {
		delete(f.known, pid)
	}
	if err != nil || signal == syscall.SIGTERM && p.group == f.leader.Pid {
		return
	}
	err = process.Signal(signal) // it may have ended, or have become another user's
	m.beyond = isDenied(err)
	m.killed = m.killed || signal == syscall.SIGKILL && err == nil
}

// elders are the numbers of those that were found, parents before their children, and the leader first.
func (f *family) elders() []int {
	depth := make(map[int]int, len(f.known))
	pids := make([]int, 0, len(f.known))
	for pid, m := range f.known {
		pids = append(pids, pid)
		if pid != f.leader.Pid {
			depth[pid] = 1
		}
		for range len(f.known) { // parents form no ring, but they were not all read at one moment
			if m = f.known[m.parent]; m == nil {
				break
			}
			depth[pid]++
		}
	}
	slices.SortFunc(pids, func(a, b int) int { return cmp.Or(depth[a]-depth[b], a-b) })
	return pids
}

// findTwice tells whether any lives that can be killed, by two looks: one that is becoming another program has no environment for a
// moment, and is not seen then.
func findTwice(families []*family) bool {
	if living, _ := find(families); living {
		return true
	}
	<-time.After(killLook)
	living, _ := find(families)
	return living
}

// find looks through all processes, and tells whether any of the families' lives that can be killed, and whether there are more than were
// known.
func find(families []*family) (living, more bool) {
	since := families[0].since
	for _, f := range families {
		since = min(since, f.since)
	}
	all := families[0].system.look(since)
	for _, f := range families {
		found := map[int]*member{}
		for pid, p := range all {
			if !f.has(all, pid) {
				continue
			}
			m := f.known[pid]
			if m == nil || m.start != p.start {
				m, more = &member{start: p.start}, true
			}
			m.parent = p.parent
			found[pid] = m
		}
		for pid, m := range f.known {
			if _, seen := all[pid]; seen {
				continue // and it is found, or is another now
			}
			if _, err := f.system.is(pid, m.start); !errors.Is(err, errDead) {
				found[pid] = m
			}
		}
		f.known = found
		for _, m := range found {
			living = living || !m.beyond
		}
	}
	return living, more
}

// has tells whether a process belongs to the family, by itself or by an ancestor.
func (f *family) has(all map[int]process, pid int) bool {
	for range len(all) + 1 { // parents form no ring, but they were not all read at one moment
		p, ok := all[pid]
		m := f.known[pid]
		switch {
		case !ok:
			return m != nil // it has ended just now, or was not seen
		case m != nil && m.start == p.start, p.mark == f.mark, p.group == f.leader.Pid && !f.gone:
			return true
		}
		pid = p.parent
	}
	return false
}
