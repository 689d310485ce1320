//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What the rotation brings.
const (
	secondAPIKey   = "e2e-second-api-key-0123456789abcdef"
	secondSecret   = "e2e-second-webhook-secret-0123456789"
	secondBotToken = "sim_ada_books_bot:second"
)

func rotationSpecs() {
	It("takes a new API key, webhook secret, bot token and database without a restart, and lets the old key in meanwhile", func(ctx SpecContext) {
		relocation := relocate(ctx, secondSecret) // of another project: the kubelet takes its time for all of it once
		before := lives(ctx, theShop)
		load := theShop.load(ctx) // with the old key, throughout
		kubectl(ctx, "--namespace "+shopNamespace+" patch secret/shop --type=merge --patch",
			fmt.Sprintf(`{"stringData":{"api-key":%q,"webhook-secret":%q,"bot-token":%q}}`, secondAPIKey, secondSecret, secondBotToken))
		began := time.Now()

		// Both pods have it when new connections are let in again and again.
		streak := 0
		Eventually(func(g Gomega) {
			got, err := theShop.do(ctx, theShop.http, http.MethodGet, theShop.api+"/api/verify/status?id=vraaaaaaaaaaaaaaaaaaaaaaaa", secondAPIKey, nil)
			g.Expect(err).NotTo(HaveOccurred())
			if streak++; got.code == http.StatusUnauthorized {
				streak = 0
			}
			g.Expect(streak).To(BeNumerically(">=", 12))
		}).WithContext(ctx).WithTimeout(5 * time.Minute).Should(Succeed())
		AddReportEntry("a changed Secret reached every pod after", time.Since(began).Round(time.Second).String())

		// From now on the receiver's own copy of the secret is due at any moment.
		theShop.key = secondAPIKey
		Eventually(func() error { return InterceptGomegaFailure(func() { theShop.quickly(ctx, "WHATSAPP") }) }).
			WithContext(ctx).WithTimeout(5 * time.Minute).Should(Succeed())

		theShop.must(ctx, http.MethodPost, theShop.sim+"/sim/revoke", map[string]string{"credential": firstBotToken}, nil)
		theShop.verify(ctx, "TELEGRAM")

		Expect(load.end()).To(BeEmpty())
		Expect(lives(ctx, theShop)).To(ConsistOf(before), "no pod restarts for it")
		Eventually(func() (int, error) {
			got, err := theShop.do(ctx, theShop.http, http.MethodGet, theShop.api+"/api/verify/status?id=vraaaaaaaaaaaaaaaaaaaaaaaa", firstAPIKey, nil)
			return got.code, err
		}).WithContext(ctx).Should(Equal(http.StatusNotFound), "the old key is let in for ten minutes")
		relocation.arrives(ctx)
	})
}
