package verification

import "time"

// EventPolicy is whether events are sent at the moment.
type EventPolicy int

const (
	// EventsOff means that the project has no webhook. Events that are still due are kept for EventLife, in case one is set
	// again.
	EventsOff EventPolicy = iota
	// EventsOn means that events are sent when they are due.
	EventsOn
	// EventsPaused means that a secret of the webhook cannot be read. Nothing is sent, no attempt is used up, nothing is lost.
	EventsPaused
)

// PausedRecheck is how often a paused delivery is reconsidered; a change of the settings does so at once.
const PausedRecheck = 30 * time.Second

// EventLife is how long an event waits for a webhook that was removed: as long as one that fails is retried.
const EventLife = 80 * time.Hour

// Policy holds the settings of a project that decide about the next step of a request.
type Policy struct {
	// Retention is how long a request is kept after it is finished and its code has rested. Deliveries are kept for CodeKept.
	Retention time.Duration
	Events    EventPolicy
	// TestEvents is the same of the events of test keys.
	TestEvents EventPolicy
	// Kinds are the events that a step of the loop makes due.
	Kinds EventKinds
	// Repaired is when the receiver of all events but those of test keys was repaired last; zero for never. Each event that waits since
	// before has one extra attempt then, beside its schedule.
	Repaired time.Time
}

const (
	// ExtraGap is the least time between two extra attempts of an event.
	ExtraGap = time.Hour
	// ExtraLead is how much earlier than the next attempt of the schedule an extra one must be.
	ExtraLead = time.Minute
)

// attemptAt returns when the event of a request is to be sent: at the time of its schedule, or before that by an extra attempt. One
// that had to wait, as for a slot, until shortly before the schedule's own is not made.
func (p Policy) attemptAt(r *Request, now time.Time) time.Time {
	d, extra := &r.Delivery, p.Repaired
	if d.ExtraFrom.After(extra) {
		extra = d.ExtraFrom
	}
	if r.Test || d.LastAttemptAt.IsZero() || !d.LastAttemptAt.Before(p.Repaired) ||
		!extra.Add(ExtraLead).Before(d.NextAttemptAt) || !now.Add(ExtraLead).Before(d.NextAttemptAt) {
		return d.NextAttemptAt
	}
	return extra
}

// eventsOf returns whether the events of a request are sent.
func (p Policy) eventsOf(r *Request) EventPolicy {
	if r.Test {
		return p.TestEvents
	}
	return p.Events
}

// Step is the next thing to do for a request.
type Step int

// The steps, in the order of a request's life.
const (
	StepWait Step = iota
	StepExpire
	StepDeliver
	StepDelete
	// StepPlay does to a request of a test key what a message does to others.
	StepPlay
)

// String returns the step's name for logs.
func (s Step) String() string { return [...]string{"wait", "expire", "deliver", "delete", "play"}[s] }

// Action is a step, and for StepWait the exact time to call Next again.
type Action struct {
	Step Step
	At   time.Time
}

// Next returns the one step that a request needs at now. A loop takes it, persists it, and calls Next again. No other code decides
// this.
func Next(r *Request, now time.Time, p Policy) Action {
	switch {
	case r.Phase == Pending:
		return nextOfPending(r, now, p)
	case r.Delivery.Wanted():
		return nextDelivery(r, now, p)
	case r.IsDelivery():
		return dueAt(StepDelete, r.CreatedAt.Add(CodeKept), now)
	default:
		return dueAt(StepDelete, r.settledAt().Add(p.Retention), now)
	}
}

// nextOfPending returns the expiry, or what is due before it: the outcome of a test number, or the delivery of an event.
func nextOfPending(r *Request, now time.Time, p Policy) Action {
	expiry := r.LapsesAt()
	if at := r.PlaysAt(); !at.IsZero() && at.Before(expiry) && now.Before(expiry) {
		return dueAt(StepPlay, at, now)
	}
	if r.Delivery.Wanted() && p.eventsOf(r) == EventsOn && r.Delivery.NextAttemptAt.Before(expiry) && now.Before(expiry) {
		return dueAt(StepDeliver, p.attemptAt(r, now), now)
	}
	return dueAt(StepExpire, expiry, now)
}

func nextDelivery(r *Request, now time.Time, p Policy) Action {
	switch p.eventsOf(r) {
	case EventsOn:
		return dueAt(StepDeliver, p.attemptAt(r, now), now)
	case EventsPaused:
		return Action{Step: StepWait, At: now.Add(PausedRecheck)}
	default:
		return dueAt(StepDelete, r.endedAt().Add(max(p.Retention, EventLife)), now)
	}
}

// endedAt returns when a final request became final.
func (r *Request) endedAt() time.Time {
	if r.Phase == Verified {
		return r.VerifiedAt
	}
	return r.ExpiresAt
}

// dueAt returns step if its time has come, else StepWait until then.
func dueAt(step Step, at, now time.Time) Action {
	if now.Before(at) {
		return Action{Step: StepWait, At: at}
	}
	return Action{Step: step}
}
