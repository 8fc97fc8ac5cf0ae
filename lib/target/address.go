package target

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// AddressPolicy says which addresses http targets may reach: who may write a job must not thereby speak to what listens only
// for this host or its network. The zero value allows what is globally reachable and private networks, where most targets of
// a scheduler live, and refuses the rest of the special-purpose registries.
//
// It works as a routing table: of the operator's entries and the refused blocks that hold an address, the most specific one
// decides. Where lengths are the same, Deny stands before Allow, and both before a block. What no entry holds is allowed.
type AddressPolicy struct {
	AllowLoopback  bool // 127.0.0.0/8 and ::1, and 0.0.0.0/8 and ::, which lead there too; and what Own gives
	AllowLinkLocal bool // 169.254.0.0/16 and fe80::/10, without the metadata addresses among them
	AllowMetadata  bool // where clouds hand the host's credentials to whoever asks
	DenyPrivate    bool // 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7 and fec0::/10

	Allow []netip.Prefix
	Deny  []netip.Prefix

	// Own gives the addresses of this host's interfaces. What listens there is as close as on loopback, and is refused like it. It is
	// called for each new connection, because the addresses of a host change. nil: the host has none that anything listens on.
	Own func() ([]netip.Addr, error)
}

// refusal says why a connection to the address is not allowed, nil when it is. An address that leads to others inside it must
// be allowed as each of them.
func (p AddressPolicy) refusal(addr netip.Addr, own []netip.Addr) *errRefused {
	addr = addr.WithZone("").Unmap()
	if refused := p.judge(addr, own); refused != nil {
		return refused
	}
	for _, inner := range embedded(addr) {
		if refused := p.judge(inner, own); refused != nil {
			refused.addr, refused.reason = addr, fmt.Sprintf("a way to %s, %s", inner, refused.reason)
			return refused
		}
	}
	return nil
}

// own lists the host's addresses, none where a connection to them is allowed.
func (p AddressPolicy) own() ([]netip.Addr, error) {
	if p.Own == nil || p.AllowLoopback {
		return nil, nil
	}
	own, err := p.Own()
	if err != nil {
		return nil, fmt.Errorf("look up the addresses of this host: %w", err)
	}
	for i, addr := range own {
		own[i] = addr.WithZone("").Unmap()
	}
	return own, nil
}

func (p AddressPolicy) judge(addr netip.Addr, own []netip.Addr) *errRefused {
	block := lookUp(addr)
	if block.kind != never && block.kind != loopback && slices.Contains(own, addr) {
		block = entry{netip.PrefixFrom(addr, addr.BitLen()), loopback, "an address of this host"}
	}
	allow, deny := longest(p.Allow, addr), longest(p.Deny, addr)
	opened, refused := p.opens(block.kind), p.refuses(block.kind)
	switch {
	case block.kind == never:
		return &errRefused{addr: addr, reason: block.name}
	case deny >= 0 && deny >= allow && !(opened && block.bits() > deny):
		return &errRefused{addr: addr, reason: "an address of --deny-address"}
	case refused && block.bits() > allow:
		return &errRefused{addr: addr, reason: block.name, flag: flags[block.kind]}
	}
	return nil
}

// flags are those by which an operator decides on each kind.
var flags = map[kind]string{loopback: "--allow-loopback", linkLocal: "--allow-link-local", metadata: "--allow-metadata", private: "--deny-private", special: "--allow-address"}

// longest is the length of the most specific prefix that holds the address, -1 where none does.
func longest(prefixes []netip.Prefix, addr netip.Addr) int {
	bits := -1
	for _, prefix := range prefixes {
		if prefix.Contains(addr) {
			bits = max(bits, prefix.Bits())
		}
	}
	return bits
}

// opens tells whether the operator has opened blocks of this kind by name.
func (p AddressPolicy) opens(k kind) bool {
	return k == loopback && p.AllowLoopback || k == linkLocal && p.AllowLinkLocal || k == metadata && p.AllowMetadata
}

func (p AddressPolicy) refuses(k kind) bool {
	switch k {
	case global:
		return false
	case private:
		return p.DenyPrivate
	default:
		return !p.opens(k)
	}
}

// Forms of IPv6 that lead to an IPv4 address.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052: a gateway translates the last four bytes
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215: the same, for a network's own gateway
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291: long retired; :: and ::1 apart
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765: of stateless translation
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056: the address after the prefix
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380: the server, and the client's, inverted
)

// embedded lists the IPv4 addresses that a packet to the IPv6 address may come to. The mapped form is IPv4 already.
func embedded(addr netip.Addr) []netip.Addr {
	if addr.Is4() {
		return nil
	}
	b := addr.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case addr.IsLoopback() || addr.IsUnspecified():
		return nil
	case nat64.Contains(addr), compatible.Contains(addr), translated.Contains(addr):
		return []netip.Addr{last}
	case nat64Local.Contains(addr):
		// RFC 6052 puts the address at the end, or, where the gateway's prefix is the whole block, around the ninth byte.
		around := netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]})
		if around.IsUnspecified() {
			return []netip.Addr{last}
		}
		return []netip.Addr{around}
	case sixToFour.Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case teredo.Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // RFC 5214: ISATAP, in any network
		return []netip.Addr{last}
	}
	return nil
}

// errRefused is a connection that the policy does not allow.
type errRefused struct {
	addr   netip.Addr
	reason string
	flag   string // that decides on it; "" where none does
}

func (e *errRefused) Error() string {
	text := fmt.Sprintf("%s is %s, which this worker's operator does not allow", e.addr, e.reason)
	if e.flag != "" {
		text += " (" + e.flag + ")"
	}
	return text
}

// dialer asks the policy about the address that is about to be connected to, after every resolution: a name is only a
// promise, and may resolve to another address a moment after it was checked.
func (p AddressPolicy) dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: connectTimeout,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %s: %w", address, err)
			}
			own, err := p.own()
			if err != nil {
				return err
			}
			if refused := p.refusal(at.Addr(), own); refused != nil {
				return refused
			}
			return nil
		},
	}
}

// connectTimeout bounds a dial and a TLS handshake each: the attempt's own timeout may be hours.
const connectTimeout = 10 * time.Second
