package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// absent says what it is that does not exist. The system has the same words for the program, the directory that it is to start in, and the
// interpreter or loader that the program names.
func absent(err error, program, dir string) string {
	if !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if dir != "" {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return ": there is no such directory"
		}
	}
	line, kind := firstLine(program, dir)
	switch kind {
	case unread:
		return ""
	case compiled:
		return ": it is there, and the loader that it needs is not"
	}
	interpreter, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	if strings.HasSuffix(interpreter, "\r") {
		return fmt.Sprintf(": it is there, and its first line names the interpreter %s; want lines that end without a carriage return", invalid.Quote(interpreter))
	}
	return fmt.Sprintf(": it is there, and the interpreter %s that its first line names is not", invalid.Quote(interpreter))
}

// programKind is what a file is that is to be run.
type programKind uint8

const (
	unread programKind = iota
	compiled
	script
)

// firstLine is what stands behind #! in a script, up to what Linux looks at.
func firstLine(program, dir string) (string, programKind) {
	if !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	if is, err := os.Stat(program); err != nil || !is.Mode().IsRegular() {
		return "", unread
	}
	file, err := os.Open(program)
	if err != nil {
		return "", unread
	}
	defer func() { _ = file.Close() }() // only read
	start, err := io.ReadAll(io.LimitReader(file, 256))
	if err != nil {
		return "", unread
	}
	line, is := bytes.CutPrefix(start, []byte("#!"))
	if !is {
		return "", compiled
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return string(line), script
}

// returned says of an exit code by which an interpreter tells that it did not understand its arguments, or found nothing, that the script's first
// line ends with a carriage return, which belongs to the last of these then.
func returned(code int, program, dir string) string {
	if code != 2 && code != 126 && code != 127 {
		return ""
	}
	if line, _ := firstLine(program, dir); strings.HasSuffix(line, "\r") {
		return "; its first line ends with a carriage return: want lines without"
	}
	return ""
}

// callExec runs a process in a process group of its own, with a mark by which what it starts is found elsewhere, too: see family.
//
// When ctx ends, the whole family gets SIGTERM, and SIGKILL after the grace; then the attempt is a timeout or a
// cancellation, whatever the process made of it. When the process ends by itself, what it left running in the background
// goes on, as it would under cron; its output is awaited for a grace, so that a background process which holds the pipe
// cannot hold the worker. From then on its output is read and dropped, until nobody holds the pipe: a pipe that nobody reads would
// end whoever writes to it. A worker that is killed leaves its processes running: the run's next attempt has a higher fence.
func (s *Set) callExec(ctx context.Context, e Exec, call Call, known revealed) (Result, error) {
	env, err := known.texts(e.Env, maxExecBytes, func(text string) bool { return !hasNUL(text) }, "a text without NUL bytes")
	if err != nil {
		return Result{}, err
	}
	stdout := captureOf(ctx, call)
	var stderr tail
	// Each output by itself: a secret that is printed to one is not torn by what the other says in between.
	veiledOut, veiledErr := known.veil.over(both{&stdout, call.Log}), known.veil.over(both{&stderr, call.Log})
	mark := s.newMark()
	cmd := &exec.Cmd{
		Args:        e.Argv,
		Env:         append(s.environment(env, call), mark),
		Dir:         e.Dir,
		Stdin:       bytes.NewReader(call.Payload),
		WaitDelay:   s.cfg.Grace,
		SysProcAttr: ownGroup(),
	}
	if cmd.Path, err = findProgram(e.Argv[0], cmd.Env); err != nil {
		return Result{}, failed(KindStart, err, "start %s: %v", e.Argv[0], err).permanent()
	}
	select { // a start from a disk that does not answer lasts as long as that
	case s.starting <- struct{}{}:
	case <-ctx.Done():
		return Result{}, neverBegan(ctx)
	}
	outputs, err := s.start(cmd, veiledOut, veiledErr)
	<-s.starting
	if short := Short(err); short != nil {
		return Result{}, short
	}
	if err != nil {
		where := ""
		if e.Dir != "" {
			where = " in " + e.Dir // the system's error does not tell a missing folder from a missing program
		}
		f := failed(KindStart, err, "start %s%s: %v%s", e.Argv[0], where, err, absent(err, cmd.Path, e.Dir))
		f.Permanent = !startMayWorkLater(err)
		return Result{}, f
	}

	f := newFamily(cmd.Process, mark)
	over := s.lives(f)
	outputs.copy()
	exited := make(chan struct{}) // closed when err holds how
	go func() {
		defer close(exited)
		if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
			err = nil // something that it started holds its input
		}
	}()
	finish := func(wait time.Duration, cut <-chan struct{}) (whole bool) {
		whole = outputs.end(wait, cut)
		veiledOut.close(false)
		veiledErr.close(false)
		return whole
	}
	select {
	case <-exited:
		over() // its number may be another's from now on
	case <-ctx.Done():
		s.stop(ctx, f, exited, over)
		finish(s.cfg.Grace/2, nil)
		return Result{}, endedSaying(ctx, oneLine(stderr.String(), maxMessage/2))
	}
	// It has ended by itself: that is the verdict. The end of its time only cuts the wait for what others may still print.
	if !finish(s.cfg.Grace, ctx.Done()) {
		_, _ = fmt.Fprintf(call.Log, "belfry: the process ended, but something it started still holds its output, of which the rest is dropped\n")
	}
	if err != nil {
		return Result{}, exitFailure(e, cmd.Path, err, stderr.String())
	}
	return stdout.result(), nil
}

