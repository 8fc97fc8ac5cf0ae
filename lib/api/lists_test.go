package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// documented is what the document says of parameters.
type documented struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Parameters  []struct {
			Name, In string
			Explode  *bool
			Schema   struct {
				Type  string
				Items struct {
					Ref string `json:"$ref"`
				}
			}
		}
	}
}

func documentOf(s *server) (d documented) {
	s.t.Helper()
	if err := json.Unmarshal(s.send("GET", "/openapi.json", "").is(200).body, &d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// Every list in a query is taken with a parameter for each entry, with commas, and as a mixture of both.
func TestListsAreTakenRepeatedAndWithCommas(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		for name, body := range map[string]string{
			"fine":  `{"target": {"handler": {"name": "echo"}}, "labels": {"team": "billing", "env": "prod", "note": "a,b=c\\"}}`,
			"bad":   `{"target": {"handler": {"name": "fail"}}, "labels": {"team": "billing", "env": "test"}}`,
			"other": `{"target": {"handler": {"name": "echo"}}}`,
		} {
			s.send("PUT", "/v1/jobs/"+name, body).is(201)
			s.send("POST", "/v1/jobs/"+name+"/runs", `{}`).is(202)
		}
		s.send("POST", "/v1/jobs/fine/runs", `{"delay": "1h"}`).is(202)
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"steps": {"fine": {"handler": {"name": "echo"}}, "bad": {"handler": {"name": "fail"}}}}}}`).is(201)
		flow := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{}`).is(202)).ID
		time.Sleep(time.Minute)

		const calling = `{"name": "fine", "target": {"handler": {"name": "echo"}}, "on": {"succeeded": {"job": "x"}, "failed": {"job": "y"}, "recovered": {"job": "z"}}}`
		bodies := map[string]string{"PUT": calling, "PATCH": calling, "POST": `{"jobs": [` + calling + `]}`} // of requests that take lists to be tried with
		entries := func(name, of string) []string {
			if name == "beside" {
				return []string{"x", "y", "z"}
			}
			if of == "of steps" {
				return []string{"succeeded", "cancelled", "pending"}
			}
			if of == "#/components/schemas/RunState" {
				return []string{"failed", "scheduled", "cancelled"}
			}
			return []string{"team=billing", "env=prod", `note=a\,b=c\`}
		}
		walked := 0
		for path, operations := range documentOf(s).Paths {
			for method, op := range operations {
				for _, p := range op.Parameters {
					if p.Schema.Type != "array" {
						continue
					}
					walked++
					if p.In != "query" || p.Explode == nil || !*p.Explode {
						t.Errorf("%s: the document does not say that clients repeat %s", op.OperationID, p.Name)
					}
					at := strings.NewReplacer("{job}", "fine", "{run}", flow).Replace(path) + "?"
					method, body := strings.ToUpper(method), bodies[strings.ToUpper(method)]
					if body != "" {
						at += "dry_run=true&"
					}
					of := p.Schema.Items.Ref
					if strings.HasSuffix(path, "/steps") {
						of = "of steps"
					}
					entries := entries(p.Name, of)
					want := s.send(method, at+url.Values{p.Name: entries}.Encode(), body).is(200)
					if !strings.Contains(string(want.body), `"fine`) {
						t.Errorf("%s finds nothing: %s", want.what, want.body)
					}
					if all := s.send(method, at, body); string(all.body) == string(want.body) && !strings.Contains(path, "{job}") {
						t.Errorf("%s chooses nothing", want.what)
					}
					one, rest := entries[0], entries[1:]
					for _, query := range []string{
						p.Name + "=" + one + "," + strings.Join(rest, ","),
						p.Name + "=" + url.QueryEscape(one+","+strings.Join(rest, ",")),
						p.Name + "=" + one + "&" + p.Name + "=" + strings.Join(rest, ","),
					} {
						if got := s.send(method, at+query, body).is(200); string(got.body) != string(want.body) {
							t.Errorf("%s: %s, want as repeated: %s", got.what, got.body, want.body)
						}
					}
				}
			}
		}
		if walked < 5 {
			t.Errorf("only %d lists found in the document", walked)
		}
		runs := into[wire.RunPage](s.send("GET", "/v1/runs?label=team=billing&state=failed,scheduled", "")).Items
		if len(runs) != 2 {
			t.Errorf("%d runs are failed or scheduled, want one of each", len(runs))
		}
	})
}

func TestWrongEntriesOfListsAreNamed(t *testing.T) {
	s := start(t, 0, nil)
	for query, field := range map[string]string{
		"state=failed,":                     "state[1]",
		"state=failed&state=gone":           "state[1]",
		"state=failed,dead&state=gone,dead": "state[2]",
		"state=":                            "state[0]",
		"label=team=a&label=team":           "label[1]",
		"label=,team=a":                     "label[0]",
	} {
		if fields := s.send("GET", "/v1/runs?"+query, "").refused(400, "malformed"); fields[field] == "" {
			t.Errorf("%s: fields %v, want %s", query, fields, field)
		}
	}
	for _, path := range []string{"/v1/runs", "/v1/jobs"} {
		for _, query := range []string{"label=team=a,team=b", "label=team=a&label=team=b"} {
			if fields := s.send("GET", path+"?"+query, "").refused(422, "invalid"); !strings.Contains(fields["label[1]"], "one value of team") {
				t.Errorf("%s: fields %v, want label[1]", query, fields)
			}
		}
		s.send("GET", path+"?label=team=a,team=a", "").is(200)
	}
}
