package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestDeadLettersAreGroupedByTheirErrors(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		for i := range 12 {
			s.send("PUT", fmt.Sprintf("/v1/jobs/j%02d", i), strings.Replace(echo, "echo", "fail", 1)).is(201)
			s.send("POST", fmt.Sprintf("/v1/jobs/j%02d/runs", i), `{}`).is(202)
		}
		settle()
		groups := into[wire.DeadLetterGroups](s.send("GET", "/v1/dead-letters/groups", "").is(200))
		if len(groups.Items) != 1 || groups.LookedAt != 12 || groups.More || groups.MoreGroups != 0 || groups.Since.IsZero() {
			t.Fatalf("got %+v, want one group of all", groups)
		}
		g := groups.Items[0]
		if g.Pattern != "handler: no such account" || g.Kind != "handler" || g.Sample != g.Pattern || g.Count != 12 || g.JobCount != 12 || len(g.Jobs) != 10 || g.FirstAt.IsZero() || g.LastAt.Before(g.FirstAt) {
			t.Errorf("got %+v", g)
		}
		s.send("GET", "/v1/runs/"+g.Run, "").is(200)
		query := "?pattern=" + url.QueryEscape(g.Pattern)
		if page := into[wire.DeadLetterPage](s.send("GET", "/v1/dead-letters"+query, "").is(200)); len(page.Items) != 12 {
			t.Errorf("the list has %d of the group, want all 12", len(page.Items))
		}
		if page := into[wire.DeadLetterPage](s.send("GET", "/v1/dead-letters?pattern=no+such+account", "").is(200)); len(page.Items) != 0 {
			t.Errorf("a part of a pattern chooses %d letters, want none", len(page.Items))
		}
		dry := into[wire.BulkVerdicts](s.send("POST", "/v1/dead-letters/redrive", fmt.Sprintf(`{"matching": {"pattern": %q}, "dry_run": true}`, g.Pattern)).is(200))
		if dry.Count != 12 {
			t.Errorf("a redrive of the group counts %d, want 12", dry.Count)
		}
		asked := fmt.Sprintf(`{"runs": [%q], "ended_before": "2000-01-01T00:00:00Z"}`, g.Run)
		if got := into[wire.BulkVerdicts](s.send("POST", "/v1/dead-letters/redrive", asked).is(200)); got.Count != 0 || got.Items[0].Problem.Code != "precondition_failed" {
			t.Errorf("a redrive of what ended later: %+v", got)
		}
		if got := into[wire.DeadLetterGroups](s.send("GET", "/v1/dead-letters/groups?job=j01", "").is(200)); len(got.Items) != 1 || got.Items[0].Count != 1 {
			t.Errorf("of one job: %+v", got)
		}
		if got := s.send("GET", "/v1/dead-letters/groups?job=nobody", "").is(200); !strings.HasPrefix(string(got.body), `{"items":[]`) {
			t.Errorf("of nothing: %s, want an empty list", got.body)
		}
		s.send("GET", "/v1/dead-letters/groups?limit=5", "").refused(400, "malformed")
		if other := into[wire.DeadLetterGroups](s.send("GET", "/v1/dead-letters/groups", "", s.of("acme")...).is(200)); len(other.Items) != 0 || other.LookedAt != 0 {
			t.Errorf("another tenant is told of %+v", other)
		}
	})
}

// However many causes there are, the answer holds the largest groups, and says how many it leaves out.
func TestDeadLetterGroupsAreBounded(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "echo", "failing", 1)).is(201)
		var runs []string
		for i := range 230 {
			word := strings.Map(func(r rune) rune { return 'g' + r - '0' }, fmt.Sprintf("%04d", i)) // letters, since digits are no part of a pattern
			if i < 20 {
				word = "often"
			}
			runs = append(runs, fmt.Sprintf(`{"job": "a", "payload": {"error": "%s %s"}}`, word, map[bool]string{true: "even", false: "odd"}[i%2 == 0]))
		}
		s.send("POST", "/v1/runs/batch", `{"runs": [`+strings.Join(runs, ",")+`]}`).is(200)
		settle()
		got := into[wire.DeadLetterGroups](s.send("GET", "/v1/dead-letters/groups", "").is(200))
		if len(got.Items) != 200 || got.MoreGroups != 12 || got.LookedAt != 230 || got.Items[0].Count != 10 || got.Items[199].Count != 1 {
			t.Errorf("%d groups, %d left out, %d letters, the first of %d; want 200, 12, 230 and 10", len(got.Items), got.MoreGroups, got.LookedAt, got.Items[0].Count)
		}
	})
}
