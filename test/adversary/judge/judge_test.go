package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/adversary/judge"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
)

// The requests of the sound run.
const (
	silent = "silent"   // its victim proved it, and told no one anything
	told   = "told"     // its victim read the digits out
	own    = "own"      // of an honest user
	guess  = "guessed"  // took five wrong codes
	refuse = "declined" // its victim answered Not me
	late   = "late"     // expired before its codes were used
)

var start = time.Date(2026, 11, 25, 7, 0, 0, 0, time.UTC)

// soundRun returns the ledger of a run in which everything holds.
func soundRun() *judge.Evidence {
	begun := func(party, request, number string) ledger.Record {
		return ledger.Record{
			Kind: ledger.Begun, Party: party, Session: "session of " + request, Request: request, Number: number, Attack: "relay", Victim: "obedient",
			Asked: start, At: start,
		}
	}
	verified := func(request string) []ledger.Record {
		return []ledger.Record{
			{Kind: ledger.Redeemed, Session: "session of " + request, Request: request, Answer: 200, Result: "VERIFIED", Assurance: "session"},
			{Kind: ledger.Member, Party: ledger.Honest, Session: "session of " + request, Request: request, Verified: true},
			{Kind: ledger.Status, Request: request, Result: "VERIFIED", Assurance: "session"},
			{Kind: ledger.Event, Request: request, Result: "VERIFIED", Assurance: "session", ID: "evt_" + request},
			{Kind: ledger.Stored, Request: request, Result: "VERIFIED"},
		}
	}
	messaged := func(request string) ledger.Record {
		return ledger.Record{Kind: ledger.Messaged, Request: request, Attack: "relay", Victim: "obedient", Offered: true}
	}
	records := []ledger.Record{
		begun(ledger.Attacker, silent, "1"), messaged(silent),
		{Kind: ledger.Member, Party: ledger.Attacker, Session: "session of " + silent, Request: silent},
		{Kind: ledger.Status, Request: silent, Result: "PENDING", Hint: "AWAITING_CONFIRMATION"},
		{Kind: ledger.Stored, Request: silent, Result: "EXPIRED"},
		{Kind: ledger.Fetched, Party: ledger.Attacker, Session: "session of " + silent, Count: 9},

		begun(ledger.Second, told, "2"), messaged(told),
		{Kind: ledger.Talked, Party: ledger.Second, Session: "session of " + told, Request: told},
		{Kind: ledger.Shown, Party: ledger.Second, Session: "session of " + told, Request: told},

		begun(ledger.Honest, own, "3"), messaged(own),

		begun(ledger.Attacker, guess, "4"), messaged(guess),
		{Kind: ledger.Counted, Result: "wrong_code", Count: 5},

		begun(ledger.Attacker, refuse, "5"), messaged(refuse),
		{Kind: ledger.Declined, Request: refuse, Number: "5", Result: "EXPIRED", Hint: "DECLINED", At: start.Add(time.Second)},
		{Kind: ledger.Event, Request: refuse, Result: "EXPIRED", Hint: "DECLINED", ID: "evt_declined"},
		{Kind: ledger.Counted, Result: "declined", Count: 1}, {Kind: ledger.Failed},
		{Kind: ledger.Refused, Number: "5", Answer: 429, Result: "rate_limited", Hint: "declined", Asked: start.Add(2 * time.Second)},
		{Kind: ledger.Refused, Number: "1", Answer: 429, Result: "rate_limited", Hint: "phoneNumber"},

		begun(ledger.Late, late, "6"), messaged(late),
		{Kind: ledger.Status, Request: late, Result: "EXPIRED"},
	}
	for n := range 5 {
		r := ledger.Record{Kind: ledger.Tried, Party: ledger.Attacker, Request: guess, Result: "wrong", Where: "page"}
		if n%2 == 1 {
			r = ledger.Record{Kind: ledger.Redeemed, Session: "session of " + guess, Request: guess, Answer: 422, Result: "wrong_code"}
		}
		records = append(records, r)
	}
	records = append(records, verified(told)...)
	records = append(records, verified(own)...)
	return &judge.Evidence{Records: records, PerNumber: 2, Relays: []string{"relay"}, Obeying: []string{"obedient"}, Expiry: true}
}

