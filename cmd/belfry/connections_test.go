package main

import (
	"net"
	"testing"
)

// callers is a listener whose callers are given.
type callers struct {
	net.Listener
	next chan *caller
}

func (c callers) Accept() (net.Conn, error) { return <-c.next, nil }

// caller is a connection from an address.
type caller struct {
	net.Conn
	address string
	closed  bool
}

func (c *caller) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.address), Port: 1} }

func (c *caller) Close() error {
	c.closed = true
	return nil
}

// Who opens connections and says nothing needs no token for it, and must not shut everybody else out.
func TestP11_OneAddressHoldsItsShareOfConnections(t *testing.T) {
	calling := callers{next: make(chan *caller, 10)}
	listener := bounded(calling, 4, 2)
	// accepted is the one of these calls that is let in; those before it are not.
	accepted := func(from ...string) net.Conn {
		t.Helper()
		calls := make([]*caller, len(from))
		for i, address := range from {
			calls[i] = &caller{address: address}
			calling.next <- calls[i]
		}
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range calls {
			if last := i == len(calls)-1; c.closed == last || last && conn.RemoteAddr().String() != c.RemoteAddr().String() {
				t.Errorf("of calls from %v, call %d was let in: %v; want the last one only", from, i, !c.closed)
			}
		}
		return conn
	}
	first := accepted("192.0.2.1")
	accepted("192.0.2.1")
	accepted("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2") // another address has its own
	first.Close()
	first.Close() // counts once
	accepted("192.0.2.1")
	last := accepted("192.0.2.1", "2001:db8::1")
	last.Close()
	accepted("2001:db8::2")
}
