package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// inLine are the jobs of runs that wait for each other.
var inLine = map[string]job.Definition{
	"one":   {Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: 1}, Retry: patient},
	"three": {Overlap: job.Overlap{Policy: job.OverlapAllow, Limit: 3}, Retry: patient},
	"once":  {Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: 2}, Guarantee: job.AtMostOnce},
	fires:   {Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: 1}, Retry: patient, Schedule: &schedule.Spec{Every: schedule.Duration(time.Second)}},
}

var patient = job.Retry{MaxAttempts: 100, Initial: schedule.Duration(20 * time.Millisecond), Max: schedule.Duration(100 * time.Millisecond)}

const (
	fires      = "fires" // of a schedule; runs of the others are asked for
	waitInLine = 12      // runs of a job that wait at about the same time
)

// turns is the target of these jobs. It counts the runs of each whose calls go on, and fails those that are one too many.
type turns struct {
	*httptest.Server
	mu     sync.Mutex
	inside map[string]map[string]int // calls that go on, by job and run
	most   map[string]int            // runs at once, by job
	begun  map[string]map[string]bool
	asked  map[string]int // answered requests, by job
	lost   map[string]int // runs that may have lost their only attempt, by job
	moved  chan struct{}  // closed, and made anew, with each change
	wrong  []string
}

func newTurns(t *testing.T) *turns {
	u := &turns{inside: map[string]map[string]int{}, most: map[string]int{}, begun: map[string]map[string]bool{}, asked: map[string]int{},
		lost: map[string]int{}, moved: make(chan struct{})}
	for name := range inLine {
		u.inside[name], u.begun[name] = map[string]int{}, map[string]bool{}
	}
	u.Server = httptest.NewServer(u)
	t.Cleanup(func() {
		u.CloseClientConnections()
		u.Close()
	})
	return u
}

// change changes what is counted.
func (u *turns) change(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f()
	close(u.moved)
	u.moved = make(chan struct{})
}