// violated returns the names of the invariants that do not hold.
func violated(e *judge.Evidence) (names []string) {
	for _, v := range judge.Judge(e) {
		if !v.OK() && !v.Skipped() {
			names = append(names, v.Name)
		}
	}
	return names
}

func TestJudge_acceptsASoundRun(t *testing.T) {
	g := NewWithT(t)
	g.Expect(violated(soundRun())).To(BeEmpty())
	for _, v := range judge.Judge(soundRun()) {
		g.Expect(v.Looked).To(BeNumerically(">", 0), v.Name)
		g.Expect(v.Holds).NotTo(BeEmpty())
	}
}

// add spoils a run by more records.
func add(more ...ledger.Record) func(*judge.Evidence) {
	return func(e *judge.Evidence) { e.Records = append(e.Records, more...) }
}

// drop spoils a run by leaving records out.
func drop(unwanted func(ledger.Record) bool) func(*judge.Evidence) {
	return func(e *judge.Evidence) { e.Records = slices.DeleteFunc(e.Records, unwanted) }
}

func of(kind ledger.Kind, request string) func(ledger.Record) bool {
	return func(r ledger.Record) bool { return r.Kind == kind && r.Request == request }
}

// change spoils a run by changing records.
func change(wanted func(ledger.Record) bool, edit func(*ledger.Record)) func(*judge.Evidence) {
	return func(e *judge.Evidence) {
		for n := range e.Records {
			if wanted(e.Records[n]) {
				edit(&e.Records[n])
			}
		}
	}
}

