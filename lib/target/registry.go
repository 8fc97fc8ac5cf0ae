package target

import "net/netip"

// kind is what an operator decides on at once.
type kind uint8

const (
	global    kind = iota
	private        // networks of one's own
	loopback       // this host
	linkLocal      // this wire
	metadata       // hands out credentials
	special        // not globally reachable, for a reason of its own
	never          // nothing that answers a call
)

// entry is one block of addresses.
type entry struct {
	prefix netip.Prefix
	kind   kind
	name   string // follows "the address is"
}

func (e entry) bits() int {
	if !e.prefix.IsValid() {
		return -1
	}
	return e.prefix.Bits()
}

// registry holds the blocks of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and RFC 8190 set them up;
// https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry, as of 2025-10-09), and what
// those leave to others: multicast, and the addresses of metadata services. Blocks that the registries call globally
// reachable stand here where a larger one is not. The forms of IPv6 that embed IPv4 count as what they embed.
var registry = []entry{
	{cidr("0.0.0.0/8"), loopback, "a loopback address"},                            // RFC 791: this network; connects to this host
	{cidr("10.0.0.0/8"), private, "a private address"},                             // RFC 1918
	{cidr("100.64.0.0/10"), special, "an address of a carrier's or cloud's own"},   // RFC 6598: shared address space
	{cidr("127.0.0.0/8"), loopback, "a loopback address"},                          // RFC 1122
	{cidr("169.254.0.0/16"), linkLocal, "a link-local address"},                    // RFC 3927
	{cidr("172.16.0.0/12"), private, "a private address"},                          // RFC 1918
	{cidr("192.0.0.0/24"), special, "an address that protocols use"},               // RFC 6890; DS-Lite, dummy and NAT64 discovery in it
	{cidr("192.0.0.9/32"), global, ""},                                             // RFC 7723: Port Control Protocol anycast
	{cidr("192.0.0.10/32"), global, ""},                                            // RFC 8155: TURN anycast
	{cidr("192.0.2.0/24"), special, "an address for documentation"},                // RFC 5737: TEST-NET-1
	{cidr("192.88.99.0/24"), special, "a retired 6to4 relay's address"},            // RFC 7526
	{cidr("192.168.0.0/16"), private, "a private address"},                         // RFC 1918
	{cidr("198.18.0.0/15"), special, "an address for benchmarks"},                  // RFC 2544
	{cidr("198.51.100.0/24"), special, "an address for documentation"},             // RFC 5737: TEST-NET-2
	{cidr("203.0.113.0/24"), special, "an address for documentation"},              // RFC 5737: TEST-NET-3
	{cidr("224.0.0.0/4"), never, "a multicast address"},                            // RFC 5771
	{cidr("240.0.0.0/4"), special, "a reserved address"},                           // RFC 1112
	{cidr("255.255.255.255/32"), never, "the broadcast address"},                   // RFC 8190
	{cidr("::/128"), loopback, "a loopback address"},                               // RFC 4291: unspecified; connects to this host
	{cidr("::1/128"), loopback, "a loopback address"},                              // RFC 4291
	{cidr("64:ff9b:1::/48"), special, "an address of a network's own translation"}, // RFC 8215
	{cidr("100::/64"), special, "an address that discards"},                        // RFC 6666
	{cidr("100:0:0:1::/64"), special, "a dummy address"},                           // RFC 9780
	{cidr("2001::/23"), special, "an address that protocols use"},                  // RFC 2928
	{cidr("2001::/32"), global, ""},                                                // RFC 4380: Teredo
	{cidr("2001:1::1/128"), global, ""},                                            // RFC 7723: Port Control Protocol anycast
	{cidr("2001:1::2/128"), global, ""},                                            // RFC 8155: TURN anycast
	{cidr("2001:1::3/128"), global, ""},                                            // RFC 9665: DNS-SD registration anycast
	{cidr("2001:2::/48"), special, "an address for benchmarks"},                    // RFC 5180
	{cidr("2001:3::/32"), global, ""},                                              // RFC 7450: AMT
	{cidr("2001:4:112::/48"), global, ""},                                          // RFC 7535: AS112
	{cidr("2001:10::/28"), special, "a retired identifier, no address"},            // RFC 4843: ORCHID
	{cidr("2001:20::/28"), global, ""},                                             // RFC 7343: ORCHIDv2
	{cidr("2001:30::/28"), global, ""},                                             // RFC 9374: drone identifiers
	{cidr("2001:db8::/32"), special, "an address for documentation"},               // RFC 3849
	{cidr("3fff::/20"), special, "an address for documentation"},                   // RFC 9637
	{cidr("5f00::/16"), special, "an identifier of segment routing"},               // RFC 9602
	{cidr("fc00::/7"), private, "a private address"},                               // RFC 4193: unique local
	{cidr("fe80::/10"), linkLocal, "a link-local address"},                         // RFC 4291
	{cidr("fec0::/10"), private, "a private address"},                              // RFC 3879: site-local, retired
	{cidr("ff00::/8"), never, "a multicast address"},                               // RFC 4291
	{cidr("169.254.169.254/32"), metadata, "a metadata service's address"},         // EC2, Google, Azure, OpenStack and most others
	{cidr("169.254.170.2/32"), metadata, "a metadata service's address"},           // ECS task credentials
	{cidr("169.254.170.23/32"), metadata, "a metadata service's address"},          // EKS pod identity
	{cidr("fd00:ec2::254/128"), metadata, "a metadata service's address"},          // EC2 over IPv6
	{cidr("fd00:ec2::23/128"), metadata, "a metadata service's address"},           // EKS pod identity over IPv6
	{cidr("fd20:ce::254/128"), metadata, "a metadata service's address"},           // Google over IPv6
	{cidr("100.100.100.200/32"), metadata, "a metadata service's address"},         // Alibaba
	{cidr("168.63.129.16/32"), metadata, "a metadata service's address"},           // Azure's host agent
	{cidr("192.0.0.192/32"), metadata, "a metadata service's address"},             // Oracle, early form
	{cidr("fd00:42::42/128"), metadata, "a metadata service's address"},            // Scaleway
}

func cidr(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// lookUp gives the most specific entry that holds the address; the zero entry is the rest of the world.
func lookUp(addr netip.Addr) entry {
	var found entry
	for _, e := range registry {
		if e.prefix.Contains(addr) && e.bits() > found.bits() {
			found = e
		}
	}
	return found
}
