package whatsapp

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// ownTexts are replies of a project's own.
var ownTexts = texts.NewSet(texts.Texts{
	Verified: "own verified", WrongNumber: "own wrong", Expired: "own expired", Unknown: "own unknown",
	ShareContact: "own share", NumberHidden: "own hidden",
}, nil)

func TestHook_replies(t *testing.T) {
	for name, c := range map[string]struct {
		after        time.Duration
		accept       bool
		m            object
		builtIn, own string
	}{
		"verified":                  {time.Minute, false, textOf(firstCode, nil), saidVerified, "own verified"},
		"wrong number":              {time.Minute, false, textOf(firstCode, object{"from": "16505550000"}), textWrongNumber, "own wrong"},
		"expired":                   {time.Hour, false, textOf(firstCode, nil), textExpired, "own expired"},
		"unknown":                   {time.Minute, false, textOf("hello", nil), textUnknown, "own unknown"},
		"hidden":                    {time.Minute, false, hidden(firstCode, hiddenUser), textNumberHidden, "own hidden"},
		"hidden, late":              {time.Hour, false, hidden(firstCode, hiddenUser), textExpired, "own expired"},
		"hidden, no code":           {time.Minute, false, hidden("hello", hiddenUser), textUnknown, "own unknown"},
		"prompt":                    {time.Minute, true, hidden(firstCode, hiddenUser), saidShareContact, "own share"},
		"hidden, accepted, no code": {time.Minute, true, hidden("hello", hiddenUser), textUnknown, "own unknown"},
	} {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, own %t", name, own), func(t *testing.T) {
				f := newFixture(t)
				want := c.builtIn
				if own {
					f.settings.Texts, want = ownTexts, c.own
				}
				if c.accept {
					f.acceptContacts()
				}
				f.request("first", user, verification.WhatsApp)
				f.clock.SetTime(started.Add(c.after))
				f.Expect(f.post(webhookOf(c.m)).Code).To(Equal(http.StatusOK))
				calls := f.sendReplies()
				f.Expect(calls).To(HaveLen(1))
				f.Expect(calls[0].text()).To(Equal(want))
				f.Expect(calls[0].URI).To(Equal("/" + GraphVersion + "/" + numberID + "/messages"))
				if c.m["from"] == nil {
					f.Expect(calls[0].Body).To(And(ContainSubstring(`"recipient":"`+hiddenUser+`"`), Not(ContainSubstring(`"to"`))))
				} else {
					f.Expect(calls[0].Body).To(ContainSubstring(`"to":"` + c.m["from"].(string) + `"`))
				}
			})
		}
	}
}

// TestTexts_neutral looks at the built-in texts.
func TestTexts_neutral(t *testing.T) {
	longest := strings.Repeat("x", 253) // the name of an object, where the project has no displayName
	for _, text := range []string{
		textVerified, textWrongNumber, textExpired, textUnknown, textShareContact, textNumberHidden, textConfirm, textTextChanged,
	} {
		g := NewWithT(t)
		named := strings.ReplaceAll(text, "{name}", longest)
		g.Expect(len(named)).To(BeNumerically("<", maxPromptRunes))
		g.Expect(named).NotTo(MatchRegexp(`[0-9%{]|http`))
	}
	for _, text := range []string{textVerified, textShareContact, textConfirm} {
		NewWithT(t).Expect(text).To(ContainSubstring("{name}"), "it says who asks")
	}
}

// TestHook_repliesOnce has copies of a message, and a sender who repeats the code: each is answered once.
func TestHook_repliesOnce(t *testing.T) {
	f := newFixture(t)
	f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	for range 5 {
		f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
		f.Expect(f.post(webhookOf(textOf(firstCode, object{"from": "16505550000"}))).Code).To(Equal(http.StatusOK))
	}
	f.Expect(f.sendReplies()).To(HaveLen(2))
}

