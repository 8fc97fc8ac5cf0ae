package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What workers elsewhere say of themselves is remembered, and thousands wait at once.
func TestP11_WhatAWorkerSaysOfItselfIsSmall(t *testing.T) {
	s := start(t, 0, nil)
	take := `{"queue": "far", "worker": "w", "max": 1, "labels": {%s}}`
	s.send("POST", "/v1/work/take", fmt.Sprintf(take, `"zone": "eu"`)).is(200)
	for name, labels := range map[string]string{
		"long value": `"zone": "` + strings.Repeat("x", 129) + `"`,
		"long name":  `"` + strings.Repeat("x", 129) + `": ""`,
		"odd name":   `"\u001b": ""`,
		"many":       strings.TrimSuffix(strings.Repeat(`"l%d": "",`, 17), ","),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "many" {
				labels = fmt.Sprintf(labels, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
			}
			status, code := 422, "invalid"
			if name == "many" { // which the document says
				status, code = 400, "malformed"
			}
			s.send("POST", "/v1/work/take", fmt.Sprintf(take, labels)).refused(status, code)
		})
	}
	most := `"` + strings.Repeat(`h","`, 999) + `h"`
	most = strings.ReplaceAll(most, "h", strings.Repeat("h", 128))
	handlers := `{"queue": "far", "worker": "w", "max": 1, "handlers": [` + most + `]}`
	s.send("POST", "/v1/work/take", handlers).is(200)
	s.send("POST", "/v1/work/take", handlers+strings.Repeat(" ", 40<<10)).refused(413, "too_large")
}

// A worker's words are foreign ones: they come to logs and terminals, as those of targets do.
func TestWhatAWorkerTellsIsOneLine(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"queue": "far", "target": {"http": {"url": "HTTPS://example.org/"}}, "retry": {"max_attempts": 1}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)).ID
		offer := into[wire.OfferList](s.send("POST", "/v1/work/take", `{"queue": "far", "worker": "w", "max": 1, "wait": "5s", "http": true}`).is(200)).Items[0]
		started := into[wire.WorkTask](s.send("POST", "/v1/work/start", fmt.Sprintf(`{"run": %q, "ticket": %q, "worker": "w", "start": "1"}`, id, offer.Ticket)).is(200))
		end := fmt.Sprintf(`{"run": %q, "ticket": %q, "worker": "w", "start": "1", "fence": %d, "outcome": "failed", "failure": {"kind": "%%s", "message": "no\u001b[2J\nroom"}}`,
			id, started.Ticket, started.Fence)
		s.send("POST", "/v1/work/finish", fmt.Sprintf(end, `\u001b`)).refused(400, "malformed")
		s.send("POST", "/v1/work/finish", fmt.Sprintf(end, "exit")).is(200)
		if shown := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)); shown.Attempts[0].Error != "exit: no [2J room" {
			t.Errorf("the attempt's error is %q", shown.Attempts[0].Error)
		}
	})
}

// A handler's code comes with its failure.
func TestAWorkerTellsFailuresOfHandlersApart(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/a", `{"queue": "far", "target": {"handler": {"name": "h"}}, "retry": {"max_attempts": 1}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/a/runs", `{}`).is(202)).ID
		offer := into[wire.OfferList](s.send("POST", "/v1/work/take", `{"queue": "far", "worker": "w", "max": 1, "wait": "5s", "handlers": ["h"]}`).is(200)).Items[0]
		started := into[wire.WorkTask](s.send("POST", "/v1/work/start", fmt.Sprintf(`{"run": %q, "ticket": %q, "worker": "w", "start": "1"}`, id, offer.Ticket)).is(200))
		end := fmt.Sprintf(`{"run": %q, "ticket": %q, "worker": "w", "start": "1", "fence": %d, "outcome": "failed", "failure": {"kind": "handler", "code": "%%s", "message": "gone"}}`,
			id, started.Ticket, started.Fence)
		s.send("POST", "/v1/work/finish", fmt.Sprintf(end, "no stock")).refused(400, "malformed")
		s.send("POST", "/v1/work/finish", fmt.Sprintf(end, "no_stock")).is(200)
		if shown := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)); shown.Attempts[0].Error != "handler:no_stock: gone" {
			t.Errorf("the attempt's error is %q", shown.Attempts[0].Error)
		}
	})
}

// A server whose clock is off hands out nothing. That is no mistake of Belfry's, and over when the clock is set.
func TestP3_Fault07_AWorkerElsewhereHearsOfAClockThatIsOff(t *testing.T) {
	s := start(t, 0, nil)
	const take = `{"queue": "far", "worker": "w", "max": 1, "http": true}`
	s.store.skew = time.Hour
	r := s.send("POST", "/v1/work/take", take)
	r.refused(503, "clock_skewed")
	if r.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After: %q", r.header.Get("Retry-After"))
	}
	s.store.skew = 0
	s.send("POST", "/v1/work/take", take).is(200)
}
