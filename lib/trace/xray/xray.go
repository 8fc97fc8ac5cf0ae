// Package xray sends spans to the daemon of AWS X-Ray, in the form and over the connection of AWS's SDK for it. This file is all that
// knows that SDK, whose support ends on 2027-02-25; lib/trace/otlp goes on, and AWS's collector takes what it sends.
//
// What a process did for others, and what a run began with, are segments; what is below them in the same process are subsegments,
// each sent by itself when it ends. A datagram that nobody takes is lost, and nobody waits for it.
package xray

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-xray-sdk-go/v2/strategy/exception"
	"github.com/aws/aws-xray-sdk-go/v2/xray"
	"github.com/aws/aws-xray-sdk-go/v2/xraylog"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// DefaultDaemon is where the daemon listens where nothing else is said.
const DefaultDaemon = "127.0.0.1:2000"

// Config is for Open.
type Config struct {
	Daemon  string // HOST:PORT that takes segments by UDP; "" for DefaultDaemon
	Service string // how this process is called on X-Ray's map; required
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
	xray.SetLogger(xraylog.NullLogger) // it writes to standard output, which is ours
	emitter, err := xray.NewDefaultEmitter(at)
	if err != nil {
		return nil, err
	}
	return &exporter{emitter: emitter, service: cfg.Service}, nil
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

type exporter struct {
	emitter xray.Emitter
	service string
}

// Export sends a span.
func (e *exporter) Export(d trace.Data) {
	s := &xray.Segment{
		Sampled: true, TraceID: traceID(d.Context), ID: hex.EncodeToString(d.Span[:]), Name: e.service,
		StartTime: seconds(d.Start), EndTime: seconds(d.End), Annotations: map[string]any{"operation": d.Name},
	}
	s.ParentSegment = s
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
			s.GetHTTP().GetRequest().Method = a.Value
		case "url.path":
			s.GetHTTP().GetRequest().URL = a.Value
		case "http.response.status_code":
			s.GetHTTP().Response = &xray.ResponseData{Status: number(a.Value)}
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
		s.Cause = &xray.CauseData{Exceptions: []exception.Exception{{ID: s.ID, Type: "error", Message: d.Error}}}
	}
	e.emitter.Emit(s)
}

// Flush has nothing to wait for.
func (*exporter) Flush(context.Context) error { return nil }

// Close has nothing to wait for.
func (*exporter) Close(context.Context) error { return nil }

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
