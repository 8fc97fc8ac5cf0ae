package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestTheCalendarOfAJob(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		begun := time.Now()
		s.send("PUT", "/v1/jobs/well", strings.Replace(echo, "{", `{"schedule": {"cron": "0 12 * * *", "timezone": "Europe/Berlin"}, `, 1)).is(201)
		s.send("PUT", "/v1/jobs/ill", strings.Replace(echo, "echo", "fail", 1)).is(201)
		for range 3 {
			s.send("POST", "/v1/jobs/well/runs", `{}`).is(202)
			s.send("POST", "/v1/jobs/ill/runs", `{}`).is(202)
		}
		s.send("POST", "/v1/jobs/ill/runs", `{"delay": "48h"}`).is(202)
		settle()
		day := func(ahead int, zone string) string {
			where, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			return begun.In(where).AddDate(0, 0, ahead).Format(time.DateOnly)
		}
		got := into[wire.JobCalendar](s.send("GET", "/v1/jobs/well/calendar?to="+day(6, "Europe/Berlin"), "").is(200))
		if got.Timezone != "Europe/Berlin" || len(got.Days) != 52*7+1 || !got.CountedFrom.IsZero() || !got.FiresTo.IsZero() {
			t.Fatalf("%s, %d days, counted from %s, fires to %s", got.Timezone, len(got.Days), got.CountedFrom, got.FiresTo)
		}
		fires := 0
		for i, d := range got.Days {
			if i > 0 && !d.From.Equal(got.Days[i-1].To) {
				t.Errorf("%s does not begin where the day before ends", d.Date)
			}
			fires += d.Fires
			if today := d.Date == day(0, "Europe/Berlin"); d.Runs["succeeded"] != map[bool]int{true: 3, false: 0}[today] {
				t.Errorf("%s: %v", d.Date, d.Runs)
			}
		}
		if fires < 6 || fires > 7 || got.Days[364].Fires != 1 {
			t.Errorf("%d fires to come within the week", fires)
		}
		if kept := begun.Sub(got.KeptFrom).Round(time.Hour); kept != 30*24*time.Hour {
			t.Errorf("kept for %s", kept)
		}
		ill := into[wire.JobCalendar](s.send("GET", fmt.Sprintf("/v1/jobs/ill/calendar?from=%s&to=%s", day(0, "UTC"), day(2, "UTC")), "").is(200))
		if ill.Timezone != "UTC" || len(ill.Days) != 3 || ill.Days[0].Runs["failed"] != 3 || ill.Days[2].Runs["scheduled"] != 1 {
			t.Errorf("got %+v", ill)
		}
		s.send("POST", "/v1/jobs/well/pause", `{}`).is(200)
		paused := into[wire.JobCalendar](s.send("GET", "/v1/jobs/well/calendar?timezone=UTC&from="+day(1, "UTC")+"&to="+day(3, "UTC"), "").is(200))
		if len(paused.Days) != 3 || paused.Timezone != "UTC" || paused.Days[1].Fires != 0 {
			t.Errorf("of a paused job: %+v", paused)
		}
	})
}

func TestACalendarRefusesWhatIsWrong(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", echo).is(201)
	s.send("GET", "/v1/jobs/nobody/calendar", "").refused(404, "job_not_found")
	s.send("GET", "/v1/jobs/a/calendar", "", s.of("acme")...).refused(404, "job_not_found")
	for query, field := range map[string]string{
		"from=yesterday": "from", "to=2026-2-1": "to", "to=2026-02-30": "to", "from=2026-13-01": "from", "from=1969-12-31": "from", "to=1969-12-31": "to",
		"from=2026-01-02&to=2026-01-01": "from", "from=2025-01-01&to=2026-01-07": "from", "timezone=Europe/Nowhere": "timezone", "timezone=europe/berlin": "timezone",
		"to=9999-12-31": "to", "timezone=": "timezone", "zone=UTC": "zone", "from=2026-01-01T00:00:00Z": "from",
	} {
		r := s.send("GET", "/v1/jobs/a/calendar?"+query, "")
		if !strings.Contains(string(r.body), `"`+field+`"`) || r.status != 400 && r.status != 422 {
			t.Errorf("%s: %d %s, want %s refused", query, r.status, r.body, field)
		}
	}
	for _, query := range []string{"from=2026-01-01&to=2027-01-06", "from=2026-01-01&to=2026-01-01", "from=1970-01-01&to=1970-01-02&timezone=Asia/Tokyo", "from=9999-12-29&to=9999-12-30&timezone=Etc/GMT%2B12"} {
		s.send("GET", "/v1/jobs/a/calendar?"+query, "").is(200)
	}
}

