package postgres

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// state is a request as read from the database.
type state struct {
	verification.Request

	version int64
	// readAt is the database's time of the read.
	readAt time.Time
}

// scanState reads the columns of a request, followed by the time of the read.
func scanState(row pgx.CollectableRow) (state, error) {
	var (
		s                                          state
		claimed, actual, method, phase, assurance  string
		contacts, data, hints                      string
		verified, next, last, delivered, exhausted *time.Time
		attempts, statusCode                       int64
	)
	r, d := &s.Request, &s.Delivery
	err := row.Scan(&r.ID, &claimed, &method, &r.CreatedAt, &r.ExpiresAt, &r.KeyName, &r.BodyHash, &r.DisplayName, &phase,
		&verified, &actual, &assurance, &contacts, &attempts, &next, &last, &statusCode, &d.LastReason,
		&delivered, &exhausted, &r.Redelivered, &data, &hints, &r.Epoch, &s.version, &s.readAt)
	if err != nil {
		return state{}, fmt.Errorf("scan request: %w", err)
	}
	if r.Phone, err = parseNumber(claimed); err != nil {
		return state{}, fmt.Errorf("request %s: phone: %w", r.ID, err)
	}
	if r.Actual, err = parseNumber(actual); err != nil {
		return state{}, fmt.Errorf("request %s: actual: %w", r.ID, err)
	}
	if r.Contacts, err = decodeContacts(contacts); err != nil {
		return state{}, fmt.Errorf("request %s: contacts: %w", r.ID, err)
	}
	if r.ClientData, err = decodeClientData(data); err != nil {
		return state{}, fmt.Errorf("request %s: client data: %w", r.ID, err)
	}
	if r.Hints, err = decodeHints(hints); err != nil {
		return state{}, fmt.Errorf("request %s: hints: %w", r.ID, err)
	}
	r.Method, r.Phase, r.Assurance = verification.Method(method), verification.Phase(phase), verification.Assurance(assurance)
	r.CreatedAt, r.ExpiresAt, s.readAt = r.CreatedAt.UTC(), r.ExpiresAt.UTC(), s.readAt.UTC()
	r.VerifiedAt, d.NextAttemptAt, d.LastAttemptAt = timeOrZero(verified), timeOrZero(next), timeOrZero(last)
	d.DeliveredAt, d.ExhaustedAt = timeOrZero(delivered), timeOrZero(exhausted)
	d.Attempts, d.LastStatusCode = int(attempts), int(statusCode)
	r.Version = versionText(s.version)
	return s, nil
}

// parseNumber parses a stored number; an empty text is the zero number.
func parseNumber(stored string) (phone.Number, error) {
	if stored == "" {
		return phone.Number{}, nil
	}
	number, err := phone.FromE164(stored)
	if err != nil {
		return phone.Number{}, fmt.Errorf("parse stored number: %w", err)
	}
	return number, nil
}

// contact is the JSON form of a verification.Contact in the column contacts.
type contact struct {
	Binding string `json:"binding"`
	BoundAt int64  `json:"boundAt"` // microseconds
	Kind    string `json:"kind,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
}

func encodeContacts(contacts []verification.Contact) string {
	if len(contacts) == 0 {
		return ""
	}
	stored := make([]contact, len(contacts))
	for i, c := range contacts {
		stored[i] = contact{c.Binding, c.BoundAt.UnixMicro(), string(c.Kind), c.Nonce}
	}
	return encodeJSON(stored)
}

// encodeJSON encodes values that always marshal: strings, integers and maps of them.
func encodeJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func decodeContacts(text string) ([]verification.Contact, error) {
	if text == "" {
		return nil, nil
	}
	var stored []contact
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	contacts := make([]verification.Contact, len(stored))
	for i, c := range stored {
		contacts[i] = verification.Contact{
			Binding: c.Binding, BoundAt: time.UnixMicro(c.BoundAt).UTC(), Kind: verification.ContactKind(c.Kind), Nonce: c.Nonce,
		}
	}
	return contacts, nil
}

// hint is the JSON form of a verification.Hint in the column hints.
type hint struct {
	Kind string `json:"kind"`
	At   int64  `json:"at"` // microseconds
}

func encodeHints(hints []verification.Hint) string {
	if len(hints) == 0 {
		return ""
	}
	stored := make([]hint, len(hints))
	for i, h := range hints {
		stored[i] = hint{string(h.Kind), h.At.UnixMicro()}
	}
	return encodeJSON(stored)
}

func decodeHints(text string) ([]verification.Hint, error) {
	if text == "" {
		return nil, nil
	}
	var stored []hint
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	hints := make([]verification.Hint, len(stored))
	for i, h := range stored {
		hints[i] = verification.Hint{Kind: verification.HintKind(h.Kind), At: time.UnixMicro(h.At).UTC()}
	}
	return hints, nil
}

// clientData is the JSON form of verification.ClientData in the column client_data.
type clientData struct {
	Reference string            `json:"reference,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Locale    string            `json:"locale,omitempty"`
}

func encodeClientData(d verification.ClientData) string {
	if d.Reference == "" && d.Locale == "" && len(d.Metadata) == 0 {
		return ""
	}
	return encodeJSON(clientData(d))
}

func decodeClientData(text string) (verification.ClientData, error) {
	if text == "" {
		return verification.ClientData{}, nil
	}
	var stored clientData
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return verification.ClientData{}, fmt.Errorf("decode: %w", err)
	}
	return verification.ClientData(stored), nil
}

// newVersion returns a random version, so that no version repeats, not even for an id that is created again. Updates within the
// database increment it.
func newVersion() int64 { return rand.Int64N(1 << 62) } //nolint:gosec // not a secret: it only has to differ

func versionText(version int64) string { return strconv.FormatInt(version, 10) }

// parseVersion returns -1, which no state has, for an invalid text.
func parseVersion(text string) int64 {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return version
}

// timeOrZero converts a nullable column to a time.
func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// timeOrNil converts a time to a nullable column.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// workOf returns the next work of a request and the time from which it is due, for any policy.
func workOf(r *verification.Request) (work int64, since time.Time) {
	switch {
	case r.Phase == verification.Pending:
		expiry := r.ExpiresAt.Add(verification.ExpiryGrace)
		if next := r.Delivery.NextAttemptAt; r.Delivery.Wanted() && next.Before(expiry) {
			return workAttend, next
		}
		return workExpire, expiry
	case r.Delivery.Wanted():
		return workDeliver, r.Delivery.NextAttemptAt
	default:
		// At the zero time and without retention, Next returns the time since when only deletion is left.
		return workDelete, verification.Next(r, time.Time{}, verification.Policy{}).At
	}
}
