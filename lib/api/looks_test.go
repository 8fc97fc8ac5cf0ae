package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// TestAQueueShowsATenantItsOwnMessages: as they are sent ahead, ready and taken; and of others neither a message nor a number.
func TestAQueueShowsATenantItsOwnMessages(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		ann, bob := s.of("ann"), s.of("bob")
		const path = "/v1/queues/default/messages"
		look := func(of []string) wire.QueueMessages {
			t.Helper()
			return into[wire.QueueMessages](s.send("GET", path, "", of...).is(200))
		}
		trigger := func(of []string, job, body string) string {
			t.Helper()
			return into[wire.Run](s.send("POST", "/v1/jobs/"+job+"/runs", body, of...).is(202)).ID
		}
		for _, of := range [][]string{ann, bob} {
			s.send("PUT", "/v1/jobs/slow", `{"timeout": "1h", "priority": "high", "target": {"handler": {"name": "wait"}}}`, of...).is(201)
			s.send("PUT", "/v1/jobs/later", echo, of...).is(201)
		}
		nothing := look(bob)
		if len(nothing.Items) != 0 || nothing.Queue != "default" || nothing.Priorities["normal"] != (wire.Depth{}) || len(nothing.Priorities) != 3 {
			t.Fatalf("an empty queue is %+v", nothing)
		}
		began := time.Now()
		going, delayed := trigger(ann, "slow", `{}`), trigger(ann, "later", `{"delay": "10s"}`)
		settle()
		got := look(ann)
		if len(got.Items) != 2 || got.Priorities["high"] != (wire.Depth{Taken: 1}) || got.Priorities["normal"] != (wire.Depth{Delayed: 1}) {
			t.Fatalf("ann has %+v", got)
		}
		if m := got.Items[0]; m.Run != going || m.State != "taken" || m.Priority != "high" || m.TakenAt.Before(began) || !m.BackAt.After(m.TakenAt) || !m.ReadyAt.IsZero() || m.Receives != 1 || m.Step != "" {
			t.Errorf("the one that is taken is %+v", m)
		}
		if m := got.Items[1]; m.Run != delayed || m.State != "delayed" || m.Priority != "normal" || m.ReadyAt.Sub(m.NominalTime).Abs() > time.Second || !m.TakenAt.IsZero() || m.Receives != 0 {
			t.Errorf("the one that is delayed is %+v", m)
		}
		if theirs := s.send("GET", path, "", bob...).is(200); string(theirs.body) != string(s.send("GET", path, "", s.of("carol")...).is(200).body) || strings.Contains(string(theirs.body), "slow") {
			t.Errorf("bob sees %s", theirs.body)
		}
		// What has not changed is not sent again, and what is over is gone.
		tag := s.send("GET", path, "", ann...).is(200).header.Get("ETag")
		s.send("GET", path, "", append([]string{"If-None-Match", tag}, ann...)...).is(304)
		s.send("POST", "/v1/runs/"+going+"/cancel", `{}`, ann...).is(200)
		time.Sleep(20 * time.Second)
		if got = look(ann); len(got.Items) != 0 {
			t.Errorf("after all have ended ann has %+v", got)
		}
		// Of many, the first are shown and all are counted.
		for range 4 {
			trigger(ann, "later", `{"delay": "1m"}`)
		}
		if got = into[wire.QueueMessages](s.send("GET", path+"?limit=3", "", ann...).is(200)); len(got.Items) != 3 || got.Priorities["normal"].Delayed != 4 {
			t.Errorf("three of four are %+v", got)
		}
		for _, limit := range []string{"0", "101"} {
			if fields := s.send("GET", path+"?limit="+limit, "", ann...).refused(400, "malformed"); fields["limit"] == "" {
				t.Errorf("limit=%s is refused as %v", limit, fields)
			}
		}
		// A queue for the workers of another tenant is as one that is not there.
		into[wire.QueueMessages](s.send("GET", "/v1/queues/far/messages", "").is(200))
		s.send("PUT", "/v1/jobs/away", strings.Replace(echo, "{", `{"queue": "far", `, 1)).is(201)
		sent := time.Now()
		s.send("POST", "/v1/jobs/away/runs", `{}`).is(202)
		settle()
		if got = into[wire.QueueMessages](s.send("GET", "/v1/queues/far/messages", "").is(200)); len(got.Items) != 1 || got.Items[0].State != "ready" || got.Items[0].ReadyAt.Before(sent) || got.Items[0].ReadyAt.After(time.Now()) {
			t.Errorf("one that waits for a worker elsewhere is %+v", got)
		}
		far, none := s.send("GET", "/v1/queues/far/messages", "", ann...).is(404), s.send("GET", "/v1/queues/none/messages", "", ann...).is(404)
		if string(far.body) != strings.Replace(string(none.body), "none", "far", 1) || into[wire.Problem](far).Code != "no_such_queue" {
			t.Errorf("%s\n%s", far.body, none.body)
		}
	})
	sqs := start(t, 0, func(cfg *api.Config) { cfg.Look = api.LookInto[*queuelocal.Queue](nil, nil) })
	if r := sqs.send("GET", "/v1/queues/default/messages", "").is(409); into[wire.Problem](r).Code != "messages_not_listed" || !strings.Contains(string(r.body), "SQS") {
		t.Errorf("a server whose queues are in SQS answers %s", r.body)
	}
	without := start(t, 0, func(cfg *api.Config) { cfg.Look = nil })
	if r := without.send("GET", "/v1/queues/default/messages", "").is(404); into[wire.Problem](r).Code != "no_such_path" {
		t.Errorf("a server that cannot list messages answers %s", r.body)
	}
}

// TestAMessageThatCannotBeReadIsListed: with a mark, since it takes room and no worker can start it.
func TestAMessageThatCannotBeReadIsListed(t *testing.T) {
	q := queuelocal.New(queuelocal.Config{})
	if _, err := q.Send(t.Context(), queue.High, queue.Outgoing{Body: []byte("nonsense"), Group: access.DefaultTenant}); err != nil {
		t.Fatal(err)
	}
	s := start(t, 0, func(cfg *api.Config) { cfg.Look = api.LookInto(map[string]*queuelocal.Queue{"odd": q}, nil) })
	got := into[wire.QueueMessages](s.send("GET", "/v1/queues/odd/messages", "").is(200))
	if len(got.Items) != 1 || !got.Items[0].Unreadable || got.Items[0].Run != "" || got.Items[0].State != "ready" || got.Items[0].Priority != "high" {
		t.Errorf("got %+v", got)
	}
}

// TestAMessageOfAStepNamesIt: by the run of its workflow and its path.
func TestAMessageOfAStepNamesIt(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"steps": {"first": {"handler": {"name": "wait"}}}}}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{}`).is(202)).ID
		settle()
		got := into[wire.QueueMessages](s.send("GET", "/v1/queues/default/messages", "").is(200))
		if len(got.Items) != 1 || got.Items[0].Run != id || got.Items[0].Step != "first" {
			t.Errorf("got %+v", got)
		}
	})
}
