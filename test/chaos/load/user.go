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

// user is an end user whose number is verified, and all that chance decides about it.
type user struct {
	n      int64
	random *rand.Rand
	// phone is the number that is claimed, number the one that the messenger reports.
	phone  string
	number string
	method string
	fate   ledger.Fate
	key    string
	apiKey string

	id      string
	text    string
	expires time.Time
}

// newUser draws a user, the same one for the same seed and number.
func (l *Load) newUser(n int64) *user {
	u := &user{
		n: n, random: rand.New(rand.NewPCG(l.Seed, uint64(n))),
		phone: fmt.Sprintf("+49151%08d", n), number: fmt.Sprintf("+49151%08d", n), method: "WHATSAPP",
		fate: ledger.Proven, key: fmt.Sprintf("chaos-%d-%d", l.Seed, n),
		apiKey: l.Key(),
	}
	if u.chance(0.1) {
		u.method = "TELEGRAM"
	}
	if u.chance(0.05) { // accounts of before 2019 keep a digit that numbers have no more
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
	return u
}

func (u *user) chance(p float64) bool { return u.random.Float64() < p }

// live is all that a verification goes through.
func (l *Load) live(ctx context.Context, n int64) {
	u := l.newUser(n)
	if !l.insist(ctx, func(replica string) bool { return l.begin(ctx, replica, u) }) {
		return
	}
	l.begun.Add(1)
	l.recent.add(u.id)
	if u.chance(0.05) { // a client that did not get the answer asks with its key again
		l.insist(ctx, func(replica string) bool { return l.initiate(ctx, replica, u) })
	}
	switch u.fate {
	case ledger.Proven:
		l.prove(ctx, u)
	case ledger.WrongSender:
		l.confuse(ctx, u)
	case ledger.Forged:
		l.forge(ctx, u)
	case ledger.Unproven:
		if u.chance(0.5) {
			l.tooLate(u)
		}
	}
}

// begin is initiate for a user who has nothing yet: with the key that is valid now, where the one before was refused.
func (l *Load) begin(ctx context.Context, replica string, u *user) bool {
	u.apiKey = l.Key()
	return l.initiate(ctx, replica, u)
}

// prove has the user do what he is asked to.
func (l *Load) prove(ctx context.Context, u *user) {
	if u.chance(0.1) {
		l.insist(ctx, func(replica string) bool { l.ask(ctx, replica, u.id, ""); return true })
	}
	prove := l.whatsApp
	switch {
	case u.method == "TELEGRAM":
		prove = l.telegram
	case u.chance(0.005) && !l.Closing():
		l.justInTime(u)
		return
	}
	if !prove(ctx, u) {
		return
	}
	l.proven.Add(1)
	if u.chance(0.3) {
		l.insist(ctx, func(replica string) bool { l.ask(ctx, replica, u.id, ""); return true })
	}
}

// whatsApp proves a number through WhatsApp: by a webhook of its own or among others; some are delivered again and again.
func (l *Load) whatsApp(ctx context.Context, u *user) bool {
	sent := time.Now()
	if u.chance(0.2) {
		return l.meta.send(ctx, u, sent)
	}
	m := l.Project.WhatsAppMessage(u.number, u.text, u.wamid(), sent)
	proof := u.message(u.wamid())
	if !l.insist(ctx, func(replica string) bool { return l.post(ctx, replica, m, proof) }) {
		return false
	}
	switch {
	case u.chance(0.05):
		for range 5 {
			l.insist(ctx, func(replica string) bool { return l.post(ctx, replica, m, proof) })
		}
	case u.chance(0.02):
		l.postman.after(time.Now().Add(rand.N(10*time.Second)), func(ctx context.Context) {
			l.insist(ctx, func(replica string) bool { return l.post(ctx, replica, m, proof) })
		})
	}
	return true
}

// message is one of the user's that proves the number, for the ledger.
func (u *user) message(id string) ledger.Message {
	return ledger.Message{ID: id, Request: u.id, Proves: true, From: u.number, Method: u.method}
}

func (u *user) wamid() string { return fmt.Sprintf("chaos%d", u.n) }

// telegram proves a number through Telegram: the code first, then the contact that the bot asks for.
func (l *Load) telegram(ctx context.Context, u *user) bool {
	account := 10_000_000 + u.n
	for ctx.Err() == nil {
		update := l.updates.Add(1)
		start := l.Project.TelegramText(update, account, u.text, time.Now())
		if !l.insist(ctx, func(replica string) bool {
			return l.post(ctx, replica, start, ledger.Message{ID: strconv.FormatInt(update, 10), Request: u.id})
		}) {
			return false
		}
		if l.Platform.Asked(account) {
			break
		}
		if time.Now().After(u.expires) {
			return false
		}
		l.unasked.Add(1) // he sends it again
	}
	update := l.updates.Add(1)
	sent := time.Now()
	contact := l.Project.TelegramContact(update, account, u.number, sent)
	return l.insist(ctx, func(replica string) bool {
		return l.post(ctx, replica, contact, u.message(strconv.FormatInt(update, 10)))
	})
}

// confuse has somebody else send the code, and share his own contact.
func (l *Load) confuse(ctx context.Context, u *user) {
	other := fmt.Sprintf("+49152%08d", u.n)
	if u.method != "TELEGRAM" {
		m := l.Project.WhatsAppMessage(other, u.text, u.wamid(), time.Now())
		l.insist(ctx, func(replica string) bool {
			return l.post(ctx, replica, m, ledger.Message{ID: u.wamid(), Request: u.id})
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
		l.insist(ctx, func(replica string) bool {
			return l.post(ctx, replica, message, ledger.Message{ID: strconv.FormatInt(update, 10), Request: u.id})
		})
	}
}

// forge sends the right message with a wrong signature, until somebody answers.
func (l *Load) forge(ctx context.Context, u *user) {
	m := l.Project.WhatsAppMessage(u.number, u.text, u.wamid(), time.Now())
	m.Header = m.Header.Clone()
	if u.method == "TELEGRAM" {
		m = l.Project.TelegramText(l.updates.Add(1), 10_000_000+u.n, u.text, time.Now())
		m.Header = m.Header.Clone()
		m.Header.Set("X-Telegram-Bot-Api-Secret-Token", "guessed")
	} else {
		m.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("ab", 32))
	}
	l.insist(ctx, func(replica string) bool {
		asked := time.Now()
		status, _ := l.call(ctx, http.MethodPost, replica+m.Path, m.Header, string(m.Body))
		l.write(l.Inbound.Note(ledger.Inbound{
			Asked: asked, At: time.Now(), Answer: status, Messages: []ledger.Message{{ID: u.wamid(), Request: u.id, Proves: true}},
		}))
		return status != 0 && status != http.StatusServiceUnavailable
	})
}

// tooLate has the right message come when the request has expired: some in time by their own clock, days late by ours.
func (l *Load) tooLate(u *user) {
	l.later(u, u.expires.Add(u.between(0, 8*time.Second)))
}

// justInTime has it come about when the request expires.
func (l *Load) justInTime(u *user) {
	l.later(u, u.expires.Add(u.between(-2*time.Second, time.Second)))
}

func (u *user) between(from, to time.Duration) time.Duration {
	return from + time.Duration(u.random.Int64N(int64(to-from)))
}

func (l *Load) later(u *user, at time.Time) {
	sent := time.Now()
	m := l.Project.WhatsAppMessage(u.number, u.text, u.wamid(), sent)
	proof := u.message(u.wamid())
	proof.Proves, proof.Method = u.method == "WHATSAPP", "WHATSAPP"
	l.postman.after(at, func(ctx context.Context) {
		l.insist(ctx, func(replica string) bool { return l.post(ctx, replica, m, proof) })
		l.insist(ctx, func(replica string) bool { l.ask(ctx, replica, u.id, ""); return true })
	})
}
