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

// durable: whoever was told that a verification began finds it stored, and at the end it is VERIFIED or EXPIRED. One that
// the clean-up deleted had reached that before, with nothing left to send.
func durable(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1", Holds: "every acknowledged request is stored and ends"}
	for _, a := range e.Acks {
		v.Looked++
		last, ok := e.last(a.ID)
		switch {
		case !ok:
			v.violatedAboutf(e, a.ID, a.At, "%s was acknowledged at %s and never stored", a.ID, stamp(a.At))
		case e.committedAt(a.ID, pending).After(a.At):
			v.violatedAboutf(e, a.ID, a.At, "%s was acknowledged at %s and committed after that", a.ID, stamp(a.At))
		case last.Op == ledger.Deleted && last.Phase == pending && last.At.Before(last.Expires):
			v.violatedf("%s was deleted at %s while it was pending", a.ID, stamp(last.At))
		case last.Op == ledger.Deleted && last.Phase == verified && !last.Delivered && !last.Exhausted:
			v.violatedf("%s was deleted at %s with its event unsent", a.ID, stamp(last.At))
		case last.Op != ledger.Deleted && last.Phase == pending:
			v.violatedf("%s is pending still; it expires at %s", a.ID, stamp(last.Expires))
		}
	}
	return v
}

// oneKey: an Idempotency-Key leads to one request, however often it is presented, which is told alike each time, and a request
// has one key.
func oneKey(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1k", Holds: "an Idempotency-Key has one request, told alike each time"}
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
			v.violatedAboutf(e, a.ID, a.At, "%s was acknowledged at %s otherwise than at %s", a.ID, stamp(a.At), stamp(c.At))
		}
		ids[a.Key], keys[a.ID] = a.ID, a.Key
	}
	return v
}

// proven: a proof that a platform was told to be taken in time verifies its request, and nothing else verifies any: no
// message of somebody else, none with a forged signature, and no silence. What is told of a verification, wherever, is what
// its user did.
func proven(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1p", Holds: "what was proven and acknowledged in time is VERIFIED as its user did it, and nothing else"}
	for _, a := range e.Acks {
		if last, ok := e.last(a.ID); ok && a.Fate != ledger.Proven && last.Phase == verified {
			v.violatedAboutf(e, a.ID, last.Verified, "%s is VERIFIED and was %s", a.ID, a.Fate)
		}
	}
	for _, in := range e.Inbound {
		v.Looked++
		if !in.Signed && in.Answer >= 200 && in.Answer <= 299 {
			v.violatedf("a webhook with a wrong signature was acknowledged at %s", stamp(in.At))
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
		if s.Status == absent {
			continue
		}
		judgeFacts(e, v, s.ID, s.Status, inStatus, s.At, &s.Facts)
		if c, known := e.claims[s.ID]; known && !sameInstant(s.Expires, c.Expires) {
			v.violatedAboutf(e, s.ID, s.At, "%s was said to expire at %s, and its client was told %s", s.ID, stamp(s.Expires), stamp(c.Expires))
		}
	}
	return v
}

// judgeProof judges what became of a proof that was acknowledged.
func judgeProof(e *Evidence, v *Verdict, id string) {
	c := e.claims[id]
	at := c.acknowledged()
	if at.IsZero() {
		return
	}
	last, ok := e.last(id)
	switch {
	case !ok || last.Phase != verified:
		v.violatedAboutf(e, id, at, "the proof of %s was acknowledged at %s, and it is %q", id, stamp(at), last.Phase)
	case e.committedAt(id, verified).After(at):
		v.violatedAboutf(e, id, at, "the proof of %s was acknowledged at %s, before it was committed", id, stamp(at))
	}
}

// judgeStates judges what is stored of every request.
func judgeStates(e *Evidence, v *Verdict) {
	for _, id := range e.ids() {
		c, known := e.claims[id]
		for i := range e.histories[id] {
			s := &e.histories[id][i]
			judgeFacts(e, v, id, s.Phase, inStore, s.At, &s.Facts)
			if known && !sameInstant(s.Expires, c.Expires) {
				v.violatedAboutf(e, id, s.At, "%s is stored to expire at %s, and its client was told %s",
					id, stamp(s.Expires), stamp(c.Expires))
			}
		}
	}
}

// sameInstant compares times of places some of which tell no more than milliseconds.
func sameInstant(a, b time.Time) bool {
	return a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond))
}

// The places that tell of a request.
const (
	inEvent  = "event"
	inStatus = "status" // tells no messenger
	inStore  = "stored state"
)

// judgeFacts judges what one place tells of a request. Nobody knows of one whose init was never answered, so nobody can
// have proven it.
func judgeFacts(e *Evidence, v *Verdict, id, phase, where string, at time.Time, f *ledger.Facts) {
	v.Looked++
	c, known := e.claims[id]
	if !known {
		if phase == verified {
			v.violatedAboutf(e, id, at, "a %s at %s has %s as VERIFIED, which no client was told of", where, stamp(at), id)
		}
		return
	}
	wrong := c.contradiction(f, phase, where)
	if stored := e.verifiedAt(id); wrong == "" && phase == verified && !sameInstant(f.Verified, stored) {
		wrong = "it is stored as VERIFIED at " + stamp(stored)
	}
	if wrong != "" {
		v.violatedAboutf(e, id, at, "a %s at %s says of %s: %s, %s, %q, VERIFIED at %s from %s; %s",
			where, stamp(at), id, f.Phone, f.Method, f.Assurance, stamp(f.Verified), f.Actual, wrong)
	}
}

// final: VERIFIED and EXPIRED are each reached once, and nothing comes after them.
func final(e *Evidence) *Verdict {
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
				v.violatedf("%s comes back at %s after it was deleted", id, stamp(after.At))
			case before.Phase != pending && after.Phase != before.Phase:
				v.violatedf("%s was %s and became %s at %s", id, before.Phase, after.Phase, stamp(after.At))
			case after.Op != ledger.Deleted && after.Phase == expired && before.Phase == pending && after.At.Before(after.Expires):
				v.violatedf("%s expired at %s, before its time %s", id, stamp(after.At), stamp(after.Expires))
			case after.Phase == verified && before.Phase == pending && after.At.After(after.Expires.Add(commitLag)):
				v.violatedf("%s was verified at %s, after its time %s", id, stamp(after.At), stamp(after.Expires))
			}
		}
	}
	return v
}

// commitLag is what may pass on a busy machine between the decision, made in time, and the commit that the witness saw.
const commitLag = 10 * time.Second

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000000") }
