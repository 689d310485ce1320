package simulator

import (
	"net/http"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
)

func telegramAttacks() []Attack {
	forged := func(name, summary string, secret func(b *bot) string) Attack {
		of := Attack{Name: name, Platform: onTelegram, Summary: summary, Expect: http.StatusUnauthorized}
		of.forge = func(a *assault) ([]job, *failure) {
			b := a.chat.bot
			if b.Webhook == "" {
				return nil, noWebhook()
			}
			return []job{b.newJob(b.updateOf(kindMessage, a.user.telegramText(a.chat, a.text, a.now)), secret(b))}, nil
		}
		return of
	}
	attacks := []Attack{
		forged("no-secret", "posts the text without the webhook's secret", func(*bot) string { return "" }),
		forged("wrong-secret", "posts it with a guessed secret", func(*bot) string { return "guessed" }),
		forged("other-project-secret", "posts it with the token in place of the secret",
			func(b *bot) string { return settings.SimulatorPrefix + b.Username }),
	}
	return append(attacks, append(contactAttacks(), textAttacks()...)...)
}

// contactAttacks begin with the code, as the rules want it, and end with a contact that is not the sender's own.
func contactAttacks() []Attack {
	contact := func(name, summary, kind string, forge func(a *assault, m *tgMessage)) Attack {
		return Attack{Name: name, Platform: onTelegram, Summary: summary, Expect: http.StatusOK, forge: func(a *assault) ([]job, *failure) {
			begun := a.deliverMessage(kindMessage, a.user.telegramText(a.chat, a.text, a.now))
			m := a.user.telegramContact(a.chat, a.now)
			m.Contact.Phone = a.victimDigits()
			forge(a, &m)
			return append(begun, a.deliverMessage(kind, m)...), nil
		}}
	}
	return []Attack{
		contact("foreign-contact", "shares the victim's contact", kindMessage, func(_ *assault, m *tgMessage) {
			m.Contact.UserID = firstTelegramID - 1
		}),
		contact("contact-without-user-id", "shares the victim's number as a contact of no account", kindMessage, func(_ *assault, m *tgMessage) {
			m.Contact.UserID = 0
		}),
		contact("forwarded-contact", "forwards the contact that the victim shared elsewhere", kindMessage, func(a *assault, m *tgMessage) {
			m.Contact.UserID = firstTelegramID - 1
			m.ForwardOrigin = &tgOrigin{"user", tgUser{ID: firstTelegramID - 1, FirstName: "Victim"}, a.now.Add(-time.Minute).Unix()}
		}),
		contact("forwarded-own-contact", "forwards the victim's number under their own id", kindMessage, func(a *assault, m *tgMessage) {
			m.ForwardOrigin = &tgOrigin{"user", *a.user.telegramUser(), a.now.Add(-time.Minute).Unix()}
		}),
		contact("group-contact", "shares the contact in a group with the bot", kindMessage, func(_ *assault, m *tgMessage) {
			m.Chat = tgChat{ID: -4088123, Title: "Friends", Type: "group"}
		}),
		contact("edited-contact", "edits a message until it is the contact", kindEdited, func(a *assault, m *tgMessage) {
			m.EditDate = a.now.Unix()
		}),
		contact("business-contact", "sends it in the chat of a business that the bot assists", kindBusiness, func(_ *assault, m *tgMessage) {
			m.BusinessConnectionID = "simulated"
		}),
		contact("via-bot-contact", "sends the contact through another bot", kindMessage, func(_ *assault, m *tgMessage) {
			m.ViaBot = &tgUser{ID: firstBotID - 1, IsBot: true, FirstName: "Contacts", Username: "contacts_bot"}
		}),
		contact("anonymous-number", "shares a number of the +888 kind, which has no SIM", kindMessage, func(_ *assault, m *tgMessage) {
			m.Contact.Phone = "+88800012345"
		}),
		contact("early-contact", "has the victim share their contact before the code was sent", kindMessage, func(a *assault, m *tgMessage) {
			m.Date = a.now.Add(-30 * time.Second).Unix()
		}),
		contact("older-prompt", "has the victim share their contact in answer to an older request", kindMessage, func(a *assault, m *tgMessage) {
			*m = m.inReplyTo(a.chat.bot, m.ID-1, a.now.Add(-time.Minute).Unix())
		}),
		contact("vcard", "shares their own number with a vCard that holds the victim's", kindMessage, func(a *assault, m *tgMessage) {
			m.Contact.Phone = a.user.TelegramPhone
			m.Contact.VCard = "BEGIN:VCARD\nVERSION:3.0\nFN:Victim\nTEL;TYPE=CELL:" + a.victim + "\nEND:VCARD"
		}),
	}
}

