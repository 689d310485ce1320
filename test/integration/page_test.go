package integration_test

import (
	"errors"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/browser"
	"github.com/phoneproof/phoneproof/test/ports"
)

// newPage opens a tab of a browser, or skips the spec without one.
func newPage() *browser.Page {
	GinkgoHelper()
	b, err := browser.Start()
	if errors.Is(err, browser.ErrNotInstalled) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Stop)
	return b.NewPage(GinkgoT())
}

var _ = Describe("The page of a user", func() {
	It("goes on when its server was killed and another one took its place", func(ctx SpecContext) {
		address := ports.Address(GinkgoT())
		o := newDatabaseShopWith(ctx, newDatabase(ctx), func(p *verifyv1.VerificationProject) {
			p.Spec.BaseURL, p.Spec.Page = "http://"+address, &verifyv1.Page{}
			p.Spec.Request.TTL = "10m" // a browser and a second server are started meanwhile
		})
		o.flags = append(o.flags, "--bind-address", address)
		startAtAddress := func() *replica {
			r := o.startOne()
			r.API = address
			Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
			return r
		}
		page := newPage()
		page.EmulatePhone()
		page.HandLinksToApps()

		first := startAtAddress()
		const number = "+4915112345001"
		answer := first.mustCall(ctx, o.key, http.MethodPost, "/api/verify/init", `{"phoneNumber": "`+number+`"}`)
		page.Open(answer["pageURL"].(string))
		page.AwaitText("h1", Equal("Verify your phone number"))
		page.Press("#open")
		Expect(page.AwaitApp()).To(Equal(answer["waLink"]))
		page.AwaitText("h1", Equal("Now tap Send in WhatsApp"))

		By("killing the server")
		first.Kill()
		second := startAtAddress()
		page.AwaitText("h1", Equal("Now tap Send in WhatsApp"))
		o.verifyNumber(ctx, second, startedRequest{answer["requestId"].(string), number, answer["expectedText"].(string)})
		page.AwaitText("h1", Equal("Your number is verified"))
	}, SpecTimeout(hang))
})
