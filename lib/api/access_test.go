package api_test

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/changes"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// asking makes a server ask for tokens, and serve all that one can serve.
func asking(t *testing.T, more access.GateConfig) func(*api.Config) {
	return func(cfg *api.Config) {
		t.Helper()
		more.Tokens, more.Now, more.Required = cfg.Gate.Tokens, time.Now, true
		gate, err := access.NewGate(more)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Gate = gate
		everything(t)(cfg)
	}
}

// everything makes a server serve all that one can.
func everything(t *testing.T) func(*api.Config) {
	key := newKey(t)
	vault, err := secret.New(secret.Config{Store: memory.New(memory.Config{Now: time.Now}), Now: time.Now, Random: crand.Reader, NewID: rand.Uint64,
		Keys: func() (*secret.Ring, error) { return secret.ParseRing(key) }})
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg *api.Config) {
		cfg.Secrets = vault
		cfg.Simulator = simulate.Service{}
		cfg.Planner = planner
		hub := new(changes.Hub)
		hub.Close() // so that a stream of its own ends at once
		cfg.Changes = &api.Changes{Hub: hub, Complete: true}
		cfg.Backup = func(context.Context, io.Writer) error { return nil }
		cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("belfry_up 1\n")) })
	}
}

// described is an operation of the OpenAPI document.
type described struct {
	id, method, path string
	scope            access.Scope
	body             bool
}

// operations are all that the server has, those first that change the least.
func (s *server) operations(headers ...string) []described {
	s.t.Helper()
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
			RequestBody *struct{}
		}
	}
	if err := json.Unmarshal(s.send("GET", "/openapi.json", "", headers...).is(200).body, &d); err != nil {
		s.t.Fatal(err)
	}
	var all []described
	for path, methods := range d.Paths {
		for method, op := range methods {
			found := described{op.OperationID, strings.ToUpper(method), path, access.Open, op.RequestBody != nil}
			if len(op.Security) > 0 {
				found.scope = access.Scope(op.Security[0]["token"][0])
			}
			all = append(all, found)
		}
	}
	order := []string{"GET", "DELETE", "POST", "PUT", "PATCH"}
	slices.SortFunc(all, func(a, b described) int {
		if a.method != b.method {
			return slices.Index(order, a.method) - slices.Index(order, b.method)
		}
		return strings.Compare(a.id, b.id)
	})
	return all
}

var parameter = regexp.MustCompile(`\{[a-z_]+\}`)

// Every operation, for callers with no token and with each scope.
func TestEveryOperationAsksForItsScopeAndNoOther(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	tokens := map[access.Scope]string{}
	for _, scope := range access.Scopes {
		tokens[scope] = s.token("default", scope)
	}
	all := s.operations(bearing(tokens[access.Admin])...)
	if len(all) < 25 {
		t.Fatalf("only %d operations were found", len(all))
	}
	all = append(all, described{"openapi", "GET", "/openapi.json", access.Read, false}, described{"metrics", "GET", "/metrics", access.Read, false})
	nowhere := s.send("GET", "/v1/nothing/of/the/kind", "")
	nowhere.refused(401, "unauthenticated")
	for _, op := range all {
		path := parameter.ReplaceAllString(op.path, "0123456789abcdef")
		body := ""
		if op.body {
			body = "[]" // which no operation takes: whoever gets so far is told that it is malformed
		}
		stranger := s.send(op.method, path, body)
		if op.scope == access.Open {
			stranger.is(200)
			continue
		}
		stranger.refused(401, "unauthenticated")
		if string(stranger.body) != string(nowhere.body) || stranger.header.Get("WWW-Authenticate") != `Bearer realm="belfry"` {
			t.Errorf("%s tells a stranger %s %q, want what a path that is not there tells: %s", op.id, stranger.body,
				stranger.header.Get("WWW-Authenticate"), nowhere.body)
		}
		for held, token := range tokens {
			r := s.send(op.method, path, body, bearing(token)...)
			if access.Grants([]access.Scope{held}, op.scope) {
				if r.status == 401 || r.status == 403 {
					t.Errorf("%s asks for %s; with %s: %d %s", op.id, op.scope, held, r.status, r.body)
				}
				continue
			}
			r.refused(403, "forbidden")
			if !strings.Contains(string(r.body), "asks for "+string(op.scope)) || !strings.Contains(r.header.Get("WWW-Authenticate"), `scope="`+string(op.scope)+`"`) {
				t.Errorf("%s with %s: %s %q does not name the scope %s", op.id, held, r.body, r.header.Get("WWW-Authenticate"), op.scope)
			}
		}
	}
	for _, method := range []string{"OPTIONS", "HEAD", "PATCH"} {
		s.send(method, "/v1/jobs", "").is(401)
	}
}

