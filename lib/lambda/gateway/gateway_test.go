package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

var iam = lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthIAM}}

func TestARequestIsAnsweredByTheAPI(t *testing.T) {
	f := start(t, iam)
	put := f.ask(request("PUT", "/v1/jobs/report", "/v1/jobs/{job}", signed, body(aJob)))
	if put.StatusCode != http.StatusCreated || !strings.Contains(put.Body, `"name":"report"`) {
		t.Fatalf("%d: %s", put.StatusCode, put.Body)
	}
	if tag := put.MultiValueHeaders["Etag"]; len(tag) != 1 {
		t.Errorf("the headers are %v, want an ETag", put.MultiValueHeaders)
	}
	if id := put.MultiValueHeaders["X-Request-Id"]; len(id) != 1 || id[0] != "c6af9ac6-7b61-11e6-9a41-93e8deadbeef" {
		t.Errorf("the request is called %q, want it as API Gateway has it", id)
	}
	triggered := f.ask(request("POST", "/v1/jobs/report/runs", "/v1/jobs/{job}/runs", signed, body(`{"payload": {"n": "ü"}}`), header("Idempotency-Key", "k")))
	if triggered.StatusCode != http.StatusAccepted {
		t.Fatalf("%d: %s", triggered.StatusCode, triggered.Body)
	}
	var run struct{ ID string }
	if err := json.Unmarshal([]byte(triggered.Body), &run); err != nil {
		t.Fatal(err)
	}
	if got := f.ask(request("GET", "/v1/runs/"+run.ID, "/v1/runs/{run}", signed)); got.StatusCode != http.StatusOK {
		t.Errorf("the run: %d: %s", got.StatusCode, got.Body)
	}
	if got := f.ask(request("GET", "/v1/nothing", "/v1/nothing", signed)); got.problem.Code != "no_such_path" {
		t.Errorf("no such path: %s", got.Body)
	}
}

// The events in testdata have the shape that AWS documents for each.
func TestEventsAsTheyCome(t *testing.T) {
	for name, c := range map[string]struct {
		auth lambda.Auth
		want int
		says string
	}{
		"iam.json":     {lambda.Auth{Kind: lambda.AuthIAM}, http.StatusOK, `"name":"report"`},
		"api-key.json": {lambda.Auth{Kind: lambda.AuthAPIKey}, http.StatusOK, `"items":[`},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, lambda.Settings{Auth: c.auth})
			prove := signed
			if c.auth.Kind == lambda.AuthAPIKey {
				prove = keyed
			}
			f.ask(request("PUT", "/v1/jobs/report", "/v1/jobs/{job}", prove, body(aJob)))
			event, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.ask(string(event)); got.StatusCode != c.want || !strings.Contains(got.Body, c.says) {
				t.Errorf("%d: %s", got.StatusCode, got.Body)
			}
		})
	}
}

func TestTheFormOfRequests(t *testing.T) {
	f := start(t, iam)
	for _, team := range []string{"a", "b"} {
		job := strings.Replace(aJob, `"a"`, `"`+team+`", "kind": "x y"`, 1)
		f.ask(request("PUT", "/v1/jobs/of-"+team, "/v1/jobs/{job}", signed, body(job)))
	}
	list := func(change ...func(*events.APIGatewayProxyRequest)) string {
		got := f.ask(request("GET", "/v1/jobs", "/v1/jobs", append(change, signed)...))
		return got.Body
	}
	multi := func(event *events.APIGatewayProxyRequest) {
		event.QueryStringParameters = map[string]string{"label": "team=b"} // the last of them, as API Gateway has it
		event.MultiValueQueryStringParameters = map[string][]string{"label": {"kind=x y", "team=b"}}
	}
	if got := list(multi); !strings.Contains(got, `"of-b"`) || strings.Contains(got, `"of-a"`) {
		t.Errorf("two values of a parameter gave %s", got)
	}
	if got := list(func(event *events.APIGatewayProxyRequest) {
		event.QueryStringParameters = map[string]string{"label": "team=a"}
	}); !strings.Contains(got, `"of-a"`) || strings.Contains(got, `"of-b"`) {
		t.Errorf("a single value gave %s", got)
	}
	encoded := f.ask(request("PUT", "/v1/jobs/binary", "/v1/jobs/{job}", signed, body(base64.StdEncoding.EncodeToString([]byte(aJob))),
		func(event *events.APIGatewayProxyRequest) { event.IsBase64Encoded = true }))
	if encoded.StatusCode != http.StatusCreated {
		t.Errorf("a body in base64: %d: %s", encoded.StatusCode, encoded.Body)
	}
	for where, path := range map[string]string{"behind its stage": "/v/v1/jobs/of-a", "behind a base path": "/team/belfry/v1/jobs/of-a", "alone": "/v1/jobs/of-a"} {
		if got := f.ask(request("GET", path, "/v1/jobs/{job}", signed)); got.StatusCode != http.StatusOK {
			t.Errorf("%s: %d: %s", where, got.StatusCode, got.Body)
		}
	}
	greedy := request("GET", "/v/v1/jobs/of-a", "/{proxy+}", signed, func(event *events.APIGatewayProxyRequest) {
		event.PathParameters = map[string]string{"proxy": "v1/jobs/of-a"}
	})
	if got := f.ask(greedy); got.StatusCode != http.StatusOK {
		t.Errorf("a greedy resource: %d: %s", got.StatusCode, got.Body)
	}
	page := request("GET", "/v1/jobs", "/v1/jobs", signed, header("Origin", "https://evil.example"))
	if got := f.ask(page); got.problem.Code != "origin_not_allowed" {
		t.Errorf("a page of another site: %s", got.Body)
	}
}

