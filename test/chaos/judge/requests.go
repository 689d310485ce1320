package judge

import (
	"maps"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

var (
	pending  = string(verification.Pending)
	verified = string(verification.Verified)
	expired  = string(verification.Expired)
)

// judgeDurable checks I1: an acknowledged request is stored, and at the end it is VERIFIED or EXPIRED. A deleted one
// had reached that before, with nothing left to send.
func judgeDurable(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1", Holds: "every acknowledged request is stored and ends"}
	for _, a := range e.Acks {
		v.Looked++
		last, ok := e.lastState(a.ID)
		switch {
		case !ok:
			v.violatedAboutf(e, a.ID, a.At, "%s was acknowledged at %s but never stored", a.ID, formatTime(a.At))
		case e.committedAt(a.ID, pending).After(a.At):
			v.violatedAboutf(e, a.ID, a.At, "%s was acknowledged at %s but committed after that", a.ID, formatTime(a.At))
		case last.Op == ledger.Deleted && last.Phase == pending && last.At.Before(last.Expires):
			v.violatedf("%s was deleted at %s while it was pending", a.ID, formatTime(last.At))
		case last.Op == ledger.Deleted && last.Phase == verified && !last.Delivered && !last.Exhausted:
			v.violatedf("%s was deleted at %s with its event unsent", a.ID, formatTime(last.At))
		case last.Op != ledger.Deleted && last.Phase == pending:
			v.violatedf("%s is still pending; it expires at %s", a.ID, formatTime(last.Expires))
		}
	}
	return v
}

// judgeOneKey checks I1k: an Idempotency-Key has one request, which is returned the same each time, and a request has
// one key.
func judgeOneKey(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1k", Holds: "an Idempotency-Key has one request, returned the same each time"}
	ids, keys := map[string]string{}, map[string]string{}
	for _, a := range e.Acks {
		v.Looked++
		if id, known := ids[a.Key]; known && id != a.ID {
			v.violatedf("key %s was answered with %s and %s", a.Key, id, a.ID)
		}
		if key, known := keys[a.ID]; known && key != a.Key {
			v.violatedf("%s was the answer to keys %s and %s", a.ID, key, a.Key)
		}
		if c := e.claims[a.ID]; a.Code != c.Code || a.Phone != c.Phone || a.Method != c.Method || !a.Expires.Equal(c.Expires) {
			v.violatedAboutf(e, a.ID, a.At, "%s was acknowledged at %s differently from %s", a.ID, formatTime(a.At), formatTime(c.At))
		}
		ids[a.Key], keys[a.ID] = a.ID, a.Key
	}
	return v
}

// judgeProven checks I1p: a proof that was acknowledged in time verifies its request, and nothing else does: no message
// from another sender, no forged signature and no silence. What any place has of a verification is what its user did.
func judgeProven(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1p", Holds: "what was proven and acknowledged in time is VERIFIED as its user did it, and nothing else"}
	for _, a := range e.Acks {
		if last, ok := e.lastState(a.ID); ok && a.Fate != ledger.Proven && last.Phase == verified {
			v.violatedAboutf(e, a.ID, last.Verified, "%s is VERIFIED, but its fate was %s", a.ID, a.Fate)
		}
	}
	for _, in := range e.Inbound {
		v.Looked++
		if !in.Signed && in.Answer >= 200 && in.Answer <= 299 {
			v.violatedf("a webhook with a wrong signature was acknowledged at %s", formatTime(in.At))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.claims)) {
		judgeProof(e, v, id)
	}
	judgeStates(e, v)
	for i := range e.Events {
		d := &e.Events[i]
		judgeFacts(e, v, d.Request, verified, inEvent, d.At, &d.Facts)
	}
	for i := range e.Statuses {
		s := &e.Statuses[i]
		if s.Status == statusNotFound {
			continue
		}
		judgeFacts(e, v, s.ID, s.Status, inStatus, s.At, &s.Facts)
		if c, known := e.claims[s.ID]; known && !sameInstant(s.Expires, c.Expires) && !sameInstant(s.Expires, c.endsAt()) {
			v.violatedAboutf(e, s.ID, s.At, "the status of %s has the expiry %s, but its client received %s",
				s.ID, formatTime(s.Expires), formatTime(c.Expires))
		}
	}
	return v
}

// judgeProof checks that an acknowledged proof has verified its request.
func judgeProof(e *Evidence, v *Verdict, id string) {
	c := e.claims[id]
	at := c.acknowledgedAt()
	if at.IsZero() {
		return
	}
	last, ok := e.lastState(id)
	switch {
	case !ok || last.Phase != verified:
		v.violatedAboutf(e, id, at, "the proof of %s was acknowledged at %s, but it is %q", id, formatTime(at), last.Phase)
	case e.committedAt(id, verified).After(at):
		v.violatedAboutf(e, id, at, "the proof of %s was acknowledged at %s, before it was committed", id, formatTime(at))
	}
}

// judgeStates checks the stored states of every request.
func judgeStates(e *Evidence, v *Verdict) {
	for _, id := range e.requestIDs() {
		c, known := e.claims[id]
		for i := range e.histories[id] {
			s := &e.histories[id][i]
			judgeFacts(e, v, id, s.Phase, inStore, s.At, &s.Facts)
			if known && !sameInstant(s.Expires, c.Expires) {
				v.violatedAboutf(e, id, s.At, "%s is stored with the expiry %s, but its client received %s",
					id, formatTime(s.Expires), formatTime(c.Expires))
			}
		}
	}
}

// sameInstant compares times to the millisecond, because some places have no finer ones.
func sameInstant(a, b time.Time) bool {
	return a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond))
}