func TestAWrongTokenIsNoToken(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	good := s.token("default", access.Admin)
	s.send("GET", "/v1/jobs", "", "Authorization", "Bearer "+good).is(200)
	s.send("GET", "/v1/jobs", "", "Authorization", "bearer  "+good).is(200)
	for _, header := range []string{good, "Bearer", "Bearer ", "Basic " + good, "Bearer " + good + "x", "Bearer " + good[:len(good)-1] + "é", "Bearer x y"} {
		s.send("GET", "/v1/jobs", "", "Authorization", header).refused(401, "unauthenticated")
	}
	r := s.send("GET", "/v1/jobs", "", "Authorization", "Bearer x")
	if got := r.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) {
		t.Errorf("WWW-Authenticate %q, want it to say that the token is wrong", got)
	}
	two := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1/v1/jobs", nil)
	two.Header["Authorization"] = []string{"Bearer " + good, "Bearer " + good}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, two)
	if w.Code != 401 {
		t.Errorf("two tokens: %d, want 401", w.Code)
	}
}

func TestTokensAreMadeListedAndRevoked(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	admin := bearing(s.token("acme", access.Admin))
	r := s.send("POST", "/v1/tokens", `{"name": "deploys", "scopes": ["write"], "expires_in": "90d"}`, admin...).is(201)
	made := into[wire.NewToken](r)
	if made.Tenant != "acme" || made.Name != "deploys" || !slices.Equal(made.Scopes, []string{"write"}) || made.ExpiresAt.Sub(made.CreatedAt).Round(time.Hour) != 90*24*time.Hour {
		t.Errorf("made %+v", made)
	}
	s.send("PUT", "/v1/jobs/a", echo, bearing(made.Secret)...).is(201)
	list := s.send("GET", "/v1/tokens", "", admin...).is(200)
	if page := into[wire.TokenPage](list); len(page.Items) != 2 || strings.Contains(string(list.body), made.Secret) {
		t.Errorf("listed %s, want both tokens and no secret", list.body)
	}
	if page := into[wire.TokenPage](s.send("GET", "/v1/tokens?limit=1", "", admin...).is(200)); len(page.Items) != 1 || page.Next == "" {
		t.Errorf("a page of one: %+v", page)
	}
	s.send("DELETE", "/v1/tokens/"+made.ID, "", admin...).is(204)
	s.send("PUT", "/v1/jobs/a", echo, bearing(made.Secret)...).refused(401, "unauthenticated")
	for _, token := range into[wire.TokenPage](list).Items {
		if token.ID != made.ID {
			s.send("DELETE", "/v1/tokens/"+token.ID, "", admin...).refused(409, "own_token")
		}
	}
	s.send("GET", "/v1/tokens", "", admin...).is(200)
	s.send("DELETE", "/v1/tokens/0123456789abcdef", "", admin...).refused(404, "token_not_found")
	for body, field := range map[string]string{
		`{"scopes": ["read"], "expires_in": "40000d"}`: "expires_in",
		`{"scopes": ["read", "read"]}`:                 "scopes[1]",
		`{"scopes": ["read"], "name": "\u0007"}`:       "name",
	} {
		if fields := s.send("POST", "/v1/tokens", body, admin...).refused(422, "invalid"); fields[field] == "" {
			t.Errorf("%s: fields %v, want %s", body, fields, field)
		}
	}
	for _, body := range []string{`{}`, `{"scopes": []}`, `{"scopes": ["all"]}`, `{"scopes": ["read"], "tenant": "other"}`} {
		s.send("POST", "/v1/tokens", body, admin...).refused(400, "malformed")
	}
}

