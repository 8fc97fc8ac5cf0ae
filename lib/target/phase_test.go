package target

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
)

// A call that its timeout ends before a byte of the request was sent is known to have done nothing, also at most once.
func TestP5_ATimeoutBeforeAnythingWasSentIsKnownToHaveDoneNothing(t *testing.T) {
	for name, row := range map[string]struct {
		scheme string
		behave func(conn net.Conn, reached func())
		kind   string
		says   string
	}{
		"handshake": {"https", func(conn net.Conn, reached func()) { // it takes the greeting and says nothing
			_, _ = conn.Read(make([]byte, 4096))
			reached()
		}, KindConnect, "in the TLS handshake"},
		"request": {"http", func(conn net.Conn, reached func()) { readRequest(conn); reached() }, KindTimeout, "waiting for the answer"},
		"body": {"http", func(conn net.Conn, reached func()) {
			readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
			trickle(conn, "a", reached)
		}, KindTimeout, "reading the answer"},
	} {
		for _, once := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", at most once"}[once], func(t *testing.T) {
				spec, reached := hostile(t, row.behave)
				spec.HTTP.URL = strings.Replace(spec.HTTP.URL, "http", row.scheme, 1)
				ctx, over := timedOut(t)
				go func() {
					select {
					case <-reached:
						over()
					case <-t.Context().Done():
					}
				}()
				call := testCall()
				call.AtMostOnce = once
				_, err := newSet(t, nil).Call(ctx, spec, call)
				if f := wantFailure(t, err, row.kind, false); !strings.HasSuffix(f.Message, row.says) {
					t.Errorf("it says %q, want that it was %s", f.Message, row.says)
				}
			})
		}
	}
}

// Nobody accepts, and the backlog is full: the connection hangs, whichever timer ends it.
func TestP5_AFullBacklogIsNoConnection(t *testing.T) {
	for _, once := range []bool{false, true} {
		ctx, over := timedOut(t)
		s := newSet(t, nil)
		transport := s.shared
		if once {
			transport = s.fresh
		}
		dial := transport.DialContext
		transport.DialContext = func(dialled context.Context, network, address string) (net.Conn, error) {
			over() // the request is at connecting
			<-dialled.Done()
			return dial(dialled, network, address)
		}
		call := testCall()
		call.AtMostOnce = once
		_, err := s.Call(ctx, Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1/"}}, call)
		wantFailure(t, err, KindConnect, false)
	}
}
