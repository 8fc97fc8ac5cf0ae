package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func demonstrate(t *testing.T, guarantee, fault, guard string) wire.OncePlan {
	t.Helper()
	p, err := simulate.DemonstrateOnce(t.Context(), wire.OnceQuestion{Guarantee: guarantee, Fault: fault, Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestP5_OnceDemonstrated: what the promises say of calls and effects. At most once never calls twice, and says where nobody knows. At least once always has the effect, and
// has it once at a target that heeds the key; a fence stops who comes late, and does not tell a repetition.
func TestP5_OnceDemonstrated(t *testing.T) {
	type counts struct {
		state                          string
		attempts, calls, effects, told int // told: writes that were refused
	}
	least, most := "at_least_once", "at_most_once"
	want := map[string]counts{}
	for _, guard := range simulate.OnceGuards {
		for _, guarantee := range []string{least, most} {
			at := func(fault string, c counts) { want[fmt.Sprint(guarantee, " ", fault, " ", guard)] = c }
			twice := 2
			if guard == "key" || guard == "both" {
				twice = 1
			}
			late := twice
			if guard == "fence" {
				late = 1
			}
			at("none", counts{"succeeded", 1, 1, 1, 0})
			at("message_twice", counts{"succeeded", 1, 1, 1, 1})
			at("write_lost", counts{"succeeded", 1, 1, 1, 0})
			at("clock", counts{"succeeded", 1, 1, 1, 1})
			if guarantee == least {
				at("dies_before", counts{"succeeded", 2, 1, 1, 0})
				at("dies_after", counts{"succeeded", 2, 2, twice, 0})
				at("answer_lost", counts{"succeeded", 2, 2, twice, 0})
				at("zombie", counts{"succeeded", 2, 2, late, 1})
			} else {
				at("dies_before", counts{"unknown", 1, 0, 0, 0})
				at("dies_after", counts{"unknown", 1, 1, 1, 0})
				at("answer_lost", counts{"unknown", 1, 1, 1, 0})
				at("zombie", counts{"unknown", 1, 1, 1, 1})
			}
		}
	}
	rows := demonstrate(t, least, "none", "none").Compare
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for _, r := range rows {
		name := fmt.Sprint(r.Question.Guarantee, " ", r.Question.Fault, " ", r.Question.Guard)
		o := r.Outcome
		if got := (counts{o.State, o.Attempts, o.Calls, o.Effects, o.RefusedWrites}); got != want[name] {
			t.Errorf("%s: %+v, want %+v", name, got, want[name])
		}
		if o.RefusedCalls != o.Calls-o.Effects {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestP6_FencesOfADemonstration: each attempt has a newer fence than all before, its call brings that one, and what is told agrees with what is counted.
func TestP6_FencesOfADemonstration(t *testing.T) {
	for _, guarantee := range simulate.OnceGuarantees {
		for _, fault := range simulate.OnceFaults {
			p := demonstrate(t, guarantee, fault, "both")
			count, fences, highest, last := map[string]int{}, map[int]uint64{}, uint64(0), 0.0
			for i, e := range p.Events {
				count[e.Event]++
				if e.At < last || e.Text == "" || e.From == "" {
					t.Errorf("%s, %s: event %d is %+v", guarantee, fault, i, e)
				}
				last = e.At
				switch e.Event {
				case "running":
					if e.Fence <= highest {
						t.Errorf("%s, %s: attempt %d begins with fence %d, after %d", guarantee, fault, e.Attempt, e.Fence, highest)
					}
					highest, fences[e.Attempt] = e.Fence, e.Fence
				case "called":
					if e.Fence != fences[e.Attempt] || (e.Key == "") != (guarantee == "at_most_once") {
						t.Errorf("%s, %s: attempt %d, which has fence %d, calls with %+v", guarantee, fault, e.Attempt, fences[e.Attempt], e)
					}
				}
			}
			o := p.Outcome
			if p.Lasts != last || count["running"] != o.Attempts || count["called"] != o.Calls || count["effect"] != o.Effects || count["refused"] != o.RefusedWrites ||
				count["message_taken"] != o.Deliveries || count["stale"]+count["repeated"] != o.RefusedCalls || count["message_sent"] != count["message_deleted"] || count[o.State] != 1 {
				t.Errorf("%s, %s: %v, counted as %+v", guarantee, fault, count, o)
			}
			if fault != "write_lost" && fault != "zombie" {
				continue
			}
			if again := demonstrate(t, guarantee, fault, "both"); !reflect.DeepEqual(again, p) {
				t.Errorf("%s, %s: another time it is\n%+v\nthe first time\n%+v", guarantee, fault, again, p)
			}
		}
	}
}

// TestADemonstrationSaysWhatHappened: the words agree with the counts, and name what would have helped.
func TestADemonstrationSaysWhatHappened(t *testing.T) {
	for _, c := range []struct{ guarantee, fault, guard, says string }{
		{"at_least_once", "none", "none", "The target was called once, and paid once. The run has succeeded."},
		{"at_least_once", "dies_after", "none", "A target that heeds the Idempotency-Key pays once."},
		{"at_least_once", "dies_after", "key", "called twice, and paid once. The run has succeeded. The second call had the key of the first"},
		{"at_least_once", "dies_after", "fence", "A fence alone does not tell a repeated call"},
		{"at_least_once", "zombie", "fence", "The late call had an older fence than one that the target had seen"},
		{"at_least_once", "message_twice", "none", "the store let one of them start"},
		{"at_least_once", "clock", "none", "A jump of the clock ends no lease"},
		{"at_least_once", "write_lost", "none", "The write was repeated"},
		{"at_most_once", "dies_before", "none", "never called, and never paid. The run is unknown."},
		{"at_most_once", "dies_after", "key", "brings no Idempotency-Key"},
	} {
		if p := demonstrate(t, c.guarantee, c.fault, c.guard); !strings.Contains(p.Says, c.says) {
			t.Errorf("%s, %s, %s: %q, want %q in it", c.guarantee, c.fault, c.guard, p.Says, c.says)
		}
	}
}

func TestADemonstrationRefusesWhatItDoesNotKnow(t *testing.T) {
	_, err := simulate.DemonstrateOnce(t.Context(), wire.OnceQuestion{Guarantee: "exactly_once", Fault: "fire", Guard: "dog"})
	wrong := invalid.All(err)
	if len(wrong) != 3 || wrong[0].Field != "guarantee" || wrong[1].Field != "fault" || wrong[2].Field != "guard" || !strings.Contains(wrong[1].Want, "dies_before, dies_after") {
		t.Errorf("refused as %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := simulate.DemonstrateOnce(ended, wire.OnceQuestion{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context it gives %v", err)
	}
	if p := demonstrate(t, "", "", ""); p.Question != (wire.OnceQuestion{Guarantee: "at_least_once", Fault: "none", Guard: "none"}) || p.Lasts > time.Minute.Seconds() {
		t.Errorf("left out, it asks %+v", p.Question)
	}
}
