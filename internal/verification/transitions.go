package verification

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// Reasons why a message does not move a request. The sender learns none of them.
var (
	ErrWrongMethod  = errors.New("the message came through another messenger")
	ErrOutOfTime    = errors.New("the message was not sent within the request's time")
	ErrWrongNumber  = errors.New("the sender's number is not the claimed one")
	ErrNoNumber     = errors.New("the sender's number is not known")
	ErrFinal        = errors.New("the request is final")
	ErrNoEvent      = errors.New("the request has no event that is wanted")
	ErrStaleAttempt = errors.New("another attempt was recorded in the meantime")
	ErrEarlyContact = errors.New("the contact answers an older prompt")
	ErrNotAsked     = errors.New("the sender was not asked for this")
	ErrTextChanged  = errors.New("the text is not the prepared one, and its sender cannot be asked")
	ErrNumberHidden = errors.New("the sender's number is hidden, and no other proof of it is accepted")
	ErrManySenders  = errors.New("the request awaits an answer from too many other senders")
)

// errBeforeRequest is ErrOutOfTime for a message that was sent before the request began.
var errBeforeRequest = fmt.Errorf("the message is older than the request: %w", ErrOutOfTime)

// Evidence is what a messenger reported about the sender of a code.
type Evidence struct {
	Method Method
	// Sender is the number that the messenger reported; zero when it reported none.
	Sender phone.Number
	// SentAt is the message's own time.
	SentAt    time.Time
	Assurance Assurance
	// PromptedAt is when the prompt was sent that the message answers, by the messenger's clock; zero if unknown.
	PromptedAt time.Time
}

// Verify moves a pending request to VERIFIED, or makes it proven at LevelSession, and makes its event due in the same write if that
// is wanted. If it returns one of the reasons above, the request is unchanged.
func (r *Request) Verify(e Evidence, now time.Time, wanted EventKinds) error {
	if err := r.checkNumber(e, now); err != nil {
		return err
	}
	return r.acceptProof(e, "", now, wanted)
}

// acceptProof records what proves the number: it verifies the request, or makes it proven if a client must confirm it. binding is
// the one of the prover; empty if a request has none.
func (r *Request) acceptProof(e Evidence, binding string, now time.Time, wanted EventKinds) error {
	if r.Terms.Level == LevelSession {
		r.recordProof(e, binding, now, wanted)
		return nil
	}
	r.Phase, r.VerifiedAt, r.Actual, r.Assurance = Verified, now, e.Sender, e.Assurance
	if e.Method != r.Method {
		r.VerifiedBy = e.Method
	}
	r.makeEventDue(now, wanted)
	return nil
}

// checkNumber returns nil if the message came in time and from the claimed number.
func (r *Request) checkNumber(e Evidence, now time.Time) error {
	if err := r.checkMessage(e, now); err != nil {
		return err
	}
	if e.Sender.IsZero() {
		return ErrNoNumber
	}
	if !phone.Same(r.Phone, e.Sender) {
		return ErrWrongNumber
	}
	return nil
}

// Bind records that a sender without a known number sent the code, so that the sender's contact can complete the request later. A
// copy of a message that bound the sender already is ErrUnchanged; otherwise a contact that was shared since would be too early.
func (r *Request) Bind(e Evidence, binding string, now time.Time, wanted EventKinds) error {
	if err := r.checkMessage(e, now); err != nil {
		return err
	}
	if bound := r.BoundAt(binding); !bound.IsZero() && !e.SentAt.After(bound) {
		return ErrUnchanged
	}
	if !r.addContact(Contact{Binding: binding, BoundAt: now}) {
		return ErrManySenders
	}
	r.addAttention(HintAwaitingContact, now, wanted)
	return nil
}

// addContact adds a contact, and reports whether there is room. It replaces its former state, or the oldest sender who is to share a
// contact. The others were asked a question that is sent once, so they are never dropped.
func (r *Request) addContact(c Contact) bool {
	contacts := slices.DeleteFunc(slices.Clone(r.Contacts), func(old Contact) bool { return old.Binding == c.Binding })
	if len(contacts) >= MaxContacts {
		oldest := slices.IndexFunc(contacts, func(old Contact) bool { return old.Kind == ContactShare })
		if oldest < 0 {
			return false
		}
		contacts = slices.Delete(contacts, oldest, oldest+1)
	}
	contacts = append(contacts, c)
	r.Contacts = contacts
	return true
}

// AwaitConfirmation records that the claimed number sent the code in another text than the prepared one, and is asked to
// confirm it. That happens once for a request: a copy of the same message, which one of the older bindings may stand for, is
// ErrUnchanged, any other ErrTextChanged. So is the first one if no further sender can be asked.
func (r *Request) AwaitConfirmation(e Evidence, binding string, older []string, now time.Time, wanted EventKinds) error {
	if err := r.checkNumber(e, now); err != nil {
		return err
	}
	asked, found := r.Confirmation()
	switch {
	case !found:
		if !r.addContact(Contact{Binding: binding, BoundAt: now, Kind: ContactConfirm}) {
			return ErrTextChanged
		}
		r.addAttention(HintTextChanged, now, wanted)
		return nil
	case asked.Binding == binding, slices.Contains(older, asked.Binding):
		return ErrUnchanged
	default:
		return ErrTextChanged
	}
}

