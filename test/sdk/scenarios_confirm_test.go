package sdk

import (
	. "github.com/onsi/gomega"
)

// confirmScenarios are about confirm, whose tries are few.
var confirmScenarios = []scenario{
	{
		name:   "a confirm whose answer is lost is followed by one status call",
		mutant: mutant{"python", "if is_definite(error):\n                raise", "if True:\n                raise"},
		play: func(p *play) {
			for _, m := range []move{lose, carryOutAnd(badGateway), carryOutAnd(refuse(503, "store_unavailable"))} {
				id, code := p.startProven()
				p.reset()
				p.next("confirm", m)
				p.Expect(p.do("confirm", object{"id": id, "code": code})).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("assurance", "session")))
				p.Expect(p.callsOf("confirm")).To(HaveLen(1), "tries are few")
				p.Expect(p.callsOf("status")).To(HaveLen(1))
			}
		},
	},
	{
		name:   "a confirm that did not arrive is an error, and not sent again",
		mutant: mutant{"go", "case what.isCounted && isUnanswered(err):", "case false:"},
		play: func(p *play) {
			id, code := p.startProven()
			p.next("confirm", drop)
			p.fail("connection_failed", "confirm", object{"id": id, "code": code})
			p.Expect(p.callsOf("confirm")).To(HaveLen(1))
			p.Expect(p.callsOf("status")).To(HaveLen(1))
			p.Expect(p.do("confirm", object{"id": id, "code": code})).To(HaveKeyWithValue("status", "VERIFIED"))
		},
	},
	{
		name:   "a confirm that was not counted is sent again",
		mutant: mutant{"typescript", "(error) => shouldRetry(error) && isOutcomeKnown(error)", "() => false"},
		play: func(p *play) {
			id, code := p.startProven()
			p.next("confirm", refuse(503, "channel_not_ready", "Retry-After", "1"), refuse(429, "rate_limited", "Retry-After", "1"))
			p.Expect(p.do("confirm", object{"id": id, "code": code})).To(HaveKeyWithValue("status", "VERIFIED"))
			p.Expect(p.callsOf("confirm")).To(HaveLen(3))
		},
	},
	{
		name:   "AlreadyConfirmed is an error",
		mutant: mutant{"go", "return known && kind == target", "return known && kind == target && e.Code != codeAlreadyConfirmed"},
		play: func(p *play) {
			id, code := p.startProven()
			p.do("confirm", object{"id": id, "code": code})
			failed := p.fail("already_confirmed", "confirm", object{"id": id, "code": code})
			p.Expect(failed.Kind).To(Equal("AlreadyConfirmed"))
			p.Expect(failed.Status).To(Equal(409))
		},
	},
	{
		name:   "a wrong code is one try",
		mutant: mutant{"python", "return 300 <= error.status < 500 or error.status == 503", "return error.status == 503"},
		play: func(p *play) {
			id, code := p.startProven()
			p.reset()
			failed := p.fail("wrong_code", "confirm", object{"id": id, "code": otherDigits(code)})
			p.Expect(failed.Status).To(Equal(422))
			p.Expect(failed.Field).To(Equal("code"))
			p.Expect(failed.Text).NotTo(ContainSubstring(otherDigits(code)))
			p.Expect(p.callsOf("confirm")).To(HaveLen(1))
			p.Expect(p.callsOf("status")).To(BeEmpty())
			p.Expect(p.do("confirm", object{"id": id, "code": code})).To(HaveKeyWithValue("status", "VERIFIED"))
		},
	},
}

// startProven begins a verification at level Session and has the user send the text. It returns the request's id and its digits.
func (p *play) startProven() (id any, digits string) {
	number := p.newNumber()
	started := p.start(number, object{"assurance": "SESSION"})
	return started["requestId"], p.digits(number, started)
}
