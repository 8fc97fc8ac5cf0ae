package otlp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/trace/otlp"
)

// stub is a collector that keeps what it gets.
type stub struct {
	mu       sync.Mutex
	spans    map[string]*spans.Span // by name
	resource map[string]string
}

func (c *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var unzipped io.Reader
		if unzipped, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(unzipped)
		}
	}
	var got collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &got)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not what a collector takes", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range got.ResourceSpans {
		c.resource = texts(of.Resource.Attributes)
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans[s.Name] = s
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		all[a.Key] = a.Value.GetStringValue()
	}
	return all
}

func TestSpansReachTheCollector(t *testing.T) {
	c := &stub{spans: map[string]*spans.Span{}}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.name=ours")
	e, err := otlp.Open(t.Context(), otlp.Config{Service: "belfry", Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 21, 12, 0, 0, 250e6, time.UTC)
	from, _ := trace.Parse("00-6a103cc016cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	tick, _ := trace.Parse("00-6a103cbf00000000000000000000abcd-00000000000000aa-01")
	below := from.Context
	below.Span[7]++
	e.Export(trace.Data{Context: from.Context, Name: "claim", Kind: trace.Producer, Start: began, End: began.Add(30 * time.Millisecond),
		Attrs: []trace.Attr{{Key: "belfry.run", Value: "report~1"}}, Links: []trace.Context{tick.Context}})
	e.Export(trace.Data{Context: below, Above: from.Span, Name: "attempt", Kind: trace.Consumer, Start: began, End: began, Error: "answered 500", Missed: 3})
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim, attempt := c.spans["claim"], c.spans["attempt"]
	if claim == nil || attempt == nil {
		t.Fatalf("got %v", c.spans)
	}
	if hex.EncodeToString(claim.TraceId) != from.ID() || hex.EncodeToString(claim.SpanId) != "b7ad6b7169203331" || len(claim.ParentSpanId) != 0 ||
		claim.Kind != spans.Span_SPAN_KIND_PRODUCER || claim.StartTimeUnixNano != uint64(began.UnixNano()) ||
		claim.EndTimeUnixNano != uint64(began.Add(30*time.Millisecond).UnixNano()) || texts(claim.Attributes)["belfry.run"] != "report~1" ||
		len(claim.Links) != 1 || hex.EncodeToString(claim.Links[0].TraceId) != tick.ID() {
		t.Errorf("got %v", claim)
	}
	if !bytes.Equal(attempt.TraceId, claim.TraceId) || !bytes.Equal(attempt.ParentSpanId, claim.SpanId) || bytes.Equal(attempt.SpanId, claim.SpanId) ||
		attempt.Kind != spans.Span_SPAN_KIND_CONSUMER || attempt.Status.Code != spans.Status_STATUS_CODE_ERROR || attempt.Status.Message != "answered 500" {
		t.Errorf("got %v", attempt)
	}
	if r := c.resource; r["service.name"] != "ours" || r["service.version"] != "v1.2.3" || r["deployment.environment"] != "test" {
		t.Errorf("of %v", r)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
