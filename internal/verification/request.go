package verification

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// Method is the messenger that a number is verified through.
type Method string

// The methods of the contract.
const (
	WhatsApp Method = "WHATSAPP"
	Telegram Method = "TELEGRAM"
)

// Phase is the state of a request. Verified and Expired are final.
type Phase string

// The phases of the contract, spelled as the API answers them.
const (
	Pending  Phase = "PENDING"
	Verified Phase = "VERIFIED"
	Expired  Phase = "EXPIRED"
)

// Final reports whether the phase never changes again.
func (p Phase) Final() bool { return p == Verified || p == Expired }

// Assurance is the source of a number if it is weaker than the messenger's own statement.
type Assurance string

const (
	// AssuranceUsual is the messenger's own statement of the sender's number. It is the zero value and is not shown.
	AssuranceUsual Assurance = ""
	// AssuranceSharedContact is a number from a contact card that the sender shared on our request.
	AssuranceSharedContact Assurance = "shared_contact"
	// AssuranceEcho is the claimed number, where a message to it was answered by the account that had sent the code with its
	// number hidden.
	AssuranceEcho Assurance = "echo"
	// AssuranceSession is the messenger's own statement, and a code that was redeemed from the session that began the request. It
	// is shown and never stored; see Request.ShownAssurance.
	AssuranceSession Assurance = "session"
)

const (
	// MaxTTL is the longest spec.request.ttl.
	MaxTTL = time.Hour
	// ExpiryGrace is how long after expiresAt a request is still shown as PENDING: replicas whose clocks differ by
	// less never show EXPIRED and then something else. Nothing is verified in it.
	ExpiryGrace = 5 * time.Second
	// ClockSkew is how much earlier than createdAt a messenger may date a message: its clock is not ours, and it
	// counts whole seconds.
	ClockSkew = 2 * time.Minute
	// CodeRest is how long after expiresAt a request is kept whose code can be made once more: every message with the code is
	// then older than the next request that has it, by any clock.
	CodeRest = 5 * time.Minute
	// MaxContacts bounds the senders that one request awaits an answer from. A further one replaces the oldest who is to share a
	// contact, and is refused if there is none.
	MaxContacts = 8
	// promptSkew is how much earlier than the binding a messenger may date the prompt that was sent after it.
	promptSkew = 5 * time.Second
)

// ClientData is what a client stores with a request. It is returned to the client, and never logged.
type ClientData struct {
	// Reference is the client's own name for the request; empty for none.
	Reference string
	// Metadata are the client's own pairs; nil for none.
	Metadata map[string]string
	// Locale is the language of the texts for the user, as a short BCP 47 tag; empty for the project's own.
	Locale string
	// ReturnURL is where the page leads back to; empty for nowhere.
	ReturnURL string
}

// cloneData returns a copy that shares nothing with d.
func (d ClientData) cloneData() ClientData {
	d.Metadata = maps.Clone(d.Metadata)
	return d
}

// equalData reports whether both hold the same.
func (d ClientData) equalData(other ClientData) bool {
	return d.Reference == other.Reference && d.Locale == other.Locale && d.ReturnURL == other.ReturnURL &&
		maps.Equal(d.Metadata, other.Metadata)
}