func (u *turns) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, id := r.Header.Get("Belfry-Job"), r.Header.Get("Belfry-Run")
	var first bool
	var n int
	u.change(func() {
		first, n = !u.begun[name][id], len(u.begun[name])
		u.begun[name][id] = true
		u.inside[name][id]++
		u.most[name] = max(u.most[name], len(u.inside[name]))
		if len(u.inside[name]) > inLine[name].Overlap.Limit {
			u.wrong = append(u.wrong, fmt.Sprintf("%s began while as many were in progress as are allowed: %v", id, u.inside[name]))
		}
	})
	works := time.NewTimer(time.Duration(10+n%30) * time.Millisecond)
	defer works.Stop()
	if name == fires {
		works.Reset(400 * time.Millisecond)
	}
	select {
	case <-works.C:
	case <-r.Context().Done():
	}
	u.change(func() {
		if u.inside[name][id]--; u.inside[name][id] == 0 {
			delete(u.inside[name], id)
		}
	})
	if first && n%5 == 0 && name == "three" { // it keeps its place until its next attempt
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// until waits until what is asked for holds of what is counted.
func (u *turns) until(ctx context.Context, holds func() bool) error {
	for {
		u.mu.Lock()
		ok, moved := holds(), u.moved
		u.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waiting is how many runs of a job that were asked for have not begun.
func (u *turns) waiting(name string) int { return u.asked[name] - u.lost[name] - len(u.begun[name]) }

// killed notes that the server was killed, waits until its calls have ended, and tells whether runs waited at that time.
func (u *turns) killed(t *testing.T) (waited bool) {
	t.Helper()
	u.change(func() {
		waited = u.waiting("one") > inLine["one"].Overlap.Limit
		u.lost["once"] += inLine["once"].Overlap.Limit // started, and never called
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	if err := u.until(ctx, func() bool {
		for name := range inLine {
			if len(u.inside[name]) > 0 {
				return false
			}
		}
		return true
	}); err != nil {
		t.Fatal("calls of a server that is gone go on")
	}
	return waited
}

// asker asks for runs of a job, so that some always wait. It sends again whatever was not answered.
type asker struct {
	*turns
	server *client.Client
	ids    []string
	cancel map[string]bool // those that it has cancelled, or tried to
}

// ask asks until asking ends, and goes on with what it has begun until ctx does.
func (a *asker) ask(ctx, asking context.Context, name string) {
	for n := 0; a.until(asking, func() bool { return a.waiting(name) < waitInLine }) == nil; n++ {
		r, err := process.Answered(ctx, func() (wire.Run, error) { return a.server.Trigger(ctx, name, wire.Trigger{}, fmt.Sprint(name, n)) })
		if err != nil {
			a.change(func() { a.wrong = append(a.wrong, fmt.Sprintf("request %d for %s: %v", n, name, err)) })
			return
		}
		a.ids = append(a.ids, r.ID)
		a.change(func() { a.asked[name]++ })
		if n%7 != 6 {
			continue
		}
		a.cancel[r.ID] = true // it waits, most likely
		if _, err := process.Answered(ctx, func() (wire.Run, error) { return a.server.Cancel(ctx, r.ID, "not needed") }); err == nil {
			a.change(func() { a.begun[name][r.ID] = true })
		}
	}
}

// The real binary is killed with kill -9, at random moments and before and after each write of a gate, while runs of jobs with a limit wait in line.
// The target itself sees no more of them at once than the limit says. In the end each has had its turn: who is
// forgotten would wait for its check, 16 minutes later, and this test waits for a part of that.
func TestG1_G2_G10_Fault11_Fault36_killed_while_runs_wait_in_line(t *testing.T) {
	t.Parallel()
	all := points.Gates()
	random := max(15, int(process.Number(t, "BELFRY_KILLS", 0))/20)
	if testing.Short() {
		random = 2
	}
	seed := seedOf(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random)*time.Minute+20*time.Minute)
	defer cancel()
	data, log, doors, told := t.TempDir(), process.Log(t), load.NewGate(), filepath.Join(t.TempDir(), "died")
	u := newTurns(t)
	server, err := process.Client("http://127.0.0.1", "", &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, doors.At())
	}})
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, def job.Definition) {
		t.Helper()
		def.Target = target.Spec{HTTP: &target.HTTP{URL: u.URL}}
		if _, err := server.PutJob(t.Context(), name, wire.Job{Definition: def}, client.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	askers := map[string]*asker{}
	asking, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	t.Cleanup(busy.Wait)
	t.Cleanup(cancel)

	rng := rand.New(rand.NewPCG(seed, 1<<35))
	hits, kills, inLineThen := map[string]int{}, 0, 0
	for ; kills < 2*random || len(hits) < len(all); kills++ {
		atPoint := kills%2 == 1 || kills >= 2*random
		cmd := dev(mortal, data, "--lease", "2s", "--log-level", "warn")
		if atPoint {
			cmd.Env = append(os.Environ(), points.Variable+"="+strings.Join(scarcest(all, hits, rng, false), ","), points.Died+"="+told)
		}
		s, err := process.Start(cmd, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		if err := s.Ready(); err == nil {
			doors.Up(s.HostPort())
		} else if !atPoint || !s.Killed() {
			t.Fatal(err)
		}
		if kills == 0 {
			for name, def := range inLine {
				put(name, def)
				if name != fires {
					a := &asker{turns: u, server: server, cancel: map[string]bool{}}
					askers[name] = a
					busy.Go(func() { a.ask(ctx, asking, name) })
				}
			}
		}
		var lives <-chan time.Time
		if !atPoint {
			lives = time.After(time.Duration(300+rng.IntN(700)) * time.Millisecond)
		}
		select {
		case <-lives:
			killed.add("dev, runs in line", "at work")
		case <-s.Exited:
			point, err := os.ReadFile(told)
			if err != nil || !s.Killed() {
				t.Fatalf("start %d ended by itself: %s", kills+1, s.Cmd.ProcessState)
			}
			hits[string(point)]++
			killed.add("dev, runs in line", string(point))
			if err := os.Remove(told); err != nil {
				t.Fatal(err)
			}
		case <-time.After(process.Patience):
			t.Fatalf("start %d came to none of the points", kills+1)
		}
		doors.Down()
		s.Kill()
		if u.killed(t) {
			inLineThen++
		}
	}
	took := time.Since(began)
	doors.Up(serve(t, data, log, "--lease", "2s", "--log-level", "warn").HostPort())
	stop()
	busy.Wait()

	def := inLine[fires]
	def.Schedule = nil
	put(fires, def)
	for name, a := range askers {
		for _, id := range a.ids {
			ended(t, server, id)
		}
		r, err := server.Trigger(t.Context(), name, wire.Trigger{}, name+"-last")
		if err != nil {
			t.Fatal(err)
		}
		a.ids = append(a.ids, r.ID)
		if ended(t, server, r.ID).State != "succeeded" {
			t.Errorf("%s is %s, the last of its job", r.ID, r.State)
		}
	}
	states := map[string]int{}
	for name := range inLine {
		found := map[string]bool{}
		for r, err := range server.Runs(t.Context(), client.RunFilter{Job: name}) {
			if err != nil {
				t.Fatal(err)
			}
			found[r.ID] = true
			if name == fires {
				r = ended(t, server, r.ID)
			}
			states[r.State]++
			switch {
			case r.State == "succeeded":
			case name == "once" && r.State == "unknown":
			case r.State == "dead" && strings.HasPrefix(r.Reason, "killed its worker"): // at each of its attempts
			case name == fires && r.State == "skipped" && r.Why == nil: // missed while there was no server
			case r.State == "cancelled" && name != fires && askers[name].cancel[r.ID]:
			default:
				t.Errorf("%s is %s after %d attempts: %s", r.ID, r.State, r.Attempt, r.Reason)
			}
		}
		if name == fires {
			continue
		}
		for _, id := range askers[name].ids {
			if !found[id] {
				t.Errorf("%s was answered, and is not there", id)
			}
		}
		if limit := inLine[name].Overlap.Limit; u.most[name] != limit {
			t.Errorf("%d runs of %s were in progress at once, want %d", u.most[name], name, limit)
		}
	}
	for g, err := range server.Gates(t.Context()) {
		if err != nil || g.Waiting != 0 {
			t.Errorf("%s has %d in line (%v), and all runs have ended", g.Name, g.Waiting, err)
		}
	}
	for _, what := range u.wrong {
		t.Error(what)
	}
	if inLineThen < kills/2 {
		t.Errorf("runs were in line at %d of %d kills: too few for anything to be tried", inLineThen, kills)
	}
	t.Logf("%d kills in %s, at %d points; at rest %s later: %v", kills, took.Round(time.Second), len(hits), (time.Since(began) - took).Round(time.Second), states)
}
