package api_test

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestTheFiresOfAJob(t *testing.T) {
	s := start(t, 0, nil)
	put := func(name, spec string) {
		t.Helper()
		s.send("PUT", "/v1/jobs/"+name, strings.Replace(echo, "{", "{"+spec, 1)).is(201)
	}
	put("cron", `"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "end": "2099-01-01T00:00:00Z"}, `)
	put("every", `"schedule": {"every": "1h", "phase": "5m"}, `)
	put("once", `"schedule": {"at": "2099-06-01T00:00:00Z"}, `)
	put("held", `"schedule": {"every": "1h"}, "paused": true, `)
	put("asked", ``)
	fires := func(path string) wire.JobFires {
		t.Helper()
		return into[wire.JobFires](s.send("GET", "/v1/jobs/"+path, "").is(200))
	}
	if got := fires("cron/fires?from=2026-10-24T12:00:00Z&count=2"); got.Idle != "" || got.Timezone != "Europe/Berlin" || !strings.HasPrefix(got.Description, "At 02:30, Europe/Berlin") ||
		len(got.Fires) != 2 || got.Fires[0].Mark != "first_of_two" || got.Fires[0].Local.Format("15:04Z07:00") != "02:30+02:00" || got.Fires[1].Mark != "" {
		t.Errorf("a cron: %+v", got)
	}
	if got := fires("cron/fires?from=2098-12-29T12:00:00Z"); len(got.Fires) != 2 {
		t.Errorf("a schedule that ends: %+v, want its last two", got)
	}
	if got := fires("every/fires"); len(got.Fires) != 10 || got.Fires[0].At.Minute() != 5 || got.Timezone != "" || got.Description == "" {
		t.Errorf("every: %+v", got)
	}
	if got := fires("once/fires"); len(got.Fires) != 1 || got.Idle != "" {
		t.Errorf("at: %+v", got)
	}
	if got := fires("held/fires?count=3"); len(got.Fires) != 3 || got.Idle != "paused" {
		t.Errorf("paused: %+v, want what it would do", got)
	}
	if got := s.send("GET", "/v1/jobs/asked/fires", "").is(200); strings.TrimSpace(string(got.body)) != `{"idle":"on_demand","fires":[]}` {
		t.Errorf("on demand: %s", got.body)
	}
	s.send("GET", "/v1/jobs/nobody/fires", "").refused(404, "job_not_found")
	s.send("GET", "/v1/jobs/cron/fires", "", s.of("acme")...).refused(404, "job_not_found")
	for query, field := range map[string]string{"count=0": "count", "count=101": "count", "from=yesterday": "from"} {
		r := s.send("GET", "/v1/jobs/cron/fires?"+query, "")
		if !strings.Contains(string(r.body), `"`+field+`"`) || r.status != 400 && r.status != 422 {
			t.Errorf("%s: %d %s, want %s refused", query, r.status, r.body, field)
		}
	}
}
