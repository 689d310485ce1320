package system_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/system"
)

// patience allows for a loaded machine.
const patience = 2 * time.Minute

// startReceivers runs a client's backend, which sends the events it receives to the channel, and a Bot API that accepts all calls.
func startReceivers(t *testing.T, events chan<- http.Header) (webhookURL, telegram string) {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Header.Set("Body", string(body))
		events <- r.Header
	}))
	t.Cleanup(backend.Close)
	bots := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ok":true,"result":{}}`)
	}))
	t.Cleanup(bots.Close)
	return backend.URL + "/hook", bots.URL
}

func TestSystem(t *testing.T) {
	program, err := system.Build(t.Context(), t.TempDir(), false)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, store := range []system.Store{system.Memory, system.Kubernetes, system.PostgreSQL} {
		t.Run(string(store), func(t *testing.T) {
			g := NewWithT(t)
			events := make(chan http.Header, 10)
			o := system.Options{Store: store, Program: program, Flags: []string{"--log-level=debug"}}
			o.WebhookURL, o.Telegram = startReceivers(t, events)
			s, err := system.Start(t.Context(), o)
			if errors.Is(err, pgserver.ErrNotInstalled) {
				t.Skip(err)
			}
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { NewWithT(t).Expect(s.Stop()).To(Succeed()) })

			verifyNumbers(t, s.Project, events)
			second, err := s.NewProject(t.Context(), "second", func(p *verifyv1.VerificationProject) { p.Spec.ProjectID = "second" })
			g.Expect(err).NotTo(HaveOccurred())
			verifyNumbers(t, second, events)
			g.Expect(s.Replicas()).To(HaveLen(2))
			changeProject(t, second)
			endReplicas(t, s)
		})
	}
}

// verifyNumbers starts a replica, and verifies a number through each messenger.
func verifyNumbers(t *testing.T, p *system.Project, events <-chan http.Header) {
	t.Helper()
	g := NewWithT(t)
	r, err := p.StartReplica()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.AwaitReady(t.Context())).To(Succeed())
	const number = "+4915112345678"
	for method, messages := range map[string][]func(text string) system.Message{
		"WHATSAPP": {
			func(text string) system.Message { return p.WhatsAppMessage(number, text, "1", time.Now()) },
		},
		"TELEGRAM": { // each is dated after the one before was handled
			func(text string) system.Message { return p.TelegramText(1, 9, text, time.Now()) },
			func(string) system.Message { return p.TelegramContact(2, 9, number, time.Now()) },
		},
	} {
		var begun system.Begun
		eventuallySucceeds(g, func() (err error) {
			begun, err = p.Begin(t.Context(), r, number, method, "")
			return err
		})
		status := func() (status string) {
			eventuallySucceeds(g, func() (err error) {
				status, err = p.Status(t.Context(), r, begun.ID)
				return err
			})
			return status
		}
		g.Expect(status()).To(Equal("PENDING"))
		for _, message := range messages {
			sent := message(begun.ExpectedText)
			eventuallySucceeds(g, func() error { return sent.Post(t.Context(), r) })
		}
		g.Expect(status()).To(Equal("VERIFIED"), method)
		var event http.Header
		g.Eventually(events).WithTimeout(patience).Should(Receive(&event))
		g.Expect(event.Get("Body")).To(And(ContainSubstring(begun.ID), ContainSubstring(method)))
		mac := hmac.New(sha256.New, []byte(p.WebhookSecret))
		mac.Write([]byte(event.Get("Body")))
		g.Expect(event.Get("X-Webhook-Signature")).To(Equal(hex.EncodeToString(mac.Sum(nil))))
	}
	_, err = p.Begin(t.Context(), r, "nonsense", "WHATSAPP", "")
	refused, ok := errors.AsType[*system.StatusError](err)
	g.Expect(ok).To(BeTrue(), "%v", err)
	g.Expect(refused.Status).To(Equal(http.StatusBadRequest))
	forged := p.WhatsAppMessage(number, "forged", "2", time.Now())
	forged.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
	g.Expect(forged.Post(t.Context(), r)).NotTo(Succeed())
}

// eventuallySucceeds retries while the answer is 503, as clients and platforms do, and fails on any other error.
func eventuallySucceeds(g *WithT, do func() error) {
	g.Eventually(func() error {
		err := do()
		if refused, ok := errors.AsType[*system.StatusError](err); err != nil && (!ok || refused.Status != http.StatusServiceUnavailable) {
			return StopTrying("request was refused").Wrap(err)
		}
		return err
	}).WithTimeout(patience).Should(Succeed())
}

// changeProject edits the project, and expects a running replica to pick the change up.
func changeProject(t *testing.T, p *system.Project) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(p.Change(t.Context(), func(o *verifyv1.VerificationProject) { o.Spec.DisplayName = "Another Shop" })).To(Succeed())
	r := p.Replicas()[0]
	g.Eventually(func() (string, error) {
		begun, err := p.Begin(t.Context(), r, "+4915112345678", "WHATSAPP", "")
		return begun.ExpectedText, err
	}).WithTimeout(patience).Should(ContainSubstring("Another Shop"))
}

// endReplicas stops replicas in every supported way.
func endReplicas(t *testing.T, s *system.System) {
	t.Helper()
	g := NewWithT(t)
	first, second := s.Replicas()[0], s.Replicas()[1]
	rss, err := first.RSS()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rss).To(BeNumerically(">", 1<<20))
	cpu, err := first.CPU()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cpu).To(BeNumerically(">", 0))

	g.Expect(first.Freeze()).To(Succeed())
	g.Expect(first.Running()).To(BeTrue())
	g.Expect(first.Thaw()).To(Succeed())
	g.Eventually(first.Ready).WithArguments(t.Context()).WithTimeout(patience).Should(BeTrue())
	g.Expect(first.Terminate()).To(Succeed())
	second.Kill()
	g.Expect(first.Running() || second.Running()).To(BeFalse())
	g.Expect(s.Replicas()).To(BeEmpty())
	g.Expect(second.Probe(t.Context(), "/livez")).To(BeZero())
}

func TestStart_refusesAnUnknownStore(t *testing.T) {
	_, err := system.Start(t.Context(), system.Options{Store: "etcd", Program: "unused"})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("unknown store")))
}
