package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func (r *rig) gate(t *testing.T, cfg access.GateConfig) *access.Gate {
	t.Helper()
	cfg.Tokens, cfg.Now = r.Tokens, r.clock.Now
	g, err := access.NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var here = netip.MustParseAddr("192.0.2.1")

func limited(t *testing.T, err error) *access.Limited {
	t.Helper()
	var l *access.Limited
	if !errors.As(err, &l) || l.RetryAfter <= 0 || l.Message == "" {
		t.Fatalf("got %v, want it refused for now, with when to try again", err)
	}
	return l
}

func refused(t *testing.T, err error) *access.Unauthenticated {
	t.Helper()
	var u *access.Unauthenticated
	if !errors.As(err, &u) {
		t.Fatalf("got %v, want the caller refused", err)
	}
	return u
}

func TestAnOpenServerAsksNobodyAndStillBelievesNoWrongToken(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{})
	c, err := g.Admit(t.Context(), "", here)
	if err != nil || c.Tenant != "default" || !c.May(access.Admin) || !c.Host {
		t.Errorf("without a token: %+v, %v; want everything as default", c, err)
	}
	text, _ := r.create(t, "acme", access.Read)
	c, err = g.Admit(t.Context(), text, here)
	if err != nil || c.Tenant != "acme" || c.May(access.Write) || c.Host {
		t.Errorf("with a token: %+v, %v; want what the token is for", c, err)
	}
	_, err = g.Admit(t.Context(), "bel_nonsense", here)
	if u := refused(t, err); !u.Given || !strings.Contains(u.Message, "asks for none") {
		t.Errorf("with a wrong token: %+v", u)
	}
}

func TestAClosedServerSaysTheSameOfWhateverIsWrong(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	_, made := r.create(t, "default", access.Admin)
	_, err := g.Admit(t.Context(), "", here)
	if u := refused(t, err); u.Given {
		t.Errorf("without a token: %+v", u)
	}
	var first string
	for _, wrong := range []string{"x", access.Forge(made.ID, strings.Repeat("0", 43)), access.Forge(strings.Repeat("0", 16), strings.Repeat("0", 43))} {
		_, err := g.Admit(t.Context(), wrong, here)
		u := refused(t, err)
		if first == "" {
			first = u.Message
		}
		if !u.Given || u.Message != first {
			t.Errorf("%s: %q, want %q as for the others", wrong, u.Message, first)
		}
	}
	r.set(func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{Refuse: store.ErrThrottled} })
	if _, err := g.Admit(t.Context(), access.Forge(strings.Repeat("1", 16), strings.Repeat("0", 43)), here); !errors.Is(err, store.ErrThrottled) {
		t.Errorf("while the store fails: %v", err)
	}
}

func TestP11_ATokenIsHeldToItsRateAndOthersAreNot(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true, Rate: 10, Burst: 20})
	fast, _ := r.create(t, "default", access.Read)
	slow, _ := r.create(t, "default", access.Read)
	for range 20 {
		if _, err := g.Admit(t.Context(), fast, here); err != nil {
			t.Fatal(err)
		}
	}
	_, err := g.Admit(t.Context(), fast, here)
	wait := limited(t, err).RetryAfter
	if wait > 100*time.Millisecond {
		t.Errorf("try again after %s, want a tenth of a second at most", wait)
	}
	if _, err := g.Admit(t.Context(), slow, here); err != nil {
		t.Errorf("another token: %v", err)
	}
	r.clock.add(wait)
	if _, err := g.Admit(t.Context(), fast, here); err != nil {
		t.Errorf("after the time that was named: %v", err)
	}
	r.clock.add(time.Minute)
	passed := 0
	for range 100 {
		if _, err := g.Admit(t.Context(), fast, here); err == nil {
			passed++
		}
	}
	if passed != 20 {
		t.Errorf("after a pause %d pass at once, want the burst of 20", passed)
	}
}

