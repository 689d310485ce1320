package server

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

func TestGuardConfig_knowsTheAPIServerOfTheKubeconfig(t *testing.T) {
	for name, test := range map[string]struct {
		inPod, kubeconfig string
		want              []netip.Addr
	}{
		"no cluster":              {"", "", nil},
		"a pod":                   {"10.96.0.1", "https://10.96.0.1:443", []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("10.96.0.1")}},
		"a kubeconfig":            {"", "https://10.20.0.1:6443", []netip.Addr{netip.MustParseAddr("10.20.0.1")}},
		"a kubeconfig in a pod":   {"10.96.0.1", "10.20.0.1:6443", []netip.Addr{netip.MustParseAddr("10.20.0.1"), netip.MustParseAddr("10.96.0.1")}},
		"a kubeconfig, IPv6":      {"", "https://[fd00::1]:6443", []netip.Addr{netip.MustParseAddr("fd00::1")}},
		"a server on the machine": {"", "https://127.0.0.1:6443", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", test.inPod)
			var o WebhookOptions
			config, err := o.guardConfig(t.Context(), test.kubeconfig)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.APIServer).To(Equal(test.want))
		})
	}
}

func TestGuardConfig_knowsEveryAddressOfTheHost(t *testing.T) {
	first, second := netip.MustParseAddr("10.20.0.7"), netip.MustParseAddr("2001:db8:1::7")
	for text, want := range map[string][]netip.Addr{
		"10.20.0.7":               {first},
		"10.20.0.7,2001:db8:1::7": {first, second},
		"2001:db8:1::7,10.20.0.7": {second, first},
	} {
		t.Run(text, func(t *testing.T) {
			t.Setenv("HOST_IPS", text)
			config, err := new(WebhookOptions).guardConfig(t.Context(), "")
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Own[len(config.Own)-len(want):]).To(Equal(want))
		})
	}
	t.Setenv("HOST_IPS", "")
	g := NewWithT(t)
	own, err := findOwnAddresses()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(own).NotTo(ContainElements(first, second))
}
