package power

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/tests/linear"
	"github.com/belfry-scheduler/belfry/tests/load"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// world is clients and targets that outlive machines.
type world struct {
	t      *testing.T
	sink   *load.Sink
	doors  *load.Gate
	out    *line
	load   *load.Load
	random *rand.Rand
	mem    *vfs.MemFS // what the machine before has left
	starts int

	looking sync.WaitGroup
	rest    chan struct{} // closed when the clients have come to an end
}

// newWorld has a listener, which nobody uses, and so is made outside of virtual time.
func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, sink: load.NewSink(t, time.Now), out: new(line),
		random: rand.New(rand.NewPCG(seed, 1<<33)), mem: vfs.NewCrashableMem()}
}

func (w *world) begin(ctx context.Context, seed uint64) {
	w.doors, w.rest = load.NewGate(), make(chan struct{})
	var err error
	w.load, err = load.Start(ctx, load.Config{Sink: w.sink, Gate: w.doors, Seed: seed, Reopen: 3,
		Kinds: []load.Kind{{AWS: true}, {AWS: true, AtMostOnce: true}, {AWS: true}, {AWS: true, AtMostOnce: true}, {AWS: true}, {AWS: true}},
		Wrap:  func(http.RoundTripper) http.RoundTripper { return w.out }})
	if err != nil {
		w.t.Fatal(err)
	}
	w.looking.Go(func() { w.look(ctx) })
}

// look reads the jobs again and again. What it is shown before it is synced, a cut takes back.
func (w *world) look(ctx context.Context) {
	reader, err := process.Client("http://127.0.0.1", "", w.load.Seen.Transport("default", w.out))
	if err != nil {
		w.t.Error(err)
		return
	}
	every := time.NewTicker(7 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			for _, err := range reader.Jobs(ctx, client.JobFilter{Prefix: "job"}) {
				if err != nil {
					break // there is no machine
				}
			}
		case <-w.rest:
			return
		case <-ctx.Done():
			return
		}
	}
}

// live starts a machine, lets it live until the power is cut, and takes what is left. until cuts it, or waits until somebody has.
func (w *world) live(d *disk, until func(m *machine)) (started bool) {
	w.starts++
	m, err := boot(w.t, d, w.starts, w.sink)
	if err != nil {
		select {
		case <-d.cut:
		case <-d.failed:
			d.powerOff()
		default:
			w.t.Fatalf("start %d: %v", w.starts, err)
		}
	} else {
		w.out.plug(m)
		w.doors.Up("")
		until(m)
		w.doors.Down()
		w.out.plug(nil)
		if err := m.stop(); err != nil && d.failAt == 0 {
			w.t.Fatalf("stop %d: %v", w.starts, err)
		}
	}
	w.mem = d.left
	return err == nil
}

// end lets all come to rest on a machine that is left alone, and judges.
func (w *world) end(ctx context.Context) load.Outcome {
	m, err := boot(w.t, newDisk(w.mem, w.random), w.starts+1, w.sink)
	if err != nil {
		w.t.Fatal(err)
	}
	w.out.plug(m)
	w.doors.Up("")
	if err := w.load.Finish(); err != nil {
		w.t.Errorf("a client gave up: %v", err)
	}
	close(w.rest)
	w.looking.Wait()
	found, err := w.load.Judge(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range found.Violations {
		w.t.Error(v)
	}
	if err := m.stop(); err != nil {
		w.t.Fatal(err)
	}
	return found
}

// The power is cut hundreds of times under load, and of what was not synced none, some or all is kept. Whatever was answered holds
// afterwards.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_Fault11_Fault36_Fault50_power_cuts_under_load(t *testing.T) {
	cuts := int(process.Number(t, "BELFRY_CUTS", 100))
	if testing.Short() {
		cuts = 50
	}
	seed := process.Seed(t)
	t.Logf("BELFRY_SEED=%d BELFRY_CUTS=%d go test ./tests/power -count=1 -run cuts_under_load", seed, cuts)
	began := time.Now()
	w := newWorld(t, seed)
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		ctx, end := context.WithTimeout(t.Context(), time.Duration(cuts)*5*time.Second+10*time.Minute)
		defer end()
		w.begin(ctx, seed)
		first, tally := time.Now(), map[string]int{}
		for n := range cuts {
			d := newDisk(w.mem, w.random)
			d.percent = []int{0, 50, 100, w.random.IntN(101)}[n%4]
			d.slow = time.Duration(w.random.IntN(1+w.random.IntN(40))) * time.Millisecond
			if w.random.IntN(3) > 0 {
				d.cutAt, d.applied = 1+w.random.Int64N(1+w.random.Int64N(1000)), w.random.IntN(2) == 0
			}
			how := "at a change of the disk"
			if !w.live(d, func(*machine) {
				select {
				case <-d.cut:
				case <-time.After(time.Duration(w.random.IntN(2_000_000)) * time.Microsecond):
					how = "at an instant"
					d.powerOff()
				case err := <-w.load.Ended():
					t.Fatalf("a client gave up: %v", err)
				}
			}) {
				how = "while it started"
			}
			tally[how]++
		}
		lived := time.Since(first)
		drained, stop := context.WithTimeout(ctx, 5*time.Minute)
		defer stop()
		found := w.end(drained)
		t.Logf("%d cuts %v in %s of virtual time: %s", cuts, tally, lived.Round(time.Second), found)
		if found.Lost < cuts/10 || found.States["succeeded"] < 5*cuts {
			t.Errorf("too little happened for the promises to be tried: %s", found)
		}
	})
	linear.Hold(t, w.load.Seen)
	t.Logf("in %s", time.Since(began).Round(time.Millisecond))
}

// One sync fails, once, and what it was to write is lost; later ones would succeed again. The store stops at that, acknowledges nothing
// more, and the next start has all that was. In real time: what a failed disk leaves hangs until the process ends.
func TestP1_P2_P5_P6_P7_P8_P9_Fault49_a_sync_that_fails_once(t *testing.T) {
	t.Parallel()
	seed := process.Seed(t)
	t.Logf("BELFRY_SEED=%d go test ./tests/power -count=1 -run fails_once", seed)
	w := newWorld(t, seed)
	ctx, end := context.WithTimeout(t.Context(), 20*time.Minute)
	defer end()
	w.begin(ctx, seed)
	stopped := 0
	for stopped < 3 && ctx.Err() == nil { // some fail while the machine starts, and some are of blobs; a busy machine needs more tries
		d := newDisk(w.mem, w.random)
		d.failAt = 1 + w.random.Int64N(80)
		w.live(d, func(m *machine) {
			select {
			case <-d.failed:
			case <-time.After(process.Patience):
				t.Errorf("%d syncs in %s, want %d", d.syncs.Load(), process.Patience, d.failAt)
			}
			// The clients go on asking, of a store that has stopped, unless it was a blob's file: that put has failed, and no more.
			select {
			case <-m.store.Failed():
				stopped++
			case <-time.After(50 * time.Millisecond):
			}
			<-time.After(100 * time.Millisecond)
			d.powerOff()
		})
	}
	found := w.end(ctx)
	t.Logf("the store stopped %d times while clients asked: %s", stopped, found)
	if stopped < 3 || found.States["succeeded"] == 0 {
		t.Errorf("too little happened for the promises to be tried: %s", found)
	}
	linear.Hold(t, w.load.Seen)
}
