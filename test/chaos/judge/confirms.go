package judge

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

// judgeConfirmed checks I10: at level Session the right code verifies a proven request, once, and no other code does. What else must hold
// of such a request is checked with the others: it is VERIFIED after the code was entered, and never without it.
func judgeConfirmed(e *Evidence) *Verdict {
	v := &Verdict{Name: "I10", Holds: "a session code confirms what was proven, once, and a wrong one never"}
	requests, proving, confirming, kills := 0, 0, 0, e.killsOf()
	for _, id := range slices.Sorted(maps.Keys(e.claims)) {
		if c := e.claims[id]; c.Session {
			requests++
			judgeConfirms(e, v, &c)
			between := c.killedBetween(kills)
			proving, confirming = proving+between[0], confirming+between[1]
		}
	}
	v.Note = fmt.Sprintf("%d requests; a kill between message and acknowledgement of %d, and between that and the answer to the code of %d",
		requests, proving, confirming)
	if len(kills) >= manyKills && proving+confirming == 0 {
		v.violatedf("%d kills hit no request on its way: the run shows nothing about them", len(kills))
	}
	return v
}

// manyKills is how many kills must hit a request on its way.
const manyKills = 10

// killsOf returns the times at which replicas were killed.
func (e *Evidence) killsOf() []time.Time {
	var kills []time.Time
	for _, f := range e.Faults {
		if schedule.Kind(f.Kind).Kills() {
			kills = append(kills, f.From)
		}
	}
	return kills
}

// killedBetween returns 1 or 0 for a kill between the first message of the proof and its acknowledgement, and for one between that and
// the final answer to the code.
func (c *claim) killedBetween(kills []time.Time) [2]int {
	var sent, acknowledged, answered time.Time
	for _, p := range c.proofs {
		if sent.IsZero() {
			sent = p.asked
		}
		if p.answer == http.StatusOK && acknowledged.IsZero() {
			acknowledged = p.at
		}
	}
	if len(c.confirms) > 0 {
		answered = c.confirms[len(c.confirms)-1].At
	}
	var between [2]int
	for i, window := range [2][2]time.Time{{sent, acknowledged}, {acknowledged, answered}} {
		if slices.ContainsFunc(kills, func(t time.Time) bool {
			return !window[0].IsZero() && t.After(window[0]) && t.Before(window[1])
		}) {
			between[i] = 1
		}
	}
	return between
}

func judgeConfirms(e *Evidence, v *Verdict, c *claim) {
	succeeded := 0
	for _, f := range c.confirms {
		v.Looked++
		switch {
		case f.Answer == http.StatusOK && !f.Right:
			v.violatedAboutf(e, c.ID, f.At, "%s was confirmed by a wrong code at %s", c.ID, formatTime(f.At))
		case f.Answer == http.StatusOK:
			succeeded++
		case f.Answer == http.StatusBadRequest && !c.provenAt().IsZero():
			v.violatedAboutf(e, c.ID, f.At, "the user of %s has no session code, though the proof was acknowledged", c.ID)
		case isLost(c, &f):
			v.violatedAboutf(e, c.ID, f.At, "%s was proven, and its code was answered %d %s at %s", c.ID, f.Answer, f.Error, formatTime(f.At))
		}
	}
	if succeeded > 1 {
		v.violatedAboutf(e, c.ID, c.confirms[0].At, "%s was confirmed %d times", c.ID, succeeded)
	}
}

// isLost reports whether the right code of a request that was proven in time did not confirm it. A code that was redeemed before is no
// loss: the answer to that call may be the one that is missing.
func isLost(c *claim, f *ledger.Confirm) bool {
	final := f.Answer == http.StatusNotFound || f.Answer == http.StatusConflict || f.Answer == http.StatusUnprocessableEntity
	return final && f.Right && c.Fate == ledger.Proven && f.Error != string(verification.CodeAlreadyConfirmed) && f.At.Before(c.endsAt())
}
