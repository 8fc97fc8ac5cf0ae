package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
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
				err := timeOutAt(t, spec, reached, once)
				if f := wantFailure(t, err, row.kind, false); !strings.HasSuffix(f.Message, row.says) {
					t.Errorf("it says %q, want that it was %s", f.Message, row.says)
				}
			})
		}
	}
}

// A connection that does not come about is none, whichever timer ends the wait for it.
func TestP5_ATimeoutWhileConnectingIsNoConnection(t *testing.T) {
	for _, once := range []bool{false, true} {
		ctx, over := timedOut(t)
		s := newSet(t, func(c *Config) {
			c.Addresses = AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
				Own: func() ([]netip.Addr, error) { over(); <-ctx.Done(); return nil, nil }} // asked in the midst of it
		})
		call := testCall()
		call.AtMostOnce = once
		_, err := s.Call(ctx, Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1/"}}, call)
		if f := wantFailure(t, err, KindConnect, false); !strings.HasSuffix(f.Message, "while connecting") {
			t.Errorf("it says %q", f.Message)
		}
	}
}

// A call that is called off, as by a worker that is being stopped, says whether anything was sent before.
func TestP5_ACallThatIsCalledOffSaysWhetherAnythingWasSent(t *testing.T) {
	stopped := errors.New("the worker is being stopped")
	check := func(t *testing.T, err error, unsent bool) {
		t.Helper()
		wantCancelled(t, err)
		if !errors.Is(err, stopped) || errors.Is(err, ErrUnsent) != unsent {
			t.Errorf("got %v, want that it was stopped, and that nothing was sent: %t", err, unsent)
		}
	}
	for name, row := range map[string]struct {
		scheme string
		behave func(conn net.Conn, reached func())
		unsent bool
	}{
		"handshake": {"https", func(conn net.Conn, reached func()) { _, _ = conn.Read(make([]byte, 4096)); reached() }, true},
		"request":   {"http", func(conn net.Conn, reached func()) { readRequest(conn); reached() }, false},
		"body": {"http", func(conn net.Conn, reached func()) {
			readRequest(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
			trickle(conn, "a", reached)
		}, false},
	} {
		for _, once := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", at most once"}[once], func(t *testing.T) {
				spec, reached := hostile(t, row.behave)
				spec.HTTP.URL = strings.Replace(spec.HTTP.URL, "http", row.scheme, 1)
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() { <-reached; cancel(stopped) }()
				call := testCall()
				call.AtMostOnce = once
				_, err := newSet(t, nil).Call(ctx, spec, call)
				check(t, err, row.unsent)
			})
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Run("connecting", func(t *testing.T) {
		s := newSet(t, func(c *Config) {
			c.Addresses = AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
				Own: func() ([]netip.Addr, error) { cancel(stopped); return nil, nil }} // asked in the midst of it
		})
		_, err := s.Call(ctx, Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1/"}}, testCall())
		check(t, err, true)
	})
	t.Run("before it", func(t *testing.T) {
		_, err := newSet(t, nil).Call(ctx, Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1/"}}, testCall())
		check(t, err, true)
	})
	t.Run("secret", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newSet(t, func(c *Config) {
			c.Secrets = func(ctx context.Context, _, _ string) (string, error) {
				cancel(stopped)
				<-ctx.Done()
				return "", ctx.Err()
			}
		})
		_, err := s.Call(ctx, Spec{HTTP: &HTTP{URL: "http://127.0.0.1:1/", Headers: map[string]Value{"A": {Secret: "s"}}}}, testCall())
		check(t, err, true)
	})
	t.Run("AWS", func(t *testing.T) {
		arns, err := ParseARNPatterns(reportARN)
		if err != nil {
			t.Fatal(err)
		}
		for _, unsent := range []bool{true, false} {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := newSet(t, func(c *Config) {
				c.ARNs = arns
				c.AWS = func(ctx context.Context, _ AWS, _ Call) (Result, error) {
					cancel(stopped)
					if unsent {
						return Result{}, fmt.Errorf("%w: %w", ErrUnsent, ctx.Err())
					}
					return Result{}, ctx.Err()
				}
			})
			_, err := s.Call(ctx, Spec{AWS: &AWS{ARN: reportARN}}, testCall())
			check(t, err, unsent)
		}
	})
}

// While a kept connection carries a request, the transport may go on dialling for others: the request has been sent all the same.
func TestP5_WhatWasSentStaysSent(t *testing.T) {
	at := new(progress)
	for _, phase := range []int32{connecting, securing, sending, connecting, waiting, securing} {
		at.reach(phase)
	}
	if !at.sent() || at.phase.Load() != waiting {
		t.Errorf("it is at %s", phases[at.phase.Load()])
	}
}
