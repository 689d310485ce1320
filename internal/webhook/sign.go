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

// The headers of an event, in the canonical form of http.Header.
const (
	headerSignature          = "X-Webhook-Signature"
	headerStandardID         = "Webhook-Id"
	headerStandardTimestamp  = "Webhook-Timestamp"
	headerStandardSignatures = "Webhook-Signature"
)

// secret holds the methods of settings.Secret that signing needs.
type secret interface {
	Current() []byte
	Accepted(now time.Time) [][]byte
}

// setEventHeaders sets the headers of every event: webhook-id, the same on each attempt, and webhook-timestamp, the
// time of this attempt. It returns the latter.
func setEventHeaders(h http.Header, e Event, at time.Time) string {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	h[headerStandardID] = []string{e.id}
	h[headerStandardTimestamp] = []string{timestamp}
	return timestamp
}

// signEvent sets all headers of a signed event. secrets[0] is the current secret; see activeSecrets.
//
// x-webhook-signature is the lower-case hex HMAC-SHA256 of the raw body with the current secret's literal value as key.
// docs/webhooks.md shows how a receiver checks it, and test/docs runs that.
//
// webhook-signature follows Standard Webhooks, with one signature per secret; see settings.WebhookKey.
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

// activeSecrets returns the values to sign with at now, without duplicates, so that a rotation has an overlap:
//   - the current secret, first;
//   - the previous one, while the project declares it;
//   - values that either had until less than settings.Overlap ago, because a value that is replaced in place cannot
//     change at all receivers at the same time.
//
// It returns nil if the current one cannot be read, even if others can.
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

// containsValue needs no constant time: it only compares our own values with each other.
func containsValue(values [][]byte, v []byte) bool {
	for _, other := range values {
		if bytes.Equal(v, other) {
			return true
		}
	}
	return false
}

// standardKey returns the value itself for a previous secret that is malformed: settings accepts one, because it may be
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