// Request is one attempt to verify one number. Stores keep all of it; the code is not part of it.
type Request struct {
	// ID is the requestId, made from the code.
	ID string
	// Phone is the claimed number.
	Phone phone.Number
	// Method is the messenger that the client chose. OtherMethods are those that the page offers as well.
	Method       Method
	OtherMethods []Method
	// CreatedAt and ExpiresAt bound the window in which a message counts. The store's clock sets both.
	CreatedAt time.Time
	ExpiresAt time.Time
	// KeyName names the API key that made the request; empty for a request made with kubectl.
	KeyName string
	// BodyHash is the beginning of a SHA-256 in lower-case hex by which a retry with the same Idempotency-Key is distinguished from its
	// misuse; empty without that key. Its length is that of the kind of key: hashDigits or onceHashDigits. That of a delivery is an HMAC,
	// under a key that is not stored.
	BodyHash string
	// Test is set for the request of a test key: its number decides what becomes of it, and no message. See Play.
	Test bool
	// DisplayName is the project's name in the prepared text; empty means the current one.
	DisplayName string
	ClientData
	Terms Terms

	Phase      Phase
	VerifiedAt time.Time
	// VerifiedBy is the messenger that verified it, if that is one of OtherMethods.
	VerifiedBy Method
	// ProvenAt is when the claimed number sent the code of a request of LevelSession, or the code that was sent to it was entered; zero
	// before that and for others. Actual, VerifiedBy, Assurance and Via are set with it.
	ProvenAt time.Time
	// WrongCodes counts the wrong codes that were entered: since then, or from the start with DeliverCode.
	WrongCodes int
	// Actual is the number that the messenger reported, if proven or verified. It may differ from Phone within a set of
	// national variants.
	Actual    phone.Number
	Assurance Assurance
	// Contacts are the senders who were asked for more after they sent the code, oldest first.
	Contacts []Contact
	// Hints are why the request is not verified yet, oldest first and each once.
	Hints    []Hint
	Delivery Delivery
	// EarlierAttempts are the delivery attempts before the last one of Delivery, oldest first; see PastAttempts.
	EarlierAttempts []PastAttempt
	// Redelivered identifies the last redelivery that was granted.
	Redelivered string

	// Via is what verified or proved the request, if that is no message.
	Via Via
	// Code is what became of the code that was sent to the number; its zero value while that is not known.
	Code CodeResult

	// Epoch counts the claims of this request by workers; a worker with an older one may not write.
	Epoch int64
	// Version is the store's token of this state. It changes with every write, never comes again, not even for a request
	// with the same id after this one was deleted, and means nothing outside the store.
	Version string
}

// Permits reports whether a message through that messenger may verify the request.
func (r *Request) Permits(m Method) bool { return m == r.Method || slices.Contains(r.OtherMethods, m) }

// UsedMethod returns the messenger that verified the request, and before that the one that the client chose.
func (r *Request) UsedMethod() Method {
	if r.VerifiedBy != "" {
		return r.VerifiedBy
	}
	return r.Method
}

// ContactKind is the answer that a sender was asked for.
type ContactKind string

const (
	// ContactShare is their contact, because the messenger did not give their number. It is the zero value.
	ContactShare ContactKind = ""
	// ContactConfirm is a tap on a button that names the project, because they did not send the prepared text. A request
	// has at most one.
	ContactConfirm ContactKind = "confirm"
	// ContactEcho is a tap on a button in a message to the claimed number, because the sender hides theirs.
	ContactEcho ContactKind = "echo"
)

// Contact binds a sender to the request whose code the sender sent.
type Contact struct {
	// Binding is a keyed hash of (account, sender): messenger ids are never stored.
	Binding string
	BoundAt time.Time
	Kind    ContactKind
	// Nonce is what the buttons of an echo are made from: 32 lower-case hexadecimal digits. It is empty for the other kinds.
	Nonce string
}

// Delivery is the state of the request's event. Its zero value means that no event is wanted.
type Delivery struct {
	Attempts int
	// NextAttemptAt is when the next attempt is due; zero when none is.
	NextAttemptAt  time.Time
	LastAttemptAt  time.Time
	LastStatusCode int
	// LastReason is one word in snake_case for the last failure, with nothing of the URL or the response's body.
	LastReason  string
	DeliveredAt time.Time
	ExhaustedAt time.Time
	// ExtraFrom is the earliest time of an extra attempt; zero for any time. See Policy.Repaired.
	ExtraFrom time.Time
}

// Wanted reports whether an attempt is still to be made.
func (d Delivery) Wanted() bool { return !d.NextAttemptAt.IsZero() }

// settledAt returns when the request was finished and only awaits deletion; zero while something is open.
func (r *Request) settledAt() time.Time {
	end := r.VerifiedAt
	switch {
	case !r.Phase.Final() || r.Delivery.Wanted():
		return time.Time{}
	case !r.Delivery.DeliveredAt.IsZero():
		end = r.Delivery.DeliveredAt
	case !r.Delivery.ExhaustedAt.IsZero():
		end = r.Delivery.ExhaustedAt
	}
	if lapsed := r.EndsAt().Add(ExpiryGrace); r.Phase == Expired && lapsed.After(end) {
		end = lapsed
	}
	return r.afterRest(end)
}

// codeComesBack reports whether another request can have the same code after this one is deleted: a code made from an
// Idempotency-Key always is the same, while a random one is never drawn twice.
func (r *Request) codeComesBack() bool { return r.BodyHash != "" }