func TestJudge_refusesASpoiltRun(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*judge.Evidence)
		want  []string
	}{
		"the shop takes an attacker for verified": {
			add(ledger.Record{Kind: ledger.Member, Party: ledger.Attacker, Session: "session of " + silent, Request: silent, Verified: true}), []string{"S1"},
		},
		"an attacker's session is verified by the request of another one": {
			add(ledger.Record{Kind: ledger.Member, Party: ledger.Attacker, Session: "session of " + silent, Request: own, Verified: true}), []string{"S1"},
		},
		"an attacker's session redeems the request of another one": {
			add(ledger.Record{Kind: ledger.Redeemed, Session: "session of " + silent, Request: "another", Answer: 200, Result: "VERIFIED", Assurance: "session"}),
			[]string{"S1"},
		},
		"status says VERIFIED of an attacker's request": {
			add(ledger.Record{Kind: ledger.Status, Request: silent, Result: "VERIFIED", Assurance: "session"}), []string{"S1"},
		},
		"an event does": {
			add(ledger.Record{Kind: ledger.Event, Request: silent, Result: "VERIFIED", Assurance: "session", ID: "evt_silent"}), []string{"S1"},
		},
		"the store does": {
			add(ledger.Record{Kind: ledger.Stored, Request: silent, Result: "VERIFIED"}), []string{"S1"},
		},
		"a second attacker gains from the digits that were read out to another one": {
			change(of(ledger.Talked, told), func(r *ledger.Record) { r.Session = "session of " + silent }), []string{"S1", "S2", "S5"},
		},
		"no victim told anything, and one attacker is verified": {
			drop(of(ledger.Talked, told)), []string{"S1", "S2", "S5"},
		},
		"the digits do not work": {
			drop(func(r ledger.Record) bool { return r.Request == told && (r.Verified || r.Result == "VERIFIED") }), []string{"S2"},
		},
		"an honest user is not verified": {
			drop(func(r ledger.Record) bool { return r.Request == own && (r.Verified || r.Result == "VERIFIED") }), []string{"S3"},
		},
		"the store does not have an honest user's end": {
			drop(of(ledger.Stored, own)), []string{"S3"},
		},
		"the shop does not let an honest user in": {
			drop(of(ledger.Member, own)), []string{"S3"},
		},
		"an honest user is verified twice": {
			add(ledger.Record{Kind: ledger.Redeemed, Session: "session of " + own, Request: own, Answer: 200, Result: "VERIFIED", Assurance: "session"}),
			[]string{"S3"},
		},
		"an honest user has two events": {
			add(ledger.Record{Kind: ledger.Event, Request: own, Result: "VERIFIED", Assurance: "session", ID: "evt_other"}), []string{"S3"},
		},
		"status does not say how the number was verified": {
			change(of(ledger.Status, own), func(r *ledger.Record) { r.Assurance = "" }), []string{"S3"},
		},
		"the chat does not offer Not me": {
			change(of(ledger.Messaged, silent), func(r *ledger.Record) { r.Offered = false }), []string{"S4"},
		},
		"a prover gets no message": {
			add(ledger.Record{Kind: ledger.Unanswered, Request: silent}), []string{"S4"},
		},
		"no victim proved an attacker's request": {
			drop(func(r ledger.Record) bool { return r.Kind == ledger.Messaged && r.Request != own && r.Request != late }), []string{"S4"},
		},
		"a page shows a code to an attacker": {
			add(ledger.Record{Kind: ledger.Shown, Party: ledger.Attacker, Session: "session of " + silent, Request: silent}), []string{"S5"},
		},
		"a page shows a code to a scanner": {
			add(ledger.Record{Kind: ledger.Shown, Party: ledger.Scanner, Request: told}), []string{"S5"},
		},
		"nothing was fetched": {
			drop(func(r ledger.Record) bool { return r.Kind == ledger.Fetched }), []string{"S5"},
		},
		"a sixth wrong code is answered": {
			func(e *judge.Evidence) {
				add(ledger.Record{Kind: ledger.Tried, Request: guess, Result: "wrong"})(e)
				change(func(r ledger.Record) bool { return r.Kind == ledger.Counted && r.Result == "wrong_code" }, func(r *ledger.Record) { r.Count++ })(e)
			}, []string{"S6"},
		},
		"the right code is taken after five wrong ones": {
			add(ledger.Record{Kind: ledger.Redeemed, Session: "session of " + guess, Request: guess, Answer: 200, Result: "VERIFIED", Assurance: "session"}),
			[]string{"S1", "S6"},
		},
		"a wrong code is not counted": {
			change(func(r ledger.Record) bool { return r.Kind == ledger.Counted && r.Result == "wrong_code" }, func(r *ledger.Record) { r.Count-- }),
			[]string{"S6"},
		},
		"no one guessed": {
			func(e *judge.Evidence) {
				drop(func(r ledger.Record) bool {
					return r.Request == guess && (r.Result == "wrong" || r.Result == "wrong_code")
				})(e)
				drop(func(r ledger.Record) bool { return r.Kind == ledger.Counted && r.Result == "wrong_code" })(e)
			}, []string{"S6"},
		},
		"a request is pending after Not me": {
			add(ledger.Record{Kind: ledger.Declined, Request: silent, Number: "1", Result: "PENDING"}), []string{"S7"},
		},
		"Not me is lost after another end": {
			add(ledger.Record{Kind: ledger.Declined, Request: silent, Number: "1", Result: "EXPIRED", Hint: "WRONG_CODE"}), []string{"S7"},
		},
		"Not me is not counted":   {countDeclines(0, 0), []string{"S7"}},
		"Not me is counted twice": {countDeclines(2, 9), []string{"S7"}},
		"Not me is no event": {
			drop(of(ledger.Event, refuse)), []string{"S7"},
		},
		"a declined request is verified": {
			add(ledger.Record{Kind: ledger.Status, Request: refuse, Result: "VERIFIED", Assurance: "session"}), []string{"S1", "S7"},
		},
		"a number gets one request too many": {
			add(
				ledger.Record{Kind: ledger.Begun, Party: ledger.Attacker, Session: "s", Request: "a", Number: "1"},
				ledger.Record{Kind: ledger.Begun, Party: ledger.Attacker, Session: "s", Request: "b", Number: "1"},
			), []string{"S8"},
		},
		"a request begins after Not me": {
			add(ledger.Record{Kind: ledger.Begun, Party: ledger.Attacker, Session: "s", Request: "a", Number: "5", Asked: start.Add(2 * time.Second)}),
			[]string{"S8"},
		},
		"an init is refused for another reason": {
			add(ledger.Record{Kind: ledger.Refused, Number: "1", Answer: 500, Result: "internal"}), []string{"S8"},
		},
		"no init is refused": {
			drop(func(r ledger.Record) bool { return r.Kind == ledger.Refused }), []string{"S8"},
		},
		"no init is refused because of Not me": {
			change(func(r ledger.Record) bool { return r.Kind == ledger.Refused }, func(r *ledger.Record) { r.Hint = "phoneNumber" }), []string{"S8"},
		},
		"no init is refused because of the number's limit": {
			change(func(r ledger.Record) bool { return r.Kind == ledger.Refused }, func(r *ledger.Record) { r.Hint = "declined" }), []string{"S8"},
		},
		"a request begins when every replica has heard of Not me": {
			func(e *judge.Evidence) {
				e.Spread = time.Second
				add(ledger.Record{
					Kind: ledger.Begun, Party: ledger.Attacker, Session: "s", Request: "a", Number: "5", Asked: start.Add(2*time.Second + time.Millisecond),
				})(e)
			}, []string{"S8"},
		},
		"an expired request is verified": {
			add(ledger.Record{Kind: ledger.Status, Request: late, Result: "VERIFIED", Assurance: "session"}), []string{"S9"},
		},
		"a long run has no expired request": {
			drop(of(ledger.Begun, late)), []string{"S9"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := soundRun()
			test.spoil(e)
			g.Expect(violated(e)).To(ConsistOf(test.want))
		})
	}
}

