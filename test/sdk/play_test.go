package sdk

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/simphone"
)

// play is a scenario that is played with a driver. What it expects fails the test, or, if the library has a defect, is what notices it.
type play struct {
	Gomega
	*front
	*driver
	*world

	tb   testing.TB
	name string // of this play alone, for what is stored
}

var plays atomic.Int64

// newPlay begins a play: the client "c" of the driver calls a front with the live key, and "staging" with the test key. The front is one of
// its own, because a call that the play before canceled may still arrive.
func newPlay(tb testing.TB, g Gomega, d *driver, w *world) *play {
	tb.Helper()
	p := &play{g, startFront(tb, w.api), d, w, tb, fmt.Sprintf("play-%d", plays.Add(1))}
	p.do("client", object{"name": "c", "baseURL": p.url, "apiKey": w.key})
	p.do("client", object{"name": "staging", "baseURL": p.url, "apiKey": w.testKey})
	return p
}

// do has the driver do what must succeed, and returns an object.
func (p *play) do(op string, args object) object {
	var result object
	p.doInto(&result, op, args)
	return result
}

func (p *play) doInto(result any, op string, args object) {
	r := p.call(op, args)
	p.Expect(r.Error).To(BeNil(), "%s: %+v", op, r.Error)
	p.Expect(json.Unmarshal(r.OK, result)).To(Succeed(), "%s: %s", op, r.OK)
}

// list has the driver do what answers a list.
func (p *play) list(op string, args object) []object {
	var results []object
	p.doInto(&results, op, args)
	return results
}

// fail has the driver do what must be refused with a code, in a text that says nothing secret.
func (p *play) fail(code, op string, args object) *failure {
	r := p.call(op, args)
	p.Expect(r.Error).NotTo(BeNil(), "%s answers %s", op, r.OK)
	p.Expect(r.Error.Code).To(Equal(code), "%s: %+v", op, r.Error)
	for _, secret := range []string{p.key, p.testKey, p.secret, p.testSecret} {
		p.Expect(r.Error.Text).NotTo(ContainSubstring(secret))
	}
	return r.Error
}

// newNumber returns the number of a new user.
func (p *play) newNumber() string {
	number, err := p.newUser()
	p.Expect(err).NotTo(HaveOccurred())
	return number
}

// params returns what init takes for a number, and what else is given.
func (p *play) params(number string, more object) object {
	all := object{"phoneNumber": number, "subject": p.name}
	maps.Copy(all, more)
	return all
}

// start begins a verification of a number with what else init takes.
func (p *play) start(number string, params object) object {
	return p.do("start", object{"params": p.params(number, params)})
}

// startVerified begins a verification, and has the user send the text; the answer has the requestId.
func (p *play) startVerified(params object) object {
	number := p.newNumber()
	started := p.start(number, params)
	p.Expect(p.send(number, text(started, "waLink"))).To(Succeed())
	p.Eventually(func() string { return text(p.do("status", object{"id": started["requestId"]}), "status") }).
		WithTimeout(patience).Should(Equal("VERIFIED"))
	return started
}

// digits has the user send the text of a link, and returns the digits that come back.
func (p *play) digits(number string, started object) string {
	p.Expect(p.send(number, text(started, "waLink"))).To(Succeed())
	return p.await(func() (simphone.Codes, error) {
		return simphone.LatestCodes(p.tb.Context(), http.DefaultClient, p.simulator, number)
	})
}

// deliveredCode returns the code that was sent to a user.
func (p *play) deliveredCode(number string) string {
	return p.await(func() (simphone.Codes, error) {
		return simphone.LatestDelivered(p.tb.Context(), http.DefaultClient, p.simulator, number)
	})
}

func (p *play) await(read func() (simphone.Codes, error)) string {
	var codes simphone.Codes
	p.Eventually(func() (err error) {
		codes, err = read()
		return err
	}).WithTimeout(patience).Should(Succeed())
	return codes.Digits
}

// awaitEvents waits for so many events of a request; each may come more than once.
func (p *play) awaitEvents(requestID any, count int) []event {
	id, _ := requestID.(string)
	p.Eventually(func() int { return len(p.eventsOf(id)) }).WithTimeout(patience).Should(BeNumerically(">=", count))
	return p.eventsOf(id)
}

// otherDigits returns a code of the same length that differs.
func otherDigits(code string) string {
	last := code[len(code)-1]
	return code[:len(code)-1] + string('0'+(last-'0'+1)%10)
}

// text returns a member of an object that is a string, or nothing.
func text(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// seconds runs something and returns how long it took.
func seconds(run func()) float64 {
	began := time.Now()
	run()
	return time.Since(began).Seconds()
}

// base64Of is how bytes are given to a driver.
func base64Of(body []byte) string { return base64.StdEncoding.EncodeToString(body) }

// sign returns the signature of Standard Webhooks. secret is one of keygen, with whsec_.
func sign(secret, id, timestamp string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		key = []byte(secret)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// hexSign returns what x-webhook-signature has.
func hexSign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// delivery is an event that a scenario makes up, signed by a secret at a time.
type delivery struct {
	headers object
	body    []byte
}

func deliver(secret, id string, at time.Time, body string) delivery {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	return delivery{object{
		"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": sign(secret, id, timestamp, []byte(body)),
		"content-type": "application/json",
	}, []byte(body)}
}

// of returns a received event as a delivery.
func (e event) delivery() delivery {
	headers := object{}
	for name := range e.header {
		headers[strings.ToLower(name)] = e.header.Get(name)
	}
	return delivery{headers, e.body}
}

// received returns the arguments of receive for a delivery, with the secrets of the world, and what else is given.
func (p *play) received(d delivery, more object) object {
	args := object{"secrets": []string{p.secret}, "testSecrets": []string{p.testSecret}, "headers": d.headers, "body": base64Of(d.body), "as": "bytes"}
	maps.Copy(args, more)
	return args
}

// with returns a copy of a delivery with another header; nil removes it.
func (d delivery) with(name string, value any) delivery {
	headers := maps.Clone(d.headers)
	if headers[name] = value; value == nil {
		delete(headers, name)
	}
	return delivery{headers, d.body}
}
