package webhook

import (
	"net/netip"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// allowEverything returns the widest rules that an admin can set.
func allowEverything(t *testing.T) []AllowRule {
	t.Helper()
	var rules []AllowRule
	for _, text := range []string{"0.0.0.0/0", "::/0", "64:ff9b::/96"} {
		rule, err := ParseAllowRule(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		rules = append(rules, rule)
	}
	return rules
}

// TestGuard_addresses checks each form of address without a rule and with the widest rules.
func TestGuard_addresses(t *testing.T) {
	const (
		blocked = ReasonBlockedAddress
		noHTTP  = ReasonPlainHTTP
		open    = Reason("")
	)
	type row struct{ https, http, httpsAllowed, httpAllowed Reason }
	var (
		neverEver = row{blocked, blocked, blocked, blocked}
		private   = row{blocked, blocked, open, open}
		internet  = row{open, noHTTP, open, noHTTP}
		// Public, but behind NAT64, which needs a rule.
		translated = row{blocked, blocked, open, noHTTP}
	)
	bare, wide := NewGuard(GuardConfig{}), NewGuard(GuardConfig{Allow: allowEverything(t)})
	for address, want := range map[string]row{
		// IPv4.
		"0.0.0.0": neverEver, "0.1.2.3": neverEver, "127.0.0.1": neverEver, "127.255.255.254": neverEver,
		"169.254.169.254": neverEver, "169.254.170.2": neverEver, "192.0.0.192": neverEver,
		"224.0.0.1": neverEver, "239.255.255.250": neverEver, "240.0.0.1": neverEver, "255.255.255.255": neverEver,
		"100.100.100.200": neverEver, "168.63.129.16": neverEver,
		"10.0.0.1": private, "172.16.0.1": private, "172.31.255.255": private, "192.168.1.1": private,
		"100.64.0.1": private, "100.127.255.255": private, "198.18.0.1": private, "192.0.2.1": private,
		"198.51.100.1": private, "203.0.113.1": private, "192.88.99.1": private,
		"8.8.8.8": internet, "172.32.0.1": internet, "100.128.0.1": internet, "223.255.255.255": internet,
		// IPv4 in IPv6, mapped: the kernel treats it as the IPv4 address.
		"::ffff:127.0.0.1": neverEver, "::ffff:7f00:1": neverEver, "::ffff:169.254.169.254": neverEver,
		"::ffff:0.0.0.0": neverEver, "::ffff:168.63.129.16": neverEver,
		"::ffff:10.0.0.1": private, "::ffff:8.8.8.8": internet,
		// Other disguises.
		"::": neverEver, "::1": neverEver, "::127.0.0.1": neverEver, "::8.8.8.8": neverEver,
		"::ffff:0:127.0.0.1": neverEver, "::ffff:0:8.8.8.8": neverEver,
		"64:ff9b::127.0.0.1": neverEver, "64:ff9b::169.254.169.254": neverEver, "64:ff9b::": neverEver,
		"64:ff9b::168.63.129.16": neverEver,
		"64:ff9b::10.0.0.1":      private, "64:ff9b::8.8.8.8": translated,
		"64:ff9b:1::127.0.0.1": neverEver, "64:ff9b:1::8.8.8.8": neverEver,
		"2002:7f00:1::": neverEver, "2002:a9fe:a9fe::1": neverEver, "2002:808:808::1": neverEver,
		"2001::1": neverEver, "2001:0:7f00:1::": neverEver, "2001:0:4136:e378:8000:63bf:80ff:fffe": neverEver,
		// IPv6.
		"fe80::1": neverEver, "fe80::a9fe:a9fe": neverEver, "febf::1": neverEver, "fec0::1": neverEver,
		"ff02::1": neverEver, "ff0e::1": neverEver, "100::1": neverEver,
		"fd00:ec2::254": neverEver, "fd00:ec2::23": neverEver, "fd20:ce::254": neverEver, "fd00:c1::a9fe:a9fe": neverEver,
		"fd00:42::42": neverEver,
		"fd00::1":     private, "fc00::1": private, "fd00:42::43": private, "2001:db8::1": private, "2001:10::1": private,
		"3fff::1": private, "4000::1": private, "5f00::1": private, "2620:4f:8000::1": private,
		"2606:4700::1111": internet, "2a00:1450::1": internet,
	} {
		t.Run(address, func(t *testing.T) {
			target := netip.AddrPortFrom(netip.MustParseAddr(address), 443)
			got := row{
				targetReason(bare, "shop", false, target), targetReason(bare, "shop", true, target),
				targetReason(wide, "shop", false, target), targetReason(wide, "shop", true, target),
			}
			NewWithT(t).Expect(got).To(Equal(want))
		})
	}
}

// targetReason returns the reason of a refusal, or empty.
func targetReason(g *Guard, namespace string, plain bool, target netip.AddrPort) Reason {
	if err := g.checkTarget(namespace, plain, target); err != nil {
		return findReason(err)
	}
	return ""
}

func TestGuard_ports(t *testing.T) {
	wide := NewGuard(GuardConfig{Allow: allowEverything(t)})
	for _, address := range []string{"10.0.0.1", "8.8.8.8", "fd00::1"} {
		ip := netip.MustParseAddr(address)
		for _, port := range []uint16{0, 2379, 2380, 6443, 10250, 10255, 10256, 10257, 10259} {
			NewWithT(t).Expect(targetReason(wide, "shop", false, netip.AddrPortFrom(ip, port))).To(Equal(ReasonBlockedPort))
		}
		for _, port := range []uint16{80, 443, 2378, 2381, 6442, 6444, 10249, 10260, 65535} {
			NewWithT(t).Expect(targetReason(wide, "shop", false, netip.AddrPortFrom(ip, port))).To(BeEmpty())
		}
	}
}

func TestGuard_addressesThatNoRuleAllows(t *testing.T) {
	g := NewWithT(t)
	guard := NewGuard(GuardConfig{
		Allow:     allowEverything(t),
		Deny:      []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("8.8.4.0/24")},
		APIServer: []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:96::1")},
		Own:       []netip.Addr{netip.MustParseAddr("10.244.0.7"), netip.MustParseAddr("::ffff:192.168.0.5"), netip.MustParseAddr("fd00::7%eth0")},
	})
	for _, address := range []string{
		"10.9.1.1", "8.8.4.4", "10.96.0.1", "fd00:96::1", "10.244.0.7", "192.168.0.5", "fd00::7",
		"::ffff:10.9.1.1", "::ffff:10.96.0.1", "64:ff9b::10.9.1.1", "64:ff9b::10.244.0.7", "64:ff9b::8.8.4.4",
	} {
		target := netip.AddrPortFrom(netip.MustParseAddr(address), 443)
		g.Expect(targetReason(guard, "shop", false, target)).To(Equal(ReasonBlockedAddress), address)
	}
	for _, address := range []string{"10.10.1.1", "8.8.8.8", "10.96.0.2", "fd00:96::2", "10.244.0.8"} {
		g.Expect(targetReason(guard, "shop", false, netip.AddrPortFrom(netip.MustParseAddr(address), 443))).To(BeEmpty(), address)
	}
}

func TestGuard_rulesOfANamespaceAndPort(t *testing.T) {
	rule, err := ParseAllowRule("shop=10.0.0.0/8:8443")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	guard := NewGuard(GuardConfig{Allow: []AllowRule{rule}})
	at := netip.MustParseAddrPort
	g.Expect(targetReason(guard, "shop", true, at("10.1.2.3:8443"))).To(BeEmpty())
	g.Expect(targetReason(guard, "shop", false, at("10.1.2.3:8443"))).To(BeEmpty())
	g.Expect(targetReason(guard, "shop", false, at("10.1.2.3:443"))).To(Equal(ReasonBlockedAddress))
	g.Expect(targetReason(guard, "bank", false, at("10.1.2.3:8443"))).To(Equal(ReasonBlockedAddress))
	g.Expect(targetReason(guard, "", false, at("10.1.2.3:8443"))).To(Equal(ReasonBlockedAddress))
	g.Expect(targetReason(guard, "shop", false, at("192.168.0.1:8443"))).To(Equal(ReasonBlockedAddress))
}

func TestGuard_loopbackOnlyInDev(t *testing.T) {
	g := NewWithT(t)
	dev, production := NewDevGuard(GuardConfig{}), NewGuard(GuardConfig{Allow: allowEverything(t)})
	for _, address := range []string{"127.0.0.1:80", "127.8.9.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"} {
		target := netip.MustParseAddrPort(address)
		g.Expect(targetReason(dev, "shop", true, target)).To(BeEmpty(), address)
		g.Expect(targetReason(production, "shop", true, target)).To(Equal(ReasonBlockedAddress), address)
	}
	for _, address := range []string{"0.0.0.0:80", "[::]:80", "169.254.169.254:80", "10.0.0.1:80", "[::127.0.0.1]:80"} {
		g.Expect(targetReason(dev, "shop", true, netip.MustParseAddrPort(address))).To(Equal(ReasonBlockedAddress), address)
	}
	g.Expect(targetReason(dev, "shop", true, netip.MustParseAddrPort("127.0.0.1:6443"))).To(Equal(ReasonBlockedPort))
}

func TestGuard_dialHook(t *testing.T) {
	g := NewWithT(t)
	var tried atomic.Int32
	hook := NewDevGuard(GuardConfig{}).dialControl("shop", false, &tried)
	call := func(network, address string) Reason {
		if err := hook(t.Context(), network, address, nil); err != nil {
			return findReason(err)
		}
		return ""
	}
	g.Expect(call("udp4", "127.0.0.1:80")).To(Equal(ReasonBlockedAddress))
	g.Expect(call("unix", "/run/x.sock")).To(Equal(ReasonBlockedAddress))
	g.Expect(call("tcp6", "[fe80::1%eth0]:80")).To(Equal(ReasonBlockedAddress))
	g.Expect(call("tcp4", "nonsense")).To(Equal(ReasonBlockedAddress))
	g.Expect(call("tcp4", "10.0.0.1:443")).To(Equal(ReasonBlockedAddress), "refused addresses are not counted")
	for range maxAddresses {
		g.Expect(call("tcp4", "127.0.0.1:80")).To(BeEmpty())
	}
	g.Expect(call("tcp4", "127.0.0.1:80")).To(Equal(ReasonUnreachable), "a name with more addresses than maxAddresses")
}

func TestGuard_refusalsHoldNoAddress(t *testing.T) {
	g := NewWithT(t)
	err := NewGuard(GuardConfig{}).checkTarget("shop", false, netip.MustParseAddrPort("10.1.2.3:443"))
	g.Expect(err).To(MatchError("refused by the guard: blocked_address"))
}