func TestJudge_namesTheRequestAndWhoSawIt(t *testing.T) {
	g := NewWithT(t)
	e := soundRun()
	add(ledger.Record{Kind: ledger.Stored, Request: silent, Result: "VERIFIED"}, ledger.Record{Kind: ledger.Status, Request: silent, Result: "VERIFIED", Assurance: "session"})(e)
	verdict := judge.Judge(e)[0]
	g.Expect(verdict.Violations).To(HaveLen(1))
	g.Expect(strings.Join(verdict.Violations, "")).To(And(
		ContainSubstring("request "+silent), ContainSubstring("relay, obedient"), ContainSubstring("the store status"),
	))
}

func TestJudge_takesALostAnswerOfConfirmForOne(t *testing.T) {
	g := NewWithT(t)
	e := soundRun()
	change(of(ledger.Redeemed, own), func(r *ledger.Record) { r.Answer, r.Result, r.Assurance, r.Count = 409, "already_confirmed", "", 1 })(e)
	g.Expect(violated(e)).To(BeEmpty())
	add(ledger.Record{Kind: ledger.Redeemed, Request: own, Answer: 409, Result: "already_confirmed", Count: 1})(e)
	g.Expect(violated(e)).To(BeEmpty(), "as is a later call that was repeated")
	change(of(ledger.Redeemed, own), func(r *ledger.Record) { r.Count = 0 })(e)
	g.Expect(violated(e)).To(ConsistOf("S3"), "it was redeemed before, by someone else")
}

func TestJudge_takesAnUncountedDeclineForOneThatWasDeliveredAgain(t *testing.T) {
	g := NewWithT(t)
	e := soundRun()
	countDeclines(0, 1)(e)
	g.Expect(violated(e)).To(BeEmpty())
	for n := range 5 {
		request := fmt.Sprintf("declined-%d", n)
		add(
			ledger.Record{Kind: ledger.Declined, Request: request, Number: "9", Result: "EXPIRED", Hint: "DECLINED"},
			ledger.Record{Kind: ledger.Event, Request: request, Result: "EXPIRED", Hint: "DECLINED", ID: "evt_" + request},
		)(e)
	}
	countDeclines(4, 2)(e)
	g.Expect(violated(e)).To(BeEmpty())
	countDeclines(4, 1)(e)
	g.Expect(violated(e)).To(ConsistOf("S7"))
	countDeclines(0, 9)(e)
	g.Expect(violated(e)).To(ConsistOf("S7"), "none is counted")
}

// countDeclines has the replicas count that many declines, and messages that they failed to handle.
func countDeclines(declined, failed int) func(*judge.Evidence) {
	return func(e *judge.Evidence) {
		change(func(r ledger.Record) bool { return r.Kind == ledger.Counted && r.Result == "declined" }, func(r *ledger.Record) { r.Count = declined })(e)
		change(of(ledger.Failed, ""), func(r *ledger.Record) { r.Count = failed })(e)
	}
}

func TestJudge_skipsExpiryInAShortRun(t *testing.T) {
	g := NewWithT(t)
	e := soundRun()
	e.Expiry = false
	drop(of(ledger.Begun, late))(e)
	verdicts := judge.Judge(e)
	g.Expect(verdicts[len(verdicts)-1].Skipped()).To(BeTrue())
	g.Expect(violated(e)).To(BeEmpty())
}
