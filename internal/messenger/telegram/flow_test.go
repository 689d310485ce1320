package telegram

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	stranger      = int64(42)
	strangerPhone = "4915199999999"
)

// TestFlow_aWrongSenderFirst: a user who sees the code can neither verify it nor use it up.
func TestFlow_aWrongSenderFirst(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	w.Expect(w.accept(w.update(1, stranger, "/start "+goldenCode))).To(Equal(messenger.OutcomeNeedContact))
	w.Expect(w.accept(w.contactUpdate(2, stranger, strangerPhone))).To(Equal(messenger.OutcomeWrongNumber))
	w.Expect(w.phase(id)).To(Equal(verification.Pending))
	w.Expect(w.accept(w.update(3, user, "/start "+goldenCode))).To(Equal(messenger.OutcomeNeedContact))
	w.Expect(w.accept(w.contactUpdate(4, user, claimed))).To(Equal(messenger.OutcomeVerified))
	w.Expect(w.phase(id)).To(Equal(verification.Verified))
	w.flush()
	for _, m := range w.api.got("sendMessage") {
		w.Expect(string(m)).NotTo(Or(ContainSubstring("151"), ContainSubstring(goldenCode[:4])), "neither number nor code")
	}
}

// TestFlow_pastedLinks: a link that is sent in place of being opened leads to the question for the contact, whichever bot it names.
func TestFlow_pastedLinks(t *testing.T) {
	for link, want := range map[string]messenger.Outcome{
		"https://t.me/example_shop_bot?start=" + goldenCode:          messenger.OutcomeNeedContact,
		"t.me/another_bot?start=" + goldenCode:                       messenger.OutcomeNeedContact,
		"https://wa.me/15550001111?text=Code%3A%20" + goldenCode:     messenger.OutcomeNeedContact,
		"https://t.me/example_shop_bot?start=" + goldenCode[:18]:     messenger.OutcomeNoCode,
		"https://wa.me/15550001111?text=Code%253A%2520" + goldenCode: messenger.OutcomeNoCode,
	} {
		w := newWorld(t)
		id := w.initiate("golden").Request.ID
		w.Expect(w.accept(w.update(1, user, link))).To(Equal(want), link)
		w.Expect(w.phase(id)).To(Equal(verification.Pending))
	}
}

// TestFlow_ofTwoCodesTheLatest is one user with two requests, whose contact reaches another replica.
func TestFlow_ofTwoCodesTheLatest(t *testing.T) {
	w := newWorld(t)
	first, second := w.initiate("golden").Request.ID, w.initiate("other").Request.ID
	w.accept(w.update(1, user, "/start "+goldenCode))
	w.later(time.Second)
	w.accept(w.update(2, user, "/start "+otherCode))
	other := w.another()
	answer := w.postTo(other, w.contactUpdate(3, user, claimed), WebhookSecret([]byte(botToken), projectName))
	w.Expect(answer.Code).To(Equal(200))
	w.Expect(w.phase(first)).To(Equal(verification.Pending))
	w.Expect(w.phase(second)).To(Equal(verification.Verified))
}

// another returns the channel of another replica of the same project.
func (w *world) another() *Channel {
	w.t.Helper()
	c, err := New(Options{
		Settings: w.current, Service: w.replica(), Client: w.channel.client, PageURL: pageOf, Clock: w.channel.clock, Log: w.logger(),
	})
	w.Expect(err).NotTo(HaveOccurred())
	return c
}

// TestFlow_oneReplicaReplies has copies of the contact that verified arrive at two replicas: one of them replies, once.
func TestFlow_oneReplicaReplies(t *testing.T) {
	w := newWorld(t)
	w.initiate("golden")
	w.accept(w.update(1, user, "/start "+goldenCode))
	contact, secret := w.contactUpdate(2, user, claimed), WebhookSecret([]byte(botToken), projectName)
	other := w.another()
	for range 3 {
		w.Expect(w.postTo(other, contact, secret).Code).To(Equal(200))
		w.Expect(w.postTo(w.channel, contact, secret).Code).To(Equal(200))
	}
	w.Expect(w.channel.replies.Len()).To(BeZero())
	w.Expect(other.replies.Len()).To(Equal(1))
}

