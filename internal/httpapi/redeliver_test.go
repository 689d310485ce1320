package httpapi

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestRedeliver_makesTheEventDue(t *testing.T) {
	w := newRequestsWorld(t)
	id, text := w.begin("")
	refused := w.do(changeRequest(keyRedeliver, pathRedeliver, id))
	w.g.Expect(refused.status).To(Equal(http.StatusConflict), "it is pending")
	w.g.Expect(refused.errorField("code")).To(Equal(string(verification.CodeNoEvent)))
	w.send(id, text)
	due := w.do(changeRequest(keyRedeliver, pathRedeliver, id))
	w.g.Expect(due.status).To(Equal(http.StatusAccepted), "an attempt is due already")
	stored, err := w.store.Store.Read(t.Context(), id)
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(stored.Redelivered).NotTo(BeEmpty(), "and may be in flight: another one follows")

	w.record(id, http.StatusInternalServerError, w.clock.Now().Add(time.Hour))
	marks := map[string]bool{}
	for _, delivered := range []bool{false, true} {
		if delivered {
			w.record(id, http.StatusNoContent, time.Time{})
		}
		w.clock.Step(time.Second)
		a := w.do(changeRequest(keyRedeliver, pathRedeliver, id))
		w.g.Expect(a.status).To(Equal(http.StatusAccepted))
		w.g.Expect(a.fields["delivery"]).To(HaveKeyWithValue("state", "WAITING"))
		stored, err := w.store.Store.Read(t.Context(), id)
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(stored.Delivery.NextAttemptAt).To(Equal(w.clock.Now()))
		w.g.Expect(stored.Redelivered).To(HavePrefix("api:"))
		w.g.Expect(stored.Redelivered).NotTo(ContainSubstring("/"), "no annotation is like it")
		marks[stored.Redelivered] = true
	}
	w.g.Expect(marks).To(HaveLen(2))
	w.g.Expect(w.do(readRequest(keyRead, id)).fields["attempts"]).To(HaveLen(2), "those before the redelivery are kept")

	w.record(id, http.StatusNoContent, time.Time{})
	w.changeSettings(func(s *settings.Settings) { s.Webhook = nil })
	w.g.Expect(w.do(changeRequest(keyRedeliver, pathRedeliver, id)).errorField("code")).To(Equal(string(verification.CodeNoEvent)))
}

// TestRedeliver_isLimitedForEachKey floods with a key that may start verifications without a limit, while the clock is stopped.
func TestRedeliver_isLimitedForEachKey(t *testing.T) {
	w := newRequestsWorld(t)
	w.changeSettings(func(s *settings.Settings) { s.Limits.PerKey = verification.Rate{} })
	id, text := w.begin("")
	w.send(id, text)
	redeliver := changeRequest(keyRedeliver, pathRedeliver, id)
	for range redeliveriesPerSecond * int(statusBurstTime.Seconds()) {
		w.g.Expect(w.do(redeliver).status).To(Equal(http.StatusAccepted))
	}
	before := w.store.calls.Load()
	refused := w.do(redeliver)
	w.g.Expect(refused.status).To(Equal(http.StatusTooManyRequests))
	w.g.Expect(refused.errorField("code")).To(Equal(string(verification.CodeRateLimited)))
	w.g.Expect(refused.joinedHeader("Retry-After")).To(Equal("1"))
	w.g.Expect(w.store.calls.Load()).To(Equal(before), "the store must not be called")
	w.g.Expect(w.do(changeRequest(keyInit, pathCancel, id)).status).To(Equal(http.StatusConflict), "other changes are counted separately")
	w.clock.Step(time.Second)
	for range redeliveriesPerSecond {
		w.g.Expect(w.do(redeliver).status).To(Equal(http.StatusAccepted))
	}
	w.g.Expect(w.do(redeliver).status).To(Equal(http.StatusTooManyRequests))
}
