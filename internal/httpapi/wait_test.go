package httpapi

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/memory"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// bubble is an API in a synctest bubble, with its fake clock.
type bubble struct {
	*harness
	g      Gomega
	number phone.Number
	start  time.Time
}

// inBubble runs a test in a bubble: time passes only while all goroutines wait, so durations are exact.
func inBubble(t *testing.T, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := &harness{t: t}
		h.settings.Store(liveSettings())
		h.backend = memory.NewBackend(memory.Options{})
		h.store = &countingStore{Store: h.backend.Open(projectName)}
		h.service = verification.NewService(verification.NewCodeSpace(projectName), h.store)
		var err error
		h.api, err = New(Options{Settings: h.settings.Load, Service: h.service, Invite: newInvitation})
		g.Expect(err).NotTo(HaveOccurred())
		number, err := phone.Parse("+4915123456789")
		g.Expect(err).NotTo(HaveOccurred())
		test(&bubble{harness: h, g: g, number: number, start: time.Now()})
		synctest.Wait()
		holds := h.api.waits.holds
		g.Expect(holds.Acquire(holds.Most(), true)).NotTo(BeNil(), "all slots must be released")
		g.Expect(holds.Acquire(1, true)).To(BeNil(), "no slot may be released twice")
		g.Expect(h.api.waits.byKey).To(BeEmpty())
		g.Expect(h.api.waits.tests).To(BeZero())
		g.Expect(testutil.ToFloat64(h.api.metrics.waits)).To(BeZero())
	})
}

// storePending stores a pending request and returns its id.
func (b *bubble) storePending(ttl time.Duration) string {
	made, err := b.service.Initiate(b.t.Context(), verification.Initiation{Phone: b.number, Method: verification.WhatsApp, TTL: ttl})
	b.g.Expect(err).NotTo(HaveOccurred())
	return made.Request.ID
}

// storeTest stores a pending request of a test key and returns its id.
func (b *bubble) storeTest() string {
	number, err := phone.Parse("+12025550112")
	b.g.Expect(err).NotTo(HaveOccurred())
	made, err := b.service.Initiate(b.t.Context(), verification.Initiation{Phone: number, Method: verification.WhatsApp, TTL: time.Minute, Test: true})
	b.g.Expect(err).NotTo(HaveOccurred())
	return made.Request.ID
}

// heldPoll is a long poll in progress.
type heldPoll struct {
	recorder *httptest.ResponseRecorder
	took     time.Duration
	done     chan struct{}
}

// startPoll sends a read of the status, which is a long poll if the query has a wait.
func (b *bubble) startPoll(ctx context.Context, key, query string) *heldPoll {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, pathStatus+"?"+query, nil)
	r.Header.Set("Authorization", "Bearer "+key)
	w := &heldPoll{recorder: httptest.NewRecorder(), done: make(chan struct{})}
	start := time.Now()
	go func() {
		b.api.ServeHTTP(w.recorder, r)
		w.took = time.Since(start)
		close(w.done)
	}()
	return w
}

// expectAnswer waits for the end of a long poll, and checks its answer and its exact duration.
func (b *bubble) expectAnswer(w *heldPoll, took time.Duration, status int, text string) {
	b.t.Helper()
	<-w.done
	b.g.Expect(w.took).To(Equal(took))
	b.g.Expect(w.recorder.Code).To(Equal(status))
	b.g.Expect(w.recorder.Body.String()).To(ContainSubstring(text))
}

// isHeld reports whether a long poll has not been answered.
func (w *heldPoll) isHeld() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

func sleepFor(d time.Duration) { <-time.After(d) }

func TestWait_endsWithTheTime(t *testing.T) {
	inBubble(t, func(b *bubble) {
		w := b.startPoll(b.t.Context(), keyAll, "wait=20s&id="+b.storePending(time.Minute))
		b.expectAnswer(w, 20*time.Second, 200, `"status":"PENDING"`)
		b.g.Expect(b.store.calls.Load()).To(BeNumerically("==", 3), "create, one read before the wait and one after")
	})
}

func TestWait_endsWithTheVerification(t *testing.T) {
	inBubble(t, func(b *bubble) {
		id := b.storePending(time.Minute)
		w := b.startPoll(b.t.Context(), keyAll, "id="+id+"&wait=30s")
		sleepFor(7 * time.Second)
		b.g.Expect(testutil.ToFloat64(b.api.metrics.waits)).To(Equal(1.0))
		b.verifyRequest(id, "+4915123456789", verification.AssuranceUsual)
		b.expectAnswer(w, 7*time.Second, 200, `"status":"VERIFIED"`)

		// What is final waits for nothing, and so takes no place of a page.
		holds := b.api.waits.holds
		page := holds.Acquire(holds.Most(), true)
		b.expectAnswer(b.startPoll(b.t.Context(), keyAll, "id="+id+"&wait=30s"), 0, 200, `"status":"VERIFIED"`)
		b.expectAnswer(b.startPoll(b.t.Context(), keyAll, "wait=30s&id=vr"+strings.Repeat("a", 24)), 0, 404, "")
		b.g.Expect(page.Lost()).NotTo(BeClosed())
		page.Release()
		b.g.Expect(testutil.ToFloat64(b.api.metrics.requests.WithLabelValues(pathStatus+waitSuffix, "GET", "200"))).To(Equal(1.0))
	})
}

