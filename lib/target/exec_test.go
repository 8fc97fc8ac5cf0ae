//go:build unix

package target

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/tests/program"
)

func shell(script string) Spec { return Spec{Exec: &Exec{Argv: []string{"sh", "-c", script}}} }

func TestExecGetsPayloadEnvironmentAndDir(t *testing.T) {
	t.Setenv("LEAKED", "from the worker")
	s := newSet(t, func(c *Config) {
		c.BaseEnv = append(c.BaseEnv, "INHERITED=yes", "COLOUR=base", "BELFRY_STORE=dynamodb://secret", "BELFRY_IDEMPOTENCY_KEY=stale")
	})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	spec := shell(`cat; pwd -P; env | grep -E '^(BELFRY_|INHERITED|COLOUR|LEAKED)' | grep -v '^BELFRY_CALL=[0-9.]*$' | sort; echo oops >&2`)
	spec.Exec.Dir, spec.Exec.Env = dir, Texts(map[string]string{"COLOUR": "job"})
	var log bytes.Buffer
	call := testCall()
	call.Payload = []byte("payload\n")
	call.Log = &log

	facts := "BELFRY_ATTEMPT=2\nBELFRY_FENCE=5\nBELFRY_IDEMPOTENCY_KEY=run-1\nBELFRY_JOB=report\nBELFRY_NOMINAL_TIME=2026-11-21T12:00:00Z\nBELFRY_RUN=run-1\n"
	want := "payload\n" + dir + "\n" + facts + "COLOUR=job\nINHERITED=yes\n"
	got, err := s.Call(t.Context(), spec, call)
	if err != nil || string(got.Body) != want || got.ContentType != "" {
		t.Fatalf("got %v, %q\n%s\nwant\n%s", err, got.ContentType, got.Body, want)
	}
	if !strings.Contains(log.String(), "payload\n") || !strings.Contains(log.String(), "oops\n") {
		t.Errorf("the log lacks an output: %q", log.String())
	}

	call.AtMostOnce = true
	got, err = s.Call(t.Context(), spec, call)
	if err != nil || strings.Contains(string(got.Body), "IDEMPOTENCY") || !strings.Contains(string(got.Body), "BELFRY_FENCE=5") {
		t.Errorf("at most once: %v\n%s", err, got.Body)
	}
}

// writerFunc is a log that two outputs write to.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// What was printed before a last word on standard error stands before it in the log, however much that is.
func TestALastWordIsTheLastOfTheLog(t *testing.T) {
	s := newSet(t, nil)
	for name, script := range map[string]string{
		"behind much":   "seq 1 60000; echo FATAL >&2",
		"behind little": "seq 1 9; echo FATAL >&2",
		"behind some":   "seq 1 3000; echo FATAL >&2",
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				var mu sync.Mutex
				var log bytes.Buffer
				call := testCall()
				call.Log = writerFunc(func(p []byte) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					return log.Write(p)
				})
				if _, err := s.Call(t.Context(), shell(script), call); err != nil {
					t.Fatal(err)
				}
				if text := log.String(); !strings.HasSuffix(text, "9\nFATAL\n") && !strings.HasSuffix(text, "000\nFATAL\n") {
					t.Fatalf("the log of %d bytes ends with %q", len(text), text[max(0, len(text)-40):])
				}
			}
		})
	}
}

// Who floods one output holds up the other for no longer than a pipe is full.
func TestAFloodOfOneOutputDoesNotHoldUpTheOther(t *testing.T) {
	s := newSet(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	call := testCall()
	call.Log = writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("HELP")) {
			stop()
		}
		return len(p), nil
	})
	_, err := s.Call(ctx, shell("yes & echo HELP >&2; wait"), call)
	if ctx.Err() == nil || t.Context().Err() != nil {
		t.Errorf("it ended by itself: %v", err)
	}
}

