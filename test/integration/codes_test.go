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
		status, answer = r.initKeyed(ctx, key, idempotencyKey, body)
		return status
	}).WithContext(ctx).Should(Equal(http.StatusOK))
	return answer
}

// initKeyed tries once to start a verification with an Idempotency-Key.
func (r *replica) initKeyed(ctx context.Context, key, idempotencyKey, body string) (status int, answer map[string]any) {
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

var _ = Describe("Made-up ids and codes", func() {
	// flood has clients make that many calls as fast as possible.
	flood := func(clients, calls int, call func(i int)) {
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
		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.APIKeys = append(p.Spec.APIKeys,
				verifyv1.APIKey{Name: "leaked", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "leaked"}})
		})
		s.start(ctx, 1) // which creates the requests that the other is asked for
		way := s.startProxy()
		s.start(ctx, 1)
		other, r := s.replicas[0], s.replicas[1]
		release := way.holdWatches() // r's cache does not receive what the other stores
		defer release()
		since := func(before map[string]int) map[string]int {
			calls := map[string]int{}
			for verb, n := range way.callsOf("verificationrequests") {
				if n > before[verb] {
					calls[verb] = n - before[verb]
				}
			}
			return calls
		}

		// So many askers that their reads in progress exceed what a key may, however few of them end in a second.
		const asked, askers = 3000, 256
		var refused, absent, unanswered atomic.Int64
		before, began := way.callsOf("verificationrequests"), time.Now()
		flood(askers, asked, func(int) {
			project, code := code(s)
			status, header, _ := r.sendCall(ctx, leaked, http.MethodGet, "/api/verify/status?id="+project.RequestID(code), "")
			switch {
			case status == http.StatusTooManyRequests && header.Get("Retry-After") != "":
				refused.Add(1)
			case status == http.StatusNotFound:
				absent.Add(1)
			case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "":
				unanswered.Add(1) // the store timed out
			}
		})
		took := time.Since(began)
		found := since(before)
		AddReportEntry(fmt.Sprintf("%d status calls with made-up ids in %s: %v", asked, took.Round(time.Millisecond), found))
		// 100 at once and 20 a second. Only misses count, and a call that timed out is not known to be one.
		Expect(found["GET"]).To(BeNumerically("<=", 100+20*took.Seconds()+float64(unanswered.Load())))
		Expect(found).To(HaveLen(1), "only GET")
		Expect(refused.Load()).To(BeNumerically(">", 0))
		Expect(absent.Load()).To(BeNumerically(">", 0))
		Expect(refused.Load() + absent.Load() + unanswered.Load()).To(BeEquivalentTo(asked))
		mine := s.initRequest(ctx, other, "+4915112345002")
		Expect(r.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+mine, "")).To(HaveKeyWithValue("status", "PENDING"))

		const sent, senders, clients = 500, 25, 16 // few clients: a sender with many lookups in progress gets 503
		unanswered.Store(0)
		before, began = way.callsOf("verificationrequests"), time.Now()
		flood(clients, sent, func(i int) {
			_, code := code(s)
			text := whatsapp.ExpectedText(&settings.Settings{DisplayName: "shop"}, &verification.Request{}, code)
			status := signedText(fmt.Sprintf("+49153%08d", i%senders), text, time.Now()).postTo(ctx, r)
			Expect(status).To(Or(Equal(http.StatusOK), Equal(http.StatusServiceUnavailable)))
			if status == http.StatusServiceUnavailable {
				unanswered.Add(1)
			}
		})
		took = time.Since(began)
		found = since(before)
		AddReportEntry(fmt.Sprintf("%d messages with made-up codes of %d senders in %s: %v", sent, senders, took.Round(time.Millisecond), found))
		// 5 at once and one in ten seconds for each sender. A lookup that timed out is not counted against its sender.
		Expect(found["GET"]).To(BeNumerically("<=", (5+0.1*took.Seconds())*senders+clients+float64(unanswered.Load())))
		Expect(found["WATCH"]).To(BeNumerically("<=", 20+2*took.Seconds()+1))
		honest := other.mustCall(ctx, s.key, http.MethodPost, "/api/verify/init", `{"phoneNumber": "+4915112345003"}`)
		canaries.addText(honest["expectedText"].(string))
		Eventually(func() int {
			return signedText("+4915112345003", honest["expectedText"].(string), time.Now()).postTo(ctx, r)
		}).WithContext(ctx).Should(Equal(http.StatusOK))
		Expect(s.readRequest(ctx, honest["requestId"].(string)).Status.Phase).To(Equal(verifyv1.PhaseVerified))
		for _, by := range []string{"client", "sender"} {
			labels := map[string]string{"by": by, "bound": "caller"}
			Expect(r.readMetric(ctx, "phoneproof_unknown_reads_refused_total", labels)).To(BeNumerically(">", 0), by)
		}
	}, SpecTimeout(hang))
})
