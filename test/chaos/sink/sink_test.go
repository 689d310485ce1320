package sink_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/sink"
)

const (
	seed   = 3
	secret = "a secret of the webhook"
)

type world struct {
	Gomega

	*sink.Sink
	dir string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Gomega: NewWithT(t), dir: t.TempDir()}
	var to sink.Ledgers
	var err error
	for name, ledgers := range map[string]**ledger.Writer{ledger.SinkFile: &to.Deliveries, ledger.AnswerFile: &to.Answers} {
		*ledgers, err = ledger.Create(filepath.Join(w.dir, name))
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Sink, err = sink.Start(t.Context(), seed, func(string) string { return "first-1" }, to)
	w.Expect(err).NotTo(HaveOccurred())
	w.Trust(secret)
	t.Cleanup(func() {
		g := NewWithT(t)
		g.Expect(w.Close()).To(Succeed())
		g.Expect(to.Deliveries.Close()).To(Succeed())
		g.Expect(to.Answers.Close()).To(Succeed())
	})
	return w
}

// idFor returns a request whose event is answered so at first.
func idFor(answer ledger.Answer) string {
	for n := 0; ; n++ {
		if id := fmt.Sprint("vr", n); sink.Choose(seed, id) == answer {
			return id
		}
	}
}

func mac(key, message string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(message))
	return h.Sum(nil)
}

// send posts a request's event, signed with a key, and returns the answer's status; 0 if none came.
func (w *world) send(ctx context.Context, id, key string) int {
	body := fmt.Sprintf(`{"event":"verification.success","requestId":%q,"phoneNumber":"+491","actualPhoneNumber":"+492",`+
		`"method":"WHATSAPP","assurance":"shared_contact","timestamp":"2026-01-02T03:04:05.678Z"}`, id)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.Address+"/hook", strings.NewReader(body))
	w.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Webhook-Id", "evt "+id)
	request.Header.Set("Webhook-Timestamp", "1")
	request.Header.Set("X-Webhook-Signature", hex.EncodeToString(mac(key, body)))
	request.Header.Set("Webhook-Signature", "v1,other v1,"+base64.StdEncoding.EncodeToString(mac(key, "evt "+id+".1."+body)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func (w *world) written() []ledger.Delivery {
	all, err := ledger.Read[ledger.Delivery](filepath.Join(w.dir, ledger.SinkFile))
	w.Expect(err).NotTo(HaveOccurred())
	return all
}

// answered are the ends of answers.
func (w *world) answered() []ledger.Given {
	all, err := ledger.Read[ledger.Given](filepath.Join(w.dir, ledger.AnswerFile))
	w.Expect(err).NotTo(HaveOccurred())
	return all
}

func TestSink_recordsWhenItAnswered(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.send(t.Context(), idFor(ledger.Takes), secret)).To(Equal(204))
	w.Eventually(w.answered).WithTimeout(30 * time.Second).Should(HaveLen(1))
	came, answered := w.written()[0], w.answered()[0]
	w.Expect(answered.Webhook).To(Equal(came.Webhook))
	w.Expect(answered.Came.Equal(came.At)).To(BeTrue())
	w.Expect(answered.Answered).To(BeTemporally(">=", came.At))
}

func TestChoose(t *testing.T) {
	drawn := map[ledger.Answer]bool{}
	for n := range 2000 {
		drawn[sink.Choose(seed, fmt.Sprint("vr", n))] = true
	}
	NewWithT(t).Expect(drawn).To(HaveLen(8), "each answer: the judge compares them with what was recorded")
}

func TestSink_checksSignatures(t *testing.T) {
	w := newWorld(t)
	id := idFor(ledger.Takes)
	w.Expect(w.send(t.Context(), id, "another secret")).To(Equal(204))
	w.Trust("another secret")
	w.send(t.Context(), id, "another secret")
	w.send(t.Context(), id, secret)
	w.Expect(w.written()).To(HaveExactElements(HaveField("Valid", false), HaveField("Valid", true), HaveField("Valid", true)))
}