// afterRest returns the time at, or the later end of what keeps the request: the code's rest, and CodeKept.
func (r *Request) afterRest(at time.Time) time.Time {
	if end := r.ExpiresAt.Add(CodeRest); r.codeComesBack() && end.After(at) {
		at = end
	}
	if end := r.CreatedAt.Add(CodeKept); r.DeliversCode() && !r.Test && end.After(at) {
		at = end
	}
	return at
}

// isOfOneCall reports whether the request has an Idempotency-Key that was made for its call alone, so that no earlier one had its code.
func (r *Request) isOfOneCall() bool { return len(r.BodyHash) == onceHashDigits }

// sentFrom returns the earliest time of a message that counts. Where the code can be older than the request there is no
// allowance for clocks, but messengers count whole seconds: a message dated t was sent within [t, t+1s).
func (r *Request) sentFrom() time.Time {
	if r.codeComesBack() && !r.isOfOneCall() {
		return r.CreatedAt.Truncate(time.Second)
	}
	return r.CreatedAt.Add(-ClockSkew)
}

// PhaseAt returns the phase to show at now. A pending request is shown as EXPIRED from EndsAt + ExpiryGrace on, even if no loop
// has written that yet.
func (r *Request) PhaseAt(now time.Time) Phase {
	if r.Phase == Pending && r.hasLapsed(now) {
		return Expired
	}
	return r.Phase
}

// hasLapsed reports whether a pending request is shown as EXPIRED at now.
func (r *Request) hasLapsed(now time.Time) bool { return !now.Before(r.EndsAt().Add(ExpiryGrace)) }

// LapsesAt returns when a pending request may be expired. The one of a test key needs no grace, because nothing competes with its end.
func (r *Request) LapsesAt() time.Time {
	if r.Test {
		return r.EndsAt()
	}
	return r.EndsAt().Add(ExpiryGrace)
}

// EvictableAt returns the time from which a full store may delete the request, if nothing is written to it before: it is expired,
// or its event is finished, its code has rested, and its number has cooled down. It is zero for an undelivered event, which is never
// evicted, and with Limits.KeepLapsed for a pending request, whose event is still to come.
func (r *Request) EvictableAt(limits Limits) time.Time {
	if r.Test {
		return r.testEvictableAt()
	}
	if r.Phase == Pending {
		if limits.KeepLapsed {
			return time.Time{}
		}
		return r.afterRest(r.EndsAt().Add(ExpiryGrace))
	}
	at, declined := r.settledAt(), r.DeclinedAt()
	if cooled := declined.Add(limits.DeclineCooldown); !at.IsZero() && !declined.IsZero() && cooled.After(at) {
		return cooled
	}
	return at
}

// testEvictableAt returns the time from which a request of a test key makes room for another one: when it is final, whatever became of
// its event.
func (r *Request) testEvictableAt() time.Time {
	switch r.Phase {
	case Pending:
		return r.afterRest(r.LapsesAt())
	case Verified:
		return r.afterRest(r.VerifiedAt)
	default:
		return r.afterRest(r.Event().At)
	}
}

// HeardAt returns the last time at which a message for the request came through its UsedMethod, as far as the request shows it; zero
// if none came. If several messengers are permitted only a proof or a verification shows which one it was: contacts and hints do not.
func (r *Request) HeardAt() time.Time {
	heard := r.VerifiedAt
	if r.IsProven() { // a confirmation is no message
		heard = r.ProvenAt
	}
	if r.Via == ViaCode { // nor are the digits that were sent to the number
		heard = time.Time{}
	}
	if len(r.OtherMethods) > 0 {
		return heard
	}
	for _, c := range r.Contacts {
		if c.BoundAt.After(heard) {
			heard = c.BoundAt
		}
	}
	for _, h := range r.Hints {
		switch h.Kind {
		case HintWrongCode, HintCanceled, HintNumberWrong: // from the client and the page
		case HintNoQuestion, HintCodeNotSent: // from the status of what was sent
		case HintAwaitingConfirmation: // the contact or the proof has the time of its message, if it came by one
		default:
			if h.At.After(heard) {
				heard = h.At
			}
		}
	}
	return heard
}

// Evictable reports whether a full store may delete the request at now.
func (r *Request) Evictable(limits Limits, now time.Time) bool {
	at := r.EvictableAt(limits)
	return !at.IsZero() && !now.Before(at)
}

