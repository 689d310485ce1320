package webhook

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// timestampLayout is ISO 8601 in UTC with exactly three decimals.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// ErrNoEvent is the error of a request that has no event: nothing happened yet, or its stored data are incomplete.
// Retrying does not help.
var ErrNoEvent = errors.New("the request has no event to send")

// Event is the message that a receiver gets. It is immutable, and prints as its id alone because its body holds
// numbers.
type Event struct {
	id   string
	body redact.Value[[]byte]
}

// NewEvent builds the event of a request's current state. It uses only stored fields of the request and the project's id, so
// every attempt sends the same bytes.
func NewEvent(projectID string, r *verification.Request) (Event, error) {
	e := r.Event()
	if e.Kind == "" || e.At.IsZero() || r.Phone.IsZero() || e.Kind == verification.EventSuccess && r.Actual.IsZero() {
		return Event{}, fmt.Errorf("request %s: %w", r.ID, ErrNoEvent)
	}
	return Event{id: eventID(projectID, r, e), body: redact.New(eventBody(projectID, r, e))}, nil
}

// ID is the event's webhook-id.
func (e Event) ID() string { return e.id }

// String returns the event's id.
func (e Event) String() string { return e.id }

// Format writes the event's id whatever the verb.
func (e Event) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, e.id) // fmt's buffer does not fail.
}

// LogValue returns the event's id.
func (e Event) LogValue() slog.Value { return slog.StringValue(e.id) }

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// eventID returns an id that is the same for every attempt, and differs between the events of one request and between two
// successive requests with the same requestId, which an Idempotency-Key can cause.
//
// It is a hash because a manual request's name may hold dots, and Standard Webhooks puts a dot after the id that it
// signs. It uses milliseconds because some stores keep no more of createdAt.
func eventID(projectID string, r *verification.Request, e verification.Event) string {
	hashed := projectID + "\x00" + r.ID + "\x00" + strconv.FormatInt(r.CreatedAt.UnixMilli(), 10)
	if e.Test {
		hashed += "\x00test"
	}
	if e.Kind != verification.EventSuccess { // whose id stays as it was before there were others
		hashed += "\x00" + string(e.Kind) + "\x00" + string(e.Hint)
	}
	if e.Kind == verification.EventAttention && r.IsProven() { // An echo has the same hint before it is answered.
		hashed += "\x00proven"
	}
	sum := sha256.Sum256([]byte(hashed))
	return "evt_" + idEncoding.EncodeToString(sum[:20])
}

// eventBody builds the JSON itself, because encoding/json does not promise the same bytes in the next Go version.
func eventBody(projectID string, r *verification.Request, e verification.Event) []byte {
	b := make([]byte, 0, 320)
	b = appendField(b, '{', "event", e.Name())
	b = appendField(b, ',', "phoneNumber", r.Phone.E164())
	if e.Kind == verification.EventSuccess {
		b = appendField(b, ',', "actualPhoneNumber", r.Actual.E164())
	}
	b = appendField(b, ',', "requestId", r.ID)
	b = appendField(b, ',', "projectId", projectID)
	b = appendField(b, ',', "method", string(r.UsedMethod()))
	b = appendField(b, ',', "timestamp", formatTime(e.At))
	// A request may be proven and end without a verification, which its assurance is about.
	if assurance := r.ShownAssurance(); e.Kind == verification.EventSuccess && assurance != verification.AssuranceUsual {
		b = appendField(b, ',', "assurance", string(assurance))
	}
	if e.Kind == verification.EventSuccess && r.Via != verification.ViaMessage {
		b = appendField(b, ',', "via", string(r.Via))
	}
	if e.Hint != "" {
		b = appendField(b, ',', "hint", string(e.Hint))
	}
	if e.Test {
		b = append(b, `,"test":true`...)
	}
	return append(appendClientData(b, r), '}')
}

// appendClientData appends what the client gave to init, the metadata in the order of their keys.
func appendClientData(b []byte, r *verification.Request) []byte {
	if r.Reference != "" {
		b = appendField(b, ',', "reference", r.Reference)
	}
	if len(r.Metadata) == 0 {
		return b
	}
	b = append(b, `,"metadata":`...)
	before := byte('{')
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		b = appendField(b, before, key, r.Metadata[key])
		before = ','
	}
	return append(b, '}')
}

func formatTime(t time.Time) string { return t.UTC().Format(timestampLayout) }

func appendField(b []byte, before byte, name, value string) []byte {
	b = append(b, before, '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return appendString(b, value)
}

// appendString appends a JSON string. It escapes only what RFC 8259 requires and replaces invalid UTF-8.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
