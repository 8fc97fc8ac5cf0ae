package api_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A request brings its own policy, alone and in a batch, as a name or an object; the run shows it, and so do its wait and the reason why it was skipped.
func TestG4_ARequestsOwnPolicy(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"overlap": "queue", "target": {"handler": {"name": "wait"}}}`).is(201)
		ask := func(body string) wire.Run {
			r := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", body).is(202))
			time.Sleep(time.Second)
			synctest.Wait()
			return r
		}
		stands := func(id string) wire.Run { return into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)) }
		first := ask(`{}`)
		beside := ask(`{"overlap": "allow"}`)
		waits := ask(`{"overlap": {"policy": "queue_one"}}`)
		none := ask(`{"overlap": "skip"}`)
		batch := into[wire.RunVerdicts](s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "a", "overlap": "allow"}, {"job": "a", "overlap": "strict"}, {"job": "a"}]}`).is(200))
		time.Sleep(time.Second)
		synctest.Wait()
		for id, want := range map[string][2]string{first.ID: {"running", ""}, beside.ID: {"running", "allow"}, waits.ID: {"waiting", "queue_one"}, none.ID: {"skipped", "skip"},
			batch.Items[0].ID: {"running", "allow"}, batch.Items[2].ID: {"waiting", ""}} {
			if r := stands(id); r.State != want[0] || r.Overlap != want[1] {
				t.Errorf("%s is %s, by %q; want %v", id, r.State, r.Overlap, want)
			}
		}
		if p := batch.Items[1]; p.Status != 422 || p.Problem == nil || len(p.Problem.Errors) != 1 || !strings.Contains(p.Problem.Errors[0].Message, "the job's own policy is queue") {
			t.Errorf("strict of a job that is not: %+v", p)
		}
		if why := stands(none.ID).Why; why == nil || why.Policy != "skip" || why.Code != "overlap" || why.Text != first.ID+" and "+waits.ID+" were in progress or in line (overlap: skip)" {
			t.Errorf("skipped for %+v", why)
		}
		line := into[wire.LinePage](s.send("GET", "/v1/gates/job:a/line", "").is(200)).Items
		if len(line) != 2 || line[0].ID != waits.ID || line[0].Overlap != "queue_one" || line[1].Overlap != "" {
			t.Errorf("in line: %+v", line)
		}
		if g := into[wire.Gate](s.send("GET", "/v1/gates/job:a", "").is(200)); g.InProgress != 1 || g.Policy != "queue" {
			t.Errorf("the gate counts %d in progress, under %s", g.InProgress, g.Policy)
		}
	})
}

// What a request cannot bring is refused by the name of its field.
func TestWhatARequestCannotBring(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"overlap": {"policy": "queue", "limit": 3}, `, 1)).is(201)
	s.send("PUT", "/v1/jobs/free", echo).is(201)
	const stays = "not taken of a request, which brings a policy alone: it stays as the job says"
	for _, c := range []struct {
		job, overlap string
		status       int
		field, want  string
	}{
		{"a", `{"policy": "skip", "limit": 3}`, 400, "overlap.limit", stays},
		{"a", `{"policy": "queue", "max_waiting": 3}`, 400, "overlap.max_waiting", stays},
		{"a", `{"policy": "skip", "key": "${ .job }"}`, 400, "overlap.key", stays},
		{"a", `{"policy": "skip", "max": 3}`, 400, "overlap.max", "unknown field; want policy"},
		{"a", `{}`, 400, "overlap.policy", "missing"},
		{"a", `5`, 400, "overlap", `got number, want the name of a policy, such as "skip" or "allow", or an object such as {"policy": "skip"}`},
		{"a", `null`, 400, "overlap", "got null"},
		{"a", `""`, 400, "overlap", "want one of allow, skip"},
		{"a", `"Forbid"`, 400, "overlap", "want one of allow, skip"},
		{"a", `"strict"`, 422, "overlap", "strict is of a whole line, and the job's own policy is queue"},
		{"free", `"skip"`, 422, "overlap", "the job has no overlap policy"},
		{"free", `{"policy": "cancel"}`, 422, "overlap", "the job has no overlap policy"},
	} {
		code := map[int]string{400: "malformed", 422: "invalid"}[c.status]
		if fields := s.send("POST", "/v1/jobs/"+c.job+"/runs", `{"overlap": `+c.overlap+`}`).refused(c.status, code); len(fields) != 1 || !strings.Contains(fields[c.field], c.want) {
			t.Errorf("%s: %v, want %s: %q", c.overlap, fields, c.field, c.want)
		}
		if c.status == 400 {
			if fields := s.send("POST", "/v1/runs/batch", `{"runs": [{"job": "a", "overlap": `+c.overlap+`}]}`).refused(400, code); len(fields) != 1 || !strings.Contains(fields["runs[0]."+c.field], c.want) {
				t.Errorf("%s in a batch: %v", c.overlap, fields)
			}
		}
	}
	s.send("POST", "/v1/jobs/free/runs", `{"overlap": "allow"}`).is(202)
}
