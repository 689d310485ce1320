package integration_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// secondOver returns once the second of t is over: messengers date by whole seconds.
func secondOver(ctx context.Context, t time.Time) {
	GinkgoHelper()
	Eventually(func() int64 { return time.Now().Unix() }).WithContext(ctx).WithPolling(10 * time.Millisecond).WithTimeout(patience).
		Should(BeNumerically(">", t.Unix()))
}

// servesKeyed starts a verification with an Idempotency-Key, which has to succeed.
func (r *replica) servesKeyed(ctx context.Context, key, idempotencyKey, body string) (answer map[string]any) {
	GinkgoHelper()
	Eventually(func() (status int) {
		status, answer = r.callKeyed(ctx, key, idempotencyKey, body)
		return status
	}).WithContext(ctx).WithTimeout(patience).Should(Equal(http.StatusOK))
	return answer
}

// callKeyed asks once to start a verification with an Idempotency-Key.
func (r *replica) callKeyed(ctx context.Context, key, idempotencyKey, body string) (status int, answer map[string]any) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.api+"/api/verify/init", strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	for name, value := range map[string]string{
		"Authorization": "Bearer " + key, "Content-Type": "application/json", "Idempotency-Key": idempotencyKey,
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	Expect(json.NewDecoder(response.Body).Decode(&answer)).To(Succeed())
	return response.StatusCode, answer
}

