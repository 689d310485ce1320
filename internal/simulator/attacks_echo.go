package simulator

import (
	"net/http"
	"slices"
)

// An echo verifies a number that its owner hides: when a code comes without a number, the business sends a question with two
// buttons to the number that is claimed. It counts only if the user who sent the code taps it. The ids of the buttons are read
// from the question that was sent; their meaning is the server's own.

// echo is one that was sent, and the two users between whom it decides.
type echo struct {
	question

	// owner has the number that is claimed, sender sent the code. An honest claim is by one user.
	owner, sender *user
}

// confirmButton is the button that confirms: the first one.
func (e *echo) confirmButton() replyButton { return e.buttons[0] }

func echoAttacks() []Attack {
	attack := func(name, needs, summary string, forge func(*assault, *echo) ([]waValue, *failure)) Attack {
		return Attack{
			Name: name, Platform: onWhatsApp, Summary: summary, Expect: http.StatusOK, Needs: needs,
			forge: func(a *assault) ([]job, *failure) { return a.forgeEchoTaps(forge) },
		}
	}
	changed := func(name, summary string, change func(*assault, *echo, *waValue)) Attack {
		return attack(name, needsEcho, summary, func(a *assault, e *echo) ([]waValue, *failure) {
			v := a.newEchoTap(e, e.question)
			change(a, e, &v)
			return []waValue{v}, nil
		})
	}
	all := []Attack{
		attack("echo-tap-by-another-user", needsEcho, "sends the tap on the echo from their own phone",
			func(a *assault, e *echo) ([]waValue, *failure) {
				return []waValue{a.user.newTapValue(a.chat.business, e.confirmButton(), e.id, a.now)}, nil
			}),
		attack("echo-tap-of-another-request", needsOtherEcho, "has the sender of the code tap the echo of another request",
			forgeTapOfAnotherRequest),
		attack("echo-tap-of-older-echo", needsOlderEcho, "has the sender of the code tap an echo that was sent before the last one",
			forgeTapOfOlderEcho),
		attack("echo-tap-changed-token", needsEcho, "has the sender of the code tap buttons whose ids differ from the echo's by a character",
			forgeTapsWithChangedToken),
		attack("echo-tap-as-status", needsEcho, "has the id of the echo's button come back in status callbacks", forgeTapAsStatus),
		{
			Name: "echo-tap-replayed", Platform: onWhatsApp, Expect: http.StatusOK, Needs: needsEchoTap,
			Summary: "posts a tap that was taken before twice more, byte for byte, with its signature", forge: replayEchoTap,
		},
		{
			Name: "echo-tap-unsigned", Platform: onWhatsApp, Expect: http.StatusForbidden, Needs: needsEcho,
			Summary: "posts the tap on the echo without a signature", forge: forgeUnsignedTap,
		},
	}
	return append(all, changedEchoTaps(changed)...)
}

