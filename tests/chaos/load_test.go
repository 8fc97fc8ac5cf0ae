package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func targetOf(k kind, b behaviour, sinkURL, self string) target.Spec {
	if k.exec {
		return target.Spec{Exec: &target.Exec{Argv: []string{self}, Env: target.Texts(map[string]string{reportTo: b.url(sinkURL)})}}
	}
	return target.Spec{HTTP: &target.HTTP{URL: b.url(sinkURL)}}
}

// gate tells the clients whether there is a server to call, and where: each start listens on a port of its own, since nothing
// keeps one free while there is none.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while there is one
	at   string        // host:port of the newest one
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) up(s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = s.hostPort()
	close(g.open)
}

func (g *gate) down() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// dial connects to the newest server, whatever the address.
func (g *gate) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	g.mu.Lock()
	at := g.at
	g.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, at)
}

func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// anyServer is what requests name; the gate knows who that is.
const anyServer = "http://127.0.0.1"

// load is what all clients share.
type load struct {
	sinkURL, self string
	server        *client.Client
	http          *http.Client // for what the server's own client never does
	gate          *gate
	enough        chan struct{} // closed when the clients are to come to an end

	mu        sync.Mutex
	asks      int // numbers given out
	histories []history
	accepted  []string // IDs of runs
	sightings map[string]sighting
	wrong     []string // answers that Belfry must not give
	answered  int
	lost      int
}

func (l *load) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// actor is the only client of its jobs, one job after another.
type actor struct {
	*load
	rng    *rand.Rand
	name   string
	kind   kind
	h      history
	etag   string
	edits  int // numbers of definitions
	exists bool
	paused bool
	fires  *schedule.Schedule // of the newest definition, paused or not
	spec   *schedule.Spec
}

// How long a job lives, in changes: Belfry refuses more than 500 within the time that sweeps take.
const changesPerJob = 120

func (a *actor) run(ctx context.Context) error {
	for number := 0; ; number++ {
		a.h = history{job: fmt.Sprintf("%s-%d", a.name, number), kind: a.kind}
		a.exists, a.paused, a.etag = false, false, ""
		for len(a.h.changes) < changesPerJob && a.pause(ctx, time.Duration(a.rng.IntN(250))*time.Millisecond) {
			if err := a.step(ctx); err != nil {
				return err
			}
		}
		ended := !a.pause(ctx, 0)
		if err := a.settle(ctx, ended); err != nil {
			return err
		}
		a.mu.Lock()
		a.histories = append(a.histories, a.h)
		a.mu.Unlock()
		if ended {
			return ctx.Err()
		}
	}
}

