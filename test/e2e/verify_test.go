//go:build e2e

package e2e

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func stored(ctx context.Context, r request) (*verifyv1.VerificationRequest, error) {
	var object verifyv1.VerificationRequest
	err := kube.Get(ctx, client.ObjectKey{Namespace: shopNamespace, Name: r.ID}, &object)
	return &object, err
}

func verifySpecs() {
	for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
		It("verifies a number through "+method+" and tells the receiver once", func(ctx SpecContext) {
			r := theShop.init(ctx, method)
			Eventually(theShop.status).WithContext(ctx).WithArguments(r.ID).Should(Equal("PENDING"))
			theShop.send(ctx, r)
			theShop.eventuallyVerified(ctx, r)
			theShop.eventuallyAccepted(ctx, r)
			Eventually(func(g Gomega) {
				object, err := stored(ctx, r)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(object.Status.Delivery).NotTo(BeNil())
				g.Expect(object.Status.Delivery.DeliveredAt).NotTo(BeNil())
			}).WithContext(ctx).Should(Succeed())
			Expect(theShop.events(ctx, r.ID)).To(HaveLen(1))
		})
	}

	It("refuses a wrong key and does not know a foreign id", func(ctx SpecContext) {
		got, err := theShop.do(ctx, theShop.http, http.MethodPost, theShop.api+"/api/verify/init", firstAPIKey+"x",
			map[string]string{"phoneNumber": newNumber()})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.code).To(Equal(http.StatusUnauthorized))
		Eventually(theShop.status).WithContext(ctx).WithArguments("vr" + "aaaaaaaaaaaaaaaaaaaaaaaa").Should(HavePrefix("404"))
	})

	It("completes a request that was made with kubectl", func(ctx SpecContext) {
		r := request{ID: "by-hand", number: newNumber()}
		Expect(kube.Create(ctx, byHand(r))).To(Succeed())
		Eventually(func(g Gomega) {
			object, err := stored(ctx, r)
			g.Expect(err).NotTo(HaveOccurred())
			r.WaLink = object.Status.Link
			g.Expect(r.WaLink).To(HavePrefix("https://wa.me/"))
		}).WithContext(ctx).Should(Succeed())
		theShop.send(ctx, r)
		kubectl(ctx, "--namespace "+shopNamespace+" wait --for=condition=Verified --timeout=1m vreq/by-hand")
	})
}

func byHand(r request) *verifyv1.VerificationRequest {
	object := &verifyv1.VerificationRequest{Spec: verifyv1.VerificationRequestSpec{
		ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: r.number, Method: verifyv1.MethodWhatsApp,
	}}
	object.Namespace, object.Name = shopNamespace, r.ID
	return object
}
