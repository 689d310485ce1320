package sdk

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

// oldSecret is what was replaced by the secret of the world, and rawSecret one that is not of keygen.
const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwxxxxxxxxxxx="
	rawSecret = "an ordinary secret with $igns and 'quotes' ä"
)

// bodyOf returns the body of an event that is made up.
func bodyOf(kind string, at time.Time, more string) string {
	return `{"event":"` + kind + `","phoneNumber":"+4915112345678","actualPhoneNumber":"+4915112345678","requestId":"vr4soqontb52m5bmeyx7bop4b4",` +
		`"projectId":"default/shop","method":"WHATSAPP","timestamp":"` + at.UTC().Format("2006-01-02T15:04:05.000Z") + `"` + more + `}`
}

const (
	success     = "verification.success"
	testSuccess = "test.verification.success"
)

// receiveScenarios are about receive.
var receiveScenarios = []scenario{
	{
		name:   "an event of the server is received",
		mutant: mutant{"typescript", "encode(`${id}.${sent}.`), body]", "encode(`${id}.${sent}.`), encode(JSON.stringify(parseObject(body) ?? null))]"},
		play: func(p *play) {
			started := p.startVerified(object{"reference": p.name, "metadata": object{"10": "a", "9": "b"}})
			d := p.awaitEvents(started["requestId"], 1)[0].delivery()
			p.Expect(p.do("receive", p.received(d, nil))).To(And(
				HaveKeyWithValue("event", success), HaveKeyWithValue("requestId", started["requestId"]), HaveKeyWithValue("reference", p.name),
				HaveKeyWithValue("metadata", object{"9": "b", "10": "a"})))
			var parsed any
			p.Expect(json.Unmarshal(d.body, &parsed)).To(Succeed())
			again, err := json.Marshal(parsed)
			p.Expect(err).NotTo(HaveOccurred())
			failed := p.fail("invalid_signature", "receive", p.received(delivery{d.headers, append(again, '\n')}, nil))
			p.Expect(failed.Kind).To(Equal("Signature"), "what was parsed and written again has other bytes")
		},
	},
	{
		name:   "an event of a test key of the server is received",
		mutant: mutant{"go", "isTest && !test || !isTest && !live", "isTest && !test || !live"},
		play: func(p *play) {
			started := p.do("start", object{"client": "staging", "params": p.params("+12025550110", nil)})
			d := p.awaitEvents(started["requestId"], 1)[0].delivery()
			p.Expect(p.do("receive", p.received(d, nil))).To(And(HaveKeyWithValue("event", testSuccess), HaveKeyWithValue("test", true)))
			p.fail("invalid_signature", "receive", p.received(d, object{"testSecrets": []string{}}))
		},
	},
	{
		name:   "what a test secret signs is no event of users",
		mutant: mutant{"python", "(is_test if event.is_test else is_live)", "(is_test if event.is_test else is_live or is_test)"},
		play: func(p *play) {
			d := deliver(p.testSecret, "evt_1", time.Now(), bodyOf(success, time.Now(), ""))
			p.fail("invalid_signature", "receive", p.received(d, nil))
		},
	},
	{
		name:   "what a live secret signs is no test event",
		mutant: mutant{"typescript", "isTestEvent(event) ? isTest : isLive", "isTestEvent(event) ? isTest || isLive : isLive"},
		play: func(p *play) {
			d := deliver(p.secret, "evt_1", time.Now(), bodyOf(testSuccess, time.Now(), `,"test":true`))
			p.fail("invalid_signature", "receive", p.received(d, nil))
		},
	},
	{
		name:   "while a secret is replaced, either signature counts",
		mutant: mutant{"go", "strings.Fields(presented)", "strings.Fields(presented)[:1]"},
		play: func(p *play) {
			now := time.Now()
			d := deliver(p.secret, "evt_1", now, bodyOf(success, now, ""))
			by := deliver(oldSecret, "evt_1", now, string(d.body))
			both := d.with("webhook-signature", text(by.headers, "webhook-signature")+" "+text(d.headers, "webhook-signature"))
			for _, secrets := range [][]string{{p.secret}, {oldSecret}, {oldSecret, p.secret}, {rawSecret, p.secret}} {
				p.do("receive", p.received(both, object{"secrets": secrets}))
			}
			p.do("receive", p.received(d, object{"secrets": []string{oldSecret, p.secret}}))
			p.do("receive", p.received(deliver(rawSecret, "evt_1", now, string(d.body)), object{"secrets": []string{p.secret, rawSecret}}))
			p.fail("invalid_signature", "receive", p.received(both, object{"secrets": []string{rawSecret}}))
		},
	},
	{
		name:   "what was forged is refused",
		mutant: mutant{"python", "hmac.compare_digest(want.encode(), part)", "hmac.compare_digest(want.encode()[: len(part)], part)"},
		play: func(p *play) {
			now := time.Now()
			d := deliver(p.secret, "evt_1", now, bodyOf(success, now, ""))
			forged := delivery{d.headers, bytes.Replace(d.body, []byte("+49151"), []byte("+49152"), 1)}
			p.Expect(p.fail("invalid_signature", "receive", p.received(forged, nil)).Kind).To(Equal("Signature"))
			p.fail("invalid_signature", "receive", p.received(d.with("webhook-id", "evt_2"), nil))
			signature := text(d.headers, "webhook-signature")
			for _, other := range []string{
				"v2" + signature[2:], signature[:len(signature)-4], strings.TrimPrefix(signature, "v1,"), "v1,", "v1,ä", "v1, ", strings.ToLower(signature), signature + "AAAA",
			} {
				p.fail("invalid_signature", "receive", p.received(d.with("webhook-signature", other), nil))
			}
		},
	},
	{
		name:   "headers that are missing or no time are refused",
		mutant: mutant{"typescript", "if (id && sent && presented)", "if (sent && presented)"},
		play: func(p *play) {
			d := deliver(p.secret, "evt_1", time.Now(), bodyOf(success, time.Now(), ""))
			for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
				p.Expect(p.fail("missing_signature", "receive", p.received(d.with(name, nil), nil)).Kind).To(Equal("Signature"))
			}
			for _, timestamp := range []string{"soon", "1e9", "-1", " ", "NaN", "99999999999999999999999", "٣"} {
				p.Expect(p.call("receive", p.received(d.with("webhook-timestamp", timestamp), nil)).Error).To(
					HaveField("Kind", "Signature"), timestamp)
			}
		},
	},
	{
		name:   "a clock that is ten minutes wrong is noticed, in both directions",
		mutant: mutant{"go", "late.Abs() > ", "late > "},
		play: func(p *play) {
			now := time.Now()
			d := deliver(p.secret, "evt_1", now, bodyOf(success, now, ""))
			for _, wrong := range []int64{-600, 600, -302, 302} {
				failed := p.fail("stale_timestamp", "receive", p.received(d, object{"now": now.Unix() + wrong}))
				p.Expect(failed.Kind).To(Equal("Signature"))
			}
			for _, right := range []int64{-298, 298, 0} {
				p.do("receive", p.received(d, object{"now": now.Unix() + right}))
			}
			p.fail("stale_timestamp", "receive", p.received(d, object{"now": now.Unix() + 30, "tolerance": 10}))
			p.fail("stale_timestamp", "receive", p.received(deliver(p.secret, "evt_1", now.Add(-time.Hour), string(d.body)), nil))
		},
	},
	{
		name:   "a body that is not bytes is refused with a sentence",
		mutant: mutant{"typescript", "function copyBytes(body) {", "function copyBytes(body) {\n    if (typeof body !== 'object') return encode(body);"},
		only:   []string{"typescript", "python"}, // Go's compiler refuses it
		play: func(p *play) {
			d := deliver(p.secret, "evt_1", time.Now(), bodyOf(success, time.Now(), ""))
			for _, as := range []string{"string", "object"} {
				failed := p.fail("not_raw_bytes", "receive", p.received(d, object{"as": as}))
				p.Expect(failed.Text).To(And(ContainSubstring("bytes"), MatchRegexp("(?i)json|pars|encod")), "it says why")
			}
		},
	},
	{
		name:   "x-webhook-signature alone takes an option, and counts once",
		mutant: mutant{"typescript", "await bodySignature.seen(digest)", "false"},
		play: func(p *play) {
			now := time.Now()
			body := []byte(bodyOf(success, now, ""))
			d := delivery{object{"x-webhook-signature": hexSign(p.secret, body)}, body}
			p.fail("missing_signature", "receive", p.received(d, nil))
			p.do("receive", p.received(d, object{"bodySignature": true}))
			p.fail("already_seen", "receive", p.received(d, object{"bodySignature": true}))
			p.fail("invalid_signature", "receive", p.received(d.with("x-webhook-signature", hexSign(oldSecret, body)), object{"bodySignature": true}))
			p.fail("invalid_signature", "receive", p.received(d.with("x-webhook-signature", "ä"), object{"bodySignature": true}))
		},
	},
	{
		name:   "x-webhook-signature alone does not make an old body new",
		mutant: mutant{"python", "_check_time(at, now(), tolerance)", "at"},
		play: func(p *play) {
			body := []byte(bodyOf(success, time.Now().Add(-10*time.Minute), ""))
			d := delivery{object{"x-webhook-signature": hexSign(p.secret, body)}, body}
			p.fail("stale_timestamp", "receive", p.received(d, object{"bodySignature": true}))
		},
	},
	{
		name:   "events and fields that a library does not know are kept",
		mutant: mutant{"typescript", "if (!event || typeof event['event'] !== 'string')", "if (!event || !/(success|expired|declined|attention)$/.test(String(event['event'])))"},
		play: func(p *play) {
			now := time.Now()
			d := deliver(p.secret, "evt_1", now, bodyOf("verification.renamed", now, `,"later":{"a":[1,null]}`))
			p.Expect(p.do("receive", p.received(d, nil))).To(And(
				HaveKeyWithValue("event", "verification.renamed"), HaveKeyWithValue("later", object{"a": []any{1.0, nil}})))
			d = deliver(p.testSecret, "evt_1", now, bodyOf("test.verification.renamed", now, ""))
			p.do("receive", p.received(d, nil))
			d = deliver(p.secret, "evt_1", now, bodyOf("verification.attention", now, `,"hint":"OTHER_NUMBER"`))
			p.Expect(p.do("receive", p.received(d, nil))).To(HaveKeyWithValue("hint", "OTHER_NUMBER"))
		},
	},
	{
		name:   "what is signed and no event is refused",
		mutant: mutant{"go", "return require(e.Kind)", "return nil"},
		play: func(p *play) {
			for _, body := range []string{"", "{", "[]", "null", `"x"`, `{"event":5}`, `{}`, "\xff"} {
				p.fail("invalid_event", "receive", p.received(deliver(p.secret, "evt_1", time.Now(), body), nil))
			}
		},
	},
	{
		name:   "secrets that cannot be right are refused",
		mutant: mutant{"typescript", "live.some((a) => test.some((b) => isEqual(a.standard, b.standard)))", "false"},
		play: func(p *play) {
			d := deliver(p.secret, "evt_1", time.Now(), bodyOf(success, time.Now(), ""))
			p.fail("no_secret", "receive", p.received(d, object{"secrets": []string{}, "testSecrets": []string{}}))
			p.fail("invalid_argument", "receive", p.received(d, object{"secrets": []string{p.secret, ""}}))
			p.fail("invalid_argument", "receive", p.received(d, object{"secrets": []string{p.secret}, "testSecrets": []string{p.secret}}))
			const encoded = "whsec_YSBzZWNyZXQgb2YgMjQgYnl0ZXMgb3IgbW9yZQ=="
			p.fail("invalid_argument", "receive", p.received(d, object{"secrets": []string{encoded}, "testSecrets": []string{"a secret of 24 bytes or more"}}))
		},
	},
	{
		name:   "signatures of another implementation are accepted, and the server's by it",
		mutant: mutant{"python", `base64.b64decode(secret.removeprefix("whsec_"), validate=True)`, "secret.encode()"},
		play: func(p *play) {
			started := p.startVerified(nil)
			now := time.Now()
			bodies := []string{bodyOf(success, now, ""), bodyOf(success, now, `,"reference":"ä 😀 \u2028 \\"`)}
			var signed []object
			p.standardWebhooks(&signed, object{"secret": p.secret, "sign": bodies})
			for i, headers := range signed {
				p.do("receive", p.received(delivery{headers, []byte(bodies[i])}, nil))
				p.fail("invalid_signature", "receive", p.received(delivery{headers, []byte(bodies[i] + " ")}, nil))
			}
			d := p.awaitEvents(started["requestId"], 1)[0].delivery()
			p.do("receive", p.received(d, nil))
			var verdicts []bool
			p.standardWebhooks(&verdicts, object{"secret": p.secret, "verify": []object{
				{"headers": d.headers, "body": string(d.body)}, {"headers": d.headers, "body": string(d.body) + " "},
			}})
			p.Expect(verdicts).To(Equal([]bool{true, false}))
		},
	},
}

