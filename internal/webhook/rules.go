package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// AllowRule allows a private range for the webhooks of one namespace, or of all. Only the cluster's admin sets these,
// by --webhook-allow.
type AllowRule struct {
	// Namespace is the one whose projects may call the range; empty for all.
	Namespace string
	Prefix    netip.Prefix
	// Port is the allowed port; zero for all ports that are not refused everywhere.
	Port uint16
}

var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ParseAllowRule parses [NAMESPACE=]CIDR[:PORT], such as 10.0.0.0/8, shop=10.96.0.0/12:8443 or shop=[fd00::/8]:443. An
// IPv6 CIDR with a port is written in brackets.
func ParseAllowRule(text string) (AllowRule, error) {
	rule, err := parseAllowRule(text)
	if err != nil {
		return AllowRule{}, fmt.Errorf("webhook allow rule %q: %w", text, err)
	}
	return rule, nil
}

func parseAllowRule(text string) (AllowRule, error) {
	var rule AllowRule
	target := text
	if namespace, rest, ok := strings.Cut(text, "="); ok {
		if !namespaceName.MatchString(namespace) {
			return AllowRule{}, errors.New("the part before = must be the name of a namespace")
		}
		rule.Namespace, target = namespace, rest
	}
	cidr, port, err := splitPort(target)
	if err != nil {
		return AllowRule{}, err
	}
	rule.Port = port
	if rule.Prefix, err = parseCIDR(cidr); err != nil {
		return AllowRule{}, err
	}
	for _, p := range never {
		if p.Bits() <= rule.Prefix.Bits() && p.Contains(rule.Prefix.Addr()) {
			return AllowRule{}, fmt.Errorf("addresses in %s are always refused and cannot be allowed", p)
		}
	}
	return rule, nil
}

// ParseDenyRule parses the CIDR of --webhook-deny.
func ParseDenyRule(text string) (netip.Prefix, error) {
	prefix, err := parseCIDR(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("webhook deny rule %q: %w", text, err)
	}
	return prefix, nil
}

// String returns the rule in the form that ParseAllowRule reads.
func (r AllowRule) String() string {
	text := r.Prefix.String()
	if r.Port != 0 {
		if r.Prefix.Addr().Is6() {
			text = "[" + text + "]"
		}
		text += ":" + strconv.Itoa(int(r.Port))
	}
	if r.Namespace != "" {
		text = r.Namespace + "=" + text
	}
	return text
}

func (r AllowRule) allows(namespace string, ip netip.Addr, port uint16) bool {
	return (r.Namespace == "" || r.Namespace == namespace) && (r.Port == 0 || r.Port == port) && r.Prefix.Contains(ip)
}

// splitPort separates CIDR[:PORT]. Outside brackets a colon after the prefix length begins a port, and one before it
// belongs to an IPv6 address.
func splitPort(text string) (string, uint16, error) {
	cidr, port, hasPort := text, "", false
	if inner, ok := strings.CutPrefix(text, "["); ok {
		var rest string
		if cidr, rest, ok = strings.Cut(inner, "]"); !ok {
			return "", 0, errors.New("a bracket is not closed")
		}
		if port, hasPort = strings.CutPrefix(rest, ":"); !hasPort && rest != "" {
			return "", 0, errors.New("after the bracket only :PORT may follow")
		}
	} else if address, length, ok := strings.Cut(text, "/"); ok {
		length, port, hasPort = strings.Cut(length, ":")
		cidr = address + "/" + length
		if hasPort && strings.Contains(address, ":") {
			return "", 0, fmt.Errorf("an IPv6 CIDR with a port stands in brackets, as [%s]:%s", cidr, port)
		}
	}
	if !hasPort {
		return cidr, 0, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] < '1' || port[0] > '9' {
		return "", 0, fmt.Errorf("port %q must be a number from 1 to 65535", port)
	}
	if isPortBlocked(uint16(n)) {
		return "", 0, fmt.Errorf("port %d is always refused and cannot be allowed", n)
	}
	return cidr, uint16(n), nil
}

func parseCIDR(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
			return netip.Prefix{}, fmt.Errorf("a CIDR has a prefix length; for this one address write %s/%d", ip, ip.BitLen())
		}
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR such as 10.0.0.0/8 or fd00::/8", text)
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR such as 10.0.0.0/8 or fd00::/8", text)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, errors.New("an IPv4 CIDR is written in its own form, without ::ffff: before it")
	case prefix != prefix.Masked():
		return netip.Prefix{}, fmt.Errorf("%s has bits set after its prefix; write %s", prefix, prefix.Masked())
	}
	return prefix, nil
}
