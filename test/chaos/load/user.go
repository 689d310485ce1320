package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/system"
)

// user is an end user whose number is verified, with everything that is random about them.
type user struct {
	n      int64
	random *rand.Rand
	// phone is the claimed number, number the one that the messenger reports.
	phone  string
	number string
	method string
	fate   ledger.Fate
	// session is set if the client must confirm the request.
	session bool
	key     string
	apiKey  string

	id      string
	text    string
	expires time.Time
}

// newUser draws a user: the same one for the same seed and n.
func (l *Load) newUser(n int64) *user {
	u := &user{
		n: n, random: rand.New(rand.NewPCG(l.Seed, uint64(n))),
		phone: fmt.Sprintf("+49151%08d", n), number: fmt.Sprintf("+49151%08d", n), method: "WHATSAPP",
		fate: ledger.Proven, key: fmt.Sprintf("chaos-%d-%d", l.Seed, n),
		apiKey: l.Key(),
	}
	if u.drawBool(0.1) {
		u.method = "TELEGRAM"
	}
	if u.drawBool(0.05) { // accounts from before 2019 keep a digit that numbers no longer have
		u.phone, u.number = fmt.Sprintf("+5255%08d", 10_000_000+n), fmt.Sprintf("+52155%08d", 10_000_000+n)
	}
	switch drawn := u.random.Float64(); {
	case l.Closing():
	case drawn < 0.03:
		u.fate = ledger.Unproven
	case drawn < 0.05:
		u.fate = ledger.WrongSender
	case drawn < 0.06:
		u.fate = ledger.Forged
	}
	u.session = u.drawBool(0.25)
	if u.session && u.fate == ledger.Proven {
		switch drawn := u.random.Float64(); {
		case l.Closing():
		case drawn < 0.05:
			u.fate = ledger.WrongCodes
		case drawn < 0.35 && n <= lastUnconfirmed:
			u.fate = ledger.Unconfirmed
		}
	}
	return u
}

// lastUnconfirmed is the number of the last user who may leave a proven request alone: it stays pending for three minutes, and the run
// would wait for it.
const lastUnconfirmed = 100

// initBody returns the body of init.
func (u *user) initBody() string {
	terms := ""
	if u.session {
		terms = `,"assurance":"SESSION","browser":"CHROME/ANDROID"`
	}
	return fmt.Sprintf(`{"phoneNumber":%q,"method":%q,"subject":"chaos-%d"%s}`, u.phone, u.method, u.n, terms)
}

func (u *user) drawBool(p float64) bool { return u.random.Float64() < p }

// runVerification plays a whole verification.
func (l *Load) runVerification(ctx context.Context, n int64) {
	u := l.newUser(n)
	if !l.retryUntilDone(ctx, func(replica string) bool { return l.startWithValidKey(ctx, replica, u) }) {
		return
	}
	l.begun.Add(1)
	l.recent.add(u.id)
	if u.drawBool(0.05) { // a client that did not get the answer repeats its Idempotency-Key
		l.retryUntilDone(ctx, func(replica string) bool { return l.startVerification(ctx, replica, u) })
	}
	switch u.fate {
	case ledger.Proven, ledger.Unconfirmed, ledger.WrongCodes:
		l.proveNumber(ctx, u)
	case ledger.WrongSender:
		l.sendFromWrongSender(ctx, u)
	case ledger.Forged:
		l.sendForged(ctx, u)
	case ledger.Unproven:
		if u.drawBool(0.5) {
			l.proveTooLate(u)
		}
	}
}

// startWithValidKey calls startVerification with the key that is valid now, because the one before may have been
// revoked.
func (l *Load) startWithValidKey(ctx context.Context, replica string, u *user) bool {
	u.apiKey = l.Key()
	return l.startVerification(ctx, replica, u)
}

// proveNumber has the user send what the request asks for.
func (l *Load) proveNumber(ctx context.Context, u *user) {
	if u.drawBool(0.1) {
		l.retryUntilDone(ctx, func(replica string) bool { l.queryStatus(ctx, replica, u.id, ""); return true })
	}
	prove := l.proveByWhatsApp
	switch {
	case u.method == "TELEGRAM":
		prove = l.proveByTelegram
	case u.drawBool(0.005) && !u.session && !l.Closing():
		l.proveJustInTime(u)
		return
	}
	if !prove(ctx, u) {
		return
	}
	l.proven.Add(1)
	if u.session {
		l.confirmRequest(ctx, u)
	}
	if u.drawBool(0.3) {
		l.retryUntilDone(ctx, func(replica string) bool { l.queryStatus(ctx, replica, u.id, ""); return true })
	}
}

// proveByWhatsApp proves a number through WhatsApp, in a webhook of its own or together with others; some webhooks are
// delivered repeatedly.
func (l *Load) proveByWhatsApp(ctx context.Context, u *user) bool {
	sent := time.Now()
	if u.drawBool(0.2) {
		return l.meta.sendMessage(ctx, u, sent)
	}
	m := l.Project.WhatsAppMessage(u.number, u.text, u.messageID(), sent)
	proof := u.proofMessage(u.messageID())
	if !l.retryUntilDone(ctx, func(replica string) bool { return l.postWebhook(ctx, replica, m, proof) }) {
		return false
	}
	switch {
	case u.drawBool(0.05):
		for range 5 {
			l.retryUntilDone(ctx, func(replica string) bool { return l.postWebhook(ctx, replica, m, proof) })
		}
	case u.drawBool(0.02):
		l.scheduler.runAt(time.Now().Add(rand.N(10*time.Second)), func(ctx context.Context) {
			l.retryUntilDone(ctx, func(replica string) bool { return l.postWebhook(ctx, replica, m, proof) })
		})
	}
	return true
}

