package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestGateway_checksWhatWasEntered has a code sent by Telegram verify its number, and checked once.
func TestGateway_checksWhatWasEntered(t *testing.T) {
	w := newSecrecy(t, verification.Telegram)
	w.answer()
	begun := w.begin(t, codeDelivered)
	var code string
	w.Eventually(func() string {
		answer := httptest.NewRecorder()
		w.platform.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/sim/users/1/chats", http.NoBody))
		code = regexp.MustCompile(`[0-9]{8}`).FindString(regexp.MustCompile(`[0-9]{8} is your`).FindString(answer.Body.String()))
		return code
	}).WithTimeout(time.Minute).ShouldNot(BeEmpty())
	w.seen = map[string]*sighting{codeDelivered: begun}
	w.awaitResults(t) // the check needs the send's answer
	w.Expect(w.call(t, http.MethodPost, "/api/verify/confirm", fmt.Sprintf(`{"requestId":%q,"code":%q}`, begun.id, code))).
		To(And(HavePrefix("200\n"), ContainSubstring(`"via":"CODE"`)))
	once := Equal(map[string]uint64{"checkVerificationStatus": 1})
	count := func() map[string]uint64 { return w.countCalls("checkVerificationStatus") }
	w.Eventually(count).WithTimeout(time.Minute).Should(once)
	w.Consistently(count).WithTimeout(100 * time.Millisecond).Should(once)
}

// countCalls returns how often each of these operations was called, if it was.
func (w *secrecy) countCalls(operations ...string) map[string]uint64 {
	families, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	counts := map[string]uint64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				for _, operation := range operations {
					if n := metric.GetHistogram().GetSampleCount(); label.GetValue() == operation && n > 0 {
						counts[operation] = n
					}
				}
			}
		}
	}
	return counts
}