// Nobody is let in whom API Gateway has not proven, whatever the request itself says.
func TestNobodyIsLetInUnproven(t *testing.T) {
	jwt := lambda.Auth{Kind: lambda.AuthJWT, Issuer: "https://issuer.example", Audience: "belfry"}
	says := func(authorizer map[string]any) func(*events.APIGatewayProxyRequest) {
		return func(event *events.APIGatewayProxyRequest) { event.RequestContext.Authorizer = authorizer }
	}
	later, ago := "4102444800", "946684800"
	for name, c := range map[string]struct {
		auth  lambda.Auth
		event func(*events.APIGatewayProxyRequest)
	}{
		"NoAuthConfigured":        {lambda.Auth{}, signed},
		"IAMWithoutIdentity":      {lambda.Auth{Kind: lambda.AuthIAM}, header("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/…")},
		"IAMWithAKeyOnly":         {lambda.Auth{Kind: lambda.AuthIAM}, keyed},
		"KeyMissing":              {lambda.Auth{Kind: lambda.AuthAPIKey}, header("X-Api-Key", "the-key-itself")},
		"KeyNotOfAPlan":           {lambda.Auth{Kind: lambda.AuthAPIKey}, func(e *events.APIGatewayProxyRequest) { e.RequestContext.Identity.APIKey = "the-key-itself" }},
		"KeyButSignatureProven":   {lambda.Auth{Kind: lambda.AuthAPIKey}, signed},
		"TokenUnverified":         {jwt, header("Authorization", "Bearer a.b.c")},
		"TokenOfBelfryItself":     {lambda.Auth{Kind: lambda.AuthIAM}, header("Authorization", "Bearer bel_x")},
		"AuthorizerWithoutTenant": {jwt, says(map[string]any{"scopes": "admin", "expires": later})},
		"AuthorizerWithoutExpiry": {jwt, says(map[string]any{"tenant": "default", "scopes": "admin"})},
		"TokenExpiredMeanwhile":   {jwt, says(map[string]any{"tenant": "default", "scopes": "admin", "expires": ago})},
		"AnotherAuthorizers":      {jwt, says(map[string]any{"principalId": "me", "claims": map[string]any{"scope": "admin"}})},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, lambda.Settings{Auth: c.auth})
			for _, path := range []string{"/v1/jobs", "/openapi.json", "/nowhere"} {
				if got := f.ask(request("GET", path, path, c.event)); got.StatusCode != http.StatusUnauthorized || got.problem.Code != "unauthenticated" {
					t.Errorf("%s: %d: %s", path, got.StatusCode, got.Body)
				}
			}
		})
	}
}

