package judge_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// addCode adds a request with a code that its replica was asked for at one second, and its result two seconds later.
func addCode(e *judge.Evidence, id, state string, answer ledger.CodeAnswer) {
	e.Acks = append(e.Acks, ledger.Ack{
		Asked: at(1), At: at(1.3), Key: "key of " + id, ID: id, Phone: claimed, Number: claimed, Method: "WHATSAPP", Fate: ledger.Unconfirmed,
		Expires: at(60), Session: true,
	})
	e.Tries = append(e.Tries, ledger.Try{Asked: at(1), At: at(1.3), Key: "key of " + id, Replica: "of " + id, Answer: 200})
	stored := ledger.Change{
		Facts: facts("EXPIRED"), At: at(1.2), Committed: at(1.2), Op: ledger.Created, ID: id, Phase: "PENDING", Expires: at(60), Deliver: "CODE",
	}
	e.Changes = append(e.Changes, stored)
	if answer != "" {
		e.Codes = append(e.Codes, ledger.Code{
			At: at(1.5), Request: id, Number: claimed, Digits: "12345678", Stored: true, Answer: answer,
		})
	}
	stored.Op = ledger.Updated
	if state != "" {
		stored.At, stored.Committed, stored.CodeState = at(3), at(3), state
		e.Changes = append(e.Changes, stored)
	}
	stored.At, stored.Committed, stored.Phase = at(65), at(65), "EXPIRED"
	e.Changes = append(e.Changes, stored)
	e.Final = append(e.Final, stored)
	e.Statuses = append(e.Statuses,
		ledger.Status{Facts: facts("PENDING"), Asked: at(1.4), At: at(1.6), ID: id, Status: "PENDING", Expires: at(60)},
		ledger.Status{Facts: facts("PENDING"), Asked: at(17), At: at(17.2), ID: id, Status: "PENDING", Expires: at(60)})
}

// codeEvidence returns good evidence with codes: one for each answer of the platform, one that a kill kept back, and one that was redeemed.
func codeEvidence() *judge.Evidence {
	e := goodEvidence()
	e.CodeKills = 1
	for state, answers := range map[string][]ledger.CodeAnswer{
		"SENT":     {ledger.CodeAccepted, ledger.CodeRefusedNumber},
		"NOT_SENT": {ledger.CodeRefusedTemplate},
		"":         {ledger.CodeLost, ledger.CodeKilled},
	} {
		for _, answer := range answers {
			addCode(e, string(answer), state, answer)
		}
	}
	addCode(e, "kept-back", "", "")
	e.Faults = append(e.Faults, ledger.Fault{
		Kind: "kill-after-commit", From: at(1.25), Until: at(1.3), Victims: []string{"first-1"}, Replica: "of kept-back",
	})
	addCode(e, "unanswered", "", "")
	e.Tries[6].Answer = 503
	addCode(e, "redeemed", "SENT", ledger.CodeAccepted)
	redeem(e)
	return e
}

// redeem turns the last request of the evidence into one whose code was entered.
func redeem(e *judge.Evidence) {
	e.Acks[len(e.Acks)-1].Fate = ledger.Proven
	e.Confirms = append(e.Confirms, ledger.Confirm{Asked: at(2.7), At: at(3.2), ID: "redeemed", Right: true, Answer: 200})
	changeLastState(e, "redeemed", func(c *ledger.Change) {
		c.At, c.Committed, c.Phase, c.Actual, c.Verified, c.Attempts, c.Tried, c.Code, c.Delivered =
			at(4), at(4), "VERIFIED", claimed, at(2.8), 1, at(3.9), 204, true
	})
	verified := e.Changes[len(e.Changes)-1]
	verified.At, verified.Committed, verified.Attempts, verified.Code, verified.Delivered = at(3.1), at(3.1), 0, 0, false
	e.Changes = slices.Insert(e.Changes, len(e.Changes)-1, verified)
	e.Statuses = e.Statuses[:len(e.Statuses)-1]
	f := facts("VERIFIED")
	f.Actual, f.Assurance = claimed, "session"
	e.Events = append(e.Events, ledger.Delivery{
		Facts: f, At: at(3.5), Process: "first-1", Webhook: "evt of redeemed", Request: "redeemed", Valid: true,
		Body: "body of redeemed", Answer: ledger.Takes, Stamp: stampOf(3.5), Answered: at(3.5),
	})
}

func TestJudge_goodCodes(t *testing.T) {
	g := NewWithT(t)
	verdicts := judge.Judge(codeEvidence())
	for _, v := range verdicts {
		g.Expect(v.OK()).To(BeTrue(), "%s: %v", v.Name, v.Violations)
		if v.Name == "C3" {
			g.Expect(v.Note).To(Equal("3 SENT, 1 NOT_SENT, 4 without a result: init without an answer 1, kill-after-commit 1, killed 1, lost 1"))
		}
	}
	for _, v := range judge.Judge(&judge.Evidence{CodeKills: 1}) {
		g.Expect(v.OK()).To(BeFalse(), "%s: a run without codes shows nothing", v.Name)
	}
}

// stateOf returns the first state of a request that a function chooses.
func stateOf(e *judge.Evidence, id string, chosen func(*ledger.Change) bool) *ledger.Change {
	n := slices.IndexFunc(e.Changes, func(c ledger.Change) bool { return c.ID == id && chosen(&c) })
	return &e.Changes[n]
}

