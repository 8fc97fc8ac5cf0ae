package target

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAddressesAreJudged(t *testing.T) {
	loopback, linkLocal, metadata := AddressPolicy{AllowLoopback: true}, AddressPolicy{AllowLinkLocal: true}, AddressPolicy{AllowMetadata: true}
	all := AddressPolicy{AllowLoopback: true, AllowLinkLocal: true, AllowMetadata: true}
	for _, c := range []struct {
		addr    string
		allowed []AddressPolicy // the policies that let it pass; none is "never"
	}{
		{"203.0.113.7", []AddressPolicy{{}, loopback, linkLocal, metadata, all}},
		{"10.1.2.3", []AddressPolicy{{}, loopback, linkLocal, metadata, all}},
		{"2001:db8::1", []AddressPolicy{{}, loopback, linkLocal, metadata, all}},
		{"127.0.0.1", []AddressPolicy{loopback, all}},
		{"127.255.255.254", []AddressPolicy{loopback, all}},
		{"0.0.0.0", []AddressPolicy{loopback, all}},
		{"0.1.2.3", []AddressPolicy{loopback, all}},
		{"::", []AddressPolicy{loopback, all}},
		{"::1", []AddressPolicy{loopback, all}},
		{"::ffff:127.0.0.1", []AddressPolicy{loopback, all}},
		{"::127.0.0.1", []AddressPolicy{loopback, all}},
		{"64:ff9b::127.0.0.1", []AddressPolicy{loopback, all}},
		{"169.254.1.1", []AddressPolicy{linkLocal, all}},
		{"::ffff:169.254.1.1", []AddressPolicy{linkLocal, all}},
		{"fe80::1%eth0", []AddressPolicy{linkLocal, all}},
		{"169.254.169.254", []AddressPolicy{metadata, all}},
		{"::ffff:169.254.169.254", []AddressPolicy{metadata, all}},
		{"64:ff9b::a9fe:a9fe", []AddressPolicy{metadata, all}},
		{"169.254.170.2", []AddressPolicy{metadata, all}},
		{"fd00:ec2::254", []AddressPolicy{metadata, all}},
		{"100.100.100.200", []AddressPolicy{metadata, all}},
		{"224.0.0.1", nil},
		{"ff02::1", nil},
		{"255.255.255.255", nil},
	} {
		for _, policy := range []AddressPolicy{{}, loopback, linkLocal, metadata, all} {
			want := false
			for _, allowed := range c.allowed {
				want = want || allowed == policy
			}
			if reason := policy.refusal(netip.MustParseAddr(c.addr)); (reason == "") != want {
				t.Errorf("%s under %+v: refused because %q, want allowed %t", c.addr, policy, reason, want)
			}
		}
	}
}

func TestLoopbackIsRefusedAtConnectUnlessAllowed(t *testing.T) {
	var hits atomic.Int32
	spec := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	at, err := url.Parse(spec.HTTP.URL)
	if err != nil {
		t.Fatal(err)
	}
	closed := newSet(t, func(c *Config) { c.Addresses = AddressPolicy{AllowLinkLocal: true, AllowMetadata: true} })
	// By address, by a name that resolves to it, and by the forms that lead there.
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		for _, atMostOnce := range []bool{false, true} {
			call := testCall()
			call.AtMostOnce = atMostOnce
			_, err := closed.Call(t.Context(), Spec{HTTP: &HTTP{URL: "http://" + host + ":" + at.Port()}}, call)
			f := wantFailure(t, err, KindRefused, true)
			if !strings.Contains(f.Message, "loopback") || !strings.Contains(f.Message, "operator") {
				t.Errorf("%s: the message does not say why: %s", host, f.Message)
			}
		}
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d calls arrived", n)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := newSet(t, nil).Call(t.Context(), Spec{HTTP: &HTTP{URL: "http://" + host + ":" + at.Port()}}, testCall()); err != nil {
			t.Errorf("%s, allowed: %v", host, err)
		}
	}
}
