// Package judge decides from the ledger alone whether an adversary run shows what it has to show: that at level Session a link which
// was passed on verifies no one, and that everyone who verifies their own number can.
//
// The invariant: its verdicts are pure functions of the evidence, and each has something to look at, or fails.
package judge

import (
	"fmt"
	"slices"
	"time"

	chaos "github.com/phoneproof/phoneproof/test/chaos/judge"

	"github.com/phoneproof/phoneproof/test/adversary/ledger"
)

const (
	// maxTries is how many wrong codes a request takes in all.
	maxTries = 5
	// declinedStatus is what status says of a request whose prover answered Not me.
	declinedStatus = "EXPIRED"
	declinedHint   = "DECLINED"
	wrongCode      = "wrong_code"
	// alreadyConfirmed is the code of a second redemption.
	alreadyConfirmed = "already_confirmed"
	verified         = "VERIFIED"
	session          = "session"
	// maxViolations is how many violations are listed.
	maxViolations = 10
)

// Evidence is what a run has left.
type Evidence struct {
	Records []ledger.Record
	// PerNumber is how many requests may begin for a number in the time of a run.
	PerNumber int
	// Spread is how long a replica may take to hear of what another one did; zero if it knows at once.
	Spread time.Duration
	// Relays are the attacks whose requests victims prove, by name, and Obeying the victims who do.
	Relays, Obeying []string
	// Expiry is set if the run was long enough for requests to expire.
	Expiry bool

	of map[ledger.Kind][]ledger.Record
}

// Verdict is the result of one invariant.
type Verdict = chaos.Verdict

func violatef(v *Verdict, format string, args ...any) {
	if v.Count++; v.Count <= maxViolations {
		v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
	}
}

// Judge applies every invariant.
func Judge(e *Evidence) []*Verdict {
	e.of = map[ledger.Kind][]ledger.Record{}
	for _, r := range e.Records {
		e.of[r.Kind] = append(e.of[r.Kind], r)
	}
	return []*Verdict{
		judgeAttackers(e), judgeTalkers(e), judgeHonest(e), judgeReach(e), judgeShown(e), judgeTries(e), judgeDeclines(e), judgeBombing(e),
		judgeLate(e),
	}
}

// key is a request in the session that began it.
type key struct{ session, request string }

// talks returns which digits were read out.
func (e *Evidence) talks() map[key]bool {
	all := map[key]bool{}
	for _, r := range e.of[ledger.Talked] {
		all[key{r.Session, r.Request}] = true
	}
	return all
}

// Those who see a request verified, beside others.
const (
	byShop   = "the shop's session"
	byStatus = "status"
	byStore  = "the store"
)

// sightings returns, for each request, who saw it verified.
func (e *Evidence) sightings() map[string][]string {
	seen := map[string][]string{}
	for _, r := range e.Records {
		where := ""
		switch {
		case r.Kind == ledger.Member && r.Verified:
			where = byShop
		case r.Kind == ledger.Redeemed && r.Result == verified:
			where = "the answer of confirm"
		case r.Kind == ledger.Status && r.Result == verified:
			where = byStatus
		case r.Kind == ledger.Event && r.Result == verified:
			where = "an event"
		case r.Kind == ledger.Stored && r.Result == verified:
			where = byStore
		}
		if where != "" && !slices.Contains(seen[r.Request], where) {
			seen[r.Request] = append(seen[r.Request], where)
		}
	}
	return seen
}

func judgeAttackers(e *Evidence) *Verdict {
	v := &Verdict{Name: "S1", Holds: "no session of an attacker is verified, unless its victim read the digits of that request out to it"}
	talked, seen := e.talks(), e.sightings()
	own, begun := map[string]bool{}, map[key]bool{}
	for _, r := range e.of[ledger.Begun] {
		if !ledger.IsAttacker(r.Party) {
			continue
		}
		own[r.Session], begun[key{r.Session, r.Request}] = true, true
		if talked[key{r.Session, r.Request}] {
			continue
		}
		v.Looked++
		if where := seen[r.Request]; len(where) > 0 {
			violatef(v, "scene %d: request %s of the %s (%s, %s, %s) is verified by %v",
				r.Scene, r.Request, r.Party, r.Attack, r.Victim, r.Method, where)
		}
	}
	for _, kind := range []ledger.Kind{ledger.Member, ledger.Redeemed} { // by a request of someone else
		for _, r := range e.of[kind] {
			if (r.Verified || r.Result == verified) && own[r.Session] && !begun[key{r.Session, r.Request}] {
				violatef(v, "scene %d: session %s of an attacker is verified by request %s", r.Scene, r.Session, r.Request)
			}
		}
	}
	return v
}

