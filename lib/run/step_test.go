package run

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

func TestIDsOfSteps(t *testing.T) {
	for _, whole := range []ID{FireID("etl", 1_767_571_200_000), RequestID("etl", 1_767_571_200_000, 7)} {
		for _, path := range []string{"a", "parts/load", strings.Repeat("x", 64) + "/b-2_c"} {
			id := whole.At(path)
			text := id.String()
			if text != whole.String()+"/"+path || !id.IsStep() || id.Whole() != whole {
				t.Errorf("%s: %+v", text, id)
			}
			if again, err := ParseID(text); err != nil || again != id {
				t.Errorf("%s is read as %+v, %v", text, again, err)
			}
			key := id.Key("acme")
			if key != (store.Key{Partition: "step#acme#" + whole.String(), Sort: path}) {
				t.Errorf("%s stands at %s", text, key)
			}
			head := Run{ID: whole, Tenant: "acme", State: Running, Generation: 5, Trigger: ByRequest, Version: 3}
			step := head.Release(path, 900, 1000, 3_601_000)
			op, err := step.Item(1)
			if err != nil || op.Key != key || !op.If.IsAbsent() {
				t.Errorf("%+v, %v", op, err)
			}
			read, err := StepFromItem("acme", whole, store.Item{Key: key, Version: 1, Value: op.Value})
			if err != nil || read.ID != id || read.State != Queued || read.Generation != 5 || read.Late(1250) != 350*time.Millisecond {
				t.Errorf("%+v, %v", read, err)
			}
		}
		for _, wrong := range []string{"/", "/a/", "//a", "/a//b", "/-a", "/a b", "/a#b", "/ä", "/" + strings.Repeat("x", 65), "/" + strings.Repeat("abcdefghi/", 70)} {
			if id, err := ParseID(whole.String() + wrong); err == nil {
				t.Errorf("%q is read as %+v", wrong, id)
			}
		}
	}
}

// A workflow's run is told from others by its record alone: under way it has no lease, and it began without an attempt.
func TestRunsOfWorkflowsAreTold(t *testing.T) {
	queued := Run{ID: FireID("etl", 1000), State: Queued, Generation: 1, Version: 1}
	head, plain := queued.Open(2000), queued.Start("w", 2000, time.Minute)
	l := Limits{MaxFailures: 1, MaxCrashes: 1, Retention: time.Hour}
	if !head.Heads() || plain.Heads() || queued.Heads() || head.Attempt != 0 {
		t.Errorf("%+v, %+v", head, plain)
	}
	for _, ended := range []Run{head.Close(Succeeded, 3000, "", l), head.LateFor("timeout").Close(Succeeded, 3000, "", l)} {
		if ended.Heads() || !ended.Headed() {
			t.Errorf("%+v", ended)
		}
	}
	if late := head.LateFor("timeout").Close(Succeeded, 3000, "", l); late.State != Failed || late.Reason != "timeout" {
		t.Errorf("over its time it ends %s (%s)", late.State, late.Reason)
	}
	cancelled, _ := head.AskCancel(2500, "enough", time.Hour)
	if ended := cancelled.Close(Succeeded, 3000, "", l); ended.State != Cancelled || ended.Reason != "enough" {
		t.Errorf("cancelled it ends %s (%s)", ended.State, ended.Reason)
	}
	for _, ended := range []Run{plain.Succeed(3000, Ref{}, "", l), plain.Crash(3000, "gone", l), queued.GiveUp(3000, "nobody", l)} {
		if ended.Headed() {
			t.Errorf("%s is taken for the run of a workflow", ended.State)
		}
	}
}

// A run whose time is over ends for that, though somebody asks for its cancel meanwhile.
func TestACancelLeavesTheReasonOfARunThatIsOverItsTime(t *testing.T) {
	late := Run{ID: FireID("etl", 1000), State: Queued, Generation: 1, Version: 1}.Open(2000).LateFor("timeout")
	asked, ok := late.AskCancel(2500, "enough", time.Hour)
	if ended := asked.Close(Succeeded, 3000, "", Limits{}); !ok || ended.State != Failed || ended.Reason != "timeout" {
		t.Errorf("it ends %s (%s), asked for: %t", ended.State, ended.Reason, ok)
	}
}

// A copy of a workflow's run ends unknown, and the attempts that it had before it was a workflow's stay as they were.
func TestARestoredRunOfAWorkflowKeepsItsAttempts(t *testing.T) {
	l := Limits{MaxFailures: 1, Retention: time.Hour}
	before := Run{ID: FireID("etl", 1000), State: Queued, Generation: 1, Version: 1}.Start("w", 2000, time.Minute).Fail(3000, Failure{Error: "no"}, l)
	head := before.Reopen(2, 0, "retried").Open(4000)
	restored, ok := head.Restored(5000, "a copy", time.Hour)
	if n := len(restored.Attempts); !ok || restored.State != Unknown || n != 1 || restored.Attempts[0] != before.Attempts[0] || !restored.Headed() {
		t.Errorf("it is restored as %+v", restored)
	}
}
