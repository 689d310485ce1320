package webhook

import (
	"context"
	"crypto/x509"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
)

// GuardConfig is what only the cluster's admin and the process itself know.
type GuardConfig struct {
	// Allow opens private ranges; see AllowRule.
	Allow []AllowRule
	// Deny shuts ranges, public ones too, whatever Allow says.
	Deny []netip.Prefix
	// APIServer are the addresses of the cluster's API server. They are refused on every port.
	APIServer []netip.Addr
	// Own are the addresses of this pod and its host, and any others of ours. They are refused on every port.
	Own []netip.Addr
}

// Guard decides which addresses a webhook may be sent to. It is asked at dial time, for the address that the connection
// really goes to: numeric disguises (0x7f.1, 2130706433), localhost with a trailing dot, names in any script and names
// that resolve differently the second time all end in an address, and that is what is judged. Per address:
//
//   - always refused: loopback, link-local, metadata services, multicast, unspecified, reserved, and the IPv6 forms that
//     hide an IPv4 address (6to4, Teredo, IPv4-compatible, IPv4-translated, local NAT64); the API server, this pod and
//     its host; what Deny names; and the ports of etcd, the control plane and kubelets
//   - judged as the IPv4 address that they are: IPv4-mapped addresses
//   - refused unless a rule allows them for the project's namespace: everything else that is not public, such as
//     10.0.0.0/8, 100.64.0.0/10 and fc00::/7; and the well-known NAT64 prefix 64:ff9b::/96, in which, once a rule allows
//     it, the IPv4 address inside is judged by these same rules
//   - allowed: public addresses, by https
//
// Plain http goes to private addresses that a rule allows and nowhere else.
//
// The API server may have further addresses, behind the one of its Service, that no pod can ask for. It is recognized by its
// certificate, before anything is sent to it: see judgePeer.
//
// A guard cannot know a NAT64 prefix that is the operator's own; where one leads into private networks, Deny it. Nor can it know
// which public IPv6 addresses are those of pods and nodes.
type Guard struct {
	allow    []AllowRule
	deny     []netip.Prefix
	loopback []netip.Prefix // allowed although it is in never; empty in production
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

// NewDevGuard returns a guard that treats loopback addresses as private ones that are allowed. It is for `phoneproof dev`
// and for tests, which run their receivers there. No flag of serve or operator may lead to it: in a pod, loopback is
// where sidecars and node agents listen.
func NewDevGuard(c GuardConfig) *Guard {
	g := NewGuard(c)
	g.loopback = parsePrefixes("127.0.0.0/8", "::1/128")
	return g
}

// refusal is the error of a dial that the guard refused. It is a word without the address: errors reach the project's
// owner, who must not learn by them what a name inside the cluster resolves to.
type refusal Reason

func (r refusal) Error() string { return "refused by the guard: " + string(r) }

// checkTarget returns nil if projects of a namespace may connect to target, plain saying that they would do so without TLS.
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

// apiServerName is in the certificate of every API server, because pods call it by that name. Certificates of others do not have it.
const apiServerName = "kubernetes.default.svc"

// checkCertificate returns nil if an event may be sent to the holder of a certificate.
func checkCertificate(certificate *x509.Certificate) error {
	if slices.Contains(certificate.DNSNames, apiServerName) {
		return refusal(ReasonBlockedAddress)
	}
	return nil
}

// reach is what kind of address it is to a namespace.
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

// dialControl returns the hook that net.Dialer calls with each address it is about to connect to. tried counts those that
// were let through.
func (g *Guard) dialControl(namespace string, plain bool, tried *atomic.Int32) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" {
			return refusal(ReasonBlockedAddress)
		}
		if err := g.checkTarget(namespace, plain, target); err != nil {
			return err
		}
		if tried.Add(1) > maxAddresses {
			return refusal(ReasonUnreachable)
		}
		return nil
	}
}
