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

// TestP5_OnceDemonstrated: what the promises say of calls and effects. At most once does not call again by itself, and says where nobody knows. At least once
// has the effect here, and has it once at a target that heeds the key; a fence stops who comes late, unless it is the first to call, and does not tell a repetition.
func TestP5_OnceDemonstrated(t *testing.T) {
	type counts struct {
		state                          string
		attempts, calls, effects, told int // told: workers that were refused
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
			at("clocks_jump", counts{"succeeded", 1, 1, 1, 2})
			if guarantee == least {
				at("dies_before", counts{"succeeded", 2, 1, 1, 0})
				at("dies_after", counts{"succeeded", 2, 2, twice, 0})
				at("answer_lost", counts{"succeeded", 2, 2, twice, 0})
				at("zombie", counts{"succeeded", 2, 2, late, 1})
				at("zombie_first", counts{"succeeded", 2, 2, twice, 1})
			} else {
				at("dies_before", counts{"unknown", 1, 0, 0, 0})
				at("dies_after", counts{"unknown", 1, 1, 1, 0})
				at("answer_lost", counts{"unknown", 1, 1, 1, 0})
				at("zombie", counts{"unknown", 1, 1, 1, 1})
				at("zombie_first", counts{"unknown", 1, 1, 1, 1})
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
		if got := (counts{o.State, o.Attempts, o.Calls, o.Effects, o.RefusedWorkers}); got != want[name] {
			t.Errorf("%s: %+v, want %+v", name, got, want[name])
		}
		stale := 0 // the late call of a worker whose successor has called
		if r.Question.Guarantee == least && r.Question.Fault == "zombie" && (r.Question.Guard == "fence" || r.Question.Guard == "both") {
			stale = 1
		}
		if o.RefusedCalls != stale || o.RepeatedCalls != o.Calls-o.Effects-stale {
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
			if p.Lasts != last || count["running"] != o.Attempts || count["called"] != o.Calls || count["effect"] != o.Effects || count["refused"] != o.RefusedWorkers ||
				count["message_taken"] != o.Deliveries || count["stale"] != o.RefusedCalls || count["repeated"] != o.RepeatedCalls || count["message_sent"] != count["message_deleted"] || count[o.State] != 1 {
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
		{"at_least_once", "none", "none", "The target was called once and made 1 payment. The run has succeeded."},
		{"at_least_once", "dies_after", "none", "A target that heeds the Idempotency-Key pays once."},
		{"at_least_once", "dies_after", "key", "called twice and made 1 payment. The run has succeeded. It had paid under the key of the second call already"},
		{"at_least_once", "dies_after", "fence", "A fence alone does not tell a repeated call"},
		{"at_least_once", "zombie", "fence", "The late call had a fence older than the highest that the target had seen for the run"},
		{"at_least_once", "message_twice", "none", "Belfry let one of them start"},
		{"at_least_once", "clocks_jump", "none", "judges no lease for 30s"},
		{"at_least_once", "write_lost", "none", "The write was repeated"},
		{"at_least_once", "zombie_first", "fence", "A fence alone does not stop a late worker that is the first to call"},
		{"at_most_once", "zombie", "none", "made 16s after the run became unknown. If somebody retries the run before that"},
		{"at_most_once", "zombie", "none", "the run had ended as unknown"},
		{"at_most_once", "dies_before", "none", "never called and made no payment. The run is unknown."},
		{"at_most_once", "dies_after", "key", "sends no Idempotency-Key"},
	} {
		if p := demonstrate(t, c.guarantee, c.fault, c.guard); !strings.Contains(p.Says, c.says) {
			t.Errorf("%s, %s, %s: %q, want %q in it", c.guarantee, c.fault, c.guard, p.Says, c.says)
		}
	}
}

// TestADemonstrationSaysWhyAWorkerIsRefused: each refusal names what stands, and a message has the fence under which it would start an attempt.
func TestADemonstrationSaysWhyAWorkerIsRefused(t *testing.T) {
	for _, c := range []struct {
		guarantee, fault string
		want             []string
	}{
		{"at_least_once", "message_twice", []string{"another worker has started that since the message was taken."}},
		{"at_least_once", "clocks_jump", []string{"fence 2 holds the run. The clocks were stepped, so no lease is judged for 30s.", "fence 2 holds the run, and its lease is not over."}},
		{"at_least_once", "zombie", []string{"fence 4 holds the run."}},
		{"at_most_once", "zombie", []string{"the run has ended as unknown."}},
	} {
		var refused []string
		first := uint64(0)
		for i, e := range demonstrate(t, c.guarantee, c.fault, "none").Events {
			switch e.Event {
			case "timer_set":
				if i > 0 && e.At == 0 {
					t.Errorf("%s: the timer is written as event %d", c.fault, i)
				}
			case "message_sent", "message_taken":
				if e.Fence == 0 {
					t.Errorf("%s: %+v has no fence", c.fault, e)
				}
				first = e.Fence
			case "refused":
				refused = append(refused, e.Text)
				if e.Fence == 0 || e.Attempt == 0 && e.Fence != first {
					t.Errorf("%s: %+v, after a message with fence %d", c.fault, e, first)
				}
			}
		}
		if len(refused) != len(c.want) {
			t.Errorf("%s, %s: refused are %q", c.guarantee, c.fault, refused)
			continue
		}
		for i, want := range c.want {
			if !strings.HasSuffix(refused[i], want) {
				t.Errorf("%s, %s: refused as %q, want %q", c.guarantee, c.fault, refused[i], want)
			}
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
