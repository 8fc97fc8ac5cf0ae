package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracing "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func TestWhereTracesGoIsChecked(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--trace jaeger", `--trace "jaeger": want none or otlp`},
		{"--trace xray", `--trace "xray": want otlp; AWS's collector of OpenTelemetry passes on to X-Ray what it gets`},
		{"--trace otlp --trace-ratio 1.5", "--trace-ratio 1.5: want 0 to 1"},
		{"--trace-ratio often", "--trace-ratio"},
	} {
		got := belfry(t, "", append([]string{"dev", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, strings.Fields(c.args)...)...)
		if got.code != exitUsage || !strings.Contains(got.errors, c.want) {
			t.Errorf("%s: code %d, %s, want %s", c.args, got.code, got.errors, c.want)
		}
	}
}

// collecting is a collector of OpenTelemetry, to which processes send their traces: a line of JSON for each span.
func collecting(t *testing.T) *lines {
	t.Helper()
	got := new(lines)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked collector.ExportTraceServiceRequest
		body, err := gzip.NewReader(r.Body)
		if err == nil {
			var text []byte
			if text, err = io.ReadAll(body); err == nil {
				err = proto.Unmarshal(text, &asked)
			}
		}
		if err != nil {
			t.Errorf("what a collector got: %v", err)
		}
		for _, resource := range asked.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					text, err := protojson.MarshalOptions{}.Marshal(span)
					if err != nil {
						t.Errorf("a span: %v", err)
					}
					var line bytes.Buffer // without the spaces that protojson puts in at random
					if err := json.Compact(&line, text); err != nil {
						t.Errorf("a span: %v", err)
					}
					line.WriteByte('\n')
					_, _ = got.Write(line.Bytes())
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	return got
}

// TestAServerSendsTraces asks one for a run, and waits for its attempt where the collector is.
func TestAServerSendsTraces(t *testing.T) {
	traces := collecting(t)
	hook := started(t, "dev", []string{"--data", t.TempDir()}) // any server that answers
	address := started(t, "dev", []string{"--data", t.TempDir(), "--trace", "otlp", "--trace-ratio", "1"})
	for _, args := range [][]string{{"job", "apply", "asked", "-f", "-"}, {"job", "trigger", "asked"}} {
		spec := `{"target": {"http": {"url": "` + hook + `/healthz", "method": "GET"}}}`
		if got := belfry(t, spec, append(args, "--address", address)...); got.code != exitOK {
			t.Fatalf("%v: %s", args, got.errors)
		}
	}
	eventually(t, "the attempt was told of", func() (bool, string) {
		for document := range strings.Lines(traces.String()) {
			var span tracing.Span
			if err := protojson.Unmarshal([]byte(document), &span); err != nil {
				t.Fatal(err)
			}
			if span.Name != "attempt" {
				continue
			}
			words := map[string]string{}
			for _, word := range span.Attributes {
				words[word.Key] = word.Value.GetStringValue()
			}
			if words["belfry.job"] != "asked" || words["belfry.outcome"] != "succeeded" {
				t.Errorf("got %s", document)
			}
			return true, ""
		}
		return false, traces.String()
	})
}

// TestARequestHasAName, by which its lines in the log are found.
func TestARequestHasAName(t *testing.T) {
	address := dev(t, "--data", t.TempDir())
	client := http.Client{Timeout: 5 * time.Minute}
	answer, err := client.Get(address + "/v1/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("X-Request-Id") == "" {
		t.Errorf("got %v", answer.Header)
	}
}