// What concerns the server as a whole would tell one tenant how much the others do.
func TestP12_OnlyTheOwnerOfTheServerSeesItAsAWhole(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{}))
	for _, path := range []string{"/v1/backup", "/metrics"} {
		s.send("GET", path, "", bearing(s.token("default", access.Admin))...).is(200)
		s.send("GET", path, "", bearing(s.token("acme", access.Admin))...).refused(403, "forbidden")
	}
}

// One tenant's requests about what another one has are answered as those about what nobody has.
func TestP12_NoOperationTellsATenantOfAnother(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		ann, bob := s.of("ann"), s.of("bob")
		s.send("PUT", "/v1/jobs/canary", strings.Replace(echo, "echo", "fail", 1), ann...).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/canary/runs", `{}`, ann...).is(202)).ID
		settle()
		token := into[wire.NewToken](s.send("POST", "/v1/tokens", `{"name": "canary", "scopes": ["read"]}`, ann...).is(201))
		s.send("PUT", "/v1/secrets/canary", `{"value": "canary"}`, ann...).is(201)
		s.send("PUT", "/v1/gates/canary", `{"limit": 2}`, ann...).is(201)
		s.send("POST", "/v1/gates/canary/close", `{"reason": "canary"}`, ann...).is(200)
		watched := []string{"/v1/jobs/canary", "/v1/runs", "/v1/dead-letters", "/v1/runs/" + id, "/v1/tokens", "/v1/secrets", "/v1/gates", "/v1/gates/canary"}
		var before []string
		for _, path := range watched {
			before = append(before, string(s.send("GET", path, "", ann...).is(200).body))
		}

		theirs := map[string]string{"{job}": "canary", "{run}": id, "{token}": token.ID, "{secret}": "canary", "{queue}": "far", "{gate}": "canary"}
		nobodys := map[string]string{"{job}": "nobody", "{run}": strings.Replace(id, "canary", "nobody", 1), "{token}": "00000000" + token.ID[8:], "{secret}": "nobody", "{queue}": "nowhere", "{gate}": "nobody"}
		bodies := map[string]string{ // those of the others are {}
			"put-job":              echo,
			"put-jobs":             `{"jobs": [{"name": "{job}", "target": {"handler": {"name": "echo"}}}]}`,
			"trigger-jobs":         `{"runs": [{"job": "{job}"}]}`,
			"redrive":              `{"runs": ["{run}"]}`,
			"discard-dead-letters": `{"runs": ["{run}"]}`,
			"cancel-runs":          `{"runs": ["{run}"]}`,
			"retry-runs":           `{"runs": ["{run}"]}`,
			"pause-jobs":           `{"jobs": [{"name": "{job}"}], "reason": "r"}`,
			"resume-jobs":          `{"jobs": [{"name": "{job}"}]}`,
			"label-jobs":           `{"jobs": [{"name": "{job}"}], "set": {"a": "b"}}`,
			"delete-jobs":          `{"jobs": [{"name": "{job}"}]}`,
			"export-jobs":          `{"jobs": ["{job}"]}`,
			"list-last-runs":       `{"jobs": ["{job}"]}`,
			"create-token":         `{"scopes": ["read"]}`,
			"validate-workflow":    `{"workflow": {"steps": {"{job}": {"handler": {"name": "echo"}}}}}`,
			"simulate-workflow":    `{"workflow": {"steps": {"{job}": {"handler": {"name": "echo"}}}}, "outcomes": {"{job}": "failed"}}`,
			"put-secret":           `{"value": "x"}`,
			"put-gate":             `{"limit": 1}`,
			"take-work":            `{"queue": "{queue}", "worker": "bob-1", "max": 1, "http": true}`,
			"start-work":           `{"run": "{run}", "worker": "bob-1", "start": "a", "ticket": "x"}`,
			"leave-work":           `{"run": "{run}", "worker": "bob-1", "ticket": "x", "reason": "busy"}`,
			"renew-work":           `{"run": "{run}", "worker": "bob-1", "start": "a", "ticket": "x", "fence": 2}`,
			"show-work":            `{"run": "{run}", "worker": "bob-1", "start": "a", "ticket": "x", "fence": 2, "log": ""}`,
			"finish-work":          `{"run": "{run}", "worker": "bob-1", "start": "a", "ticket": "x", "fence": 2, "outcome": "succeeded"}`,
			"simulate":             `{"start": "2026-01-05T00:00:00Z", "jobs": {"{job}": {"target": {"handler": {"name": "echo"}}}}, "script": [{"at": "1m", "do": "trigger", "job": "{job}"}]}`,
		}
		queries := map[string]string{"preview-cron": "?expr=@daily", "plan-queue": "?workers=2&arrivals=1", "plan-capacity": "?schedules=1&runs_per_day=9", "plan-order": "?workers=2&arrivals=1"}
		// These come last: their answers hold times and IDs of what bob himself made.
		makes := []string{"create-token", "create-session", "put-secret", "put-gate", "put-job", "put-jobs"}
		ask := func(op described, names map[string]string) (int, string) {
			inside := strings.NewReplacer("{job}", names["{job}"], "{run}", names["{run}"], "{queue}", names["{queue}"])
			fill := func(text string) string {
				for name, value := range names {
					text = strings.ReplaceAll(text, name, value)
				}
				if left := parameter.FindString(text); left != "" {
					t.Fatalf("%s: say in this test what another tenant's %s is", op.id, left)
				}
				return text
			}
			body := ""
			if op.body {
				if body = bodies[op.id]; body == "" {
					body = "{}"
				}
			}
			r := s.send(op.method, fill(op.path)+queries[op.id], inside.Replace(body), bob...)
			return r.status, strings.NewReplacer(names["{run}"], "{run}", names["{token}"], "{token}", names["{job}"], "{job}", names["{queue}"], "{queue}").Replace(string(r.body))
		}
		all := s.operations(bob...)
		slices.SortStableFunc(all, func(a, b described) int { return slices.Index(makes, a.id) - slices.Index(makes, b.id) })
		for _, op := range all {
			if op.scope == access.Open {
				continue
			}
			if strings.Contains(op.path, "{gate}") { // that of a job, too
				own := func(names map[string]string) map[string]string {
					names = maps.Clone(names)
					names["{gate}"] = "job:" + names["{job}"]
					return names
				}
				status, text := ask(op, own(theirs))
				if wantStatus, want := ask(op, own(nobodys)); status != wantStatus || text != want {
					t.Errorf("%s: bob gets %d %s of the own gate of what ann has, and %d %s of what nobody has", op.id, status, text, wantStatus, want)
				}
			}
			status, text := ask(op, theirs)
			wantStatus, want := ask(op, nobodys)
			if status == 400 || status == 422 {
				t.Errorf("%s: %d %s: give it in this test a body that has a meaning", op.id, status, text)
			}
			if status != wantStatus || text != want && !slices.Contains(makes, op.id) {
				t.Errorf("%s: bob gets %d %s of what ann has, and %d %s of what nobody has", op.id, status, text, wantStatus, want)
			}
			if strings.Contains(text, "canary") || strings.Contains(text, token.ID) {
				t.Errorf("%s shows bob what ann has: %s", op.id, text)
			}
		}
		for i, path := range watched {
			if after := string(s.send("GET", path, "", ann...).is(200).body); after != before[i] {
				t.Errorf("after all that bob did ann's %s is\n%s, it was\n%s", path, after, before[i])
			}
		}
		s.send("GET", "/v1/jobs", "", bearing(token.Secret)...).is(200)
	})
}

