package webhook

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// never lists the addresses that no rule can allow. code.dny.dev/ssrf, which has the IANA registries, refuses most of
// them too, but an admin's rule can allow those. Addresses inside ::ffff:0:0/96 are checked as IPv4 addresses.
//
//nolint:gochecknoglobals // constant
var never = parsePrefixes(
	"0.0.0.0/8",      // unspecified: connects to this host
	"127.0.0.0/8",    // loopback
	"169.254.0.0/16", // link-local, with nearly every cloud's metadata service
	"192.0.0.0/24",   // protocol assignments, with 192.0.0.192, Oracle's metadata
	"224.0.0.0/4",    // multicast
	"240.0.0.0/4",    // reserved, and broadcast

	"100.100.100.200/32", // Alibaba's metadata, inside the shared 100.64.0.0/10
	"168.63.129.16/32",   // Azure's host agent, which looks public

	"::/96",           // unspecified, loopback and IPv4-compatible
	"::ffff:0:0:0/96", // IPv4-translated (RFC 2765)
	"64:ff9b:1::/48",  // NAT64 with a local layout (RFC 8215): its destination is unknown
	"100::/64",        // discard
	"2001::/32",       // Teredo: holds an IPv4 address
	"2002::/16",       // 6to4: holds an IPv4 address
	"fe80::/10",       // link-local
	"fec0::/10",       // site-local, deprecated
	"ff00::/8",        // multicast
	"fd00:ec2::/32",   // AWS: metadata, pod identity, DNS, time
	"fd20:ce::/32",    // Google's metadata
	"fd00:c1::/32",    // Oracle's metadata
	"fd00:42::42/128", // Scaleway's metadata
)

// nat64 is the well-known prefix through which an IPv6-only cluster reaches IPv4 (RFC 6052). The last four bytes are the
// IPv4 address.
//
//nolint:gochecknoglobals // constant
var nat64 = ssrf.IPv6NAT64Prefix

// registries refuses all addresses outside the public Internet.
//
//nolint:gochecknoglobals // immutable
var registries = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

// isPublic reports whether ip is an address of the public Internet.
func isPublic(ip netip.Addr) bool { return registries.SafeAddr(ip) == nil }

// isPortBlocked reports whether a port is refused at every address: those of etcd, the Kubernetes control plane and
// node agents, which trust any client that reaches them.
func isPortBlocked(port uint16) bool {
	return port == 0 || port == 6443 || port >= 2379 && port <= 2380 || port >= 10250 && port <= 10259
}

func embeddedIPv4(ip netip.Addr) netip.Addr {
	b := ip.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

func containsAddress(prefixes []netip.Prefix, ip netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

func parsePrefixes(list ...string) []netip.Prefix {
	prefixes := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		prefixes = append(prefixes, netip.MustParsePrefix(s))
	}
	return prefixes
}
