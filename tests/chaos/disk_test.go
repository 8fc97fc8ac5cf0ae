package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// mounts tells whether this host lets a test mount a file system of its own.
func mounts() bool { return runtime.GOOS == "linux" && os.Geteuid() == 0 }

// mount makes a file system in memory. Options are mount's.
func mount(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	command(t, "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir)
	t.Cleanup(func() { command(t, "umount", dir) })
	return dir
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// The disk fills up under load. The server ends, loudly; what it had acknowledged is there when it starts again with room, and
// nothing is acknowledged without room.
//
// Two real ways to have too little room: a file system of 6 MB, which takes root on Linux, as CI has; and the system's limit
// on the size of a file, which every user of every Unix has, and which stops the log in the same way.
func TestP1_Fault49_disk_full(t *testing.T) {
	t.Parallel()
	t.Run("a file may not grow", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "data")
		log := process.Log(t)
		limited := exec.Command("sh", "-c", `ulimit -f 2000 && exec "$@"`, "sh", binary, "dev", "--output", "json", "--data", data, "--listen", process.AnyPort)
		s, err := process.Start(limited, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		if err := s.Ready(); err != nil {
			t.Fatal(err)
		}
		taken := fill(t, s, log)
		stillThere(t, data, taken)
	})
	if !mounts() {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI must have the right to mount a small file system: root on Linux")
		}
		t.Log("no right to mount a small file system: only the limit on a file's size was tried")
		return
	}
	t.Run("no space left", func(t *testing.T) {
		folder := mount(t, "size=6m")
		data, log := filepath.Join(folder, "data"), process.Log(t)
		taken := fill(t, serve(t, data, log), log)

		// Started again without room, it refuses to, or ends at the first thing it is asked to keep.
		again := process.Log(t)
		s, err := launch(data, again)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		if s.Ready() == nil {
			fill(t, s, again)
		} else {
			refusedLoudly(t, s, again, data)
		}

		command(t, "mount", "-o", "remount,size=64m", folder)
		stillThere(t, data, taken)
	})
}

// accepted is what was answered with success.
type accepted struct {
	mu   sync.Mutex
	jobs map[string]string // description, by name
	runs []string
}

// fill asks the server to keep more and more until it ends, and gives what it took.
func fill(t *testing.T, s *process.Process, log *os.File) *accepted {
	t.Helper()
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	taken := &accepted{jobs: map[string]string{}}
	bulk, err := json.Marshal(strings.Repeat("x", 8000))
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for who := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-s.Exited:
					return
				case <-t.Context().Done():
					return
				default:
				}
				name := fmt.Sprintf("job-%d-%d", who, n)
				def := wire.Job{Definition: job.Definition{Description: fmt.Sprint(n), Payload: bulk, Paused: true,
					Target: target.Spec{HTTP: &target.HTTP{URL: "http://127.0.0.1:9/"}}}}
				if _, err := server.PutJob(t.Context(), name, def, client.Condition{}); err != nil {
					continue
				}
				taken.mu.Lock()
				taken.jobs[name] = def.Description
				taken.mu.Unlock()
				r, err := server.Trigger(t.Context(), name, wire.Trigger{Payload: bulk}, name) // its payload is a file of its own
				if err == nil {
					taken.mu.Lock()
					taken.runs = append(taken.runs, r.ID)
					taken.mu.Unlock()
				}
			}
		})
	}
	code, err := s.Code()
	s.Kill()
	clients.Wait()
	if err != nil {
		t.Fatalf("the disk is full: %v", err)
	}
	said := process.Said(t, log)
	if code != 1 || !strings.Contains(said, "belfry: the disk failed") {
		t.Errorf("the disk is full: exit code %d, want 1 and a line that says so; it said:\n%.2000s", code, said)
	}
	return taken
}

func stillThere(t *testing.T, data string, taken *accepted) {
	t.Helper()
	s := serve(t, data, process.Log(t))
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for j, err := range server.Jobs(t.Context(), client.JobFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[j.Name] = j.Description
	}
	for name, description := range taken.jobs {
		if was, ok := found[name]; !ok || was != description {
			t.Errorf("job %s was accepted and is not there as it was", name)
		}
	}
	for _, id := range taken.runs {
		if _, err := server.Run(t.Context(), id); err != nil {
			t.Errorf("run %s was accepted: %v", id, err)
		}
	}
	if len(taken.jobs) < 10 || len(taken.runs) < 10 {
		t.Errorf("only %d jobs and %d runs fitted: too few to mean something", len(taken.jobs), len(taken.runs))
	}
	// It works again, too.
	h := newHeld(t)
	ids, calls := start(t, server, h, job.DefaultQueue)
	for _, c := range calls {
		c.letGo()
	}
	for _, id := range ids {
		if r := ended(t, server, id); r.State != "succeeded" {
			t.Errorf("with room again, %s is %s", id, r.State)
		}
	}
	s.Kill()
}

// refusedLoudly wants one line that names what is wrong, on stderr, and exit code 1.
func refusedLoudly(t *testing.T, s *process.Process, log *os.File, names string) {
	t.Helper()
	code, err := s.Code()
	if err != nil {
		t.Fatal(err)
	}
	said := strings.TrimSpace(process.Said(t, log))
	last := said[strings.LastIndex(said, "\n")+1:]
	if code != 1 || !strings.HasPrefix(last, "belfry: ") || !strings.Contains(last, names) {
		t.Errorf("exit code %d, want 1 and a line on %s; it said:\n%s", code, names, said)
	}
	select {
	case <-s.Greeted:
		t.Error("it said that it was ready")
	default:
	}
}

// A start that cannot write its folder ends at once, with one line. (Folders and ports in use are cmd/belfry's tests.)
func TestFault49_refused_at_the_start(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, data, names string) {
		t.Helper()
		log := process.Log(t)
		s, err := launch(data, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		refusedLoudly(t, s, log, names)
		if said := strings.TrimSpace(process.Said(t, log)); strings.Contains(said, "\n") {
			t.Errorf("want one line, it said:\n%s", said)
		}
	}
	t.Run("a folder below a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, filepath.Join(file, "data"), file)
	})
	// Root may write into every folder; only a file system that is read-only stops it, and only Linux lets a test have one.
	t.Run("a folder that cannot be written", func(t *testing.T) {
		var folder string
		if mounts() {
			folder = mount(t, "ro")
		} else {
			folder = t.TempDir()
			if err := os.Chmod(folder, 0o500); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, filepath.Join(folder, "data"), folder)
	})
}