// chosenBy has the paths of the operations that act on what a filter chooses, by their IDs.
func (s *server) chosenBy(headers ...string) map[string]string {
	s.t.Helper()
	type ref struct {
		Ref string `json:"$ref"`
	}
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string
			RequestBody struct {
				Content map[string]struct{ Schema ref }
			}
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				OneOf      []ref
			}
		}
	}
	if err := json.Unmarshal(s.send("GET", "/openapi.json", "", headers...).is(200).body, &d); err != nil {
		s.t.Fatal(err)
	}
	paths := map[string]string{}
	for at, methods := range d.Paths {
		for _, op := range methods {
			for _, content := range op.RequestBody.Content {
				for _, form := range d.Components.Schemas[path.Base(content.Schema.Ref)].OneOf {
					if d.Components.Schemas[path.Base(form.Ref)].Properties["matching"] != nil {
						paths[op.OperationID] = at
					}
				}
			}
		}
	}
	return paths
}

// Two tenants have jobs and runs of the same names and labels. What one of them counts, and does to all that match, is about its own alone.
func TestP12_NoFilterAndNoCountTellsATenantOfAnother(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		ann, bob := s.of("ann"), s.of("bob")
		def := `{"schedule": {"cron": "0 12 * * *"}, "labels": {"team": "x"}, "target": {"handler": {"name": "fail"}}}`
		made := func(name string, failed, ahead int, headers []string) {
			s.send("PUT", "/v1/jobs/"+name, def, headers...).is(201)
			for range failed {
				s.send("POST", "/v1/jobs/"+name+"/runs", `{}`, headers...).is(202)
			}
			for range ahead {
				s.send("POST", "/v1/jobs/"+name+"/runs", `{"delay": "30d"}`, headers...).is(202)
			}
		}
		made("shared", 3, 2, ann)
		made("canary", 1, 1, ann)
		made("shared", 1, 1, bob)
		s.send("PATCH", "/v1/jobs/shared", `{"description": "canary"}`, ann...).is(200)
		s.send("POST", "/v1/jobs/canary/pause", `{"reason": "canary"}`, ann...).is(200)
		time.Sleep(5 * time.Minute) // until their minute is counted

		const week = "/v1/schedule/load?from=2099-03-02T00:00:00Z&to=2099-03-09T00:00:00Z"
		watched := []string{"/v1/jobs", "/v1/runs", "/v1/dead-letters", "/v1/dead-letters/groups", "/v1/jobs/shared/generations", week}
		read := func() (shown []string) {
			for _, path := range watched {
				shown = append(shown, string(s.send("GET", path, "", ann...).is(200).body))
			}
			for _, name := range []string{"shared", "canary"} {
				shown = append(shown, fmt.Sprintf("%+v", into[wire.JobCalendar](s.send("GET", "/v1/jobs/"+name+"/calendar", "", ann...).is(200)).Days))
			}
			return append(shown, fmt.Sprintf("%+v", into[wire.Stats](s.send("GET", "/v1/stats", "", ann...).is(200)).Totals))
		}
		before := read()

		due := func(headers []string) int {
			return into[wire.Stats](s.send("GET", "/v1/stats", "", headers...).is(200)).Totals.Due
		}
		if ours, theirs := due(bob), due(ann); ours != 1 || theirs != 4 {
			t.Errorf("bob counts %d runs and ann %d, want 1 and 4", ours, theirs)
		}
		load := into[wire.ScheduleLoad](s.send("GET", week, "", bob...).is(200))
		if load.Jobs != 1 || load.Total != 7 || load.Paused != 0 || load.Peak == nil || len(load.Peak.Jobs) != 1 || load.Peak.Fires != 1 {
			t.Errorf("the load of bob's schedule is %+v, want one fire a day", load)
		}
		runs := 0
		for _, day := range into[wire.JobCalendar](s.send("GET", "/v1/jobs/shared/calendar", "", bob...).is(200)).Days {
			for _, n := range day.Runs {
				runs += n
			}
		}
		if runs != 1 {
			t.Errorf("the calendar of bob's job has %d runs, want one", runs)
		}
		if got := into[wire.GenerationPage](s.send("GET", "/v1/jobs/shared/generations", "", bob...).is(200)); len(got.Items) != 1 {
			t.Errorf("bob's job has had %d definitions, want one", len(got.Items))
		}
		if got := into[wire.DeadLetterGroups](s.send("GET", "/v1/dead-letters/groups", "", bob...).is(200)); got.LookedAt != 1 || len(got.Items) != 1 || got.Items[0].Count != 1 {
			t.Errorf("bob's dead letters are %+v, want one", got)
		}

		paths := s.chosenBy(bob...)
		for _, act := range []struct{ id, body string }{
			{"export-jobs", `{"matching": {"labels": {"team": "x"}}`},
			{"pause-jobs", `{"matching": {"labels": {"team": "x"}}, "reason": "bob"`},
			{"resume-jobs", `{"matching": {"paused": true}`},
			{"label-jobs", `{"matching": {}, "set": {"of": "bob"}`},
			{"cancel-runs", `{"matching": {"labels": {"team": "x"}}`},
			{"retry-runs", `{"matching": {"job": "shared", "error": "no such account"}`},
			{"redrive", `{"matching": {}`},
			{"discard-dead-letters", `{"matching": {"job": "shared"}`},
			{"delete-jobs", `{"matching": {}`},
		} {
			path := paths[act.id]
			if path == "" {
				t.Fatalf("%s acts on nothing that a filter chooses", act.id)
			}
			delete(paths, act.id)
			for _, more := range []string{`, "dry_run": true}`, `}`} {
				if act.id == "export-jobs" {
					more = `}`
				}
				r := s.send("POST", path, act.body+more, bob...).is(200)
				var got struct {
					Count int
					Next  string
				}
				if err := json.Unmarshal(r.body, &got); err != nil || got.Count != 1 || got.Next != "" || strings.Contains(string(r.body), "canary") {
					t.Errorf("%s%s: %s, %v; want one, which is bob's", act.body, more, r.body, err)
				}
				settle()
			}
		}
		for id := range paths {
			t.Errorf("%s acts on what a filter chooses: have it do so in this test", id)
		}
		for i, after := range read() {
			if after != before[i] {
				t.Errorf("after all that bob did ann has\n%s, she had\n%s", after, before[i])
			}
		}
	})
}

