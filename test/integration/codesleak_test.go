package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// askForCode asks for a code and returns the answer's status with the code of its error.
func (r *replica) askForCode(ctx context.Context, key string, n int64) (status int, code any) {
	body := fmt.Sprintf(`{"phoneNumber": "+49171%07d", "deliver": "CODE", "subject": "user-%d"}`, n, n)
	status, answer := r.callAPI(ctx, key, http.MethodPost, "/api/verify/init", body)
	if refused, is := answer["error"].(map[string]any); is {
		code = refused["code"]
	}
	return status, code
}

var _ = Describe("A leaked key with the scope Deliver", func() {
	It("asks for codes at full speed, and no other key is limited", func(ctx SpecContext) {
		const perDay, share, clients = 360, 360 / 2 / 6, 8
		o := newDatabaseShopWith(ctx, newDatabase(ctx), func(p *verifyv1.VerificationProject) {
			p.Spec.WhatsApp.Codes = &verifyv1.Codes{
				TemplateName: "shop_code", Languages: []verifyv1.TemplateLanguage{"en"}, AllowedCountries: []verifyv1.Country{"DE"}, MaxPerDay: perDay,
			}
			p.Spec.RateLimit.PerSubject = &verifyv1.Rate{Requests: 10, Period: "1m"}
			p.Spec.RateLimit.PerPrefix = &verifyv1.PrefixRate{Digits: 9, Requests: 10_000, Period: "1m"}
			p.Spec.APIKeys[0].Scopes = []verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeDeliver}
			p.Spec.APIKeys = append(p.Spec.APIKeys, verifyv1.APIKey{
				Name: "other", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "other-key"}, Scopes: p.Spec.APIKeys[0].Scopes,
			})
		})
		other, err := settings.NewAPIKey(rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		o.writeSecret("other-key", other)
		o.start(ctx, 2)

		var numbers, sent, limited, strange atomic.Int64
		leaking, stop := context.WithCancel(ctx)
		defer stop()
		var all sync.WaitGroup
		for n := range clients {
			all.Go(func() {
				for leaking.Err() == nil {
					status, code := o.replicas[n%2].askForCode(ctx, o.key, numbers.Add(1))
					switch {
					case status == http.StatusOK:
						sent.Add(1)
					case status == http.StatusTooManyRequests && code == "codes_limited":
						limited.Add(1)
					case status != http.StatusServiceUnavailable:
						strange.Add(1)
					}
				}
			})
		}
		Eventually(limited.Load).WithContext(ctx).Should(BeNumerically(">", clients))
		var took []time.Duration
		for n := range int64(share) { // its own share, beside the leak
			began := time.Now()
			Eventually(func() int {
				status, code := o.replicas[n%2].askForCode(ctx, other, 1_000_000+n)
				Expect(code).NotTo(Equal("codes_limited"))
				return status
			}).WithContext(ctx).Should(Equal(http.StatusOK))
			took = append(took, time.Since(began))
		}
		o.replicas[0].mustCall(ctx, o.key, http.MethodPost, "/api/verify/init", `{"phoneNumber": "+4915112345678", "subject": "user"}`)
		stop()
		all.Wait()
		Expect(strange.Load()).To(BeZero())
		var stored int64
		Expect(o.database.queryRow(ctx, `SELECT count(*) FROM phoneproof_requests WHERE deliver = 'CODE' AND key_name = 'backend'`, &stored)).To(Succeed())
		Expect(stored).To(BeEquivalentTo(share), "what the leak costs in an hour")
		Expect(sent.Load()).To(BeNumerically("<=", share))
		AddReportEntry("leak", fmt.Sprintf("%d codes, %d refused; the other key's p50 and p99 %s and %s", stored, limited.Load(),
			percentile(took, 50), percentile(took, 99)))
	}, SpecTimeout(hang))
})