func TestP11_WhoGuessesIsSlowedDownAndTakesNobodyAlong(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	good, _ := r.create(t, "default", access.Read)
	unseen, _ := r.create(t, "default", access.Read)
	if _, err := g.Admit(t.Context(), good, here); err != nil {
		t.Fatal(err)
	}
	guess := func(n int, from netip.Addr) error {
		_, err := g.Admit(t.Context(), access.Forge(fmt.Sprintf("%016x", n), strings.Repeat("0", 43)), from)
		return err
	}
	for n := range 20 {
		refused(t, guess(n, here))
	}
	before := r.reads()
	for n := range 1000 {
		limited(t, guess(100+n, here))
	}
	if got := r.reads(); got != before {
		t.Errorf("the store was asked about %d guesses beyond the limit", got-before)
	}
	r.clock.add(10 * time.Millisecond)
	if _, err := g.Admit(t.Context(), good, here); err != nil {
		t.Errorf("a good token from the same address: %v", err)
	}
	_, err := g.Admit(t.Context(), unseen, here)
	limited(t, err)
	if _, err := g.Admit(t.Context(), unseen, netip.MustParseAddr("192.0.2.2")); err != nil {
		t.Errorf("a token from another address: %v", err)
	}
	if err := guess(1, netip.MustParseAddr("::ffff:192.0.2.1")); err == nil {
		t.Error("a guess was let in")
	} else {
		limited(t, err)
	}
	// One subscriber has 2^64 addresses of IPv6.
	for n := range 20 {
		refused(t, guess(n, netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", n+1))))
	}
	limited(t, guess(1, netip.MustParseAddr("2001:db8::ffff")))
	refused(t, guess(1, netip.MustParseAddr("2001:db8:0:1::1")))
	for n := range 30 {
		guess(n, here)
	}
	r.clock.add(access.CacheFor)
	if _, err := g.Admit(t.Context(), good, here); err != nil {
		t.Errorf("a good token whose time in the cache is over: %v", err)
	}
}

func TestP11_AddressesAreRememberedInBoundedMemory(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Required: true})
	for n := range 30_000 {
		from := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
		_, err := g.Admit(t.Context(), "bel_guess", from)
		if err == nil {
			t.Fatal("a guess was let in")
		}
		if got := g.Addresses(); got > 10_000 {
			t.Fatalf("after %d addresses %d are remembered, want 10000 at most", n+1, got)
		}
	}
	r.clock.add(time.Minute) // their buckets are full again
	refusedNow := func(from string) {
		t.Helper()
		_, err := g.Admit(t.Context(), "bel_guess", netip.MustParseAddr(from))
		refused(t, err)
	}
	refusedNow("192.0.2.77")
	if got := g.Addresses(); got != 1 {
		t.Errorf("%d addresses are remembered that have not called for a minute", got-1)
	}
}

func TestP11_RequestsUnderWayAreBounded(t *testing.T) {
	r := newRig(t)
	g := r.gate(t, access.GateConfig{Requests: 4, Waiting: 2})
	one, two := access.Caller{Token: "1", Tenant: "a"}, access.Caller{Token: "2", Tenant: "b"}
	another := access.Caller{Token: "3", Tenant: "a"}
	enter := func(c access.Caller, places int) func() {
		t.Helper()
		leave, err := g.Enter(c, places)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	full := func(c access.Caller, places int) {
		t.Helper()
		_, err := g.Enter(c, places)
		limited(t, err)
	}
	first := enter(one, 1)
	enter(one, 1)
	full(one, 1)     // half of the places
	full(another, 1) // of the same tenant
	enter(access.Caller{Token: "3", Tenant: "a", Host: true}, 1)()
	both := enter(two, 2)
	full(access.Caller{}, 1)

	wait := func(c access.Caller) func() { // counted apart
		t.Helper()
		leave, err := g.Wait(c)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	waits := wait(one)
	for _, c := range []access.Caller{one, another} { // half of the places
		_, err := g.Wait(c)
		limited(t, err)
	}
	wait(two)
	_, err := g.Wait(access.Caller{})
	limited(t, err)
	waits()
	wait(one)

	both()
	full(one, 1)
	first()
	enter(one, 1)
	large := enter(two, access.BatchPlaces) // more than there are: all that one token may have
	full(access.Caller{}, 1)
	large()
	enter(access.Caller{}, 1)
	enter(access.Caller{}, 1)
}
