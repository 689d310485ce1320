package whatsapp

import (
	"maps"
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// contactOf returns the answer to a prompt, with changes to the contact and to the message.
func contactOf(card, more object) object {
	contact := object{"origin": "contact_request", "phones": []any{object{"phone": "+1 650-555-1234", "wa_id": user}}}
	maps.Copy(contact, card)
	m := messageOf("contacts", []any{contact}, object{"from": nil, "from_user_id": hiddenUser, "timestamp": "1795168860"})
	maps.Copy(m, more)
	return m
}

// hidden returns a message with a code from a sender without a number.
func hidden(code, userID string) object {
	return textOf(code, object{"from": nil, "from_user_id": userID})
}

// TestHook_sharedContacts tries contacts that must not verify, after a prompt was sent to hiddenUser.
func TestHook_sharedContacts(t *testing.T) {
	phones := func(phones ...any) object { return object{"phones": phones} }
	waID := func(id any) object { return phones(object{"wa_id": id}) }
	two := contactOf(nil, nil)["contacts"].([]any)
	for name, c := range map[string]struct {
		m    object
		want messenger.Outcome
	}{
		"the answer":                      {contactOf(nil, nil), messenger.OutcomeVerified},
		"origin in the message":           {contactOf(object{"origin": nil}, object{"origin": "contact_request"}), messenger.OutcomeVerified},
		"origin in both":                  {contactOf(nil, object{"origin": "contact_request"}), messenger.OutcomeVerified},
		"origin other":                    {contactOf(object{"origin": "other"}, nil), messenger.OutcomeContactRefused},
		"origin other in the message":     {contactOf(nil, object{"origin": "other"}), messenger.OutcomeContactRefused},
		"origin other in the contact":     {contactOf(object{"origin": "other"}, object{"origin": "contact_request"}), messenger.OutcomeContactRefused},
		"no origin":                       {contactOf(object{"origin": nil}, nil), messenger.OutcomeContactRefused},
		"origin of both kinds":            {contactOf(object{"origin": "contact_request/other"}, nil), messenger.OutcomeContactRefused},
		"origin in capitals":              {contactOf(object{"origin": "CONTACT_REQUEST"}, nil), messenger.OutcomeContactRefused},
		"another user's":                  {contactOf(nil, object{"from_user_id": "US.99999999999999999999"}), messenger.OutcomeContactRefused},
		"another user's number":           {contactOf(waID("16505550000"), nil), messenger.OutcomeWrongNumber},
		"no user id":                      {contactOf(nil, object{"from_user_id": nil}), messenger.OutcomeNoSender},
		"a number instead of the user id": {contactOf(nil, object{"from_user_id": nil, "from": user}), messenger.OutcomeContactRefused},
		"the sender's number is another":  {contactOf(nil, object{"from": "16505550000"}), messenger.OutcomeContactRefused},
		"the sender's number is the same": {contactOf(nil, object{"from": user}), messenger.OutcomeVerified},
		"two contacts":                    {contactOf(nil, object{"contacts": append(two, two...)}), messenger.OutcomeContactRefused},
		"no contact":                      {contactOf(nil, object{"contacts": []any{}}), messenger.OutcomeContactRefused},
		"contacts are none":               {contactOf(nil, object{"contacts": "x"}), messenger.OutcomeContactRefused},
		"two numbers":                     {contactOf(phones(object{"wa_id": user}, object{"wa_id": "16505550000"}), nil), messenger.OutcomeContactRefused},
		"a number twice":                  {contactOf(phones(object{"wa_id": user}, object{"wa_id": user}), nil), messenger.OutcomeContactRefused},
		"no number":                       {contactOf(phones(), nil), messenger.OutcomeContactRefused},
		"a number without wa_id":          {contactOf(phones(object{"phone": "+" + user}), nil), messenger.OutcomeContactRefused},
		"wa_id with plus":                 {contactOf(waID("+"+user), nil), messenger.OutcomeContactRefused},
		"wa_id is a user id":              {contactOf(waID(hiddenUser), nil), messenger.OutcomeContactRefused},
		"wa_id is anonymous":              {contactOf(waID("88812345678"), nil), messenger.OutcomeContactRefused},
		"wa_id is a number":               {contactOf(waID(16505551234), nil), messenger.OutcomeContactRefused},
		"forwarded":                       {contactOf(nil, object{"context": object{"forwarded": true}}), messenger.OutcomeForwarded},
		"in a group":                      {contactOf(nil, object{"group_id": "1"}), messenger.OutcomeNotPrivate},
		"too old":                         {contactOf(nil, object{"timestamp": strconv.FormatInt(started.Add(-time.Hour).Unix(), 10)}), messenger.OutcomeTooLate},
		"without a time":                  {contactOf(nil, object{"timestamp": nil}), messenger.OutcomeNoTime},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.acceptContacts()
			made := f.request("first", user, verification.WhatsApp)
			f.clock.SetTime(started.Add(time.Minute))
			f.Expect(f.post(webhookOf(hidden(firstCode, hiddenUser))).Code).To(Equal(http.StatusOK))
			f.Expect(f.post(webhookOf(c.m)).Code).To(Equal(http.StatusOK))
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNeedContact: 1, c.want: 1}))
			state := f.state(made.Request.ID)
			f.expectVerified(state, c.want == messenger.OutcomeVerified)
			if c.want == messenger.OutcomeVerified {
				f.Expect(state.Assurance).To(Equal(verification.AssuranceSharedContact))
			}
		})
	}
}

