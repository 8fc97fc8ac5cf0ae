// Package proxy is a bad network between two processes: a TCP proxy that at random loses requests, swallows the answers to requests that
// it has forwarded, delays both, and cuts connections in the middle of what they carry. It knows nothing of what it carries.
package proxy

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is what happens to a piece of what is carried: mostly a whole request, or a whole answer.
type Fault string

// The faults.
const (
	Lose    Fault = "request lost"    // nothing of it is forwarded, and the caller's connection is reset
	CutIn   Fault = "request cut"     // half of it is forwarded, and both connections are reset
	Swallow Fault = "answer lost"     // it is not forwarded, and the caller's connection is reset
	CutOut  Fault = "answer cut"      // half of it is forwarded, and both connections are reset
	Silence Fault = "answer withheld" // as lost, but the caller is told only after the longest delay
	Delay   Fault = "delayed"         // it comes later, by up to the longest delay
)

// Config says what a proxy does.
type Config struct {
	To      func() string // host:port of the server now; "" for none
	Seed    uint64
	Rate    float64       // how many of the pieces have a fault: 0 to 1
	Longest time.Duration // of a delay
}

// Proxy is one, listening.
type Proxy struct {
	cfg      Config
	listener net.Listener
	ctx      context.Context // ends with the proxy
	calls    sync.WaitGroup

	mu     sync.Mutex
	rng    *rand.Rand
	calm   bool
	counts map[Fault]int
}

// Start starts a proxy on a free port of loopback, for as long as the test lasts.
func Start(t testing.TB, cfg Config) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{cfg: cfg, listener: listener, ctx: ctx, rng: rand.New(rand.NewPCG(cfg.Seed, 0)), counts: map[Fault]int{}}
	p.calls.Go(p.accept)
	t.Cleanup(func() {
		cancel()
		listener.Close()
		p.calls.Wait()
	})
	return p
}

// HostPort is where it listens.
func (p *Proxy) HostPort() string { return p.listener.Addr().String() }

// URL is the same with http:// before it.
func (p *Proxy) URL() string { return "http://" + p.HostPort() }

// Calm ends all faults.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = true
}

// Counts tells how often each fault happened.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// draw chooses what happens to a piece, "" for nothing, and how long a delay is.
func (p *Proxy) draw(from ...Fault) (Fault, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm || p.rng.Float64() >= p.cfg.Rate {
		return "", 0
	}
	f := from[p.rng.IntN(len(from))]
	p.counts[f]++
	return f, time.Duration(p.rng.Int64N(int64(p.cfg.Longest) + 1))
}

func (p *Proxy) accept() {
	for {
		caller, err := p.listener.Accept()
		if err != nil {
			return // closed, at the end of the test
		}
		p.calls.Go(func() { p.carry(caller) })
	}
}

// carry carries a connection to the server, until either end or the network has enough of it.
func (p *Proxy) carry(caller net.Conn) {
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.cfg.To())
	if err != nil {
		reset(caller)
		return
	}
	stop := context.AfterFunc(p.ctx, func() { caller.Close(); server.Close() })
	defer stop()
	var ways sync.WaitGroup
	ways.Go(func() { p.way(caller, server, caller, Lose, CutIn, Delay) })
	ways.Go(func() { p.way(server, caller, caller, Swallow, CutOut, Silence, Delay) })
	ways.Wait()
}

// way carries what comes from one end to the other.
func (p *Proxy) way(from, to, caller net.Conn, faults ...Fault) {
	defer from.Close()
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			fault, wait := p.draw(faults...)
			switch fault {
			case Lose, Swallow:
				reset(caller)
				return
			case CutIn, CutOut:
				_, _ = to.Write(piece[:n/2])
				reset(caller)
				return
			case Silence:
				p.pause(p.cfg.Longest)
				reset(caller)
				return
			case Delay:
				p.pause(wait)
			}
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) pause(d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-p.ctx.Done():
	}
}

// reset ends a connection as a broken network does, without a farewell.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
