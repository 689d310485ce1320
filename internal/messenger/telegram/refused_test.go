package telegram

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// refusedContacts are those of a user that never count, and what is said to them.
var refusedContacts = map[string]struct {
	old, new string
	came     messenger.Outcome
	hint     verification.HintKind
	said     string
}{
	"of another":              {`"user_id":%d`, `"user_id":43`, messenger.OutcomeContactOfAnother, verification.HintContactRefused, english.ContactRefused},
	"of no user":              {`,"user_id":%d`, ``, messenger.OutcomeContactWithoutUser, verification.HintContactRefused, english.ContactRefused},
	"forwarded":               {`"contact":`, `"forward_origin":{},"contact":`, messenger.OutcomeForwarded, verification.HintContactRefused, english.ContactRefused},
	"anonymous":               {`+4915112345678`, `+88800012345`, messenger.OutcomeAnonymousNumber, verification.HintNumberAnonymous, english.NumberAnonymous},
	"anonymous, with blanks":  {`+4915112345678`, `+888 0123 4567`, messenger.OutcomeAnonymousNumber, verification.HintNumberAnonymous, english.NumberAnonymous},
	"anonymous, with hyphens": {`+4915112345678`, `888-0123-4567`, messenger.OutcomeAnonymousNumber, verification.HintNumberAnonymous, english.NumberAnonymous},
}

// refusedContact returns one of refusedContacts.
func (w *world) refusedContact(name string, id, from int64) []byte {
	w.t.Helper()
	c := refusedContacts[name]
	old := strings.ReplaceAll(c.old, "%d", strconv.FormatInt(from, 10))
	contact := string(w.contactUpdate(id, from, claimed))
	w.Expect(strings.Count(contact, old)).To(Equal(1))
	return []byte(strings.Replace(contact, old, c.new, 1))
}

func (w *world) readHint(id string) verification.HintKind {
	w.t.Helper()
	r, err := w.service.Status(w.t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	return r.HintAt(w.now())
}

// TestRefused_contacts: its sender learns why, from one replica, and not to do the same again. Their own contact goes on to count.
func TestRefused_contacts(t *testing.T) {
	for name, c := range refusedContacts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.initiate("golden").Request.ID
			w.accept(w.update(1, user, "/start "+goldenCode))
			other, secret := w.another(), WebhookSecret([]byte(botToken), projectName)
			refused := w.refusedContact(name, 2, user)
			w.Expect(w.postTo(other, refused, secret).Code).To(Equal(200))
			w.Expect(w.accept(refused)).To(Equal(c.came))
			w.Expect(w.postTo(other, w.refusedContact(name, 3, user), secret).Code).To(Equal(200))
			w.Expect(w.readHint(id)).To(Equal(c.hint))
			w.Expect(w.channel.replies.Len()).To(BeZero())
			w.Expect(other.replies.Len()).To(Equal(1))
			w.channel = other
			w.flush()
			said := w.api.got("sendMessage")
			w.Expect(said).To(HaveLen(2))
			w.Expect(said[1]).To(MatchJSON(fmt.Sprintf(`{"chat_id":%d,"text":%q}`, user, texts.Fill(c.said, "Example Shop"))), "the button stays")

			w.later(5 * time.Second)
			w.Expect(w.postTo(other, w.update(4, user, "/start "+goldenCode), secret).Code).To(Equal(200))
			w.Expect(w.readHint(id)).To(Equal(verification.HintAwaitingContact), "they are asked anew")
			w.flush()
			w.Expect(w.postTo(other, w.refusedContact(name, 5, user), secret).Code).To(Equal(200))
			w.Expect(w.readHint(id)).To(Equal(c.hint))
			w.Expect(other.replies.Len()).To(BeZero(), "one reply for each hint of a request")

			w.Expect(w.postTo(other, w.contactUpdate(6, user, claimed), secret).Code).To(Equal(200))
			w.Expect(w.phase(id)).To(Equal(verification.Verified))
			w.Expect(w.postTo(other, w.refusedContact(name, 7, user), secret).Code).To(Equal(200))
			w.Expect(w.phase(id)).To(Equal(verification.Verified))
		})
	}
}

// TestRefused_contactsOfStrangers leave nothing: they were asked for no contact.
func TestRefused_contactsOfStrangers(t *testing.T) {
	for name, c := range refusedContacts {
		w := newWorld(t)
		id := w.initiate("golden").Request.ID
		w.accept(w.update(1, user, "/start "+goldenCode))
		w.Expect(w.accept(w.refusedContact(name, 2, stranger))).To(Equal(c.came))
		w.Expect(w.readHint(id)).To(Equal(verification.HintAwaitingContact), name)
		w.flush()
		said := w.api.got("sendMessage")
		w.Expect(string(said[len(said)-1])).To(ContainSubstring("does not confirm anything"), "as to any stranger, once a day")
	}
}

// TestRefused_badNumber: their own contact with what is no number is not called another's.
func TestRefused_badNumber(t *testing.T) {
	for _, number := range []string{"none", "+49 151 12345678", ""} {
		w := newWorld(t)
		id := w.initiate("golden").Request.ID
		w.accept(w.update(1, user, "/start "+goldenCode))
		bad := strings.Replace(string(w.contactUpdate(2, user, claimed)), claimed, number, 1)
		w.Expect(w.accept([]byte(bad))).To(Equal(messenger.OutcomeBadNumber))
		w.Expect(w.readHint(id)).To(Equal(verification.HintAwaitingContact))
		w.flush()
		said := w.api.got("sendMessage")
		w.Expect(said).To(HaveLen(2))
		w.Expect(said[1]).To(MatchJSON(fmt.Sprintf(`{"chat_id":%d,"text":%q}`, user, english.TelegramUnknown)), "the button stays")
		w.accept(w.contactUpdate(3, user, claimed))
		w.Expect(w.phase(id)).To(Equal(verification.Verified))
	}
}

func TestRefused_withoutReplies(t *testing.T) {
	w := newWorld(t)
	w.settings.Replies.Send = settings.SendNever
	id := w.initiate("golden").Request.ID
	w.accept(w.update(1, user, "/start "+goldenCode))
	w.accept(w.refusedContact("anonymous", 2, user))
	w.Expect(w.readHint(id)).To(Equal(verification.HintNumberAnonymous))
	w.Expect(w.channel.replies.Len()).To(BeZero())
}

// TestRefused_limit: refused contacts are looked up as rarely as those that may count.
func TestRefused_limit(t *testing.T) {
	w := newWorld(t)
	for i := range int64(3 * messenger.MaxPerSender) {
		w.post(w.refusedContact("of another", i+1, stranger))
	}
	w.Expect(w.outcomes()).To(Equal(map[messenger.Outcome]float64{
		messenger.OutcomeContactOfAnother: messenger.MaxPerSender, messenger.OutcomeLimited: 2 * messenger.MaxPerSender,
	}))
}

// TestRefused_whileTheStoreIsDown: the contact comes again, and is answered then.
func TestRefused_whileTheStoreIsDown(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	w.accept(w.update(1, user, "/start "+goldenCode))
	w.later(time.Second)
	w.backend.Fail(errors.New("down"))
	w.Expect(w.post(w.refusedContact("of another", 2, user)).Code).To(Equal(503))
	w.backend.Fail(nil)
	w.accept(w.refusedContact("of another", 2, user))
	w.Expect(w.readHint(id)).To(Equal(verification.HintContactRefused))
	w.Expect(w.channel.replies.Len()).To(Equal(1))
}
