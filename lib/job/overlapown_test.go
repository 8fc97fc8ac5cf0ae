package job_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// What a request brings, by what its job says: the overlap that holds for the run, or what is refused.
func TestOwnOverlap(t *testing.T) {
	five := 5
	of := func(p job.OverlapPolicy, limit int, most *int) job.Overlap {
		return job.Overlap{Policy: p, Limit: limit, MaxWaiting: most, Key: "${ .job }"}
	}
	strict := job.Overlap{Policy: job.OverlapStrict, Limit: 1, MaxWaiting: &five, Since: 7}
	for name, row := range map[string]struct {
		own     job.OverlapPolicy
		job     job.Overlap
		want    job.Overlap
		refused string // a part of what would be right
	}{
		"nothing":                               {own: "", job: of("queue", 3, &five), want: of("queue", 3, &five)},
		"nothing, of a job that bounds nothing": {},
		"allow":                                 {own: "allow", job: of("queue", 3, &five)},
		"allow, of a job that bounds nothing":   {own: "allow"},
		"allow, of one that bounds allow":       {own: "allow", job: of("allow", 3, nil)},
		"skip":                                  {own: "skip", job: of("queue", 3, &five), want: of("skip", 3, nil)},
		"queue":                                 {own: "queue", job: of("allow", 3, &five), want: of("queue", 3, &five)},
		"queue, of a job without a bound of its line": {own: "queue", job: of("skip", 2, nil), want: of("queue", 2, nil)},
		"queue_one":                            {own: "queue_one", job: of("queue", 3, &five), want: of("queue_one", 3, nil)},
		"queue_latest":                         {own: "queue_latest", job: of("queue", 3, &five), want: of("queue_latest", 3, nil)},
		"cancel":                               {own: "cancel", job: of("queue", 3, &five), want: of("cancel", 3, nil)},
		"replace":                              {own: "replace", job: of("skip", 3, nil), want: of("replace", 3, nil)},
		"strict, of a strict job":              {own: "strict", job: strict, want: strict},
		"queue, of a strict job":               {own: "queue", job: strict, want: job.Overlap{Policy: "queue", Limit: 1, MaxWaiting: &five, Since: 7}},
		"strict, of another job":               {own: "strict", job: of("queue", 1, nil), refused: "strict is of a whole line, and the job's own policy is queue"},
		"skip, of a job that bounds nothing":   {own: "skip", refused: "the job has no overlap policy"},
		"strict, of a job that bounds nothing": {own: "strict", refused: "the job has no overlap policy"},
		"none that there is":                   {own: "forbid", job: of("queue", 1, nil), refused: "allow, skip, queue, queue_one, queue_latest, cancel or replace"},
	} {
		own := job.OwnOverlap{Policy: row.own}
		err := own.Fits(row.job)
		if row.refused != "" {
			if wrong := invalid.All(err); len(wrong) != 1 || wrong[0].Field != "overlap" || !strings.Contains(wrong[0].Got, string(row.own)) || !strings.Contains(wrong[0].Want, row.refused) {
				t.Errorf("%s: %v, want %q", name, err, row.refused)
			}
			continue
		}
		if got := row.job.By(own.Kept()); err != nil || got != row.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, row.want)
		}
	}
	if strict.By("queue").StrictSince() != 0 || strict.By("strict") != strict || strict.By("newer") != strict {
		t.Error("what is stored of another version changes what a job says")
	}
}

// Records hold the numbers, so they stay. One that this version does not know is kept, and means nothing to a job.
func TestNumbersOfOwnPolicies(t *testing.T) {
	for number, policy := range []job.OverlapPolicy{"", "allow", "skip", "queue", "queue_one", "queue_latest", "cancel", "replace", "strict"} {
		if own := job.OwnPolicy(number); policy.Own() != own || own.Policy() != policy || own.String() != string(policy) {
			t.Errorf("%q is number %d, and number %d is %q", policy, policy.Own(), number, own)
		}
	}
	bounded := job.Overlap{Policy: job.OverlapQueue, Limit: 1}
	if newer := job.OwnPolicy(200); newer.String() != "200" || bounded.By(newer.Policy()) != bounded {
		t.Errorf("one of a newer version is %q", newer)
	}
}

func TestOwnOverlapInJSON(t *testing.T) {
	for text, want := range map[string]job.OverlapPolicy{`"skip"`: "skip", `{"policy": "allow"}`: "allow", `"any"`: "any"} {
		var own job.OwnOverlap
		if err := json.Unmarshal([]byte(text), &own); err != nil || own.Policy != want {
			t.Errorf("%s: %q, %v", text, own.Policy, err)
		}
		if shown, err := json.Marshal(own); err != nil || string(shown) != `"`+string(want)+`"` {
			t.Errorf("%s is shown as %s, %v", text, shown, err)
		}
	}
	for _, text := range []string{`5`, `["skip"]`, `{"policy": "skip", "limit": 1}`, `{"policy": 1}`} {
		var own job.OwnOverlap
		if err := json.Unmarshal([]byte(text), &own); err == nil || !strings.Contains(err.Error(), `{"policy": "skip"}`) {
			t.Errorf("%s: %+v, %v", text, own, err)
		}
	}
}