// standardWebhooks runs npm's standardwebhooks, which make verify-clients installs; without it the play is skipped.
func (p *play) standardWebhooks(result any, input object) {
	modules, err := filepath.Abs("../../bin/clients/npm/node_modules")
	p.Expect(err).NotTo(HaveOccurred())
	if matches, _ := filepath.Glob(filepath.Join(modules, "standardwebhooks")); len(matches) == 0 {
		p.tb.Skip("the npm package standardwebhooks is not installed; make verify-clients installs it")
	}
	content, err := json.Marshal(input)
	p.Expect(err).NotTo(HaveOccurred())
	program := exec.Command("node", "--input-type=module", "-e", `
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
const { Webhook } = createRequire('`+modules+`/')('standardwebhooks')
const { secret, sign = [], verify = [] } = JSON.parse(readFileSync(0))
const webhook = new Webhook(secret), now = new Date()
const signed = sign.map((body, i) => ({
  'webhook-id': 'evt_' + i, 'webhook-timestamp': String(Math.floor(now / 1000)), 'webhook-signature': webhook.sign('evt_' + i, now, body) }))
const verdicts = verify.map(({ body, headers }) => { try { webhook.verify(body, headers); return true } catch { return false } })
console.log(JSON.stringify(sign.length > 0 ? signed : verdicts))`)
	program.Stdin = bytes.NewReader(content)
	output, err := program.Output()
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(json.Unmarshal(output, result)).To(Succeed())
}
