package run

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/script"
)

// TestScripts plays the texts under testdata against the decisions. A line is a command, the indented lines below it are what it
// did. Each command that changes the run is written as a store would: the version grows by one.
func TestScripts(t *testing.T) {
	script.Play(t, func(t *testing.T) func([]string) []string {
		p := &player{}
		return func(words []string) []string { return p.play(t, words) }
	})
}

type player struct {
	r   Run
	now int64
}

const retention = time.Hour

func (p *player) play(t *testing.T, words []string) []string {
	t.Helper()
	args := map[string]string{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		args[name] = value
	}
	number := func(name string, otherwise int64) int64 {
		text, ok := args[name]
		if !ok {
			return otherwise
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		return n
	}
	limits := Limits{MaxFailures: 3, MaxCrashes: 3, Retention: retention}
	_, limits.AtMostOnce = args["at_most_once"]
	p.now++
	was := p.r
	ok := true
	switch words[0] {
	case "fire":
		p.r, p.now = Run{ID: FireID("j", 1000), Tenant: "t"}, 1000
		return nil
	case "request":
		p.r, p.now = Run{ID: RequestID("j", 1000, 7), Tenant: "t"}, 1000
		return nil
	case "scheduled":
		p.r.State, p.r.Trigger, p.r.Generation = Scheduled, ByRequest, number("gen", 0)
	case "claim":
		var verdict ClaimVerdict
		p.r, verdict = p.r.Claim(Claim{Generation: number("gen", 1), Trigger: BySchedule, Epoch: uint64(number("epoch", 1)), Now: p.now})
		if verdict == Standing {
			return []string{"standing: send again"}
		}
		ok = verdict == Claimed
	case "skip":
		var verdict ClaimVerdict
		p.r, verdict = p.r.Skip(Stretch{Generation: number("gen", 1), Through: 3000, Upto: 4000, Count: 3, Reason: "missed"}, p.now, retention)
		ok = verdict == Claimed
	case "fence":
		p.r, ok = p.r.FenceOff(number("gen", 2), p.now+retention.Milliseconds())
	case "unbind":
		p.r, ok = p.r.Unbind(number("gen", 2))
	case "start":
		p.r = p.r.Start("w", p.now, time.Second)
	case "extend":
		p.r = p.r.Extend(p.now, time.Second)
	case "succeed":
		p.r = p.r.Succeed(p.now, Ref{Inline: []byte("{}")}, "", limits)
	case "fail":
		_, permanent := args["permanent"]
		_, unsure := args["unsure"]
		p.r = p.r.Fail(p.now, Failure{Error: "exit: code 1", Permanent: permanent, Unsure: unsure, NextAt: p.now + 50}, limits)
	case "crash":
		p.r = p.r.Crash(p.now, "its lease ran out", limits)
	case "give_up":
		p.r = p.r.GiveUp(p.now, "no worker could start it", limits)
	case "hand_back":
		p.r = p.r.HandBack(p.now, "", "", Limits{})
	case "cancel":
		p.r, ok = p.r.AskCancel(p.now, "no longer needed", retention)
	case "cancelled":
		p.r = p.r.Cancelled(p.now, "", limits)
	case "reopen":
		p.r = p.r.Reopen(number("gen", 1), 0, "retried")
	case "holds":
		return []string{fmt.Sprint(p.r.Holds(uint64(number("fence", 0))))}
	case "in":
		p.r = Run{ID: p.r.ID, Tenant: "t", State: stateOf(t, words[1]), Generation: number("gen", 2), Attempt: int(number("attempt", 0)),
			Trigger: BySchedule, Created: 1000, Version: 5}
		if p.r.State == Running {
			p.r.Fence = 5
		}
		return nil
	default:
		t.Fatalf("unknown command %q", words[0])
	}
	if !ok {
		if fmt.Sprint(p.r) != fmt.Sprint(was) {
			t.Fatalf("%v was refused and changed the run", words)
		}
		return []string{"refused"}
	}
	if p.r.Version != was.Version {
		t.Fatalf("%v changed the version itself", words)
	}
	// Through the store, so that what is not stored is not seen.
	op, err := p.r.Item(1)
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := FromItem("t", p.r.ID, store.Item{Key: op.Key, Version: was.Version + 1, Value: op.Value})
	if err != nil {
		t.Fatal(err)
	}
	p.r = read
	return []string{p.show()}
}

func stateOf(t *testing.T, name string) State {
	t.Helper()
	if s, ok := ParseState(name); ok {
		return s
	}
	if name != "fenced" {
		t.Fatalf("no state %q", name)
	}
	return Fenced
}

func (p *player) show() string {
	r := p.r
	text := fmt.Sprintf("v%d %s gen=%d", r.Version, r.State, r.Generation)
	add := func(name string, value any, zero bool) {
		if !zero {
			text += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	add("attempt", r.Attempt, r.Attempt == 0)
	add("fence", r.Fence, r.Fence == 0)
	add("worker", r.Worker, r.Worker == "")
	add("lease", r.Lease, r.Lease == 0)
	add("failures", r.Failures, r.Failures == 0)
	add("crashes", r.Crashes, r.Crashes == 0)
	add("next", r.NextAt, r.NextAt == 0)
	add("cancel", r.Cancel, !r.Cancel)
	add("ended", r.Ended, r.Ended == 0)
	add("expires", r.Expires, r.Expires == 0)
	add("through", r.Through, r.Through == 0)
	add("count", r.Count, r.Count == 0)
	add("reason", strconv.Quote(r.Reason), r.Reason == "")
	var outcomes []string
	for _, a := range r.Attempts {
		outcomes = append(outcomes, fmt.Sprintf("%d:%s", a.Number, a.Outcome))
	}
	add("attempts", strings.Join(outcomes, ","), len(outcomes) == 0)
	return text
}
