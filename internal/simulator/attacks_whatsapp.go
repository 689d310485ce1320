package simulator

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what Meta's old header is made of
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// strangersSecret signs for a project that is not the one under attack.
const strangersSecret = settings.SimulatorPrefix + "another_project"

func whatsAppAttacks() []Attack {
	forged := func(name, summary string, header func(b *business, body []byte) http.Header) Attack {
		of := Attack{Name: name, Platform: onWhatsApp, Summary: summary, Expect: http.StatusForbidden}
		of.forge = func(a *assault) ([]job, *failure) {
			b := a.chat.business
			body := encodeEscaped(newEnvelope(a.asVictim(b)))
			j := newMetaJob(b, body, "")
			maps.Copy(j.header, header(b, body))
			return []job{j}, nil
		}
		return of
	}
	attacks := []Attack{
		forged("no-signature", "posts the victim's message without a signature", func(*business, []byte) http.Header { return nil }),
		forged("wrong-signature", "posts it with a signature made with a guessed secret", func(_ *business, body []byte) http.Header {
			return http.Header{metaSignature: {metaMAC([]byte("guessed"), body)}}
		}),
		forged("sha1-only", "posts it with only the old SHA-1 signature, a valid one", func(b *business, body []byte) http.Header {
			return http.Header{metaOldSignature: {oldMAC([]byte(b.secret()), body)}}
		}),
		forged("other-project-signature", "posts it with the signature of another project", func(_ *business, body []byte) http.Header {
			return http.Header{metaSignature: {metaMAC([]byte(strangersSecret), body)}}
		}),
		forged("empty-secret", "posts it with a signature made with an empty secret", func(_ *business, body []byte) http.Header {
			return http.Header{metaSignature: {metaMAC(nil, body)}}
		}),
		forged("two-signatures", "posts it with two signatures, one of them valid", func(b *business, body []byte) http.Header {
			return http.Header{metaSignature: {metaMAC([]byte("guessed"), body), metaMAC([]byte(b.secret()), body)}}
		}),
		forged("upper-case-signature", "posts it with the valid signature in upper case", func(b *business, body []byte) http.Header {
			return http.Header{metaSignature: {"SHA256=" + metaMAC([]byte(b.secret()), body)[len("sha256="):]}}
		}),
		{
			Name: "reserialised", Platform: onWhatsApp, Expect: http.StatusForbidden,
			Summary: "posts a message from Meta with its signature, after decoding and encoding it again", forge: forgeReserialised,
		},
	}
	return slices.Concat(attacks, signedAttacks(), relayAttacks(), crowdAttacks(), echoAttacks())
}

// relayAttacks have the victim send the code themselves, by a link that was passed on with another text in it.
func relayAttacks() []Attack {
	relayed := func(name, summary string, text func(prepared string) string) Attack {
		of := Attack{Name: name, Platform: onWhatsApp, Summary: summary, Expect: http.StatusOK, Asks: true}
		of.forge = func(a *assault) ([]job, *failure) {
			a.text = text(a.text)
			return genuinelySigned(a.chat.business, encodeEscaped(newEnvelope(a.asVictim(a.chat.business)))), nil
		}
		return of
	}
	code := func(prepared string) string { return prepared[strings.LastIndexByte(prepared, ' ')+1:] }
	return []Attack{
		relayed("relayed-code", "has the victim send the code in a text about a parcel", func(prepared string) string {
			return "Please release my parcel no. " + code(prepared)
		}),
		relayed("bare-code", "has the victim send the code alone", code),
		relayed("relayed-story", "has the victim send the prepared text at the end of a long story", func(prepared string) string {
			return "Hello, I am waiting for my parcel and would like to have it tomorrow morning. " + prepared
		}),
		{
			Name: "guessed-tap", Platform: onWhatsApp, Expect: http.StatusOK,
			Summary: "has the victim's phone send a tap on a button that was never shown", forge: func(a *assault) ([]job, *failure) {
				return a.makeTap(a.asVictim(a.chat.business), "confirm:"+strings.ToLower(a.text)), nil
			},
		},
		{
			Name: "foreign-tap", Platform: onWhatsApp, Expect: http.StatusOK, Needs: needsQuestion,
			Summary: "sends a tap on the button that was shown to the victim from their own phone", forge: foreignTap,
		},
	}
}

