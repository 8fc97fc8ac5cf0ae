// Package xray sends spans to the daemon of AWS X-Ray, as the X-Ray Developer Guide has it: segment documents by UDP, each a line of
// JSON after a line that says so. Of AWS's SDK for X-Ray, trace uses what reads and writes the header. Its package xray is not used: for a struct and a write to a
// socket it brings a server for HTTP and a compressor along, some 260 KB of each function.
//
// What a process did for others, and what a run began with, are segments; what is below them in the same process are subsegments,
// each sent by itself when it ends. A datagram that nobody takes is lost, and nobody waits for it.
package xray

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// DefaultDaemon is where the daemon listens where nothing else is said.
const DefaultDaemon = "127.0.0.1:2000"

// Marker is the file by which Lambda is told that a function sends segments itself, as AWS's SDKs tell it.
const Marker = "/tmp/.aws-xray/initialized"

// Config is for Open.
type Config struct {
	Daemon  string // HOST:PORT that takes segments by UDP, or "tcp:HOST:PORT udp:HOST:PORT"; "" for DefaultDaemon
	Service string // how this process is called on X-Ray's map; required
	Marker  string // a file to make; "" for none
}

// Open finds the daemon's address. It does not ask whether somebody listens there: UDP would not tell.
func Open(cfg Config) (trace.Exporter, error) {
	if cfg.Service == "" {
		return nil, errors.New("xray: Service is required")
	}
	if cfg.Daemon == "" {
		cfg.Daemon = DefaultDaemon
	}
	at, err := net.ResolveUDPAddr("udp", datagrams(cfg.Daemon))
	if err != nil {
		return nil, fmt.Errorf("the daemon of X-Ray at %q: want HOST:PORT, as in %s: %w", cfg.Daemon, DefaultDaemon, err)
	}
	if cfg.Marker != "" {
		// Without it spans are sent all the same.
		_ = errors.Join(os.MkdirAll(filepath.Dir(cfg.Marker), 0o777), os.WriteFile(cfg.Marker, nil, 0o666))
	}
	return &exporter{at: at, service: cfg.Service}, nil
}

// datagrams is the address for segments, where one for questions about sampling stands beside it: "tcp:HOST:PORT udp:HOST:PORT".
func datagrams(daemon string) string {
	for part := range strings.FieldsSeq(daemon) {
		if at, ok := strings.CutPrefix(part, "udp:"); ok {
			return at
		}
	}
	return daemon
}

// segment is a segment document, or one of a subsegment that is sent by itself.
type segment struct {
	TraceID     string         `json:"trace_id"`
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	StartTime   float64        `json:"start_time"` // Unix seconds, as EndTime
	EndTime     float64        `json:"end_time"`
	ParentID    string         `json:"parent_id,omitempty"`
	Fault       bool           `json:"fault,omitempty"`
	Cause       *cause         `json:"cause,omitempty"`
	Type        string         `json:"type,omitempty"`
	Namespace   string         `json:"namespace,omitempty"`
	HTTP        *exchange      `json:"http,omitempty"`
	Annotations map[string]any `json:"annotations"`
}

type cause struct {
	Exceptions []exception `json:"exceptions"`
}

type exception struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

type exchange struct {
	Request  *request  `json:"request,omitempty"`
	Response *response `json:"response,omitempty"`
}

type request struct {
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
}

type response struct {
	Status int `json:"status,omitempty"`
}

// request gives what is told of the request, for more to be told.
func (s *segment) request() *request {
	if s.http().Request == nil {
		s.HTTP.Request = &request{}
	}
	return s.HTTP.Request
}

func (s *segment) http() *exchange {
	if s.HTTP == nil {
		s.HTTP = &exchange{}
	}
	return s.HTTP
}

type exporter struct {
	at      *net.UDPAddr
	service string

	mu   sync.Mutex
	conn *net.UDPConn // nil before the first span
}

// Export sends a span.
func (e *exporter) Export(d trace.Data) {
	s := &segment{
		TraceID: traceID(d.Context), ID: hex.EncodeToString(d.Span[:]), Name: e.service,
		StartTime: seconds(d.Start), EndTime: seconds(d.End), Annotations: map[string]any{"operation": d.Name},
	}
	if d.Above != [8]byte{} {
		s.ParentID = hex.EncodeToString(d.Above[:])
	}
	if d.Local {
		s.Type, s.Name = "subsegment", d.Name
		if d.Kind == trace.Client && strings.HasPrefix(d.Name, "target ") {
			s.Namespace = "remote"
		}
	}
	for _, a := range d.Attrs {
		switch a.Key {
		case "http.request.method":
			s.request().Method = a.Value
		case "url.path":
			s.request().URL = a.Value
		case "http.response.status_code":
			s.http().Response = &response{Status: number(a.Value)}
		default:
			s.Annotations[annotation(a.Key)] = a.Value
		}
	}
	for i, l := range d.Links {
		s.Annotations[annotation("belfry.linked_trace"+strconv.Itoa(i+1))] = traceID(l)
	}
	if d.Missed > 0 {
		s.Annotations["missed_spans"] = d.Missed
	}
	if d.Error != "" {
		s.Fault = true
		s.Cause = &cause{Exceptions: []exception{{ID: s.ID, Type: "error", Message: d.Error}}}
	}
	e.send(s)
}

const header = `{"format": "json", "version": 1}` + "\n"

// send tells nobody what it could not send.
func (e *exporter) send(s *segment) {
	document, err := json.Marshal(s)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == nil {
		if e.conn, err = net.DialUDP("udp", nil, e.at); err != nil {
			return
		}
	}
	_, _ = e.conn.Write(append([]byte(header), document...))
}

// Flush has nothing to wait for.
func (*exporter) Flush(context.Context) error { return nil }

// Close has nothing to wait for either.
func (e *exporter) Close(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == nil {
		return nil
	}
	return e.conn.Close()
}

// traceID is a trace as X-Ray writes it.
func traceID(c trace.Context) string {
	id := c.ID()
	return "1-" + id[:8] + "-" + id[8:]
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// annotation is a key as X-Ray takes it: letters, digits and underscores.
func annotation(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.TrimPrefix(key, "belfry."))
}
