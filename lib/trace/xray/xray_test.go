package xray_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/trace/xray"
)

// segment is what the X-Ray Developer Guide calls a segment document.
type segment struct {
	Name        string         `json:"name"`
	ID          string         `json:"id"`
	TraceID     string         `json:"trace_id"`
	ParentID    string         `json:"parent_id"`
	Type        string         `json:"type"`
	Namespace   string         `json:"namespace"`
	StartTime   float64        `json:"start_time"`
	EndTime     float64        `json:"end_time"`
	Fault       bool           `json:"fault"`
	Annotations map[string]any `json:"annotations"`
	Cause       struct {
		Exceptions []struct{ ID, Message string }
	} `json:"cause"`
	HTTP struct {
		Request  struct{ Method, URL string }
		Response struct{ Status int }
	} `json:"http"`
}

// daemon listens as X-Ray's does.
func daemon(t *testing.T) (address string, read func() segment) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String(), func() segment {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 64<<10)
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := strings.Cut(string(buffer[:n]), "\n")
		if head != `{"format": "json", "version": 1}` {
			t.Fatalf("the datagram begins with %q", head)
		}
		var s segment
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return s
	}
}

func TestSpansAreSegments(t *testing.T) {
	address, read := daemon(t)
	e, err := xray.Open(xray.Config{Daemon: "tcp:127.0.0.1:9 udp:" + address, Service: "belfry"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	began := time.Date(2026, 11, 21, 12, 0, 0, 250e6, time.UTC)
	from, _ := trace.Parse("00-6a103cc016cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	tick, _ := trace.Parse("00-6a103cbf00000000000000000000abcd-00000000000000aa-01")
	e.Export(trace.Data{
		Context: from.Context, Name: "POST /v1/jobs/{job}/runs", Kind: trace.Server, Start: began, End: began.Add(30 * time.Millisecond),
		Attrs: []trace.Attr{{Key: "http.request.method", Value: "POST"}, {Key: "url.path", Value: "/v1/jobs/report/runs"}, {Key: "http.response.status_code", Value: "202"}, {Key: "belfry.tenant", Value: "acme"}},
		Links: []trace.Context{tick.Context},
	})
	got := read()
	if got.Name != "belfry" || got.TraceID != "1-6a103cc0-16cd43dd8448eb211c80319c" || got.ID != "b7ad6b7169203331" || got.ParentID != "" || got.Type != "" ||
		got.StartTime != 1795262400.25 || got.EndTime != 1795262400.28 || got.Fault {
		t.Errorf("got %+v", got)
	}
	if got.HTTP.Request.Method != "POST" || got.HTTP.Response.Status != 202 || got.Annotations["tenant"] != "acme" ||
		got.Annotations["operation"] != "POST /v1/jobs/{job}/runs" || got.Annotations["linked_trace1"] != "1-6a103cbf-00000000000000000000abcd" {
		t.Errorf("got %+v", got)
	}
	below := from.Context
	below.Span[7]++
	e.Export(trace.Data{Context: below, Above: from.Span, Local: true, Name: "target http", Kind: trace.Client, Start: began, End: began, Error: "answered 500", Missed: 3})
	got = read()
	if got.Name != "target http" || got.Type != "subsegment" || got.ParentID != "b7ad6b7169203331" || got.Namespace != "remote" || !got.Fault ||
		len(got.Cause.Exceptions) != 1 || got.Cause.Exceptions[0].Message != "answered 500" || got.Annotations["missed_spans"] != 3.0 {
		t.Errorf("got %+v", got)
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// Lambda looks for the file; where it cannot be made, spans are sent without.
func TestLambdaIsTold(t *testing.T) {
	from, _ := trace.Parse("00-6a103cc016cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	marker := filepath.Join(t.TempDir(), "of", "lambda", "initialized")
	for _, path := range []string{marker, marker, filepath.Join(marker, "below a file")} {
		address, read := daemon(t)
		e, err := xray.Open(xray.Config{Daemon: address, Service: "belfry", Marker: path})
		if err != nil {
			t.Fatal(err)
		}
		e.Export(trace.Data{Context: from.Context, Name: "claim"})
		if got := read(); got.Annotations["operation"] != "claim" {
			t.Errorf("got %+v", got)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error(err)
	}
}

func TestADaemonThatIsNoAddressIsRefused(t *testing.T) {
	for _, wrong := range []string{"daemon", "127.0.0.1:many"} {
		if _, err := xray.Open(xray.Config{Daemon: wrong, Service: "belfry"}); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
