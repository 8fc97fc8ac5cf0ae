package gateway_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/lambda/gateway"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// function is the function behind API Gateway, over engines in memory.
type function struct {
	t      *testing.T
	host   *lambda.Host
	invoke gateway.Handler
	log    *lines
	now    func() time.Time
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func start(t *testing.T, settings lambda.Settings) *function {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f := &function{t: t, log: new(lines), now: time.Now}
	now := func() time.Time { return f.now() }
	began := time.Now()
	elapsed := func() time.Duration { return time.Since(began) }
	data := &cloud.Data{Store: memory.New(memory.Config{Now: now}), Blobs: blob.New(memblob.OpenBucket(nil)),
		Queues: map[string]queue.Queue{job.DefaultQueue: queuelocal.New(queuelocal.Config{Now: now})}}
	log := slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	targets, err := target.New(target.Config{Now: now})
	must(err)
	n, err := node.New(t.Context(), node.Config{Store: data.Store, Queues: data.Queues, Blobs: data.Blobs, Targets: targets, Metrics: metrics.New(),
		Now: now, Elapsed: elapsed, NewID: rand.Uint64, Name: "api", Shared: true, NoTicks: true, Log: log, Can: settings.Can})
	must(err)
	vault, err := secret.New(secret.Config{Store: data.Store, Now: now, Random: rand.NewChaCha8([32]byte{}), NewID: rand.Uint64})
	must(err)
	if settings.Tenant == "" {
		settings.Tenant = access.DefaultTenant
	}
	f.host = &lambda.Host{Settings: settings, Data: data, Node: n, Vault: vault, Metrics: n.Metrics, Log: log, Now: now, Elapsed: elapsed,
		NewID: rand.Uint64, Random: rand.NewChaCha8([32]byte{})}
	f.invoke, err = gateway.API(f.host, "test")
	must(err)
	return f
}

// answer is what API Gateway would pass on.
type answer struct {
	events.APIGatewayProxyResponse
	problem struct{ Code, Detail string }
}

// ask invokes the function as API Gateway does.
func (f *function) ask(event any) answer {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	out, err := f.invoke(ctx, f.encode(event))
	if err != nil {
		f.t.Fatal(err)
	}
	got, ok := out.(events.APIGatewayProxyResponse)
	if !ok {
		f.t.Fatalf("the answer is a %T", out)
	}
	a := answer{APIGatewayProxyResponse: got}
	if got.StatusCode >= 400 {
		if err := json.Unmarshal([]byte(got.Body), &a.problem); err != nil || a.problem.Code == "" {
			f.t.Fatalf("status %d without a problem: %s", got.StatusCode, got.Body)
		}
	}
	return a
}

func (f *function) encode(event any) json.RawMessage {
	f.t.Helper()
	if text, ok := event.(string); ok {
		return json.RawMessage(text)
	}
	text, err := json.Marshal(event)
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

// request is an event of a REST API, by the form of AWS's documentation.
func request(method, path, resource string, change ...func(*events.APIGatewayProxyRequest)) events.APIGatewayProxyRequest {
	event := events.APIGatewayProxyRequest{
		Resource: resource, Path: path, HTTPMethod: method,
		Headers:           map[string]string{"Host": "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", "X-Forwarded-Proto": "https"},
		MultiValueHeaders: map[string][]string{"Host": {"a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"}, "X-Forwarded-Proto": {"https"}},
		RequestContext: events.APIGatewayProxyRequestContext{AccountID: "123456789012", Stage: "v", DomainName: "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com",
			RequestID: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef", Path: "/v" + path, ResourcePath: resource, HTTPMethod: method,
			Identity: events.APIGatewayRequestIdentity{SourceIP: "203.0.113.7", UserAgent: "test"}},
	}
	for _, c := range change {
		c(&event)
	}
	return event
}

func signed(event *events.APIGatewayProxyRequest) {
	event.RequestContext.Identity.UserArn = "arn:aws:sts::123456789012:assumed-role/deployer/session"
	event.RequestContext.Identity.AccountID = "123456789012"
	event.RequestContext.Identity.AccessKey = "ASIAEXAMPLE"
}

func keyed(event *events.APIGatewayProxyRequest) {
	event.RequestContext.Identity.APIKey = "the-key-itself"
	event.RequestContext.Identity.APIKeyID = "ab12cd34ef"
}

func body(text string) func(*events.APIGatewayProxyRequest) {
	return func(event *events.APIGatewayProxyRequest) {
		header("Content-Type", "application/json")(event)
		event.Body = text
	}
}

func header(name string, values ...string) func(*events.APIGatewayProxyRequest) {
	return func(event *events.APIGatewayProxyRequest) {
		event.Headers[name] = values[len(values)-1]
		event.MultiValueHeaders[name] = values
	}
}

const aJob = `{"target": {"http": {"url": "https://example.org/hook"}}, "labels": {"team": "a"}}`
