package sdk

import (
	"net"
	"strings"

	. "github.com/onsi/gomega"
)

// badScenarios are inputs and answers that a library cannot use: each is one error, the same in all languages.
var badScenarios = []scenario{
	{
		name:   "a base address that is none is refused",
		mutant: mutant{"typescript", `[^\s?#@\\]`, `[^\s?#\\]`},
		play: func(p *play) {
			for _, address := range []string{
				"", " ", "shop.example.com", "ftp://shop.example.com", "http://", "https://ada:secret@shop.example.com",
				"https://shop.example.com?x=1", "https://shop.example.com/#x", "https://shop.example.com\n", "javascript:alert(1)", "https:shop.example.com",
				"http://shop.example.com:99999", "http://shop.example.com:x",
			} {
				failed := p.fail("invalid_base_url", "client", object{"name": "bad", "baseURL": address, "apiKey": p.key})
				p.Expect(failed.Text).NotTo(ContainSubstring("ada:secret"))
			}
		},
	},
	{
		name:   "a host with a wrong label is a failed connection",
		mutant: mutant{"typescript", "new PhoneProofError('connection_failed', ", "new PhoneProofError('no_connection', "},
		play: func(p *play) {
			for _, host := range []string{".example.com", "verify..example.com", strings.Repeat("a", 64) + ".example.com"} {
				for _, scheme := range []string{"http://", "https://"} {
					p.do("client", object{"name": "bad", "baseURL": scheme + host, "apiKey": p.key})
					p.fail("connection_failed", "status", object{"client": "bad", "id": "vr1"})
				}
			}
		},
	},
	{
		name:   "a timeout of nothing is refused",
		mutant: mutant{"typescript", "checkTimeout(timeout, 0.001)", "checkTimeout(timeout)"},
		play: func(p *play) {
			for _, timeout := range []int{0, -1} {
				p.fail("invalid_argument", "client", object{"name": "bad", "baseURL": p.url, "apiKey": p.key, "timeout": timeout})
			}
		},
	},
	{
		name:   "an API key with a newline is refused, and not repeated",
		mutant: mutant{"go", "r <= ' ' || r > '~'", `r < '\n' || r > '~'`},
		play: func(p *play) {
			for _, key := range []string{"pp_ab\ncdefgh", "pp_abcdefgh\r\n", "pp_ab cdefgh", "pp_abcdefgh ", "", "pp_äbcdefgh"} {
				failed := p.fail("invalid_api_key", "client", object{"name": "bad", "baseURL": p.url, "apiKey": key})
				p.Expect(failed.Text).NotTo(ContainSubstring("cdefgh"))
			}
		},
	},
	{
		name:   "the API key is in no text",
		mutant: mutant{"python", `_Hidden(f"Bearer {api_key}")`, `f"Bearer {api_key}"`},
		play: func(p *play) {
			client := p.do("client", object{"name": "c", "baseURL": p.url, "apiKey": p.key})
			p.Expect(text(client, "text")).NotTo(BeEmpty())
			p.Expect(text(client, "text")).NotTo(ContainSubstring(p.key))
			p.Expect(text(client, "text")).NotTo(ContainSubstring(p.key[:12]))
			const unknown = "pp_unknownunknownunknownunknown"
			p.do("client", object{"name": "bad", "baseURL": p.url, "apiKey": unknown})
			failed := p.fail("unknown_api_key", "status", object{"client": "bad", "id": "vr1"})
			p.Expect(failed.Status).To(Equal(401))
			p.Expect(failed.Text).NotTo(ContainSubstring(unknown))
			p.Expect(p.callsOf("status")).To(HaveLen(1))
			p.always("status", drop)
			p.Expect(p.fail("connection_failed", "status", object{"id": "vr1"}).Status).To(BeZero())
		},
	},
	{
		name:   "a proxy's HTML with 502 is tried again, and then an unexpected answer",
		mutant: mutant{"typescript", "${status} ${what}`, details)", "${status} ${what}`, {})"},
		play: func(p *play) {
			id := p.start("+4915119000101", nil)["requestId"]
			p.next("status", badGateway)
			p.do("status", object{"id": id})
			p.always("status", badGateway)
			failed := p.fail("unexpected_answer", "status", object{"id": id})
			p.Expect(failed.Status).To(Equal(502))
			p.Expect(p.callsOf("status")).To(HaveLen(5))
		},
	},
	{
		name:   "JSON that is truncated or has another form is an unexpected answer",
		mutant: mutant{"go", "require(s.Status, s.PhoneNumber)", "nil"},
		play: func(p *play) {
			for _, body := range []string{`{"status":"PEND`, ``, `[]`, `"PENDING"`, `null`, `42`, `{}`, `{"status":5,"phoneNumber":"+49","expiresAt":"2026-11-21T12:10:00.000Z"}`, "\xff{}"} {
				p.always("status", answer(200, "application/json", body))
				failed := p.fail("unexpected_answer", "status", object{"id": "vr1"})
				p.Expect(failed.Status).To(Equal(200), "%q", body)
			}
			p.always("init", answer(200, "application/json", `{"requestId":"`))
			p.fail("unexpected_answer", "start", object{"params": p.params("+4915119000102", nil)})
			p.always("deliver", answer(202, "application/json", "{}"))
			p.fail("unexpected_answer", "deliver", object{"delivery": object{"phoneNumber": "+4915119000104", "code": "1234"}})
			p.always("requests", answer(200, "application/json", `{"requests":{}}`))
			p.Expect(p.fail("unexpected_answer", "list", object{}).Status).To(Equal(200))
			p.always("cancel", answer(400, "application/json", `{"error":"no"}`))
			p.Expect(p.fail("unexpected_answer", "cancel", object{"id": "vr1"}).Status).To(Equal(400))
		},
	},
	{
		name:   "an answer without an end is not read to the end",
		mutant: mutant{"python", "MAX_ANSWER = 1 << 20", "MAX_ANSWER = 1 << 24"},
		play: func(p *play) {
			p.always("status", answer(200, "application/json", `{"status":"PENDING","phoneNumber":"+4915112345678","expiresAt":"2026-11-21T12:10:00.000Z","x":"`+strings.Repeat("a", 2<<20)+`"}`))
			p.Expect(p.fail("unexpected_answer", "status", object{"id": "vr1"}).Status).To(Equal(200))
		},
	},
	{
		name:   "a redirect is not followed",
		mutant: mutant{"typescript", "redirect: 'manual'", "redirect: 'follow'"},
		play: func(p *play) {
			for _, status := range []int{301, 302, 307, 308} {
				p.always("status", answer(status, "text/html", "", "Location", p.url+"/elsewhere"))
				p.Expect(p.fail("redirected", "status", object{"id": "vr1"}).Status).To(Equal(status))
				p.always("init", answer(status, "text/html", "", "Location", p.url+"/elsewhere"))
				p.fail("redirected", "start", object{"params": p.params("+4915119000103", nil)})
			}
			p.Expect(p.callsOf("elsewhere")).To(BeEmpty())
			p.Expect(p.callsOf("status")).To(HaveLen(4))
		},
	},
	{
		name:   "a server that is not there is a failed connection",
		mutant: mutant{"python", `raise PhoneProofError("connection_failed"`, `raise PhoneProofError("timed_out"`},
		play: func(p *play) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			p.Expect(err).NotTo(HaveOccurred())
			p.Expect(listener.Close()).To(Succeed())
			p.do("client", object{"name": "away", "baseURL": "http://" + listener.Addr().String(), "apiKey": p.key})
			failed := p.fail("connection_failed", "status", object{"client": "away", "id": "vr1"})
			p.Expect(failed.Status).To(BeZero())
		},
	},
	{
		name:   "a server that does not answer is given up",
		mutant: mutant{"typescript", "new PhoneProofError('timed_out', ", "new PhoneProofError('no_answer', "},
		play: func(p *play) {
			p.do("client", object{"name": "hasty", "baseURL": p.url, "apiKey": p.key, "timeout": 0.2})
			p.always("status", hang)
			var failed *failure
			p.Expect(seconds(func() { failed = p.fail("timed_out", "status", object{"client": "hasty", "id": "vr1"}) })).To(BeNumerically("<", 20))
			p.Expect(failed.Status).To(BeZero())
			p.Expect(p.callsOf("status")).To(HaveLen(3))
		},
	},
}