// start starts a process with pipes for its outputs. Starts go one at a time, so that each sees what the others have left of open files; most
// of a start goes one at a time in the system anyway.
func (s *Set) start(cmd *exec.Cmd, stdout, stderr io.Writer) (outputs, error) {
	o, err := newOutputs(stdout, stderr)
	if err != nil {
		return o, err
	}
	if err = o.room(); err == nil {
		cmd.Stdout, cmd.Stderr = o[0].write, o[1].write
		err = cmd.Start()
	}
	if err != nil {
		o.close()
	}
	return o, err
}

// neverBegan is ended for a call that has waited for its turn to start: what its timeout ends has no effect.
func neverBegan(ctx context.Context) error {
	err := ended(ctx)
	var late *Failure
	if errors.As(err, &late) {
		return failed(KindStart, late, "the attempt ran into its timeout before its process was started: another start has not come to its end")
	}
	return err
}

// stop ends the family of a process, and returns when all of it is gone, at the latest one and a half times the grace later. The others
// may outlive the leader by the rest of the grace, because they got the same SIGTERM and may have something to put in order.
//
// What is not done by then goes on in the background, and over is called when it is done. It waits for its turn on a busy host, or for a
// killed process whose disk does not answer. The leader is not killed while a look goes on: a look tells its descendants by it.
func (s *Set) stop(ctx context.Context, f *family, exited <-chan struct{}, over func()) {
	bounded(ctx, s.cfg.Grace+s.cfg.Grace/2, func() {
		defer over()
		s.askAndKill(f, exited)
	})
}

func (s *Set) askAndKill(f *family, exited <-chan struct{}) {
	f.terminate()
	grace := time.NewTimer(s.cfg.Grace)
	defer grace.Stop()
	select {
	case <-exited:
	case <-grace.C:
		kill(f)
		<-exited
		return
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for f.lives() {
		select {
		case <-look.C:
		case <-grace.C:
			kill(f)
			return
		}
	}
}

// markName is the variable that holds another value for each call.
const markName = ownEnv + "CALL"

// marks counts the calls of this process: two sets in it must not take each other's processes for their own.
var marks atomic.Uint64

// newMark gives a variable of the environment that no other call has, of this process or another on the host.
func (s *Set) newMark() string {
	return fmt.Sprintf("%s=%d.%d.%d", markName, os.Getpid(), s.cfg.Now().UnixNano(), marks.Add(1))
}

// environment is what the worker lets processes inherit, then the job's own, then Belfry's: the last of a name counts.
func (s *Set) environment(own map[string]string, call Call) []string {
	env := make([]string, 0, len(s.cfg.BaseEnv)+len(own)+6)
	for _, pair := range s.cfg.BaseEnv {
		if !strings.HasPrefix(pair, ownEnv) {
			env = append(env, pair)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	for _, fact := range call.Facts() {
		env = append(env, fact.env+"="+fact.Value)
	}
	return env
}

// findProgram looks a bare name up in the PATH that the process itself will see, not in the worker's.
func findProgram(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') || filepath.Base(name) != name {
		return name, nil
	}
	path := defaultPath
	for _, pair := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			path = value
			break
		}
	}
	denied := false
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // a program must not change with the folder it starts in
		}
		switch found, err := exec.LookPath(filepath.Join(folder, name)); {
		case err == nil:
			return found, nil
		case isDenied(err):
			denied = true
		}
	}
	if denied {
		return "", errors.New("found in PATH, but not executable")
	}
	return "", errors.New("not found in PATH")
}

// defaultPath is what a process gets to search when nobody set PATH, as a shell would.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

func exitFailure(e Exec, program string, err error, stderr string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return failed(KindExit, err, "%v", err)
	}
	said := ""
	if text := oneLine(stderr, maxMessage/2); text != "" {
		said = ": " + text
	}
	if signal := killedBy(exit.ProcessState); signal != "" {
		return failed(KindSignal, err, "killed by a signal (%s)%s", signal, said)
	}
	f := failed(KindExit, err, exitSaid+"%d%s%s", exit.ExitCode(), said, returned(exit.ExitCode(), program, e.Dir))
	f.Permanent = slices.Contains(e.PermanentExitCodes, exit.ExitCode())
	return f
}

// both writes to a capture and to the log.
type both struct{ first, second io.Writer }

func (b both) Write(p []byte) (int, error) {
	_, _ = b.first.Write(p)
	return b.second.Write(p)
}

// tail keeps the end of what is written to it: the last lines of a process's complaints are the telling ones.
type tail struct{ kept []byte }

const tailBytes = 400

func (t *tail) Write(p []byte) (int, error) {
	if len(p) >= tailBytes {
		t.kept = append(t.kept[:0], p[len(p)-tailBytes:]...)
		return len(p), nil
	}
	if over := len(t.kept) + len(p) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.kept = append(t.kept, p...)
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }
