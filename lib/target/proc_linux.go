package target

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How often something is read that could not be read, how long after each other, and how long one read may take until nobody waits for it.
const (
	readTries    = 10
	readPause    = 10 * time.Millisecond
	readPatience = 100 * time.Millisecond
)

// system is what the operating system tells of its processes: the numbers that a folder under /proc holds, and the text of a file there.
type system struct {
	numbers func(folder string) ([]int, error)
	text    func(file string) ([]byte, error)

	late map[int]reading // environments that did not come within readPatience, by process
}

// reading is the reading of one environment.
type reading struct {
	start uint64
	mark  chan environment // holds one
}

type environment struct {
	mark string
	err  error
}

func newSystem() *system {
	return &system{
		numbers: func(folder string) ([]int, error) {
			dir, err := os.Open("/proc/" + folder)
			if err != nil {
				return nil, err
			}
			defer func() { _ = dir.Close() }() // only read
			names, err := dir.Readdirnames(-1)
			numbers := make([]int, 0, len(names))
			for _, name := range names {
				if number, err := strconv.Atoi(name); err == nil {
					numbers = append(numbers, number)
				}
			}
			return numbers, err
		},
		text: func(file string) ([]byte, error) { return os.ReadFile("/proc/" + file) },
		late: map[int]reading{},
	}
}

// process is what the system tells of one that lives.
type process struct {
	parent, group int
	state         string
	start         uint64 // in ticks since the system's
	mark          string
}

// errDead says that a process has ended. No other error says so: a worker without a free file reads nothing, and all live on.
var errDead = errors.New("the process has ended")

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// read reads what the system tells of a process. The error is errDead where there is none.
func (s *system) read(pid int) (process, error) {
	return s.stat(strconv.Itoa(pid))
}

// stat reads a process, or a thread of one, from its folder.
func (s *system) stat(folder string) (p process, err error) {
	text, err := s.text(folder + "/stat")
	if isAbsent(err) {
		return p, errDead
	}
	if err != nil {
		return p, err
	}
	// "PID (NAME) STATE PARENT GROUP ...", where the name may hold anything; the 20th field counts threads, the 22nd is the start.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return p, fmt.Errorf("%s/stat ends early", folder)
	}
	p.state = fields[0]
	p.parent, _ = strconv.Atoi(fields[1])
	p.group, _ = strconv.Atoi(fields[2])
	p.start, err = strconv.ParseUint(fields[19], 10, 64)
	threads, _ := strconv.Atoi(fields[17])
	if p.state == "X" || p.state == "Z" && threads < 2 { // the others of its threads may go on when the first has ended
		return p, errDead
	}
	return p, err
}

// is tells whether a process still is the one of a start, and reads it. Read again is what could not be read; the error is errDead where it
// is gone, and another where that cannot be told.
func (s *system) is(pid int, start uint64) (p process, err error) {
	for range readTries {
		p, err = s.read(pid)
		if err == nil && p.start != start {
			return p, errDead
		}
		if err == nil || errors.Is(err, errDead) || isDenied(err) {
			return p, err
		}
		<-time.After(readPause)
	}
	return p, err
}

// still tells whether no thread of a process runs: it starts nobody then, until it is continued.
func (s *system) still(pid int) bool {
	threads, err := s.numbers(strconv.Itoa(pid) + "/task")
	if err != nil {
		return isAbsent(err)
	}
	for _, thread := range threads {
		p, err := s.stat(fmt.Sprintf("%d/task/%d", pid, thread))
		if err != nil && !errors.Is(err, errDead) || err == nil && !strings.Contains("TtZ", p.state) {
			return false
		}
	}
	return true
}

// look reads all processes, with the marks of those that started at a time or later. Done again is a look that could not read something
// which another user does not withhold.
func (s *system) look(since uint64) map[int]process {
	for tries := readTries; ; tries-- {
		all, whole := s.lookOnce(since)
		if whole || tries == 1 {
			return all
		}
		<-time.After(readPause)
	}
}

func (s *system) lookOnce(since uint64) (all map[int]process, whole bool) {
	pids, err := s.numbers("")
	whole = err == nil
	all = make(map[int]process, len(pids))
	for _, pid := range pids {
		p, err := s.read(pid)
		if err == nil {
			if p.start >= since {
				p.mark, err = s.mark(pid, p.start)
			}
			all[pid] = p
		}
		whole = whole && (err == nil || errors.Is(err, errDead) || isDenied(err))
	}
	return all, whole
}

var errLate = errors.New("its environment is still being read")

// mark reads the mark of a process. An environment cannot be read while its process waits for memory from a disk, and nobody knows when such
// a disk answers: what comes late is there for a later look, and is waited for once.
func (s *system) mark(pid int, start uint64) (string, error) {
	if r, late := s.late[pid]; late && r.start == start {
		select {
		case a := <-r.mark:
			delete(s.late, pid)
			return a.mark, a.err
		default:
			return "", nil
		}
	}
	r := reading{start, make(chan environment, 1)}
	go func() {
		text, err := s.text(strconv.Itoa(pid) + "/environ")
		if isAbsent(err) {
			err = nil // it has no memory, as one whose first thread has ended
		}
		r.mark <- environment{markIn(text), err}
	}()
	patience := time.NewTimer(readPatience)
	defer patience.Stop()
	select {
	case a := <-r.mark:
		return a.mark, a.err
	case <-patience.C:
		s.late[pid] = r
		return "", errLate
	}
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
