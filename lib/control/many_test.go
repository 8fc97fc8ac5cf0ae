package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Requests of one call share the items that list them, and each keeps its own answer.
func TestManyRequestsAreListedTogetherAndAnsweredApart(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		var listings, failed atomic.Int64
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Touches(func(k store.Key) bool { return strings.HasPrefix(k.Partition, "ran#") }) {
				listings.Add(1)
			}
			if c.Touches(func(k store.Key) bool { return strings.HasPrefix(k.Partition, "run#acme#report#") }) && failed.Add(1) == 1 {
				return faulty.Fault{Refuse: fmt.Errorf("of this run alone: %w", store.ErrTooLarge)}
			}
			return faulty.Fault{}
		}
		soon := time.Now().Add(time.Hour).Truncate(time.Minute)
		var asked []control.Asked
		for i := range 20 {
			at := soon.Add(time.Duration(i%2) * 24 * time.Hour)
			asked = append(asked, control.Asked{Job: "report", Request: control.Request{At: &at, Key: fmt.Sprint(i)}})
		}
		asked = append(asked, control.Asked{Job: "none"}, control.Asked{Job: "report", Request: control.Request{Delay: new(time.Duration(-1))}},
			control.Asked{Job: "report", Request: control.Request{Payload: json.RawMessage("{")}})
		answers := g.TriggerMany(t.Context(), "acme", asked)
		wrong := 0
		for i, a := range answers[:20] {
			if a.Err != nil {
				wrong++
			} else if a.Repeated || a.Run.State != run.Scheduled || a.Run.ID.Nominal != asked[i].At.UnixMilli() {
				t.Errorf("request %d: %+v", i, a)
			}
		}
		for i, a := range answers[20:] {
			if a.Err == nil {
				t.Errorf("wrong request %d was taken", i)
			}
		}
		if wrong != 1 || listings.Load() != 2 { // two minutes
			t.Errorf("%d requests failed and %d items list them, want one and two", wrong, listings.Load())
		}
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 19 {
			t.Errorf("%d runs are listed, want 19", len(runs))
		}
		g.hook = nil
		for i, a := range g.TriggerMany(t.Context(), "acme", asked[:20]) {
			if a.Err != nil || !a.Repeated || answers[i].Err == nil && a.Run.ID != answers[i].Run.ID {
				t.Errorf("asked again, request %d gave %+v", i, a)
			}
		}
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 20 {
			t.Errorf("%d runs are listed, want 20", len(runs))
		}
	})
}

// Requests that are asked for together share timers, and are found by them until they are listed.
func TestManyRequestsShareTimers(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		var timers atomic.Int64
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if len(c.Ops) > 0 && c.Touches(func(k store.Key) bool { return strings.HasPrefix(k.Partition, "due#") }) {
				timers.Add(1)
			}
			return faulty.Fault{}
		}
		asked := make([]control.Asked, 2*timer.Together+2)
		for i := range asked {
			asked[i] = control.Asked{Job: "report", Request: control.Request{Payload: json.RawMessage(fmt.Sprint(i))}}
		}
		asked[0].Delay = new(10 * time.Second) // alone with its time
		for i, a := range g.TriggerMany(t.Context(), "acme", asked) {
			if a.Err != nil || a.Run.State != run.Queued || string(a.Run.Payload.Inline) != fmt.Sprint(i) {
				t.Errorf("request %d: %+v", i, a)
			}
		}
		if timers.Load() != 4 {
			t.Errorf("%d timers for %d requests, want four", timers.Load(), len(asked))
		}
		g.hook = nil
		seen := map[run.ID]bool{}
		for _, r := range g.all("acme", control.RunFilter{}) {
			seen[r.ID] = true
		}
		if len(seen) != len(asked) {
			t.Errorf("%d runs are listed, want %d", len(seen), len(asked))
		}
		if runs := g.all("acme", control.RunFilter{To: time.Now().Add(time.Second)}); len(runs) != len(asked)-1 {
			t.Errorf("%d runs of this second are listed, want %d", len(runs), len(asked)-1)
		}
		depth, err := g.queue.Depth(t.Context())
		if err != nil || depth[queue.Normal].Ready+depth[queue.Normal].Delayed != int64(len(asked)) {
			t.Errorf("%+v messages (%v), want %d", depth[queue.Normal], err, len(asked))
		}
	})
}

func TestP9_OneKeyTwiceInOneCallIsOneRun(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "report")
		one := control.Asked{Job: "report", Request: control.Request{Key: "once"}}
		other := control.Asked{Job: "report", Request: control.Request{Key: "once", Payload: json.RawMessage("1")}}
		answers := g.TriggerMany(t.Context(), "acme", []control.Asked{one, one, one})
		for _, a := range answers {
			if a.Err != nil || a.Run.ID != answers[0].Run.ID {
				t.Errorf("got %+v, want the run %s", a, answers[0].Run.ID)
			}
		}
		refused(t, g.TriggerMany(t.Context(), "acme", []control.Asked{other})[0].Err, control.CodeKeyReused)
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 1 {
			t.Errorf("%d runs, want one", len(runs))
		}
		depth, err := g.queue.Depth(t.Context())
		if err != nil || depth[queue.Normal].Ready != 1 {
			t.Errorf("%+v messages (%v), want one", depth[queue.Normal], err)
		}
	})
}