func codeOf(e *judge.Evidence, id string) *ledger.Code {
	return &e.Codes[slices.IndexFunc(e.Codes, func(c ledger.Code) bool { return c.Request == id })]
}

// setResult changes what is stored of a code, from its result on.
func setResult(e *judge.Evidence, id, state string) {
	for i := range e.Changes {
		if c := &e.Changes[i]; c.ID == id && !c.At.Before(at(3)) {
			c.CodeState = state
		}
	}
}

// codeForgeries are evidence of violations, by the invariant that must find them: a line of the ledger that is doubled, removed, moved
// before the commit or to another request, or a store that has something else.
var codeForgeries = map[string]map[string]func(*judge.Evidence){ //nolint:gochecknoglobals // a table
	"C1": {
		"sent before the store had it": func(e *judge.Evidence) { codeOf(e, "accepted").Stored = false },
		"moved before its commit":      func(e *judge.Evidence) { codeOf(e, "accepted").At = at(1.15) },
		"never committed":              func(e *judge.Evidence) { codeOf(e, "accepted").Request = "unknown" },
		"to another number":            func(e *judge.Evidence) { codeOf(e, "accepted").Number = reported },
		"for a link":                   func(e *judge.Evidence) { codeOf(e, "accepted").Request = "lapsed" },
	},
	"C2": {
		"doubled": func(e *judge.Evidence) { e.Codes = append(e.Codes, e.Codes[0]) },
	},
	"C3": {
		"sent, and removed from the ledger":    func(e *judge.Evidence) { codeOf(e, "accepted").Request = "lapsed" },
		"sent, and refused for everyone":       func(e *judge.Evidence) { setResult(e, string(ledger.CodeRefusedTemplate), "SENT") },
		"sent, without an answer":              func(e *judge.Evidence) { setResult(e, string(ledger.CodeLost), "SENT") },
		"not sent, and accepted":               func(e *judge.Evidence) { setResult(e, string(ledger.CodeAccepted), "NOT_SENT") },
		"not sent, and lost":                   func(e *judge.Evidence) { setResult(e, string(ledger.CodeLost), "NOT_SENT") },
		"not sent, for a number":               func(e *judge.Evidence) { setResult(e, string(ledger.CodeRefusedNumber), "NOT_SENT") },
		"unknown for nothing":                  func(e *judge.Evidence) { setResult(e, string(ledger.CodeAccepted), "") },
		"unknown, and another was killed":      func(e *judge.Evidence) { e.Faults[1].Replica = "of accepted" },
		"unknown, and killed too late":         func(e *judge.Evidence) { e.Faults[1].From, e.Faults[1].Until = at(17), at(18) },
		"unknown, and killed before it":        func(e *judge.Evidence) { e.Faults[1].From, e.Faults[1].Until = at(0.8), at(0.9) },
		"unknown, and asked for after it":      func(e *judge.Evidence) { e.Tries[5].Asked = at(1.21) },
		"unknown, by another fault":            func(e *judge.Evidence) { e.Faults[1].Kind = "freeze" },
		"unknown, and init was answered":       func(e *judge.Evidence) { e.Tries[6].Answer = 200 },
		"unknown, and init was refused before": func(e *judge.Evidence) { e.Tries[6].At = at(1.1) },
		"taken back": func(e *judge.Evidence) {
			changeLastState(e, "accepted", func(c *ledger.Change) { c.CodeState = "" })
		},
		"changed": func(e *judge.Evidence) {
			changeLastState(e, "accepted", func(c *ledger.Change) { c.CodeState = "NOT_SENT" })
		},
		"deleted on the same day": func(e *judge.Evidence) {
			gone := *stateOf(e, "accepted", func(c *ledger.Change) bool { return c.Phase == "EXPIRED" })
			gone.Op, gone.At = ledger.Deleted, at(90)
			e.Changes = append(e.Changes, gone)
		},
	},
	"I1p": {
		"verified without a code": func(e *judge.Evidence) { e.Codes = e.Codes[:len(e.Codes)-1] },
		"undelivered":             func(e *judge.Evidence) { codeOf(e, "redeemed").Answer = ledger.CodeRefusedNumber },
		"another number verified": func(e *judge.Evidence) {
			changeLastState(e, "redeemed", func(c *ledger.Change) { c.Actual = reported })
		},
	},
	"I10": {
		"the right digits refused": func(e *judge.Evidence) { e.Confirms[len(e.Confirms)-1].Answer = 422 },
		"other digits taken":       func(e *judge.Evidence) { e.Confirms[len(e.Confirms)-1].Right = false },
	},
}

func TestJudge_codeForgeries(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(codeForgeries)) {
		for forgery, forge := range codeForgeries[name] {
			t.Run(name+" "+forgery, func(t *testing.T) {
				g := NewWithT(t)
				e := codeEvidence()
				forge(e)
				verdicts := judge.Judge(e)
				n := slices.IndexFunc(verdicts, func(v *judge.Verdict) bool { return v.Name == name })
				g.Expect(verdicts[n].OK()).To(BeFalse())
				g.Expect(verdicts[n].Violations).NotTo(BeEmpty())
			})
		}
	}
}
