package target

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// names is a DNS server on loopback: each look-up of an IPv4 address gets the next answer, and the last one for ever.
type names struct {
	*net.Resolver
	mu      sync.Mutex
	answers [][]netip.Addr
	asked   int
}

func startNames(t *testing.T, answers ...[]netip.Addr) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{answers: answers}
	n.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		question := make([]byte, 512)
		for {
			size, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			conn.WriteTo(n.answer(question[:size]), from)
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return n
}

// answer writes a message of RFC 1035, 4.1: the question again, then the addresses, none of them to be kept.
func (n *names) answer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	end += 5 // the root, type and class
	const typeA = 1
	var addrs []netip.Addr
	if binary.BigEndian.Uint16(question[end-4:]) == typeA {
		n.mu.Lock()
		addrs = n.answers[min(n.asked, len(n.answers)-1)]
		n.asked++
		n.mu.Unlock()
	}
	message := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0}, question[12:end]...)
	for _, addr := range addrs {
		message = append(message, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		message = append(message, addr.AsSlice()...)
	}
	return message
}

// calledBy is a set that asks these names.
func (n *names) calledBy(t *testing.T, policy AddressPolicy) *Set {
	t.Helper()
	s := newSet(t, func(c *Config) { c.Addresses = policy })
	dialer := policy.dialer()
	dialer.Resolver = n.Resolver
	s.shared.DialContext, s.fresh.DialContext = dialer.DialContext, dialer.DialContext
	return s
}

func addresses(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// A name shows an innocent address to who checks it, and another one to who connects.
func TestANameThatChangesBetweenLookUpAndConnectGainsNothing(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close() // on 127.0.0.1
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{HTTP: &HTTP{URL: "http://changes.example:" + at.Port()}}
	policy := AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	for _, atMostOnce := range []bool{false, true} {
		call := testCall()
		call.AtMostOnce = atMostOnce
		n := startNames(t, addresses("127.0.0.2"), addresses("127.0.0.1"))
		looked, err := n.LookupNetIP(t.Context(), "ip4", "changes.example")
		if err != nil || policy.refusal(looked[0], nil) != nil {
			t.Fatalf("the look-up gives %v, %v; want an address that is allowed", looked, err)
		}
		_, err = n.calledBy(t, policy).Call(t.Context(), spec, call)
		f := wantFailure(t, err, KindRefused, true)
		if !strings.Contains(f.Message, "127.0.0.1 is a loopback address") {
			t.Errorf("it says %q", f.Message)
		}
		n.mu.Lock()
		if n.asked != 2 {
			t.Errorf("the name was asked for %d times, want once by the test and once by the call", n.asked)
		}
		n.mu.Unlock()
	}
	if hits.Load() != 0 {
		t.Fatalf("%d calls arrived", hits.Load())
	}

	// Of several addresses, one that is allowed is good enough, and the others are not tried.
	n := startNames(t, addresses("169.254.169.254", "10.0.0.1", "127.0.0.1"))
	policy = AddressPolicy{AllowLoopback: true, DenyPrivate: true}
	if _, err := n.calledBy(t, policy).Call(t.Context(), spec, testCall()); err != nil || hits.Load() != 1 {
		t.Errorf("with one good address among bad ones: %v, %d calls", err, hits.Load())
	}
}

// A proxy of the environment would be connected to in place of the target, and reach for us what we must not reach. The
// standard library reads the environment once a process, so this takes one of its own.
func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	if os.Getenv("BELFRY_TEST_PROXY") != "" {
		n := startNames(t, addresses("127.0.0.2"))
		proxyAlone := AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
		_, err := n.calledBy(t, proxyAlone).Call(t.Context(), Spec{HTTP: &HTTP{URL: "http://target.example:1"}}, testCall())
		wantFailure(t, err, KindRefused, true)
		return
	}
	var hits atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer proxy.Close()
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.count", "1")
	again.Env = append(os.Environ(), "BELFRY_TEST_PROXY=1", "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "ALL_PROXY="+proxy.URL, "NO_PROXY=", "no_proxy=")
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	if hits.Load() != 0 {
		t.Errorf("the proxy got %d calls", hits.Load())
	}
}
