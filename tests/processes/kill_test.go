//go:build emulators

package processes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/linear"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/points"
	"github.com/belfry-scheduler/belfry/tests/process"
	"github.com/belfry-scheduler/belfry/tests/proxy"
)

// role is what a process of the test does, and where it may die beside random moments.
type role struct {
	name   string
	args   []string
	weight int // how often it is killed, beside the others
	points []string
}

const killLease = 4 * time.Second

var roles = []role{
	{"api", []string{"serve", "--no-work", "--no-ticks"}, 3, []string{points.Create, points.Edit, points.Fence, points.Unbind, points.Idempotency,
		points.Trigger, points.Request, points.RequestClaim, points.Redrive, points.Cancel}},
	{"worker", []string{"worker", "--queue", "default", "--allow-loopback", "--allow-exec"}, 3, []string{points.Start, points.Finish, points.Retry, points.DeadLetter, points.Requeue}},
	{"tick", []string{"tick"}, 1, []string{points.Horizon, points.Successor, points.Claim, points.Watermark}},
}

// at gives some points of a role: before and after its commits, and what belongs to its queue.
func (r role) at(rng *rand.Rand) string {
	var all []string
	for _, commit := range r.points {
		all = append(all, "before-commit:"+commit, "after-commit:"+commit)
	}
	queued := []string{"before-send", "after-send"}
	if r.name == "worker" {
		queued = []string{"after-receive", "before-ack", "after-ack", "before-hide", "after-hide"}
	}
	all = append(all, queued...)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all[:4] {
		all[i] += fmt.Sprintf("/%d", 1+rng.IntN(3))
	}
	return strings.Join(all[:4], ",")
}

// fleet is two processes of each role, which are killed and started again.
type fleet struct {
	*house
	binary string
	rng    *rand.Rand
	doors  *load.Gate
	facing *member // the server that clients call
	all    []*member
	ahead  atomic.Int64 // of all clocks
	died   map[string]int
	log    *os.File
}

type member struct {
	role
	*process.Process
	told   string    // where it writes the point at which it dies
	asleep time.Time // stopped until then
}

func (f *fleet) now() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }

// start starts a member anew, perhaps one that dies at a point, and waits until it is ready or dead.
func (f *fleet) start(m *member, mortal bool) {
	f.t.Helper()
	cmd := f.command(f.binary, append(slices.Clone(m.args), "--lease", killLease.String(), "--log-level", "error")...)
	cmd.Env = append(slices.Clone(f.env), points.Ahead+"="+time.Duration(f.ahead.Load()).String())
	if mortal {
		cmd.Env = append(cmd.Env, points.Variable+"="+m.at(f.rng), points.Died+"="+m.told)
	}
	p, err := process.Start(cmd, f.log)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(p.Kill)
	m.Process = p
}

// awake waits until every member is ready or has died at its point, and starts those again that have.
func (f *fleet) awake() {
	f.t.Helper()
	for _, m := range f.all {
		for {
			select {
			case <-m.Greeted:
			case <-m.Exited:
				f.buried(m)
				f.start(m, false)
				continue
			case <-time.After(process.Patience):
				f.t.Fatalf("%s is neither ready nor dead", m.name)
			}
			break
		}
	}
}

// buried notes the end of a member: at its point, or as it started, since an engine did not answer in time. Whoever runs a service
// starts it again. Any other end fails the test.
func (f *fleet) buried(m *member) {
	f.t.Helper()
	f.turn(m)
	const unanswered = "gave up its start"
	select {
	case <-m.Greeted:
	default:
		if m.Cmd.ProcessState.ExitCode() == 1 && f.died[unanswered] < 10 {
			f.died[unanswered]++
			return
		}
	}
	point, err := os.ReadFile(m.told)
	if err != nil || !m.Killed() {
		f.t.Fatalf("%s ended by itself: %s", m.name, m.Cmd.ProcessState)
	}
	_ = os.Remove(m.told)
	f.died[m.name+" "+string(point)]++
}

// let has a member become ready, and then live for so long, unless it dies at a point.
func (f *fleet) let(m *member, d time.Duration) {
	f.t.Helper()
	select {
	case <-m.Greeted:
		select {
		case <-time.After(d):
		case <-m.Exited:
		}
	case <-m.Exited:
	case <-time.After(process.Patience):
		f.t.Fatalf("%s is neither ready nor dead", m.name)
	}
}

// turn has clients call another server than the one that is to go.
func (f *fleet) turn(from *member) {
	if f.facing != from {
		return
	}
	f.doors.Down()
	f.facing = nil
}

func (f *fleet) face() {
	if f.facing != nil {
		return
	}
	for _, m := range f.all {
		if m.name != "api" || !m.asleep.IsZero() {
			continue
		}
		select {
		case <-m.Exited:
		case <-m.Greeted:
			f.facing = m
			f.doors.Up(m.HostPort())
			return
		default:
		}
	}
}

// lapse kills all, and starts all again at a later time.
func (f *fleet) lapse(d time.Duration) {
	f.t.Helper()
	f.turn(f.facing)
	for _, m := range f.all {
		m.Kill()
	}
	f.ahead.Add(int64(d))
	for _, m := range f.all {
		f.start(m, false)
	}
	f.awake()
	f.face()
}

