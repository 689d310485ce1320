//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The new values of the rotation.
const (
	secondAPIKey   = "e2e-second-api-key-0123456789abcdef"
	secondSecret   = "e2e-second-webhook-secret-0123456789"
	secondBotToken = "sim_ada_books_bot:second"
)

func rotationSpecs() {
	It("uses a new API key, webhook secret, bot token and database without a restart, and accepts the old key meanwhile", func(ctx SpecContext) {
		relocation := startRelocation(ctx, secondSecret) // of another project: the kubelet's delay for both runs at the same time
		theShop.eventuallySettled(ctx)
		before := containerIDs(ctx, theShop)
		load := theShop.startLoad(ctx) // with the old key, throughout
		runKubectl(ctx, "--namespace "+shopNamespace+" patch secret/shop --type=merge --patch",
			fmt.Sprintf(`{"stringData":{"api-key":%q,"webhook-secret":%q,"bot-token":%q}}`, secondAPIKey, secondSecret, secondBotToken))
		began := time.Now()

		// Both pods have it once several new connections in a row are accepted.
		streak := 0
		Eventually(func(g Gomega) {
			got, err := theShop.sendRequest(ctx, theShop.http, http.MethodGet, theShop.api+"/api/verify/status?id=vraaaaaaaaaaaaaaaaaaaaaaaa", secondAPIKey, nil)
			g.Expect(err).NotTo(HaveOccurred())
			if streak++; got.code == http.StatusUnauthorized {
				streak = 0
			}
			g.Expect(streak).To(BeNumerically(">=", 12))
		}).WithContext(ctx).WithTimeout(5 * time.Minute).Should(Succeed())
		AddReportEntry("a changed Secret reached every pod after", time.Since(began).Round(time.Second).String())

		// From now on the receiver's own copy of the secret may change at any moment.
		theShop.key = secondAPIKey
		Eventually(func() error { return InterceptGomegaFailure(func() { theShop.verifyQuickly(ctx, "WHATSAPP") }) }).
			WithContext(ctx).WithTimeout(5 * time.Minute).Should(Succeed())

		theShop.mustSend(ctx, http.MethodPost, theShop.sim+"/sim/revoke", map[string]string{"credential": firstBotToken}, nil)
		theShop.verifyNumber(ctx, "TELEGRAM")

		Expect(load.stop()).To(BeEmpty())
		Expect(containerIDs(ctx, theShop)).To(ConsistOf(before), "no pod restarts")
		Eventually(func() (int, error) {
			got, err := theShop.sendRequest(ctx, theShop.http, http.MethodGet, theShop.api+"/api/verify/status?id=vraaaaaaaaaaaaaaaaaaaaaaaa", firstAPIKey, nil)
			return got.code, err
		}).WithContext(ctx).Should(Equal(http.StatusNotFound), "the old key is accepted for ten minutes")
		relocation.awaitArrival(ctx)
	})
}
