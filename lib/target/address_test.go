package target

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// Which policy lets which kind of address pass.
var (
	closed      = AddressPolicy{}
	toLoopback  = AddressPolicy{AllowLoopback: true}
	toLinkLocal = AddressPolicy{AllowLinkLocal: true}
	toMetadata  = AddressPolicy{AllowMetadata: true}
	noPrivate   = AddressPolicy{DenyPrivate: true}
	wide        = AddressPolicy{AllowLoopback: true, AllowLinkLocal: true, AllowMetadata: true}
	policies    = map[string]AddressPolicy{"closed": closed, "loopback": toLoopback, "link-local": toLinkLocal, "metadata": toMetadata, "no private": noPrivate, "wide": wide}
)

func TestAddressesAreJudged(t *testing.T) {
	const (
		world    = "closed, loopback, link-local, metadata, no private, wide"
		own      = "closed, loopback, link-local, metadata, wide"
		host     = "loopback, wide"
		wire     = "link-local, wide"
		metadata = "metadata, wide"
		nobody   = ""
	)
	rows := 0
	for addresses, allowed := range map[string]string{
		// The world.
		"8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0":       world,
		"169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 223.255.255.255": world,
		"192.0.0.9 192.0.0.10 192.31.196.1 192.52.193.1 192.175.48.1 198.17.255.255 198.20.0.0":             world,
		"2606:4700::1111 2a00::1 2001:200::1 2001:1::1 2001:1::2 2001:1::3 2001:3::1 2001:4:112::1":         world,
		"2001:20::1 2001:30::1 2620:4f:8000::1 2001:db7::1 2001:db9::1 3ffe::1 5eff::1":                     world,
		// Networks of one's own.
		"10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255": own,
		"fc00::1 fd00::1 fdff:ffff::1 fec0::1":                                          own,
		// This host and this wire.
		"127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 :: ::1": host,
		"169.254.0.1 169.254.255.254 fe80::1 febf::1":      wire,
		"fe80::1%eth0": wire,
		"169.254.169.254 169.254.170.2 169.254.170.23":        metadata,
		"100.100.100.200 168.63.129.16 192.0.0.192":           metadata,
		"fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42": metadata,
		// Nowhere.
		"100.64.0.0 100.127.255.255 192.0.0.1 192.0.0.8 192.0.0.170 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255": nobody,
		"198.51.100.1 203.0.113.7 240.0.0.1 255.255.255.254 255.255.255.255 224.0.0.1 239.255.255.255":               nobody,
		"64:ff9b:1::a00:1 100::1 100:0:0:1::1 2001:1::4 2001:2::1 2001:10::1 2001:db8::1 2001:100::1":                nobody,
		"3fff::1 3fff:fff::1 5f00::1 ff02::1 ff0e::1":                                                                nobody,
		// IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo (server 8.8.8.8 and a client, inverted), ISATAP.
		"::ffff:8.8.8.8 ::8.8.8.8 ::ffff:0:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1":              world,
		"2001:0:808:808::f7f7:f7f7 2606:4700::5efe:808:808 2606:4700::200:5efe:808:808":           world,
		"::ffff:10.0.0.1 ::10.0.0.1 ::ffff:0:10.0.0.1 64:ff9b::10.0.0.1 2002:a00:1::1":            own,
		"2001:0:808:808::f5ff:fffe 2001:0:a00:1::f7f7:f7f7 fd00::5efe:a00:1 2606::200:5efe:a00:1": own,
		"::ffff:127.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 2002:7f00:1::":        host,
		"2001:0:808:808::80ff:fffe 2606:4700::5efe:7f00:1 64:ff9b::":                              host,
		"::ffff:169.254.1.1 64:ff9b::169.254.1.1 2002:a9fe:101::1":                                wire,
		"::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: 2001:0:808:808::5601:5601":    metadata,
		"::169.254.169.254 2606:4700::5efe:a9fe:a9fe ::ffff:100.100.100.200":                      metadata,
		"::ffff:203.0.113.7 64:ff9b::224.0.0.1 2002:6440:1::1 ::255.255.255.255":                  nobody,
	} {
		for _, text := range strings.Fields(addresses) {
			rows++
			for name, policy := range policies {
				want := slices.Contains(strings.Split(allowed, ", "), name)
				if refused := policy.refusal(netip.MustParseAddr(text), nil); (refused == nil) != want {
					t.Errorf("%s, %s: refused because %v, want allowed %t", text, name, refused, want)
				}
			}
		}
	}
	t.Logf("%d addresses under %d policies", rows, len(policies))
}

