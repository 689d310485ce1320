package dev

import (
	"net"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func TestRefuseInPod(t *testing.T) {
	g, token := NewWithT(t), t.TempDir()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	g.Expect(refuseInPod(token)).To(MatchError(ContainSubstring("does not run in a pod")))
	g.Expect(refuseInPod(filepath.Join(token, "none"))).To(Succeed())
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	g.Expect(refuseInPod(filepath.Join(token, "none"))).To(MatchError(ContainSubstring("does not run in a pod")))
}

func TestAddress_takesAnotherPortUnlessItIsSet(t *testing.T) {
	g := NewWithT(t)
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = taken.Close() })
	for _, asked := range []bool{false, true} {
		flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
		a := address{flag: "bind-address", text: taken.Addr().String()}
		a.addFlag(flags, "")
		if asked {
			g.Expect(flags.Parse([]string{"--bind-address=" + taken.Addr().String()})).To(Succeed())
			_, err := a.openListener(t.Context())
			g.Expect(err).To(MatchError(ContainSubstring("address already in use")))
			continue
		}
		listener, err := a.openListener(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = listener.Close() })
		g.Expect(a.text).To(Equal(listener.Addr().String()))
		g.Expect(a.text).To(And(HavePrefix("127.0.0.1:"), Not(Equal(taken.Addr().String()))))
	}
}

func TestExceptLoopback_coversEverythingElse(t *testing.T) {
	g := NewWithT(t)
	rules := exceptLoopback()
	g.Expect(rules).To(HaveLen(8 + 128))
	g.Expect(rules).To(ContainElements("128.0.0.0/1", "126.0.0.0/8", "8000::/1", "::/128"))
	g.Expect(rules).NotTo(ContainElement(HavePrefix("127.")))
}