func judgeTalkers(e *Evidence) *Verdict {
	v := &Verdict{Name: "S2", Holds: "the digits work: most attackers to whom they were read out are verified"}
	members, shown := 0, map[key]bool{}
	for _, r := range e.of[ledger.Member] {
		shown[key{r.Session, r.Request}] = r.Verified
	}
	for talk := range e.talks() {
		v.Looked++
		if shown[talk] {
			members++
		}
	}
	v.Note = fmt.Sprintf("%d verified", members)
	if members*2 <= v.Looked && v.Looked > 0 {
		violatef(v, "%d of %d are verified", members, v.Looked)
	}
	return v
}

func judgeHonest(e *Evidence) *Verdict {
	v := &Verdict{Name: "S3", Holds: "everyone who verifies their own number is verified, exactly once, with assurance session"}
	seen := e.sightings()
	redeemed, events, assurances := map[string]int{}, map[string][]string{}, map[string][]string{}
	for _, r := range e.of[ledger.Redeemed] {
		if r.Result == verified {
			redeemed[r.Request]++
		}
	}
	for _, r := range e.of[ledger.Redeemed] { // of a call that was repeated, the answer to the first try may have been lost
		if r.Result == alreadyConfirmed && r.Count > 0 && redeemed[r.Request] == 0 {
			redeemed[r.Request] = 1
		}
	}
	for _, r := range e.of[ledger.Event] {
		if r.Result == verified && !slices.Contains(events[r.Request], r.ID) {
			events[r.Request] = append(events[r.Request], r.ID)
		}
	}
	for _, kind := range []ledger.Kind{ledger.Status, ledger.Event, ledger.Redeemed} {
		for _, r := range e.of[kind] {
			if r.Result == verified && r.Assurance != session {
				assurances[r.Request] = append(assurances[r.Request], fmt.Sprintf("%s says %q", kind, r.Assurance))
			}
		}
	}
	for _, r := range e.of[ledger.Begun] {
		if r.Party != ledger.Honest {
			continue
		}
		v.Looked++
		once := redeemed[r.Request] == 1 && len(events[r.Request]) == 1
		if !once || len(assurances[r.Request]) > 0 || !isSeenByAll(seen[r.Request], len(e.of[ledger.Stored]) > 0) {
			violatef(v, "scene %d: request %s (%s, %s): verified by %v, redeemed %d times, %d events, assurance %v", r.Scene, r.Request, r.Victim,
				r.Method, seen[r.Request], redeemed[r.Request], len(events[r.Request]), assurances[r.Request])
		}
	}
	return v
}

// isSeenByAll reports whether everyone saw a request verified who has to; there is a store to look into for some runs only.
func isSeenByAll(seen []string, stored bool) bool {
	return slices.Contains(seen, byShop) && slices.Contains(seen, byStatus) && (!stored || slices.Contains(seen, byStore))
}

// judgeReach finds attacks that got nowhere for another reason than the one that is tested.
func judgeReach(e *Evidence) *Verdict {
	v := &Verdict{Name: "S4", Holds: "the attacks are real: victims who obey prove the attackers' requests, and the chat offers them Not me"}
	proven := map[[2]string]int{}
	attackers := map[string]bool{}
	for _, r := range e.of[ledger.Begun] {
		attackers[r.Request] = ledger.IsAttacker(r.Party)
	}
	for _, r := range e.of[ledger.Messaged] {
		v.Looked++
		if !r.Offered {
			violatef(v, "scene %d: the message about request %s offers no Not me (%s)", r.Scene, r.Request, r.Method)
		}
		if attackers[r.Request] {
			proven[[2]string{r.Attack, r.Victim}]++
		}
	}
	for _, r := range e.of[ledger.Unanswered] {
		violatef(v, "scene %d: who proved request %s got no message with digits (%s)", r.Scene, r.Request, r.Method)
	}
	for _, attack := range e.Relays {
		for _, victim := range e.Obeying {
			if proven[[2]string{attack, victim}] == 0 {
				violatef(v, "no %s victim proved a request of the attack %q", victim, attack)
			}
		}
	}
	return v
}

func judgeShown(e *Evidence) *Verdict {
	v := &Verdict{Name: "S5", Holds: "no response to an attacker or a scanner shows a session code, or leads on with one"}
	talked := e.talks()
	for _, r := range e.of[ledger.Fetched] {
		v.Looked += r.Count
	}
	for _, r := range e.of[ledger.Shown] {
		if !talked[key{r.Session, r.Request}] {
			violatef(v, "scene %d: %s to the %s shows a code of request %s (%s, %s)", r.Scene, r.Where, r.Party, r.Request, r.Attack, r.Victim)
		}
	}
	return v
}

