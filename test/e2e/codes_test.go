//go:build e2e

package e2e

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/simphone"
)

func codeSpecs() {
	It("verifies a number by a code that is sent to it", func(ctx SpecContext) {
		patchProject(ctx, shopNamespace, `{"spec":{
			"apiKeys":[{"name":"backend","secretRef":{"name":"shop","key":"api-key"},"scopes":["Init","Status","Read","Redeliver","Deliver"]}],
			"whatsapp":{"codes":{"templateName":"shop_code","languages":["en"],"allowedCountries":["DE"],"maxPerDay":100}},
			"request":{"ttl":"15m"},
			"rateLimit":{"perSubject":{"requests":100,"period":"1m"},"perPrefix":{"digits":9,"requests":1000,"period":"1m"}}}}`)
		DeferCleanup(func(ctx SpecContext) {
			patchProject(ctx, shopNamespace, `{"spec":{
				"apiKeys":[{"name":"backend","secretRef":{"name":"shop","key":"api-key"}}],
				"whatsapp":{"codes":null},"request":{"ttl":"30m"},"rateLimit":{"perSubject":null,"perPrefix":null}}}`)
			eventuallyReady(ctx, shopNamespace)
		})
		eventuallyReady(ctx, shopNamespace)

		number := newNumber()
		theShop.mustSend(ctx, http.MethodPost, theShop.sim+"/sim/users", map[string]string{"name": "Ada", "phone": number}, nil)
		body := map[string]string{"phoneNumber": number, "deliver": "CODE", "subject": "ada"}
		var r request
		Eventually(func() bool { // each pod learns of the changed project by itself
			return theShop.trySendRequest(ctx, http.MethodPost, theShop.api+"/api/verify/init", body, &r)
		}).WithContext(ctx).Should(BeTrue())
		r.number = number
		var codes simphone.Codes
		Eventually(func() (err error) {
			codes, err = simphone.LatestDelivered(ctx, theShop.http, theShop.sim, number)
			return err
		}).WithContext(ctx).Should(Succeed())

		confirmation := map[string]string{"requestId": r.ID, "code": codes.Digits}
		var confirmed map[string]any
		theShop.mustSend(ctx, http.MethodPost, theShop.api+"/api/verify/confirm", confirmation, &confirmed)
		Expect(confirmed).To(And(
			HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("via", "CODE"), HaveKeyWithValue("assurance", "session"),
			HaveKeyWithValue("codeDelivery", "SENT"), HaveKeyWithValue("actualPhoneNumber", number)))
		theShop.eventuallyAccepted(ctx, r)
		Expect(theShop.listEvents(ctx, r.ID)).To(HaveExactElements(HaveField("Body", ContainSubstring(`"via":"CODE"`))))
	})
}
