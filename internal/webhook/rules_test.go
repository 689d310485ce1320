package webhook

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseAllowRule(t *testing.T) {
	prefix := netip.MustParsePrefix
	for text, want := range map[string]AllowRule{
		"10.0.0.0/8":               {Prefix: prefix("10.0.0.0/8")},
		"10.0.0.0/8:8443":          {Prefix: prefix("10.0.0.0/8"), Port: 8443},
		"shop=10.96.0.0/12":        {Namespace: "shop", Prefix: prefix("10.96.0.0/12")},
		"shop-1=10.1.2.3/32:443":   {Namespace: "shop-1", Prefix: prefix("10.1.2.3/32"), Port: 443},
		"fd00::/8":                 {Prefix: prefix("fd00::/8")},
		"shop=[fd00::/8]":          {Namespace: "shop", Prefix: prefix("fd00::/8")},
		"shop=[fd00:10::/32]:8443": {Namespace: "shop", Prefix: prefix("fd00:10::/32"), Port: 8443},
		"[10.0.0.0/8]:80":          {Prefix: prefix("10.0.0.0/8"), Port: 80},
		"64:ff9b::/96":             {Prefix: prefix("64:ff9b::/96")},
		"0.0.0.0/0":                {Prefix: prefix("0.0.0.0/0")},
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(ParseAllowRule(text)).To(Equal(want))
			g.Expect(ParseAllowRule(want.String())).To(Equal(want))
		})
	}
}

func TestParseAllowRule_explainsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                       `"" is not a CIDR such as 10.0.0.0/8 or fd00::/8`,
		"10.1.2.3":               "a CIDR has a prefix length; for this one address write 10.1.2.3/32",
		"fd00::1":                "for this one address write fd00::1/128",
		"10.1.2.3/8":             "10.1.2.3/8 has bits set after its prefix; write 10.0.0.0/8",
		"10.0.0.0/33":            `"10.0.0.0/33" is not a CIDR`,
		"10.0.0/8":               `"10.0.0/8" is not a CIDR`,
		"example.com/8":          `"example.com/8" is not a CIDR`,
		"::ffff:10.0.0.0/104":    "an IPv4 CIDR is written in its own form",
		"fe80::%eth0/64":         "is not a CIDR",
		"=10.0.0.0/8":            "the part before = must be the name of a namespace",
		"Shop=10.0.0.0/8":        "the part before = must be the name of a namespace",
		"a=b=10.0.0.0/8":         `"b=10.0.0.0/8" is not a CIDR`,
		"10.0.0.0/8:":            `port "" must be a number from 1 to 65535`,
		"10.0.0.0/8:0":           `port "0" must be a number from 1 to 65535`,
		"10.0.0.0/8:65536":       `port "65536" must be a number from 1 to 65535`,
		"10.0.0.0/8:+80":         `port "+80" must be a number from 1 to 65535`,
		"10.0.0.0/8:https":       `port "https" must be a number from 1 to 65535`,
		"10.0.0.0/8:80:80":       `port "80:80" must be a number from 1 to 65535`,
		"10.0.0.0/8:6443":        "port 6443 is always refused and cannot be allowed",
		"10.0.0.0/8:2379":        "port 2379 is always refused",
		"10.0.0.0/8:10250":       "port 10250 is always refused",
		"fd00::/8:443":           "an IPv6 CIDR with a port stands in brackets, as [fd00::/8]:443",
		"[fd00::/8":              "a bracket is not closed",
		"[fd00::/8]443":          "after the bracket only :PORT may follow",
		"127.0.0.0/8":            "addresses in 127.0.0.0/8 are always refused and cannot be allowed",
		"127.0.0.1/32":           "addresses in 127.0.0.0/8 are always refused",
		"169.254.169.254/32":     "addresses in 169.254.0.0/16 are always refused",
		"[::1/128]:80":           "addresses in ::/96 are always refused",
		"fe80::/10":              "addresses in fe80::/10 are always refused",
		"shop=fd00:ec2::254/128": "addresses in fd00:ec2::/32 are always refused",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := ParseAllowRule(text)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("webhook allow rule"), ContainSubstring(want))))
		})
	}
}

func TestParseDenyRule(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParseDenyRule("203.0.114.0/24")).To(Equal(netip.MustParsePrefix("203.0.114.0/24")))
	g.Expect(ParseDenyRule("2a00::/16")).To(Equal(netip.MustParsePrefix("2a00::/16")))
	_, err := ParseDenyRule("10.0.0.1")
	g.Expect(err).To(MatchError(`webhook deny rule "10.0.0.1": a CIDR has a prefix length; for this one address write 10.0.0.1/32`))
}

func FuzzParseAllowRule(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8", "shop=[fd00::/8]:443", "[::1", "=", "a=b=c", "10.0.0.0/8:1:2", "::ffff:10.0.0.0/104", "fe80::%e/64"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := ParseAllowRule(text)
		if err != nil {
			return
		}
		again, err := ParseAllowRule(rule.String())
		if err != nil || again != rule {
			t.Fatalf("%q became %q: %v", text, rule, err)
		}
		// A rule never allows an address that is always refused, nor plain http to a public one.
		g := NewGuard(GuardConfig{Allow: []AllowRule{rule}})
		ip := rule.Prefix.Addr()
		if g.checkTarget(rule.Namespace, true, netip.AddrPortFrom(ip, 80)) == nil && (containsAddress(never, ip) || isPublic(ip)) {
			t.Fatalf("%q opens %s", text, ip)
		}
	})
}
