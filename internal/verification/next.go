package verification

import "time"

// EventPolicy says what may happen to events at the moment.
type EventPolicy int

const (
	// EventsOff means that the project has no webhook. Events that are still due are kept for EventLife, in case it is
	// set again.
	EventsOff EventPolicy = iota
	// EventsOn means that events are sent when they are due.
	EventsOn
	// EventsPaused means that a secret which a webhook needs cannot be read. Nothing is sent, no attempt is used, nothing is lost.
	EventsPaused
)

// PausedRecheck is how often a paused delivery asks whether it may go on; a settings change asks at once.
const PausedRecheck = 30 * time.Second

// EventLife is how long an event waits for a webhook that was taken away: as long as one that fails is tried.
const EventLife = 80 * time.Hour

// Policy is what of a project's settings decides about the next step of a request.
type Policy struct {
	// Retention is how long a request is kept after it needs nothing more and its code has rested.
	Retention time.Duration
	Events    EventPolicy
}

// Step is what a request needs.
type Step int

// The steps, in the order of a request's life.
const (
	StepWait Step = iota
	StepExpire
	StepDeliver
	StepDelete
)

// String returns the step's name for logs.
func (s Step) String() string { return [...]string{"wait", "expire", "deliver", "delete"}[s] }

// Action is a step, and for StepWait the exact time to ask again.
type Action struct {
	Step Step
	At   time.Time
}

// Next says what a request needs at now: exactly one step. A loop does it, persists it, and asks again. It is the only
// place that decides this.
func Next(r *Request, now time.Time, p Policy) Action {
	switch {
	case r.Phase == Pending:
		return dueAt(StepExpire, r.ExpiresAt.Add(ExpiryGrace), now)
	case r.Phase == Verified && r.Delivery.Wanted():
		return nextDelivery(r, now, p)
	default:
		return dueAt(StepDelete, r.settledAt().Add(p.Retention), now)
	}
}

func nextDelivery(r *Request, now time.Time, p Policy) Action {
	switch p.Events {
	case EventsOn:
		return dueAt(StepDeliver, r.Delivery.NextAttemptAt, now)
	case EventsPaused:
		return Action{Step: StepWait, At: now.Add(PausedRecheck)}
	default:
		return dueAt(StepDelete, r.VerifiedAt.Add(max(p.Retention, EventLife)), now)
	}
}

// dueAt returns step if its time has come, else how long to wait for it.
func dueAt(step Step, at, now time.Time) Action {
	if now.Before(at) {
		return Action{Step: StepWait, At: at}
	}
	return Action{Step: step}
}
