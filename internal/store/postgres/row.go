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

// state is a request as it was read.
type state struct {
	verification.Request

	version int64
	// readAt is the database's time at which it was read.
	readAt time.Time
}

// scan reads the columns of a request and a time after them.
func scan(row pgx.CollectableRow) (state, error) {
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
		return state{}, err
	}
	if r.Phone, err = number(claimed); err != nil {
		return state{}, fmt.Errorf("request %s: phone: %w", r.ID, err)
	}
	if r.Actual, err = number(actual); err != nil {
		return state{}, fmt.Errorf("request %s: actual: %w", r.ID, err)
	}
	if r.Contacts, err = decodeContacts(contacts); err != nil {
		return state{}, fmt.Errorf("request %s: contacts: %w", r.ID, err)
	}
	r.Method, r.Phase, r.Assurance = verification.Method(method), verification.Phase(phase), verification.Assurance(assurance)
	r.CreatedAt, r.ExpiresAt, s.readAt = r.CreatedAt.UTC(), r.ExpiresAt.UTC(), s.readAt.UTC()
	r.VerifiedAt, d.NextAttemptAt, d.LastAttemptAt = unset(verified), unset(next), unset(last)
	d.DeliveredAt, d.ExhaustedAt = unset(delivered), unset(exhausted)
	d.Attempts, d.LastStatusCode = int(attempts), int(statusCode)
	r.Version = versionText(s.version)
	return s, nil
}

// number reads a number; an empty text is none.
func number(stored string) (phone.Number, error) {
	if stored == "" {
		return phone.Number{}, nil
	}
	return phone.FromE164(stored)
}

// contact is a verification.Contact in the column contacts.
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
		return nil, err
	}
	contacts := make([]verification.Contact, len(stored))
	for i, c := range stored {
		contacts[i] = verification.Contact{
			Binding: c.Binding, BoundAt: time.UnixMicro(c.BoundAt).UTC(), Kind: verification.ContactKind(c.Kind),
		}
	}
	return contacts, nil
}

// newVersion returns a version that never was: versions come from chance and grow by one with each write that the
// database makes by itself, so none comes again, not even for an id that is created again.
func newVersion() int64 { return rand.Int64N(1 << 62) } //nolint:gosec // no secret: it only has to be another one

func versionText(version int64) string { return strconv.FormatInt(version, 10) }

// parseVersion returns a version that no state has for a text that is none.
func parseVersion(text string) int64 {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return version
}

// instant cuts off what the database does not keep.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// unset reads a time that may be none.
func unset(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// set writes a time that may be none.
func set(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// workOf says what a request will need next, and since when, whatever the policy.
func workOf(r *verification.Request) (work int64, since time.Time) {
	switch {
	case r.Phase == verification.Pending:
		return workExpire, r.ExpiresAt.Add(verification.ExpiryGrace)
	case r.Phase == verification.Verified && r.Delivery.Wanted():
		return workDeliver, r.Delivery.NextAttemptAt
	default:
		// Asked at the beginning of time with no retention, Next says since when nothing else is needed.
		return workDelete, verification.Next(r, time.Time{}, verification.Policy{}).At
	}
}

// stored returns r as the database keeps it.
func stored(r verification.Request) verification.Request {
	r.VerifiedAt = instant(r.VerifiedAt)
	contacts := make([]verification.Contact, len(r.Contacts))
	for i, c := range r.Contacts {
		contacts[i] = verification.Contact{Binding: c.Binding, BoundAt: instant(c.BoundAt), Kind: c.Kind}
	}
	r.Contacts = contacts
	d := &r.Delivery
	d.NextAttemptAt, d.LastAttemptAt = instant(d.NextAttemptAt), instant(d.LastAttemptAt)
	d.DeliveredAt, d.ExhaustedAt = instant(d.DeliveredAt), instant(d.ExhaustedAt)
	return r
}
