package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A receiver", func() {
	It("that fails is retried by the schedule until it accepts everything, and the project has events of both", func(ctx SpecContext) {
		s := newShop(ctx)
		s.allowSlowAnswers(ctx)
		s.start(ctx, 2)
		stopFailing := s.receiver.failFirst()
		ids := s.createVerifiedRequests(ctx, 6)
		Eventually(s.countAttempted).WithContext(ctx).WithArguments(ids).Should(Equal(len(ids)))
		for _, id := range ids {
			d := s.readRequest(ctx, id).Status.Delivery
			Expect(d.LastStatusCode).To(BeEquivalentTo(http.StatusInternalServerError))
			Expect(d.NextAttemptAt.Sub(d.LastAttemptAt.Time)).To(And(BeNumerically(">=", 5*time.Second), BeNumerically("<=", 6*time.Second)))
		}
		s.awaitEvents(ctx, verifyv1.ReasonReceiverFailing, 1)
		stopFailing()
		s.awaitDelivered(ctx, ids, 2)
		s.awaitEvents(ctx, verifyv1.ReasonNoFailures, 1)
		s.awaitEvents(ctx, verifyv1.ReasonReceiverFailing, 1)
		Expect(s.runKubectl("get", "events")).To(And(
			ContainSubstring(verifyv1.ReasonReceiverFailing), ContainSubstring(verifyv1.ReasonNoFailures),
			Not(ContainSubstring("verificationrequest")), Not(ContainSubstring(s.receiver.url)),
		))
		for id, got := range s.receiver.byRequest(webhookSecret) {
			Expect(got).To(HaveLen(2), id)
			Expect(got[1].at).To(BeTemporally(">=", got[0].at.Add(4900*time.Millisecond)), "the second row of the schedule")
			Expect(s.readRequest(ctx, id).Status.Delivery.LastStatusCode).To(BeEquivalentTo(http.StatusNoContent))
		}
	}, SpecTimeout(hang))
})

// createBackdated creates a request that expired that long ago.
func (s *shop) createBackdated(ctx context.Context, ago time.Duration) string {
	GinkgoHelper()
	return s.createRequest(ctx, verifyv1.Init{
		CreatedAt: metav1.NewMicroTime(time.Now().Add(-ago - time.Minute)), ExpiresAt: metav1.NewMicroTime(time.Now().Add(-ago)),
		KeyName: "backend",
	})
}

// createRequest creates a request like a replica, but with arbitrary times.
func (s *shop) createRequest(ctx context.Context, init verifyv1.Init) string {
	GinkgoHelper()
	o := &verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "vr"},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: fmt.Sprintf("+49151%08d", s.verified.Add(1)),
			Method: verifyv1.MethodWhatsApp, Init: &init,
		},
	}
	Expect(s.admin.Create(ctx, o, client.FieldOwner("test"))).To(Succeed())
	return o.Name
}