func TestTheGenerationsOfAJob(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		time.Sleep(time.Minute)
		s.send("PUT", "/v1/jobs/a", strings.Replace(echo, "{", `{"description": "second", `, 1)).is(200)
		time.Sleep(time.Minute)
		tag := s.send("POST", "/v1/jobs/a/pause", `{"reason": "moves"}`).is(200).header.Get("ETag")
		list := func(name, query string) wire.GenerationPage {
			t.Helper()
			return into[wire.GenerationPage](s.send("GET", "/v1/jobs/"+name+"/generations"+query, "").is(200))
		}
		got := list("a", "").Items
		if len(got) != 3 || got[0].ETag != tag || !got[0].To.IsZero() || !got[0].Definition.Paused || got[1].Definition.Description != "second" || got[1].Definition.Paused || got[2].Definition.Description != "" {
			t.Fatalf("got %+v", got)
		}
		for i, g := range got[1:] {
			if !g.To.Equal(got[i].From) || g.To.Sub(g.From) != time.Minute {
				t.Errorf("generation %d stood from %s to %s", g.Generation, g.From, g.To)
			}
		}
		// What stands, and what was kept, is what was put: it may be put again as it is.
		first := list("a", "?limit=1")
		if len(first.Items) != 1 || first.Next == "" {
			t.Fatalf("a page of one: %+v", first)
		}
		rest := list("a", "?limit=2&cursor="+url.QueryEscape(first.Next))
		if len(rest.Items) != 2 || rest.Next != "" || rest.Items[0].Generation != got[1].Generation {
			t.Errorf("the second page: %+v", rest)
		}
		s.send("DELETE", "/v1/jobs/a", "").is(204)
		gone := list("a", "").Items
		if len(gone) != 4 || !gone[0].Deleted || gone[0].Definition != nil || gone[1].Generation != got[0].Generation || gone[1].To.IsZero() {
			t.Errorf("of a deleted job: %+v", gone)
		}
		time.Sleep(time.Minute)
		s.send("PUT", "/v1/jobs/a", echo).is(201)
		if again := list("a", "").Items; len(again) != 5 || again[0].Deleted || !again[1].Deleted || again[1].To.Sub(again[1].From).Round(time.Second) != time.Minute {
			t.Errorf("of one that was made again: %+v", again)
		}
		s.send("GET", "/v1/jobs/nobody/generations", "").refused(404, "job_not_found")
		s.send("GET", "/v1/jobs/a/generations", "", s.of("acme")...).refused(404, "job_not_found")
		for _, cursor := range []string{"x", first.Next + "x", "MWE"} {
			s.send("GET", "/v1/jobs/a/generations?cursor="+cursor, "").refused(422, "invalid")
		}
	})
}

