package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// signingSecret is what an identity server signs with in these tests.
const signingSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// TestDelivery_once has Supabase deliver a code, repeat that three times under other ids, and a stranger replay the first call: the platform
// takes one message, with that code. The server keeps and tells it nowhere, nor a hash of it that needs no secret.
func TestDelivery_once(t *testing.T) {
	w := newSecrecy(t, verification.WhatsApp)
	w.answer()
	const code = "5611660427" // which no time or size has by chance
	body := fmt.Sprintf(`{"user":{"id":"user-1"},"sms":{"otp":%q,"phone":%q}}`, code, codeDelivered[1:])
	signer, err := standardwebhooks.NewWebhook(signingSecret)
	w.Expect(err).NotTo(HaveOccurred())
	post := func(id string) string {
		signature, err := signer.Sign(id, w.clock.Now(), []byte(body))
		w.Expect(err).NotTo(HaveOccurred())
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://"+w.address+"/api/verify/deliver?format=supabase&key=login&locale=en-US", strings.NewReader(body))
		w.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Webhook-Id", id)
		request.Header.Set("Webhook-Timestamp", strconv.FormatInt(w.clock.Now().Unix(), 10))
		request.Header.Set("Webhook-Signature", signature)
		response, err := http.DefaultClient.Do(request)
		w.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(response.StatusCode).To(Equal(http.StatusAccepted), string(content))
		var got struct {
			ID string `json:"deliveryId"`
		}
		w.Expect(json.Unmarshal(content, &got)).To(Succeed())
		return got.ID
	}
	id := post("first")
	w.Eventually(func() verification.CodeState {
		r, err := w.store.Read(t.Context(), id)
		w.Expect(err).NotTo(HaveOccurred())
		return r.Code.State
	}).WithTimeout(time.Minute).Should(Equal(verification.CodeSent))
	for _, again := range []string{"second", "third", "fourth", "first"} {
		w.machine.Step(61 * time.Second) // after which the number may have another code
		w.Expect(post(again)).To(Equal(id))
	}
	read := func(path string) string {
		answer := httptest.NewRecorder()
		w.platform.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/sim/"+path, nil))
		return answer.Body.String()
	}
	w.Expect(read("sent")).To(And(ContainSubstring(`"total":1`), ContainSubstring(`"language":"en_US"`)), "in the language that the template has")
	w.Expect(read("users/1/chats")).To(ContainSubstring(code))

	page, err := w.store.List(t.Context(), verification.ListQuery{Limit: 9, ListFilter: verification.ListFilter{Deliveries: true}})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(page.Requests).To(HaveLen(1))
	metrics, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	logs := string(w.logs.Contents())
	w.Expect(logs).To(ContainSubstring("/api/verify/deliver"))
	all := fmt.Sprintf("%+v %v %s", page.Requests[0], metrics, logs)
	w.Expect(all).NotTo(ContainSubstring(code))
	for _, public := range []string{"", "shop/acme", "login", codeDelivered, id} {
		mac := hmac.New(sha256.New, []byte(public))
		mac.Write([]byte(code))
		plain := sha256.Sum256([]byte(public + code))
		for _, sum := range [][]byte{mac.Sum(nil), plain[:]} {
			w.Expect(all).NotTo(ContainSubstring(hex.EncodeToString(sum[:8])), "by %q", public)
		}
	}
}