// P12: who calls is what API Gateway says, and nothing in the request changes whose jobs he sees.
func TestP12_NoHeaderChoosesATenant(t *testing.T) {
	f := start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthJWT, Issuer: "https://issuer.example", Audience: "belfry", TenantClaim: "org"}})
	of := func(tenant, scopes string) func(*events.APIGatewayProxyRequest) {
		return func(event *events.APIGatewayProxyRequest) {
			event.RequestContext.Authorizer = map[string]any{"principalId": "someone", "tenant": tenant, "scopes": scopes, "expires": "4102444800"}
		}
	}
	if got := f.ask(request("PUT", "/v1/jobs/secret-plan", "/v1/jobs/{job}", of("acme", "write"), body(aJob))); got.StatusCode != http.StatusCreated {
		t.Fatalf("%d: %s", got.StatusCode, got.Body)
	}
	for _, attempt := range []func(*events.APIGatewayProxyRequest){
		header("Tenant", "acme"), header("X-Tenant", "acme"), header("Belfry-Tenant", "acme"), header("X-Amzn-Tenant", "acme"),
		func(e *events.APIGatewayProxyRequest) {
			e.MultiValueQueryStringParameters = map[string][]string{"tenant": {"acme"}}
		},
		func(e *events.APIGatewayProxyRequest) { e.StageVariables = map[string]string{"tenant": "acme"} },
		func(e *events.APIGatewayProxyRequest) { e.PathParameters = map[string]string{"tenant": "acme"} },
		header("Authorization", "Bearer "+base64.RawURLEncoding.EncodeToString([]byte(`{"tenant":"acme"}`))),
	} {
		got := f.ask(request("GET", "/v1/jobs/secret-plan", "/v1/jobs/{job}", of("other", "admin"), attempt))
		if got.problem.Code != "job_not_found" && got.problem.Code != "malformed" {
			t.Errorf("another tenant's job: %d: %s", got.StatusCode, got.Body)
		}
		if got := f.ask(request("GET", "/v1/jobs", "/v1/jobs", of("other", "admin"), attempt)); strings.Contains(got.Body, "secret-plan") || got.StatusCode != http.StatusOK && got.problem.Code != "malformed" {
			t.Errorf("the list of another: %d: %s", got.StatusCode, got.Body)
		}
	}
	if got := f.ask(request("GET", "/v1/queues", "/v1/queues", of("other", "admin"))); strings.Contains(got.Body, "default") {
		t.Errorf("the stack's queues, to another tenant: %s", got.Body)
	}
}

func TestScopesDecideWhatACallerMayDo(t *testing.T) {
	f := start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthAPIKey}})
	if got := f.ask(request("PUT", "/v1/jobs/report", "/v1/jobs/{job}", keyed, body(aJob))); got.StatusCode != http.StatusCreated {
		t.Errorf("a key writes: %d: %s", got.StatusCode, got.Body)
	}
	got := f.ask(request("GET", "/v1/tokens", "/v1/tokens", keyed))
	if got.StatusCode != http.StatusForbidden || !strings.Contains(got.problem.Detail, "API key ab12cd34ef") || strings.Contains(got.Body, "the-key-itself") {
		t.Errorf("a key asks for tokens: %d: %s", got.StatusCode, got.Body)
	}
	reader := func(event *events.APIGatewayProxyRequest) {
		event.RequestContext.Authorizer = map[string]any{"principalId": "ann", "tenant": access.DefaultTenant, "scopes": "", "expires": "4102444800"}
	}
	f = start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthJWT, Issuer: "https://issuer.example", Audience: "belfry"}})
	if got := f.ask(request("GET", "/v1/jobs", "/v1/jobs", reader)); got.StatusCode != http.StatusForbidden || !strings.Contains(got.problem.Detail, "has no scope") {
		t.Errorf("a token without a scope: %d: %s", got.StatusCode, got.Body)
	}
}

// The function tells of ticks by what they write, since they are another's.
func TestReadinessTellsOfTicks(t *testing.T) {
	f := start(t, iam)
	ready := func() answer { return f.ask(request("GET", "/readyz", "/readyz", signed)) }
	if got := ready(); got.StatusCode != http.StatusOK || !strings.Contains(got.Body, `"name":"ticks","state":"attention"`) {
		t.Errorf("before the first tick: %d: %s", got.StatusCode, got.Body)
	}
	if _, err := f.host.Node.Ticker.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ready(); got.StatusCode != http.StatusOK || !strings.Contains(got.Body, `"name":"ticks","state":"ok"`) {
		t.Errorf("after a tick: %d: %s", got.StatusCode, got.Body)
	}
	f.now = func() time.Time { return time.Now().Add(10 * time.Minute) }
	if got := ready(); got.problem.Code != "not_ready" || !strings.Contains(got.problem.Detail, "ticks: none has come") {
		t.Errorf("ten minutes later: %d: %s", got.StatusCode, got.Body)
	}
}

