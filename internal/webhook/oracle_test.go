package webhook

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestSend_revealsNoNamesOfTheCluster plays a project's author who has only URLs and the recorded attempts: a name in
// the cluster's DNS and one that does not exist must give the same result.
func TestSend_revealsNoNamesOfTheCluster(t *testing.T) {
	dns := newDNS(t, func(m *dnsmessage.Message) {
		if strings.HasPrefix(m.Questions[0].Name.String(), "etcd.") {
			answerA(netip.MustParseAddr("10.0.0.5"))(m)
			return
		}
		m.RCode = dnsmessage.RCodeNameError
	})
	registry := prometheus.NewRegistry()
	s := newSender(t, Options{Guard: NewGuard(GuardConfig{}), Resolver: dns.newResolver(), Registerer: registry})
	recorded := func(url string) verification.Attempt {
		return sendEvent(t, s, testDestination(url)).Attempt(1, 0, time.Time{}, func() float64 { return 0 })
	}
	for _, rest := range []string{":443/", ":80/", ":6443/", ":2379/", ":10250/"} {
		for _, scheme := range []string{"https://", "http://"} {
			t.Run(scheme+rest, func(t *testing.T) {
				NewWithT(t).Expect(recorded(scheme + "etcd.test." + rest)).To(Equal(recorded(scheme + "absent.test." + rest)))
			})
		}
	}
	g := NewWithT(t)
	g.Expect(recorded("https://absent.test./").Reason).To(Equal("blocked_address"))
	g.Expect(gatherText(g, registry)).To(ContainSubstring("dns_not_found"), "for the administrator")
}
