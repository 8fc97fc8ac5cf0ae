package template

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

var update = flag.Bool("update", false, "write infra/api.yaml instead of comparing it")

// response is an answer that API Gateway gives itself, in the form of Belfry's.
type response struct {
	Type   string // as API Gateway calls it
	Status int
	Code   string // of docs/api.md
	Detail string // JSON, or a variable of API Gateway that is JSON
	Header string // another header, as YAML
}

func (r response) Title() string { return http.StatusText(r.Status) }

const (
	again     = `Retry-After: "'1'"`
	challenge = `WWW-Authenticate: "'Bearer'"`
)

// responses say what a refusal by API Gateway means to a client. A function that failed, or took too long, may have done what
// it was asked: that is no 5xx to be taken for "nothing happened".
var responses = []response{
	{"ACCESS_DENIED", 403, "forbidden", `"You may not call this."`, ""},
	{"API_CONFIGURATION_ERROR", 503, "outcome_unknown", `"The function failed. What was asked may have been done or not."`, again},
	{"AUTHORIZER_CONFIGURATION_ERROR", 500, "internal", `"The token could not be judged. The log of the function has the details."`, ""},
	{"AUTHORIZER_FAILURE", 500, "internal", `"The token could not be judged. The log of the function has the details."`, ""},
	{"BAD_REQUEST_BODY", 400, "malformed", `$context.error.messageString`, ""},
	{"EXPIRED_TOKEN", 401, "unauthenticated", `"The signature or token has expired."`, challenge},
	{"INTEGRATION_FAILURE", 503, "outcome_unknown", `"The function did not answer. What was asked may have been done or not."`, again},
	{"INTEGRATION_TIMEOUT", 503, "outcome_unknown", `"The function did not answer in time. What was asked may have been done or not."`, again},
	{"INVALID_API_KEY", 401, "unauthenticated", `"The header x-api-key is missing, or its key is not one of the usage plan."`, challenge},
	{"INVALID_SIGNATURE", 401, "unauthenticated", `"The signature of the request is wrong."`, challenge},
	{"MISSING_AUTHENTICATION_TOKEN", 401, "unauthenticated", `"The request is not signed, or there is nothing at its path; /openapi.json lists the paths."`, challenge},
	{"QUOTA_EXCEEDED", 429, "rate_limited", `"The quota of this key is used up."`, again},
	{"REQUEST_TOO_LARGE", 413, "too_large", `"The request has more than 10 MB."`, ""},
	{"THROTTLED", 429, "rate_limited", `"Too many requests at once. Nothing was done."`, again},
	{"UNAUTHORIZED", 401, "unauthenticated", `"The Authorization header has no token."`, challenge},
}

// path is one of the API, with its verbs.
type path struct {
	Path       string
	Operations []operation
}

type operation struct {
	Method, ID string
	Parameters []string // in the path
}

// deployment is what API Gateway serves under one way to authenticate.
type deployment struct{ Name, Condition, Text string }

var (
	//go:embed api.yaml.tmpl
	apiText string
	inPath  = regexp.MustCompile(`\{([a-z_]+)\}`)
	apiFile = filepath.Join(root, "infra", "api.yaml")
)

// root is the folder of the template, seen from this package.
var root = filepath.Join("..", "..")

// document is /openapi.json as the function serves it.
func document(t *testing.T) []byte {
	t.Helper()
	store := memory.New(memory.Config{Now: time.Now})
	tokens, err := access.New(access.Config{Store: store, Now: time.Now, Random: rand.Reader, NewID: func() uint64 { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := api.New(api.Config{
		Control: &control.Service{}, Gate: gate, Now: time.Now, Version: "1", Secrets: &secret.Vault{},
		Ready:   func(context.Context) []wire.Check { return nil },
		Queues:  func(context.Context, string) ([]wire.Queue, error) { return nil, nil },
		Workers: func(context.Context, string) ([]wire.Worker, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	return w.Body.Bytes()
}

// served are the paths of the document, and that of the document.
func served(t *testing.T) []path {
	t.Helper()
	var d struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(document(t), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Paths) < 20 {
		t.Fatalf("the document has %d paths; it has lost some", len(d.Paths))
	}
	d.Paths["/openapi.json"] = map[string]struct{ OperationID string }{"get": {"openapi"}}
	var all []path
	for _, p := range slices.Sorted(maps.Keys(d.Paths)) {
		one := path{Path: p}
		for _, method := range slices.Sorted(maps.Keys(d.Paths[p])) {
			o := operation{Method: method, ID: d.Paths[p][method].OperationID}
			for _, found := range inPath.FindAllStringSubmatch(p, -1) {
				o.Parameters = append(o.Parameters, found[1])
			}
			one.Operations = append(one.Operations, o)
		}
		all = append(all, one)
	}
	return all
}

func apiTemplate(t *testing.T) []byte {
	t.Helper()
	form, err := template.New("api.yaml").Parse(apiText)
	if err != nil {
		t.Fatal(err)
	}
	write := func(hash string) []byte {
		var out bytes.Buffer
		err := form.Execute(&out, map[string]any{"Paths": served(t), "Responses": responses, "Deployments": []deployment{
			{"DeploymentIAM" + hash, "IAM", "signed requests"},
			{"DeploymentJWT" + hash, "JWT", "tokens"},
			{"DeploymentKey" + hash, "Key", "API keys"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	sum := sha256.Sum256(write(""))
	return write(hex.EncodeToString(sum[:4]))
}

// Routes and verbs are those of the document: one that is missing cannot be called, and one too many would only ever fail.
func TestTheRoutesAreTheDocument(t *testing.T) {
	want := apiTemplate(t)
	if *update {
		if err := os.WriteFile(apiFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what /openapi.json says; make generate writes it", apiFile)
	}
	for _, loose := range []string{"x-amazon-apigateway-any-method", "{proxy+}", "security: []"} {
		if strings.Contains(string(got), loose) {
			t.Errorf("%s has %s: a route for whatever comes, or for whoever comes", apiFile, loose)
		}
	}
}

// A code that docs/api.md does not have means nothing to a client.
func TestWhatTheGatewayRefusesHasACodeOfTheAPI(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range responses {
		row := regexp.MustCompile("(?m)^\\| `" + r.Code + "` \\| ([0-9]{3}) \\|").FindSubmatch(page)
		if row == nil || string(row[1]) != strconv.Itoa(r.Status) {
			t.Errorf("%s: docs/api.md has no row with the code %s and the status %d", r.Type, r.Code, r.Status)
		}
	}
}
