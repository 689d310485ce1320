package sdk

import (
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/gomega"
)

// ofLibrary is the form of Idempotency-Keys that a library makes.
const ofLibrary = "^once_[a-z2-7]{26}$"

// callScenarios are about single calls, and when they are repeated.
var callScenarios = []scenario{
	{
		name:   "start sends what it is given, with key, version and an Idempotency-Key of its own",
		mutant: mutant{"python", `f"phoneproof-python/{__version__}"`, `"python"`},
		play: func(p *play) {
			started := p.start("+49 1511 9000001", object{"reference": p.name, "metadata": object{"cart": "3"}, "locale": "es", "method": "WHATSAPP"})
			p.Expect(started).To(And(HaveKey("waLink"), HaveKey("expectedText"), HaveKeyWithValue("expiresIn", MatchRegexp("^[0-9]+s$"))))
			c := p.callsOf("init")[0]
			p.Expect(c.header.Get("Authorization")).To(Equal("Bearer " + p.key))
			p.Expect(c.header.Get("Idempotency-Key")).To(MatchRegexp(ofLibrary))
			p.Expect(c.header.Get("User-Agent")).To(MatchRegexp(`^phoneproof-` + p.language + `/[0-9]+\.[0-9]+\.[0-9]+`))
			status := p.do("status", object{"id": started["requestId"]})
			p.Expect(status).To(And(HaveKeyWithValue("reference", p.name), HaveKeyWithValue("metadata", object{"cart": "3"})))
			p.Expect(p.do("get", object{"id": started["requestId"]})).To(HaveKeyWithValue("locale", "es"))
		},
	},
	{
		name:   "an Idempotency-Key of the caller is sent as it is",
		mutant: mutant{"go", `if key == "" {`, "if true {"},
		play: func(p *play) {
			params := p.params("+4915119000002", object{"reference": p.name})
			first := p.do("start", object{"params": params, "idempotencyKey": p.name})
			again := p.do("start", object{"params": params, "idempotencyKey": p.name})
			p.Expect(again["requestId"]).To(Equal(first["requestId"]))
			p.Expect(p.callsOf("init")[1].header.Get("Idempotency-Key")).To(Equal(p.name))
			params["reference"] = p.name + "-other"
			p.Expect(p.fail("idempotency_key_reused", "start", object{"params": params, "idempotencyKey": p.name}).Status).To(Equal(422))
		},
	},
	{
		name:   "a start whose answer is lost makes one request",
		mutant: mutant{"typescript", "{ 'Idempotency-Key': idempotencyKey }", "{ 'Idempotency-Key': newIdempotencyKey() }"},
		play: func(p *play) {
			p.next("init", lose)
			started := p.start("+4915119000003", object{"reference": p.name})
			stored := p.list("list", object{"reference": p.name})
			p.Expect(stored).To(HaveLen(1), "a retry made another request")
			p.Expect(stored[0]["requestId"]).To(Equal(started["requestId"]))
		},
	},
	{
		name:   "two starts are two requests",
		mutant: mutant{"python", "base64.b32encode(secrets.token_bytes(17))[:26].decode().lower()", `"a" * 26`},
		play: func(p *play) {
			one, two := p.start("+4915119000004", nil), p.start("+4915119000004", nil)
			p.Expect(one["requestId"]).NotTo(Equal(two["requestId"]))
		},
	},
	{
		name:   "503 is tried three times in all",
		mutant: mutant{"go", "try == maxTries ||", "try > maxTries ||"},
		play: func(p *play) {
			id := p.start("+4915119000005", nil)["requestId"]
			p.next("status", refuse(503, "store_unavailable"), refuse(500, "internal"))
			p.Expect(p.do("status", object{"id": id})).To(HaveKeyWithValue("status", "PENDING"))
			p.always("status", refuse(503, "store_unavailable"))
			failed := p.fail("store_unavailable", "status", object{"id": id})
			p.Expect(failed.Status).To(Equal(503))
			p.Expect(p.callsOf("status")).To(HaveLen(6))
		},
	},
	{
		name:   "retries come soon, and are spread",
		mutant: mutant{"typescript", "Math.random() * firstPause * 2 ** (count - 1)", "4"},
		play: func(p *play) {
			id := p.start("+4915119000006", nil)["requestId"]
			var gaps []time.Duration
			for range 8 {
				p.next("status", refuse(503, "store_unavailable"))
				p.do("status", object{"id": id})
				calls := p.callsOf("status")
				gaps = append(gaps, calls[len(calls)-1].at.Sub(calls[len(calls)-2].at))
				p.Expect(gaps[len(gaps)-1]).To(BeNumerically("<", 3*time.Second), "0.2 s at most, and what a busy machine takes")
			}
			p.Expect(slices.Max(gaps)-slices.Min(gaps)).To(BeNumerically(">", 25*time.Millisecond), "jitter: %v", gaps)
		},
	},
	{
		name:   "Retry-After of a second is waited for",
		mutant: mutant{"python", "max(error.retry_after or 0.0, ", "max(0.0, "},
		play: func(p *play) {
			id := p.start("+4915119000007", nil)["requestId"]
			p.next("status", refuse(429, "rate_limited", "Retry-After", "1"))
			p.Expect(seconds(func() { p.do("status", object{"id": id}) })).To(BeNumerically(">=", 0.99))
			p.Expect(p.callsOf("status")).To(HaveLen(2))
		},
	},
	{
		name:   "Retry-After of a minute is an error at once",
		mutant: mutant{"go", `parseRetryAfter(response.Header.Get("Retry-After"))`, "0"},
		play: func(p *play) {
			id := p.start("+4915119000008", nil)["requestId"]
			p.always("status", refuse(429, "rate_limited", "Retry-After", "60"))
			failed := p.fail("rate_limited", "status", object{"id": id})
			p.Expect(failed.RetryAfter).To(BeEquivalentTo(60))
			p.Expect(failed.Status).To(Equal(429))
			p.Expect(p.callsOf("status")).To(HaveLen(1))
		},
	},
	{
		name:   "Retry-After that is a date, long or unreadable is read",
		mutant: mutant{"typescript", "value.endsWith('GMT') ? ", "value ? "},
		play: func(p *play) {
			for _, value := range []string{"Sat, 02 Jan 2106 15:04:05 GMT", "100000", "99999999999", "99999999999999999999999", "1.5", "-1", "soon"} {
				p.reset()
				p.always("status", refuse(429, "rate_limited", "Retry-After", value))
				p.Expect(p.fail("rate_limited", "status", object{"id": "vr1"}).RetryAfter).To(BeEquivalentTo(86_400), value)
				p.Expect(p.callsOf("status")).To(HaveLen(1), value)
			}
			p.always("status", refuse(429, "rate_limited", "Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)))
			p.Expect(p.fail("rate_limited", "status", object{"id": "vr1"}).RetryAfter).To(And(BeNumerically(">", 10), BeNumerically("<=", 60)))
			p.reset()
			p.always("status", refuse(429, "rate_limited", "Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"))
			p.Expect(p.fail("rate_limited", "status", object{"id": "vr1"}).RetryAfter).To(BeZero())
			p.Expect(p.callsOf("status")).To(HaveLen(3))
		},
	},
	{
		name:   "codes_limited is not tried again",
		mutant: mutant{"typescript", "code !== 'codes_limited' && ", ""},
		play: func(p *play) {
			p.always("init", refuse(429, "codes_limited", "Retry-After", "1"))
			failed := p.fail("codes_limited", "start", object{"params": p.params("+4915119000009", object{"deliver": "CODE"})})
			p.Expect(failed.RetryAfter).To(BeEquivalentTo(1))
			p.Expect(p.callsOf("init")).To(HaveLen(1))
		},
	},
	{
		name:   "a number that declined is not asked for again",
		mutant: mutant{"python", ` or error.rate_limit == "declined"`, ""},
		play: func(p *play) {
			p.always("init", refuse(429, "rate_limited", "Retry-After", "1", "RateLimit", `"declined";r=0;t=1`))
			p.fail("rate_limited", "start", object{"params": p.params("+4915119000010", nil)})
			p.Expect(p.callsOf("init")).To(HaveLen(1))
		},
	},
	{
		name:   "a refusal has code, reason, field, status and the id of the HTTP request, and is not tried again",
		mutant: mutant{"go", "answer.Error.Field, answer.Error.Reason", "answer.Error.Reason, answer.Error.Field"},
		play: func(p *play) {
			failed := p.fail("invalid_phone_number", "start", object{"params": p.params("015112345678", nil)})
			p.Expect(failed.Reason).To(Equal("no_country_code"))
			p.Expect(failed.Field).To(Equal("phoneNumber"))
			p.Expect(failed.Status).To(Equal(400))
			p.Expect(failed.HTTPRequestID).To(MatchRegexp("^[A-Za-z0-9._-]{8,}$"))
			p.Expect(failed.Kind).To(BeEmpty())
			p.Expect(p.fail("request_not_found", "status", object{"id": "vr" + "aaaaaaaaaaaaaaaaaaaaaaaa"}).Status).To(Equal(404))
			p.Expect(p.fail("invalid_argument", "status", object{"id": ""})).To(And(HaveField("Status", 0), HaveField("Field", "requestId")))
			p.Expect(p.callsOf("init")).To(HaveLen(1))
			p.Expect(p.callsOf("status")).To(HaveLen(1))
		},
	},
	{
		name:   "codes and fields that a library does not know are kept",
		mutant: mutant{"typescript", "hasStrings(answer, expect))", "hasStrings(answer, expect) && answer.status !== 'ON_HOLD')"},
		play: func(p *play) {
			id := p.start("+4915119000011", nil)["requestId"]
			p.next("status", change(func(status object) {
				status["status"], status["hint"], status["later"] = "ON_HOLD", "NEW_HINT", object{"a": []any{1.0, nil}}
			}))
			p.Expect(p.do("status", object{"id": id})).To(And(
				HaveKeyWithValue("status", "ON_HOLD"), HaveKeyWithValue("hint", "NEW_HINT"), HaveKeyWithValue("later", object{"a": []any{1.0, nil}})))
			p.always("status", refuse(418, "new_code"))
			p.Expect(p.fail("new_code", "status", object{"id": id}).Status).To(Equal(418))
		},
	},
	{
		name:   "a CODE that an older server does not know is an error",
		mutant: mutant{"go", "params.Deliver == DeliverCode && started.CodeLength == 0", "false"},
		play: func(p *play) {
			p.next("init", change(func(started object) { delete(started, "codeLength") }))
			failed := p.fail("codes_unsupported", "start", object{"params": p.params(p.newNumber(), object{"deliver": "CODE"})})
			p.Expect(failed.Kind).To(Equal("CodesUnsupported"))
			p.Expect(failed.Status).To(Equal(200))
			p.Expect(p.callsOf("init")).To(HaveLen(1))
		},
	},
	{
		name:   "a CODE verifies",
		mutant: mutant{"typescript", "params.deliver === 'CODE' && typeof started.codeLength !== 'number'", "params.deliver === 'CODE'"},
		play: func(p *play) {
			number := p.newNumber()
			started := p.start(number, object{"deliver": "CODE"})
			p.Expect(started["codeLength"]).To(BeEquivalentTo(8))
			p.Expect(p.callsOf("init")[0].header.Get("Idempotency-Key")).To(MatchRegexp(ofLibrary))
			confirmed := p.do("confirm", object{"id": started["requestId"], "code": p.deliveredCode(number)})
			p.Expect(confirmed).To(And(HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("via", "CODE"), HaveKeyWithValue("phoneNumber", number)))
		},
	},
	{
		name:   "cancel and redeliver are repeated, and tell the request",
		mutant: mutant{"python", `"/api/verify/cancel", {"requestId": _check_id(request_id)})`, `"/api/verify/cancel", {"requestId": _check_id(request_id)}, is_repeatable=False)`},
		play: func(p *play) {
			started := p.start("+4915119000012", nil)
			id := started["requestId"]
			p.next("cancel", lose)
			p.Expect(p.do("cancel", object{"id": id})).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "CANCELED")))
			first := p.awaitEvents(id, 1)[0]
			p.next("redeliver", refuse(503, "store_unavailable"))
			p.Expect(p.do("redeliver", object{"id": id})).To(And(HaveKeyWithValue("requestId", id), HaveKey("delivery"), HaveKey("createdAt")))
			p.Expect(p.callsOf("redeliver")).To(HaveLen(2))
			p.Expect(p.awaitEvents(id, 2)[1].header.Get("Webhook-Id")).To(Equal(first.header.Get("Webhook-Id")))
			p.Expect(p.fail("no_event", "redeliver", object{"id": p.start("+4915119000013", nil)["requestId"]}).Status).To(Equal(409))
		},
	},
	{
		name:   "get reads a request, however its id is written",
		mutant: mutant{"typescript", "encodeURIComponent(checkID(requestId))", "checkID(requestId)"},
		play: func(p *play) {
			id := p.start("+4915119000014", object{"reference": p.name})["requestId"]
			p.Expect(p.do("get", object{"id": id})).To(And(HaveKeyWithValue("requestId", id), HaveKeyWithValue("apiKey", "backend")))
			for _, other := range []string{"a/../b", "a?status=VERIFIED", "a#b", "a%2Fb", "ä b"} {
				p.Expect(p.call("get", object{"id": other}).Error).To(HaveField("Status", 404), other)
			}
			p.Expect(p.callsOf("get")).To(HaveLen(6))
			for _, c := range p.callsOf("get") {
				p.Expect(c.target).To(MatchRegexp("^/api/verify/requests/[^/?]+$"))
			}
		},
	},
	{
		name:   "the API's description can be read",
		mutant: mutant{"go", `call{path: "/openapi.json"}`, `call{path: "openapi.json"}`},
		play: func(p *play) {
			p.Expect(p.do("openapi", object{})).To(HaveKeyWithValue("openapi", "3.1.0"))
			p.Expect(p.callsOf("openapi.json")[0].header.Get("User-Agent")).To(HavePrefix("phoneproof-"))
		},
	},
	{
		name:   "a base address may have a path and a slash at its end",
		mutant: mutant{"python", `base_url.rstrip("/")`, "base_url"},
		play: func(p *play) {
			p.do("client", object{"name": "path", "baseURL": p.url + "/shop/verify/", "apiKey": p.key})
			p.do("start", object{"client": "path", "params": p.params("+4915119000015", nil)})
			p.Expect(p.callsOf("init")[0].target).To(Equal("/shop/verify/api/verify/init"))
			p.Expect(p.callsOf("init")[0].header.Get("Content-Type")).To(Equal("application/json"))
		},
	},
}
