package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiverName is what faults call the receiver.
const receiverName = "receiver"

// receiver is a client backend that takes events and shows them.
type receiver struct {
	secret func() []byte
	hub    *hub

	mu       sync.Mutex
	seq      int64
	received []received
	seen     []string // webhook-ids that were taken
}

// received is an event as it came.
type received struct {
	Seq     int64             `json:"seq"`
	At      time.Time         `json:"at"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// Signature is what x-webhook-signature is worth, StandardSignature the same of Standard Webhooks.
	Signature         verdict `json:"signature"`
	StandardSignature verdict `json:"standardSignature"`
	// Duplicate is true if an event with that webhook-id was taken before.
	Duplicate bool `json:"duplicate"`
	// Status is what was answered.
	Status int `json:"status"`
}

// verdict is what a signature is worth.
type verdict string

const (
	valid   verdict = "valid"
	invalid verdict = "invalid"
	missing verdict = "missing"
	// unknown is a signature that cannot be checked: the receiver has no secret.
	unknown verdict = "unknown"
)

func newReceiver(secret func() []byte, h *hub) *receiver {
	if secret == nil {
		secret = func() []byte { return nil }
	}
	return &receiver{secret: secret, hub: h}
}

func (v *receiver) registerRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /receiver", v.takeEvent)
	mux.HandleFunc("GET /receiver/deliveries", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]any{"deliveries": v.listReceived()})
	})
	mux.HandleFunc("DELETE /receiver/deliveries", func(w http.ResponseWriter, _ *http.Request) {
		v.mu.Lock()
		v.received, v.seen = nil, nil
		v.mu.Unlock()
		answerNoContent(w)
	})
}

func (v *receiver) listReceived() []received {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]received{}, v.received...)
}

// takeEvent judges an event and answers as a good receiver does: 401 to one that is not authentic.
func (v *receiver) takeEvent(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEventBytes))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	secret := v.secret()
	d := received{
		Body: string(body), Headers: map[string]string{}, Status: http.StatusNoContent,
		Signature: judgeSignature(secret, r.Header, body), StandardSignature: judgeStandard(secret, r.Header, body),
	}
	for name, values := range r.Header {
		d.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if len(secret) > 0 && (d.Signature != valid || d.StandardSignature != valid) {
		d.Status = http.StatusUnauthorized
	}
	v.hub.mu.Lock()
	if f := v.hub.faultFor(receiverName, ""); f != nil {
		d.Status = f.Status
	}
	v.hub.mu.Unlock()
	v.keepEvent(d, r.Header.Get(standardwebhooks.HeaderWebhookID))
	v.hub.mu.Lock()
	v.hub.publish(event{Type: "received", Status: d.Status})
	v.hub.mu.Unlock()
	w.WriteHeader(d.Status)
}

func (v *receiver) keepEvent(d received, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seq++
	d.Seq, d.At = v.seq, v.hub.clock.Now().UTC()
	d.Duplicate = id != "" && slices.Contains(v.seen, id)
	if !d.Duplicate && d.Status == http.StatusNoContent {
		v.seen = appendBounded(v.seen, id, maxSeen)
	}
	v.received = appendBounded(v.received, d, maxReceived)
}

// judgeSignature checks x-webhook-signature: the hex HMAC-SHA256 of the body.
func judgeSignature(secret []byte, h http.Header, body []byte) verdict {
	presented := h.Get("X-Webhook-Signature")
	switch {
	case presented == "":
		return missing
	case len(secret) == 0:
		return unknown
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	if !hmac.Equal([]byte(presented), []byte(hex.EncodeToString(mac.Sum(nil)))) {
		return invalid
	}
	return valid
}

// judgeStandard checks the headers of Standard Webhooks by their own library.
func judgeStandard(secret []byte, h http.Header, body []byte) verdict {
	switch {
	case h.Get(standardwebhooks.HeaderWebhookSignature) == "":
		return missing
	case len(secret) == 0:
		return unknown
	}
	var hook *standardwebhooks.Webhook
	err := errors.New("no standard secret")
	if strings.HasPrefix(string(secret), "whsec_") {
		hook, err = standardwebhooks.NewWebhook(string(secret))
	}
	if err != nil {
		if hook, err = standardwebhooks.NewWebhookRaw(secret); err != nil {
			return unknown
		}
	}
	if hook.Verify(body, h) != nil {
		return invalid
	}
	return valid
}
