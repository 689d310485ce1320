package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/adversary/browser"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
	"github.com/phoneproof/phoneproof/test/system"
)

// TestRun plays every attack on every kind of victim, at the level that refuses them and at the one that does not: the same run has to be
// able to fail.
func TestRun(t *testing.T) {
	program, err := system.Build(t.Context(), t.TempDir(), false)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	play := func(t *testing.T, level string) (string, error) {
		t.Helper()
		var out strings.Builder
		err := run(t.Context(), []string{
			"-store=memory", "-replicas=1", "-victims=20", "-level=" + level, "-program=" + program, "-dir=" + t.TempDir(),
		}, &out)
		t.Log(out.String())
		return out.String(), err
	}
	t.Run("no attack succeeds at the level SESSION", func(t *testing.T) {
		g := NewWithT(t)
		out, err := play(t, levelSession)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HaveSuffix("\n8 passed, 0 failed, 1 skipped\n"), "the format that .ci/run parses")
	})
	t.Run("every attack succeeds at the level POSSESSION, and the judge says so", func(t *testing.T) {
		g := NewWithT(t)
		out, err := play(t, levelPossession)
		g.Expect(err).To(MatchError(ContainSubstring("invariants violated")))
		g.Expect(out).To(MatchRegexp(`(?m)^ *S1 +VIOLATED`))
		g.Expect(out).To(ContainSubstring("is verified by ["))
		for _, a := range attacks() {
			g.Expect(out).To(MatchRegexp(`(?m)^ *`+a.row+` +`+a.name+` .* [1-9][0-9]*$`), "attackers are verified")
		}
	})
}

func TestParseOptions(t *testing.T) {
	g := NewWithT(t)
	o, err := parseOptions(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.stores).To(ConsistOf(system.PostgreSQL, system.Kubernetes))
	g.Expect(o.level).To(Equal(levelSession))
	g.Expect(o.replicas).To(Equal(2))
	for argument, want := range map[string]string{
		"-store=etcd": `-store is "etcd"`, "-store=memory": "-replicas=1", "-level=HIGH": `-level is "HIGH"`,
	} {
		_, err = parseOptions([]string{argument})
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

func TestNewScene_hasEachVictimMeetEachAttackByEachMessenger(t *testing.T) {
	g := NewWithT(t)
	met, trial := map[[3]string]int{}, &trial{}
	kinds := len(victimKinds()) + 1
	for n := range 20 * kinds {
		if s := trial.newScene(n); s.attack != nil {
			met[[3]string{s.attack.name, s.victim, s.method}]++
		}
	}
	g.Expect(met).To(HaveLen(len(attacks()) * len(victimKinds()) * len(methods())))
	proofs := map[int]bool{}
	for n := range 20 * kinds {
		if s := trial.newScene(n); s.attack != nil && s.attack.name == "race" {
			proofs[s.n%2] = true
		}
	}
	g.Expect(proofs).To(HaveLen(2), "some victims prove one of two requests, and some both")
}

func TestIsLong(t *testing.T) {
	g := NewWithT(t)
	for name, test := range map[string]struct {
		o    options
		want bool
	}{
		"a minute": {options{duration: time.Minute}, false}, "ten": {options{duration: 10 * time.Minute}, true},
		"few victims": {options{victims: 20, duration: 10 * time.Minute}, false}, "many": {options{victims: 1000}, true},
	} {
		g.Expect((&trial{options: test.o}).isLong()).To(Equal(test.want), name)
	}
}

func TestFindMessage(t *testing.T) {
	g := NewWithT(t)
	c := &chat{ID: "whatsapp:1"}
	add := func(from, text string) {
		c.Lines = append(c.Lines, struct {
			From  string `json:"from"`
			Text  string `json:"text"`
			State string `json:"state"`
		}{From: from, Text: text})
	}
	add("user", "Code: 111111")
	add("business", "Thank you. See https://first.example/v/222222 and 1234567.")
	_, next, found := findMessage(c, 0)
	g.Expect(found).To(BeFalse(), "neither what the user wrote, nor an address, nor a longer number")
	g.Expect(next).To(BeZero())

	add("business", "Code: 333333\n\nOpen:\nhttps://first.example/v/TICKET/return?code=AAAAAAAAAAAAAAAAAAAAAA")
	m, next, found := findMessage(c, 0)
	g.Expect(found).To(BeTrue())
	g.Expect(m.digits).To(Equal("333333"))
	g.Expect(m.link).To(Equal("https://first.example/v/TICKET/return?code=AAAAAAAAAAAAAAAAAAAAAA"))
	g.Expect(m.offered).To(BeFalse())
	_, _, found = findMessage(c, next)
	g.Expect(found).To(BeFalse(), "it was read")

	c.Replies = append(c.Replies, struct {
		Title string `json:"title"`
	}{notMe})
	m, _, _ = findMessage(c, 0)
	g.Expect(m.offered).To(BeTrue())
}

func TestIsShownIn(t *testing.T) {
	g := NewWithT(t)
	const code = "AAAAAAAAAAAAAAAAAAAAAA"
	m := message{digits: "123456", link: "https://first.example/v/TICKET/return?code=" + code}
	for name, test := range map[string]struct {
		seen browser.Seen
		want bool
	}{
		"nothing":                       {browser.Seen{Body: "<p>1234567 and 23456</p>"}, false},
		"the digits":                    {browser.Seen{Body: "<p>Code: 123456.</p>"}, true},
		"the digits of a style":         {browser.Seen{Body: "<style>p{color:#123456}</style><p class=123456>"}, false},
		"the digits that were sent":     {browser.Seen{Sent: "https://x\ncode=123456", Body: "<p>123456 is wrong</p>"}, false},
		"the code":                      {browser.Seen{Body: `<a href="/return?code=` + code + `">`}, true},
		"the code that was sent":        {browser.Seen{Sent: m.link, Body: code}, false},
		"a redirect with what was sent": {browser.Seen{Sent: m.link, Header: "Location: https://shop.example/return?code=" + code}, true},
	} {
		g.Expect(m.isShownIn(test.seen)).To(Equal(test.want), name)
	}
	g.Expect(message{digits: "123456"}.isShownIn(browser.Seen{Body: "code="})).To(BeFalse(), "a message without a link")
}

func TestCountLines(t *testing.T) {
	g := NewWithT(t)
	begun := func(party, request string) ledger.Record {
		return ledger.Record{Kind: ledger.Begun, Party: party, Session: request, Request: request, Attack: "race", Victim: obedient}
	}
	member := func(party, session string) ledger.Record {
		return ledger.Record{Kind: ledger.Member, Party: party, Session: session, Attack: "race", Victim: obedient, Verified: true}
	}
	byAttack, byKind := countLines([]ledger.Record{
		{Kind: ledger.Scene, Attack: "race", Victim: obedient}, begun(ledger.Attacker, "a"), begun(ledger.Second, "b"), begun(ledger.Honest, "c"),
		{Kind: ledger.Talked, Session: "a", Request: "a", Attack: "race", Victim: obedient},
		{Kind: ledger.Redeemed, Session: "b", Request: "b", Result: "wrong_code"},
		member(ledger.Attacker, "a"), member(ledger.Second, "b"), member(ledger.Honest, "c"),
	})
	want := &line{scenes: 1, begun: 3, told: 1, wrong: 1, toldVerified: 1, verified: 1}
	g.Expect(byAttack["race"]).To(Equal(want))
	g.Expect(byKind[obedient]).To(Equal(want))
}