// What no function can run is refused when it is put, and does not wait in silence.
func TestWhatFunctionsCannotRunIsRefused(t *testing.T) {
	arns, err := target.ParseARNPatterns("arn:aws:lambda:eu-west-1:123456789012:function:report-*,arn:aws:sqs:*:123456789012:{tenant}-work")
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, lambda.Settings{Auth: iam.Auth, ARNs: arns})
	for spec, want := range map[string]int{
		`{"exec": {"argv": ["true"]}}`:                                                                                        http.StatusUnprocessableEntity,
		`{"handler": {"name": "resize"}}`:                                                                                     http.StatusUnprocessableEntity,
		`{"aws": {"arn": "arn:aws:lambda:eu-west-1:123456789012:function:other"}}`:                                            http.StatusUnprocessableEntity,
		`{"aws": {"arn": "arn:aws:lambda:eu-west-1:123456789012:function:report-a"}}`:                                         http.StatusCreated,
		`{"aws": {"arn": "arn:aws:sqs:eu-west-1:123456789012:default-work"}}`:                                                 http.StatusCreated,
		`{"aws": {"arn": "arn:aws:sqs:eu-west-1:123456789012:default-work", "role_arn": "arn:aws:iam::123456789012:role/x"}}`: http.StatusUnprocessableEntity,
	} {
		got := f.ask(request("PUT", "/v1/jobs/one", "/v1/jobs/{job}", signed, body(`{"target": `+spec+`}`)))
		if got.StatusCode != want && !(want == http.StatusCreated && got.StatusCode == http.StatusOK) || want == http.StatusUnprocessableEntity && !strings.Contains(got.Body, `"field":"target"`) {
			t.Errorf("%s: %d: %s, want %d", spec, got.StatusCode, got.Body, want)
		}
	}
}

// A request ends before its invocation does, and is answered.
func TestP11_ARequestEndsBeforeItsInvocation(t *testing.T) {
	f := start(t, iam)
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	out, err := f.invoke(ctx, f.encode(request("GET", "/v1/jobs", "/v1/jobs", signed)))
	if err != nil {
		t.Fatal(err)
	}
	if got := out.(events.APIGatewayProxyResponse); got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got.Body, "outcome_unknown") {
		t.Errorf("without time left: %d: %s", got.StatusCode, got.Body)
	}
}

// A list ends its pages before an answer is larger than Lambda passes on.
func TestP11_ListsEndTheirPagesBeforeLambdaDoes(t *testing.T) {
	f := start(t, iam)
	definition := `"payload": "` + strings.Repeat(`\"`, 3900) + `", "target": {"http": {"url": "https://example.org/hook"}}` // a quote takes four bytes in the answer
	const jobs = 480
	var batch []string
	for i := range jobs {
		batch = append(batch, fmt.Sprintf(`{"name": "j%03d", %s}`, i, definition))
	}
	got := f.ask(request("POST", "/v1/jobs/batch", "/v1/jobs/batch", signed, body(`{"jobs": [`+strings.Join(batch, ",")+"]}")))
	if got.StatusCode != http.StatusOK {
		t.Fatalf("%d jobs of 16 KB: %d: %.200s", jobs, got.StatusCode, got.Body)
	}
	var names []string
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		got := f.ask(request("GET", "/v1/jobs", "/v1/jobs", signed, func(e *events.APIGatewayProxyRequest) {
			e.MultiValueQueryStringParameters = map[string][]string{"limit": {"1000"}}
			if cursor != "" {
				e.MultiValueQueryStringParameters["cursor"] = []string{cursor}
			}
		}))
		var page wire.JobPage
		if err := json.Unmarshal([]byte(got.Body), &page); err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("page %d: %d: %v: %.200s", pages, got.StatusCode, err, got.Body)
		}
		for _, j := range page.Items {
			names = append(names, j.Name)
		}
		cursor = page.Next
	}
	if pages != 2 || len(names) != jobs || !slices.IsSorted(names) || len(slices.Compact(names)) != jobs {
		t.Errorf("%d pages have %d jobs, want 2 with all %d, each once", pages, len(names), jobs)
	}
}

func TestEventsOfOtherKindsAreRefused(t *testing.T) {
	f := start(t, iam)
	for _, event := range []string{
		`{"version": "2.0", "rawPath": "/v1/jobs", "requestContext": {"http": {"method": "GET"}}}`,
		`{"Records": []}`, `{}`, `[]`, `"x"`, `{"type": "TOKEN", "authorizationToken": "Bearer x", "methodArn": "arn"}`,
		`{"httpMethod": "GET", "path": "/v1/jobs", "isBase64Encoded": true, "body": "not base64!"}`,
	} {
		if out, err := f.invoke(t.Context(), json.RawMessage(event)); err == nil {
			t.Errorf("%s gave %v", event, out)
		}
	}
}
