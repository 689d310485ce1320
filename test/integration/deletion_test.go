package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A project that is deleted", func() {
	It("takes its requests with it, sends nothing more, and its processes say so", func(ctx SpecContext) {
		c, plane := startCluster(ctx)
		s := newShopIn(ctx, c)
		s.start(ctx, 2)
		s.awaitDelivered(ctx, s.createVerifiedRequests(ctx, 2), 1)
		lapsed, err := s.storeRequest(ctx, 100*time.Millisecond)
		Expect(err).NotTo(HaveOccurred())
		s.initRequest(ctx, s.replicas[0], "+49 1511 2345678")
		s.applyManifest(fmt.Sprintf(manualRequest, "by-hand", "+4915112345679", "WhatsApp"))
		s.runKubectl("wait", "--for=condition=Accepted", "--timeout="+patience.String(), "vreq/by-hand")
		canaries.addText(s.readRequest(ctx, "by-hand").Status.ExpectedText)
		Eventually(func() verifyv1.Phase { return s.readRequest(ctx, lapsed).Status.Phase }).WithContext(ctx).
			Should(Equal(verifyv1.PhaseExpired))
		s.receiver.answerWith(http.StatusInternalServerError)
		due := s.createVerifiedRequests(ctx, 3)
		Eventually(s.countAttempted).WithContext(ctx).WithArguments(due).Should(Equal(len(due)))
		held, release := s.receiver.holdAnswers()
		defer release()
		s.createVerifiedRequests(ctx, 1)
		Eventually(held).WithContext(ctx).Should(BeNumerically(">=", 1))
		stored := len(s.listRequests(ctx))
		Expect(stored).To(BeNumerically(">=", 9), "2 delivered, 1 expired, 2 pending, 3 due again, 1 on its way")

		s.runKubectl("delete", "vproj/shop")
		for _, r := range s.replicas {
			Eventually(r.output).WithContext(ctx).Should(ContainSubstring("the project was deleted"))
		}
		sent := len(s.receiver.deliveries())
		release() // the answer can soon not be recorded any more
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(8*time.Second).
			Should(HaveLen(sent), "the schedule has another attempt within 6 s, and the requests are still there")
		Expect(s.listRequests(ctx)).To(HaveLen(stored))
		s.refuseCleanly(ctx, due[0], http.StatusOK)

		Expect(plane.StartControllers("garbage-collector-controller")).To(Succeed())
		DeferCleanup(plane.StopControllers)
		Eventually(s.listRequests).WithContext(ctx).Should(BeEmpty())
		for _, r := range s.replicas {
			Eventually(func() int {
				status, _ := r.callAPI(ctx, s.key, http.MethodGet, "/api/verify/status?id="+due[0], "")
				return status
			}).WithContext(ctx).Should(Equal(http.StatusNotFound))
		}
		s.refuseCleanly(ctx, due[0], http.StatusNotFound)
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(2 * time.Second).Should(HaveLen(sent))
	}, SpecTimeout(hang))
})

// refuseCleanly checks that every process runs, starts no verification, and answers clients in the form of the contract.
func (s *shop) refuseCleanly(ctx context.Context, id string, status int) {
	GinkgoHelper()
	for _, r := range s.replicas {
		Expect(r.Running()).To(BeTrue())
		Expect(r.probeStatus(ctx, "/livez")).To(Equal(http.StatusOK))
		got, header, answer := r.sendCall(ctx, s.key, http.MethodPost, "/api/verify/init", initBody)
		Expect(got).To(Equal(http.StatusServiceUnavailable))
		Expect(header.Get("Retry-After")).NotTo(BeEmpty())
		Expect(answer).To(HaveKeyWithValue("error", HaveKeyWithValue("code", "store_unavailable")))
		Eventually(func() int {
			got, _ := r.callAPI(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			return got
		}).WithContext(ctx).Should(Equal(status))
		Expect(r.output()).NotTo(ContainSubstring("panic"))
	}
}
