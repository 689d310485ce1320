//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func lifecycleSpecs() {
	It("sleeps while it is suspended, keeps what is pending, and goes on when it is resumed", func(ctx SpecContext) {
		pending := theShop.init(ctx, "WHATSAPP")
		change(ctx, shopNamespace, `{"spec":{"suspend":true}}`)
		Eventually(theShop.pods).WithContext(ctx).Should(BeEmpty())
		Eventually(func(g Gomega) {
			p, err := project(ctx, shopNamespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", verifyv1.ConditionReady),
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", verifyv1.ReasonSuspended))))
		}).WithContext(ctx).Should(Succeed())
		_, err := stored(ctx, pending)
		Expect(err).NotTo(HaveOccurred())

		change(ctx, shopNamespace, `{"spec":{"suspend":false}}`)
		eventuallyReady(ctx, shopNamespace)
		theShop.send(ctx, pending)
		theShop.eventuallyVerified(ctx, pending)
		theShop.eventuallyAccepted(ctx, pending)
	})
}