// TestFlow_relayedWhileAwaited: the user is asked for a contact, and a link of an attacker comes in between. What they share
// in answer to their own request does not prove the attacker's; they are asked again, by name.
func TestFlow_relayedWhileAwaited(t *testing.T) {
	for name, contact := range map[string]func(w *world) []byte{
		"sent before the link was tapped": func(w *world) []byte {
			w.later(20 * time.Second)
			return w.contactUpdate(3, user, claimed)
		},
		"sent after it, to the older prompt": func(w *world) []byte {
			prompted := w.now()
			w.later(time.Minute)
			sent := strings.Replace(string(w.contactUpdate(3, user, claimed)), fmt.Sprintf(`"date":%d`, w.now().Unix()),
				fmt.Sprintf(`"date":%d,"reply_to_message":{"message_id":2,"date":%d}`, w.now().Add(2*time.Second).Unix(), prompted.Unix()), 1)
			return []byte(sent)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			own, relayed := w.initiate("golden").Request.ID, w.initiate("other").Request.ID
			w.Expect(w.accept(w.update(1, user, "/start "+goldenCode))).To(Equal(messenger.OutcomeNeedContact))
			shared := contact(w)
			w.later(time.Second)
			w.Expect(w.accept(w.update(2, user, "/start "+otherCode))).To(Equal(messenger.OutcomeNeedContact))
			w.later(time.Second)
			w.Expect(w.accept(shared)).To(Equal(messenger.OutcomeNeedContact))
			w.Expect(w.phase(relayed)).To(Equal(verification.Pending))
			w.Expect(w.phase(own)).To(Equal(verification.Pending), "its prompt is void")
			prompts := w.api.got("sendMessage")
			w.Expect(prompts).To(HaveLen(3))
			w.Expect(string(prompts[2])).To(And(ContainSubstring("Example Shop asks"), ContainSubstring("request_contact")))

			w.later(time.Second)
			w.Expect(w.accept(w.contactUpdate(4, user, claimed))).To(Equal(messenger.OutcomeVerified), "an answer to the prompt that they see now")
			w.Expect(w.phase(relayed)).To(Equal(verification.Verified))
		})
	}
}

// TestFlow_saysWhoAsked after the number was proved.
func TestFlow_saysWhoAsked(t *testing.T) {
	w := newWorld(t)
	w.initiate("golden")
	w.accept(w.update(1, user, "/start "+goldenCode))
	w.accept(w.contactUpdate(2, user, claimed))
	w.flush()
	said := w.api.got("sendMessage")
	w.Expect(string(said[len(said)-1])).To(And(ContainSubstring("confirmed to Example Shop"), ContainSubstring("If you did not start this yourself")))
}

func TestFlow_contactWithoutACode(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	w.Expect(w.accept(w.contactUpdate(1, user, claimed))).To(Equal(messenger.OutcomeUnknownCode))
	w.Expect(w.phase(id)).To(Equal(verification.Pending))
	w.accept(w.update(2, stranger, "/start "+goldenCode))
	w.Expect(w.accept(w.contactUpdate(3, user, claimed))).To(Equal(messenger.OutcomeUnknownCode), "another one sent the code")
	w.Expect(w.phase(id)).To(Equal(verification.Pending))
}