// TestHook_strangers has senders without a known code: one reply a day to each, one a second to all.
func TestHook_strangers(t *testing.T) {
	f := newFixture(t)
	post := func(from string) {
		now := strconv.FormatInt(f.clock.Now().Unix(), 10)
		f.Expect(f.post(webhookOf(textOf("hello", object{"from": from, "timestamp": now}))).Code).To(Equal(http.StatusOK))
	}
	for range 100 {
		post(user)
	}
	f.Expect(f.sendReplies()).To(HaveLen(1))
	for i := range 100 {
		post(fmt.Sprintf("4915112%06d", i))
	}
	f.Expect(f.sendReplies()).To(HaveLen(1), "all at once: none of them")
	f.clock.SetTime(started.Add(time.Second))
	post("4915112000000")
	f.Expect(f.sendReplies()).To(HaveLen(2), "the sender that was passed over gets an answer later")
	f.clock.SetTime(started.Add(24*time.Hour - time.Second))
	post(user)
	f.Expect(f.sendReplies()).To(HaveLen(2))
	f.clock.SetTime(started.Add(24 * time.Hour))
	post(user)
	f.Expect(f.sendReplies()).To(HaveLen(3))
}

// TestHook_backlog has messages arrive two hours late, as those to a number do that others used before: only the user of a stored
// request is answered, and a stranger's turn is not used up.
func TestHook_backlog(t *testing.T) {
	f := newFixture(t)
	f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(2 * time.Hour))
	for _, m := range []object{
		textOf("hello", object{"from": "16505550000"}), textOf("K9E2-AT8B-EG10-P4EV", object{"from": "16505550001"}),
		hidden("hello", hiddenUser), tapOf("confirm:"+secondID()+":beef", object{"from": "16505550002"}), textOf(firstCode, nil),
	} {
		f.Expect(f.post(webhookOf(m)).Code).To(Equal(http.StatusOK))
	}
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(1))
	f.Expect(calls[0].text()).To(Equal(textExpired))
	f.Expect(calls[0].Body).To(ContainSubstring(`"to":"` + user + `"`))
	now := strconv.FormatInt(f.clock.Now().Unix(), 10)
	f.Expect(f.post(webhookOf(textOf("hello", object{"from": "16505550000", "timestamp": now}))).Code).To(Equal(http.StatusOK))
	calls = f.sendReplies()
	f.Expect(calls).To(HaveLen(2))
	f.Expect(calls[1].text()).To(Equal(textUnknown))
}

// TestHook_queueFull drops replies and goes on.
func TestHook_queueFull(t *testing.T) {
	f := newFixture(t)
	ids, body := thousand(f)
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	f.Expect(f.verified(ids)).To(Equal(1000))
	f.Expect(testutil.ToFloat64(f.hook.metrics.Replies.WithLabelValues(messenger.ReplyDropped))).To(Equal(1000.0 - messenger.ReplyQueueSize))
	f.Expect(f.sendReplies()).To(HaveLen(messenger.ReplyQueueSize))
}

// TestHook_replyFails leaves the verification as it is.
func TestHook_replyFails(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.graph.answers(http.StatusUnauthorized, golden(t, "answers/error_190"))
	f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
	f.Expect(f.sendReplies()).To(HaveLen(1))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Verified))
	f.Expect(testutil.ToFloat64(f.hook.metrics.Replies.WithLabelValues(messenger.ReplyFailed))).To(Equal(1.0))
	f.Expect(string(f.logs.Contents())).To(ContainSubstring("credentials, HTTP 401, code 190, subcode 463"))
}

func TestCut(t *testing.T) {
	g := NewWithT(t)
	g.Expect(cutText("äöü", 2)).To(Equal("äö"))
	g.Expect(cutText("äöü", 3)).To(Equal("äöü"))
	g.Expect(cutText(strings.Repeat("x", 5000), maxTextRunes)).To(HaveLen(maxTextRunes))
}

