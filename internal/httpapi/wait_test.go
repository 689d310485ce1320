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
		g.Expect(h.api.waits.total).To(BeZero(), "all slots must be released")
		g.Expect(h.api.waits.byKey).To(BeEmpty())
		g.Expect(testutil.ToFloat64(h.api.metrics.waits)).To(BeZero())
	})
}

// storePending stores a pending request and returns its id.
func (b *bubble) storePending(ttl time.Duration) string {
	made, err := b.service.Initiate(b.t.Context(), verification.Initiation{Phone: b.number, Method: verification.WhatsApp, TTL: ttl})
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
		b.expectAnswer(b.startPoll(b.t.Context(), keyAll, "id="+id+"&wait=30s"), 0, 200, `"status":"VERIFIED"`)
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

func TestWait_atMostPerKeyAndInTotal(t *testing.T) {
	inBubble(t, func(b *bubble) {
		keys := []settings.Key{}
		for i := range maxWaits/maxWaitsPerKey + 1 {
			value := strings.Repeat(string(rune('a'+i)), 32)
			keys = append(keys, settings.Key{Name: value, Hash: sha256.Sum256([]byte(value)), Scopes: settings.ScopeStatus})
		}
		b.changeSettings(func(s *settings.Settings) { s.Keys = settings.NewKeys(keys...) })
		id := b.storePending(time.Minute)
		var all []*heldPoll
		for _, key := range keys[:len(keys)-1] {
			for range maxWaitsPerKey {
				all = append(all, b.startPoll(b.t.Context(), key.Name, "wait=20s&id="+id))
			}
			synctest.Wait()
			b.expectAnswer(b.startPoll(b.t.Context(), key.Name, "wait=20s&id="+id), 0, 200, `"status":"PENDING"`)
		}
		b.g.Expect(all).To(HaveLen(maxWaits))
		b.expectAnswer(b.startPoll(b.t.Context(), keys[len(keys)-1].Name, "wait=20s&id="+id), 0, 200, `"status":"PENDING"`)
		b.verifyRequest(id, "+4915123456789", verification.AssuranceUsual)
		for _, w := range all {
			b.expectAnswer(w, 0, 200, `"status":"VERIFIED"`)
		}
	})
}
