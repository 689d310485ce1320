package sdk

import (
	. "github.com/onsi/gomega"
)

// deliverScenarios are about codes that the caller made.
var deliverScenarios = []scenario{
	{
		name:   "deliver has a code sent, and get and list show how it went",
		mutant: mutant{"go", `"kind": params.Kind`, `"kind": ""`},
		play: func(p *play) {
			number := p.newNumber()
			id := p.do("deliver", object{"delivery": object{
				"phoneNumber": number, "code": "40817253", "method": "WHATSAPP", "locale": "en", "subject": p.name,
			}})["deliveryId"]
			c := p.callsOf("deliver")[0]
			p.Expect(c.body).To(MatchJSON(`{"phoneNumber":"` + number + `","code":"40817253","method":"WHATSAPP","locale":"en","subject":"` + p.name + `"}`))
			p.Expect(c.header).NotTo(HaveKey("Idempotency-Key"))
			p.Expect(p.deliveredCode(number)).To(Equal("40817253"))
			p.Eventually(func() object { return p.do("get", object{"id": id}) }).WithTimeout(patience).Should(And(
				HaveKeyWithValue("requestId", id), HaveKeyWithValue("kind", "DELIVERY"), HaveKeyWithValue("codeDelivery", "SENT")))
			p.Expect(idsOf(p.list("list", object{"kind": "DELIVERY"}))).To(ContainElement(id))
			p.Expect(idsOf(p.list("find", object{"kind": "DELIVERY", "phoneNumber": number}))).To(Equal([]any{id}))
			failed := p.fail("invalid_code", "deliver", object{"delivery": object{"phoneNumber": number, "code": "4081-7253"}})
			p.Expect(failed).To(And(HaveField("Status", 400), HaveField("Field", "code"), HaveField("Text", Not(ContainSubstring("4081-7253")))))
		},
	},
	{
		name:   "a deliver whose answer is lost is one delivery, as all with the same number and code are, or with the same key",
		mutant: mutant{"typescript", "'/api/verify/deliver', body: params, idempotencyKey,", "'/api/verify/deliver', body: params,"},
		play: func(p *play) {
			delivery := object{"phoneNumber": p.newNumber(), "code": "40817254"}
			p.next("deliver", lose, refuse(503, "store_unavailable"))
			id := p.do("deliver", object{"delivery": delivery})["deliveryId"]
			p.Expect(p.do("deliver", object{"delivery": delivery})["deliveryId"]).To(Equal(id))
			p.Expect(p.callsOf("deliver")).To(HaveLen(4))
			delivery["phoneNumber"] = p.newNumber()
			keyed := p.do("deliver", object{"delivery": delivery, "idempotencyKey": p.name})["deliveryId"]
			p.Expect(p.callsOf("deliver")[4].header.Get("Idempotency-Key")).To(Equal(p.name))
			delivery["code"] = "40817255"
			p.Expect(p.call("deliver", object{"delivery": delivery, "idempotencyKey": p.name}).Error).To(HaveField("Code", "idempotency_key_reused"))
			p.Expect(keyed).NotTo(Equal(id))
		},
	},
}
