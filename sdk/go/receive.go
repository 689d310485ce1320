package phoneproof

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	defaultTolerance = 5 * time.Minute
	maxEvent         = 64 << 10 // bytes
)

// Kinds of events. Those of test keys begin with "test.", and later versions may add kinds.
const (
	EventSuccess   = "verification.success"
	EventExpired   = "verification.expired"
	EventDeclined  = "verification.declined"
	EventAttention = "verification.attention"
)

// Event is what a webhook brings. Fields that Status has, too, mean the same.
type Event struct {
	// ID is the header webhook-id, which is the same whenever the event is sent. With BodySignature it is the SHA-256 of the body in hex.
	ID string `json:"-"`
	// Kind is EventSuccess, EventExpired, EventDeclined, EventAttention or another one, with "test." before it for events of test keys.
	Kind              string `json:"event"`
	PhoneNumber       string `json:"phoneNumber"`
	ActualPhoneNumber string `json:"actualPhoneNumber"`
	RequestID         string `json:"requestId"`
	// ProjectID is the project as its owner named it.
	ProjectID string `json:"projectId"`
	Method    string `json:"method"`
	// Timestamp is when it happened.
	Timestamp time.Time         `json:"timestamp"`
	Assurance string            `json:"assurance"`
	Via       string            `json:"via"`
	Hint      string            `json:"hint"`
	Test      bool              `json:"test"`
	Reference string            `json:"reference"`
	Metadata  map[string]string `json:"metadata"`
	// Raw is the body as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads the body of a webhook.
func (e *Event) UnmarshalJSON(content []byte) error {
	type plain Event
	if err := unmarshal(content, (*plain)(e), &e.Raw); err != nil {
		return err
	}
	return require(e.Kind)
}

// Receiver checks events. Secrets are as they stand in the project: whsec_ and base64, or any other text as it is. During a rotation both
// are listed.
type Receiver struct {
	// Secrets sign the events of verifications, and TestSecrets those of test keys, whose kinds begin with "test.". No secret may be
	// in both.
	Secrets, TestSecrets []string
	// Tolerance is by how much the time of an event may differ from the clock, both ways; 0 for five minutes.
	Tolerance time.Duration
	// BodySignature accepts an event that has x-webhook-signature alone, which covers neither its id nor the time at which it was sent. It
	// records the SHA-256 of a body in hex, and reports whether it was recorded before. Nil refuses such events. HandlerOptions have
	// an option of their own for it.
	BodySignature func(digest string) bool
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Format writes no secret, whatever the verb is.
func (Receiver) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "phoneproof.Receiver") }

// Receive returns the event in a body, as the bytes that came, if a secret signed it and its time is within the tolerance. Else the error
// is an *Error, which matches ErrSignature if the sender is to blame.
func (r *Receiver) Receive(header http.Header, body []byte) (*Event, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(body) > maxEvent {
		return nil, newError(CodeBodyTooLarge, fmt.Sprintf("the body is longer than %d bytes", maxEvent))
	}
	onBodyAlone := r.BodySignature != nil && header.Get("Webhook-Signature") == "" && header.Get("X-Webhook-Signature") != ""
	var live, test bool
	if onBodyAlone {
		live, test = r.findModes(func(secret string) bool {
			want := hex.EncodeToString(sign([]byte(secret), "", body)) // by the whole text of the secret
			return hmac.Equal([]byte(header.Get("X-Webhook-Signature")), []byte(want))
		})
	} else {
		var err error
		if live, test, err = r.matchStandard(header, body); err != nil {
			return nil, err
		}
	}
	if !live && !test {
		return nil, newError(CodeInvalidSignature, "no secret made this signature of this body: check the secret, and that these are the bytes that came")
	}
	event := &Event{}
	if err := json.Unmarshal(body, event); err != nil {
		return nil, &Error{Code: CodeInvalidEvent, Message: "the body is no event: " + err.Error(), cause: err}
	}
	if isTest := event.isOfTestKey(); isTest && !test || !isTest && !live {
		return nil, newError(CodeInvalidSignature, "events of test keys count under a test secret alone, and all others under no test secret")
	}
	event.ID = header.Get("Webhook-Id")
	if r.BodySignature != nil { // a signature of the body alone covers no header
		digest := sha256.Sum256(body)
		event.ID = hex.EncodeToString(digest[:])
	}
	if onBodyAlone {
		if err := r.checkTime(event.Timestamp); err != nil {
			return nil, err
		}
		if r.BodySignature(event.ID) {
			return nil, newError(CodeAlreadySeen, "this body was received before")
		}
	}
	return event, nil
}

// isOfTestKey reports whether an event comes from a test key.
func (e *Event) isOfTestKey() bool { return strings.HasPrefix(e.Kind, "test.") }

// check returns an error if the receiver could check nothing, or would accept what others can sign.
func (r *Receiver) check() error {
	if len(r.Secrets)+len(r.TestSecrets) == 0 {
		return newError(CodeNoSecret, "the receiver has no secret")
	}
	live := map[string]bool{}
	for i, secret := range slices.Concat(r.Secrets, r.TestSecrets) {
		key, err := decodeSecret(secret)
		if err != nil || len(key) == 0 {
			return newArgumentError("", "a secret is empty, or has no base64 after whsec_")
		}
		if i < len(r.Secrets) {
			live[string(key)] = true
		} else if live[string(key)] {
			return newArgumentError("TestSecrets", "a secret is in both Secrets and TestSecrets")
		}
	}
	return nil
}

// decodeSecret returns the key for HMAC.
func decodeSecret(secret string) ([]byte, error) {
	if encoded, isEncoded := strings.CutPrefix(secret, "whsec_"); isEncoded {
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("decode secret: %w", err)
		}
		return key, nil
	}
	return []byte(secret), nil
}

// findModes reports for each mode whether one of its secrets signs.
func (r *Receiver) findModes(signs func(secret string) bool) (live, test bool) {
	return slices.ContainsFunc(r.Secrets, signs), slices.ContainsFunc(r.TestSecrets, signs)
}

// matchStandard reports for each mode whether one of its secrets signed id, time and body (Standard Webhooks).
func (r *Receiver) matchStandard(header http.Header, body []byte) (live, test bool, err error) {
	id, sent, presented := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	if id == "" || sent == "" || presented == "" {
		return false, false, newError(CodeMissingSignature, "webhook-id, webhook-timestamp and webhook-signature are required")
	}
	seconds, err := strconv.ParseUint(sent, 10, 40)
	if err != nil {
		return false, false, newError(CodeInvalidSignature, "webhook-timestamp is no time")
	}
	if err := r.checkTime(time.Unix(int64(seconds), 0)); err != nil {
		return false, false, err
	}
	live, test = r.findModes(func(secret string) bool {
		key, _ := decodeSecret(secret) // check has decoded it before
		want := "v1," + base64.StdEncoding.EncodeToString(sign(key, id+"."+sent+".", body))
		return slices.ContainsFunc(strings.Fields(presented), func(part string) bool { return hmac.Equal([]byte(part), []byte(want)) })
	})
	return live, test, nil
}

// checkTime returns an error if a time differs too much from the clock.
func (r *Receiver) checkTime(at time.Time) error {
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	if late := now().Sub(at); late.Abs() > cmp.Or(r.Tolerance, defaultTolerance) {
		message := fmt.Sprintf("the event's time differs by %s: it is a replay, or a clock is wrong", late.Round(time.Second))
		return newError(CodeStaleTimestamp, message)
	}
	return nil
}

// sign returns the HMAC-SHA256 of a prefix and a body.
func sign(key []byte, prefix string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, prefix) // a hash returns no error
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}