// The places that contain facts about a request.
const (
	inEvent  = "event"
	inStatus = "status" // has no messenger
	inStore  = "stored state"
)

// judgeFacts checks the facts about a request at one place. No client knows a request whose init was never answered, so
// it cannot have been proven.
func judgeFacts(e *Evidence, v *Verdict, id, phase, where string, at time.Time, f *ledger.Facts) {
	v.Looked++
	c, known := e.claims[id]
	if !known {
		if phase == verified {
			v.violatedAboutf(e, id, at, "a %s at %s has %s as VERIFIED, which no client knows", where, formatTime(at), id)
		}
		return
	}
	wrong := c.findContradiction(f, phase, where)
	if stored := e.verifiedAt(id); wrong == "" && phase == verified && !sameInstant(f.Verified, stored) {
		wrong = "it is stored as VERIFIED at " + formatTime(stored)
	}
	if wrong != "" {
		v.violatedAboutf(e, id, at, "a %s at %s has for %s: %s, %s, %q, VERIFIED at %s from %s; %s",
			where, formatTime(at), id, f.Phone, f.Method, f.Assurance, formatTime(f.Verified), f.Actual, wrong)
	}
}

// judgeFinal checks I2: VERIFIED and EXPIRED are reached once, and nothing comes after them.
func judgeFinal(e *Evidence) *Verdict {
	v := &Verdict{Name: "I2", Holds: "one final state for each request, reached once"}
	for id, history := range e.histories {
		v.Looked++
		if first := history[0]; first.Op != ledger.Created || first.Phase != pending {
			v.violatedf("%s begins with %s, %s", id, first.Op, first.Phase)
		}
		for i := 1; i < len(history); i++ {
			before, after := history[i-1], history[i]
			switch {
			case before.Op == ledger.Deleted:
				v.violatedf("%s comes back at %s after it was deleted", id, formatTime(after.At))
			case before.Phase != pending && after.Phase != before.Phase:
				v.violatedf("%s was %s and became %s at %s", id, before.Phase, after.Phase, formatTime(after.At))
			case after.Op != ledger.Deleted && after.Phase == expired && before.Phase == pending && after.At.Before(after.Expires) &&
				e.claims[id].Fate != ledger.WrongCodes:
				v.violatedf("%s expired at %s, before its time %s", id, formatTime(after.At), formatTime(after.Expires))
			case after.Phase == verified && before.Phase == pending && after.At.After(e.endOf(id, &after).Add(commitLag)):
				v.violatedf("%s was verified at %s, after its time %s", id, formatTime(after.At), formatTime(after.Expires))
			}
		}
	}
	return v
}

// endOf returns the latest time at which a request may be verified.
func (e *Evidence) endOf(id string, c *ledger.Change) time.Time {
	if claim, known := e.claims[id]; known {
		return claim.endsAt()
	}
	return c.Expires
}

// commitLag is the most time on a busy machine between the decision, made in time, and the commit that the witness saw.
const commitLag = 10 * time.Second

func formatTime(t time.Time) string { return t.UTC().Format("15:04:05.000000") }
