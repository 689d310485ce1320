package whatsapp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// newStrictIn returns a fixture with a request in a language, a minute later, and its texts.
func newStrictIn(t *testing.T, locale string) (*fixture, verification.Initiated, *texts.Texts) {
	t.Helper()
	f := newFixture(t)
	f.strict()
	number, err := phone.ParseWhatsApp(user)
	f.Expect(err).NotTo(HaveOccurred())
	made, err := f.service.Initiate(t.Context(), verification.Initiation{
		Phone: number, Method: verification.WhatsApp, IdempotencyKey: "first", HasIdempotencyKey: true, TTL: 10 * time.Minute,
		DisplayName: f.settings.DisplayName, ClientData: verification.ClientData{Locale: locale},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.clock.SetTime(started.Add(time.Minute))
	return f, made, texts.BuiltIn().In(locale)
}

// preparedIn returns the prepared text of the fixture's project in a language.
func preparedIn(locale string, code verification.Code) string {
	return texts.FillPrepared(texts.BuiltIn().In(locale).Prepared, "Ada's Books", code.Grouped())
}

// fillName returns a text in the name of the fixture's project.
func fillName(text string) string { return texts.Fill(text, "Ada's Books") }

// TestHook_everyLanguage verifies a request in each language by the sentence of each, and replies in that of the request.
func TestHook_everyLanguage(t *testing.T) {
	for _, locale := range texts.Languages() {
		for _, sent := range texts.Languages() {
			f, made, own := newStrictIn(t, locale)
			f.say(user, preparedIn(sent, made.Code), "1")
			f.expectVerified(f.state(made.Request.ID), true)
			calls := f.sendReplies()
			f.Expect(calls).To(HaveLen(1))
			f.Expect(calls[0].text()).To(Equal(fillName(own.Verified)), "%s, sent in %s", locale, sent)
		}
	}
}

// TestHook_asksInTheLanguage: question, button and what follows are those of the request's language.
func TestHook_asksInTheLanguage(t *testing.T) {
	for _, locale := range texts.Languages() {
		f, made, own := newStrictIn(t, locale)
		f.say(user, firstCode, "1")
		f.say(user, "Parcel "+firstCode, "2")
		f.say("16505550000", firstCode, "3")
		calls := f.sendReplies()
		f.Expect(calls).To(HaveLen(3))
		f.Expect(calls[0].text()).To(Equal(fillName(own.Confirm)))
		f.Expect([]string{calls[1].text(), calls[2].text()}).To(ConsistOf(own.TextChanged, own.WrongNumber))
		var asked outgoing
		f.Expect(json.Unmarshal([]byte(calls[0].Body), &asked)).To(Succeed())
		button := asked.Interactive.Action.Buttons[0].Reply
		f.Expect(button.Title).To(Equal(own.ButtonConfirm))
		f.expectVerified(f.state(made.Request.ID), false)
		f.Expect(f.post(webhookOf(tapOf(button.ID, nil))).Code).To(Equal(http.StatusOK))
		f.expectVerified(f.state(made.Request.ID), true)
		calls = f.sendReplies()
		f.Expect(calls[3].text()).To(Equal(fillName(own.Verified)))
	}
}

// TestHook_guessesNoLanguage: who sends no code of a request gets the project's own text, in the name of the project.
func TestHook_guessesNoLanguage(t *testing.T) {
	f, _, _ := newStrictIn(t, "es")
	f.settings.Texts = texts.NewSet(texts.Texts{Unknown: "{name} knows no such code."}, map[string]texts.Texts{"es": {Unknown: "Desconocido"}})
	f.say("34600000000", "Hola", "1")
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(1))
	f.Expect(calls[0].text()).To(Equal("Ada's Books knows no such code."))
}

// TestHook_formerTexts has spec.texts changed between the link and the message.
func TestHook_formerTexts(t *testing.T) {
	f, made, _ := newStrictIn(t, "es")
	former := preparedIn("es", made.Code)
	f.change(func(s *settings.Settings) {
		s.Texts = texts.NewSet(texts.Texts{}, map[string]texts.Texts{"es": {Prepared: "Soy yo, {name}. Código: {code}", Confirm: "¿Es usted, {name}?"}})
		s.FormerTexts = []settings.FormerTexts{{Texts: texts.BuiltIn(), Until: f.clock.Now().Add(time.Minute)}}
	})
	ended := f.clock.Now().Add(time.Minute)
	f.clock.SetTime(ended)
	f.say(user, former, "1")
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNeedConfirmation: 1}), "as after a restart: the user is asked")
	f.Expect(f.graph.all()[0].text()).To(Equal("¿Es usted, Ada's Books?"))
	f.expectVerified(f.state(made.Request.ID), false)
	f.clock.SetTime(ended.Add(-1))
	f.say(user, former, "2")
	f.expectVerified(f.state(made.Request.ID), true)
}

// TestHook_textOfTheProject verifies by a text that the project wrote, with the name and the code wherever they stand.
func TestHook_textOfTheProject(t *testing.T) {
	for _, prepared := range []string{
		"{code}: soy yo, {name}, y {name} me lo pidió", "मैं {name} को_{code}_भेजता हूँ", "{name}的验证码{code}号", "{name} الرمز \u200e{code}\u200e.",
	} {
		f, made, _ := newStrictIn(t, "nl")
		f.change(func(s *settings.Settings) {
			s.Texts = texts.NewSet(texts.Texts{}, map[string]texts.Texts{"nl": {Prepared: prepared}})
		})
		sent := ExpectedText(f.settings, &made.Request, made.Code)
		f.Expect(strings.Count(sent, made.Code.Grouped())).To(Equal(1))
		f.say(user, sent, "1")
		f.expectVerified(f.state(made.Request.ID), true)
	}
}