func TestP11_TooManyRequestsAreRefusedWithATime(t *testing.T) {
	s := start(t, 0, asking(t, access.GateConfig{Rate: 1, Burst: 3}))
	fast, other := bearing(s.token("default", access.Read)), bearing(s.token("default", access.Read))
	for range 3 {
		s.send("GET", "/v1/jobs", "", fast...).is(200)
	}
	r := s.send("GET", "/v1/jobs", "", fast...)
	r.refused(429, "rate_limited")
	if got := r.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q, want 1", got)
	}
	s.send("GET", "/v1/jobs", "", other...).is(200)
	for range 100 {
		s.send("GET", "/healthz", "", fast...).is(200)
		s.send("GET", "/readyz", "").is(200)
	}
}

func TestP11_RequestsBeyondTheBoundAreRefusedAndTheirPlacesGivenBack(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	gate := asking(t, access.GateConfig{Requests: 2})
	s := start(t, 0, func(cfg *api.Config) {
		gate(cfg)
		cfg.Queues = func(context.Context, string) ([]wire.Queue, error) {
			enter <- struct{}{}
			<-leave
			return nil, nil
		}
	})
	slow, other := bearing(s.token("default", access.Read)), bearing(s.token("default", access.Read))
	done := make(chan reply, 1)
	go func() { done <- s.send("GET", "/v1/queues", "", slow...) }()
	<-enter
	s.send("GET", "/v1/jobs", "", slow...).refused(429, "rate_limited") // half of the places is this token's
	s.send("GET", "/v1/jobs", "", other...).is(200)
	close(leave)
	(<-done).is(200)
	s.send("GET", "/v1/jobs", "", slow...).is(200)
}

