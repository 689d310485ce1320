package load

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/system"
)

func TestNewUser(t *testing.T) {
	g := NewWithT(t)
	closing := false
	l := New(Options{Seed: 3, Workers: 1, Key: func() string { return "key" }, Closing: func() bool { return closing }})
	fates, methods := map[ledger.Fate]int{}, map[string]int{}
	sessions := 0
	for n := range int64(2000) {
		u := l.newUser(n)
		fates[u.fate]++
		methods[u.method]++
		if u.session {
			sessions++
		}
		g.Expect(u.fate == ledger.Unconfirmed && n > lastUnconfirmed).To(BeFalse(), "the run would wait for it")
		same := l.newUser(n)
		g.Expect(same.fate).To(Equal(u.fate), "the seed decides the fate")
		g.Expect(same.key).To(Equal(u.key))
	}
	g.Expect(fates).To(HaveLen(6), "%v", fates)
	g.Expect(fates[ledger.Proven]).To(BeNumerically(">", 1800))
	g.Expect(methods).To(HaveLen(2))
	g.Expect(sessions).To(BeNumerically("~", 500, 100))
	closing = true
	for n := range int64(200) {
		g.Expect(l.newUser(n).fate).To(Equal(ledger.Proven), "no slow case begins near the end")
	}
}

func TestUser_entersCodes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(changeDigits("999999", 1)).To(Equal("000000"))
	g.Expect(changeDigits("000123", 5)).To(Equal("000128"))
	u := &user{n: 7, method: "TELEGRAM", number: "+4915100000007", phone: "+4915100000007"}
	g.Expect(u.recipient()).To(Equal("10000007"))
	g.Expect(u.initBody()).To(MatchJSON(`{"phoneNumber": "+4915100000007", "method": "TELEGRAM", "subject": "chaos-7"}`))
	u.method, u.session = "WHATSAPP", true
	g.Expect(u.recipient()).To(Equal("4915100000007"))
	g.Expect(u.initBody()).To(ContainSubstring(`"assurance":"SESSION"`))
}

func TestScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		p := newScheduler()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.run(ctx) // ends with ctx
		var done atomic.Int64
		began := time.Now()
		for n := range 3 {
			p.runAt(began.Add(time.Duration(n)*time.Minute), func(context.Context) { done.Add(1) })
		}
		p.waitAll(ctx)
		g.Expect(done.Load()).To(BeEquivalentTo(3))
		g.Expect(time.Since(began)).To(BeNumerically(">=", 2*time.Minute))
	})
}

func TestMeta_batch(t *testing.T) {
	g := NewWithT(t)
	l := New(Options{Workers: 1, Project: &system.Project{AppSecret: "secret", PhoneNumberID: "1234"}})
	message, proofs := l.meta.newWebhook([]pendingMessage{
		{from: &user{n: 1, id: "vr1", method: "WHATSAPP", number: "+4915100000001", text: `a "quoted" code`}, sent: time.Unix(7, 0)},
		{from: &user{n: 2, id: "vr2", method: "WHATSAPP", number: "+4915100000002", text: "another"}, sent: time.Unix(7, 0)},
	})
	body := string(message.Body)
	g.Expect(body).To(And(ContainSubstring(`"from":"4915100000001"`), ContainSubstring(`a \"quoted\" code`), ContainSubstring("another")))
	g.Expect(strings.Count(body, `"field":`)).To(Equal(3), "two messages and an unrelated change")
	g.Expect(message.Header.Get("X-Hub-Signature-256")).To(HavePrefix("sha256="))
	g.Expect(proofs).To(ConsistOf(
		ledger.Message{ID: "chaos1", Request: "vr1", Proves: true, From: "+4915100000001", Method: "WHATSAPP"},
		ledger.Message{ID: "chaos2", Request: "vr2", Proves: true, From: "+4915100000002", Method: "WHATSAPP"},
	))
}

func TestRecent(t *testing.T) {
	g := NewWithT(t)
	var r recentIDs
	g.Expect(r.pickRandom()).To(BeEmpty())
	for range maxRecent + 10 {
		r.add("vr")
	}
	g.Expect(r.ids).To(HaveLen(maxRecent))
	g.Expect(r.pickRandom()).To(Equal("vr"))
}