func TestTheLoadOfTheSchedule(t *testing.T) {
	s := start(t, 0, nil)
	put := func(name, spec string) {
		t.Helper()
		s.send("PUT", "/v1/jobs/"+name, strings.Replace(echo, "{", "{"+spec, 1)).is(201)
	}
	for i := range 7 {
		put(fmt.Sprint("nine-", i), `"schedule": {"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, `)
	}
	put("often", `"schedule": {"every": "10m"}, `)
	put("held", `"schedule": {"every": "10m"}, "paused": true, `)
	put("asked", ``)
	load := func(query string) wire.ScheduleLoad {
		t.Helper()
		return into[wire.ScheduleLoad](s.send("GET", "/v1/schedule/load"+query, "").is(200))
	}
	// 09:00 in Berlin is 08:00 UTC that Friday and 07:00 from the Sunday on.
	got := load("?from=2099-03-27T00:00:30Z&to=2099-03-30T00:00:00Z")
	if got.From.Second() != 0 || !got.CountedTo.Equal(got.To) || got.Step != 3600 || len(got.Fires) != 72 || got.Total != 72*6+21 || got.Jobs != 8 || got.Paused != 1 || got.MoreJobs {
		t.Errorf("got %+v", got)
	}
	for hour, n := range got.Fires {
		if want := map[bool]int{true: 13, false: 6}[hour == 8 || hour == 24+8 || hour == 48+7]; n != want {
			t.Errorf("hour %d: %d fires, want %d", hour, n, want)
		}
	}
	if p := got.Peak; p == nil || p.Fires != 13 || p.At.Hour() != 8 || len(p.Jobs) != 5 || p.Jobs[0] != (wire.JobShare{Job: "often", Fires: 6}) || p.Jobs[1].Job != "nine-0" || p.MoreJobs != 3 {
		t.Errorf("peak %+v", p)
	}
	if len(got.Minutes) != 60 || got.Minutes[0] != 72+21 || got.Minutes[10] != 72 || got.Minutes[5] != 0 {
		t.Errorf("by minute %v", got.Minutes)
	}
	if got := load(""); got.Step != 3600 || len(got.Fires) != 168 {
		t.Errorf("a week: %d steps of %d s", len(got.Fires), got.Step)
	}
	if got := load("?from=2099-03-27T00:00:00Z&to=2099-03-27T06:00:00Z"); got.Step != 60 || len(got.Fires) != 360 {
		t.Errorf("six hours: %d steps of %d s", len(got.Fires), got.Step)
	}
	// A begun minute more is none, as for counts.
	for to, want := range map[string]int{"06:00:59": 60, "06:01:00": 3600} {
		const from = "?from=2099-03-27T00:00:00Z&to=2099-03-27T"
		counts := into[wire.Stats](s.send("GET", "/v1/stats"+from+to+"Z", "").is(200))
		if got := load(from + to + "Z"); got.Step != want || counts.StepSeconds != want || !got.To.Equal(counts.To) {
			t.Errorf("to %s: steps of %d s to %s, counts of %d s to %s; want %d s", to, got.Step, got.To, counts.StepSeconds, counts.To, want)
		}
	}
	if got := load("?from=2099-03-27T00:00:00Z&to=2099-03-27T01:00:01Z&step=15m"); len(got.Fires) != 5 || got.To.Minute() != 15 {
		t.Errorf("what does not end with a step: %d steps, to %s", len(got.Fires), got.To)
	}
	other := into[wire.ScheduleLoad](s.send("GET", "/v1/schedule/load", "", s.of("acme")...).is(200))
	if other.Total != 0 || other.Jobs != 0 || other.Paused != 0 || other.Peak != nil {
		t.Errorf("another tenant sees %+v", other)
	}
	for query, field := range map[string]string{
		"from=tomorrow": "from", "step=1": "step", "step=90s": "step", "step=-1h": "step", "step=30s": "step", "step=2d": "step", "step=1m": "step",
		"from=2099-01-02T00:00:00Z&to=2099-01-02T00:00:00Z": "to", "from=2099-01-02T00:00:00Z&to=2099-01-01T00:00:00Z": "to",
		"from=2099-01-01T00:00:00Z&to=2099-02-01T00:00:01Z": "to", "until=x": "until", "from=9999-12-31T00:00:00Z": "to",
	} {
		r := s.send("GET", "/v1/schedule/load?"+query, "")
		if !strings.Contains(string(r.body), `"`+field+`"`) || r.status != 400 && r.status != 422 {
			t.Errorf("%s: %d %s, want %s refused", query, r.status, r.body, field)
		}
	}
}