// foreignTap takes the button out of the victim's chat.
func foreignTap(a *assault) ([]job, *failure) {
	b := a.chat.business
	victim, f := a.in.phones.findUser(a.victim)
	if f != nil {
		return nil, f
	}
	c, f := victim.findChat(onWhatsApp + ":" + b.Number)
	if f != nil || len(c.Replies) == 0 {
		return nil, &failure{http.StatusConflict, "not_asked", "", "the victim was shown no button"}
	}
	return a.makeTap(a.user.newTextValue(b, "", a.now), c.Replies[0].ID), nil
}

// makeTap makes a message a tap on a button with that id.
func (a *assault) makeTap(v waValue, id string) []job {
	m := &v.Messages[0]
	m.Type, m.Text = "interactive", nil
	m.Interactive = &waInteractive{Type: "button_reply", Reply: &replyButton{id, "Confirm"}}
	return genuinelySigned(a.chat.business, encodeEscaped(newEnvelope(v)))
}

// signedAttacks are those that Meta itself delivers: the attacker uses an ordinary phone, or an ordinary account.
func signedAttacks() []Attack {
	signed := func(name, summary string, forge func(a *assault, b *business) waValue) Attack {
		return Attack{Name: name, Platform: onWhatsApp, Summary: summary, Expect: http.StatusOK, forge: func(a *assault) ([]job, *failure) {
			return genuinelySigned(a.chat.business, encodeEscaped(newEnvelope(forge(a, a.chat.business)))), nil
		}}
	}
	return []Attack{
		signed("foreign-number", "sends the victim's text from their own phone", func(a *assault, b *business) waValue {
			return a.user.newTextValue(b, a.text, a.now)
		}),
		signed("spoofed-profile", "does so with the victim's number as the one in contacts", func(a *assault, b *business) waValue {
			v := a.user.newTextValue(b, a.text, a.now)
			v.Contacts[0].WaID = a.victimDigits()
			return v
		}),
		signed("forwarded-text", "has the victim forward the text", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			v.Messages[0].Context = &waContext{Forwarded: true}
			return v
		}),
		signed("frequently-forwarded-text", "has the victim forward a text that went round", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			v.Messages[0].Context = &waContext{FrequentlyForwarded: true}
			return v
		}),
		signed("edited-text", "has the victim edit an earlier message into the text", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			m := &v.Messages[0]
			m.Edit = &waEdit{newWAMID(), waEdited{"text", m.Text}}
			m.Type, m.Text = "edit", nil
			return v
		}),
		signed("captioned-text", "has the victim send the text as the caption of a picture", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			m := &v.Messages[0]
			m.Image = &waImage{m.Text.Body, "image/jpeg", "81d3bd8a8db4868c9520ed47186e8b7c5789e61ff79f7f834be6950b808a90d3", "2754859441498128"}
			m.Type, m.Text = "image", nil
			return v
		}),
		signed("group-text", "has the victim write it in a group with the business", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			v.Messages[0].GroupID = "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"
			return v
		}),
		signed("echo", "has the business itself write it to the victim", func(a *assault, b *business) waValue {
			m := waMessage{From: b.Number, To: a.victimDigits(), ID: newWAMID(), Timestamp: unixTime(a.now), Type: "text", Text: &waText{a.text}}
			v := b.newValue()
			v.Echoes = []waMessage{m}
			return v
		}),
		signed("foreign-contact", "attaches the victim's contact card", func(a *assault, b *business) waValue {
			return a.user.newCardValue(b, a.victim, a.victimDigits(), "other", a.now)
		}),
		signed("unasked-contact", "answers a request for the contact that was never made", func(a *assault, b *business) waValue {
			return a.user.newCardValue(b, a.victim, a.victimDigits(), "contact_request", a.now)
		}),
		signed("hour-old", "has Meta deliver a message of the victim that is an hour old", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			v.Messages[0].Timestamp = unixTime(a.now.Add(-time.Hour))
			return v
		}),
		signed("future", "has Meta deliver a message of the victim from tomorrow", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			v.Messages[0].Timestamp = unixTime(a.now.Add(24 * time.Hour))
			return v
		}),
		signed("no-time", "has Meta deliver a message of the victim without a time", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			v.Messages[0].Timestamp = ""
			return v
		}),
		signed("other-account", "has the victim write it to another account of the same app", func(a *assault, b *business) waValue {
			v := a.asVictim(b)
			v.Metadata.ID += "9"
			return v
		}),
		{
			Name: "replay", Platform: onWhatsApp, Expect: http.StatusOK, Needs: needsMessage,
			Summary: "posts the user's last genuine webhook again, byte for byte, with its signature", forge: replayMeta,
		},
	}
}

