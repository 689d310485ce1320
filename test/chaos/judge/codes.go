package judge

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

const (
	deliver = string(verification.DeliverCode)
	sent    = string(verification.CodeSent)
	notSent = string(verification.CodeNotSent)
)

// judgeSentAfterCommit checks C1: a code arrives at the platform only when the store has its request, which asked for one, and it goes
// to the number of that request.
func judgeSentAfterCommit(e *Evidence) *Verdict {
	v := &Verdict{Name: "C1", Holds: "a code is sent after its request was committed, to the number of that request"}
	for _, c := range e.Codes {
		v.Looked++
		history := e.histories[c.Request]
		switch {
		case len(history) == 0:
			v.violatedf("a code came at %s for %s, which was never committed", formatTime(c.At), c.Request)
		case !c.Stored, history[0].Committed.After(c.At):
			v.violatedAboutf(e, c.Request, c.At, "the code of %s came at %s, before its request was committed", c.Request, formatTime(c.At))
		case history[0].Deliver != deliver:
			v.violatedAboutf(e, c.Request, c.At, "a code came for %s, which asked for none", c.Request)
		case history[0].Phone != c.Number:
			v.violatedAboutf(e, c.Request, c.At, "the code of %s went to the number of another request", c.Request)
		}
	}
	return v
}

// judgeSentOnce checks C2.
func judgeSentOnce(e *Evidence) *Verdict {
	v := &Verdict{Name: "C2", Holds: "no code is sent twice"}
	for _, id := range e.requestIDs() {
		if codes := e.codes[id]; len(codes) > 0 {
			v.Looked++
			if len(codes) > 1 {
				v.violatedAboutf(e, id, codes[1].At, "the code of %s was sent %d times", id, len(codes))
			}
		}
	}
	return v
}

// judgeResults checks C3 by the ledger against the store, both ways. What is left without a result was lost with an answer, that of the
// platform or that of the store, or was in flight at a process when that was killed.
func judgeResults(e *Evidence) *Verdict {
	v := &Verdict{Name: "C3", Holds: "what is stored of a code is what happened to it; no result only by a lost answer or a kill in flight"}
	counts, why := map[string]int{}, reasons{}
	for _, id := range e.requestIDs() {
		history := e.histories[id]
		last := history[len(history)-1]
		if last.Deliver != deliver {
			continue
		}
		v.Looked++
		counts[last.CodeState]++
		for i := 1; i < len(history); i++ {
			if before := history[i-1].CodeState; before != "" && before != history[i].CodeState {
				v.violatedAboutf(e, id, history[i].At, "%s was stored as %s and became %q", id, before, history[i].CodeState)
			}
		}
		var answer ledger.CodeAnswer
		for _, c := range e.codes[id] {
			answer = c.Answer
		}
		switch reason := e.explainUnknown(id, answer); {
		case last.Op == ledger.Deleted:
			v.violatedf("%s was deleted at %s, before it had counted for 24 hours", id, formatTime(last.At))
		case last.CodeState == notSent && answer != "" && answer != ledger.CodeRefusedTemplate:
			v.violatedAboutf(e, id, last.At, "%s is stored as NOT_SENT, and the platform got its code and answered: %s", id, answer)
		case last.CodeState == sent && (answer == "" || answer == ledger.CodeRefusedTemplate || lostAnswer(answer)):
			v.violatedAboutf(e, id, last.At, "%s is stored as SENT, and the platform's answer to its code was: %q", id, answer)
		case last.CodeState == "" && reason == "":
			v.violatedAboutf(e, id, last.At, "%s has no result, and its code was neither lost nor in flight at a kill", id)
		case last.CodeState == "":
			why.add(reason)
		}
	}
	v.Note = fmt.Sprintf("%d SENT, %d NOT_SENT, %d without a result: %s", counts[sent], counts[notSent], counts[""], why)
	return v
}

// lostAnswer reports whether no process can have got the answer.
func lostAnswer(a ledger.CodeAnswer) bool { return a == ledger.CodeLost || a == ledger.CodeKilled }

// triesOf returns the calls that asked for the code of a request.
func (e *Evidence) triesOf(id string) []ledger.Try {
	key := e.claims[id].Key
	return slices.DeleteFunc(slices.Clone(e.Tries), func(t ledger.Try) bool { return key == "" || t.Key != key })
}

// explainUnknown returns why the code of a request has no result; empty if nothing explains it.
func (e *Evidence) explainUnknown(id string, answer ledger.CodeAnswer) string {
	if lostAnswer(answer) {
		return string(answer)
	}
	tries := e.triesOf(id)
	created := e.histories[id][0].At
	for i := range e.Faults {
		if f := &e.Faults[i]; wasInFlight(f, tries, created) {
			return f.Kind
		}
	}
	// The call that created it: a process that did not learn that answers 503, or not at all.
	last := -1
	for i, t := range tries {
		if t.Asked.Before(created) && (last < 0 || t.Asked.After(tries[last].Asked)) {
			last = i
		}
	}
	if last >= 0 && tries[last].Answer != http.StatusOK && tries[last].At.After(created) {
		return noAnswer
	}
	return ""
}

// noAnswer is the reason of a code whose init was stored and not answered.
const noAnswer = "init without an answer"

// witnessLag is how much later than the call that led to it a witness may have seen a commit. On a busy machine 0.2 s were not enough.
const witnessLag = 2 * time.Second

// wasInFlight reports whether a fault killed a process that may have created a request, after that and before its result is given up.
func wasInFlight(f *ledger.Fault, tries []ledger.Try, created time.Time) bool {
	if !slices.Contains(schedule.OfCodes(), schedule.Kind(f.Kind)) || f.From.After(created.Add(verification.CodeUnknownAfter)) ||
		f.Until.Add(witnessLag).Before(created) {
		return false
	}
	return slices.ContainsFunc(tries, func(t ledger.Try) bool {
		return t.Replica == f.Replica && t.Asked.Before(created) && t.Asked.Before(f.Until)
	})
}
