package verification

import (
	"context"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// Store keeps the requests of one project. Acknowledged means durable: a method that returns without an error has
// committed. Every look-up is by key or index.
//
// A backend that cannot answer is reported as Unavailable, never as a stale or empty answer. All methods stop when ctx
// does. Times are whole microseconds in UTC; what is finer is cut off. internal/store/storetest is this contract as tests.
type Store interface {
	// Create stores n as a pending request, stamped by the store's clock, if limits admit it. If a request with that
	// id exists, nothing is checked or written and the stored one is returned with Existing set. Of many concurrent
	// creates of one id exactly one is not Existing. Refusals: CodeRateLimited and CodeCodesLimited (if several rates refuse,
	// by the one with the longest wait) and CodeTooManyStored, each with RetryAfter.
	Create(ctx context.Context, n New, limits Limits) (Created, error)

	// Read returns the current state: every write acknowledged before the call, at any replica, is in it.
	// ErrNotFound if there is none.
	Read(ctx context.Context, id string) (Request, error)

	// ReadFinal returns what Read does, but may answer a final request from this replica's memory, without a round trip: its
	// phase is current, its Delivery may be behind. One whose code has no result yet (Request.IsCodeOpen) is read. It is for
	// the questions of clients; to act on Delivery, Read it.
	ReadFinal(ctx context.Context, id string) (Request, error)

	// ReadCached returns what Read does, but may answer with the last state that this replica learned of, without a round
	// trip: everything in it may be behind. It is for deciding whether to try an Update, which checks the current state.
	ReadCached(ctx context.Context, id string) (Request, error)

	// Update applies mutate to the current state (Request.Apply) and stores the result by compare-and-set: of concurrent
	// updates each sees the other's result, so conflicts are retried until ctx ends. mutate may run more than once. If it
	// returns ErrUnchanged, nothing is written and the current state is returned; any other error is returned as it is, with
	// the current state and nothing written. ErrContent if it changes what Create decided, ErrNotFound if there is no such
	// request.
	Update(ctx context.Context, id string, mutate Mutation) (Request, error)

	// Delete removes the request if it is still in the state of that Version, else ErrConflict.
	// A request that is already gone is no error.
	Delete(ctx context.Context, id, version string) error

	// Awaiting returns the request that the sender behind binding was bound to last, at any replica.
	// ErrNotFound if there is none. It may be final by now: an earlier binding to a request that was not proven then never comes
	// back, not even when the request of the later one is deleted.
	Awaiting(ctx context.Context, binding string) (Request, error)

	// Subscribe returns a channel that gets a value, coalesced, after each change of the request that this replica
	// learns of, and a function that ends the subscription.
	Subscribe(id string) (changes <-chan struct{}, cancel func())

	// Ready returns nil if the backend answers.
	Ready(ctx context.Context) error

	Lister
}

// Queue hands out the requests that are due, for stores whose workers compete. A claim is fenced by Request.Epoch.
type Queue interface {
	// Claim returns up to limit requests that need a step at now, the longest overdue first, and leases each to the
	// caller for lease: no other call returns it before that, unless a write to it ends the lease. Paused events are not
	// claimed.
	Claim(ctx context.Context, p Policy, limit int, lease time.Duration) ([]Request, error)

	// Release ends the leases of claims, which are epochs by request id, except of requests that were claimed again since. Other workers can
	// claim them at once.
	Release(ctx context.Context, claims map[string]int64) error

	// Sweep expires up to limit requests that have lapsed and deletes up to limit whose retention is over, as a worker
	// would that claimed them now. It does nothing if that is no cheaper than claims.
	Sweep(ctx context.Context, p Policy, limit int) (Swept, error)

	// Due returns a channel that gets a value, coalesced, after this replica made an event due, so that it is claimed before
	// the next poll; nil if claims are found by polling alone.
	Due() <-chan struct{}
}

// Counter is a store that counts what it holds, for metrics and conditions. Counting is cheap: it reads memory, or a bounded range of an
// index, and never calls the API server.
type Counter interface {
	// Stored returns how many requests are stored, as far as this replica knows. A store may stop counting a state at
	// MostCounted.
	Stored(ctx context.Context) (Stored, error)

	// Activity returns what became of the stored requests of a method since a time of the store clock, as far as this replica knows.
	Activity(ctx context.Context, m Method, since time.Time) (Activity, error)

	// CodesStarted returns how many requests that deliver a code for a method each API key of mode Live started since a time of the store
	// clock, as far as this replica knows. A store may stop at MostCodesCounted in all.
	CodesStarted(ctx context.Context, m Method, since time.Time) (map[string]int, error)
}

// MostCounted is where a store may stop counting the requests of one state.
const MostCounted = 10_000

// MostCodesCounted is half of the most codes that a project may send in a day, which is what CodesLimited is found by.
const MostCodesCounted = 500_000

// Stored counts stored requests by what they wait for.
type Stored struct {
	// Pending ones wait for a message, or to be expired.
	Pending int
	// Undelivered ones have an event, and an attempt to deliver it is still to be made.
	Undelivered int
	// Finished ones wait for the end of their retention.
	Finished int
}

// Count adds a request.
func (s *Stored) Count(r *Request) {
	switch {
	case r.Delivery.Wanted():
		s.Undelivered++
	case r.Phase == Pending:
		s.Pending++
	default:
		s.Finished++
	}
}

// Swept is how many requests a sweep expired and deleted.
type Swept struct {
	Expired, Deleted int
}

// New is a request to be created.
type New struct {
	ID           string
	Phone        phone.Number
	Method       Method
	OtherMethods []Method
	TTL          time.Duration
	KeyName      string
	BodyHash     string
	// Test is set for the request of a test key. It counts by its key alone, and has room of its own; see Limits.MaxStored.
	Test bool
	// DisplayName is the project's name in the prepared text.
	DisplayName string
	ClientData
	Terms Terms
	// Subject is a keyed hash of the party that the client acts for; empty if it names none, or no limit counts by it.
	Subject string
	// Creator is 16 random lower-case hexadecimal digits where a code is delivered, and empty otherwise. It distinguishes two creations of
	// one id in the same microsecond, of which only the stored one may send.
	Creator string
	// Fresh is set if ID was drawn at random just now. A store may then learn only from the insertion that it exists, after it
	// has checked the limits.
	Fresh bool
}

// PrefixRate is a Rate for all numbers that begin with the same digits.
type PrefixRate struct {
	Rate
	// Digits is how many of them decide, those of the country code included.
	Digits int
}

// PrefixGroup is what creations of one API key for numbers of one range count in. Keys do not share a range: one key's
// flood would shut it to all of them. Manual requests have no key, and count by themselves.
type PrefixGroup struct{ KeyName, Prefix string }

// Group returns what n is counted by; zero if the rate does not limit.
func (r PrefixRate) Group(n New) PrefixGroup {
	if !r.Limited() || n.Test {
		return PrefixGroup{}
	}
	return PrefixGroup{KeyName: n.KeyName, Prefix: NumberPrefix(n.Phone, r.Digits)}
}

// NumberPrefix returns the first digits of n's canonical form, or all where it has fewer.
func NumberPrefix(n phone.Number, digits int) string {
	all := phone.Canonical(n).Digits()
	return all[:min(digits, len(all))]
}

// Limits are those of a project.
type Limits struct {
	// PerKey counts by New.KeyName, PerPhoneNumber by the canonical form of New.Phone.
	PerKey         Rate
	PerPhoneNumber Rate
	// PerPrefix counts by New.KeyName and the beginning of the canonical form of New.Phone.
	PerPrefix PrefixRate
	// PerSubject counts by New.Subject. It does not limit a creation without one.
	PerSubject Rate
	// Codes and GatewayCodes limit requests that deliver a code through WhatsApp and through Telegram, in all and by New.KeyName, beside
	// the rates above and CodeNumberRates; zero if the project sends no codes there.
	Codes, GatewayCodes CodeLimits
	// DeclineCooldown is how long no request starts for a number, in its canonical form, whose owner answered "Not me" (see
	// Request.DeclinedAt); zero for no such time.
	DeclineCooldown time.Duration
	// MaxStored caps the stored requests; over it the oldest evictable ones go, then creation is refused. 0: no cap.
	// A store in a database needs none and does not heed it. Requests of test keys and others are counted apart, and neither evicts
	// the other.
	MaxStored int
	// KeepLapsed is set if the end of a request is an event, so that a full store may not delete one that has lapsed before it is
	// expired.
	KeepLapsed bool
}

// Created is the result of Store.Create.
type Created struct {
	Request Request
	// Existing is set if the request was already stored.
	Existing bool
	// Key is how much of Limits.PerKey is left; zero where Existing or unlimited.
	Key Quota
}

// Quota is what is left of a rate.
type Quota struct {
	Remaining int
	// Reset is how long until one more request is admitted, if Remaining is zero, and until the oldest counted one
	// leaves the window otherwise.
	Reset time.Duration
}

// The names of the limits, as errors and response headers call them.
const (
	LimitPerKey         = "key"
	LimitPerPhoneNumber = "phoneNumber"
	LimitPerPrefix      = "prefix"
	LimitPerSubject     = "subject"
	LimitDeclined       = "declined"
	LimitCodes          = "codes"
	LimitCodeNumber     = "codesPhoneNumber"
)

// Waits are how long each rate asks a creation to wait; zero or less where it admits the creation.
type Waits struct {
	Key, PhoneNumber, Prefix, Subject, Declined time.Duration
	// Codes and CodeNumber are those of requests that deliver a code.
	Codes, CodeNumber time.Duration
}

// Refusal returns the refusal by the rate with the longest wait, because a retry after a shorter one would be refused
// again; nil if every rate admits the creation.
func (w Waits) Refusal() error {
	limit, longest := LimitPerKey, w.Key
	for _, other := range [...]struct {
		limit string
		wait  time.Duration
	}{
		{LimitPerPhoneNumber, w.PhoneNumber}, {LimitPerPrefix, w.Prefix}, {LimitPerSubject, w.Subject}, {LimitDeclined, w.Declined},
		{LimitCodes, w.Codes}, {LimitCodeNumber, w.CodeNumber},
	} {
		if other.wait > longest {
			limit, longest = other.limit, other.wait
		}
	}
	if longest <= 0 {
		return nil
	}
	if limit == LimitCodes || limit == LimitCodeNumber {
		return CodesLimited(limit, longest)
	}
	return RateLimited(limit, longest)
}

// RateLimited returns the refusal of a creation by the named limit.
func RateLimited(limit string, retryAfter time.Duration) error {
	refusal := &Error{Code: CodeRateLimited, Limit: limit, RetryAfter: retryAfter}
	switch limit {
	case LimitPerPhoneNumber:
		refusal.Field = "phoneNumber"
		refusal.Message = "Too many verifications were started for this phone number. Wait for the time in Retry-After."
	case LimitPerPrefix:
		refusal.Field = "phoneNumber"
		refusal.Message = "Too many verifications were started for phone numbers that begin like this one. Wait for the time in Retry-After."
	case LimitPerSubject:
		refusal.Field = "subject"
		refusal.Message = "Too many verifications were started for this subject. Wait for the time in Retry-After."
	case LimitDeclined:
		refusal.Field = "phoneNumber"
		refusal.Message = "The owner of this phone number declined a verification. Wait for the time in Retry-After."
	default:
		refusal.Message = "This API key started too many verifications. Wait for the time in Retry-After."
	}
	return refusal
}

// TooManyUnknown returns the refusal of a look-up of something unknown; cause names the bound that it exceeds.
func TooManyUnknown(cause error) error {
	return &Error{
		Code: CodeRateLimited, RetryAfter: time.Second, Err: cause,
		Message: "Too many unknown ids were asked for. Ask only for ids that init answered, and wait for the time in Retry-After.",
	}
}

// Bounds of Retry-After for a full store: a request may end at any moment, which cannot be predicted, and more than one try
// per second does not help.
const (
	minRoomWait = time.Second
	maxRoomWait = time.Minute
)

// TooManyStored returns the refusal of a creation by Limits.MaxStored. untilRoom is how long it is until a request can be
// evicted, as far as that is known: negative if it is not.
func TooManyStored(untilRoom time.Duration) error {
	if untilRoom < 0 {
		untilRoom = maxRoomWait
	}
	return &Error{
		Code: CodeTooManyStored, RetryAfter: min(max(untilRoom, minRoomWait), maxRoomWait),
		Message: "The project holds as many unfinished verifications as it may. Wait for the time in Retry-After.",
	}
}
