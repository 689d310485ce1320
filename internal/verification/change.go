package verification

import (
	"fmt"
	"slices"
	"time"
)

// Mutation decides the next state of a request at now, by the clock that decides for its store. It changes nothing but its
// argument. ErrUnchanged means that there is nothing to write.
type Mutation = func(r *Request, now time.Time) error

// errImmutable refuses a mutation of what a creation decided.
var errImmutable = fmt.Errorf("a mutation changed what the request was created with: %w", ErrContent)

// TruncateTime returns t as precise as every store keeps it: whole microseconds, in UTC.
func TruncateTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// NewRequest returns the first state of the request that n creates at now. Its Version is the store's to set.
func NewRequest(n New, now time.Time) Request {
	return Request{
		ID: n.ID, Phone: n.Phone, Method: n.Method, OtherMethods: slices.Clone(n.OtherMethods),
		CreatedAt: TruncateTime(now), ExpiresAt: TruncateTime(now.Add(n.TTL)),
		KeyName: n.KeyName, BodyHash: n.BodyHash, Test: n.Test, DisplayName: n.DisplayName, ClientData: n.cloneData(), Terms: n.Terms,
		Phase: Pending,
	}
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
