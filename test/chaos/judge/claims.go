package judge

import (
	"net/http"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// claim is what a client requested and what its user did.
type claim struct {
	ledger.Ack

	proofs []proof
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
	for _, c := range claims {
		slices.SortFunc(c.proofs, func(a, b proof) int { return a.asked.Compare(b.asked) })
	}
	return claims
}

// acknowledgedAt returns when the first proof that came in time was acknowledged; zero if none was.
func (c *claim) acknowledgedAt() time.Time {
	var first time.Time
	for _, p := range c.proofs {
		if p.answer == http.StatusOK && p.at.Before(c.Expires) && (first.IsZero() || p.at.Before(first)) {
			first = p.at
		}
	}
	return first
}

// findContradiction returns which of the facts of a request in a phase is wrong at a place; empty if none is.
func (c *claim) findContradiction(f *ledger.Facts, phase, where string) string {
	switch {
	case f.Phone != c.Phone:
		return "it is not the number that was claimed"
	case f.Method != c.Method && (f.Method != "" || where != inStatus):
		return "it is not the messenger that was asked for"
	case phase != verified:
		if f.Actual != "" || !f.Verified.IsZero() || f.Assurance != "" {
			return "no user has proven it"
		}
		return ""
	case len(c.proofs) == 0:
		return "its user sent no proof"
	case !slices.ContainsFunc(c.proofs, func(p proof) bool { return p.From == f.Actual && p.Method == c.Method }):
		return "its user does not have that number"
	case f.Assurance != "":
		return "the messenger itself reported the number"
	default:
		return c.checkVerifiedTime(f.Verified)
	}
}

// checkVerifiedTime returns why a request cannot have been verified at a time; empty if it can. Some places truncate
// times to milliseconds.
func (c *claim) checkVerifiedTime(at time.Time) string {
	acknowledged := c.acknowledgedAt()
	switch {
	case at.Before(c.proofs[0].asked.Truncate(time.Millisecond)):
		return "its user had not sent the proof yet"
	case !at.Before(c.Expires):
		return "its time was over"
	case !acknowledged.IsZero() && at.After(acknowledged):
		return "the proof had been acknowledged before"
	default:
		return ""
	}
}