func TestWait_goesOnAfterAChangeThatLeavesItPending(t *testing.T) {
	inBubble(t, func(b *bubble) {
		id := b.storePending(time.Minute)
		w := b.startPoll(b.t.Context(), keyAll, "id="+id+"&wait=10s")
		sleepFor(3 * time.Second)
		_, err := b.store.Update(b.t.Context(), id, func(r *verification.Request, now time.Time) error {
			return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, "binding", now, 0)
		})
		b.g.Expect(err).NotTo(HaveOccurred())
		b.expectAnswer(w, 10*time.Second, 200, `"status":"PENDING"`)
	})
}

func TestWait_endsWhenTheRequestExpires(t *testing.T) {
	inBubble(t, func(b *bubble) {
		w := b.startPoll(b.t.Context(), keyAll, "wait=30s&id="+b.storePending(10*time.Second))
		b.expectAnswer(w, 10*time.Second+verification.ExpiryGrace, 200, `"status":"EXPIRED"`)
	})
}

func TestWait_checksTheKeyAgain(t *testing.T) {
	inBubble(t, func(b *bubble) {
		revoked := b.startPoll(b.t.Context(), keyAll, "wait=20s&id="+b.storePending(time.Minute))
		limited := b.startPoll(b.t.Context(), keyStatus, "wait=20s&id="+b.storePending(time.Minute))
		sleepFor(time.Second)
		b.changeSettings(func(s *settings.Settings) {
			s.Keys = settings.NewKeys(settings.Key{Name: "status", Hash: sha256.Sum256([]byte(keyStatus)), Scopes: settings.ScopeInit})
		})
		b.expectAnswer(revoked, 20*time.Second, 401, string(codeUnknownKey))
		b.expectAnswer(limited, 20*time.Second, 403, string(codeInsufficientScope))
	})
}

func TestWait_endsWhenTheServerDrains(t *testing.T) {
	inBubble(t, func(b *bubble) {
		drain := make(chan struct{})
		ctx := withDraining(b.t.Context(), drain)
		w := b.startPoll(ctx, keyAll, "wait=20s&id="+b.storePending(time.Minute))
		sleepFor(4 * time.Second)
		close(drain)
		b.expectAnswer(w, 4*time.Second, 200, `"status":"PENDING"`)
		b.expectAnswer(b.startPoll(ctx, keyAll, "wait=20s&id="+b.storePending(time.Minute)), 0, 200, `"status":"PENDING"`)
	})
}

func TestWait_endsWhenTheClientGoes(t *testing.T) {
	inBubble(t, func(b *bubble) {
		ctx, leave := context.WithCancel(b.t.Context())
		w := b.startPoll(ctx, keyAll, "wait=20s&id="+b.storePending(time.Minute))
		sleepFor(4 * time.Second)
		leave()
		b.expectAnswer(w, 4*time.Second, statusClientGone, string(codeClientGone))
	})
}

func TestWait_storeFails(t *testing.T) {
	inBubble(t, func(b *bubble) {
		w := b.startPoll(b.t.Context(), keyAll, "wait=20s&id="+b.storePending(time.Minute))
		sleepFor(4 * time.Second)
		b.backend.Fail(context.DeadlineExceeded)
		b.expectAnswer(w, 20*time.Second, 503, string(verification.CodeStoreUnavailable))
	})
}

func TestStatus_storeTimeout(t *testing.T) {
	inBubble(t, func(b *bubble) {
		id := b.storePending(time.Minute)
		hang := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		b.store.before.Store(&hang)
		w := b.startPoll(b.t.Context(), keyAll, "id="+id)
		b.expectAnswer(w, storeTimeout, 503, string(verification.CodeStoreUnavailable))
		b.g.Expect(w.recorder.Header().Get("Retry-After")).To(Equal("2"))
	})
}

// TestWait_isShared has each key of a server ask for more long polls than the server may hold.
func TestWait_isShared(t *testing.T) {
	for _, test := range []struct{ most, perKey, ofTests int }{{8, 2, 1}, {64, 16, 8}, {1000, 100, 125}} {
		inBubble(t, func(b *bubble) {
			b.api.waits.holds = boundedhttp.NewHoldLimiter(int64(2*test.most) * boundedhttp.ConnectionCost)
			var keys []settings.Key
			for i := range test.most/test.perKey + 3 {
				value := strings.Repeat(string(rune('a'+i)), 32)
				keys = append(keys, settings.Key{Name: value, Hash: sha256.Sum256([]byte(value)), Scopes: settings.ScopeStatus, Test: i < 2})
			}
			b.changeSettings(func(s *settings.Settings) { s.Keys = settings.NewKeys(keys...) })
			id := b.storePending(time.Minute)
			testID := b.storeTest()
			ask := func(key settings.Key, id string) (held []*heldPoll) {
				for range max(test.perKey, test.ofTests) + 1 {
					w := b.startPoll(b.t.Context(), key.Name, "wait=20s&id="+id)
					if synctest.Wait(); w.isHeld() {
						held = append(held, w)
						continue
					}
					b.expectAnswer(w, 0, 200, `"status":"PENDING"`)
				}
				return held
			}
			ofTests := append(ask(keys[0], testID), ask(keys[1], testID)...)
			b.g.Expect(ofTests).To(HaveLen(test.ofTests), "all test keys together")
			live := 0
			for _, key := range keys[2 : len(keys)-1] {
				held := ask(key, id)
				b.g.Expect(held).To(HaveLen(min(test.perKey, test.most-live)))
				live += len(held)
			}
			b.g.Expect(live).To(Equal(test.most))
			for _, w := range ofTests {
				b.expectAnswer(w, 0, 200, `"status":"PENDING"`) // they have made room
			}
			b.g.Expect(ask(keys[len(keys)-1], id)).To(BeEmpty(), "there is no more room")
			b.verifyRequest(id, "+4915123456789", verification.AssuranceUsual)
		})
	}
}
