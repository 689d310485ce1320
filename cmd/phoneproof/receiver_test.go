package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
		s.start(ctx, 2)
		s.receiver.answerWith(http.StatusInternalServerError)
		ids := s.verifiedRequests(ctx, 6)
		Eventually(s.attempted).WithContext(ctx).WithArguments(ids).WithTimeout(10 * time.Second).Should(Equal(len(ids)))
		s.receiver.answerWith(http.StatusNoContent)
		for _, id := range ids {
			d := s.object(ctx, id).Status.Delivery
			Expect(d.LastStatusCode).To(BeEquivalentTo(http.StatusInternalServerError))
			Expect(d.NextAttemptAt.Sub(d.LastAttemptAt.Time)).To(And(BeNumerically(">=", 5*time.Second), BeNumerically("<=", 6*time.Second)))
		}
		s.told(ctx, verifyv1.ReasonReceiverFailing, 1)
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

	It("that hangs delays nothing but its own events", func(ctx SpecContext) {
		s := newShop(ctx)
		s.open(ctx)
		s.start(ctx, 1)
		s.measure(ctx, 2) // connections and caches
		base := s.measure(ctx, 20)
		held, release := s.receiver.hold()
		defer release()
		ids := s.verifiedRequests(ctx, 60)
		Eventually(held).WithContext(ctx).WithTimeout(20*time.Second).Should(BeNumerically(">=", 10), "every slot is taken")
		hung := s.measure(ctx, 20)
		Expect(s.undelivered(ctx, ids)).To(HaveLen(len(ids)), "it still hangs")
		for what, usual := range base {
			AddReportEntry(what, fmt.Sprintf("p99 %s, with a receiver that hangs %s: %.2f times", usual, hung[what], float64(hung[what])/float64(usual)))
			Expect(hung[what]).To(BeNumerically("<", max(5*usual, time.Second)), what)
		}
		release()
		s.allDelivered(ctx, ids, 1)
	}, SpecTimeout(3*time.Minute))
})

// measure returns the 99th percentile of what clients wait for, and of how long the loop takes to expire and to delete
// requests whose time has come.
func (s *shop) measure(ctx context.Context, n int) map[string]time.Duration {
	GinkgoHelper()
	r := s.replicas[0]
	took := map[string][]time.Duration{}
	timed := func(what string, do func()) {
		begun := time.Now()
		do()
		took[what] = append(took[what], time.Since(begun))
	}
	for range 10 * n {
		var id string
		timed("init", func() { id = s.init(ctx, r, "+49 1511 2345678") })
		timed("status", func() {
			status, _ := r.call(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			Expect(status).To(Equal(http.StatusOK))
		})
	}
	for range n {
		timed("expiry", func() {
			id := s.backdated(ctx, 30*time.Minute)
			Eventually(func() verifyv1.Phase { return s.object(ctx, id).Status.Phase }).WithContext(ctx).
				WithTimeout(20 * time.Second).WithPolling(5 * time.Millisecond).Should(Equal(verifyv1.PhaseExpired))
		})
		timed("expiry and retention", func() {
			id := s.backdated(ctx, 2*time.Hour)
			Eventually(s.gone).WithContext(ctx).WithArguments(id).
				WithTimeout(20 * time.Second).WithPolling(5 * time.Millisecond).Should(BeTrue())
		})
	}
	p99 := make(map[string]time.Duration, len(took))
	for what, all := range took {
		slices.Sort(all)
		p99[what] = all[(len(all)-1)*99/100]
	}
	return p99
}

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
	Expect(admin.Create(ctx, o, client.FieldOwner("test"))).To(Succeed())
	return o.Name
}
