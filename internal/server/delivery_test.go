package server

import (
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
// takes one message, with that code.
func TestDelivery_once(t *testing.T) {
	w := newSecrecy(t)
	w.answer()
	body := fmt.Sprintf(`{"user":{"id":"user-1"},"sms":{"otp":"561166","phone":%q}}`, codeDelivered[1:])
	signer, err := standardwebhooks.NewWebhook(signingSecret)
	w.Expect(err).NotTo(HaveOccurred())
	post := func(id string) string {
		signature, err := signer.Sign(id, w.clock.Now(), []byte(body))
		w.Expect(err).NotTo(HaveOccurred())
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://"+w.address+"/api/verify/deliver?format=supabase&key=login&locale=en", strings.NewReader(body))
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
	for _, again := range []string{"second", "third", "fourth", "first"} {
		w.Expect(post(again)).To(Equal(id))
	}
	w.Eventually(func() verification.CodeState {
		r, err := w.store.Read(t.Context(), id)
		w.Expect(err).NotTo(HaveOccurred())
		return r.Code.State
	}).WithTimeout(time.Minute).Should(Equal(verification.CodeSent))
	read := func(path string) string {
		answer := httptest.NewRecorder()
		w.platform.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/sim/"+path, nil))
		return answer.Body.String()
	}
	w.Expect(read("sent")).To(ContainSubstring(`"total":1`))
	w.Expect(read("users/1/chats")).To(ContainSubstring("561166"))
}