// pause waits, and tells whether to go on.
func (a *actor) pause(ctx context.Context, d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-a.enough:
		return false
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

func (a *actor) step(ctx context.Context) error {
	if !a.exists {
		return a.put(ctx, true)
	}
	switch n := a.rng.IntN(100); {
	case n < 15:
		return a.put(ctx, true)
	case n < 25 && a.paused:
		return a.resume(ctx)
	case n < 25:
		return a.hold(ctx)
	case n < 29:
		return a.remove(ctx)
	case n < 45:
		return a.askOnce(ctx)
	default:
		return a.ask(ctx)
	}
}

// settle takes the job's schedule away, and lets what a pause held run.
func (a *actor) settle(ctx context.Context, last bool) error {
	if a.exists && a.paused {
		if err := a.resume(ctx); err != nil {
			return err
		}
	}
	if a.exists && last {
		// What still fires does so for a while, undisturbed.
		wait := time.NewTimer(2 * time.Second)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if a.exists {
		return a.put(ctx, false)
	}
	return nil
}

// until sends a call until it is answered, over as many kills as it takes, and gives the answer and when it was first sent and
// last answered.
func (a *actor) until(ctx context.Context, what string, send func(context.Context) error) (sent, answered int64, err error) {
	for try := 0; ; try++ {
		if err := a.gate.wait(ctx); err != nil {
			return 0, 0, err
		}
		if try == 0 {
			sent = time.Now().UnixMilli()
		}
		err := send(ctx)
		answered = time.Now().UnixMilli()
		var refused *client.Error
		switch {
		case err == nil:
			a.count(&a.answered)
			return sent, answered, nil
		case errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests:
			a.count(&a.answered)
			return sent, answered, err
		case errors.As(err, &refused) && refused.Status == http.StatusInternalServerError:
			a.complain("%s of %s was answered with 500: %v", what, a.h.job, err)
		case ctx.Err() != nil:
			return sent, answered, ctx.Err()
		}
		a.count(&a.lost)
		wait := time.NewTimer(20 * time.Millisecond) // the gate may not yet know that the server is gone
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
}

func (l *load) count(n *int) {
	l.mu.Lock()
	*n++
	l.mu.Unlock()
}

func (a *actor) schedule() *schedule.Spec {
	switch a.rng.IntN(5) {
	case 0:
		return &schedule.Spec{Cron: "* * * * * *"}
	case 1:
		return &schedule.Spec{Every: schedule.Duration(time.Second), Phase: schedule.Duration(time.Duration(a.rng.IntN(1000)) * time.Millisecond)}
	case 2:
		return &schedule.Spec{Every: schedule.Duration(2 * time.Second)}
	case 3:
		return &schedule.Spec{Cron: "*/3 * * * * *", Timezone: "Europe/Berlin"}
	default:
		at := time.Now().Add(time.Duration(500+a.rng.IntN(3000)) * time.Millisecond).Truncate(time.Millisecond)
		return &schedule.Spec{At: &at}
	}
}

// put creates or edits the job; fires says whether it is to have a schedule. Often it is guarded: by If-Match or If-None-Match,
// which must let a repetition pass.
func (a *actor) put(ctx context.Context, fires bool) error {
	a.edits++
	b := behaviour{edit: a.edits}
	if a.rng.IntN(4) == 0 {
		b.slow = time.Duration(20+a.rng.IntN(500)) * time.Millisecond
	}
	if a.rng.IntN(6) == 0 {
		b.fails = 1 + a.rng.IntN(2)
	}
	var spec *schedule.Spec
	var compiled *schedule.Schedule
	if fires && a.rng.IntN(6) > 0 {
		spec = a.schedule()
		var err error
		if compiled, err = spec.Compile(); err != nil {
			return err
		}
	}
	var only client.Condition
	what := "edit"
	switch {
	case !a.exists:
		what = "create"
		only.Absent = a.rng.IntN(2) == 0
	case a.rng.IntN(2) == 0:
		only.ETag = a.etag
	}
	def := definition(a.kind, b, spec, a.sinkURL, a.self)
	var got client.Stored
	sent, answered, err := a.until(ctx, what, func(ctx context.Context) (err error) {
		got, err = a.server.PutJob(ctx, a.h.job, def, only)
		return err
	})
	var refused *client.Error
	if errors.As(err, &refused) && what == "create" && spec != nil && spec.At != nil && refused.Status == http.StatusUnprocessableEntity {
		return nil // its time passed while there was no server
	}
	if err != nil {
		return a.unexpected(ctx, what, err)
	}
	a.exists, a.paused, a.spec, a.fires = true, false, spec, compiled
	a.changed(what, got, sent, answered)
	return nil
}

func (a *actor) unexpected(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s of %s: %w", what, a.h.job, err)
}

// changed notes a change as it was answered.
func (a *actor) changed(what string, got client.Stored, sent, answered int64) {
	a.etag = got.ETag
	c := change{what: what, edit: a.edits, generation: got.Status.Generation, at: got.Status.UpdatedAt.UnixMilli(), sent: sent, answered: answered}
	if !a.paused {
		c.fires = a.fires
	}
	if c.at < sent || c.at > answered {
		a.complain("P8: %s of %s sent at %d and answered at %d is in force from %d", what, a.h.job, sent, answered, c.at)
	}
	if n := len(a.h.changes); n > 0 {
		before := a.h.changes[n-1].generation
		if before == 0 && n > 1 {
			before = a.h.changes[n-2].generation
		}
		if c.generation <= before {
			a.complain("P8: %s of %s gave generation %d after %d", what, a.h.job, c.generation, before)
		}
	}
	a.h.changes = append(a.h.changes, c)
}

func (a *actor) hold(ctx context.Context) error {
	var got client.Stored
	sent, answered, err := a.until(ctx, "pause", func(ctx context.Context) (err error) {
		got, err = a.server.PauseJob(ctx, a.h.job, "chaos")
		return err
	})
	if err != nil {
		return a.unexpected(ctx, "pause", err)
	}
	a.paused = true
	a.changed("pause", got, sent, answered)
	return nil
}

func (a *actor) resume(ctx context.Context) error {
	var got client.Stored
	sent, answered, err := a.until(ctx, "resume", func(ctx context.Context) (err error) {
		got, err = a.server.ResumeJob(ctx, a.h.job)
		return err
	})
	if err != nil {
		return a.unexpected(ctx, "resume", err)
	}
	a.paused = false
	a.changed("resume", got, sent, answered)
	return nil
}

func (a *actor) remove(ctx context.Context) error {
	tries := 0
	sent, answered, err := a.until(ctx, "delete", func(ctx context.Context) error {
		tries++
		err := a.server.DeleteJob(ctx, a.h.job, client.Condition{})
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound && tries > 1 {
			return nil // an earlier try has done it
		}
		return err
	})
	if err != nil {
		return a.unexpected(ctx, "delete", err)
	}
	a.exists, a.paused, a.etag = false, false, ""
	a.h.changes = append(a.h.changes, change{what: "delete", sent: sent, answered: answered})
	return nil
}

func (a *actor) number() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asks++
	return a.asks
}

func (a *actor) accept(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accepted = append(a.accepted, id)
}

// ask asks for a run under a key, until it is answered; often twice at once, and now and then again what was asked before.
func (a *actor) ask(ctx context.Context) error {
	one := ask{number: a.number()}
	one.key = fmt.Sprintf("%s-%d", a.h.job, one.number)
	at, again := len(a.h.asks), false
	if at > 0 && a.rng.IntN(6) == 0 {
		if i := a.rng.IntN(at); a.h.asks[i].key != "" {
			one, at, again = a.h.asks[i], i, true
		}
	}
	t := trigger(one.number)
	if one.number%4 == 0 {
		t.Delay = schedule.Duration(time.Duration(one.number%30) * 100 * time.Millisecond)
	}
	times := 1 + a.rng.IntN(2)
	runs := make([]wire.Run, times)
	errs := make([]error, times)
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() {
			_, _, errs[i] = a.until(ctx, "trigger", func(ctx context.Context) (err error) {
				runs[i], err = a.server.Trigger(ctx, a.h.job, t, one.key)
				return err
			})
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return a.unexpected(ctx, "trigger", err)
		}
		one.ids = append(one.ids, runs[i].ID)
		a.accept(runs[i].ID)
	}
	if again {
		a.h.asks[at] = one
	} else {
		a.h.asks = append(a.h.asks, one)
	}
	if a.rng.IntN(10) > 0 {
		return nil
	}
	// Another body under the key is refused, whatever happened since.
	_, _, err := a.until(ctx, "trigger", func(ctx context.Context) error {
		_, err := a.server.Trigger(ctx, a.h.job, trigger(-one.number), one.key)
		return err
	})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.complain("P9: another body under key %s: want 409, got %v", one.key, err)
	}
	return nil
}

