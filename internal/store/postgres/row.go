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
		contacts                                   string
		verified, next, last, delivered, exhausted *time.Time
		attempts, statusCode                       int64
	)
	r, d := &s.Request, &s.Delivery
	err := row.Scan(&r.ID, &claimed, &method, &r.CreatedAt, &r.ExpiresAt, &r.KeyName, &r.BodyHash, &r.DisplayName, &phase,
		&verified, &actual, &assurance, &contacts, &attempts, &next, &last, &statusCode, &d.LastReason,
		&delivered, &exhausted, &r.Redelivered, &r.Epoch, &s.version, &s.readAt)
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
}

func encodeContacts(contacts []verification.Contact) string {
	if len(contacts) == 0 {
		return ""
	}
	stored := make([]contact, len(contacts))
	for i, c := range contacts {
		stored[i] = contact{c.Binding, c.BoundAt.UnixMicro(), string(c.Kind)}
	}
	text, err := json.Marshal(stored)
	if err != nil {
		panic(err) // strings and integers always marshal
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
			Binding: c.Binding, BoundAt: time.UnixMicro(c.BoundAt).UTC(), Kind: verification.ContactKind(c.Kind),
		}
	}
	return contacts, nil
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
		return workExpire, r.ExpiresAt.Add(verification.ExpiryGrace)
	case r.Phase == verification.Verified && r.Delivery.Wanted():
		return workDeliver, r.Delivery.NextAttemptAt
	default:
		// At the zero time and without retention, Next returns the time since when only deletion is left.
		return workDelete, verification.Next(r, time.Time{}, verification.Policy{}).At
	}
}