// Confirm is Verify for the answer to a request for confirmation, if that is the one which answers reports true for. One who was
// not asked learns nothing else, and causes no write.
func (r *Request) Confirm(e Evidence, answers func(binding string) bool, now time.Time, wanted EventKinds) error {
	asked, found := r.Confirmation()
	if !found || !answers(asked.Binding) {
		return ErrNotAsked
	}
	if err := r.checkNumber(e, now); err != nil {
		return err
	}
	return r.acceptProof(e, asked.Binding, now, wanted)
}

// Confirmation returns the contact of the sender who was asked to confirm; false if no sender was asked.
func (r *Request) Confirmation() (Contact, bool) {
	i := slices.IndexFunc(r.Contacts, func(c Contact) bool { return c.Kind == ContactConfirm })
	if i < 0 {
		return Contact{}, false
	}
	return r.Contacts[i], true
}

// VerifyContact is Verify with the contact that a sender shared. A contact from before its binding answers an older prompt, so
// the only tolerance is the messenger's whole seconds, and promptSkew for the date of the prompt, which is that of its clock.
func (r *Request) VerifyContact(e Evidence, binding string, now time.Time, wanted EventKinds) error {
	if err := r.checkMessage(e, now); err != nil {
		return err
	}
	bound := r.BoundAt(binding)
	switch {
	case bound.IsZero():
		return ErrNotAsked
	case e.SentAt.Before(bound.Truncate(time.Second)), !e.PromptedAt.IsZero() && e.PromptedAt.Before(bound.Add(-promptSkew)):
		return ErrEarlyContact
	}
	if err := r.checkNumber(e, now); err != nil {
		return err
	}
	return r.acceptProof(e, binding, now, wanted)
}

// checkMessage returns nil if a message can move the request at now: the messenger is checked first, then the phase, then the time. A
// proven request is final for all messages but "Not me".
// A message from before the request is none of an expired one either, so it gives no hint.
func (r *Request) checkMessage(e Evidence, now time.Time) error {
	switch {
	case !r.Permits(e.Method):
		return ErrWrongMethod
	case r.Phase == Verified:
		return ErrFinal
	case e.SentAt.Before(r.sentFrom()):
		return errBeforeRequest
	case r.Phase == Expired:
		return ErrFinal
	case !now.Before(r.EndsAt()), e.SentAt.After(r.EndsAt()):
		return ErrOutOfTime
	case r.IsProven():
		return ErrFinal
	default:
		return nil
	}
}

// BoundAt returns when the sender behind binding was last bound to the request; zero if never.
func (r *Request) BoundAt(binding string) time.Time {
	for _, c := range r.Contacts {
		if c.Binding == binding {
			return c.BoundAt
		}
	}
	return time.Time{}
}

// SharingBindings returns the bindings of the senders who were asked to share their contact. It is by these alone that a contact
// finds its request.
func (r *Request) SharingBindings() []string {
	var bindings []string
	for _, c := range r.Contacts {
		if c.Kind == ContactShare {
			bindings = append(bindings, c.Binding)
		}
	}
	return bindings
}

// Expire moves a lapsed pending request to EXPIRED, and makes its event due in the same write if that is wanted. Anything else is
// ErrUnchanged: a late worker changes nothing.
func (r *Request) Expire(now time.Time, wanted EventKinds) error {
	if r.Phase != Pending || now.Before(r.LapsesAt()) {
		return ErrUnchanged
	}
	r.Phase = Expired
	r.makeEventDue(now, wanted)
	return nil
}

// Redeliver makes the event of a final request due once more, or at once if it waits for its next attempt: it then has one attempt
// more, as the last one is not counted. If it is due already, an attempt may be under way, and another one follows that; see
// RecordAttempt. wish identifies the redelivery, which is granted once. It fails with ErrNoEvent for a pending request, and where the
// event is not wanted.
func (r *Request) Redeliver(wish string, now time.Time, wanted EventKinds) error {
	if !r.Phase.Final() || !wanted.Wants(r.Event()) {
		return ErrNoEvent
	}
	switch {
	case r.Redelivered == wish:
		return ErrUnchanged
	case !r.Delivery.Wanted():
		r.Delivery = Delivery{NextAttemptAt: now}
	case r.Delivery.NextAttemptAt.After(now):
		r.Delivery.NextAttemptAt, r.Delivery.Attempts = now, max(0, r.Delivery.Attempts-1)
	}
	r.Redelivered = wish
	return nil
}

