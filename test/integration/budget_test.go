package integration_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// postMessage posts a text from a number like Meta, signed with the account's secret, and returns the status.
func (s *shop) postMessage(ctx context.Context, through *replica, from, text string) int {
	GinkgoHelper()
	return signedText(from, text, time.Now()).postTo(ctx, through)
}

// signedBody is a webhook request body with Meta's signature.
type signedBody struct{ body, signature string }

// signedText returns the webhook request of a text that a number sent at a time.
func signedText(from, text string, at time.Time) signedBody {
	GinkgoHelper()
	from = strings.TrimPrefix(from, "+")
	body, err := json.Marshal(map[string]any{
		"object": "whatsapp_business_account",
		"entry": []any{map[string]any{"id": "1", "changes": []any{map[string]any{"field": "messages", "value": map[string]any{
			"messaging_product": "whatsapp", "metadata": map[string]any{"phone_number_id": "1234567890"},
			"messages": []any{map[string]any{
				"from": from, "id": "wamid." + from, "timestamp": strconv.FormatInt(at.Unix(), 10),
				"type": "text", "text": map[string]any{"body": text},
			}},
		}}}}},
	})
	Expect(err).NotTo(HaveOccurred())
	mac := hmac.New(sha256.New, []byte(appSecret))
	mac.Write(body)
	return signedBody{string(body), "sha256=" + hex.EncodeToString(mac.Sum(nil))}
}

// postTo sends the unchanged bytes and returns the response's status.
func (b signedBody) postTo(ctx context.Context, through *replica) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+through.api+"/hooks/whatsapp", strings.NewReader(b.body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("X-Hub-Signature-256", b.signature)
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

// mustPostTo is postTo that must succeed. A message that the store had no time for is sent again, like Meta does.
func (b signedBody) mustPostTo(ctx context.Context, through *replica) {
	GinkgoHelper()
	var status int
	Eventually(func() int {
		status = b.postTo(ctx, through)
		return status
	}).WithContext(ctx).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(status).To(Equal(http.StatusOK))
}

var _ = Describe("The load of a verification on the API server", func() {
	It("is three writes until its event is delivered, and no LIST", func(ctx SpecContext) {
		const requests = 20
		s := newShop(ctx)
		way := s.startProxy()
		s.start(ctx, 1)
		r := s.findLeader(ctx)
		before, lost, repeated := way.callsOf("verificationrequests"), way.lostCallsOf("verificationrequests"), 0
		again := func(status int) int {
			if status == http.StatusServiceUnavailable {
				repeated++
			}
			return status
		}
		for i := range requests {
			number := fmt.Sprintf("49151%08d", 70_000_000+i)
			var started map[string]any
			Eventually(func() (status int) {
				status, started = r.initKeyed(ctx, s.key, number, fmt.Sprintf(`{"phoneNumber": %q}`, number))
				return again(status)
			}).WithContext(ctx).Should(Equal(http.StatusOK))
			canaries.addText(started["expectedText"].(string))
			Eventually(func() int {
				return again(s.postMessage(ctx, r, number, started["expectedText"].(string)))
			}).WithContext(ctx).Should(Equal(http.StatusOK))
		}
		Eventually(s.receiver.deliveries).Should(HaveLen(requests))
		Eventually(func() int {
			// What ended without an answer may be stored, and is not written again then.
			return way.callsOf("verificationrequests")["PUT"] - before["PUT"] + way.lostCallsOf("verificationrequests")["PUT"] - lost["PUT"]
		}).Should(BeNumerically(">=", 2*requests-repeated), "one write verifies, one records the attempt; the fourth, later, deletes")
		// Calls that timed out on a loaded machine were repeated, and each may have added a call, or left one that ended without an answer
		// and was not counted.
		after := way.callsOf("verificationrequests")
		Expect(after["PUT"] - before["PUT"]).To(BeNumerically("<=", 2*requests+repeated))
		Expect(after["POST"] - before["POST"]).To(And(BeNumerically(">=", requests-repeated), BeNumerically("<=", requests+repeated)))
		Expect(after["PATCH"] - before["PATCH"]).To(BeZero())
		Expect(after["LIST"] - before["LIST"]).To(BeZero())
		Expect(after["DELETE"] - before["DELETE"]).To(BeZero())
		gets := float64(after["GET"]-before["GET"]) / float64(requests+repeated)
		AddReportEntry(fmt.Sprintf("reads per verification: %.1f GET", gets))
		Expect(gets).To(BeNumerically("<=", 4), "one for each change while it is pending, and one right before the event is sent")
	}, SpecTimeout(hang))
})
