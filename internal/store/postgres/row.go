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
func scanState(row pgx.CollectableRow) (state, error) { return newStateScanner().scan(row) }

// stateScanner reads all rows of a query into the same variables: new ones for each row are much garbage.
type stateScanner struct {
	state state

	claimed, actual, method, phase, assurance  string
	contacts, data, hints, verifiedBy, earlier string
	deliver, via, codeState                    string
	verified, next, last, delivered, exhausted *time.Time
	proven, extra                              *time.Time
	attempts, statusCode, wrongCodes           int64

	targets [36]any
}

func newStateScanner() *stateScanner {
	x := &stateScanner{}
	r, d := &x.state.Request, &x.state.Delivery
	x.targets = [...]any{
		&r.ID, &x.claimed, &x.method, &r.Test, &r.CreatedAt, &r.ExpiresAt, &r.KeyName, &r.BodyHash, &r.DisplayName, &x.phase,
		&x.verified, &x.actual, &x.assurance, &x.contacts, &x.attempts, &x.next, &x.last, &x.statusCode, &d.LastReason,
		&x.delivered, &x.exhausted, &r.Redelivered, &x.data, &x.hints, &x.verifiedBy, &x.proven, &x.wrongCodes, &x.earlier, &x.extra,
		&x.deliver, &x.via, &x.codeState, &r.Code.Reason, &r.Epoch, &x.state.version, &x.state.readAt,
	}
	return x
}

// scan reads one row.
func (x *stateScanner) scan(row pgx.CollectableRow) (state, error) {
	x.state = state{}
	if err := row.Scan(x.targets[:]...); err != nil {
		return state{}, fmt.Errorf("scan request: %w", err)
	}
	s := x.state
	r, d := &s.Request, &s.Delivery
	var err error
	if r.Phone, err = parseNumber(x.claimed); err != nil {
		return state{}, fmt.Errorf("request %s: phone: %w", r.ID, err)
	}
	if r.Actual, err = parseNumber(x.actual); err != nil {
		return state{}, fmt.Errorf("request %s: actual: %w", r.ID, err)
	}
	if r.Contacts, err = decodeContacts(x.contacts); err != nil {
		return state{}, fmt.Errorf("request %s: contacts: %w", r.ID, err)
	}
	if err = decodeClientData(x.data, r); err != nil {
		return state{}, fmt.Errorf("request %s: client data: %w", r.ID, err)
	}
	if r.Hints, err = decodeHints(x.hints); err != nil {
		return state{}, fmt.Errorf("request %s: hints: %w", r.ID, err)
	}
	if r.EarlierAttempts, err = decodeAttempts(x.earlier); err != nil {
		return state{}, fmt.Errorf("request %s: earlier attempts: %w", r.ID, err)
	}
	r.Method, r.VerifiedBy = verification.Method(x.method), verification.Method(x.verifiedBy)
	r.Phase, r.Assurance = verification.Phase(x.phase), verification.Assurance(x.assurance)
	r.CreatedAt, r.ExpiresAt, s.readAt = r.CreatedAt.UTC(), r.ExpiresAt.UTC(), s.readAt.UTC()
	r.VerifiedAt, d.NextAttemptAt, d.LastAttemptAt = timeOrZero(x.verified), timeOrZero(x.next), timeOrZero(x.last)
	d.DeliveredAt, d.ExhaustedAt, d.ExtraFrom = timeOrZero(x.delivered), timeOrZero(x.exhausted), timeOrZero(x.extra)
	r.ProvenAt, r.WrongCodes = timeOrZero(x.proven), int(x.wrongCodes)
	d.Attempts, d.LastStatusCode = int(x.attempts), int(x.statusCode)
	r.Terms.Deliver, r.Via = verification.DeliverKind(x.deliver), verification.Via(x.via)
	r.Code.State = verification.CodeState(x.codeState)
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

// clientData is the JSON form of the column client_data: verification.ClientData, and what else few requests have.
type clientData struct {
	Reference string            `json:"reference,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Locale    string            `json:"locale,omitempty"`
	ReturnURL string            `json:"returnURL,omitempty"`
	// OtherMethods are not the client's, but decided at the same moment and as rare.
	OtherMethods []verification.Method `json:"otherMethods,omitempty"`
	// The terms follow partly from the project's settings, and are decided at the same moment, too.
	Assurance verification.Level `json:"assurance,omitempty"`
	Purpose   string             `json:"purpose,omitempty"`
	Browser   string             `json:"browser,omitempty"`
}

func encodeClientData(r *verification.Request) string {
	if r.Reference == "" && r.Locale == "" && r.ReturnURL == "" && len(r.Metadata) == 0 && len(r.OtherMethods) == 0 &&
		r.Terms == (verification.Terms{}) {
		return ""
	}
	return encodeJSON(clientData{
		Reference: r.Reference, Metadata: r.Metadata, Locale: r.Locale, ReturnURL: r.ReturnURL, OtherMethods: r.OtherMethods,
		Assurance: r.Terms.Level, Purpose: r.Terms.Purpose, Browser: r.Terms.Browser,
	})
}

// decodeClientData sets the fields of r that are stored in the column client_data. Terms.Deliver is in a column of its own.
func decodeClientData(text string, r *verification.Request) error {
	if text == "" {
		return nil
	}
	var stored clientData
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	r.ClientData = verification.ClientData{
		Reference: stored.Reference, Metadata: stored.Metadata, Locale: stored.Locale, ReturnURL: stored.ReturnURL,
	}
	r.OtherMethods = stored.OtherMethods
	r.Terms = verification.Terms{Level: stored.Assurance, Purpose: stored.Purpose, Browser: stored.Browser}
	return nil
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
	// At the zero time, without events and retention, Next returns when what remains beside an event is due.
	rest := verification.Next(r, time.Time{}, verification.Policy{}).At
	switch next := r.Delivery.NextAttemptAt; {
	case r.Delivery.Wanted() && r.Phase != verification.Pending && !r.Test:
		return workDeliver, next
	case r.Delivery.Wanted() && (r.Phase != verification.Pending || next.Before(rest)):
		return workDeliverFew, next
	case r.Phase == verification.Pending:
		return workExpire, rest
	case r.IsDelivery():
		return workDeleteDelivery, r.CreatedAt
	default:
		return workDelete, rest
	}
}
