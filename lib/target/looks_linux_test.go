package target

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// deaf is a script that starts one with a session of its own, no environment, and no ear for SIGTERM, for each line of its input. That one
// says its number when it is all this: from then on nothing but its parent tells where it comes from.
const deaf = `while read line; do env -i /usr/bin/setsid /bin/sh -c 'trap "" TERM; echo $$ >&3; exec /bin/sleep 600' & done`

// attempt is a family that runs deaf.
type attempt struct {
	*family
	set     *Set
	exited  chan struct{}
	ask     io.Writer
	answers *bufio.Reader
	living  *os.File // what all of it hold open
}

func newAttempt(t *testing.T, grace time.Duration) attempt {
	t.Helper()
	pipe := func() (read, write *os.File) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = read.Close(), write.Close() })
		return read, write
	}
	input, ask := pipe()
	living, held := pipe()
	a := attempt{
		set: newSet(t, func(c *Config) { c.Grace = grace }), exited: make(chan struct{}),
		ask: ask, answers: bufio.NewReader(living), living: living,
	}
	mark := a.set.newMark()
	cmd := exec.Command("/bin/sh", "-c", deaf) //nolint:noctx // the family is what ends it
	cmd.Env, cmd.Stdin, cmd.ExtraFiles, cmd.SysProcAttr = []string{mark}, input, []*os.File{held}, ownGroup()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = input.Close(), held.Close()
	t.Cleanup(func() { killGroup(cmd.Process); <-a.exited })
	go func() {
		defer close(a.exited)
		_ = cmd.Wait()
	}()
	a.family = newFamily(cmd.Process, mark)
	a.system = newSystem()
	return a
}

