package app

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
)

func TestKeygen_webhook_makesAnotherStandardSecretEachTime(t *testing.T) {
	g := NewWithT(t)
	first, err := command(t, "keygen", "--webhook")
	g.Expect(err).NotTo(HaveOccurred())
	second, err := command(t, "keygen", "--webhook")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first).NotTo(Equal(second))
	g.Expect(first).To(HavePrefix("whsec_"))
	g.Expect(settings.WebhookKey([]byte(strings.TrimSpace(first)))).To(HaveLen(32))
}
