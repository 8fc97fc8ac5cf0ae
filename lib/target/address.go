package target

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// AddressPolicy says which addresses that lead into the worker's own host or its credentials http targets may reach. The
// zero value allows none: who may write a job must not thereby speak to what listens only for this host.
type AddressPolicy struct {
	AllowLoopback  bool // 127.0.0.0/8 and ::1, and 0.0.0.0/8 and ::, which lead there too
	AllowLinkLocal bool // 169.254.0.0/16 and fe80::/10, without the metadata addresses among them
	AllowMetadata  bool // where clouds hand the host's credentials to whoever asks
}

// metadata lists the addresses of instance and container metadata services that are not loopback.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // EC2, Google, Azure, OpenStack and most others
	netip.MustParseAddr("169.254.170.2"),   // ECS task credentials
	netip.MustParseAddr("169.254.170.23"),  // EKS pod identity
	netip.MustParseAddr("fd00:ec2::254"),   // EC2 over IPv6
	netip.MustParseAddr("fd00:ec2::23"),    // EKS pod identity over IPv6
	netip.MustParseAddr("fd20:ce::254"),    // Google over IPv6
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure's host agent
	netip.MustParseAddr("192.0.0.192"),     // Oracle, early form
	netip.MustParseAddr("fd00:42::42"),     // Scaleway
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	nat64       = netip.MustParsePrefix("64:ff9b::/96") // a gateway translates the last four bytes to IPv4
	compatible  = netip.MustParsePrefix("::/96")        // the long retired form of IPv4 in IPv6, :: and ::1 apart
)

// refusal gives the reason why a connection to the address is not allowed, "" when it is.
func (p AddressPolicy) refusal(addr netip.Addr) string {
	addr = embedded(addr)
	switch {
	case slices.Contains(metadata, addr):
		if !p.AllowMetadata {
			return "a metadata service's address"
		}
	case addr.IsLoopback() || addr.IsUnspecified() || thisNetwork.Contains(addr):
		if !p.AllowLoopback {
			return "a loopback address"
		}
	case addr.IsLinkLocalUnicast():
		if !p.AllowLinkLocal {
			return "a link-local address"
		}
	case addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast or broadcast address"
	}
	return ""
}

// embedded takes an IPv4 address out of the IPv6 forms that lead to it.
func embedded(addr netip.Addr) netip.Addr {
	addr = addr.WithZone("").Unmap()
	if addr.Is4() {
		return addr
	}
	bytes := addr.As16()
	inner := netip.AddrFrom4([4]byte(bytes[12:]))
	switch {
	case nat64.Contains(addr):
		return inner
	case compatible.Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
		return inner
	default:
		return addr
	}
}

// errRefused is a connection that the policy does not allow.
type errRefused struct {
	addr   netip.Addr
	reason string
}

func (e *errRefused) Error() string {
	return fmt.Sprintf("%s is %s, which this worker's operator does not allow", e.addr, e.reason)
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
			if reason := p.refusal(at.Addr()); reason != "" {
				return &errRefused{addr: at.Addr(), reason: reason}
			}
			return nil
		},
	}
}

// connectTimeout bounds a dial and a TLS handshake each: the attempt's own timeout may be hours.
const connectTimeout = 10 * time.Second
