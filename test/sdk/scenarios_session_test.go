package sdk

import (
	"net/http"
	"sync"

	. "github.com/onsi/gomega"
)

// visit is a visitor's session.
type visit struct {
	*play

	id, number string
	started    object
}

// begin begins a verification in a session.
func (p *play) begin(session string) *visit {
	v := &visit{play: p, id: p.name + session, number: p.newNumber()}
	v.started = p.do("begin", object{"session": v.id, "params": p.params(v.number, nil)})
	return v
}

// proven begins a verification in a session and has the user send the text. It returns the digits, too.
func (p *play) proven(session string) (*visit, string) {
	v := p.begin(session)
	return v, p.digits(v.number, v.started)
}

// code returns the arguments of redeem for a code.
func (v *visit) code(code string) object {
	return object{"session": v.id, "code": code, "newSession": v.id + "-new"}
}

// redeemLater has another browser, which has the same session, begin to redeem a code: its confirm is under way. It returns what loses the
// answer.
func (p *play) redeemLater(v *visit, code string) (lose func()) {
	p.reset()
	lost := make(chan struct{})
	p.next("confirm", func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		<-lost
		drop(w, r, api)
	})
	args := v.code(code)
	args["newSession"] = v.id + "-stranger"
	p.do("later", object{"op": "redeem", "args": args})
	p.Eventually(func() []call { return p.callsOf("confirm") }).WithTimeout(patience).Should(HaveLen(1))
	lose = sync.OnceFunc(func() { close(lost) })
	p.tb.Cleanup(lose)
	return lose
}

// verified returns the number that a session has verified; nothing if none.
func (p *play) verified(session string) any {
	var number any
	p.doInto(&number, "verified", object{"session": session})
	return number
}