// start has it start one.
func (a attempt) start(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(a.ask, "\n"); err != nil {
		t.Error(err)
	}
	line, err := a.answers.ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// end stops the attempt, calls then when that has returned, and wants nobody alive when all is done. Who was killed and waits for a disk is alive until
// that answers, so the end is waited for; whom nobody killed sleeps longer.
func (a attempt) end(t *testing.T, then func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	over := make(chan struct{})
	a.set.stop(ctx, a.family, a.exited, func() { close(over) })
	then()
	<-over
	roll{read: a.living}.wantNobody(t)
}

// A first look may take longer than the call waits, as on a busy host. The call returns, and the look loses nobody: the leader is not
// killed while it goes on.
func TestALateLookLosesNobody(t *testing.T) {
	a, goOn := newAttempt(t, time.Millisecond), make(chan struct{})
	a.start(t)
	numbers := a.system.numbers
	a.system.numbers = func(folder string) ([]int, error) {
		<-goOn
		return numbers(folder)
	}
	a.end(t, func() { close(goOn) })
}

// Who is started between a look and the SIGTERM that ends its parent is found.
func TestWhoIsStartedAfterALookIsEnded(t *testing.T) {
	a := newAttempt(t, time.Millisecond)
	a.start(t)
	numbers := a.system.numbers
	var once sync.Once
	a.system.numbers = func(folder string) ([]int, error) {
		found, err := numbers(folder)
		once.Do(func() { a.start(t); a.start(t) })
		return found, err
	}
	a.end(t, func() {})
}

// Who has got SIGSTOP may be about to start another: that nobody is new tells a look which began when all were still.
func TestWhoIsStartedByOneThatIsBeingStoppedIsEnded(t *testing.T) {
	a := newAttempt(t, time.Millisecond)
	numbers, text := a.system.numbers, a.system.text
	var looks, runs int // that it is stopped comes to be seen after the third look
	a.system.numbers = func(folder string) ([]int, error) {
		if folder == "" {
			looks++
		}
		return numbers(folder)
	}
	a.system.text = func(file string) ([]byte, error) {
		got, err := text(file)
		if strings.Contains(file, "/task/") && looks < 4 {
			runs++
			got = []byte(strings.Replace(string(got), ") T ", ") R ", 1))
		}
		return got, err
	}
	freeze([]*family{a.family}) // nobody else looks at it
	a.begin()
	t.Cleanup(func() { a.end(t, func() {}) })
	if looks < 5 || runs == 0 {
		t.Errorf("%d looks, and it was seen running %d times; want a look after it was seen to be still", looks, runs)
	}
}

// What only the attempt that is being ended knows is killed when the worker ends at once.
func TestKillEndsWhatATimeoutHasFound(t *testing.T) {
	s, log, living := newSet(t, func(c *Config) { c.Grace = time.Hour }), watch("ready"), newRoll(t)
	told := watch("told")
	spec := shell(`exec 3>"$ROLL"; trap 'echo told; exit 0' TERM; env -i /usr/bin/setsid /bin/sh -c 'trap "" TERM; echo ready; exec sleep 600' & while :; do sleep 0.02; done`)
	spec.Exec.Env = Texts(map[string]string{"ROLL": living.path})
	call := testCall()
	call.Log = both{log, told}
	ctx, timeout := timedOut(t)
	go func() { <-log.seen; timeout(); <-told.seen; s.Kill() }()
	_, err := s.Call(ctx, spec, call)
	wantFailure(t, err, KindTimeout, false)
	living.wantNobody(t)
}

// Who was stopped, by itself or before SIGTERM is sent, is asked like all others. It gets SIGTERM and no SIGHUP.
func TestExecHasAGraceToEndInOrderThoughItWasStopped(t *testing.T) {
	for name, script := range map[string]string{
		"by itself":             `sh -c 'trap "echo in order; exit 0" TERM; kill -STOP $$; while :; do sleep 0.02; done' & until grep -q "^State:.T" /proc/$!/status; do sleep 0.02; done; echo ready; wait`,
		"in another group":      `timeout 600 sh -c 'trap "exit 1" HUP; trap "echo in order; exit 0" TERM; echo ready; while :; do sleep 0.02; done' & wait`,
		"in a group in a group": `timeout 600 timeout 600 sh -c 'trap "exit 1" HUP; trap "echo in order; exit 0" TERM; echo ready; while :; do sleep 0.02; done' & wait`,
	} {
		t.Run(name, func(t *testing.T) { wantGrace(t, script) })
	}
}

// fake is a system whose processes stand in a table. A process's text may be an error.
type fake map[string]any

func (f fake) system(wrong func(file string) error) *system {
	return &system{
		late: map[int]reading{},
		numbers: func(folder string) (all []int, err error) {
			if err := wrong(folder); err != nil {
				return nil, err
			}
			for file := range f {
				if pid, err := strconv.Atoi(strings.TrimSuffix(file, "/stat")); err == nil {
					all = append(all, pid)
				}
			}
			return all, nil
		},
		text: func(file string) ([]byte, error) {
			if err := wrong(file); err != nil {
				return nil, err
			}
			switch text := f[file].(type) {
			case string:
				return []byte(text), nil
			case error:
				return nil, text
			default:
				return nil, fs.ErrNotExist
			}
		},
	}
}

func nothingWrong(string) error { return nil }

// stat is what the system would say.
func stat(state string, parent, group, threads, start int) string {
	return fmt.Sprintf("1 (a) b) %s %d %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0 %d 0", state, parent, group, threads, start)
}

const fakeMark = markName + "=1"

func fakeFamily(s *system) *family {
	f := newFamily(&os.Process{Pid: 10}, fakeMark)
	f.system = s
	f.begin()
	return f
}

func wantKnown(t *testing.T, f *family, want ...int) {
	t.Helper()
	if got := slices.Sorted(maps.Keys(f.known)); !slices.Equal(got, want) {
		t.Errorf("known are %v, want %v", got, want)
	}
}

// Who was found stays known until its own end is read.
func TestWhoALookMissesStaysKnown(t *testing.T) {
	orphan := stat("S", 1, 11, 1, 101)
	full := os.NewSyscallError("open", syscall.EMFILE)
	for name, row := range map[string]struct {
		later any // what is read of 11
		known bool
	}{
		"as it was":               {orphan, true},
		"stopped":                 {stat("T", 1, 11, 1, 101), true},
		"its first thread ended":  {stat("Z", 1, 11, 2, 101), true},
		"no file is free":         {full, true},
		"none on the host":        {os.NewSyscallError("open", syscall.ENFILE), true},
		"interrupted":             {os.NewSyscallError("read", syscall.EINTR), true},
		"withheld":                {os.NewSyscallError("open", syscall.EACCES), true},
		"cut":                     {"1 (a", true},
		"gone":                    {nil, false},
		"gone while it was read":  {os.NewSyscallError("read", syscall.ESRCH), false},
		"dead":                    {stat("Z", 1, 11, 1, 101), false},
		"another one of its name": {stat("S", 1, 11, 1, 102), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := fake{"10/stat": stat("S", 1, 10, 1, 100), "11/stat": stat("S", 10, 11, 1, 101)}
			s := table.system(nothingWrong)
			f := fakeFamily(s)
			find([]*family{f})
			wantKnown(t, f, 10, 11)

			delete(table, "10/stat")
			table["11/stat"] = row.later
			want := []int{}
			if row.known {
				want = append(want, 11)
			}
			find([]*family{f}) // it is listed
			wantKnown(t, f, want...)
			list := s.numbers
			s.numbers = func(folder string) ([]int, error) {
				all, err := list(folder)
				return slices.DeleteFunc(all, func(pid int) bool { return pid == 11 }), err
			}
			table["12/stat"] = stat("S", 11, 12, 1, 103)
			if row.known {
				want = append(want, 12) // by its parent, though the look did not see that
			}
			find([]*family{f}) // it is missed
			wantKnown(t, f, want...)
		})
	}
}

