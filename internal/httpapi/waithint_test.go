package httpapi

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// bindSender has a sender bound to the request, which gives it the hint AWAITING_CONTACT.
func (b *bubble) bindSender(id string) {
	b.t.Helper()
	_, err := b.backend.Open(projectName).Update(b.t.Context(), id, func(r *verification.Request, now time.Time) error {
		return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, "binding", now, 0)
	})
	b.g.Expect(err).NotTo(HaveOccurred())
}

func TestWait_endsWithNewsOfTheHint(t *testing.T) {
	const awaiting = `"hint":"AWAITING_CONTACT"`
	for name, test := range map[string]struct {
		query  string
		before bool // the hint is there before the call; otherwise it comes after 3 s
		took   time.Duration
		text   string
	}{
		"first hint":                         {"wait=20s&hint=", false, 3 * time.Second, awaiting},
		"another hint than the known one":    {"wait=20s&hint=", true, time.Second, awaiting},
		"a hint of another version":          {"hint=OF_A_LATER_VERSION&wait=20s", true, time.Second, awaiting},
		"a hint that is not there yet":       {"hint=AWAITING_CONTACT&wait=2s", false, time.Second, `"status":"PENDING"`},
		"no longer than the wait":            {"wait=1s&hint=", true, time.Second, awaiting},
		"the known hint":                     {"wait=20s&hint=AWAITING_CONTACT", true, 20 * time.Second, awaiting},
		"a client that does not ask for it":  {"wait=20s", false, 20 * time.Second, awaiting},
		"a client that does not wait at all": {"wait=0s&hint=", true, 0, awaiting},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				id := b.storePending(time.Minute)
				if test.before {
					b.bindSender(id)
				}
				w := b.startPoll(b.t.Context(), keyAll, "id="+id+"&"+test.query)
				if !test.before {
					sleepFor(3 * time.Second)
					b.bindSender(id)
				}
				b.expectAnswer(w, test.took, 200, test.text)
			})
		})
	}
}

// TestWait_endsAtOnceWithTheStatus: the pause of a hint holds back no status.
func TestWait_endsAtOnceWithTheStatus(t *testing.T) {
	inBubble(t, func(b *bubble) {
		id := b.storePending(time.Minute)
		b.bindSender(id)
		query := "wait=20s&hint=&id=" + id
		w := b.startPoll(b.t.Context(), keyAll, query)
		sleepFor(400 * time.Millisecond)
		b.verifyRequest(id, "+4915123456789", verification.AssuranceUsual)
		b.expectAnswer(w, 400*time.Millisecond, 200, `"status":"VERIFIED"`)
		b.expectAnswer(b.startPoll(b.t.Context(), keyAll, query), 0, 200, `"status":"VERIFIED"`)
	})
}

// TestWait_aConstantHintIsNoHotLoop has 100 clients ask for news with a hint that they never update, as fast as they are answered.
func TestWait_aConstantHintIsNoHotLoop(t *testing.T) {
	const clients, seconds, othersPerSecond = 100, 30, 20
	for name, test := range map[string]struct {
		perKey   verification.Rate
		otherKey string
	}{
		"beside calls with the same key": {verification.Rate{Requests: 600, Period: time.Minute}, keyAll},
		"at the least rate of a key":     {verification.Rate{Requests: 1, Period: time.Hour}, keyStatus},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.changeSettings(func(s *settings.Settings) { s.Limits.PerKey = test.perKey })
				id := b.storePending(5 * time.Minute)
				b.bindSender(id)
				before := b.store.calls.Load()
				var all sync.WaitGroup
				for range clients {
					all.Go(func() {
						for range seconds {
							b.expectAnswer(b.startPoll(b.t.Context(), keyAll, "wait=20s&hint=&id="+id), hintPause, http.StatusOK, "AWAITING_CONTACT")
						}
					})
				}
				all.Go(func() {
					for range seconds * othersPerSecond {
						b.expectAnswer(b.startPoll(b.t.Context(), test.otherKey, "id="+id), 0, http.StatusOK, "AWAITING_CONTACT")
						sleepFor(time.Second / othersPerSecond)
					}
				})
				all.Wait()
				reads := float64(b.store.calls.Load()-before) / time.Since(b.start).Seconds()
				b.g.Expect(reads).To(BeNumerically("<=", clients+othersPerSecond), fmt.Sprintf("reads a second of %d such clients, and %d others", clients, othersPerSecond))
				t.Logf("%.0f reads a second of %d such clients, and %d of others", reads-othersPerSecond, clients, othersPerSecond)
			})
		})
	}
}