// proofMessage returns the ledger's record of a message that proves the number.
func (u *user) proofMessage(id string) ledger.Message {
	return ledger.Message{ID: id, Request: u.id, Proves: true, From: u.number, Method: u.method}
}

func (u *user) messageID() string { return fmt.Sprintf("chaos%d", u.n) }

// proveByTelegram proves a number through Telegram: first the code, then the contact that the bot asks for.
func (l *Load) proveByTelegram(ctx context.Context, u *user) bool {
	account := 10_000_000 + u.n
	for ctx.Err() == nil {
		update := l.updates.Add(1)
		start := l.Project.TelegramText(update, account, u.text, time.Now())
		if !l.retryUntilDone(ctx, func(replica string) bool {
			return l.postWebhook(ctx, replica, start, ledger.Message{ID: strconv.FormatInt(update, 10), Request: u.id})
		}) {
			return false
		}
		if l.Platform.wasAsked(account) {
			break
		}
		if time.Now().After(u.expires) {
			return false
		}
		l.unasked.Add(1) // the user sends the code again
	}
	update := l.updates.Add(1)
	sent := time.Now()
	contact := l.Project.TelegramContact(update, account, u.number, sent)
	return l.retryUntilDone(ctx, func(replica string) bool {
		return l.postWebhook(ctx, replica, contact, u.proofMessage(strconv.FormatInt(update, 10)))
	})
}

// sendFromWrongSender has another user send the code and share their own contact.
func (l *Load) sendFromWrongSender(ctx context.Context, u *user) {
	other := fmt.Sprintf("+49152%08d", u.n)
	if u.method != "TELEGRAM" {
		m := l.Project.WhatsAppMessage(other, u.text, u.messageID(), time.Now())
		l.retryUntilDone(ctx, func(replica string) bool {
			return l.postWebhook(ctx, replica, m, ledger.Message{ID: u.messageID(), Request: u.id})
		})
		return
	}
	account := 900_000_000 + u.n
	for _, m := range []func(update int64) system.Message{
		func(update int64) system.Message { return l.Project.TelegramText(update, account, u.text, time.Now()) },
		func(update int64) system.Message {
			return l.Project.TelegramContact(update, account, other, time.Now())
		},
	} {
		update := l.updates.Add(1)
		message := m(update)
		l.retryUntilDone(ctx, func(replica string) bool {
			return l.postWebhook(ctx, replica, message, ledger.Message{ID: strconv.FormatInt(update, 10), Request: u.id})
		})
	}
}

// sendForged sends the right message with a wrong signature until it is answered.
func (l *Load) sendForged(ctx context.Context, u *user) {
	m := l.Project.WhatsAppMessage(u.number, u.text, u.messageID(), time.Now())
	m.Header = m.Header.Clone()
	if u.method == "TELEGRAM" {
		m = l.Project.TelegramText(l.updates.Add(1), 10_000_000+u.n, u.text, time.Now())
		m.Header = m.Header.Clone()
		m.Header.Set("X-Telegram-Bot-Api-Secret-Token", "guessed")
	} else {
		m.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("ab", 32))
	}
	l.retryUntilDone(ctx, func(replica string) bool {
		asked := time.Now()
		status, _ := l.sendRequest(ctx, http.MethodPost, replica+m.Path, m.Header, string(m.Body))
		l.recordError(l.Inbound.Note(ledger.Inbound{
			Asked: asked, At: time.Now(), Answer: status, Messages: []ledger.Message{{ID: u.messageID(), Request: u.id, Proves: true}},
		}))
		return status != 0 && status != http.StatusServiceUnavailable
	})
}

// proveTooLate has the right message arrive after the request expired, though it was sent in time.
func (l *Load) proveTooLate(u *user) {
	l.proveAt(u, u.expires.Add(u.drawBetween(0, 8*time.Second)))
}

// proveJustInTime has the right message arrive about when the request expires.
func (l *Load) proveJustInTime(u *user) {
	l.proveAt(u, u.expires.Add(u.drawBetween(-2*time.Second, time.Second)))
}

func (u *user) drawBetween(from, to time.Duration) time.Duration {
	return from + time.Duration(u.random.Int64N(int64(to-from)))
}

func (l *Load) proveAt(u *user, at time.Time) {
	sent := time.Now()
	m := l.Project.WhatsAppMessage(u.number, u.text, u.messageID(), sent)
	proof := u.proofMessage(u.messageID())
	proof.Proves, proof.Method = u.method == "WHATSAPP", "WHATSAPP"
	l.scheduler.runAt(at, func(ctx context.Context) {
		l.retryUntilDone(ctx, func(replica string) bool { return l.postWebhook(ctx, replica, m, proof) })
		l.retryUntilDone(ctx, func(replica string) bool { l.queryStatus(ctx, replica, u.id, ""); return true })
	})
}
