package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Status answers with the stored values, in the form in which they were given, at any time.
func TestStatus_answersWhatWasStored(t *testing.T) {
	g := NewWithT(t)
	fake := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	h := newHarness(t, func(s *setup) { s.options.Clock = fake })
	const claimed, reported = "+5215512345678", "+525512345678" // two forms of one number
	id := h.do(initFor(keyAll, claimed)).stringField("requestId")
	fake.Step(time.Minute)
	h.verifyRequest(id, reported, verification.AssuranceUsual)
	fake.Step(time.Hour)
	for range 2 {
		g.Expect(h.do(statusRequest(keyStatus, "id="+id)).fields).To(And(
			HaveKeyWithValue("phoneNumber", claimed),
			HaveKeyWithValue("actualPhoneNumber", reported),
			HaveKeyWithValue("verifiedAt", "2026-03-01T10:01:00.000Z"),
			HaveKeyWithValue("expiresAt", "2026-03-01T10:10:00.000Z"),
		))
		fake.Step(time.Hour)
	}
}

func TestInit_retryAnswersWhatIsLeft(t *testing.T) {
	g := NewWithT(t)
	fake := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	h := newHarness(t, func(s *setup) { s.options.Clock = fake })
	try := initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "order-1")
	for _, row := range []struct {
		later time.Duration
		want  string
	}{{0, "600s"}, {4 * time.Minute, "360s"}, {6*time.Minute - time.Second, "1s"}, {time.Hour, "0s"}} {
		fake.Step(row.later)
		answer := h.do(try)
		g.Expect(answer.stringField("expiresIn")).To(Equal(row.want))
		g.Expect(answer.stringField("expiresAt")).To(Equal("2026-03-01T10:10:00.000Z"))
	}
}

// A retry shows when a request ended that was canceled, and of a verified one what it showed before.
func TestInit_retryOfAnEndedRequest(t *testing.T) {
	for name, test := range map[string]struct {
		end           func(w *requestsWorld, id, text string)
		left, expires string
	}{
		"pending": {func(*requestsWorld, string, string) {}, "539s", "2026-03-01T10:10:00.000Z"},
		"verified": {func(w *requestsWorld, id, text string) {
			w.g.Expect(w.send(id, text)).To(Equal(verification.OutcomeVerified))
		}, "539s", "2026-03-01T10:10:00.000Z"},
		"canceled": {func(w *requestsWorld, id, _ string) {
			w.g.Expect(w.do(changeRequest(keyInit, pathCancel, id)).status).To(Equal(http.StatusOK))
		}, "0s", "2026-03-01T10:00:01.000Z"},
		"canceled by a server whose clock is ahead": {func(w *requestsWorld, id, _ string) {
			w.g.Expect(w.do(changeRequest(keyInit, pathCancel, id)).status).To(Equal(http.StatusOK))
			w.clock.Step(-62 * time.Second)
		}, "0s", "2026-03-01T10:00:01.000Z"},
		"over": {func(w *requestsWorld, id, _ string) {
			w.clock.Step(10*time.Minute + verification.ExpiryGrace)
			w.update(id, func(r *verification.Request, now time.Time) error { return r.Expire(now, w.all) })
		}, "0s", "2026-03-01T10:10:00.000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRequestsWorld(t)
			try := initFor(keyInit, w.newNumber(1)).withHeader("Idempotency-Key", "order-1")
			first := w.do(try)
			w.clock.Step(time.Second)
			test.end(w, first.stringField("requestId"), first.stringField("expectedText"))
			w.clock.Step(time.Minute)
			again := w.do(try)
			w.g.Expect(again.stringField("requestId")).To(Equal(first.stringField("requestId")))
			w.g.Expect(again.stringField("expiresIn")).To(Equal(test.left))
			w.g.Expect(again.stringField("expiresAt")).To(Equal(test.expires))
		})
	}
}

// Calls of the store have a deadline, so that a store that hangs results in an error within two seconds.
func TestStore_isAskedForABoundedTime(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	left := make(chan time.Duration, 10)
	look := func(ctx context.Context) error {
		deadline, bounded := ctx.Deadline()
		g.Expect(bounded).To(BeTrue())
		left <- time.Until(deadline)
		return nil
	}
	h.store.before.Store(&look)
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	h.do(initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "order-1"))
	h.do(statusRequest(keyStatus, "id="+id))
	for range 3 {
		g.Expect(left).To(Receive(BeNumerically("<=", 1500*time.Millisecond)))
	}
	g.Expect(left).NotTo(Receive())
}

// The limit is written as a number, because a test with maxBodyBytes would accept any value.
func TestInit_bodyOfEightKibibytes(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	text := fmt.Sprintf(`{"phoneNumber":%q}`, h.newNumber(1))
	for length, want := range map[int]int{8 << 10: 200, 8<<10 + 1: 413} {
		g.Expect(h.do(requestWithBody(text+strings.Repeat(" ", length-len(text)))).status).To(Equal(want), "%d bytes", length)
	}
}

// unreadBody is a body that must not be read.
type unreadBody struct{ t *testing.T }

func (u unreadBody) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// A body with too large a Content-Length is refused unread, so that a client that waits for "100 Continue" sends nothing.
func TestInit_refusesAnAnnouncedExcessUnread(t *testing.T) {
	h := newHarness(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, pathInit, unreadBody{t})
	r.Header.Set("Authorization", "Bearer "+keyAll)
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = 8<<10 + 1
	answer := httptest.NewRecorder()
	h.api.ServeHTTP(answer, r)
	NewWithT(t).Expect(answer.Code).To(Equal(http.StatusRequestEntityTooLarge))
}