// changedEchoTaps are those that differ from the tap of the sender of the code in one thing.
func changedEchoTaps(changed func(name, summary string, change func(*assault, *echo, *waValue)) Attack) []Attack {
	return []Attack{
		changed("echo-tap-without-user-id", "has the tap arrive without a sender, whose user id is among the contacts alone",
			func(_ *assault, _ *echo, v *waValue) { v.Messages[0].From, v.Messages[0].FromUserID = "", "" }),
		changed("echo-tap-by-number-only", "has the tap arrive with the claimed number and without a user id",
			func(_ *assault, e *echo, v *waValue) {
				v.Messages[0].From, v.Messages[0].FromUserID = e.owner.WhatsAppID, ""
				v.Contacts[0].WaID, v.Contacts[0].UserID = e.owner.WhatsAppID, ""
			}),
		changed("echo-tap-with-other-number", "has the tap arrive with the user id of the sender of the code and another number",
			func(a *assault, _ *echo, v *waValue) {
				v.Messages[0].From, v.Contacts[0].WaID = a.user.WhatsAppID, a.user.WhatsAppID
			}),
		changed("echo-tap-as-text", "has the sender of the code type the id of the button", func(_ *assault, e *echo, v *waValue) {
			m := &v.Messages[0]
			m.Type, m.Interactive, m.Text = "text", nil, &waText{e.confirmButton().ID}
		}),
		changed("echo-tap-as-template-button", "has the id of the button arrive as the payload of a template's button",
			func(_ *assault, e *echo, v *waValue) {
				m := &v.Messages[0]
				m.Type, m.Interactive, m.Button = "button", nil, &waButton{Payload: e.confirmButton().ID, Text: e.confirmButton().Title}
			}),
		changed("echo-tap-as-list-reply", "has the id of the button arrive as that of a row of a list",
			func(_ *assault, e *echo, v *waValue) {
				row := e.confirmButton()
				v.Messages[0].Interactive = &waInteractive{Type: "list_reply", Row: &row}
			}),
		changed("echo-tap-forwarded", "has the sender of the code forward the tap", func(_ *assault, _ *echo, v *waValue) {
			v.Messages[0].Context.Forwarded = true
		}),
		changed("echo-tap-in-group", "has the tap arrive from a group with the business", func(_ *assault, _ *echo, v *waValue) {
			v.Messages[0].GroupID = "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"
		}),
		changed("echo-tap-at-other-account", "has the tap arrive at another account of the same app", func(_ *assault, _ *echo, v *waValue) {
			v.Metadata.ID += "9"
		}),
	}
}

// forgeEchoTaps forges what is said of the newest echo to the claimed number.
func (a *assault) forgeEchoTaps(forge func(*assault, *echo) ([]waValue, *failure)) ([]job, *failure) {
	e, f := a.findEcho()
	if f != nil {
		return nil, f
	}
	values, f := forge(a, e)
	if f != nil {
		return nil, f
	}
	var jobs []job
	for _, v := range values {
		jobs = append(jobs, genuinelySigned(a.chat.business, encodeEscaped(newEnvelope(v)))...)
	}
	return jobs, nil
}

// findEcho returns the newest echo to the claimed number. The attacker may be neither of its two users: their own taps are no
// forgeries.
func (a *assault) findEcho() (*echo, *failure) {
	owner, f := a.in.phones.findUser(a.victim)
	if f != nil {
		return nil, f
	}
	echoes := owner.findEchoes(a.chat.business)
	if len(echoes) == 0 {
		return nil, noEcho("the business sent no question with two buttons to that number")
	}
	e := &echo{question: echoes[len(echoes)-1], owner: owner, sender: a.findSender(owner)}
	if a.user == e.owner || a.user == e.sender {
		return nil, &failure{http.StatusConflict, "not_another", "", "that user has the number, or sent the code: attack as another one"}
	}
	return e, nil
}

func noEcho(message string) *failure {
	return &failure{http.StatusConflict, "not_asked", "phone", message}
}

// findEchoes returns the questions with two buttons that a business sent to a user, the newest last.
func (u *user) findEchoes(b *business) []question {
	c, f := u.findChat(onWhatsApp + ":" + b.Number)
	if f != nil {
		return nil
	}
	var echoes []question
	for _, q := range c.questions {
		if len(q.buttons) > 1 {
			echoes = append(echoes, q)
		}
	}
	return echoes
}

// findSender returns the user who sent the text of the link to the business; the owner of the number if no user did.
func (a *assault) findSender(owner *user) *user {
	for _, u := range a.in.phones.users {
		c, f := u.findChat(onWhatsApp + ":" + a.chat.business.Number)
		if f == nil && slices.ContainsFunc(c.Lines, func(l *line) bool { return l.From == fromUser && l.Attack == "" && l.Text == a.text }) {
			return u
		}
	}
	return owner
}

// newEchoTap returns the tap of the sender of the code on the button that confirms.
func (a *assault) newEchoTap(e *echo, q question) waValue {
	return e.sender.newTapValue(a.chat.business, q.buttons[0], q.id, a.now)
}