func trigger(number int) wire.Trigger {
	return wire.Trigger{Payload: json.RawMessage(fmt.Sprintf(`{"ask":%d}`, number))}
}

// askOnce asks without a key, which the Go client never does.
func (a *actor) askOnce(ctx context.Context) error {
	if err := a.gate.wait(ctx); err != nil {
		return err
	}
	one := ask{number: a.number()}
	body, err := json.Marshal(trigger(one.number))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, anyServer+"/v1/jobs/"+a.h.job+"/runs", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	var got wire.Run
	status := 0
	given, err := a.http.Do(request)
	if err == nil {
		defer given.Body.Close()
		status = given.StatusCode
		err = json.NewDecoder(given.Body).Decode(&got)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status == http.StatusAccepted && err == nil:
		one.ids = []string{got.ID}
		a.accept(got.ID)
		a.count(&a.answered)
	case status == 0 || status == http.StatusAccepted || status == http.StatusServiceUnavailable:
		one.lost = true
		a.count(&a.lost)
	default:
		a.complain("trigger of %s without a key: %d %v", a.h.job, status, err)
	}
	a.h.asks = append(a.h.asks, one)
	return nil
}

// watch looks at accepted runs while all is going on: an end that was shown must stay.
func (l *load) watch(ctx context.Context, rng *rand.Rand) error {
	every := time.NewTicker(15 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-l.enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
		if err := l.gate.wait(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		id := ""
		if n := len(l.accepted); n > 0 {
			id = l.accepted[n-1-rng.IntN(min(n, 200))]
		}
		l.mu.Unlock()
		if id == "" {
			continue
		}
		r, err := l.server.Run(ctx, id)
		var refused *client.Error
		switch {
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			l.complain("P1: run %s was accepted and is not there", id)
		case err != nil || r.EndedAt.IsZero():
		default:
			now := sighting{state: r.State, ended: r.EndedAt, fence: r.Fence}
			l.mu.Lock()
			if before, seen := l.sightings[id]; seen && before != now {
				l.wrong = append(l.wrong, fmt.Sprintf("P7: run %s ended as %+v, then as %+v", id, before, now))
			}
			l.sightings[id] = now
			l.mu.Unlock()
		}
	}
}
