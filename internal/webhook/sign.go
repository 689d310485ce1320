package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// The headers of an event, in the form that http.Header keeps names.
const (
	headerSignature          = "X-Webhook-Signature"
	headerStandardID         = "Webhook-Id"
	headerStandardTimestamp  = "Webhook-Timestamp"
	headerStandardSignatures = "Webhook-Signature"
)

// secret is what sign needs of a settings.Secret.
type secret interface {
	Current() []byte
	Accepted(now time.Time) [][]byte
}

// setEventHeaders sets the headers that every event carries: webhook-id, the same on each attempt, and webhook-timestamp, the
// attempt's own. It returns the latter.
func setEventHeaders(h http.Header, e Event, at time.Time) string {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	h[headerStandardID] = []string{e.id}
	h[headerStandardTimestamp] = []string{timestamp}
	return timestamp
}

// signEvent identifies an event and sets its signatures. The first of the secrets is the current one; see activeSecrets.
//
// x-webhook-signature is the lower-case hex HMAC-SHA256 of the raw body with the current secret's literal value as key.
// The README shows how a receiver checks it, and test/docs runs that.
//
// webhook-signature is that of Standard Webhooks, with one signature per secret; see settings.WebhookKey.
func signEvent(h http.Header, e Event, secrets [][]byte, at time.Time) {
	timestamp := setEventHeaders(h, e, at)
	body := e.body.Reveal()
	h[headerSignature] = []string{hex.EncodeToString(computeMAC(secrets[0], body))}

	prefix := []byte(e.id + "." + timestamp + ".")
	var signatures strings.Builder
	for i, s := range secrets {
		if i > 0 {
			signatures.WriteByte(' ')
		}
		signatures.WriteString("v1,")
		signatures.WriteString(base64.StdEncoding.EncodeToString(computeMAC(standardKey(s), prefix, body)))
	}
	h[headerStandardSignatures] = []string{signatures.String()}
}

// activeSecrets returns the values to sign with at now, none twice, so that a rotation has an overlap:
//   - the current secret, first;
//   - the previous one, while the project declares it;
//   - values that either had until less than settings.Overlap ago, because whoever replaces a value in place cannot do so
//     at all receivers in the same second.
//
// There are none if the current one cannot be read, whatever else can.
func activeSecrets(current, previous secret, now time.Time) [][]byte {
	former := current.Accepted(now)
	if len(former) == 0 {
		return nil
	}
	active := append([][]byte{current.Current()}, previous.Accepted(now)...)
	active = append(active, former[1:]...)
	return removeDuplicates(active)
}

func removeDuplicates(values [][]byte) [][]byte {
	kept := values[:0]
	for _, v := range values {
		if len(kept) < maxSignatures && !containsValue(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// containsValue compares our own values with each other, so its time tells nobody anything.
func containsValue(values [][]byte, v []byte) bool {
	for _, other := range values {
		if bytes.Equal(v, other) {
			return true
		}
	}
	return false
}

// standardKey falls back to the value itself for a previous secret that is malformed: settings takes one, because it may be
// older than the rule for secrets.
func standardKey(value []byte) []byte {
	key, err := settings.WebhookKey(value)
	if err != nil || len(key) == 0 {
		return value
	}
	return key
}

func computeMAC(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}
