package main

import (
	"net"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// addressFlags are the flags of whatever calls http targets.
func addressFlags(cmd *cobra.Command, p *target.AddressPolicy) {
	p.Own = ownAddresses
	f := cmd.Flags()
	f.BoolVar(&p.AllowLoopback, "allow-loopback", p.AllowLoopback, "let http jobs call servers of this machine, on loopback and its other addresses")
	f.BoolVar(&p.AllowLinkLocal, "allow-link-local", false, "let http jobs call link-local addresses")
	f.BoolVar(&p.AllowMetadata, "allow-metadata", false, "let http jobs call a cloud's metadata service, which hands out credentials")
	f.BoolVar(&p.DenyPrivate, "deny-private", false, "keep http jobs from private networks such as 10.0.0.0/8")
	f.Var((*prefixes)(&p.Allow), "allow-address", "`NETWORK` or address, such as 100.64.0.0/10, that http jobs may call; more than once or with commas for several")
	f.Var((*prefixes)(&p.Deny), "deny-address", "`NETWORK` or address that http jobs may not call; the more specific of both lists counts")
}

// ownAddresses lists the addresses of this machine's interfaces.
func ownAddresses() ([]netip.Addr, error) {
	networks, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := make([]netip.Addr, 0, len(networks))
	for _, network := range networks {
		prefix, err := netip.ParsePrefix(network.String())
		if err != nil {
			return nil, err
		}
		own = append(own, prefix.Addr())
	}
	return own, nil
}

// prefixes is a flag with a list of networks; an address is a network of one.
type prefixes []netip.Prefix

func parsePrefix(text string) (netip.Prefix, error) {
	if at, err := netip.ParseAddr(text); err == nil && at.Zone() == "" {
		return netip.PrefixFrom(at, at.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return network, misused("%q: want an address such as 192.0.2.7 or fd00::7, or a network such as 10.0.0.0/8", text)
	case network.Masked() != network:
		return network, misused("%q: want the network %s, or the address %s alone", text, network.Masked(), network.Addr())
	case network.Addr().Is4In6():
		return network, misused("%q: want the IPv4 network itself", text)
	}
	return network, nil
}

// Set adds what a flag says; commas separate several.
func (p *prefixes) Set(text string) error {
	for _, part := range strings.Split(text, ",") {
		if err := p.Append(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	return nil
}

// Append adds one.
func (p *prefixes) Append(text string) error {
	network, err := parsePrefix(text)
	if err == nil {
		*p = append(*p, network)
	}
	return err
}

// Replace puts others in place of all.
func (p *prefixes) Replace(texts []string) error {
	all := prefixes{}
	for _, text := range texts {
		if err := all.Append(text); err != nil {
			return err
		}
	}
	*p = all
	return nil
}

// GetSlice gives them as they are written.
func (p *prefixes) GetSlice() []string {
	texts := make([]string, len(*p))
	for i, network := range *p {
		if texts[i] = network.String(); network.IsSingleIP() {
			texts[i] = network.Addr().String()
		}
	}
	return texts
}

func (p *prefixes) String() string { return strings.Join(p.GetSlice(), ",") }

// Type names the flag's kind for programs.
func (p *prefixes) Type() string { return "networks" }
