package integration_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A project served by two replicas", func() {
	It("starts a request at one, returns it from the other, delivers its event, and shows it in kubectl", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		id := s.initRequest(ctx, s.replicas[0], "+49 1511 2345678")
		answer := s.replicas[1].mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
		ownData := And(HaveKeyWithValue("reference", reference), HaveKeyWithValue("metadata", map[string]any{"cart": cart}))
		Expect(answer).To(And(HaveKeyWithValue("status", "PENDING"), HaveKeyWithValue("phoneNumber", "+4915112345678"), ownData))

		Expect(s.verifyRequest(ctx, id)).To(Succeed())
		Eventually(s.receiver.deliveries).Should(HaveLen(1))
		got := s.receiver.deliveries()[0]
		Expect(got.body).To(ContainSubstring(`"requestId":"` + id + `"`))
		Expect(got.body).To(ContainSubstring(clientData))
		Expect(got.headers).To(HaveKey("X-Webhook-Signature"))

		for _, r := range s.replicas {
			answer = r.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			Expect(answer).To(And(HaveKeyWithValue("status", "VERIFIED"), ownData))
		}
		Eventually(func() bool {
			return meta.IsStatusConditionTrue(s.readRequest(ctx, id).Status.Conditions, verifyv1.ConditionWebhookDelivered)
		}).Should(BeTrue())
		out := s.runKubectl("get", "vreq")
		Expect(out).To(MatchRegexp(`shop\s+WhatsApp\s+Verified\s+True`))
		Expect(out).NotTo(Or(ContainSubstring("4915112345678"), ContainSubstring(reference), ContainSubstring(cart)))
		Expect(s.runKubectl("wait", "--for=condition=Verified", "--timeout="+patience.String(), "vreq/"+id)).To(ContainSubstring("condition met"))
		Consistently(s.receiver.deliveries).WithTimeout(time.Second).Should(HaveLen(1))
	}, SpecTimeout(hang))
})
