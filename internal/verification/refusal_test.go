package verification

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// refusedAt is when the messages of these tests are sent and come, a minute after their request was made.
var refusedAt = time.Date(2026, 11, 20, 10, 1, 0, 0, time.UTC)

// newRefused returns a pending request, changed.
func newRefused(t *testing.T, change func(*Request)) Request {
	t.Helper()
	claimed, err := phone.FromE164("+4915112345678")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	r := Request{
		Phone: claimed, Method: WhatsApp, Phase: Pending, CreatedAt: refusedAt.Add(-time.Minute), ExpiresAt: refusedAt.Add(9 * time.Minute),
	}
	if change != nil {
		change(&r)
	}
	return r
}

// asked returns a change by which senders were asked, half a minute before.
func asked(contacts ...Contact) func(*Request) {
	return func(r *Request) {
		for _, c := range contacts {
			c.BoundAt = refusedAt.Add(-30 * time.Second)
			r.Contacts = append(r.Contacts, c)
		}
	}
}

// alsoHinted returns a change that follows another one.
func alsoHinted(change func(*Request), kinds ...HintKind) func(*Request) {
	return func(r *Request) {
		change(r)
		for _, kind := range kinds {
			r.Hints = append(r.Hints, Hint{Kind: kind, At: refusedAt})
		}
	}
}

func unchanged(*Request) {}

// atItsEnds are requests that no refusal says anything about.
var atItsEnds = map[string]func(*Request){
	"verified":               func(r *Request) { r.Phase = Verified },
	"expired":                func(r *Request) { r.Phase = Expired },
	"past its end":           func(r *Request) { r.ExpiresAt = refusedAt },
	"proven":                 func(r *Request) { r.Terms.Level, r.ProvenAt = LevelSession, refusedAt },
	"of another messenger":   func(r *Request) { r.Method = "SIGNAL" },
	"made after it was sent": func(r *Request) { r.CreatedAt = refusedAt.Add(time.Hour); r.ExpiresAt = refusedAt.Add(2 * time.Hour) },
}

func TestHintOfText(t *testing.T) {
	share, confirm, echo := Contact{Binding: "s"}, Contact{Binding: "c", Kind: ContactConfirm}, Contact{Binding: "e", Kind: ContactEcho}
	const own, other, hidden = "+4915112345678", "+4915198765432", ""
	for name, c := range map[string]struct {
		request func(*Request)
		from    string
		want    HintKind
	}{
		"from the claimed number":               {unchanged, own, HintTextRefused},
		"from a hidden number":                  {unchanged, hidden, HintTextRefused},
		"from another number":                   {unchanged, other, HintOtherNumber},
		"after another number":                  {alsoHinted(unchanged, HintOtherNumber), own, HintTextRefused},
		"the right one was asked to confirm":    {asked(confirm), own, ""},
		"it was, and a hidden number":           {asked(confirm), hidden, ""},
		"it was, and another number":            {asked(confirm), other, ""},
		"it was, and the question never came":   {alsoHinted(asked(confirm), HintTextChanged, HintNoQuestion), own, HintTextRefused},
		"another sender is to share a contact":  {asked(share), own, HintTextRefused},
		"a hidden sender is to share a contact": {asked(share), hidden, ""},
		"that is so, and another number":        {asked(share), other, ""},
		"an echo is awaited":                    {asked(echo), hidden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, r, e := NewWithT(t), newRefused(t, c.request), Evidence{Method: WhatsApp, SentAt: refusedAt}
			if c.from != "" {
				number, err := phone.FromE164(c.from)
				g.Expect(err).NotTo(HaveOccurred())
				e.Sender = number
			}
			g.Expect(r.hintOfText(e, HintTextRefused, refusedAt)).To(Equal(c.want))
		})
	}
	for name, change := range atItsEnds {
		r := newRefused(t, change)
		NewWithT(t).Expect(r.hintOfText(Evidence{Method: WhatsApp, Sender: r.Phone, SentAt: refusedAt}, HintTextRefused, refusedAt)).To(BeEmpty(), name)
	}
}

func TestHintOfContact(t *testing.T) {
	own, other := asked(Contact{Binding: "own"}), asked(Contact{Binding: "other"})
	for name, c := range map[string]struct {
		request func(*Request)
		sent    time.Duration
		why     HintKind
		want    HintKind
	}{
		"after it was asked for":         {own, 0, HintContactRefused, HintContactRefused},
		"in the second of the question":  {own, -30 * time.Second, HintContactRefused, HintContactRefused},
		"before it was asked for":        {own, -31 * time.Second, HintContactRefused, ""},
		"of a sender who was not asked":  {unchanged, 0, HintContactRefused, ""},
		"another sender was asked":       {other, 0, HintContactRefused, ""},
		"anonymous":                      {own, 0, HintNumberAnonymous, HintNumberAnonymous},
		"anonymous, after another one's": {alsoHinted(own, HintContactRefused), 0, HintNumberAnonymous, HintNumberAnonymous},
		"another one's, after anonymous": {alsoHinted(own, HintNumberAnonymous), 0, HintContactRefused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, e := newRefused(t, c.request), Evidence{Method: WhatsApp, SentAt: refusedAt.Add(c.sent)}
			NewWithT(t).Expect(r.hintOfContact(e, "own", c.why, refusedAt)).To(Equal(c.want))
		})
	}
	for name, change := range atItsEnds {
		r := newRefused(t, own)
		change(&r)
		NewWithT(t).Expect(r.hintOfContact(Evidence{Method: WhatsApp, SentAt: refusedAt}, "own", HintContactRefused, refusedAt)).To(BeEmpty(), name)
	}
}

func TestHintOfLostQuestion(t *testing.T) {
	share, confirm, other := Contact{Binding: "own"}, Contact{Binding: "own", Kind: ContactConfirm}, Contact{Binding: "other"}
	for name, c := range map[string]struct {
		request func(*Request)
		want    HintKind
	}{
		"to confirm": {asked(confirm), HintNoQuestion},
		"to confirm, and another was asked since": {asked(confirm, other), HintNoQuestion},
		"for a contact":                           {asked(share), HintNoQuestion},
		"for a contact, after another was asked":  {asked(other, share), HintNoQuestion},
		"for a contact, before another was asked": {asked(share, other), ""},
		"of an echo":                              {asked(Contact{Binding: "own", Kind: ContactEcho}), ""},
		"to another sender":                       {asked(other), ""},
		"to none":                                 {unchanged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRefused(t, c.request)
			NewWithT(t).Expect(r.hintOfLostQuestion("own", refusedAt)).To(Equal(c.want))
		})
	}
	for _, name := range []string{"verified", "expired", "past its end", "proven"} {
		r := newRefused(t, asked(confirm))
		atItsEnds[name](&r)
		NewWithT(t).Expect(r.hintOfLostQuestion("own", refusedAt)).To(BeEmpty(), name)
	}
}
