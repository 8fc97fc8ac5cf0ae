package protocol_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A thousand gates, each of so many values: runs of two jobs want in at two gates of each value, which the jobs name in different orders, and workers die
// while they let them in. At no gate are more units in progress than its limit, nobody is overtaken, and nobody is left in line.
func TestG1_G2_G3_G5_Fault01_a_thousand_gates_of_many_values(t *testing.T) {
	const gates = 1000
	values, each, deaths := 100, 1, 200 // each: runs of each job for each value
	if testing.Short() {
		values, each, deaths = 2, 2, 20
	}
	w := newWorld(t, still())
	// Its first attempt fails, so that whoever is let in is in progress for a while, without a worker.
	w.must(w.handlers.Register("again", func(_ context.Context, call target.Call) (target.Result, error) {
		if call.Attempt == 1 {
			return w.refuse(context.Background(), call)
		}
		return target.Result{}, w.noted(call, true)
	}))
	api := w.host("api")
	name := func(i int) string { return fmt.Sprintf("g%04d", i) }
	for i := range gates {
		w.must(api.redefine(name(i), limited(1+i%2)))
	}
	for i := range gates {
		first, second := i, i^1
		def := passing(job.Overlap{}, job.GateUse{Gate: name(first), Key: "${ .payload.customer }"}, job.GateUse{Gate: name(second), Key: "${ .payload.customer }"})
		def.Target = target.Spec{Handler: &target.Handler{Name: "again"}}
		def.Retry = job.Retry{MaxAttempts: 5, Initial: schedule.Duration(5 * time.Second), Factor: 1}
		w.must(api.put(tenant, fmt.Sprintf("j%04d", i), def))
	}
	r := rand.New(rand.NewPCG(39, 100))
	asked := 0
	for range each {
		for v := range values {
			for _, i := range r.Perm(gates) {
				_, _, err := api.order(tenant, fmt.Sprintf("j%04d", i), control.Request{Delay: new(time.Duration), Payload: fmt.Appendf(nil, `{"customer":"c%d"}`, v)})
				w.must(err)
				asked++
			}
		}
	}
	for range deaths {
		left := 1 + r.IntN(2*asked/(deaths+1)+1)
		w.dies(func(op operation) bool {
			if op.writes() {
				left--
			}
			return left < 0
		})
	}
	w.work()
	waited := 0
	for _, one := range w.runs() {
		if one.Waits() {
			waited++
		}
	}
	if waited < asked/4 {
		t.Errorf("%d of %d wait in line: too few to say anything", waited, asked)
	}
	for second := 0; second < 40*60 && w.open(); second += 10 {
		w.advance(10*time.Second, 10*time.Second, "ticks")
	}
	ended := 0
	for _, one := range w.runs() {
		if one.State != run.Succeeded {
			t.Fatalf("%s is %s at %q: %s", one.ID, one.Stage(), one.Wait.Gate, one.Reason)
		}
		ended++
	}
	stood := 0
	for _, item := range w.items("") {
		switch {
		case strings.HasPrefix(item.Partition, "line#"):
			t.Errorf("%s stands, and everybody has ended", item.Key)
		case strings.HasPrefix(item.Partition, "gate#"):
			g, err := gate.FromItem(tenant, strings.TrimPrefix(item.Partition, "gate#"+tenant+"#"), item)
			w.must(err)
			if g.Key != "" {
				stood++
			}
			if g.Waiting != 0 {
				t.Errorf("at %s %d wait, and everybody has ended", item.Key, g.Waiting)
			}
		}
	}
	if ended != asked || stood != gates*values {
		t.Errorf("%d of %d runs have ended, and there are gates of %d values, want %d", ended, asked, stood, gates*values)
	}
	w.wants(w.check(w.now() - 1))
	t.Logf("%d runs, of which %d waited at once", asked, waited)
}
