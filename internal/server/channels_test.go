package server

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// countingStore is a store that counts the calls of Stored.
type countingStore struct {
	*memory.Store

	calls int
}

func (c *countingStore) Stored(ctx context.Context) (verification.Stored, error) {
	c.calls++
	return c.Store.Stored(ctx)
}

// TestService_countsAgeByTheMachinesClock checks that jumps of the store clock do not change the age of counts.
func TestService_countsAgeByTheMachinesClock(t *testing.T) {
	g := NewWithT(t)
	machine := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	s := &server{
		dependencies: Dependencies{Clock: machine}, registry: prometheus.NewRegistry(), clock: newStoreClock(machine, logr.Discard()),
	}
	store := &countingStore{Store: memory.NewBackend(memory.Options{Clock: machine}).Open("shop/acme")}
	_, err := s.newService(store, nil)
	g.Expect(err).NotTo(HaveOccurred())
	for _, row := range []struct {
		ahead, passed time.Duration
		calls         int
	}{{0, 0, 1}, {time.Hour, 0, 1}, {-time.Hour, 0, 1}, {-time.Hour, time.Minute, 2}, {0, time.Minute, 3}} {
		machine.Step(row.passed)
		s.clock.beginMeasurement()(machine.Now().Add(row.ahead), 0)
		g.Expect(testutil.GatherAndCount(s.registry, "phoneproof_stored_requests")).To(Equal(3))
		g.Expect(store.calls).To(Equal(row.calls), "%v", row)
	}
}

// TestChannels_sendCodes by the store clock, and count those that are redeemed.
func TestChannels_sendCodes(t *testing.T) {
	w := newTestServer(t)
	inbound, err := w.newChannels(w.store)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(inbound.service.Sender).To(BeIdenticalTo(inbound.codes))
	w.Expect(inbound.codes.Clock).To(BeIdenticalTo(w.clock))
	number, err := phone.FromE164("+4915112345678")
	w.Expect(err).NotTo(HaveOccurred())
	inbound.service.Observer.CodeRedeemed(&verification.Request{Phone: number})
	w.Expect(testutil.GatherAndCount(w.registry, "phoneproof_codes_redeemed_total")).To(Equal(1))
	inbound.codes.Drain()
	_, ok := inbound.service.Sender.ReserveSlot("shop", redact.Value[string]{})
	w.Expect(ok).To(BeFalse())
}

// TestPrepareMessage_fits has the longest prepared texts of each language: the status of a manual request has room for them.
func TestPrepareMessage_fits(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "charts", "phoneproof", "files", "crds", "phoneproof.dev_verificationrequests.yaml"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.UnmarshalStrict(content, &crd)).To(Succeed())
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties

	codes := verification.NewCodeSpace("shop/acme")
	project := &verifyv1.VerificationProject{}
	project.Namespace = "shop"
	project.Spec.WhatsApp = &verifyv1.WhatsApp{PhoneNumber: "+123456789012345"}
	// No character takes more room in a link than one outside of the basic plane.
	longest := "{name}{name}, {code}, " + strings.Repeat("🛒", 300-len("{name}{name}, {code}, "))
	project.Spec.Texts = []verifyv1.Texts{{Locale: "nl", Prepared: verifyv1.PreparedText(longest)}}
	for _, name := range []struct{ object, display string }{{strings.Repeat("x", 253), ""}, {"acme", strings.Repeat("🛒", 64)}} {
		project.Name, project.Spec.DisplayName = name.object, name.display
		s := settings.FromProject(project, settings.Secrets{})
		for _, locale := range append(texts.Languages(), "", "nl") {
			code := codes.CodeFor([32]byte{}, locale)
			r := &verification.Request{Method: verification.WhatsApp, ClientData: verification.ClientData{Locale: locale}}
			link, text := prepareMessage(s, r, code)
			g.Expect(int64(utf8.RuneCountInString(text))).To(BeNumerically("<=", *status["expectedText"].MaxLength), locale)
			g.Expect(int64(len(link))).To(BeNumerically("<=", *status["link"].MaxLength), locale)
			opened, err := url.Parse(link)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(opened.Query().Get("text")).To(Equal(text), "to the letter")
			found, ok := codes.Extract(text)
			g.Expect(ok).To(BeTrue(), locale)
			g.Expect(found).To(Equal(code), locale)
		}
	}
}

// TestPrepareMessage_speaks the language of the request, whether init or kubectl made it.
func TestPrepareMessage_speaks(t *testing.T) {
	g := NewWithT(t)
	s := &settings.Settings{DisplayName: "Acme", WhatsApp: &settings.WhatsApp{PhoneNumber: "+15550100123"}}
	code := verification.NewCodeSpace("shop/acme").CodeFor([32]byte{}, "one")
	for locale, want := range map[string]string{
		"": "I confirm my phone number to Acme. ", "es-MX": "Confirmo mi número de teléfono a Acme. ", "hi": "मैं Acme ", "eu": "I confirm ",
	} {
		r := &verification.Request{Method: verification.WhatsApp, DisplayName: "Acme", ClientData: verification.ClientData{Locale: locale}}
		_, text := prepareMessage(s, r, code)
		g.Expect(text).To(HavePrefix(want), locale)
	}
}
