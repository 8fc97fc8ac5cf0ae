package chaos

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// A host that lets the server open few files has room for a part of the runs at a time. No run loses an attempt by it, each is called once,
// and server and store go on.
func TestP1_P5_a_host_short_of_files(t *testing.T) {
	t.Parallel()
	const files, runs = 48, 25
	for _, kind := range []string{"commands", "requests"} {
		for _, guarantee := range []job.Guarantee{job.AtLeastOnce, job.AtMostOnce} {
			t.Run(fmt.Sprint(kind, ", ", guarantee), func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int64
				slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					select {
					case <-time.After(2 * time.Second): // long enough that others meet it
					case <-r.Context().Done():
					}
				}))
				t.Cleanup(slow.Close)
				data, log, dir := filepath.Join(t.TempDir(), "data"), process.Log(t), t.TempDir()
				spec := target.Spec{HTTP: &target.HTTP{URL: slow.URL}}
				if kind == "commands" {
					spec = target.Spec{Exec: &target.Exec{Argv: []string{"sh", "-c", `echo "$BELFRY_RUN" >>ran; exec sleep 2`}, Dir: dir}}
				}
				limited := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, files), "sh",
					binary, "dev", "--output", "json", "--data", data, "--listen", process.AnyPort, "--allow-exec")
				s := process.Run(t, limited, log)
				server, err := clientOf(s.Address)
				if err != nil {
					t.Fatal(err)
				}
				def := wire.Job{Definition: job.Definition{Guarantee: guarantee, Target: spec}}
				def.Retry.MaxAttempts = 1 // none to spare
				if _, err := server.PutJob(t.Context(), "busy", def, client.Condition{}); err != nil {
					t.Fatal(err)
				}
				var ids []string
				for n := range runs {
					r, err := server.Trigger(t.Context(), "busy", wire.Trigger{}, fmt.Sprint(n))
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, r.ID)
				}
				for _, id := range ids {
					if r := ended(t, server, id); r.State != "succeeded" || r.Attempt != 1 {
						t.Errorf("%s is %s after %d attempts (%+v): want it to have succeeded in its first", id, r.State, r.Attempt, r.Attempts)
					}
				}
				if spec.Exec != nil {
					if ran := ranIn(t, dir); ran != runs {
						t.Errorf("%d commands ran: want %d", ran, runs)
					}
				} else if n := asked.Load(); n != runs {
					t.Errorf("%d requests: want %d", n, runs)
				}
				said := process.Said(t, log)
				if n := strings.Count(said, "calls cannot begin"); n < 1 || n > 5 || !strings.Contains(said, "ulimit -n") {
					t.Errorf("the log says %d times that the host is short: want it once a minute, and what to raise", n)
				}
				s.Stop(t)
			})
		}
	}
}

// ranIn counts the lines that commands have left in a folder.
func ranIn(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}
