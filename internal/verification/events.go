package verification

import "time"

// EventKind is the kind of an event, spelled as webhooks name it.
type EventKind string

// The kinds of events.
const (
	// EventSuccess reports that a number was verified.
	EventSuccess EventKind = "verification.success"
	// EventExpired reports that a request ended without a verification: its time ran out, or its hint says why it ended before.
	EventExpired EventKind = "verification.expired"
	// EventDeclined reports that the owner of the number answered "Not me".
	EventDeclined EventKind = "verification.declined"
	// EventAttention reports what a pending request waits for, or why a message did not verify it.
	EventAttention EventKind = "verification.attention"
)

// EventKinds is a set of kinds, of requests and of those of test keys; its zero value holds none.
type EventKinds uint8

// NewEventKinds returns the set of some kinds. A kind that is unknown is not in it.
func NewEventKinds(kinds ...EventKind) EventKinds {
	var set EventKinds
	for _, kind := range kinds {
		set |= kind.kindBit()
	}
	return set
}

// Has reports whether the kind is in the set, for requests that are none of test keys.
func (s EventKinds) Has(kind EventKind) bool { return s&kind.kindBit() != 0 }

// testShift is where the bits of events of test keys begin.
const testShift = 4

// WithTests returns the set with the same kinds of test requests, whose events have a receiver of their own.
func (s EventKinds) WithTests() EventKinds { return s | s<<testShift }

// Wants reports whether an event is to be sent: one of a test key only if WithTests.
func (s EventKinds) Wants(e Event) bool {
	bit := e.Kind.kindBit()
	if e.Test {
		bit <<= testShift
	}
	return s&bit != 0
}

func (k EventKind) kindBit() EventKinds {
	switch k {
	case EventSuccess:
		return 1
	case EventExpired:
		return 2
	case EventDeclined:
		return 4
	case EventAttention:
		return 8
	default:
		return 0
	}
}

// Event is what a request has to report. It follows from the state alone, so a request has one at most: what happens later
// replaces it, and every attempt to deliver it sends the same.
type Event struct {
	Kind EventKind
	// Test is set for the event of a test key's request.
	Test bool
	// Hint is set for EventAttention, and for EventExpired and EventDeclined if there was one.
	Hint HintKind
	// At is when it happened.
	At time.Time
}

// Name returns the name of the event in webhooks. That of a test key has one of its own, so that no receiver takes it for real.
func (e Event) Name() string {
	if e.Test {
		return "test." + string(e.Kind)
	}
	return string(e.Kind)
}

// Equal reports whether both are the same event.
func (e Event) Equal(other Event) bool {
	return e.Kind == other.Kind && e.Test == other.Test && e.Hint == other.Hint && e.At.Equal(other.At)
}

// Event returns the event of the current state; its zero value for a pending request that has nothing to report.
func (r *Request) Event() Event {
	e := r.stateEvent()
	e.Test = r.Test && e.Kind != ""
	return e
}

func (r *Request) stateEvent() Event {
	r = r.withoutWrongNumber() // which anyone with the page can add
	last := r.lastHint()
	switch {
	case r.IsDelivery():
		return Event{}
	case r.Phase == Verified:
		return Event{Kind: EventSuccess, At: r.VerifiedAt}
	case r.Phase == Expired && last.Kind == HintDeclined:
		return Event{Kind: EventDeclined, Hint: last.Kind, At: last.At}
	case r.Phase == Expired && last.Kind.endsRequest():
		return Event{Kind: EventExpired, Hint: last.Kind, At: last.At}
	case r.Phase == Expired:
		// A hint from after the end is none of the event, which would change with it.
		return Event{Kind: EventExpired, Hint: r.hintBefore(r.EndsAt()).Kind, At: r.EndsAt()}
	case last.Kind != "":
		return Event{Kind: EventAttention, Hint: last.Kind, At: last.At}
	default:
		return Event{}
	}
}

// makeEventDue makes the event of the current state due, if its kind is wanted. Any other ends, delivered or not: one about a pending
// request would be wrong after its end.
func (r *Request) makeEventDue(now time.Time, wanted EventKinds) {
	r.Delivery = Delivery{}
	if wanted.Wants(r.Event()) {
		r.Delivery.NextAttemptAt = now
	}
}
