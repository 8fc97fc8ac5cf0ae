//go:build emulators

package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/process"
)

func ended(state string) bool {
	switch state {
	case "succeeded", "failed", "cancelled", "skipped", "dead", "unknown":
		return true
	}
	return false
}

// waitFor asks for a run until it has ended.
func waitFor(t *testing.T, server *client.Client, id string) wire.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	for every := time.NewTicker(200 * time.Millisecond); ; {
		r, err := server.Run(ctx, id)
		if err == nil && ended(r.State) {
			every.Stop()
			return r
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			t.Fatalf("%s is %s after %s, %v", id, r.State, process.Patience, err)
		}
	}
}

// TestP4_P5_P6_P10_AWorkerIsKilledAmongItsRuns has a server that works on default, and two workers for gpu without a server between.
// One of them is killed in the middle of its runs: these are run again, but for those at most once, which nobody knows the end of.
// Callers show tokens that were made in the table, and the workers find Belfry's own secrets there.
func TestP4_P5_P6_P10_AWorkerIsKilledAmongItsRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "killed", "gpu")
	h.env = append(h.env, "BELFRY_LEASE=4s", "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s", "BELFRY_SECRETS_KEY_FILE="+filepath.Join(h.folder, "keys"))
	h.run("secret", "new-key", filepath.Join(h.folder, "keys"))
	var made struct{ Token string }
	token := h.run("token", "create", "--scope", "admin", "--store", "dynamodb://killed-table", "-o", "json")
	if err := json.Unmarshal([]byte(token), &made); err != nil || made.Token == "" {
		t.Fatalf("%v in %s", err, token)
	}

	seen := newCalls()
	hold := make(chan struct{}) // those of the worker that is killed never come back
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "s3cret" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		first := r.Header.Get("Belfry-Attempt") == "1"
		seen.note(r.Header.Get("Belfry-Run"), r.Header.Get("Belfry-Attempt"))
		if first && r.URL.Path == "/held" {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"attempt":%q}`, r.Header.Get("Belfry-Attempt"))
	}))
	defer hook.Close()
	defer close(hold)

	serve := h.start("serve", "--queue", "gpu=1h", "--work", "default", "--allow-loopback", "--auth", "required")
	doomed := h.start("worker", "--queue", "gpu", "--allow-loopback", "--name", "doomed")
	server := serve.client(made.Token)
	if _, err := serve.client("").Queues(t.Context()); err == nil {
		t.Error("a caller without a token was let in")
	}
	if _, _, err := server.PutSecret(t.Context(), "hook-token", "s3cret"); err != nil {
		t.Fatal(err)
	}
	secret := "hook-token"
	def := func(path, queue string, g job.Guarantee) wire.Job {
		var d job.Definition
		d.Target.HTTP = &target.HTTP{URL: hook.URL + path, Headers: map[string]target.Value{"Authorization": {Secret: secret}}}
		d.Queue, d.Guarantee, d.Timeout = queue, g, schedule.Duration(time.Minute)
		return wire.Job{Definition: d}
	}
	for name, j := range map[string]wire.Job{"here": def("/", "default", job.AtLeastOnce), "held": def("/held", "gpu", job.AtLeastOnce), "once": def("/held", "gpu", job.AtMostOnce)} {
		if _, err := server.PutJob(t.Context(), name, j, client.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	overlong := def("/", "gpu", job.AtLeastOnce)
	overlong.Timeout = schedule.Duration(2 * time.Hour)
	if _, err := server.PutJob(t.Context(), "overlong", overlong, client.Condition{}); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a timeout that gpu cannot run: %v", err)
	}
	if _, err := server.PutJob(t.Context(), "nowhere", def("/", "mail", job.AtLeastOnce), client.Condition{}); err == nil || !strings.Contains(err.Error(), "queue") {
		t.Errorf("a queue that is not there: %v", err)
	}
	var held, once, here []string
	ask := func(name string, n int, into *[]string) {
		for range n {
			r, err := server.Trigger(t.Context(), name, wire.Trigger{}, "")
			if err != nil {
				t.Fatal(err)
			}
			*into = append(*into, r.ID)
		}
	}
	ask("held", 6, &held)
	ask("once", 3, &once)
	seen.wait(t, 9)
	doomed.Kill()
	saviour := h.start("worker", "--queue", "gpu", "--allow-loopback", "--name", "saviour")
	ask("here", 5, &here)
	for _, id := range here {
		if r := waitFor(t, server, id); r.State != "succeeded" || r.Attempt != 1 {
			t.Errorf("%s is %s after %d attempts", id, r.State, r.Attempt)
		}
	}
	for _, id := range held {
		r := waitFor(t, server, id)
		if r.State != "succeeded" || r.Attempt != 2 || r.Attempts[0].Outcome != "crashed" {
			t.Errorf("%s is %s: %+v", id, r.State, r.Attempts)
		}
		if string(r.Result) != `{"attempt":"2"}` {
			t.Errorf("the result of %s is %s", id, r.Result)
		}
	}
	for _, id := range once {
		if r := waitFor(t, server, id); r.State != "unknown" || len(seen.seen[id]) != 1 {
			t.Errorf("%s is %s, called %d times", id, r.State, len(seen.seen[id]))
		}
	}
	saviour.stop()
	serve.stop()
}

// TestP2_P4_TicksOfTwoProcessesShareTheShards has two processes that only tick, one that only serves and one that only works. A ticker
// is killed, and another one started: each fire has one run, which was called once, and not before its time.
func TestP2_P4_TicksOfTwoProcessesShareTheShards(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "ticked")
	h.env = append(h.env, "BELFRY_LOOK_AHEAD=30s", "BELFRY_TICK_EVERY=1s")
	seen := newCalls()
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen.note(r.Header.Get("Belfry-Run"), r.Header.Get("Belfry-Attempt"))
	}))
	defer hook.Close()
	one := h.start("tick")
	server := h.start("serve", "--no-ticks", "--no-work").client("")
	h.start("worker", "--queue", "default", "--allow-loopback")
	const jobs = 20
	for n := range jobs {
		var d job.Definition
		d.Schedule = &schedule.Spec{Every: schedule.Duration(2 * time.Second)}
		d.Target.HTTP = &target.HTTP{URL: hook.URL}
		if _, err := server.PutJob(t.Context(), fmt.Sprint("job-", n), wire.Job{Definition: d}, client.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now().Add(2 * time.Second)
	two := h.start("tick")
	seen.wait(t, 4*jobs)
	one.Kill()
	seen.wait(t, 8*jobs)
	three := h.start("tick")
	seen.wait(t, 23*jobs) // beyond what the killed one had claimed
	until := time.Now().Add(-3 * time.Second)
	for n := range jobs {
		runs := map[time.Time]wire.Run{}
		for r, err := range server.Runs(t.Context(), client.RunFilter{Job: fmt.Sprint("job-", n), From: begun, To: until}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := runs[r.NominalTime]; twice {
				t.Errorf("job-%d has two runs for %s", n, r.NominalTime)
			}
			runs[r.NominalTime] = r
		}
		fires := 0
		for at := begun.Truncate(2 * time.Second).Add(2 * time.Second); at.Before(until); at = at.Add(2 * time.Second) {
			r, ok := runs[at.UTC()]
			fires++
			if late := r.StartedAt.Sub(at); !ok || r.State != "succeeded" || r.Attempt != 1 || late < 0 {
				t.Errorf("job-%d at %s: %v, %s after %d attempts, %s late", n, at, ok, r.State, r.Attempt, late)
			}
		}
		if fires < 17 {
			t.Errorf("only %d fires of job-%d were looked at", fires, n)
		}
	}
	if t.Failed() {
		for n := range 16 {
			t.Log(h.run("store", "show", "--store", "dynamodb://ticked-table", fmt.Sprintf("shard#%02d/", n)))
		}
	}
	seen.mu.Lock()
	for id, attempts := range seen.seen {
		if len(attempts) != 1 {
			t.Errorf("%s was called %d times", id, len(attempts))
		}
	}
	seen.mu.Unlock()
	if out := h.run("tick", "--once"); !strings.Contains(out, "shard") {
		t.Errorf("a tick at the side says %s", out)
	}
	two.stop()
	three.stop()
}
