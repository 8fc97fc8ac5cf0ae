package graphs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow/reference"
)

// Target is what the steps of some graphs call. It ends each as the graph says, and notes what may not be.
type Target struct {
	*httptest.Server
	mu    sync.Mutex
	parts map[string]map[string]part    // by job and path
	steps map[string]map[string]*played // by run and path
	wrong []string
	calls int
	busy  int           // calls that go on
	moved chan struct{} // closed, and made anew, as each call begins and ends
}

// part is what a step has to do.
type part struct {
	reference.Step
	behind []string // paths
	takes  time.Duration
}

// played is what a step of a run has done.
type played struct {
	fence    uint64   // of the newest call
	answered bool     // as it ends
	failed   int      // answers that tell to try again
	early    []string // paths that were to end before it, and were not answered to the end
}

// NewTarget starts one on loopback, for a test.
func NewTarget(t testing.TB, all []Graph) *Target {
	u := &Target{parts: map[string]map[string]part{}, steps: map[string]map[string]*played{}, moved: make(chan struct{})}
	for _, g := range all {
		u.parts[g.Name] = map[string]part{}
		g.tasks(func(path string, s reference.Step, behind []string) {
			u.parts[g.Name][path] = part{s, behind, time.Duration(5+draw(g.Name+path, 30)) * time.Millisecond}
		})
	}
	u.Server = httptest.NewServer(u)
	t.Cleanup(func() {
		u.CloseClientConnections()
		u.Close()
	})
	return u
}

// move is called under mu.
func (u *Target) move() {
	close(u.moved)
	u.moved = make(chan struct{})
}

func (u *Target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, id := r.Header.Get("Belfry-Job"), r.Header.Get("Belfry-Run")
	body, err := io.ReadAll(r.Body)
	fence, bad := strconv.ParseUint(r.Header.Get("Belfry-Fence"), 10, 64)
	of, path, _ := strings.Cut(id, "/")
	u.mu.Lock()
	p, known := u.parts[name][path]
	if err != nil || bad != nil || !known || string(body) != payload {
		u.wrong = append(u.wrong, fmt.Sprintf("a call of job %q, run %q, with %q: %v %v", name, id, body, err, bad))
		u.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s, begun := u.begin(of, path, p, fence)
	u.mu.Unlock()
	if !begun {
		w.WriteHeader(http.StatusConflict)
		return
	}
	works := time.NewTimer(p.takes)
	defer works.Stop()
	select {
	case <-works.C:
	case <-r.Context().Done():
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy--
	u.move()
	if r.Context().Err() == nil {
		s.answer(w, path, p)
	}
}

// begin notes a call, and tells whether it may go on: one under an older fence than the step has been called under may not.
func (u *Target) begin(of, path string, p part, fence uint64) (*played, bool) {
	if u.steps[of] == nil {
		u.steps[of] = map[string]*played{}
	}
	s := u.steps[of][path]
	if s == nil {
		s = &played{}
		u.steps[of][path] = s
		for _, before := range p.behind {
			if b := u.steps[of][before]; b == nil || !b.answered {
				s.early = append(s.early, before)
			}
		}
	} else if strings.HasSuffix(p.Name, once) {
		u.wrong = append(u.wrong, fmt.Sprintf("W13: step %s of %s was called twice, under fences %d and %d", path, of, s.fence, fence))
	}
	switch {
	case fence < s.fence:
		return s, false // of a process that is gone
	case fence == s.fence:
		u.wrong = append(u.wrong, fmt.Sprintf("W1: step %s of %s was called twice under fence %d", path, of, fence))
	}
	s.fence = fence
	u.calls++
	u.busy++
	u.move()
	return s, true
}

func (s *played) answer(w http.ResponseWriter, path string, p part) {
	again := strings.HasSuffix(p.Name, flaky) && s.failed == 0 || p.End == bad && draw(path, 2) == 0
	switch {
	case again:
		s.failed++
		s.answered = p.End == bad && s.failed > 1
		w.WriteHeader(http.StatusServiceUnavailable)
	case p.End == bad:
		s.answered = true
		w.WriteHeader(http.StatusBadRequest)
	default:
		s.answered = true
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"did":%q}`, path)
	}
}

// Rest waits until no call goes on: those of a process that is gone end soon after it. It gives how many there were when it was asked.
func (u *Target) Rest(ctx context.Context) (busy int, err error) {
	u.mu.Lock()
	busy = u.busy
	u.mu.Unlock()
	for {
		u.mu.Lock()
		left, moved := u.busy, u.moved
		u.mu.Unlock()
		if left == 0 {
			return busy, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return busy, ctx.Err()
		}
	}
}

// Calls is how many calls there were.
func (u *Target) Calls() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls
}

// Early gives which steps of a run that came out so began too early. Steps that were lost may have ended without an answer, and those that never ran
// have none.
func (u *Target) Early(id string, o Outcome) (wrong []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for path, s := range u.steps[id] {
		for _, before := range s.early {
			if !slices.Contains(o.Lost, before) && !slices.Contains([]string{"skipped", "upstream_failed"}, o.Steps[before].State) {
				wrong = append(wrong, fmt.Sprintf("W2: step %s of %s began before %s had ended", path, id, before))
			}
		}
	}
	return wrong
}

// Wrong gives what may not have been.
func (u *Target) Wrong() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.wrong)
}