// crowdAttacks are large and mixed batches with one genuine message of the user in them, which must count.
func crowdAttacks() []Attack {
	crowd := func(name, summary string, fill func(genuine waMessage) []any) Attack {
		of := Attack{Name: name, Platform: onWhatsApp, Summary: summary, Expect: http.StatusOK, Honest: true}
		of.forge = func(a *assault) ([]job, *failure) {
			b := a.chat.business
			v := a.user.newTextValue(b, a.text, a.now)
			messages := fill(v.Messages[0])
			v.Messages = nil
			// Some are no messages at all, so the value is put together by hand.
			value := map[string]any{"messaging_product": v.Product, "metadata": v.Metadata, "contacts": v.Contacts, "messages": messages}
			return genuinelySigned(b, encodeEscaped(map[string]any{
				"object": "whatsapp_business_account",
				"entry":  []any{map[string]any{"id": v.account, "changes": []any{map[string]any{"value": value, "field": "messages"}}}},
			})), nil
		}
		return of
	}
	return []Attack{
		crowd("batch", "hides the genuine message behind 999 others in one webhook", func(genuine waMessage) []any {
			messages := make([]any, 0, 1000)
			for i := range 999 {
				m := genuine
				m.ID, m.FromUserID, m.Text = newWAMID(), "", &waText{"Is this still available? " + strconv.Itoa(i)}
				m.From = strconv.Itoa(4915500000000 + i%50)
				messages = append(messages, m)
			}
			return append(messages, genuine)
		}),
		crowd("bad-among-good", "puts the genuine message between malformed ones", func(genuine waMessage) []any {
			return []any{
				nil, 17, "text", map[string]any{"from": 17, "type": []int{}}, map[string]any{"type": "text", "text": "no object", "from": genuine.From},
				genuine, map[string]any{"type": "hologram", "id": newWAMID()},
			}
		}),
	}
}

// asVictim returns the text as the victim would send it.
func (a *assault) asVictim(b *business) waValue {
	victim := &user{Person: Person{Name: "Søren Ægir", Phone: a.victim, WhatsAppID: a.victimDigits()}, ID: "victim"}
	return victim.newTextValue(b, a.text, a.now)
}

func genuinelySigned(b *business, body []byte) []job {
	return []job{newMetaJob(b, body, metaMAC([]byte(b.secret()), body))}
}

// forgeReserialised takes a message of Meta's and writes it the way that other JSON encoders do. A server that signs what it
// decoded and encoded again accepts it, and then also what was changed in between.
func forgeReserialised(a *assault) ([]job, *failure) {
	b := a.chat.business
	v := newEnvelope(a.asVictim(b))
	return []job{newMetaJob(b, encodePlain(v), metaMAC([]byte(b.secret()), encodeEscaped(v)))}, nil
}

func replayMeta(a *assault) ([]job, *failure) {
	b := a.chat.business
	body := b.captured[a.user.ID]
	if body == nil {
		return nil, nothingCaptured()
	}
	return genuinelySigned(b, body), nil
}

func oldMAC(secret, body []byte) string {
	mac := hmac.New(sha1.New, secret)
	mac.Write(body)
	return "sha1=" + hex.EncodeToString(mac.Sum(nil))
}
