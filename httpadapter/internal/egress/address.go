package egress

import (
	"context"
	"net/netip"
	"syscall"
)

// AddressError is the cause of a failed request when the receiver's address is not public.
type AddressError struct{ Addr netip.Addr }

func (e *AddressError) Error() string {
	return "address " + e.Addr.String() + " is not public; an exception has to be allowed"
}

// guard refuses addresses. It stands between the resolver and the dial, so that no name and no
// change of its address leads around it.
type guard struct{ allow []netip.Prefix }

func (g guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	addr := ap.Addr().Unmap().WithZone("")
	for _, p := range g.allow {
		if p.Contains(addr) {
			return nil
		}
	}
	if !public(addr) {
		return &AddressError{addr}
	}
	return nil
}

// public reports whether addr is a unicast address of the public Internet. In IPv6 those are within
// 2000::/3, which leaves out loopback, unique local, link-local, multicast, IPv4-mapped and both
// NAT64 prefixes (RFC 6052, RFC 8215); what is special within it stands below, with IPv4's, after
// IANA's Special-Purpose Address Registries.
func public(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Is6() && addr.As16()[0]&0xe0 != 0x20 {
		return false
	}
	for _, p := range [...]string{
		"0.0.0.0/8",       // this network
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // shared, CGNAT
		"127.0.0.0/8",     // loopback
		"169.254.0.0/16",  // link-local, cloud metadata
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // IETF protocols
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // 6to4 relays
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarking
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/3",     // multicast, reserved, broadcast
		"2001::/23",       // IETF protocols, Teredo among them
		"2001:db8::/32",   // documentation
		"2002::/16",       // 6to4, which holds an IPv4 address
		"3fff::/20",       // documentation
	} {
		if netip.MustParsePrefix(p).Contains(addr) {
			return false
		}
	}
	return true
}
