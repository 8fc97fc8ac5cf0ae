package chaos

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// held is a target whose calls wait until the test lets them go.
type held struct {
	*httptest.Server
	arrived chan *heldCall
	end     chan struct{}
	mu      sync.Mutex
	calls   []*heldCall
}

type heldCall struct {
	run     string
	attempt int
	fence   uint64
	letGo   func() // answers with success, and with the call's fence
}

func newHeld(t *testing.T) *held {
	h := &held{arrived: make(chan *heldCall, 100), end: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt, err1 := strconv.Atoi(r.Header.Get("Belfry-Attempt"))
		fence, err2 := strconv.ParseUint(r.Header.Get("Belfry-Fence"), 10, 64)
		if err1 != nil || err2 != nil {
			t.Errorf("a call that Belfry would not make: %v", r.Header)
			return
		}
		free := make(chan struct{})
		c := &heldCall{run: r.Header.Get("Belfry-Run"), attempt: attempt, fence: fence, letGo: sync.OnceFunc(func() { close(free) })}
		h.mu.Lock()
		h.calls = append(h.calls, c)
		h.mu.Unlock()
		h.arrived <- c
		select {
		case <-free:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(load.Answer{Fence: fence})
		case <-h.end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(h.end)
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// next gives the next call.
func (h *held) next(t *testing.T) *heldCall {
	t.Helper()
	select {
	case c := <-h.arrived:
		return c
	case <-time.After(process.Patience):
		t.Fatalf("nothing was called within %s", process.Patience)
		return nil
	}
}

// of gives all calls of a run.
func (h *held) of(run string) []*heldCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.calls), func(c *heldCall) bool { return c.run != run })
}

const (
	least = "at-least-once"
	most  = "at-most-once"
)

// start makes a job of each guarantee and asks for a run of both, in a queue: ids are those of the runs, by job. It returns when the target
// has both calls, which it gives by job too.
func start(t *testing.T, server *client.Client, h *held, queue string) (ids map[string]string, calls map[string]*heldCall) {
	t.Helper()
	ids, calls = map[string]string{}, map[string]*heldCall{}
	names := map[string]string{}
	for name, guarantee := range map[string]job.Guarantee{least: job.AtLeastOnce, most: job.AtMostOnce} {
		def := wire.Job{Definition: job.Definition{Guarantee: guarantee, Queue: queue, Target: target.Spec{HTTP: &target.HTTP{URL: h.URL}}}}
		if _, err := server.PutJob(t.Context(), name, def, client.Condition{}); err != nil {
			t.Fatal(err)
		}
		r, err := server.Trigger(t.Context(), name, wire.Trigger{}, name)
		if err != nil {
			t.Fatal(err)
		}
		ids[name], names[r.ID] = r.ID, name
	}
	for range ids {
		c := h.next(t)
		calls[names[c.run]] = c
	}
	return ids, calls
}

func ended(t *testing.T, server *client.Client, id string) wire.Run {
	t.Helper()
	var r wire.Run
	process.Eventually(t, "the end of "+id, func() (bool, error) {
		var err error
		r, err = server.Run(t.Context(), id)
		return err == nil && !r.EndedAt.IsZero(), err
	})
	return r
}

// The whole process is stopped (SIGSTOP) for longer than its leases while targets work, the targets answer meanwhile, and it
// is woken (SIGCONT). Ticks, queue and worker share the process, so what decides on waking is a race between the attempt, which
// finds the answer, and those who find its lease over; either may win, once. A worker that is stopped alone, with another
// beside it, is in worker_test.go.
func TestP5_P6_P7_Fault3_the_whole_process_stopped_past_its_leases(t *testing.T) {
	t.Parallel()
	h, log := newHeld(t), process.Log(t)
	const lease = 2 * time.Second
	s := serve(t, t.TempDir(), log, "--lease", lease.String())
	server, err := clientOf(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	ids, calls := start(t, server, h, job.DefaultQueue)
	if err := s.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(lease + lease/2) // nothing signals that a lease is over: it is time that ends it
	for _, c := range calls {
		c.letGo()
	}
	if err := s.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	go func() { // what is started anew is answered at once
		for {
			select {
			case c := <-h.arrived:
				c.letGo()
			case <-h.end:
				return
			}
		}
	}()

	once := ended(t, server, ids[most])
	if n := len(h.of(once.ID)); n != 1 || once.Attempt != 1 || once.State != "succeeded" && once.State != "unknown" {
		t.Errorf("at most once: %s after %d calls: %+v", once.State, n, once)
	}
	again := ended(t, server, ids[least])
	made := h.of(again.ID)
	last := made[len(made)-1]
	if again.State != "succeeded" || load.FenceIn(again.Result) != again.Fence || last.fence != again.Fence || again.Attempt != len(made) {
		t.Errorf("at least once: %s under fence %d with the result of fence %d after %d calls, the last under fence %d: %+v",
			again.State, again.Fence, load.FenceIn(again.Result), len(made), last.fence, again)
	}
	// Nothing that was still under way changes an end.
	<-time.After(lease)
	for _, was := range []wire.Run{once, again} {
		is, err := server.Run(t.Context(), was.ID)
		if err != nil || is.State != was.State || is.Fence != was.Fence || !is.EndedAt.Equal(was.EndedAt) {
			t.Errorf("ended as %+v, is %+v (%v)", was, is, err)
		}
	}
}