// TestHook_oneReplicaReplies has copies of the message that verified arrive at two replicas: one of them replies, once.
func TestHook_oneReplicaReplies(t *testing.T) {
	f := newFixture(t)
	f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	other := f.failing(func(int64, string) error { return nil })
	body := golden(t, "in/text")
	for range 3 {
		f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
		f.Expect(f.postTo(other, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
	}
	f.Expect(f.sendReplies()).To(HaveLen(1))
	f.Expect(other.replies.Len()).To(BeZero())
}

// TestHook_guessing: one sender, then a thousand. Nothing is found, no sender learns anything, and few are answered.
func TestHook_guessing(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	codes := verification.NewCodeSpace(project)
	guess := func(n int, from string) {
		code := codes.CodeFor([32]byte{1}, strconv.Itoa(n)).Grouped() // with right check bits, which are no secret
		f.Expect(f.post(webhookOf(textOf(code, object{"from": from}))).Code).To(Equal(http.StatusOK))
	}
	for n := range 100 {
		guess(n, "16505550000")
	}
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeUnknownCode: messenger.MaxPerSender, messenger.OutcomeLimited: 100 - messenger.MaxPerSender}))
	for n := range 1000 {
		guess(n, fmt.Sprintf("4915112%06d", n))
	}
	f.Expect(len(f.sendReplies())).To(BeNumerically("<=", 2), "one a second in all")
	f.Expect(f.graph.all()[0].text()).To(Equal(textUnknown), "as to any text")
	f.clock.SetTime(started.Add(time.Minute + messenger.SenderWindow))
	guess(1, "16505550000")
	f.Expect(f.outcomes()[messenger.OutcomeLimited]).To(Equal(100-messenger.MaxPerSender), "a minute later the sender may again")
	f.Expect(f.state(made.Request.ID).Version).To(Equal(made.Request.Version), "the request is as it was")
	f.Expect(f.post(webhookOf(textOf(firstCode, nil))).Code).To(Equal(http.StatusOK))
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestHook_sendPolicy has each kind of reply under each policy. A prompt is sent under all of them: without it the user is stuck.
func TestHook_sendPolicy(t *testing.T) {
	type sent map[settings.SendPolicy]int
	always := sent{settings.SendAlways: 1, settings.SendOnTrouble: 1, settings.SendNever: 1}
	trouble := sent{settings.SendAlways: 1, settings.SendOnTrouble: 1}
	ofTelegram := expectedText("Ada's Books", verification.NewCodeSpace(project).CodeFor([32]byte{}, "telegram"))
	for name, c := range map[string]struct {
		m                object
		accepts, prepare bool
		want             sent
	}{
		"verified":        {textOf(firstCode, nil), false, false, sent{settings.SendAlways: 1}},
		"wrong number":    {textOf(firstCode, object{"from": "16505550000"}), false, false, trouble},
		"stranger":        {textOf("hello", nil), false, false, trouble},
		"hidden":          {hidden(firstCode, hiddenUser), false, false, trouble},
		"refused tap":     {tapOf(confirmationPrefix+"none:none", nil), false, false, trouble},
		"ask for contact": {hidden(firstCode, hiddenUser), true, false, always},
		"ask to confirm":  {textOf(firstCode, nil), false, true, always},
		"other messenger": {textOf(ofTelegram, nil), false, false, trouble},
	} {
		for policy := settings.SendAlways; policy <= settings.SendNever; policy++ {
			t.Run(fmt.Sprintf("%s, policy %d", name, policy), func(t *testing.T) {
				f := newFixture(t)
				f.change(func(s *settings.Settings) {
					s.Replies.Send, s.WhatsApp.AcceptAnyText = policy, !c.prepare
					if c.accepts {
						s.WhatsApp.HiddenNumbers = settings.HiddenShared
					}
				})
				f.request("first", user, verification.WhatsApp)
				f.request("telegram", user, verification.Telegram)
				f.clock.SetTime(started.Add(time.Minute))
				f.Expect(f.post(webhookOf(c.m)).Code).To(Equal(http.StatusOK))
				f.Expect(f.sendReplies()).To(HaveLen(c.want[policy]))
				suppressed := testutil.ToFloat64(f.hook.metrics.Replies.WithLabelValues(messenger.ReplySuppressed))
				f.Expect(suppressed).To(BeEquivalentTo(1 - c.want[policy]))
			})
		}
	}
}
