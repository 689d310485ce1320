//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func lifecycleSpecs() {
	It("stops while it is suspended, keeps pending requests, and continues when it is resumed", func(ctx SpecContext) {
		pending := theShop.initRequest(ctx, "WHATSAPP")
		patchProject(ctx, shopNamespace, `{"spec":{"suspend":true}}`)
		Eventually(theShop.listPods).WithContext(ctx).Should(BeEmpty())
		Eventually(func(g Gomega) {
			p, err := readProject(ctx, shopNamespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", verifyv1.ConditionReady),
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", verifyv1.ReasonSuspended))))
		}).WithContext(ctx).Should(Succeed())
		_, err := readRequest(ctx, pending)
		Expect(err).NotTo(HaveOccurred())

		patchProject(ctx, shopNamespace, `{"spec":{"suspend":false}}`)
		eventuallyReady(ctx, shopNamespace)
		theShop.sendMessage(ctx, pending)
		theShop.eventuallyVerified(ctx, pending)
		theShop.eventuallyAccepted(ctx, pending)
	})
}