// TestHook_contactWithoutPrompt has a contact that was not asked for, whatever its origin is.
func TestHook_contactWithoutPrompt(t *testing.T) {
	f := newFixture(t)
	f.acceptContacts()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(webhookOf(contactOf(nil, nil))).Code).To(Equal(http.StatusOK))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeContactRefused: 1}))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
}

// TestHook_contactNoLongerTaken has the answer to a prompt come after the project stopped taking contacts.
func TestHook_contactNoLongerTaken(t *testing.T) {
	f := newFixture(t)
	f.acceptContacts()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(webhookOf(hidden(firstCode, hiddenUser))).Code).To(Equal(http.StatusOK))
	f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = settings.HiddenRefused })
	f.Expect(f.post(webhookOf(contactOf(nil, nil))).Code).To(Equal(http.StatusOK))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNeedContact: 1, messenger.OutcomeContactRefused: 1}))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
}

// TestHook_codeAndContactInOneBatch has both in one webhook: a sender's messages keep their order.
func TestHook_codeAndContactInOneBatch(t *testing.T) {
	f := newFixture(t)
	f.acceptContacts()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(webhookOf(hidden(firstCode, hiddenUser), contactOf(nil, nil))).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Verified))
}

// TestHook_latestCodeWins has one user send two codes and then share the contact, at another replica.
func TestHook_latestCodeWins(t *testing.T) {
	f := newFixture(t)
	f.acceptContacts()
	first, second := f.request("first", user, verification.WhatsApp), f.request("second", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(webhookOf(hidden(first.Code.Grouped(), hiddenUser))).Code).To(Equal(http.StatusOK))
	f.Expect(f.post(webhookOf(hidden(second.Code.Grouped(), hiddenUser))).Code).To(Equal(http.StatusOK))
	other := f.failing(func(int64, string) error { return nil })
	body := webhookOf(contactOf(nil, nil))
	f.Expect(f.postTo(other, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(first.Request.ID).Phase).To(Equal(verification.Pending))
	f.Expect(f.state(second.Request.ID).Phase).To(Equal(verification.Verified))
}

// TestHook_promptFails has Meta refuse the prompt: its redelivery of the message is what asks the user again.
func TestHook_promptFails(t *testing.T) {
	f := newFixture(t)
	f.acceptContacts()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	body := webhookOf(hidden(firstCode, hiddenUser))
	f.graph.answers(http.StatusInternalServerError, []byte(`{}`))
	f.Expect(f.post(body).Code).To(Equal(http.StatusServiceUnavailable))
	f.Expect(f.state(made.Request.ID).Contacts).To(HaveLen(1), "bound all the same")
	f.graph.answers(http.StatusOK, golden(t, "answers/message_user_id"))
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	f.Expect(f.graph.all()).To(HaveLen(2))
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	f.Expect(f.graph.all()).To(HaveLen(2), "a copy right after it asks no second time")
	f.clock.SetTime(started.Add(2 * time.Minute))
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	f.Expect(f.graph.all()).To(HaveLen(3), "a later one does")

	f.clock.SetTime(made.Request.ExpiresAt)
	f.graph.answers(http.StatusInternalServerError, []byte(`{}`))
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK), "it ends with the request")
}

// TestHook_contactAcrossRotation has the app secret replaced between the code and the contact.
func TestHook_contactAcrossRotation(t *testing.T) {
	const next = "d4e5f6canarynew"
	f := newFixture(t)
	f.acceptContacts()
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(webhookOf(hidden(firstCode, hiddenUser))).Code).To(Equal(http.StatusOK))
	f.settings.WhatsApp.AppSecret = rotated(t, appSecret, next)
	body := webhookOf(contactOf(nil, nil))
	f.Expect(f.postTo(f.hook, body, sign(body, next)).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Verified))
}

// TestBindings_differ has bindings depend on the account, the user and the secret.
func TestBindings_differ(t *testing.T) {
	f := newFixture(t)
	account := *f.settings.WhatsApp
	seen := map[string]bool{senderBindings(&account, hiddenUser, started)[0]: true}
	seen[senderBindings(&account, "US.1", started)[0]] = true
	account.PhoneNumberID = "1"
	seen[senderBindings(&account, hiddenUser, started)[0]] = true
	account.AppSecret = rotated(t, "other", "another")
	seen[senderBindings(&account, hiddenUser, started)[0]] = true
	f.Expect(seen).To(HaveLen(4))
}
