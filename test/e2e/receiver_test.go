//go:build e2e

package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"k8s.io/apimachinery/pkg/util/sets"
)

// rotatingReceiver is a receiver that follows docs/webhooks.md: of webhook-signature it knows one secret at a time, and of
// x-webhook-signature both during a rotation.
type rotatingReceiver struct {
	mu      sync.Mutex
	secrets [2]string        // the former and the new one, which is empty before the rotation
	held    int              // the one that webhook-signature is checked with
	taken   map[string]int   // the number of events of each request
	signed  map[string]int   // and by the secrets of their signatures
	known   sets.Set[string] // the webhook-ids that came
	again   int              // how many came again
	refused []string
}

// openReceiver has the project's events sent to a new receiver, which holds the first secret.
func (s *shop) openReceiver(ctx context.Context) *rotatingReceiver {
	GinkgoHelper()
	r := &rotatingReceiver{secrets: [2]string{firstSecret}, taken: map[string]int{}, signed: map[string]int{}, known: sets.New[string]()}
	host, _ := findReachable(ctx)
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: r}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	applyFile(ctx, "receiver.yaml", map[string]string{"HOST": host, "PORT": port})
	patchProject(ctx, s.namespace, `{"spec":{"webhook":{"url":"http://receiver.shop.svc:8090"}}}`)
	Eventually(func() bool { // the pods notice within a second
		probe := s.initRequest(ctx, "WHATSAPP")
		s.sendMessage(ctx, probe)
		return waitFor(ctx, func() bool {
			taken, _ := r.readLedger()
			return taken[probe.ID] > 0
		}, 5*time.Second)
	}).WithContext(ctx).Should(BeTrue())
	return r
}

// ServeHTTP takes an event if its signatures hold.
func (r *rotatingReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender ended in between: nothing was received
	}
	var event struct {
		RequestID string `json:"requestId"`
	}
	err = json.Unmarshal(body, &event)
	r.mu.Lock()
	defer r.mu.Unlock()
	var by []string
	holds, holdsPlain := false, false
	for i, name := range []string{"former", "new"} {
		if isSigned(request.Header, body, r.secrets[i]) {
			by, holds = append(by, name), holds || i == r.held
		}
		if mac := hmac.New(sha256.New, []byte(r.secrets[i])); r.secrets[i] != "" {
			mac.Write(body)
			if hex.EncodeToString(mac.Sum(nil)) == request.Header.Get("X-Webhook-Signature") {
				by, holdsPlain = append(by, "x-"+name), true
			}
		}
	}
	signed := strings.Join(by, ", ")
	if err != nil || !holds || !holdsPlain {
		r.refused = append(r.refused, fmt.Sprintf("%s, signed by %s, with secret %d held: %v", event.RequestID, signed, r.held, err))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	id := request.Header.Get("Webhook-Id")
	if r.known.Has(id) {
		r.again++ // the store of a busy machine had no time to record that it was sent
		return
	}
	r.known.Insert(id)
	r.taken[event.RequestID]++
	r.signed[signed]++
}

// isSigned reports whether webhook-signature has one by a secret.
func isSigned(header http.Header, body []byte, secret string) bool {
	hook, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if strings.HasPrefix(secret, "whsec_") {
		hook, err = standardwebhooks.NewWebhook(secret)
	}
	return err == nil && secret != "" && hook.Verify(body, header) == nil
}

// learn has x-webhook-signature accepted by the new secret, too.
func (r *rotatingReceiver) learn(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[1] = secret
}

// move has webhook-signature accepted by the new secret alone.
func (r *rotatingReceiver) move() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = 1
}

// readLedger returns how many events of each request were taken, and what was refused.
func (r *rotatingReceiver) readLedger() (taken map[string]int, refused []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.taken), slices.Clone(r.refused)
}

// expectOnce waits for the events of requests, and checks that none was refused and each request had one.
func (r *rotatingReceiver) expectOnce(ctx context.Context, ids []string) {
	GinkgoHelper()
	_, refused := r.readLedger()
	Expect(refused).To(BeEmpty())
	Eventually(func() []string {
		taken, _ := r.readLedger()
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return taken[id] > 0 })
	}).WithContext(ctx).Should(BeEmpty(), "requests without an event")
	taken, refused := r.readLedger()
	Expect(refused).To(BeEmpty())
	Expect(taken).To(HaveEach(1))
	AddReportEntry("events that came again, which receivers drop", r.again)
	AddReportEntry("events during a rotation, by the secrets of their signatures", fmt.Sprint(r.signed))
}
