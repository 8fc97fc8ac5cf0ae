package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A run waits for a year, or in the short suite for a month, while its job is edited, and whatever an engine may take away by then is gone: it goes on by the definition with which it began.
func TestW3_W8_Scenario33_AWaitOfAYear(t *testing.T) {
	days := 365
	if testing.Short() {
		days = 30
	}
	for name, change := range map[string]func(*control.Service) error{
		"edited": func(s *control.Service) error {
			_, _, err := s.Put(context.Background(), tenant, "waits", job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "act"}}}, control.Match{})
			return err
		},
		"paused": func(s *control.Service) error {
			_, err := s.Pause(context.Background(), tenant, "waits", "not now", control.Match{})
			return err
		},
		"deleted": func(s *control.Service) error {
			return s.Delete(context.Background(), tenant, "waits", control.Match{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := waits(t, `{"timeout": "400d", "steps": {`+before+`"w": {"needs": ["a"], "wait": {"for": "`+fmt.Sprint(days)+`d"}}`+behind+`}}`, lookAhead(150*time.Second))
			f.advance(time.Hour, 10*time.Second, "calm") // it is quiet
			f.must(change(f.host("api").control))
			for over := f.rows()["w"].NextAt; f.now() < over; f.lapse(0, "run#", "step#", "def#", "log#", "gate#") {
				if row := f.rows()["w"]; !row.Suspended() {
					t.Fatalf("%d days before its time the wait is %s", (over-f.now())/(24*time.Hour).Milliseconds(), row.Stage())
				}
				f.advance(12*time.Hour, 12*time.Hour, "calm")
			}
			f.advance(10*time.Minute, 10*time.Second, "calm") // ticks that came twice a day have much to look through
			if head := f.head(); head.State != run.Succeeded || !slices.Equal(f.paths(), []string{"a", "b"}) {
				t.Errorf("the run is %s (%s), and its calls were %q", head.State, head.Reason, f.paths())
			}
		})
	}
}

// The store is away for two hours when the time of a wait comes. The wait ends as soon as it is back.
func TestW3_Scenario36_TheStoreIsAwayWhenAWaitIsOver(t *testing.T) {
	f := waits(t, before+`"w": {"needs": ["a"], "wait": {"for": "3h"}}`+behind)
	f.advance(2*time.Hour, 10*time.Second, "calm")
	back := f.elapsed + 2*time.Hour
	h := f.restart("away")
	h.before = func(operation) faulty.Fault { return faulty.Fault{Refuse: store.ErrThrottled} }
	for ; f.elapsed < back; f.elapsed += time.Minute {
		_ = h.tick()
	}
	if row := f.rows()["w"]; !row.Suspended() {
		t.Fatalf("while the store is away the wait is %s", row.Stage())
	}
	f.advance(5*time.Minute, 10*time.Second, "calm")
	if head := f.head(); head.State != run.Succeeded || !slices.Equal(f.paths(), []string{"a", "b"}) {
		t.Errorf("five minutes after it is back the run is %s, and its calls were %q", head.State, f.paths())
	}
}

// Clocks of hosts are two seconds off, either way, which they learn of by the answers of the store: a wait ends neither before its time by the store's clock nor later than a
// tick takes.
func TestP3_W9_Scenario42_ClocksAreOffAtAWait(t *testing.T) {
	const off = 2 * time.Second
	for _, puts := range []time.Duration{-off, 0, off} {
		for _, ends := range []time.Duration{-off, 0, off} {
			t.Run(fmt.Sprintf("put_%s_ended_%s", puts, ends), func(t *testing.T) {
				f := newFlowWorld(newWorld(t), graphs["chain"])
				f.work()
				for host, skew := range map[string]time.Duration{"worker": puts, "calm": ends} {
					h := f.restart(host)
					h.skew = skew
					h.store.SetSkew(-skew)
				}
				f.asks(before + `"w": {"needs": ["a"], "wait": {"for": "5m"}}` + behind)
				f.work()
				row := f.rows()["w"]
				if !row.Suspended() || row.NextAt != f.rows()["a"].Ended+(5*time.Minute).Milliseconds() {
					t.Fatalf("the wait is %s until %d", row.Stage(), row.NextAt)
				}
				for f.now() < row.NextAt+(5*time.Second).Milliseconds() {
					if row := f.rows()["w"]; f.now() < row.NextAt && row.State.Ended() {
						t.Fatalf("it has ended %d ms before its time", row.NextAt-f.now())
					}
					f.advance(500*time.Millisecond, 500*time.Millisecond, "calm")
				}
				if head := f.head(); head.State != run.Succeeded {
					t.Errorf("five seconds after the time of the wait the run is %s, and the wait %s", head.State, f.rows()["w"].Stage())
				}
			})
		}
	}
}
