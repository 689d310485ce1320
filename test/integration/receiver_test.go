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
	It("that fails is tried again by the schedule until it takes everything, and the project tells of both", func(ctx SpecContext) {
		s := newShop(ctx)
		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Webhook.Timeout = "30s" }) // for the second attempts to wait
		s.start(ctx, 2)
		mend := s.receiver.failFirst()
		ids := s.verifiedRequests(ctx, 6)
		Eventually(s.attempted).WithContext(ctx).WithArguments(ids).WithTimeout(patience).Should(Equal(len(ids)))
		for _, id := range ids {
			d := s.object(ctx, id).Status.Delivery
			Expect(d.LastStatusCode).To(BeEquivalentTo(http.StatusInternalServerError))
			Expect(d.NextAttemptAt.Sub(d.LastAttemptAt.Time)).To(And(BeNumerically(">=", 5*time.Second), BeNumerically("<=", 6*time.Second)))
		}
		s.told(ctx, verifyv1.ReasonReceiverFailing, 1)
		mend()
		s.allDelivered(ctx, ids, 2)
		s.told(ctx, verifyv1.ReasonNoFailures, 1)
		s.told(ctx, verifyv1.ReasonReceiverFailing, 1)
		Expect(s.kubectl("get", "events")).To(And(
			ContainSubstring(verifyv1.ReasonReceiverFailing), ContainSubstring(verifyv1.ReasonNoFailures),
			Not(ContainSubstring("verificationrequest")), Not(ContainSubstring(s.receiver.url)),
		))
		for id, got := range s.receiver.byRequest(webhookSecret) {
			Expect(got).To(HaveLen(2), id)
			Expect(got[1].at).To(BeTemporally(">=", got[0].at.Add(4900*time.Millisecond)), "the second row of the schedule")
			Expect(s.object(ctx, id).Status.Delivery.LastStatusCode).To(BeEquivalentTo(http.StatusNoContent))
		}
	}, SpecTimeout(2*time.Minute))
})

// backdated makes a request that should have been verified by that long ago.
func (s *shop) backdated(ctx context.Context, ago time.Duration) string {
	GinkgoHelper()
	return s.handmade(ctx, verifyv1.Init{
		CreatedAt: metav1.NewMicroTime(time.Now().Add(-ago - time.Minute)), ExpiresAt: metav1.NewMicroTime(time.Now().Add(-ago)),
		KeyName: "backend",
	})
}

// handmade makes a request as a replica would, but with any times.
func (s *shop) handmade(ctx context.Context, init verifyv1.Init) string {
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