func TestTheOperatorsEntriesAreMoreOrLessSpecific(t *testing.T) {
	list := func(texts string) (all []netip.Prefix) {
		for _, text := range strings.Fields(texts) {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	for _, c := range []struct {
		policy           AddressPolicy
		allow, deny      string
		reaches, refuses string
	}{
		{closed, "100.64.0.0/10", "", "100.64.0.1 8.8.8.8", "100.100.100.200 127.0.0.1"},
		{closed, "100.100.100.200/32", "", "100.100.100.200", "100.64.0.1"},
		{closed, "127.0.0.2/32 ::1/128", "", "127.0.0.2 ::1 ::ffff:127.0.0.2 64:ff9b::127.0.0.2", "127.0.0.1"},
		{closed, "0.0.0.0/0 ::/0", "", "8.8.8.8 10.0.0.1", "127.0.0.1 169.254.169.254 203.0.113.7 ::1 fe80::1 224.0.0.1"},
		{closed, "224.0.0.0/4 255.255.255.255/32", "", "", "224.0.0.1 255.255.255.255"},
		{closed, "64:ff9b:1::/48", "", "64:ff9b:1::8.8.8.8 64:ff9b:1:808:8:800::", "64:ff9b:1::127.0.0.1 64:ff9b:1:7f00:0:100::"},
		{closed, "", "8.8.0.0/16 2606::/16", "8.9.0.1", "8.8.8.8 2606::1 ::ffff:8.8.8.8 2002:808:808::1"},
		{closed, "8.8.8.8/32", "8.8.0.0/16", "8.8.8.8", "8.8.8.9"},
		{closed, "8.8.0.0/16", "8.8.0.0/16", "", "8.8.8.8"},
		{closed, "8.8.0.0/16", "8.8.8.8/32", "8.8.8.9", "8.8.8.8"},
		{closed, "10.1.0.0/16", "0.0.0.0/0 ::/0", "10.1.2.3", "10.2.0.1 8.8.8.8 2a00::1 fd00::1 127.0.0.1"},
		{closed, "10.1.0.0/16 fd00:1::/32", "10.0.0.0/8 fc00::/7", "10.1.2.3 fd00:1::1 192.168.0.1", "10.2.0.1 fd00::1"},
		{noPrivate, "10.1.0.0/16", "", "10.1.2.3 8.8.8.8", "10.2.0.1 192.168.0.1"},
		{noPrivate, "10.0.0.0/8", "", "10.1.2.3", "192.168.0.1"},
		{toLoopback, "", "0.0.0.0/0", "127.0.0.1", "8.8.8.8 10.0.0.1"},
		{toLoopback, "", "127.0.0.2/32", "127.0.0.1", "127.0.0.2"},
		{toLoopback, "", "127.0.0.0/8", "::1", "127.0.0.1"},
		{toMetadata, "", "169.254.0.0/16", "169.254.169.254", "169.254.0.1"},
		{toMetadata, "", "169.254.169.254/32", "169.254.170.2", "169.254.169.254"},
	} {
		policy := c.policy
		policy.Allow, policy.Deny = list(c.allow), list(c.deny)
		for _, text := range strings.Fields(c.reaches) {
			if refused := policy.refusal(netip.MustParseAddr(text), nil); refused != nil {
				t.Errorf("allow %q, deny %q: %v", c.allow, c.deny, refused)
			}
		}
		for _, text := range strings.Fields(c.refuses) {
			if policy.refusal(netip.MustParseAddr(text), nil) == nil {
				t.Errorf("allow %q, deny %q: %s is reached", c.allow, c.deny, text)
			}
		}
	}
}

// TestTheHostsOwnAddressesAreRefusedLikeLoopback: what listens on one of them is as close as what listens on loopback.
func TestTheHostsOwnAddressesAreRefusedLikeLoopback(t *testing.T) {
	var own []netip.Addr
	add := func(texts string) {
		for _, text := range strings.Fields(texts) {
			own = append(own, netip.MustParseAddr(text))
		}
	}
	add("127.0.0.1 10.0.0.7 8.8.8.7 fd00::7 2a00::7 fe80::7%eth0 169.254.0.7 ::ffff:192.168.0.7")
	connects := func(policy AddressPolicy, to string) error {
		policy.Own = func() ([]netip.Addr, error) { return slices.Clone(own), nil }
		return policy.dialer().Control("tcp", netip.AddrPortFrom(netip.MustParseAddr(to), 80).String(), nil)
	}
	exactly := closed
	exactly.Allow = []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32"), netip.MustParsePrefix("127.0.0.0/8")}
	for _, row := range []struct {
		name             string
		policy           AddressPolicy
		reaches, refuses string
	}{
		{"Closed", closed, "10.0.0.8 8.8.8.8 fd00::8 2a00::8", "10.0.0.7 ::ffff:10.0.0.7 64:ff9b::10.0.0.7 8.8.8.7 2002:808:807::1 fd00::7 2a00::7 fe80::7%eth0 192.168.0.7 127.0.0.1"},
		{"AllowLinkLocal", AddressPolicy{AllowLinkLocal: true}, "169.254.0.8 fe80::8%eth0", "169.254.0.7 fe80::7%eth0 fe80::7"},
		{"AllowLoopback", toLoopback, "10.0.0.7 8.8.8.7 fd00::7 2a00::7 127.0.0.1", "169.254.0.7"},
		{"AllowAddress", exactly, "10.0.0.7 127.0.0.1", "8.8.8.7 fd00::7"},
		{"AllowNetwork", AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, "10.0.0.8", "10.0.0.7"},
	} {
		for _, text := range strings.Fields(row.reaches) {
			if err := connects(row.policy, text); err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		}
		for _, text := range strings.Fields(row.refuses) {
			var refused *errRefused
			if err := connects(row.policy, text); !errors.As(err, &refused) {
				t.Errorf("%s: %s: got %v, want it refused", row.name, text, err)
			}
		}
	}

	if err := connects(closed, "10.0.0.9"); err != nil {
		t.Error(err)
	}
	add("10.0.0.9") // an interface has come up
	if err := connects(closed, "10.0.0.9"); err == nil || err.Error() != "10.0.0.9 is an address of this host, which this worker's operator does not allow (--allow-loopback)" {
		t.Errorf("an address that the host has since: %v", err)
	}
	unknown := AddressPolicy{Own: func() ([]netip.Addr, error) { return nil, errors.New("no netlink") }}
	if err := unknown.dialer().Control("tcp", "8.8.8.8:80", nil); err == nil {
		t.Error("connected without knowing the host's own addresses")
	}
}

func TestLoopbackIsRefusedAtConnectUnlessAllowed(t *testing.T) {
	var hits atomic.Int32
	spec := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	at, err := url.Parse(spec.HTTP.URL)
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, func(c *Config) { c.Addresses = AddressPolicy{AllowLinkLocal: true, AllowMetadata: true} })
	// By address, by a name that resolves to it, and by the forms that lead there.
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		for _, atMostOnce := range []bool{false, true} {
			call := testCall()
			call.AtMostOnce = atMostOnce
			_, err := set.Call(t.Context(), Spec{HTTP: &HTTP{URL: "http://" + host + ":" + at.Port()}}, call)
			f := wantFailure(t, err, KindRefused, true)
			if !strings.Contains(f.Message, "loopback") || !strings.Contains(f.Message, "operator does not allow (--allow-loopback)") {
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
