package floor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/ports"
)

// TestRun walks through a verification: what is compared with PhoneProof has to do the same.
func TestRun(t *testing.T) {
	g := NewWithT(t)
	database, err := pgserver.Start(t.Context(), pgserver.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = database.Stop() })
	replies, events := startReceiver(t), startReceiver(t)
	reserved, err := ports.Reserve()
	g.Expect(err).NotTo(HaveOccurred())
	o := Options{
		Address: reserved.Address(), Database: database.URI("postgres"), Key: "key", AppSecret: "app", WebhookSecret: "webhook",
		Graph: replies.URL, Receiver: events.URL,
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	do := func(method, path string, header http.Header, body string) (status int, answer []byte, err error) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+o.Address+path, bytes.NewBufferString(body))
		g.Expect(err).NotTo(HaveOccurred())
		request.Header = header
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, nil, err
		}
		defer response.Body.Close()
		answer, err = io.ReadAll(response.Body)
		return response.StatusCode, answer, err
	}
	key := http.Header{"Authorization": {"Bearer key"}}
	const call = `{"phoneNumber":"+4915112345678","method":"WHATSAPP"}`
	var begun initAnswer
	g.Eventually(func() error {
		status, answer, err := do(http.MethodPost, "/api/verify/init", key, call)
		if err == nil {
			g.Expect(status).To(Equal(http.StatusOK), string(answer))
			g.Expect(json.Unmarshal(answer, &begun)).To(Succeed())
		}
		return err
	}, time.Minute).Should(Succeed(), "it listens")
	status, _, err := do(http.MethodPost, "/api/verify/init", http.Header{"Authorization": {"Bearer other"}}, call)
	g.Expect(status, err).To(Equal(http.StatusBadRequest))
	expectStatus := func(want string) {
		_, answer, err := do(http.MethodGet, "/api/verify/status?id="+begun.RequestID, key, "")
		g.Expect(answer, err).To(ContainSubstring(`"status":"` + want + `"`))
	}
	send := func(from, secret string) int {
		body := `{"entry":[{"changes":[{"value":{"messages":[{"from":"` + from + `","text":{"body":"` + begun.ExpectedText + `"}}]}}]}]}`
		status, _, err := do(http.MethodPost, "/hooks/whatsapp", http.Header{"X-Hub-Signature-256": {"sha256=" + signBody(secret, []byte(body))}}, body)
		g.Expect(err).NotTo(HaveOccurred())
		return status
	}
	g.Expect(send("4915112345678", "another")).To(Equal(http.StatusUnauthorized))
	g.Expect(send("4915112345679", "app")).To(Equal(http.StatusOK))
	expectStatus("PENDING")
	g.Expect(send("4915112345678", "app")).To(Equal(http.StatusOK))
	expectStatus("VERIFIED")
	g.Eventually(events.bodies, time.Minute).Should(Receive(And(ContainSubstring(begun.RequestID), ContainSubstring("verification.success"))))
	g.Eventually(replies.bodies, time.Minute).Should(Receive(ContainSubstring("Your number is verified")))
	status, _, err = do(http.MethodGet, "/api/verify/status?id=other", key, "")
	g.Expect(status, err).To(Equal(http.StatusNotFound))
	stop()
	g.Eventually(ended, time.Minute).Should(Receive(BeNil()))
}

// receiver keeps what was posted to it.
type receiver struct {
	*httptest.Server

	bodies chan string
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{bodies: make(chan string, 10)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, call *http.Request) {
		body, err := io.ReadAll(call.Body)
		if err == nil {
			r.bodies <- string(body)
		}
	}))
	t.Cleanup(r.Close)
	return r
}