// sessionScenarios are about the rules of session proof: docs/session.md.
var sessionScenarios = []scenario{
	{
		name:   "a session that began a request verifies its number, under a new id",
		mutant: mutant{"typescript", "await this.#store.remove(sessionId);", ""},
		play: func(p *play) {
			v, digits := p.proven("a")
			p.Expect(p.verified(v.id)).To(BeNil())
			p.Expect(p.do("redeem", v.code(digits[:3]+" "+digits[3:]))).To(HaveKeyWithValue("status", "VERIFIED"))
			p.Expect(p.verified(v.id + "-new")).To(Equal(v.number))
			p.Expect(p.verified(v.id)).To(BeNil(), "the id before has ended")
			p.fail("no_request", "redeem", v.code(digits))
			p.Expect(p.callsOf("confirm")).To(HaveLen(1))
			p.Expect(string(p.callsOf("init")[0].body)).To(ContainSubstring(`"SESSION"`))
		},
	},
	{
		name:   "a session id does not survive the verification",
		mutant: mutant{"python", "if not new_session_id or new_session_id == session_id:", "if not new_session_id:"},
		play: func(p *play) {
			v, digits := p.proven("a")
			for _, same := range []string{v.id, ""} {
				args := v.code(digits)
				args["newSession"] = same
				p.Expect(p.fail("session_id_not_new", "redeem", args).Kind).To(Equal("Session"))
			}
			p.Expect(p.callsOf("confirm")).To(BeEmpty())
			p.do("redeem", v.code(digits))
		},
	},
	{
		name:   "a session without a request redeems nothing",
		mutant: mutant{"go", "state, err := s.loadOpen(ctx, r.SessionID, \"\")", "state, err := s.loadOpen(ctx, r.SessionID, \"\")\n\tif state.Request == \"\" {\n\t\tstate.Request, err = r.Return.Get(\"requestId\"), nil\n\t}"},
		play: func(p *play) {
			v, digits := p.proven("a")
			args := v.code(digits)
			args["session"] = p.name + "stranger"
			p.Expect(p.fail("no_request", "redeem", args).Kind).To(Equal("Session"))
			args["returned"] = v.started["requestId"]
			p.fail("no_request", "redeem", args)
			p.Expect(p.callsOf("confirm")).To(BeEmpty())
		},
	},
	{
		name:   "a return of another request is no try of this session",
		mutant: mutant{"typescript", "'returnedRequestId' in options && returnedRequestId !== state.request", "false"},
		play: func(p *play) {
			v, digits := p.proven("a")
			other := p.begin("b")
			args := v.code(digits)
			args["returned"] = other.started["requestId"]
			p.Expect(p.fail("other_request", "redeem", args).Kind).To(Equal("Session"))
			args["returned"] = "" // none in its address
			p.fail("other_request", "redeem", args)
			p.Expect(p.callsOf("confirm")).To(BeEmpty())
			args["returned"] = v.started["requestId"]
			p.do("redeem", args)
		},
	},
	{
		name:   "a code of another session is a wrong one",
		mutant: mutant{"python", `status = self._confirm(session_id, request, code, state["lost"])`, "self._save(new_session_id, {\"request\": request, \"verified\": \"early\"})\n        status = self._confirm(session_id, request, code, state[\"lost\"])"},
		play: func(p *play) {
			_, digits := p.proven("a")
			other, own := p.proven("b")
			if digits == own {
				digits = otherDigits(own)
			}
			p.fail("wrong_code", "redeem", other.code(digits))
			p.Expect(p.verified(other.id + "-new")).To(BeNil())
			p.do("redeem", other.code(own))
		},
	},
	{
		name:   "only the latest request of a session counts",
		mutant: mutant{"typescript", "await this.#save(sessionId, { request: started.requestId, lost: false });", "(await this.#load(sessionId)) ?? (await this.#save(sessionId, { request: started.requestId, lost: false }));"},
		play: func(p *play) {
			first, digits := p.proven("a")
			second := p.begin("a")
			args := second.code(digits)
			args["returned"] = first.started["requestId"]
			p.fail("other_request", "redeem", args)
			p.fail("wrong_code", "redeem", second.code(otherDigits(p.digits(second.number, second.started))))
		},
	},
	{
		name:   "what another confirmed does not verify a session",
		mutant: mutant{"go", "if state.Lost && errors.Is(err, ErrAlreadyConfirmed)", "if errors.Is(err, ErrAlreadyConfirmed)"},
		play: func(p *play) {
			v, digits := p.proven("a")
			p.do("confirm", object{"id": v.started["requestId"], "code": digits}) // who knows the request and the digits
			p.Expect(p.fail("already_confirmed", "redeem", v.code(digits)).Kind).To(Equal("AlreadyConfirmed"))
			p.fail("already_confirmed", "redeem", v.code(digits))
			p.Expect(p.verified(v.id + "-new")).To(BeNil())
		},
	},
	{
		name:   "a wrong code leaves no confirm behind whose answer was lost",
		mutant: mutant{"typescript", "!isOutcomeKnown(error) ||", "true ||"},
		play: func(p *play) {
			v, digits := p.proven("a")
			p.fail("wrong_code", "redeem", v.code(otherDigits(digits)))
			p.do("confirm", object{"id": v.started["requestId"], "code": digits})
			p.Expect(p.fail("already_confirmed", "redeem", v.code(digits)).Kind).To(Equal("AlreadyConfirmed"))
			p.Expect(p.verified(v.id + "-new")).To(BeNil())
		},
	},
	{
		name:   "a session whose own confirm got no answer is verified by one status call",
		mutant: mutant{"python", `"lost": is_lost}`, `"lost": False}`},
		play: func(p *play) {
			v, digits := p.proven("a")
			p.next("confirm", lose)
			p.always("status", drop)
			p.fail("connection_failed", "redeem", v.code(digits))
			p.Expect(p.verified(v.id + "-new")).To(BeNil())
			p.reset()
			p.Expect(p.do("redeem", v.code(digits))).To(HaveKeyWithValue("status", "VERIFIED"))
			p.Expect(p.callsOf("status")).To(HaveLen(1))
			p.Expect(p.verified(v.id + "-new")).To(Equal(v.number))
		},
	},
	{
		name:   "a lost answer verifies the session at once, if the status is there",
		mutant: mutant{"go", "statusErr == nil && now.Status == Verified", "statusErr != nil && now.Status == Verified"},
		play: func(p *play) {
			v, digits := p.proven("a")
			p.next("confirm", lose)
			p.Expect(p.do("redeem", v.code(digits))).To(HaveKeyWithValue("status", "VERIFIED"))
			p.Expect(p.verified(v.id + "-new")).To(Equal(v.number))
		},
	},
	{
		name:   "a lost answer brings no session back that was verified meanwhile",
		mutant: mutant{"go", "s.loadOpen(ctx, sessionID, state.Request)", "s.load(ctx, sessionID)"},
		play: func(p *play) {
			v, digits := p.proven("a")
			lose := p.redeemLater(v, otherDigits(digits))
			p.Expect(p.do("redeem", v.code(digits))).To(HaveKeyWithValue("status", "VERIFIED"))
			p.always("status", drop)
			lose()
			p.Expect(p.call("join", object{}).Error).NotTo(BeNil())
			p.reset()
			stranger := v.code(otherDigits(digits))
			stranger["newSession"] = v.id + "-stranger"
			p.fail("no_request", "redeem", stranger)
			p.Expect(p.verified(v.id + "-new")).To(Equal(v.number))
		},
	},
	{
		name:   "a lost answer does not verify by what another browser redeemed meanwhile",
		mutant: mutant{"python", "self._load_open(session_id, request)\n        self._save(new", "self._save(new"},
		play: func(p *play) {
			v, digits := p.proven("a")
			lose := p.redeemLater(v, otherDigits(digits))
			p.do("redeem", v.code(digits))
			lose() // its status is VERIFIED
			p.fail("no_request", "join", object{})
			p.Expect(p.verified(v.id + "-stranger")).To(BeNil())
		},
	},
	{
		name:   "a lost answer does not overwrite the request that the session began meanwhile",
		mutant: mutant{"typescript", "{ ...(await this.#loadOpen(sessionId, state.request)), lost }", "{ ...state, lost }"},
		play: func(p *play) {
			first, digits := p.proven("a")
			lose := p.redeemLater(first, otherDigits(digits))
			second := p.begin("a")
			p.always("status", drop)
			lose()
			p.Expect(p.call("join", object{}).Error).NotTo(BeNil())
			p.reset()
			p.do("redeem", second.code(p.digits(second.number, second.started)))
			p.Expect(p.verified(second.id + "-new")).To(Equal(second.number))
		},
	},
	{
		name:   "a weaker assurance does not verify a session",
		mutant: mutant{"python", " or status.assurance not in self._accept", ""},
		play: func(p *play) {
			v, digits := p.proven("a")
			p.next("confirm", change(func(status object) { status["assurance"] = "shared_contact" }))
			p.Expect(p.fail("not_verified", "redeem", v.code(digits)).Kind).To(Equal("Session"))
			p.Expect(p.verified(v.id + "-new")).To(BeNil())
			p.Expect(p.verified(v.id)).To(BeNil())
		},
	},
	{
		name:   "a session redeems a CODE",
		mutant: mutant{"typescript", "start({ ...params, assurance }", "start({ ...params, deliver: null, assurance }"},
		play: func(p *play) {
			number := p.newNumber()
			v := &visit{p, p.name + "a", number, nil}
			v.started = p.do("begin", object{"session": v.id, "params": p.params(number, object{"deliver": "CODE"})})
			p.Expect(v.started).To(HaveKey("codeLength"))
			p.Expect(p.do("redeem", v.code(p.deliveredCode(number)))).To(HaveKeyWithValue("via", "CODE"))
			p.Expect(p.verified(v.id + "-new")).To(Equal(number))
		},
	},
}
