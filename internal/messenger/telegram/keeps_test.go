package telegram

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// afterOne runs a poller that has done one update, and has the poll after it answered once as that golden.
func afterOne(t *testing.T, answer string, meanwhile func(*polling), want int64) {
	t.Helper()
	bubble(t, PollerOptions{}, func(p *polling) {
		p.initiate("golden")
		p.api.arrive(10, p.update(10, user, "/start "+goldenCode))
		failed := false
		p.api.failing(func(method string, body []byte) string {
			if method != methodGetUpdates || failed || !bytes.Contains(body, []byte(`"offset":11`)) {
				return ""
			}
			failed = true
			meanwhile(p)
			return answer
		})
		p.start()
		p.pass(2 * maxBackoff)
		offsets := p.asked()
		p.Expect(len(offsets)).To(BeNumerically(">", 2))
		p.Expect(offsets[:3]).To(Equal([]int64{0, 11, want}))
	})
}

func TestPoll_offsetAfterAFailure(t *testing.T) {
	afterOne(t, "error_500", func(*polling) {}, 11)
}

// Another reader of the updates may meanwhile have confirmed some, and an offset that is not asked for confirms nothing.
func TestPoll_offsetAfterAConflict(t *testing.T) {
	afterOne(t, "error_409_poller", func(*polling) {}, 0)
}

// The updates of each bot have their own ids: an offset of another bot's would confirm what was never read.
func TestPoll_offsetAfterAnotherToken(t *testing.T) {
	afterOne(t, "error_500", func(p *polling) {
		renewed := *p.settings
		renewed.Telegram = account("5022:token_of_another_bot_0123456789abcdef")
		renewed.Telegram.Polling = true
		p.replaced.Store(&renewed)
	}, 0)
}

// hanging is a store that answers nothing.
type hanging struct{ verification.Store }

func (hanging) Update(ctx context.Context, _ string, _ func(*verification.Request, time.Time) error) (verification.Request, error) {
	<-ctx.Done()
	return verification.Request{}, ctx.Err()
}

func TestHook_doesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true)
		w.initiate("golden")
		project := verification.NewCodeSpace(projectName)
		w.registry = prometheus.NewRegistry()
		c := w.open(verification.NewService(project, hanging{w.backend.Open(projectName)}), clock.RealClock{})
		began := time.Now()
		answer := w.postTo(c, w.update(1, user, "/start "+goldenCode), WebhookSecret([]byte(botToken), projectName))
		w.Expect(answer.Code).To(Equal(http.StatusServiceUnavailable))
		w.Expect(time.Since(began)).To(Equal(3 * time.Second))
	})
}

// The limit is tested by its number: by itself it may become anything.
func TestHook_bodyOfAMebibyte(t *testing.T) {
	w := newWorld(t)
	for length, looked := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		before := w.outcomes()[messenger.OutcomeUnknownCode]
		update := w.update(1, user, "/start "+goldenCode)
		w.Expect(w.post(append(update, bytes.Repeat([]byte(" "), length-len(update))...)).Code).To(Equal(http.StatusOK))
		w.Expect(w.outcomes()[messenger.OutcomeUnknownCode] > before).To(Equal(looked), "%d bytes", length)
	}
}

func TestBatch_endsAfterFiveFailures(t *testing.T) {
	w, b := newWorld(t), &batch{}
	for range 5 {
		w.Expect(b.hasFailed()).To(BeFalse(), "one chat must not hold up all others")
		b.holdUpdate(errors.New("not stored"))
	}
	w.Expect(b.hasFailed()).To(BeTrue(), "that many are a store that is down")
}

func TestHook_makesTheEventDue(t *testing.T) {
	for name, webhook := range map[string]*settings.Webhook{"with a webhook": {URL: "https://shop.example/hook", Events: verification.NewEventKinds(verification.EventSuccess)}, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings.Webhook = webhook
			id := w.initiate("golden").Request.ID
			w.accept(w.update(1, user, "/start "+goldenCode))
			w.Expect(w.accept(w.contactUpdate(2, user, claimed))).To(Equal(messenger.OutcomeVerified))
			r, err := w.service.Status(t.Context(), id)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(r.Delivery.Wanted()).To(Equal(webhook != nil))
		})
	}
}
