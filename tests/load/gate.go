package load

import (
	"context"
	"net"
	"sync"
)

// Gate tells the clients whether there is a server to call, and where: each start listens on a port of its own, since nothing
// keeps one free while there is none.
type Gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while there is one
	at   string        // host:port of the newest one
}

// NewGate gives a gate that is down.
func NewGate() *Gate { return &Gate{open: make(chan struct{})} }

// Up says that there is a server at host:port.
func (g *Gate) Up(at string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = at
	close(g.open)
}

// Down says that there is none, or soon will be none.
func (g *Gate) Down() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// At is the host:port of the newest server, "" before there is one.
func (g *Gate) At() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at
}

// dial connects to the newest server, whatever the address.
func (g *Gate) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, g.At())
}

func (g *Gate) wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
