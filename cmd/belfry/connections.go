package main

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/netutil"

	"github.com/belfry-scheduler/belfry/lib/access"
)

// mostConnections bounds what callers hold open who have not said yet who they are. More than the workers that may wait.
const mostConnections = 10_000

// bounded is a listener with at most so many connections open, and no more of one network than its share: those beyond that
// are closed at once.
func bounded(listener net.Listener, most, share int) net.Listener {
	return netutil.LimitListener(&fair{Listener: listener, share: share, open: map[string]int{}}, most)
}

// fair is a listener that counts the connections of each network.
type fair struct {
	net.Listener
	share int

	mu   sync.Mutex
	open map[string]int
}

func (f *fair) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network := networkOf(conn.RemoteAddr())
		if f.enter(network) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { f.leave(network) })}, nil
		}
		_ = conn.Close() // nothing was said on it
	}
}

func networkOf(address net.Addr) string {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return ""
	}
	return access.Network(at.Addr())
}

func (f *fair) enter(network string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[network] >= f.share {
		return false
	}
	f.open[network]++
	return true
}

func (f *fair) leave(network string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[network]--; f.open[network] == 0 {
		delete(f.open, network)
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}
