package judge

import (
	"net/http"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// claim is what a client requested and what its user did.
type claim struct {
	ledger.Ack

	proofs []proof
	// confirms are the session codes that were entered.
	confirms []ledger.Confirm
}

// proof is a signed message that completes the proof of a request, as posted once.
type proof struct {
	ledger.Message

	asked, at time.Time
	answer    int
}

// claimsOf collects what was done for each request, in order of time.
func (e *Evidence) claimsOf() map[string]claim {
	claims := map[string]claim{}
	for _, a := range e.Acks {
		if _, known := claims[a.ID]; !known {
			claims[a.ID] = claim{Ack: a}
		}
	}
	for _, in := range e.Inbound {
		for _, m := range in.Messages {
			if c, known := claims[m.Request]; known && in.Signed && m.Proves {
				c.proofs = append(c.proofs, proof{m, in.Asked, in.At, in.Answer})
				claims[m.Request] = c
			}
		}
	}
	for _, code := range e.Codes {
		if c, known := claims[code.Request]; known && code.Answer.Accepted() {
			m := ledger.Message{Request: code.Request, Proves: true, From: code.Number, Method: c.Method}
			c.proofs = append(c.proofs, proof{Message: m, asked: code.At, at: code.At}) // no webhook acknowledges it
			claims[code.Request] = c
		}
	}
	for _, confirm := range e.Confirms {
		if c, known := claims[confirm.ID]; known {
			c.confirms = append(c.confirms, confirm)
			claims[confirm.ID] = c
		}
	}
	for _, c := range claims {
		slices.SortFunc(c.confirms, func(a, b ledger.Confirm) int { return a.Asked.Compare(b.Asked) })
		slices.SortFunc(c.proofs, func(a, b proof) int { return a.asked.Compare(b.asked) })
	}
	return claims
}

// acknowledgedAt returns when the client or the platform learned that the request is verified: at the first acknowledgement of a proof
// that came in time or, if the client must confirm it, of the right session code. It is zero if none was.
func (c *claim) acknowledgedAt() time.Time {
	if c.Session {
		for _, confirm := range c.confirms {
			if confirm.Right && confirm.Answer == http.StatusOK {
				return confirm.At
			}
		}
		return time.Time{}
	}
	return c.provenAt()
}

// provenAt returns when the first proof was acknowledged in time; zero if none was. What comes after the end is acknowledged, too, and
// proves nothing.
func (c *claim) provenAt() time.Time {
	var first time.Time
	for _, p := range c.proofs {
		if p.answer == http.StatusOK && p.at.Before(c.Expires) && (first.IsZero() || p.at.Before(first)) {
			first = p.at
		}
	}
	return first
}

// endsAt returns the latest time at which the request may be verified.
func (c *claim) endsAt() time.Time {
	if c.Session { // it lives for less than the grace, so that every proof of it comes shortly before the end
		return c.Expires.Add(verification.ConfirmGrace)
	}
	return c.Expires
}

// assurance returns what a place has of a verified request, which the messenger itself reported the number of.
func (c *claim) assurance(where string) string {
	if c.Session && where != inStore {
		return string(verification.AssuranceSession)
	}
	return ""
}

// wasReported reports whether a message of the user came from that number.
func (c *claim) wasReported(number string) bool {
	return slices.ContainsFunc(c.proofs, func(p proof) bool { return p.From == number && p.Method == c.Method })
}

// findContradiction returns which of the facts of a request in a phase is wrong at a place; empty if none is.
func (c *claim) findContradiction(f *ledger.Facts, phase, where string) string {
	switch {
	case f.Phone != c.Phone:
		return "it is not the number that was claimed"
	case f.Method != c.Method && (f.Method != "" || where != inStatus):
		return "it is not the messenger that was asked for"
	case phase != verified && c.Session && where == inStore && c.wasReported(f.Actual) && f.Verified.IsZero() && f.Assurance == "":
		return "" // it is proven
	case phase != verified:
		if f.Actual != "" || !f.Verified.IsZero() || f.Assurance != "" {
			return "no user has proven it"
		}
		return ""
	case len(c.proofs) == 0:
		return "its user sent no proof"
	case !c.wasReported(f.Actual):
		return "its user does not have that number"
	case f.Assurance != c.assurance(where):
		return "the messenger itself reported the number, and the client did or did not confirm it"
	default:
		return c.checkVerifiedTime(f.Verified)
	}
}

// checkVerifiedTime returns why a request cannot have been verified at a time; empty if it can. Some places truncate
// times to milliseconds.
func (c *claim) checkVerifiedTime(at time.Time) string {
	acknowledged := c.acknowledgedAt()
	switch {
	case c.Session && !slices.ContainsFunc(c.confirms, func(f ledger.Confirm) bool {
		return f.Right && !at.Before(f.Asked.Truncate(time.Millisecond))
	}):
		return "its client had not entered the session code yet"
	case at.Before(c.proofs[0].asked.Truncate(time.Millisecond)):
		return "its user had not sent the proof yet"
	case !at.Before(c.endsAt()):
		return "its time was over"
	case !acknowledged.IsZero() && at.After(acknowledged):
		return "the proof had been acknowledged before"
	default:
		return ""
	}
}