// Attempt is the outcome of one delivery attempt.
type Attempt struct {
	// Number counts from 1: the attempt was made when Number-1 attempts were recorded.
	Number int
	// After is set for an extra attempt, which is not counted: Delivery.LastAttemptAt when it was planned.
	After time.Time
	Epoch int64
	// Redelivered identifies the last granted redelivery when the attempt was planned.
	Redelivered string
	// Event is the event that was sent. A later one replaces it, and has attempts of its own.
	Event      Event
	At         time.Time
	StatusCode int
	Reason     string
	// Delivered is set if the receiver accepted the event.
	Delivered bool
	// Next is when to try again; zero with Delivered false means that the schedule is exhausted.
	Next time.Time
	// ExtraFrom is the earliest time of the next extra attempt; zero for any time.
	ExtraFrom time.Time
}

// IsExtra reports whether the attempt is none of the schedule's.
func (a *Attempt) IsExtra() bool { return !a.After.IsZero() }

// RecordAttempt records the outcome of an attempt that was planned from this very state. If another worker claimed the request or
// recorded an attempt in the meantime it changes nothing, so the record stays exact. After an attempt during which a redelivery was granted
// the event is due again, however the attempt ended.
func (r *Request) RecordAttempt(a Attempt) error {
	if r.Epoch != a.Epoch {
		return ErrLeaseLost
	}
	a.At = TruncateTime(a.At) // as it is stored, so that a second record of the same attempt is known by it
	stale := r.Delivery.Attempts != a.Number-1
	if a.IsExtra() {
		stale = !r.Delivery.LastAttemptAt.Equal(a.After)
	}
	if !r.Delivery.Wanted() || stale || !r.Event().Equal(a.Event) {
		return ErrStaleAttempt
	}
	redelivered := r.Redelivered != a.Redelivered
	if redelivered && !a.At.After(r.Delivery.NextAttemptAt) {
		return ErrStaleAttempt // it ended before the redelivery began a schedule of its own
	}
	d := &r.Delivery
	d.LastAttemptAt, d.LastStatusCode, d.LastReason = a.At, a.StatusCode, a.Reason
	if !a.IsExtra() {
		d.Attempts = a.Number
	}
	if a.ExtraFrom.After(d.ExtraFrom) {
		d.ExtraFrom = a.ExtraFrom
	}
	d.NextAttemptAt = time.Time{}
	switch {
	case redelivered:
		d.NextAttemptAt = a.At
		if a.Delivered || a.Next.IsZero() {
			d.Attempts = 0 // the schedule has ended, and the redelivery has one of its own
		}
	case a.Delivered:
		d.DeliveredAt = a.At
	case a.Next.IsZero():
		d.ExhaustedAt = a.At
	default:
		d.NextAttemptAt = a.Next
	}
	return nil
}

// MaxAttempts is how many delivery attempts a request keeps. A store may keep fewer; see Request.TrimAttempts.
const MaxAttempts = 10

// PastAttempt is a delivery attempt that was recorded, of whichever event the request had then.
type PastAttempt struct {
	At    time.Time
	Event EventKind
	// StatusCode is zero if there was no response.
	StatusCode int
	// Reason is what Delivery.LastReason was; empty for an attempt that delivered the event.
	Reason string
}

// PastAttempts returns the recorded attempts, newest first. They outlive a redelivery, and a later event of the request.
func (r *Request) PastAttempts() []PastAttempt {
	var past []PastAttempt
	if last, ok := r.lastAttempt(); ok {
		past = append(past, last)
	}
	for _, a := range slices.Backward(r.EarlierAttempts) {
		past = append(past, a)
	}
	return past
}

// lastAttempt returns the last attempt of the present event; false if it had none.
func (r *Request) lastAttempt() (PastAttempt, bool) {
	d := &r.Delivery
	if d.LastAttemptAt.IsZero() {
		return PastAttempt{}, false
	}
	return PastAttempt{At: d.LastAttemptAt, Event: r.Event().Kind, StatusCode: d.LastStatusCode, Reason: d.LastReason}, true
}

// archiveAttempt keeps the last attempt of the state before, if the present one has replaced or dropped it.
func (r *Request) archiveAttempt(before *Request) {
	last, ok := before.lastAttempt()
	if ok && (!r.Delivery.LastAttemptAt.Equal(last.At) || r.Delivery.Attempts > before.Delivery.Attempts) {
		r.EarlierAttempts = append(slices.Clip(r.EarlierAttempts), last)
	}
	r.TrimAttempts(MaxAttempts)
}

// TrimAttempts drops the oldest attempts until no more than most are left, the last one included.
func (r *Request) TrimAttempts(most int) {
	if !r.Delivery.LastAttemptAt.IsZero() {
		most--
	}
	if extra := len(r.EarlierAttempts) - most; extra > 0 {
		r.EarlierAttempts = slices.Clone(r.EarlierAttempts[extra:])
	}
	if len(r.EarlierAttempts) == 0 {
		r.EarlierAttempts = nil // as it is read back
	}
}
