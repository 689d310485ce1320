// Package sink is the receiver of a chaos run's events: a client backend that checks and records each event, and then
// answers, well or badly as its seed decides.
//
// The invariant: an event is on disk before a byte of its answer leaves.
package sink

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/system"
)

// maxBody is larger than any event.
const maxBody = 64 << 10

// Sink is a running receiver.
type Sink struct {
	*system.Server

	seed   uint64
	sender func(address string) string
	to     Ledgers

	mu      sync.Mutex
	secrets []string
	failed  map[string]bool
	err     error
	calm    bool
}

// Ledgers are the ledgers of deliveries and of the answers to them.
type Ledgers struct{ Deliveries, Answers *ledger.Writer }

// Start runs a receiver that trusts no secret yet. sender returns the process that an event comes from, by its address.
// The caller must Close it.
func Start(ctx context.Context, seed uint64, sender func(address string) string, to Ledgers) (*Sink, error) {
	s := &Sink{seed: seed, sender: sender, to: to, failed: map[string]bool{}}
	var err error
	s.Server, err = system.Serve(ctx, s)
	return s, err
}

// Trust adds a secret that events may be signed with, as a receiver does before the sender's secret is rotated.
func (s *Sink) Trust(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, secret)
}

// Calm makes the receiver take every event from now on.
func (s *Sink) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm = true
}

// Close stops the receiver. It returns the errors of recording events.
func (s *Sink) Close() error {
	err := s.Server.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.err)
}

// ServeHTTP receives an event.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the sender ended half-way: nothing was received
	}
	var event struct {
		RequestID string    `json:"requestId"`
		Phone     string    `json:"phoneNumber"`
		Actual    string    `json:"actualPhoneNumber"`
		Method    string    `json:"method"`
		Assurance string    `json:"assurance"`
		Timestamp time.Time `json:"timestamp"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	sum := sha256.Sum256(body)
	answer := s.chooseAnswer(event.RequestID)
	d := ledger.Delivery{
		Facts: ledger.Facts{
			Phone: event.Phone, Actual: event.Actual, Method: event.Method, Assurance: event.Assurance, Verified: event.Timestamp,
		},
		At: time.Now(), Process: s.sender(r.RemoteAddr),
		Webhook: r.Header.Get("Webhook-Id"), Request: event.RequestID, Stamp: r.Header.Get("Webhook-Timestamp"),
		Valid: s.hasValidSignatures(r.Header, body), Body: hex.EncodeToString(sum[:16]), Answer: answer,
	}
	if err = s.to.Deliveries.Append(d); err == nil {
		writeAnswer(w, r, answer)
		if r.Context().Err() == nil {
			err = s.to.Answers.Note(ledger.Given{Webhook: d.Webhook, Came: d.At, Answered: time.Now()})
		}
	}
	if err != nil {
		s.mu.Lock()
		s.err = errors.Join(s.err, err)
		s.mu.Unlock()
	}
}

// chooseAnswer returns the answer to a request's event: random the first time, then success, because the third attempt
// of the schedule is minutes away.
func (s *Sink) chooseAnswer(id string) ledger.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := Choose(s.seed, id)
	switch {
	case answer == ledger.Gone: // 410 is final
		return answer
	case s.calm, s.failed[id]:
		return ledger.Takes
	case answer != ledger.Takes:
		s.failed[id] = true
	}
	return answer
}

// hasValidSignatures checks both signatures as the documentation describes.
func (s *Sink) hasValidSignatures(h http.Header, body []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	simple, standard := false, false
	for _, secret := range s.secrets {
		simple = simple || hmac.Equal([]byte(h.Get("X-Webhook-Signature")), []byte(hex.EncodeToString(computeHMAC(secret, string(body)))))
		want := "v1," + base64.StdEncoding.EncodeToString(
			computeHMAC(secret, h.Get("Webhook-Id")+"."+h.Get("Webhook-Timestamp")+"."+string(body)))
		for signature := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
			standard = standard || hmac.Equal([]byte(signature), []byte(want))
		}
	}
	return simple && standard
}

func computeHMAC(secret, message string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(message))
	return mac.Sum(nil)
}