func TestExecNeedsPermission(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	s := newSet(t, func(c *Config) { c.AllowExec = false })
	_, err := s.Call(t.Context(), shell("touch "+marker), testCall())
	if !errors.Is(err, ErrNotHere) || !strings.Contains(err.Error(), "--allow-exec") {
		t.Errorf("got %v, want ErrNotHere that names the flag", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it ran")
	}
}

func TestExecEndsAreClassified(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(notExecutable, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(argv ...string) Spec { return Spec{Exec: &Exec{Argv: argv, PermanentExitCodes: []int{64, 78}}} }
	inDir := at("true")
	inDir.Exec.Dir = filepath.Join(t.TempDir(), "gone")
	script := func(text string) Spec {
		path := filepath.Join(t.TempDir(), "script")
		if err := program.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return at(path)
	}
	besides := script("#!/no/such/shell\n")
	besides.Exec.Dir, besides.Exec.Argv[0] = filepath.Dir(besides.Exec.Argv[0]), "./script"
	for name, c := range map[string]struct {
		spec      Spec
		kind      string
		permanent bool
		says      string
	}{
		"exit code":           {at("sh", "-c", "echo first >&2; echo disk full >&2; exit 3"), KindExit, false, "exit code 3: first disk full"},
		"listed exit code":    {at("sh", "-c", "exit 78"), KindExit, true, "78"},
		"signal":              {at("sh", "-c", "kill -SEGV $$"), KindSignal, false, "segmentation"},
		"bare name not found": {at("no-such-program-here"), KindStart, true, "start no-such-program-here: not found in PATH"},
		"path not found":      {at("/no/such/program"), KindStart, true, "/no/such/program"},
		"not executable":      {at(notExecutable), KindStart, true, "permission"},
		"no such dir":         {inDir, KindStart, true, "no such file or directory: there is no such directory"},
		"ends of lines":       {script("#!/bin/sh\r\ntrue\r\n"), KindStart, true, `the interpreter "/bin/sh\r"; want lines that end without a carriage return`},
		"ends of arguments":   {script("#!/bin/sh -e\r\ntrue\r\n"), KindExit, false, "its first line ends with a carriage return: want lines without"},
		"no such interpreter": {script("#!/no/such/shell -e\necho\n"), KindStart, true, `the interpreter "/no/such/shell" that its first line names is not`},
		"beside its dir":      {besides, KindStart, true, `the interpreter "/no/such/shell"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSet(t, nil).Call(t.Context(), c.spec, testCall())
			if f := wantFailure(t, err, c.kind, c.permanent); !strings.Contains(f.Message, c.says) || strings.Contains(f.Message, "/usr/bin:") {
				t.Errorf("got %q, want it to say %q and no PATH", f.Message, c.says)
			}
		})
	}
}

func TestExecLooksInTheJobsOwnPath(t *testing.T) {
	dir := t.TempDir()
	if err := program.Write(filepath.Join(dir, "ours"), []byte("#!/bin/sh\necho found\n")); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Exec: &Exec{Argv: []string{"ours"}, Env: Texts(map[string]string{"PATH": ".:" + dir})}}
	if got, err := newSet(t, nil).Call(t.Context(), spec, testCall()); err != nil || string(got.Body) != "found\n" {
		t.Errorf("got %q, %v", got.Body, err)
	}
}

func TestExecMayIgnoreItsInput(t *testing.T) {
	call := testCall()
	call.Payload = make([]byte, 1<<20) // more than a pipe holds
	if _, err := newSet(t, nil).Call(t.Context(), shell("exec true"), call); err != nil {
		t.Fatalf("a process that does not read its input failed: %v", err)
	}
}

func TestP11_exec_output_is_bounded(t *testing.T) {
	got, err := newSet(t, nil).Call(t.Context(), shell("head -c 3000000 /dev/zero"), testCall())
	if err != nil || len(got.Body) != MaxResultBytes || !got.Truncated {
		t.Fatalf("got %d bytes, truncated %t, %v", len(got.Body), got.Truncated, err)
	}
}

// A cut goes in front of the character that it would tear: a text stays text. What is no text keeps every byte.
func TestACutTearsNoCharacter(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		bytes  int
		text   bool
	}{
		"two bytes, torn":     {"printf a; yes é | tr -d '\\n' | head -c 400000", MaxResultBytes - 1, true},
		"two bytes, whole":    {"yes é | tr -d '\\n' | head -c 400000", MaxResultBytes, true},
		"three bytes, torn":   {"yes € | tr -d '\\n' | head -c 400000", MaxResultBytes - 1, true},
		"four bytes, torn":    {"printf a; yes 🔔 | tr -d '\\n' | head -c 400000", MaxResultBytes - 3, true},
		"bytes, and a letter": {"printf 'a\\377'; yes é | tr -d '\\n' | head -c 400001", MaxResultBytes, false},
		"bytes alone":         {"yes | tr '\\ny' '\\200\\200' | head -c 400000", MaxResultBytes, false},
	} {
		got, err := newSet(t, nil).Call(t.Context(), shell(row.script), testCall())
		if err != nil || !got.Truncated || len(got.Body) != row.bytes || utf8.Valid(got.Body) != row.text {
			t.Errorf("%s: %d bytes, cut %t, text %t, %v; want %d bytes, text %t", name, len(got.Body), got.Truncated, utf8.Valid(got.Body), err, row.bytes, row.text)
		}
	}
	s := awsSet(t, func(context.Context, AWS, Call) (Result, error) {
		return Result{Body: []byte("a" + strings.Repeat("é", MaxResultBytes))}, nil
	}, "arn:aws:*:*:*:*")
	if got, err := s.Call(t.Context(), Spec{AWS: &AWS{ARN: reportARN}}, Call{}); err != nil || !utf8.Valid(got.Body) || len(got.Body) != MaxResultBytes-1 {
		t.Errorf("AWS: %d bytes, text %t, %v", len(got.Body), utf8.Valid(got.Body), err)
	}
}

// roll is a pipe that processes hold open as long as they live, whatever becomes of their standard streams.
type roll struct {
	path string
	read *os.File
}

func newRoll(t *testing.T) roll {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roll")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	return roll{path, read}
}

// wantNobody waits until nobody holds the pipe any more.
func (r roll) wantNobody(t *testing.T) {
	t.Helper()
	if err := r.read.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.read.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a process of the group lives on: %v", err)
	}
}

// wantNobodyLeft runs each script, has the call ended when it has said "ready", and wants a failure of a kind and nobody of it alive.
func wantNobodyLeft(t *testing.T, scripts map[string]string, end func(s *Set, timeout func()), kind string) {
	t.Helper()
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, log, living := newSet(t, nil), watch("ready"), newRoll(t)
			spec := shell(`exec 3>"$ROLL"; ` + script)
			spec.Exec.Env = Texts(map[string]string{"ROLL": living.path, "DIR": t.TempDir()})
			call := testCall()
			call.Log = log
			ctx, timeout := timedOut(t)
			go func() { <-log.seen; end(s, timeout) }()
			_, err := s.Call(ctx, spec, call)
			wantFailure(t, err, kind, false)
			living.wantNobody(t)
		})
	}
}

func runIntoTimeout(_ *Set, timeout func()) { timeout() }

func TestExecTimeoutKillsTheWholeGroup(t *testing.T) {
	wantNobodyLeft(t, map[string]string{
		"obedient":                      `sleep 60 & echo ready; wait`,
		"deaf to SIGTERM":               `trap "" TERM; sleep 60 & echo ready; wait`,
		"leader ends, child is deaf":    `(trap "" TERM; echo ready; exec sleep 60) & wait`,
		"child without the output pipe": `(trap "" TERM; echo ready; exec sleep 60 >/dev/null 2>&1) & wait`,
	}, runIntoTimeout, KindTimeout)
}

// What a process says at its end stands beside the timeout.
func TestExecsWordsStandBesideItsTimeout(t *testing.T) {
	s, log := newSet(t, func(c *Config) { c.Grace = 5 * time.Minute }), watch("ready")
	call := testCall()
	call.Log = log
	ctx, end := timedOut(t)
	go func() { <-log.seen; end() }()
	_, err := s.Call(ctx, shell(`trap 'echo at step 3 >&2; exit 0' TERM; echo ready; while :; do sleep 0.02; done`), call)
	if f := wantFailure(t, err, KindTimeout, false); !strings.HasPrefix(f.Message, "the attempt ran into its timeout: ") || !strings.HasSuffix(f.Message, "at step 3") {
		t.Errorf("got %q", f.Message)
	}
}

// wantGrace cancels a call when its script has said "ready", and wants the script to come to its last words.
func wantGrace(t *testing.T, script string) {
	t.Helper()
	s, log := newSet(t, func(c *Config) { c.Grace = 5 * time.Minute }), watch("ready")
	call := testCall()
	call.Log = log
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-log.seen; cancel() }()
	_, err := s.Call(ctx, shell(script), call)
	wantCancelled(t, err)
	if !strings.Contains(log.String(), "in order") {
		t.Errorf("the process was not asked before it was killed: %q", log.String())
	}
}

func TestExecHasAGraceToEndInOrder(t *testing.T) {
	wantGrace(t, `trap 'echo in order; exit 0' TERM; echo ready; while :; do sleep 0.02; done`)
}

// What goes on in the background may go on writing: a pipe that nobody reads would end it.
func TestExecGoesOnReadingWhatNobodyKeeps(t *testing.T) {
	finished := newRoll(t) // held by the background process until its end
	goOn := filepath.Join(t.TempDir(), "go-on")
	spec := shell(`exec 3>"$ROLL"; (while [ ! -e "$GO_ON" ]; do sleep 0.02; done; i=0; while [ $i -lt 5000 ]; do echo "line $i of what nobody keeps"; i=$((i+1)); done; echo done >&3) & echo started`)
	spec.Exec.Env = Texts(map[string]string{"ROLL": finished.path, "GO_ON": goOn})
	got, err := newSet(t, nil).Call(t.Context(), spec, testCall())
	if err != nil || string(got.Body) != "started\n" {
		t.Fatalf("got %q, %v", got.Body, err)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := finished.read.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(finished.read); err != nil || string(text) != "done\n" {
		t.Errorf("it wrote %q, %v; want it to come to its end", text, err)
	}
}

// The end of its time while others still hold the output of a process that has ended is none of its own end, and none of theirs.
func TestExecThatHasEndedIsNoTimeout(t *testing.T) {
	living := newRoll(t)
	spec := shell(`exec 3>"$ROLL"; (while [ ! -e "$GO_ON" ]; do sleep 0.02; done; echo done >&3) & echo started`)
	goOn := filepath.Join(t.TempDir(), "go-on")
	spec.Exec.Env = Texts(map[string]string{"ROLL": living.path, "GO_ON": goOn})
	log := watch("started")
	call := testCall()
	call.Log = log
	ctx, end := timedOut(t)
	go func() { <-log.seen; end() }()
	got, err := newSet(t, func(c *Config) { c.Grace = 5 * time.Minute }).Call(ctx, spec, call)
	// Where its time was over before it had ended, that is the verdict; there is no order between the two.
	var f *Failure
	if err != nil && !(errors.As(err, &f) && f.Kind == KindTimeout) || err == nil && string(got.Body) != "started\n" {
		t.Fatalf("got %q, %v", got.Body, err)
	}
	if err != nil {
		return
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := living.read.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(living.read); err != nil || string(text) != "done\n" {
		t.Errorf("what goes on in the background wrote %q, %v", text, err)
	}
}

func TestExecIsNotHeldByWhatHoldsItsPipe(t *testing.T) {
	log := watch("started")
	call := testCall()
	call.Log = log
	got, err := newSet(t, nil).Call(t.Context(), shell(`sleep 60 & echo $!; echo started`), call)
	if err != nil || !strings.Contains(string(got.Body), "started") {
		t.Fatalf("got %q, %v; want success: the process itself ended well", got.Body, err)
	}
	first, _, _ := strings.Cut(string(got.Body), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the background process did not live on: %v", err)
	}
	if !strings.Contains(log.String(), "holds its output") {
		t.Errorf("the log does not say why the output may be short: %q", log.String())
	}
}

// A start from a disk that does not answer lasts as long as that. Others wait for it no longer than they have time.
func TestExecWaitsForAnotherStartAsLongAsItHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(t, nil)
		s.starting <- struct{}{} // and nobody gives it back
		late, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := s.Call(late, shell("true"), testCall())
		wantFailure(t, err, KindStart, false)

		cancelled, stop := context.WithCancelCause(t.Context())
		why := errors.New("somebody asked for it")
		time.AfterFunc(time.Hour, func() { stop(why) })
		if _, err = s.Call(cancelled, shell("true"), testCall()); !errors.Is(err, why) {
			t.Errorf("got %v, want the cancellation", err)
		}

		<-s.starting
		if _, err = s.Call(t.Context(), shell("true"), testCall()); err != nil || len(s.starting) != 0 {
			t.Errorf("got %v and %d starts under way, want a process that ran", err, len(s.starting))
		}
	})
}