// textAttacks need no contact: the code itself must not count.
func textAttacks() []Attack {
	text := func(name, summary, kind string, forge func(a *assault, m *tgMessage)) Attack {
		return Attack{Name: name, Platform: onTelegram, Summary: summary, Expect: http.StatusOK, forge: func(a *assault) ([]job, *failure) {
			m := a.user.telegramText(a.chat, a.text, a.now)
			forge(a, &m)
			begun := a.deliverMessage(kind, m)
			// The victim's number after it, as if it were the sender's own: it must find nothing to complete.
			contact := a.user.telegramContact(a.chat, a.now)
			contact.Contact.Phone = a.victimDigits()
			return append(begun, a.deliverMessage(kindMessage, contact)...), nil
		}}
	}
	return []Attack{
		text("edited-message", "edits an old message until it holds the code", kindEdited, func(a *assault, m *tgMessage) {
			m.EditDate = a.now.Unix()
		}),
		text("channel-post", "posts the code in a channel of the bot", kindPost, func(_ *assault, m *tgMessage) {
			channel := tgChat{ID: -1001234567891, Title: "News", Type: "channel"}
			m.From, m.SenderChat, m.Chat, m.Entities = nil, &channel, channel, nil
		}),
		text("group-text", "sends the code in a group", kindMessage, func(_ *assault, m *tgMessage) {
			m.Chat = tgChat{ID: -4088123, Title: "Friends", Type: "group"}
		}),
		text("forwarded-text", "forwards the code from someone else", kindMessage, func(a *assault, m *tgMessage) {
			m.ForwardOrigin = &tgOrigin{"user", tgUser{ID: firstTelegramID - 1, FirstName: "Victim"}, a.now.Add(-time.Minute).Unix()}
		}),
		text("bot-sender", "has another bot send the code", kindMessage, func(_ *assault, m *tgMessage) {
			m.From.IsBot = true
		}),
		text("hour-old", "has Telegram deliver a code that was sent an hour ago", kindMessage, func(a *assault, m *tgMessage) {
			m.Date = a.now.Add(-time.Hour).Unix()
		}),
		{
			Name: "replay", Platform: onTelegram, Expect: http.StatusOK, Needs: needsMessage,
			Summary: "has the user's last genuine update delivered again, with its update_id", forge: replayTelegram,
		},
	}
}

func replayTelegram(a *assault) ([]job, *failure) {
	b := a.chat.bot
	body := b.captured[a.user.ID]
	switch {
	case body == nil:
		return nil, nothingCaptured()
	case b.Webhook == "":
		return nil, noWebhook()
	}
	return []job{b.newJob(body, b.secret)}, nil
}

func noWebhook() *failure { return noCallback("the bot has no webhook: it fetches its updates") }

// deliverMessage has Telegram deliver a message: by the webhook, or by the next getUpdates.
func (a *assault) deliverMessage(kind string, m tgMessage) []job {
	b := a.chat.bot
	if b.Webhook != "" {
		return []job{b.newJob(b.updateOf(kind, m), b.secret)}
	}
	if a.in.telegram.addUpdate(b, kind, m, nil, nil, true) != nil {
		a.queued++
	}
	return nil
}

// updateOf returns an update that passes the queue by.
func (b *bot) updateOf(kind string, m tgMessage) []byte {
	b.nextUpdate++
	return encodePlain(tgUpdate{"update_id": b.nextUpdate - 1, kind: m})
}
