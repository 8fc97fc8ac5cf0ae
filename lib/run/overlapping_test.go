package run_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// A run that was skipped for overlap was claimed and has met its fate, as one that succeeded has. A decision over missed fires has not: whoever
// comes with a newer generation takes its place.
func TestP8_WhatIsDoneOverASkippedRun(t *testing.T) {
	const newer = 2
	deeds := map[string]func(run.Run) bool{
		"a newer claim": func(r run.Run) bool {
			_, verdict := r.Claim(run.Claim{Generation: newer, Trigger: run.BySchedule, Now: 2000})
			return verdict == run.Claimed
		},
		"an edit's mark": func(r run.Run) bool { _, ok := r.FenceOff(newer, 9000); return ok },
		"a newer decision": func(r run.Run) bool {
			_, v := r.Skip(run.Stretch{Generation: newer, Through: 1000}, 2000, time.Hour)
			return v == run.Claimed
		},
		"a delete": func(r run.Run) bool {
			_, v := r.Withdraw(run.Claim{Generation: newer}, "", time.Hour)
			return v == run.Claimed
		},
		"an edit of its job":    func(r run.Run) bool { _, ok := r.Unbind(newer); return ok },
		"a pause of its job":    func(r run.Run) bool { _, ok := r.Hold(newer); return ok },
		"a cancel":              func(r run.Run) bool { _, ok := r.AskCancel(2000, "", time.Hour); return ok },
		"a restore of a backup": func(r run.Run) bool { _, ok := r.Restored(2000, "", time.Hour); return ok },
	}
	why := run.Why{Code: run.WhyOverlap, Gate: "job:j", Policy: "skip", InTheWay: []string{"j~0000000rs"}}
	blank := run.Run{ID: run.FireID("j", 1000), Tenant: "t", Version: 3}
	claimed, _ := run.Run{ID: blank.ID, Tenant: "t"}.Claim(run.Claim{Generation: 1, Trigger: run.BySchedule, Now: 900})
	claimed.Version = 3
	missed, _ := run.Run{ID: blank.ID, Tenant: "t"}.Skip(run.Stretch{Generation: 1, Through: 1000, Upto: 1000, Count: 1, Reason: "missed"}, 900, time.Hour)
	missed.Version = 3
	overlapped := claimed.Overlapping(why, false, 1000, time.Hour)
	asked := claimed
	asked.ID, asked.Trigger = run.RequestID("j", 1000, 7), run.ByRequest
	if !missed.Missed() || overlapped.Missed() || claimed.Missed() {
		t.Fatal("only a decision over missed fires is missed")
	}
	for name, deed := range deeds {
		replaces := slices.Contains([]string{"a newer claim", "an edit's mark", "a newer decision", "a delete"}, name)
		for _, row := range []struct {
			of   string
			r    run.Run
			want bool
		}{{"a missed fire", missed, replaces}, {"a fire skipped for overlap", overlapped, false}, {"a request skipped for overlap", asked.Overlapping(why, false, 1000, time.Hour), false}} {
			if got := deed(row.r); got != row.want {
				t.Errorf("%s over %s: changes it is %t, want %t", name, row.of, got, row.want)
			}
		}
	}
}

func TestWhoIsNeverSkipped(t *testing.T) {
	fresh := run.Run{ID: run.FireID("j", 1000), Tenant: "t", Version: 1, State: run.Queued, Generation: 1}
	why := run.Why{Code: run.WhyOverlap, Gate: "job:j", Policy: "skip", InTheWay: []string{"j~0000000rs"}}
	cancelled, _ := fresh.AskCancel(1000, "no longer needed", time.Hour)
	late, _ := run.Run{ID: fresh.ID, Tenant: "t"}.Claim(run.Claim{Generation: 1, Trigger: run.BySchedule, Now: 9000, NotBefore: 9500, Reason: run.CaughtUp})
	dropped, _ := run.Run{ID: fresh.ID, Tenant: "t"}.Skip(run.Stretch{Generation: 1, Through: 1000, Upto: 1000, Count: 1, Reason: "missed"}, 9000, time.Hour)
	for name, row := range map[string]struct {
		r      run.Run
		spared bool
	}{
		"dropped as missed":    {dropped, false},
		"claimed":              {fresh, false},
		"makes up for a fire":  {late, false},
		"handed back":          {fresh.Start("w", 1000, time.Second).HandBack(1001, "stopped", "", run.Limits{}), true},
		"its worker died":      {fresh.Start("w", 1000, time.Second).Crash(1001, "lease", run.Limits{MaxCrashes: 3}), true},
		"waits for a retry":    {fresh.Start("w", 1000, time.Second).Fail(1001, run.Failure{NextAt: 2000}, run.Limits{MaxFailures: 3}), true},
		"skipped, and retried": {fresh.Overlapping(why, false, 1000, time.Hour).Reopen(2, 0, "retried on request"), true},
		"cancelled, retried":   {cancelled.Reopen(2, 0, "retried on request"), true},
	} {
		if got := row.r.Spared(); got != row.spared {
			t.Errorf("%s: spared is %t", name, got)
		}
	}
}