func judgeTries(e *Evidence) *Verdict {
	v := &Verdict{Name: "S6", Holds: "a request takes five wrong codes in all, wherever they are entered, and none after them"}
	wrong, total := map[string]int{}, 0
	for _, r := range e.of[ledger.Tried] {
		if r.Result == "wrong" {
			wrong[r.Request]++
		}
	}
	for _, r := range e.of[ledger.Redeemed] {
		if r.Result == wrongCode {
			wrong[r.Request]++
		}
	}
	ended := map[string]int{}
	seen := e.sightings()
	for request, n := range wrong {
		total += n
		if n > maxTries {
			violatef(v, "request %s took %d wrong codes", request, n)
		}
		if n == maxTries {
			ended[request] = n
		}
		if n >= maxTries && len(seen[request]) > 0 {
			violatef(v, "request %s took %d wrong codes, and is verified by %v", request, n, seen[request])
		}
	}
	v.Looked = len(ended)
	v.Note = fmt.Sprintf("%d wrong codes for %d requests", total, len(wrong))
	counted := e.counter(wrongCode)
	if counted != total {
		violatef(v, "%d wrong codes were answered, and phoneproof_session_proofs_total counts %d", total, counted)
	}
	return v
}

// counter returns the sum of a step's counters.
func (e *Evidence) counter(step string) int {
	for _, r := range e.of[ledger.Counted] {
		if r.Result == step {
			return r.Count
		}
	}
	return 0
}

// seldom is how many declines may all go uncounted.
const seldom = 4

func judgeDeclines(e *Evidence) *Verdict {
	v := &Verdict{Name: "S7", Holds: "Not me ends a request at once, and counts after another end, too: it is an event, and is counted"}
	declined, events := map[string]bool{}, map[string]bool{}
	for _, r := range e.of[ledger.Event] {
		events[r.Request] = events[r.Request] || r.Hint == declinedHint
	}
	for _, r := range e.of[ledger.Declined] {
		switch {
		case r.Result == declinedStatus && r.Hint == declinedHint:
			declined[r.Request] = true
			v.Looked++
			if !events[r.Request] {
				violatef(v, "scene %d: no event reports that request %s was declined", r.Scene, r.Request)
			}
		case r.Result != "VERIFIED":
			violatef(v, "scene %d: request %s is %s %s after Not me (%s)", r.Scene, r.Request, r.Result, r.Hint, r.Method)
		}
	}
	// A replica that does not hear in time whether it stored a step does not count it: the message comes again, and finds it done. That
	// is seldom.
	failed := 0
	for _, r := range e.of[ledger.Failed] {
		failed += r.Count
	}
	if counted := e.counter("declined"); counted > len(declined) || counted < len(declined)-failed || counted == 0 && len(declined) > seldom {
		violatef(v, "%d requests were declined, and phoneproof_session_proofs_total counts %d; %d messages were delivered again",
			len(declined), counted, failed)
	}
	v.Note = fmt.Sprintf("%d messages were delivered again", failed)
	seen := e.sightings()
	for request := range declined {
		if len(seen[request]) > 0 {
			violatef(v, "request %s was declined, and is verified by %v", request, seen[request])
		}
	}
	return v
}

func judgeBombing(e *Evidence) *Verdict {
	v := &Verdict{Name: "S8", Holds: "no number gets more requests than its limit, and none after Not me: each init is refused with 429"}
	begun := map[string]int{}
	declined := map[string]time.Time{}
	for _, r := range e.of[ledger.Declined] {
		if at := declined[r.Number]; r.Hint == declinedHint && (at.IsZero() || r.At.Before(at)) {
			declined[r.Number] = r.At
		}
	}
	after := func(r ledger.Record) bool {
		return !declined[r.Number].IsZero() && r.Asked.After(declined[r.Number].Add(e.Spread))
	}
	for _, r := range e.of[ledger.Begun] {
		begun[r.Number]++
		if after(r) {
			violatef(v, "scene %d: request %s began after its number had declined another", r.Scene, r.Request)
		}
	}
	for number, n := range begun {
		if n > e.PerNumber {
			violatef(v, "%d requests began for number %s", n, number)
		}
	}
	cooled := 0
	for _, r := range e.of[ledger.Refused] {
		v.Looked++
		if r.Answer != 429 || r.Result != "rate_limited" {
			violatef(v, "scene %d: an init was refused with %d %s", r.Scene, r.Answer, r.Result)
		}
		if r.Hint == "declined" {
			cooled++
		}
	}
	v.Note = fmt.Sprintf("%d of them because of Not me", cooled)
	if cooled == 0 || cooled == v.Looked {
		violatef(v, "of %d refusals, %d are because of Not me: both limits have to refuse some", v.Looked, cooled)
	}
	return v
}

func judgeLate(e *Evidence) *Verdict {
	v := &Verdict{Name: "S9", Holds: "codes verify nothing after the request expired", Optional: !e.Expiry}
	seen := e.sightings()
	for _, r := range e.of[ledger.Begun] {
		if r.Party != ledger.Late {
			continue
		}
		v.Looked++
		if len(seen[r.Request]) > 0 {
			violatef(v, "request %s expired, and is verified by %v", r.Request, seen[r.Request])
		}
	}
	return v
}