// What could not be read is read again, and what another user withholds is not waited for.
func TestALookThatCouldNotReadIsMadeAgain(t *testing.T) {
	for _, file := range []string{"", "10/stat", "11/stat", "11/environ"} {
		for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EINTR, syscall.EIO, syscall.ENOMEM} {
			times := readTries - 1
			f := fakeFamily(fake{
				"10/stat": stat("S", 1, 10, 1, 100),
				"11/stat": stat("S", 1, 11, 1, 101), "11/environ": "A=b\x00" + fakeMark + "\x00",
			}.system(func(read string) error {
				if read == file && times > 0 {
					times--
					return os.NewSyscallError("open", errno)
				}
				return nil
			}))
			find([]*family{f})
			wantKnown(t, f, 10, 11)
		}
	}
	lists := 0
	f := fakeFamily(fake{
		"10/stat": stat("S", 1, 10, 1, 100), "11/stat": os.NewSyscallError("open", syscall.EPERM),
		"12/stat": stat("S", 1, 12, 1, 101), "12/environ": os.NewSyscallError("open", syscall.EACCES),
	}.system(func(read string) error {
		if read == "" {
			lists++
		}
		return nil
	}))
	find([]*family{f})
	wantKnown(t, f, 10)
	if lists != 1 {
		t.Errorf("%d looks for what is another user's, want 1", lists)
	}
}

// An environment that does not come holds up no look, and counts when it comes. Those of processes that are older than the attempt are
// not read at all.
func TestAnEnvironmentThatIsLateCountsLater(t *testing.T) {
	answer, reading := make(chan struct{}), 0
	f := fakeFamily(fake{
		"9/stat": stat("D", 1, 9, 1, 99), "9/environ": fakeMark,
		"10/stat": stat("S", 1, 10, 1, 100),
		"11/stat": stat("D", 1, 11, 1, 101), "11/environ": fakeMark,
	}.system(func(file string) error {
		switch file {
		case "9/environ":
			t.Error("it reads the environment of one that is older")
		case "11/environ":
			reading++
			<-answer
		}
		return nil
	}))
	find([]*family{f})
	find([]*family{f})
	wantKnown(t, f, 10)
	close(answer)
	f.system.late[11].mark <- <-f.system.late[11].mark // it has come
	find([]*family{f})
	wantKnown(t, f, 10, 11)
	if reading != 1 {
		t.Errorf("it was read %d times, want once", reading)
	}
}

// Parents are stopped before their children and continued after them, and the leader is the first and the last.
func TestTheOrderOfSignals(t *testing.T) {
	f := newFamily(&os.Process{Pid: 30}, fakeMark)
	f.known = map[int]*member{10: {parent: 1}, 11: {parent: 40}, 20: {parent: 30}, 30: {parent: 2}, 40: {parent: 20}, 50: {parent: 10}}
	if got, want := f.elders(), []int{30, 10, 20, 50, 40, 11}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