// A reopening takes back why a run was skipped, and where its job bounds runs it has a number of its own, which grows.
func TestAReopeningIsToldFromWhatWasBefore(t *testing.T) {
	r := run.Run{ID: run.FireID("j", 1000), Tenant: "t", Version: 4, State: run.Queued, Generation: 1}
	r = r.Overlapping(run.Why{Code: run.WhyOverlap, Gate: "job:j", Policy: "skip", InTheWay: []string{"j~0000000rs"}}, false, 1000, time.Hour)
	if r.Reason == "" || r.Expires == 0 {
		t.Errorf("a skipped run has the reason %q and is kept until %d", r.Reason, r.Expires)
	}
	plain := r.Reopen(1, 0, "retried")
	if plain.Opening != 0 || !plain.Why.IsZero() || plain.State != run.Queued {
		t.Errorf("opened again: %+v", plain)
	}
	first := plain.Reopened(1)
	first.Version++
	second := first.Reopen(1, 0, "retried").Reopened(2)
	if first.Opening != 5 || second.Opening != 6 {
		t.Errorf("the openings %d and %d, want the versions that they write, 5 and 6", first.Opening, second.Opening)
	}
}

// What was in the way is stored without the job's name, and without the last of it where the record would grow over a unit.
func TestWhatWasInTheWayIsKeptShort(t *testing.T) {
	long := strings.Repeat("n", 128)
	for _, name := range []string{"j", long} {
		for _, of := range []string{name, "another-job"} {
			for _, payload := range []int{0, run.MaxInline} {
				r := run.Run{ID: run.RequestID(name, 1_800_000_000_000, 7), Tenant: strings.Repeat("t", 40), State: run.Queued, Generation: 1_800_000_000_000,
					Trigger: run.ByRequest, Priority: queue.Normal, Created: 1_800_000_000_000, Payload: run.Ref{Inline: []byte(strings.Repeat("p", payload))}}
				why := run.Why{Code: run.WhyOverlap, Gate: "job:" + of, Policy: string(job.OverlapSkip)}
				for n := range run.MaxInTheWay {
					why.InTheWay = append(why.InTheWay, run.RequestID(of, 1_800_000_000_000, uint64(n)).String())
				}
				r = r.Overlapping(why, false, 1_800_000_000_500, 24*time.Hour)
				op, err := r.Item(1)
				if err != nil {
					t.Fatal(err)
				}
				if size := dynamoSize(op, 1); size > 1024 {
					t.Errorf("a run of %.10s in the way of %.10s with %d bytes of payload takes %d bytes", of, name, payload, size)
				}
				back, _, err := run.FromItem(r.Tenant, r.ID, store.Item{Key: op.Key, Version: 1, Value: op.Value})
				if err != nil {
					t.Fatal(err)
				}
				kept := len(back.Why.InTheWay)
				if want := why.InTheWay[:max(1, kept)]; !reflect.DeepEqual(back.Why.InTheWay, want) || back.Why.Gate != why.Gate || back.Why.Code != why.Code {
					t.Errorf("stored as %+v, want the first of %+v", back.Why, why)
				}
				if name == of && payload == 0 && kept != run.MaxInTheWay && len(name) < 100 {
					t.Errorf("%d runs were kept of %d, though there was room", kept, run.MaxInTheWay)
				}
				if why.InTheWay[0] != run.RequestID(of, 1_800_000_000_000, 0).String() {
					t.Errorf("the caller's own was changed: %s", why.InTheWay[0])
				}
			}
		}
	}
}
