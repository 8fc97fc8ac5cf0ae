package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/plan"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/simulate"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// openapi is the part of the document that tests look at.
type openapi struct {
	OpenAPI    string
	Paths      map[string]map[string]operationText
	Components struct {
		Schemas map[string]json.RawMessage
	}
}

type operationText struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Schema   struct{ Pattern string }
	}
	Responses map[string]struct{ Content map[string]any }
	Security  []map[string][]string
}

// openGate lets anybody in.
func openGate(t *testing.T) *access.Gate {
	t.Helper()
	tokens, err := access.New(access.Config{Store: memory.New(memory.Config{Now: time.Now}), Now: time.Now, Random: rand.Reader, NewID: func() uint64 { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func documentText(t *testing.T) []byte {
	t.Helper()
	handler, err := New(Config{
		Control: &control.Service{}, Gate: openGate(t), Now: time.Now, Version: "1",
		Ready:     func(context.Context) []wire.Check { return nil },
		Queues:    func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers:   func(context.Context, string) ([]wire.Worker, error) { return nil, nil },
		Backup:    func(context.Context, io.Writer) error { return nil },
		Secrets:   &secret.Vault{},
		Remote:    &lease.Remote{},
		Simulator: simulate.Service{},
		Planner:   plan.Service{Store: plan.Adapter{Writes: 32}},
		Changes:   &Changes{},
		Look:      func(context.Context, string, string, int) (queue.Look, bool, error) { return queue.Look{}, false, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	return w.Body.Bytes()
}

func document(t *testing.T) openapi {
	t.Helper()
	var d openapi
	if err := json.Unmarshal(documentText(t), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocumentHoldsTheWholeSurface(t *testing.T) {
	d := document(t)
	if !strings.HasPrefix(d.OpenAPI, "3.1") {
		t.Errorf("OpenAPI %s, want 3.1", d.OpenAPI)
	}
	want := `PUT /v1/jobs/{job}, PATCH /v1/jobs/{job}, GET /v1/jobs/{job}, GET /v1/jobs/{job}/fires, GET /v1/jobs/{job}/calendar, GET /v1/jobs/{job}/generations, GET /v1/schedule/load, DELETE /v1/jobs/{job}, GET /v1/jobs, POST /v1/jobs/batch, POST /v1/jobs/batch/pause, POST /v1/jobs/batch/resume, POST /v1/jobs/batch/delete,
		POST /v1/jobs/batch/label, POST /v1/jobs/batch/export, POST /v1/jobs/{job}/pause,
		POST /v1/jobs/{job}/resume, POST /v1/jobs/{job}/runs, POST /v1/runs/batch, GET /v1/jobs/{job}/runs, GET /v1/runs, POST /v1/runs/last, GET /v1/runs/{run},
		POST /v1/runs/{run}/cancel, POST /v1/runs/{run}/retry, POST /v1/runs/cancel, POST /v1/runs/retry, GET /v1/runs/{run}/logs, GET /v1/runs/{run}/payload, GET /v1/runs/{run}/result, GET /v1/runs/{run}/steps, GET /v1/runs/{run}/graph, GET /v1/dead-letters, GET /v1/stats, GET /v1/dead-letters/groups, POST /v1/dead-letters/redrive, POST /v1/dead-letters/discard,
		POST /v1/workflows/validate, POST /v1/workflows/simulate, GET /v1/schemas/workflow.json,
		GET /v1/cron, POST /v1/simulate, GET /v1/plan/retry, GET /v1/plan/queue, GET /v1/plan/capacity, GET /v1/plan/order, GET /v1/plan/once, GET /v1/queues, GET /v1/queues/{queue}/messages, GET /v1/workers, GET /v1/backup, GET /healthz, GET /readyz,
		GET /v1/gates, PUT /v1/gates/{gate}, GET /v1/gates/{gate}, DELETE /v1/gates/{gate}, POST /v1/gates/{gate}/close, POST /v1/gates/{gate}/open, GET /v1/gates/{gate}/line, POST /v1/runs/{run}/release,
		POST /v1/tokens, GET /v1/tokens, DELETE /v1/tokens/{token}, POST /v1/session, GET /v1/session, DELETE /v1/session, GET /v1/changes,
		PUT /v1/secrets/{secret}, GET /v1/secrets, DELETE /v1/secrets/{secret}, POST /v1/secret-keys/rotate,
		POST /v1/work/take, POST /v1/work/start, POST /v1/work/leave, POST /v1/work/renew, POST /v1/work/show, POST /v1/work/finish`
	docs, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, operation := range strings.Split(want, ",") {
		method, path, _ := strings.Cut(strings.TrimSpace(operation), " ")
		op, ok := d.Paths[path][strings.ToLower(method)]
		if !ok {
			t.Errorf("%s %s is missing", method, path)
			continue
		}
		found++
		for _, status := range []string{"400", "403", "422", "500", "503"} {
			if op.Responses[status].Content["application/problem+json"] == nil {
				t.Errorf("%s %s does not say that it may answer %s with a problem", method, path, status)
			}
		}
		if !strings.Contains(string(docs), "`"+method+" "+path) {
			t.Errorf("docs/api.md does not name %s %s", method, path)
		}
	}
	total := 0
	for _, methods := range d.Paths {
		total += len(methods)
	}
	if total != found {
		t.Errorf("the document has %d operations, want the %d above", total, found)
	}
}

func TestEveryOperationNamesTheScopeThatItAsksFor(t *testing.T) {
	open := []string{"health", "ready"}
	for path, methods := range document(t).Paths {
		for method, op := range methods {
			if slices.Contains(open, op.OperationID) {
				if op.Security != nil {
					t.Errorf("%s %s asks for %v, want it open", method, path, op.Security)
				}
				continue
			}
			if len(op.Security) != 1 || len(op.Security[0][tokenScheme]) != 1 || !slices.Contains(access.Scopes, access.Scope(op.Security[0][tokenScheme][0])) {
				t.Errorf("%s %s has the security %v, want one scope of %s: set the field scope", method, path, op.Security, access.ScopeNames())
			}
		}
	}
}

func TestDocumentShowsOnlyWhatIsSent(t *testing.T) {
	text := string(documentText(t))
	for _, never := range []string{"ErrorModel", "ErrorDetail", `"$schema"`, "null\"]},\"maxItems"} {
		if strings.Contains(text, never) {
			t.Errorf("the document holds %s", never)
		}
	}
	if strings.Contains(text, `["array","null"]`) {
		t.Error("a list may be null, which no list here is")
	}
}

// The tags of Go fields cannot name constants, so they repeat patterns.
func TestPatternsInTagsAreTheOnesWithAMeaning(t *testing.T) {
	for _, path := range document(t).Paths {
		for _, op := range path {
			for _, p := range op.Parameters {
				if pattern := p.Schema.Pattern; pattern != "" && meaning[pattern] == "" {
					t.Errorf("%s: pattern %s of %s has no meaning in form.go", op.OperationID, pattern, p.Name)
				}
			}
		}
	}
	text := string(documentText(t))
	for _, quoted := range regexp.MustCompile(`"pattern":("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(text, -1) {
		var pattern string
		if err := json.Unmarshal([]byte(quoted[1]), &pattern); err != nil || meaning[pattern] == "" {
			t.Errorf("pattern %s has no meaning in form.go", quoted[1])
		}
	}
	for pattern := range meaning {
		quoted, _ := json.Marshal(pattern)
		if !strings.Contains(text, string(quoted)) && pattern != job.NamePattern {
			t.Errorf("no schema has the pattern %s", pattern)
		}
	}
}

func TestDurationPatternTakesWhatDurationsAreShownAs(t *testing.T) {
	pattern := regexp.MustCompile(durationPattern)
	for _, d := range []time.Duration{0, time.Millisecond, time.Second, 90 * time.Second, 36 * time.Hour, 30 * 24 * time.Hour, 1500 * time.Millisecond,
		25*time.Hour + time.Minute + time.Second, 365 * 24 * time.Hour, 999 * time.Hour, time.Hour + 5*time.Millisecond} {
		text := schedule.Duration(d).String()
		if !pattern.MatchString(text) {
			t.Errorf("%s does not match", text)
		}
		if parsed, err := schedule.ParseDuration(text); err != nil || parsed.Std() != d {
			t.Errorf("%s reads as %s, %v", text, parsed, err)
		}
	}
	for _, text := range []string{"", "5", "-5s", "5 s", "5y", "1h1d", "s"} {
		if pattern.MatchString(text) {
			t.Errorf("%q matches", text)
		}
	}
}

// The codes of what runs wait for are promised too: the document, the docs and package control have the same ones.
func TestDocsListEveryCodeOfAWait(t *testing.T) {
	read := func(path, pattern string) (found []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		slices.Sort(found)
		return found
	}
	codes := read("../control/waiting.go", `(?m)^\s+Wait\w+\s+WaitCode = "([a-z_]+)"`)
	var schema struct {
		Properties map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(document(t).Components.Schemas["Waiting"], &schema); err != nil {
		t.Fatal(err)
	}
	named := schema.Properties["code"].Enum
	slices.Sort(named)
	text, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Why a run does not go on")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	if len(codes) < 10 || !slices.Equal(codes, named) || !slices.Equal(codes, listed) {
		t.Errorf("package control waits for %v, the document names %v, docs/run.md lists %v", codes, named, listed)
	}
}

// Codes are promised to programs: each is in the docs with its status, and the docs hold no other.
func TestDocsListEveryCodeWithItsStatus(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[control.Code]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([0-9]{3}) \\|").FindAllStringSubmatch(string(text), -1) {
		listed[control.Code(row[1])], _ = strconv.Atoi(row[2])
	}
	for code, status := range statusOf {
		if listed[code] != status {
			t.Errorf("docs/api.md lists %s with %d, it has %d", code, listed[code], status)
		}
	}
	for code := range listed {
		if statusOf[code] == 0 {
			t.Errorf("docs/api.md lists %s, which is no code", code)
		}
	}
	source, err := os.ReadFile("../control/control.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s+Code\w+\s+Code = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 10 {
		t.Fatalf("only %d codes found in package control", len(found))
	}
	for _, match := range found {
		if statusOf[control.Code(match[1])] == 0 {
			t.Errorf("package control refuses with %s, which has no status here", match[1])
		}
	}
}
