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

// awaitNextSecond waits until the second of t is over: messengers date by whole seconds.
func awaitNextSecond(ctx context.Context, t time.Time) {
	GinkgoHelper()
	Eventually(func() int64 { return time.Now().Unix() }).WithContext(ctx).WithPolling(10 * time.Millisecond).
		Should(BeNumerically(">", t.Unix()))
}

// mustInitKeyed starts a verification with an Idempotency-Key, and expects it to succeed.
func (r *replica) mustInitKeyed(ctx context.Context, key, idempotencyKey, body string) (answer map[string]any) {
	GinkgoHelper()
	Eventually(func() (status int) {
		status, _, answer = r.sendCall(ctx, key, http.MethodPost, "/api/verify/init", body, idempotencyKey)
		return status
	}).WithContext(ctx).Should(Equal(http.StatusOK))
	return answer
}

var _ = Describe("A code that is reissued with its Idempotency-Key", func() {
	const number = "+4915112345001"

	// replays sends the old bytes of a message once more, like an attacker, after its request was deleted and created again.
	replays := func(ctx context.Context, r *replica, key string, deletes func(id string)) {
		GinkgoHelper()
		begin := func() (id, text string) {
			GinkgoHelper()
			answer := r.mustInitKeyed(ctx, key, "order-1", fmt.Sprintf(`{"phoneNumber": %q}`, number))
			canaries.addText(answer["expectedText"].(string))
			return answer["requestId"].(string), answer["expectedText"].(string)
		}
		status := func(id string) any {
			return r.mustCall(ctx, key, http.MethodGet, "/api/verify/status?id="+id, "")["status"]
		}
		id, text := begin()
		sent := time.Now()
		old := signedText(number, text, sent)
		old.mustPostTo(ctx, r)
		Eventually(status).WithContext(ctx).WithArguments(id).Should(Equal("VERIFIED"))

		awaitNextSecond(ctx, sent)
		deletes(id)
		again, sameText := begin()
		Expect(again).To(Equal(id), "the code is reissued")
		Expect(sameText).To(Equal(text))
		Expect(status(id)).To(Equal("PENDING"))
		old.mustPostTo(ctx, r)
		Expect(status(id)).To(Equal("PENDING"), "the old message is older than this request")
		signedText(number, text, time.Now()).mustPostTo(ctx, r)
		Eventually(status).WithContext(ctx).WithArguments(id).Should(Equal("VERIFIED"), "a message of its own time verifies it")
	}

	It("is not verified by an old message, with objects", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 1)
		replays(ctx, s.replicas[0], s.key, func(id string) { s.runKubectl("delete", "vreq/"+id) })
	}, SpecTimeout(hang))

	It("is not verified by an old message, with a database", func(ctx SpecContext) {
		o := newDatabaseShop(ctx, newDatabase(ctx))
		o.start(ctx, 1)
		replays(ctx, o.replicas[0], o.key, func(id string) {
			var deleted string
			Expect(o.database.queryRow(ctx, "DELETE FROM phoneproof_requests WHERE id = '"+id+"' RETURNING id", &deleted)).To(Succeed())
		})
	}, SpecTimeout(hang))

	It("does not come back by filling the store", func(ctx SpecContext) {
		const stored = 5
		s := newShop(ctx)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.Webhook = nil
			p.Spec.Request.MaxStored = new(int32(stored))
		})
		s.start(ctx, 1)
		r := s.replicas[0]
		answer := r.mustInitKeyed(ctx, s.key, "order-1", fmt.Sprintf(`{"phoneNumber": %q}`, number))
		id, text := answer["requestId"].(string), answer["expectedText"].(string)
		canaries.addText(text)
		old := signedText(number, text, time.Now())
		old.mustPostTo(ctx, r)
		full := 0
		for i := range 3 * stored {
			status, answer := r.awaitDecision(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": "+49152%08d"}`, i))
			if status == http.StatusTooManyRequests {
				Expect(answer).To(HaveKeyWithValue("error", HaveKeyWithValue("code", "too_many_stored")))
				full++
			}
		}
		Expect(full).To(BeNumerically(">=", 2*stored))
		Expect(s.readRequest(ctx, id).Status.Phase).To(Equal(verifyv1.PhaseVerified), "not evicted")
		again := r.mustInitKeyed(ctx, s.key, "order-1", fmt.Sprintf(`{"phoneNumber": %q}`, number))
		Expect(again).To(HaveKeyWithValue("requestId", id), "a retry still returns it")
	}, SpecTimeout(hang))
})
