package traces

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/trace/otlp"
	"github.com/belfry-scheduler/belfry/lib/trace/xray"
)

// span is one as a collector sees it, in the terms of W3C.
type span struct {
	trace, id, parent string
	name              string
	links             []string // traces
	words             map[string]string
	began             time.Time
	took              time.Duration
}

// collected is what a collector has got.
type collected struct {
	mu    sync.Mutex
	spans []span
	news  chan struct{}
}

func (c *collected) add(s span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, s)
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *collected) all() []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]span(nil), c.spans...)
}

// toXRay is a daemon of X-Ray, and what sends to it.
func toXRay(t *testing.T) (*collected, trace.Exporter) {
	c := &collected{news: make(chan struct{}, 1)}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() { // ends with the connection
		buffer := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, body, _ := strings.Cut(string(buffer[:n]), "\n")
			var s struct {
				TraceID     string         `json:"trace_id"`
				ID          string         `json:"id"`
				ParentID    string         `json:"parent_id"`
				StartTime   float64        `json:"start_time"`
				EndTime     float64        `json:"end_time"`
				Annotations map[string]any `json:"annotations"`
			}
			if err := json.Unmarshal([]byte(body), &s); err != nil {
				t.Errorf("%v: %s", err, body)
			}
			w3c := func(id string) string { return strings.ReplaceAll(strings.TrimPrefix(id, "1-"), "-", "") }
			got := span{trace: w3c(s.TraceID), id: s.ID, parent: s.ParentID, words: map[string]string{},
				began: time.UnixMicro(int64(s.StartTime * 1e6)), took: time.Duration((s.EndTime - s.StartTime) * 1e9)}
			for key, value := range s.Annotations {
				text, _ := value.(string)
				switch {
				case key == "operation":
					got.name = text
				case strings.HasPrefix(key, "linked_trace"):
					got.links = append(got.links, w3c(text))
				default:
					got.words[key] = text
				}
			}
			c.add(got)
		}
	}()
	e, err := xray.Open(xray.Config{Daemon: conn.LocalAddr().String(), Service: "belfry"})
	must(t, err)
	return c, e
}

// toOTLP is a collector of OpenTelemetry, and what sends to it.
func toOTLP(t *testing.T) (*collected, trace.Exporter) {
	c := &collected{news: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &got)
		}
		if err != nil {
			t.Error(err)
		}
		for _, of := range got.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				for _, s := range scope.Spans {
					one := span{trace: hex.EncodeToString(s.TraceId), id: hex.EncodeToString(s.SpanId), parent: hex.EncodeToString(s.ParentSpanId), name: s.Name, words: map[string]string{},
						began: time.Unix(0, int64(s.StartTimeUnixNano)), took: time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)}
					for _, l := range s.Links {
						one.links = append(one.links, hex.EncodeToString(l.TraceId))
					}
					for _, a := range s.Attributes {
						one.words[strings.TrimPrefix(a.Key, "belfry.")] = a.Value.GetStringValue()
					}
					c.add(one)
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	e, err := otlp.Open(t.Context(), otlp.Config{Service: "belfry", Version: "test"})
	must(t, err)
	return c, e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