// TestFlow_replay: each update five times, in any order, and once more a week later.
func TestFlow_replay(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	start := w.update(1, user, "/start "+goldenCode)
	w.accept(start)
	w.later(5 * time.Second)
	contact := w.contactUpdate(2, user, claimed)
	w.Expect(w.accept(contact)).To(Equal(messenger.OutcomeVerified))
	verified, err := w.service.Status(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	for range 4 {
		w.Expect(w.accept(contact)).To(Equal(messenger.OutcomeVerified))
		w.Expect(w.accept(start)).To(Equal(messenger.OutcomeVerified), "no second prompt")
	}
	second := w.initiate("other").Request.ID
	w.later(time.Hour)
	w.accept(contact)
	w.later(7 * 24 * time.Hour)
	w.accept(start)
	w.accept(contact)
	now, err := w.service.Status(t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(now).To(Equal(verified))
	w.Expect(w.phase(second)).NotTo(Equal(verification.Verified))
	w.Expect(w.api.got("sendMessage")).To(HaveLen(1))
}

// TestFlow_lateMessages: a message counts only if it was sent, and arrives, within the request's time.
func TestFlow_lateMessages(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	start := w.update(1, user, "/start "+goldenCode)
	w.accept(start)
	contact := w.contactUpdate(2, user, claimed)
	w.later(10 * time.Minute)
	w.Expect(w.accept(contact)).To(Equal(messenger.OutcomeTooLate), "sent in time, arrived late")
	w.Expect(w.accept(start)).To(Equal(messenger.OutcomeTooLate))
	w.Expect(w.phase(id)).NotTo(Equal(verification.Verified))
}

// TestFlow_guessing: one sender, then a thousand. Nothing is found, the replies tell nothing and are few.
func TestFlow_guessing(t *testing.T) {
	w := newWorld(t)
	w.initiate("golden")
	secret := WebhookSecret([]byte(botToken), projectName)
	guess := func(i int64, sender int64) {
		code := fmt.Sprintf("%04d-%04d-%04d-%04d", i%9999, i*7%9999, i*31%9999, i*127%9999)
		w.Expect(w.postTo(w.channel, w.update(i+1, sender, "/start "+code), secret).Code).To(Equal(200))
	}
	for i := range int64(100) {
		guess(i, stranger)
	}
	w.Expect(w.outcomes()[messenger.OutcomeLimited]).To(BeEquivalentTo(100 - messenger.MaxPerSender))
	w.later(messenger.SenderWindow)
	guess(101, stranger)
	w.Expect(w.outcomes()[messenger.OutcomeLimited]).To(BeEquivalentTo(100-messenger.MaxPerSender), "a minute later the sender may again")
	for i := range int64(1000) {
		guess(i+200, 1000+i)
	}
	w.flush()
	messages := w.api.got("sendMessage")
	w.Expect(len(messages)).To(BeNumerically("<=", 2), "one a second in all")
	for _, m := range messages {
		w.Expect(m).To(ContainSubstring(textUnknown))
	}
	w.Expect(w.outcomes()[messenger.OutcomeVerified]).To(BeZero())
}

// TestFlow_race: two senders with the same number's contact at the same moment. One transition, both get a reply.
func TestFlow_race(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	secret := WebhookSecret([]byte(botToken), projectName)
	for sender := range int64(8) {
		w.postTo(w.channel, w.update(sender+1, sender+1, "/start "+goldenCode), secret)
	}
	var all sync.WaitGroup
	for sender := range int64(8) {
		number := strangerPhone
		if sender == 5 {
			number = claimed
		}
		all.Go(func() { w.postTo(w.channel, w.contactUpdate(sender+10, sender+1, number), secret) })
	}
	all.Wait()
	w.Expect(w.phase(id)).To(Equal(verification.Verified))
	w.Expect(w.outcomes()[messenger.OutcomeVerified]).To(BeEquivalentTo(1))
	w.Expect(w.outcomes()[messenger.OutcomeWrongNumber]).To(BeEquivalentTo(7))
}

func TestReplies_overridesAndKeyboards(t *testing.T) {
	w := newWorld(t)
	w.settings.Texts = texts.NewSet(texts.Texts{
		Verified: "V", WrongNumber: "W", Expired: "E", Unknown: "U", ShareContact: "S",
	}, nil)
	w.initiate("golden")
	w.accept(w.update(1, user, "/start "+goldenCode))
	w.accept(w.contactUpdate(2, user, strangerPhone))
	w.flush()
	w.accept(w.contactUpdate(3, user, claimed))
	w.flush()
	w.accept(golden(t, "in/contact_of_another"))
	w.flush()
	w.accept(w.contactUpdate(4, stranger, strangerPhone))
	w.flush()
	w.later(time.Second)
	w.accept(w.contactUpdate(5, stranger, strangerPhone))
	w.flush()
	w.initiate("other")
	w.later(time.Hour)
	w.accept(w.update(6, user, otherCode))
	w.flush()
	var got []string
	for _, m := range w.api.got("sendMessage") {
		got = append(got, string(m))
	}
	prompt := `{"chat_id":7304118825,"text":"S","reply_markup":{"keyboard":[[{"text":"Share my phone number","request_contact":true}]],"resize_keyboard":true,"one_time_keyboard":true}}`
	removed := `"reply_markup":{"remove_keyboard":true}}`
	w.Expect(got).To(Equal([]string{
		prompt,
		`{"chat_id":7304118825,"text":"W",` + removed,
		`{"chat_id":7304118825,"text":"V",` + removed,
		`{"chat_id":7304118825,"text":"U"}`,
		`{"chat_id":42,"text":"U",` + removed,
		`{"chat_id":7304118825,"text":"E",` + removed,
	}))
}

// TestReplies_inTheLanguage of the request: the prompt, its button and the outcome. A stranger gets the project's own text.
func TestReplies_inTheLanguage(t *testing.T) {
	for _, locale := range texts.Languages() {
		w := newWorld(t)
		w.settings.Texts = texts.NewSet(texts.Texts{Unknown: "{name} knows no such code"}, nil)
		number, err := phone.FromE164(claimed)
		w.Expect(err).NotTo(HaveOccurred())
		_, err = w.service.Initiate(t.Context(), verification.Initiation{
			Phone: number, Method: verification.Telegram, KeyName: "backend", KeyHash: sha256.Sum256([]byte("key")), TTL: 10 * time.Minute,
			IdempotencyKey: "golden", HasIdempotencyKey: true, ClientData: verification.ClientData{Locale: locale},
		})
		w.Expect(err).NotTo(HaveOccurred())
		w.accept(w.update(1, user, "/start "+goldenCode))
		w.accept(w.contactUpdate(2, user, strangerPhone))
		w.flush()
		w.accept(w.contactUpdate(3, user, claimed))
		w.flush()
		w.accept(w.update(4, stranger, "hello"))
		w.flush()
		own, sent := texts.BuiltIn().In(locale), w.api.got("sendMessage")
		w.Expect(sent).To(HaveLen(4))
		var got []string
		for _, m := range sent {
			got = append(got, readText(t, m))
		}
		w.Expect(got[:3]).To(Equal([]string{
			texts.Fill(own.TelegramShareContact, "Example Shop"), own.TelegramWrongNumber, texts.Fill(own.Verified, "Example Shop"),
		}), locale)
		w.Expect(string(sent[0])).To(ContainSubstring(`"text":` + strconv.Quote(own.TelegramButton)))
		w.Expect(got[3]).To(Equal("Example Shop knows no such code"))
	}
}

// TestReplies_codeOfAnotherMessenger is answered in the language of its request, by the text that the project wrote for it.
func TestReplies_codeOfAnotherMessenger(t *testing.T) {
	w := newWorld(t)
	number, err := phone.FromE164(claimed)
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.service.Initiate(t.Context(), verification.Initiation{
		Phone: number, Method: verification.WhatsApp, KeyName: "backend", KeyHash: sha256.Sum256([]byte("key")), TTL: 10 * time.Minute,
		IdempotencyKey: "golden", HasIdempotencyKey: true, ClientData: verification.ClientData{Locale: "es"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.accept(w.update(1, user, "/start "+goldenCode))).To(Equal(messenger.OutcomeWrongMethod))
	w.flush()
	w.settings.Texts = texts.NewSet(texts.Texts{}, map[string]texts.Texts{"es": {Unknown: "{name} lo espera en WhatsApp"}})
	w.Expect(w.accept(w.update(2, stranger, "/start "+goldenCode))).To(Equal(messenger.OutcomeWrongMethod))
	w.later(time.Second)
	w.accept(w.update(3, stranger, "/start "+goldenCode))
	w.flush()
	var got []string
	for _, m := range w.api.got("sendMessage") {
		got = append(got, readText(t, m))
	}
	w.Expect(got).To(Equal([]string{texts.BuiltIn().In("es").TelegramUnknown, "Example Shop lo espera en WhatsApp"}))
}

// readText returns the text of a message.
func readText(t *testing.T, message []byte) string {
	t.Helper()
	var m struct {
		Text string `json:"text"`
	}
	NewWithT(t).Expect(json.Unmarshal(message, &m)).To(Succeed())
	return m.Text
}

// TestReplies_ofStrangers: one a day for each, one a second in all.
func TestReplies_ofStrangers(t *testing.T) {
	w := newWorld(t)
	w.accept(w.update(1, 1, "hello"))
	w.accept(w.update(2, 2, "hello"))
	w.flush()
	w.Expect(w.replied(messenger.ReplySent)).To(BeEquivalentTo(1), "one a second in all")
	for range 23 {
		w.later(time.Hour)
		w.accept(w.update(3, 1, "hello"))
	}
	w.flush()
	w.Expect(w.replied(messenger.ReplySent)).To(BeEquivalentTo(1), "one a day for each")
	w.accept(w.update(4, 2, "hello"))
	w.later(time.Hour)
	w.accept(w.update(5, 1, "hello"))
	w.flush()
	w.Expect(w.replied(messenger.ReplySent)).To(BeEquivalentTo(3))
}

// TestReplies_ofABacklog has messages arrive two hours late, as those to a bot do that others used before: only the user of a stored
// request is answered, and a stranger's turn is not used up.
func TestReplies_ofABacklog(t *testing.T) {
	w := newWorld(t)
	w.initiate("golden")
	old := [][]byte{
		w.update(1, 1, "hello"), w.update(2, 2, "/start "+otherCode), w.update(3, 3, "/help"), w.contactUpdate(4, 4, strangerPhone),
		w.update(5, user, "/start "+goldenCode),
	}
	w.later(2 * time.Hour)
	for _, update := range old {
		w.accept(update)
		w.flush()
		w.later(time.Second)
	}
	sent := w.api.got("sendMessage")
	w.Expect(sent).To(HaveLen(1))
	w.Expect(readText(t, sent[0])).To(Equal(textExpired))
	w.accept(w.update(6, 1, "hello"))
	w.flush()
	sent = w.api.got("sendMessage")
	w.Expect(sent).To(HaveLen(2))
	w.Expect(readText(t, sent[1])).To(Equal(textUnknown))
}

// TestReplies_areBestEffort: a full queue, a user who blocked the bot, a Bot API that is away.
func TestReplies_areBestEffort(t *testing.T) {
	w := newWorld(t)
	w.initiate("golden")
	w.accept(w.update(1, user, "/start "+goldenCode))
	for i := range int64(messenger.ReplyQueueSize + 10) {
		if i%messenger.MaxPerSender == 0 {
			w.later(messenger.SenderWindow / 60)
			w.channel.senders = messenger.NewSenderLimiter()
		}
		w.accept(w.contactUpdate(i+2, user, strangerPhone))
	}
	w.Expect(w.replied(messenger.ReplyDropped)).To(BeEquivalentTo(10))
	w.flush()
	w.Expect(w.replied(messenger.ReplySent)).To(BeEquivalentTo(1 + messenger.ReplyQueueSize))
	for answer, result := range map[string]string{"error_403": messenger.ReplyRefused, "error_429": messenger.ReplyFailed, "error_500": messenger.ReplyFailed} {
		w.api.failing(always("sendMessage", answer))
		before := w.replied(result)
		w.channel.senders = messenger.NewSenderLimiter()
		w.accept(w.contactUpdate(900, user, strangerPhone))
		w.flush()
		w.Expect(w.replied(result)).To(Equal(before + 1))
	}
}

func TestReplies_saySomethingOfTheProjectOnly(t *testing.T) {
	w := newWorld(t)
	w.Expect(shareText(w.settings, &verification.Request{})).To(HavePrefix("Example Shop asks"))
	w.Expect(shareText(w.settings, &verification.Request{DisplayName: "Old Shop"})).To(HavePrefix("Old Shop asks"))
	for _, text := range []string{textVerified, textWrongNumber, textExpired, textUnknown, textShareContact} {
		w.Expect(len(text)).To(BeNumerically("<", 512), "with a name in it at most 1,024")
		w.Expect(strings.ToLower(text)).NotTo(ContainSubstring("code"))
	}
}

func TestNew_needsItsParts(t *testing.T) {
	w := newWorld(t)
	_, err := New(Options{})
	w.Expect(err).To(HaveOccurred())
	_, err = New(Options{Settings: w.current, Service: w.service, Client: w.channel.client, Registerer: w.registry})
	w.Expect(err).To(HaveOccurred(), "its metrics are registered already")
	w.Expect(w.channel.NeedLeaderElection()).To(BeFalse())
	w.Expect(w.channel.NewPoller(PollerOptions{}).NeedLeaderElection()).To(BeTrue())
}

// TestFlow_sendPolicy has a stranger, a wrong number and the right one under each policy: the question for the contact is always sent.
func TestFlow_sendPolicy(t *testing.T) {
	for policy, replies := range map[settings.SendPolicy]int{settings.SendAlways: 3, settings.SendOnTrouble: 2, settings.SendNever: 0} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			w := newWorld(t)
			changed := *w.settings
			changed.Replies.Send = policy
			w.settings = &changed
			id := w.initiate("golden").Request.ID
			w.Expect(w.accept(w.update(1, 43, "hello"))).To(Equal(messenger.OutcomeNoCode))
			w.Expect(w.accept(w.update(2, stranger, "/start "+goldenCode))).To(Equal(messenger.OutcomeNeedContact))
			w.Expect(w.accept(w.contactUpdate(3, stranger, strangerPhone))).To(Equal(messenger.OutcomeWrongNumber))
			w.Expect(w.accept(w.update(4, user, "/start "+goldenCode))).To(Equal(messenger.OutcomeNeedContact))
			w.Expect(w.accept(w.contactUpdate(5, user, claimed))).To(Equal(messenger.OutcomeVerified))
			w.Expect(w.phase(id)).To(Equal(verification.Verified))
			w.flush()
			w.Expect(w.api.got("sendMessage")).To(HaveLen(2 + replies))
			w.Expect(w.replied(messenger.ReplySuppressed)).To(BeEquivalentTo(3 - replies))
		})
	}
}