// forgeTapOfAnotherRequest taps the newest echo to another number: below that question, and below the right one.
func forgeTapOfAnotherRequest(a *assault, e *echo) ([]waValue, *failure) {
	for _, u := range slices.Backward(a.in.phones.users) {
		if u == e.owner || u == e.sender {
			continue
		}
		if echoes := u.findEchoes(a.chat.business); len(echoes) > 0 {
			other := echoes[len(echoes)-1]
			return []waValue{a.newEchoTap(e, other), a.newEchoTap(e, question{e.id, other.buttons})}, nil
		}
	}
	return nil, noEcho("the business sent no question with two buttons to another number")
}

func forgeTapOfOlderEcho(a *assault, e *echo) ([]waValue, *failure) {
	echoes := e.owner.findEchoes(a.chat.business)
	if len(echoes) < 2 {
		return nil, noEcho("the business sent one question with two buttons to that number, and none before it")
	}
	var taps []waValue
	for _, q := range echoes[:len(echoes)-1] {
		taps = append(taps, a.newEchoTap(e, q))
	}
	return taps, nil
}

// forgeTapsWithChangedToken changes the id in its middle, shortens it and makes it longer. The last character is not changed: not
// every bit of it need count.
func forgeTapsWithChangedToken(a *assault, e *echo) ([]waValue, *failure) {
	id := e.confirmButton().ID
	middle := []byte(id)
	middle[len(id)/2] = otherCharacter(middle[len(id)/2])
	var taps []waValue
	for _, changed := range []string{string(middle), id[:len(id)-len(id)/4-1], id + "0"} {
		button := replyButton{ID: changed, Title: e.confirmButton().Title}
		taps = append(taps, a.newEchoTap(e, question{e.id, []replyButton{button}}))
	}
	return taps, nil
}

// otherCharacter returns another letter, or another digit.
func otherCharacter(c byte) byte {
	switch c {
	case 'a', 'A', '2':
		return c + 1
	}
	switch {
	case c >= '0' && c <= '9':
		return '2'
	case c >= 'A' && c <= 'Z':
		return 'A'
	default:
		return 'a'
	}
}

// forgeTapAsStatus has the id come back as the data of the echo, and as the id of a message.
func forgeTapAsStatus(a *assault, e *echo) ([]waValue, *failure) {
	b, contact := a.chat.business, e.sender.newContact(a.chat.business)
	contact.WaID = e.owner.WhatsAppID
	var values []waValue
	for _, st := range []waStatus{{ID: e.id, Status: "delivered", Pricing: b.newPricing()}, {ID: e.confirmButton().ID, Status: "read"}} {
		st.Timestamp, st.RecipientID, st.RecipientUserID = unixTime(a.now), e.owner.WhatsAppID, contact.UserID
		st.Opaque = e.confirmButton().ID
		v := b.newValue()
		v.Contacts, v.Statuses = []waContact{contact}, []waStatus{st}
		values = append(values, v)
	}
	return values, nil
}

func forgeUnsignedTap(a *assault) ([]job, *failure) {
	e, f := a.findEcho()
	if f != nil {
		return nil, f
	}
	return []job{newMetaJob(a.chat.business, encodeEscaped(newEnvelope(a.newEchoTap(e, e.question))), "")}, nil
}

// replayEchoTap posts the last tap of the sender of the code again. After it verified, or after the request expired, it is nothing new.
func replayEchoTap(a *assault) ([]job, *failure) {
	owner, f := a.in.phones.findUser(a.victim)
	if f != nil {
		return nil, f
	}
	b := a.chat.business
	body := b.taps[a.findSender(owner).ID]
	if body == nil {
		return nil, &failure{http.StatusConflict, "nothing_captured", "", "no tap of the user who sent the code was taken yet"}
	}
	return append(genuinelySigned(b, body), genuinelySigned(b, body)...), nil
}
