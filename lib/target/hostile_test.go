package target

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// hostile is a server that speaks no further than it wants to. reached is closed when it is where it stays.
func hostile(t *testing.T, behave func(conn net.Conn, reached func())) (spec Spec, reached <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := make(chan struct{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() { <-t.Context().Done(); conn.Close() }()
		behave(conn, func() { close(at) })
		<-t.Context().Done()
	}()
	t.Cleanup(func() { listener.Close(); <-served })
	return Spec{HTTP: &HTTP{URL: "http://" + listener.Addr().String() + "/hook"}}, at
}

// readRequest takes the request off the wire.
func readRequest(conn net.Conn) {
	if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
}

// timeOutAt calls a target, and has the time be over when it has come to what it does without an end.
func timeOutAt(t *testing.T, spec Spec, reached <-chan struct{}, once bool) error {
	t.Helper()
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
	return err
}

// TestACallEndsAtItsTimeoutWhateverTheServerDoes: each of these servers keeps its side open for ever.
func TestACallEndsAtItsTimeoutWhateverTheServerDoes(t *testing.T) {
	for name, behave := range map[string]func(conn net.Conn, reached func()){
		"silence after the first byte": func(conn net.Conn, reached func()) { _, _ = conn.Read(make([]byte, 1)); reached() },
		"silence after the request":    func(conn net.Conn, reached func()) { readRequest(conn); reached() },
		"silence after the headers": func(conn net.Conn, reached func()) {
			readRequest(conn)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
			reached()
		},
		"headers without an end": func(conn net.Conn, reached func()) {
			readRequest(conn)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Slow: ")
			trickle(conn, "a", reached)
		},
		"early hints without an end": func(conn net.Conn, reached func()) {
			readRequest(conn)
			trickle(conn, "HTTP/1.1 103 Early Hints\r\n\r\n", reached)
		},
		"a body that trickles": func(conn net.Conn, reached func()) {
			readRequest(conn)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			trickle(conn, "1\r\na\r\n", reached)
		},
		"a compressed body without content": func(conn net.Conn, reached func()) {
			readRequest(conn)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
			trickle(conn, "\x00\x00\x00\xff\xff", reached) // an empty block
		},
	} {
		for _, once := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", at most once"}[once], func(t *testing.T) {
				t.Parallel()
				spec, reached := hostile(t, behave)
				err := timeOutAt(t, spec, reached, once)
				wantFailure(t, err, KindTimeout, false)
			})
		}
	}
}

// TestAnErrorWhoseBodyNeverEnds ends at the timeout too; its status is the verdict.
func TestAnErrorWhoseBodyNeverEnds(t *testing.T) {
	spec, reached := hostile(t, func(conn net.Conn, reached func()) {
		readRequest(conn)
		io.WriteString(conn, "HTTP/1.1 500 Internal Server Error\r\n\r\n")
		trickle(conn, "a", reached)
	})
	ctx, over := timedOut(t)
	go func() {
		select {
		case <-reached:
			over()
		case <-t.Context().Done():
		}
	}()
	_, err := newSet(t, nil).Call(ctx, spec, testCall())
	wantFailure(t, err, KindHTTPStatus, false)
}

// trickle writes the same for ever, slowly enough that no limit on bytes is met first.
func trickle(conn net.Conn, text string, reached func()) {
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		if n == 3 {
			reached()
		}
		<-pace.C
	}
}

// TestASwitchOfProtocolsIsAnAnswer: the transport hands over the connection in place of a body, and whoever reads it waits for ever.
func TestASwitchOfProtocolsIsAnAnswer(t *testing.T) {
	for name, after := range map[string]string{"silence": "", "bytes": "anything at all"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _ := hostile(t, func(conn net.Conn, _ func()) {
				readRequest(conn)
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: anything\r\n\r\n"+after)
			})
			_, err := newSet(t, nil).Call(t.Context(), spec, testCall())
			if f := wantFailure(t, err, KindHTTPStatus, true); f.Message != "answered 101 Switching Protocols" {
				t.Errorf("got %q", f.Message)
			}
		})
	}
}

// TestHeadersThatGrowForEverAreCutOff: a server that sends headers as fast as it can meets the limit on their size.
func TestHeadersThatGrowForEverAreCutOff(t *testing.T) {
	for name, behave := range map[string]string{"headers": "X-More: " + strings.Repeat("a", 1000) + "\r\n", "early hints": "HTTP/1.1 103 Early Hints\r\nX: " + strings.Repeat("a", 1000) + "\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _ := hostile(t, func(conn net.Conn, _ func()) {
				readRequest(conn)
				if name == "headers" {
					io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
				}
				for {
					if _, err := io.WriteString(conn, behave); err != nil {
						return
					}
				}
			})
			_, err := newSet(t, nil).Call(t.Context(), spec, testCall())
			if f := wantFailure(t, err, KindLost, false); f.Message != "the headers of the answer are larger than 64 KiB" {
				t.Errorf("it says %q", f.Message)
			}
		})
	}
}

// TestAnHTTP2ServerThatSaysNothingMore holds no call past its time, and none of the next calls to it.
func TestAnHTTP2ServerThatSaysNothingMore(t *testing.T) {
	reached := make(chan struct{}, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	s := newSet(t, nil)
	s.shared.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	for range 2 {
		ctx, over := timedOut(t)
		go func() { <-reached; over() }()
		_, err := s.Call(ctx, Spec{HTTP: &HTTP{URL: server.URL}}, testCall())
		wantFailure(t, err, KindTimeout, false)
	}
}

// TestWhatIgnoresItsContextIsLeftBehind: the last resort, for whatever the transport may do that none of these servers provokes.
func TestWhatIgnoresItsContextIsLeftBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	goOn := make(chan struct{})
	defer close(goOn)
	if bounded(ctx, time.Millisecond, func() { <-goOn }) {
		t.Error("what goes on is said to have ended")
	}
	ran := false
	if !bounded(ctx, time.Hour, func() { ran = true }) || !ran {
		t.Error("what ends within the grace is given up")
	}
}