// Two servers, two tickers and two workers share a table, queues and a bucket, to all of which there is a bad network. They are killed at
// random moments and at named points, and one of each kind is stopped for twice a lease and woken, while clients do what those of
// tests/chaos do, and are judged in the same way. At the end the clocks of all go on until sweeps and checks have seen to what
// was left behind. It is not run beside the other tests of the package, which look at when runs start.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_P10_Fault1_Fault3_Fault11_Fault36_chaos_on_shared_engines(t *testing.T) {
	kills, seed := max(24, int(process.Number(t, "BELFRY_KILLS", 0))/5), process.Seed(t)
	t.Logf("BELFRY_SEED=%d", seed)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*15*time.Second+20*time.Minute)
	defer cancel()
	h := newHouse(t, "chaos")
	h.env = append(h.env, "BELFRY_LOOK_AHEAD=6s", "BELFRY_TICK_EVERY=1s", "BELFRY_SHARDS=4")
	var networks []*proxy.Proxy
	for i, variable := range []string{"DYNAMODB", "SQS"} {
		to := strings.TrimPrefix(os.Getenv("BELFRY_TEST_"+variable), "http://")
		network := proxy.Start(t, proxy.Config{To: func() string { return to }, Seed: seed + uint64(i), Rate: 0.01, Longest: 300 * time.Millisecond})
		networks = append(networks, network)
		h.env = append(h.env, "AWS_ENDPOINT_URL_"+variable+"="+network.URL())
	}
	dir := t.TempDir()
	overlay, err := points.Overlay("../..", dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{house: h, binary: filepath.Join(dir, "mortal"), rng: rand.New(rand.NewPCG(seed, 1)), doors: load.NewGate(), died: map[string]int{}, log: process.Log(t)}
	if err := process.Build(f.binary, "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
	var weighted []*member
	for i, r := range append(roles, roles...) {
		m := &member{role: r, told: filepath.Join(dir, fmt.Sprint("died-", i))}
		f.all = append(f.all, m)
		for range r.weight {
			weighted = append(weighted, m)
		}
		f.start(m, false)
	}
	f.awake()
	f.face()
	l, err := load.Start(ctx, load.Config{Sink: load.NewSink(t, f.now), Self: self, Gate: f.doors, Seed: seed, Reopen: 1, Now: f.now, Pace: 3,
		Behind: 2 * time.Second, Kinds: load.Kinds[:5]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)

	stops, wanted, told := 0, max(len(roles), kills/40), 0
	for n := 0; n < kills; {
		if kills >= 100 && n >= told+kills/10 {
			told = n
			t.Logf("%d of %d kills after %s", n, kills, time.Since(began).Round(time.Second))
		}
		select {
		case <-time.After(time.Duration(50+f.rng.IntN(200)) * time.Millisecond):
		case err := <-l.Ended():
			t.Fatalf("a client gave up: %v", err)
		}
		for _, m := range f.all {
			if !m.asleep.IsZero() && time.Now().After(m.asleep) {
				m.asleep = time.Time{}
				m.Signal(t, syscall.SIGCONT)
			}
			select {
			case <-m.Exited:
				f.buried(m)
				f.start(m, false)
				n++
			default:
			}
		}
		victim := weighted[f.rng.IntN(len(weighted))]
		switch {
		case !victim.asleep.IsZero():
		case stops < wanted && n >= (stops+1)*kills/(wanted+1):
			if victim = f.all[stops%len(f.all)]; victim.asleep.IsZero() {
				f.turn(victim)
				victim.Signal(t, syscall.SIGSTOP)
				victim.asleep = time.Now().Add(2 * killLease)
				stops++
			}
		default:
			if f.rng.IntN(6) > 0 { // the others die as they start
				f.let(victim, time.Duration(f.rng.IntN(900))*time.Millisecond)
			}
			f.turn(victim)
			victim.Kill()
			if victim.Killed() {
				if _, err := os.Stat(victim.told); err == nil {
					f.buried(victim)
				} else {
					f.died[victim.name+" at random"]++
				}
			}
			f.start(victim, f.rng.IntN(2) == 0)
			n++
		}
		f.face()
	}
	for _, m := range f.all {
		m.asleep = time.Time{}
		m.Signal(t, syscall.SIGCONT)
	}
	f.awake()
	f.face()
	for _, network := range networks {
		network.Calm()
	}
	took := time.Since(began)
	// Those that may still die at a point must not, while the last clients come to their end.
	f.lapse(0)
	if err := l.Finish(); err != nil {
		t.Fatalf("a client gave up: %v", err)
	}
	var got load.Outcome
	for _, within := range []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second, 2 * process.Patience} {
		f.lapse(5 * time.Minute)
		calm, stop := context.WithTimeout(ctx, within)
		got, err = l.Judge(calm)
		stop()
		if err == nil && len(got.Violations) == 0 {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range got.Violations {
		t.Error(violation)
	}
	linear.Hold(t, l.Seen)
	t.Logf("%d kills in %s, at rest and judged %s later; network %v and %v; %d stopped for twice a lease: %s", kills, took.Round(time.Second),
		(time.Since(began) - took).Round(time.Second), networks[0].Counts(), networks[1].Counts(), stops, got)
	for _, where := range sorted(f.died) {
		t.Logf("%-40s %d", where, f.died[where])
	}
	if got.States["succeeded"] < kills || stops < len(roles) {
		t.Errorf("too little happened for the promises to be tried: %v, %d stopped", got.States, stops)
	}
}

func sorted(m map[string]int) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