// Whom wrong tokens count against: the one who called, or whom the proxy says it was.
func TestTheAddressOfACallerIsBelievedFromAProxyAlone(t *testing.T) {
	for _, proxied := range []bool{false, true} {
		gate := asking(t, access.GateConfig{})
		s := start(t, 0, func(cfg *api.Config) { gate(cfg); cfg.BehindProxy = proxied })
		guess := func(forwarded string) int {
			return s.send("GET", "/v1/jobs", "", "Authorization", "Bearer guess", "X-Forwarded-For", forwarded).status
		}
		for range 20 {
			if got := guess("198.51.100.1"); got != 401 {
				t.Fatalf("proxy %t: %d, want 401", proxied, got)
			}
		}
		if got := guess("198.51.100.1"); got != 429 {
			t.Errorf("proxy %t: the 21st guess gets %d, want 429", proxied, got)
		}
		// Callers can make up what stands before the last address, never the last one.
		want := map[bool]int{false: 429, true: 401}[proxied]
		if got := guess("198.51.100.2"); got != want {
			t.Errorf("proxy %t: a guess from elsewhere gets %d, want %d", proxied, got, want)
		}
		if got := guess("198.51.100.3, 198.51.100.1"); got != 429 {
			t.Errorf("proxy %t: a guess that claims to come from elsewhere gets %d, want 429", proxied, got)
		}
	}
}