var _ = Describe("A code that comes back with its Idempotency-Key", func() {
	const number = "+4915112345001"

	// replays has an attacker with the old bytes of a message send them once more, after its request was deleted and made anew.
	replays := func(ctx context.Context, r *replica, key string, deletes func(id string)) {
		GinkgoHelper()
		begin := func() (id, text string) {
			GinkgoHelper()
			answer := r.servesKeyed(ctx, key, "order-1", fmt.Sprintf(`{"phoneNumber": %q}`, number))
			canaries.addText(answer["expectedText"].(string))
			return answer["requestId"].(string), answer["expectedText"].(string)
		}
		status := func(id string) any {
			return r.serves(ctx, key, http.MethodGet, "/api/verify/status?id="+id, "")["status"]
		}
		id, text := begin()
		sent := time.Now()
		old := signedText(number, text, sent)
		Expect(old.post(ctx, r)).To(Equal(http.StatusOK))
		Eventually(status).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(Equal("VERIFIED"))

		secondOver(ctx, sent)
		deletes(id)
		again, sameText := begin()
		Expect(again).To(Equal(id), "the code came back")
		Expect(sameText).To(Equal(text))
		Expect(status(id)).To(Equal("PENDING"))
		Expect(old.post(ctx, r)).To(Equal(http.StatusOK))
		Expect(status(id)).To(Equal("PENDING"), "the old message says nothing of this request")
		Expect(signedText(number, text, time.Now()).post(ctx, r)).To(Equal(http.StatusOK))
		Eventually(status).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(Equal("VERIFIED"), "one of its own time does")
	}

	It("is not verified by an old message, with objects", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 1)
		replays(ctx, s.replicas[0], s.key, func(id string) { s.kubectl("delete", "vreq/"+id) })
	}, SpecTimeout(2*time.Minute))

	It("is not verified by an old message, with a database", func(ctx SpecContext) {
		o := newOutlet(ctx, newDatabase(ctx))
		o.start(ctx, 1)
		replays(ctx, o.replicas[0], o.key, func(id string) {
			var deleted string
			Expect(o.database.query(ctx, "DELETE FROM phoneproof_requests WHERE id = '"+id+"' RETURNING id", &deleted)).To(Succeed())
		})
	}, SpecTimeout(2*time.Minute))

	It("does not come back by filling the store", func(ctx SpecContext) {
		const stored = 5
		s := newShop(ctx)
		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.Webhook = nil
			p.Spec.Request.MaxStored = new(int32(stored))
		})
		s.start(ctx, 1)
		r := s.replicas[0]
		answer := r.servesKeyed(ctx, s.key, "order-1", fmt.Sprintf(`{"phoneNumber": %q}`, number))
		id, text := answer["requestId"].(string), answer["expectedText"].(string)
		canaries.addText(text)
		old := signedText(number, text, time.Now())
		Expect(old.post(ctx, r)).To(Equal(http.StatusOK))
		full := 0
		for i := range 3 * stored {
			status, answer := r.call(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": "+49152%08d"}`, i))
			if status == http.StatusTooManyRequests {
				Expect(answer).To(HaveKeyWithValue("error", HaveKeyWithValue("code", "too_many_stored")))
				full++
			}
		}
		Expect(full).To(BeNumerically(">=", 2*stored))
		Expect(s.object(ctx, id).Status.Phase).To(Equal(verifyv1.PhaseVerified), "it is not evicted")
		again := r.servesKeyed(ctx, s.key, "order-1", fmt.Sprintf(`{"phoneNumber": %q}`, number))
		Expect(again).To(HaveKeyWithValue("requestId", id), "a retry meets it all the same")
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("Made-up ids and codes", func() {
	const clients = 16

	// flood makes that many calls as fast as it can.
	flood := func(calls int, call func(i int)) {
		var all sync.WaitGroup
		for worker := range clients {
			all.Go(func() {
				defer GinkgoRecover()
				for i := worker; i < calls; i += clients {
					call(i)
				}
			})
		}
		all.Wait()
	}
	code := func(s *shop) (verification.CodeSpace, verification.Code) {
		GinkgoHelper()
		project := verification.NewCodeSpace(s.namespace + "/shop")
		code, err := project.NewCode(rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		return project, code
	}

	It("are no load on the API server, while other keys and senders are served", func(ctx SpecContext) {
		s := newShop(ctx)
		leaked, err := settings.NewAPIKey(rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		s.writeSecret("leaked", leaked)
		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.APIKeys = append(p.Spec.APIKeys,
				verifyv1.APIKey{Name: "leaked", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "leaked"}})
		})
		s.start(ctx, 1) // which creates what the other is asked about
		way := s.middleman()
		s.start(ctx, 1)
		other, r := s.replicas[0], s.replicas[1]
		release := way.hold() // r learns nothing of what the other stores
		defer release()
		since := func(before map[string]int) map[string]int {
			calls := map[string]int{}
			for verb, n := range way.counted("verificationrequests") {
				if n > before[verb] {
					calls[verb] = n - before[verb]
				}
			}
			return calls
		}

		const asked = 3000
		var refused, absent, unanswered atomic.Int64
		before, began := way.counted("verificationrequests"), time.Now()
		flood(asked, func(int) {
			project, code := code(s)
			status, header, _ := r.exchange(ctx, leaked, http.MethodGet, "/api/verify/status?id="+project.RequestID(code), "")
			switch {
			case status == http.StatusTooManyRequests && header.Get("Retry-After") != "":
				refused.Add(1)
			case status == http.StatusNotFound:
				absent.Add(1)
			case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "":
				unanswered.Add(1) // the store had no time for it
			}
		})
		took := time.Since(began)
		found := since(before)
		AddReportEntry(fmt.Sprintf("%d status calls with made-up ids in %s: %v", asked, took.Round(time.Millisecond), found))
		// 100 at once and 20 a second; what is on its way when the clock ticks is one more for each client.
		Expect(found["GET"]).To(BeNumerically("<=", 100+20*took.Seconds()+clients))
		Expect(found).To(HaveLen(1), "and nothing but GET")
		Expect(refused.Load()).To(BeNumerically(">", 0))
		Expect(absent.Load()).To(BeNumerically(">", 0))
		Expect(refused.Load() + absent.Load() + unanswered.Load()).To(BeEquivalentTo(asked))
		mine := s.init(ctx, other, "+4915112345002")
		Expect(r.serves(ctx, s.key, http.MethodGet, "/api/verify/status?id="+mine, "")).To(HaveKeyWithValue("status", "PENDING"))

		const sent, senders = 500, 25
		unanswered.Store(0)
		before, began = way.counted("verificationrequests"), time.Now()
		flood(sent, func(i int) {
			_, code := code(s)
			text := whatsapp.ExpectedText("shop", code)
			status := signedText(fmt.Sprintf("+49153%08d", i%senders), text, time.Now()).post(ctx, r)
			Expect(status).To(Or(Equal(http.StatusOK), Equal(http.StatusServiceUnavailable)))
			if status == http.StatusServiceUnavailable {
				unanswered.Add(1)
			}
		})
		took = time.Since(began)
		found = since(before)
		AddReportEntry(fmt.Sprintf("%d messages with made-up codes of %d senders in %s: %v", sent, senders, took.Round(time.Millisecond), found))
		// 5 at once and one in ten seconds for each sender. A look-up that had no time costs its sender nothing.
		Expect(found["GET"]).To(BeNumerically("<=", (5+0.1*took.Seconds())*senders+clients+float64(unanswered.Load())))
		Expect(found["WATCH"]).To(BeNumerically("<=", 20+2*took.Seconds()+1))
		honest := other.serves(ctx, s.key, http.MethodPost, "/api/verify/init", `{"phoneNumber": "+4915112345003"}`)
		canaries.addText(honest["expectedText"].(string))
		Eventually(func() int {
			return signedText("+4915112345003", honest["expectedText"].(string), time.Now()).post(ctx, r)
		}).WithContext(ctx).WithTimeout(patience).Should(Equal(http.StatusOK))
		Expect(s.object(ctx, honest["requestId"].(string)).Status.Phase).To(Equal(verifyv1.PhaseVerified))
		for _, by := range []string{"client", "sender"} {
			labels := map[string]string{"by": by, "bound": "caller"}
			Expect(r.metric(ctx, "phoneproof_unknown_reads_refused_total", labels)).To(BeNumerically(">", 0), by)
		}
	}, SpecTimeout(3*time.Minute))
})
