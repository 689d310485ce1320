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

func readRequest(ctx context.Context, r request) (*verifyv1.VerificationRequest, error) {
	var object verifyv1.VerificationRequest
	err := kube.Get(ctx, client.ObjectKey{Namespace: shopNamespace, Name: r.ID}, &object)
	return &object, err
}

func verifySpecs() {
	for _, method := range []string{"WHATSAPP", "TELEGRAM"} {
		It("verifies a number through "+method+" and notifies the receiver once", func(ctx SpecContext) {
			r := theShop.initRequest(ctx, method)
			Eventually(theShop.readStatus).WithContext(ctx).WithArguments(r.ID).Should(Equal("PENDING"))
			theShop.sendMessage(ctx, r)
			theShop.eventuallyVerified(ctx, r)
			theShop.eventuallyAccepted(ctx, r)
			Eventually(func(g Gomega) {
				object, err := readRequest(ctx, r)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(object.Status.Delivery).NotTo(BeNil())
				g.Expect(object.Status.Delivery.DeliveredAt).NotTo(BeNil())
			}).WithContext(ctx).Should(Succeed())
			Expect(theShop.listEvents(ctx, r.ID)).To(HaveLen(1))
		})
	}

	It("refuses a wrong key and a foreign id", func(ctx SpecContext) {
		got, err := theShop.sendRequest(ctx, theShop.http, http.MethodPost, theShop.api+"/api/verify/init", firstAPIKey+"x",
			map[string]string{"phoneNumber": newNumber()})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.code).To(Equal(http.StatusUnauthorized))
		Eventually(theShop.readStatus).WithContext(ctx).WithArguments("vr" + "aaaaaaaaaaaaaaaaaaaaaaaa").Should(HavePrefix("404"))
	})

	It("completes a request that was made with kubectl", func(ctx SpecContext) {
		r := request{ID: "by-hand", number: newNumber()}
		Expect(kube.Create(ctx, manualRequest(r))).To(Succeed())
		Eventually(func(g Gomega) {
			object, err := readRequest(ctx, r)
			g.Expect(err).NotTo(HaveOccurred())
			r.WaLink = object.Status.Link
			g.Expect(r.WaLink).To(HavePrefix("https://wa.me/"))
		}).WithContext(ctx).Should(Succeed())
		theShop.sendMessage(ctx, r)
		runKubectl(ctx, "--namespace "+shopNamespace+" wait --for=condition=Verified --timeout=5m vreq/by-hand")
	})
}

func manualRequest(r request) *verifyv1.VerificationRequest {
	object := &verifyv1.VerificationRequest{Spec: verifyv1.VerificationRequestSpec{
		ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: r.number, Method: verifyv1.MethodWhatsApp,
	}}
	object.Namespace, object.Name = shopNamespace, r.ID
	return object
}