// Mutation decides the next state of a request at now, by the clock that decides for its store. It changes nothing but its
// argument. ErrUnchanged means that there is nothing to write.
type Mutation = func(r *Request, now time.Time) error

// errImmutable refuses a mutation of what a creation decided.
var errImmutable = fmt.Errorf("a mutation changed what the request was created with: %w", ErrContent)

// TruncateTime returns t as precise as every store keeps it: whole microseconds, in UTC.
func TruncateTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// NewRequest returns the first state of the request that n creates at now. Its Version is the store's to set.
func NewRequest(n New, now time.Time) Request {
	r := Request{
		ID: n.ID, Phone: n.Phone, Method: n.Method, OtherMethods: slices.Clone(n.OtherMethods),
		CreatedAt: TruncateTime(now), ExpiresAt: TruncateTime(now.Add(n.TTL)),
		KeyName: n.KeyName, BodyHash: n.BodyHash, Test: n.Test, DisplayName: n.DisplayName, ClientData: n.cloneData(), Terms: n.Terms,
		Phase: Pending,
	}
	if r.IsDelivery() {
		r.Phase = Expired
	}
	return r
}

// Clone returns a copy that shares nothing with r.
func (r *Request) Clone() Request {
	c := *r
	c.Contacts, c.Hints, c.ClientData = slices.Clone(r.Contacts), slices.Clone(r.Hints), r.cloneData()
	c.OtherMethods, c.EarlierAttempts = slices.Clone(r.OtherMethods), slices.Clone(r.EarlierAttempts)
	return c
}

// Apply returns the state that a store keeps after a mutation of r, with times truncated and past attempts kept; r stays as it is. It
// fails with the error of the mutation, or with ErrContent if the mutation changed what never changes.
func (r *Request) Apply(mutate Mutation, now time.Time) (Request, error) {
	next := r.Clone()
	if err := mutate(&next, now); err != nil {
		return Request{}, err
	}
	if !r.sameCreation(&next) {
		return Request{}, errImmutable
	}
	next = next.Clone() // the mutation may keep what it put in
	next.archiveAttempt(r)
	next.truncateTimes()
	return next, nil
}

// HasSameWork reports whether next leaves to do what there was to do in r. A worker who claimed r keeps its lease then, so that
// no other takes the same step in the meantime. A redelivery of an event that is still to be sent changes nothing here: it follows the
// attempt that may be under way.
func (r *Request) HasSameWork(next *Request) bool {
	redelivered := r.Redelivered != next.Redelivered && r.Delivery.Wanted()
	return r.Phase == next.Phase && r.EndsAt().Equal(next.EndsAt()) &&
		(r.Delivery == next.Delivery || redelivered) && r.Event().Equal(next.Event())
}

// sameCreation reports whether all that only the store decides is equal.
func (r *Request) sameCreation(other *Request) bool {
	return r.ID == other.ID && r.Phone == other.Phone && r.Method == other.Method && slices.Equal(r.OtherMethods, other.OtherMethods) &&
		r.CreatedAt.Equal(other.CreatedAt) && r.ExpiresAt.Equal(other.ExpiresAt) &&
		r.KeyName == other.KeyName && r.BodyHash == other.BodyHash && r.Test == other.Test && r.DisplayName == other.DisplayName &&
		r.equalData(other.ClientData) && r.Terms == other.Terms && r.Epoch == other.Epoch && r.Version == other.Version
}

func (r *Request) truncateTimes() {
	d := &r.Delivery
	for _, t := range [...]*time.Time{
		&r.VerifiedAt, &r.ProvenAt, &d.NextAttemptAt, &d.LastAttemptAt, &d.DeliveredAt, &d.ExhaustedAt, &d.ExtraFrom,
	} {
		*t = TruncateTime(*t)
	}
	for i := range r.EarlierAttempts {
		r.EarlierAttempts[i].At = TruncateTime(r.EarlierAttempts[i].At)
	}
	for i := range r.Contacts {
		r.Contacts[i].BoundAt = TruncateTime(r.Contacts[i].BoundAt)
	}
	if len(r.Contacts) == 0 {
		r.Contacts = nil // as it is read back
	}
	for i := range r.Hints {
		r.Hints[i].At = TruncateTime(r.Hints[i].At)
	}
	if len(r.Hints) == 0 {
		r.Hints = nil
	}
}
