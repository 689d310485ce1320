package webhook

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"

	"code.dny.dev/ssrf"
)

// GuardConfig holds the settings of the cluster's admin, and the addresses of the cluster and this process.
type GuardConfig struct {
	// Allow opens private ranges; see AllowRule.
	Allow []AllowRule
	// Deny blocks ranges, public ones too, even if Allow permits them.
	Deny []netip.Prefix
	// APIServer are the addresses of the cluster's API server. They are refused on every port.
	APIServer []netip.Addr
	// Own are the addresses of this pod, its host and others of this installation. They are refused on every port.
	Own []netip.Addr
}

// Guard decides which addresses a webhook may be sent to. It runs at dial time, on the address that the connection
// uses: numeric disguises (0x7f.1, 2130706433), localhost with a trailing dot, names in any script and names that
// resolve differently the second time all end in an address, and the guard checks that one. Per address:
//
//   - always refused: loopback, link-local, metadata services, multicast, unspecified, reserved, and the IPv6 forms that
//     hide an IPv4 address (6to4, Teredo, IPv4-compatible, IPv4-translated, local NAT64); the API server, this pod and
//     its host; addresses in Deny; and the ports of etcd, the control plane and kubelets
//   - checked as IPv4 addresses: IPv4-mapped addresses
//   - refused unless a rule allows them for the project's namespace: everything else that is not public, such as
//     10.0.0.0/8, 100.64.0.0/10 and fc00::/7; and the well-known NAT64 prefix 64:ff9b::/96. If a rule allows that, the
//     IPv4 address inside is checked by these same rules
//   - allowed: public addresses, by https
//
// Plain http is allowed only to private addresses that a rule allows.
//
// The API server may have more addresses behind its Service, which a pod cannot look up. Its certificate identifies it
// before anything is sent: see checkCertificate.
//
// A guard cannot detect a local NAT64 prefix; if one leads into private networks, put it into Deny. It cannot detect
// which public IPv6 addresses belong to pods and nodes either.
type Guard struct {
	allow    []AllowRule
	deny     []netip.Prefix
	loopback []netip.Prefix // allowed although listed in never; empty in production
}

// NewGuard returns the guard of a server.
func NewGuard(c GuardConfig) *Guard {
	deny := slices.Clone(c.Deny)
	for _, ip := range slices.Concat(c.APIServer, c.Own) {
		ip = ip.Unmap().WithZone("")
		deny = append(deny, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return &Guard{allow: slices.Clone(c.Allow), deny: deny}
}

// NewDevGuard returns a guard that treats loopback addresses as allowed private ones. It is for `phoneproof dev` and
// for tests, whose receivers listen there. No flag of serve or operator may enable it: in a pod, sidecars and node
// agents listen on loopback.
func NewDevGuard(c GuardConfig) *Guard {
	g := NewGuard(c)
	g.loopback = parsePrefixes("127.0.0.0/8", "::1/128")
	return g
}

// refusal is the error of a dial that the guard refused. It holds no address: errors reach the project's owner, who
// must not learn from them how a name inside the cluster resolves.
type refusal Reason

func (r refusal) Error() string { return "refused by the guard: " + string(r) }

// checkTarget returns nil if projects of a namespace may connect to target, without TLS if plain is set.
func (g *Guard) checkTarget(namespace string, plain bool, target netip.AddrPort) error {
	if isPortBlocked(target.Port()) {
		return refusal(ReasonBlockedPort)
	}
	switch g.classifyAddress(namespace, target.Addr(), target.Port()) {
	case reachPublic:
		if plain {
			return refusal(ReasonPlainHTTP)
		}
		return nil
	case reachPrivate:
		return nil
	default:
		return refusal(ReasonBlockedAddress)
	}
}

// apiServerName is in the certificate of every API server, because pods call it by that name. Certificates of other
// servers do not have it.
const apiServerName = "kubernetes.default.svc"

// checkCertificate returns nil if an event may be sent to the server with this certificate.
func checkCertificate(certificate *x509.Certificate) error {
	if slices.Contains(certificate.DNSNames, apiServerName) {
		return refusal(ReasonBlockedAddress)
	}
	return nil
}

// reach classifies an address as seen from a namespace.
type reach int

const (
	reachRefused reach = iota
	reachPrivate
	reachPublic
)

func (g *Guard) classifyAddress(namespace string, ip netip.Addr, port uint16) reach {
	if !ip.IsValid() || ip.Zone() != "" {
		return reachRefused
	}
	ip = ip.Unmap()
	switch {
	case containsAddress(g.deny, ip):
		return reachRefused
	case containsAddress(g.loopback, ip):
		return reachPrivate
	case containsAddress(never, ip):
		return reachRefused
	case nat64.Contains(ip):
		if !g.hasAllowRule(namespace, ip, port) {
			return reachRefused
		}
		return g.classifyAddress(namespace, embeddedIPv4(ip), port)
	case isPublic(ip):
		return reachPublic
	case g.hasAllowRule(namespace, ip, port):
		return reachPrivate
	default:
		return reachRefused
	}
}

func (g *Guard) hasAllowRule(namespace string, ip netip.Addr, port uint16) bool {
	for _, rule := range g.allow {
		if rule.allows(namespace, ip, port) {
			return true
		}
	}
	return false
}

// dialControl returns the hook that net.Dialer calls with each address before it connects. tried counts the addresses
// that were allowed.
func (g *Guard) dialControl(
	namespace string, plain bool, tried *atomic.Int32,
) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" {
			return refusal(ReasonBlockedAddress)
		}
		if err := g.checkTarget(namespace, plain, target); err != nil {
			return fmt.Errorf("check address: %w", err)
		}
		if tried.Add(1) > maxAddresses {
			return refusal(ReasonUnreachable)
		}
		return nil
	}
}

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
