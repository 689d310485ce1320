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

// withContacts returns a change by which senders were asked, half a minute before.
func withContacts(contacts ...Contact) func(*Request) {
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

func changeNothing(*Request) {}

// atItsEnds are requests that no refusal says anything about.
var atItsEnds = map[string]func(*Request){
	"verified":               func(r *Request) { r.Phase = Verified },
	"expired":                func(r *Request) { r.Phase = Expired },
	"past its end":           func(r *Request) { r.ExpiresAt = refusedAt },
	"proven":                 func(r *Request) { r.Terms.Level, r.ProvenAt = LevelSession, refusedAt },
	"of another messenger":   func(r *Request) { r.Method = "SIGNAL" },
	"made after it was sent": func(r *Request) { r.CreatedAt = refusedAt.Add(time.Hour); r.ExpiresAt = refusedAt.Add(2 * time.Hour) },
}

// lostBefore returns a change that follows another one: a question was lost before it.
func lostBefore(change func(*Request)) func(*Request) {
	return func(r *Request) {
		r.Hints = append(r.Hints, Hint{Kind: HintNoQuestion, At: refusedAt.Add(-45 * time.Second)})
		change(r)
	}
}

func TestHintOfText(t *testing.T) {
	share, confirm, echo := Contact{Binding: "s"}, Contact{Binding: "c", Kind: ContactConfirm}, Contact{Binding: "e", Kind: ContactEcho}
	const own, other, hidden = "+4915112345678", "+4915198765432", ""
	for name, c := range map[string]struct {
		request func(*Request)
		from    string
		binding string
		want    HintKind
	}{
		"from the claimed number":               {changeNothing, own, "", HintTextRefused},
		"from a hidden number":                  {changeNothing, hidden, "s", HintTextRefused},
		"from another number":                   {changeNothing, other, "", HintOtherNumber},
		"after another number":                  {alsoHinted(changeNothing, HintOtherNumber), own, "", HintTextRefused},
		"the right one was asked to confirm":    {withContacts(confirm), own, "", ""},
		"it was, and a hidden number":           {withContacts(confirm), hidden, "s", HintTextRefused},
		"it was, and another number":            {withContacts(confirm), other, "", HintOtherNumber},
		"it was, and the question never came":   {alsoHinted(withContacts(confirm), HintTextChanged, HintNoQuestion), own, "", HintTextRefused},
		"another sender is to share a contact":  {withContacts(share), own, "", HintTextRefused},
		"another hidden sender is":              {withContacts(share), hidden, "another", HintTextRefused},
		"a hidden sender is to share a contact": {withContacts(share), hidden, "s", ""},
		"that is so under an older secret":      {withContacts(Contact{Binding: "older"}), hidden, "s", ""},
		"that is so, and another number":        {withContacts(share), other, "", HintOtherNumber},
		"an earlier question never came":        {lostBefore(withContacts(share)), hidden, "s", ""},
		"an echo is awaited":                    {withContacts(echo), hidden, "e", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := NewWithT(t), newRefused(t, c.request)
			m := Message{Evidence: Evidence{Method: WhatsApp, SentAt: refusedAt}, Binding: c.binding, OlderBindings: []string{"older"}}
			if c.from != "" {
				number, err := phone.FromE164(c.from)
				g.Expect(err).NotTo(HaveOccurred())
				m.Sender = number
			}
			g.Expect(r.hintOfText(m, HintTextRefused, refusedAt)).To(Equal(c.want))
		})
	}
	for name, change := range atItsEnds {
		r := newRefused(t, change)
		NewWithT(t).Expect(r.hintOfText(Message{Evidence: Evidence{Method: WhatsApp, Sender: r.Phone, SentAt: refusedAt}}, HintTextRefused, refusedAt)).To(BeEmpty(), name)
	}
}

func TestHintOfContact(t *testing.T) {
	own, other := withContacts(Contact{Binding: "own"}), withContacts(Contact{Binding: "other"})
	for name, c := range map[string]struct {
		request func(*Request)
		sent    time.Duration
		why     HintKind
		want    HintKind
	}{
		"after it was asked for":                  {own, 0, HintContactRefused, HintContactRefused},
		"in the second of the question":           {own, -30 * time.Second, HintContactRefused, HintContactRefused},
		"before it was asked for":                 {own, -31 * time.Second, HintContactRefused, ""},
		"of a sender who was not asked":           {changeNothing, 0, HintContactRefused, ""},
		"another sender was asked":                {other, 0, HintContactRefused, ""},
		"anonymous":                               {own, 0, HintNumberAnonymous, HintNumberAnonymous},
		"anonymous, after another one's":          {alsoHinted(own, HintContactRefused), 0, HintNumberAnonymous, HintNumberAnonymous},
		"another one's, after anonymous":          {alsoHinted(own, HintNumberAnonymous), 0, HintContactRefused, ""},
		"it, and another account was asked since": {alsoHinted(own, HintNumberAnonymous, HintAwaitingContact), 0, HintContactRefused, HintContactRefused},
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
		"to confirm": {withContacts(confirm), HintNoQuestion},
		"to confirm, and another was asked since": {withContacts(confirm, other), HintNoQuestion},
		"for a contact":                           {withContacts(share), HintNoQuestion},
		"for a contact, after another was asked":  {withContacts(other, share), HintNoQuestion},
		"for a contact, before another was asked": {withContacts(share, other), ""},
		"of an echo":                              {withContacts(Contact{Binding: "own", Kind: ContactEcho}), ""},
		"to another sender":                       {withContacts(other), ""},
		"to none":                                 {changeNothing, ""},
		"asked anew since":                        {func(r *Request) { r.Contacts = []Contact{{Binding: "own", BoundAt: refusedAt.Add(-time.Second)}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRefused(t, c.request)
			NewWithT(t).Expect(r.hintOfLostQuestion(Contact{Binding: "own", BoundAt: refusedAt.Add(-30 * time.Second)}, refusedAt)).To(Equal(c.want))
		})
	}
	for _, name := range []string{"verified", "expired", "past its end", "proven"} {
		r := newRefused(t, withContacts(confirm))
		atItsEnds[name](&r)
		NewWithT(t).Expect(r.hintOfLostQuestion(Contact{Binding: "own", BoundAt: refusedAt.Add(-30 * time.Second)}, refusedAt)).To(BeEmpty(), name)
	}
}

// TestHints_afterTheQuestion: a question that is asked anew, and what keeps it from being answered, replace each other.
func TestHints_afterTheQuestion(t *testing.T) {
	const asked, other = HintAwaitingContact, HintOtherNumber
	for name, c := range map[string]struct {
		came []HintKind
		want []HintKind
	}{
		"asked anew":                      {[]HintKind{asked, HintNumberAnonymous, asked}, []HintKind{HintNumberAnonymous, asked}},
		"lost, and asked anew":            {[]HintKind{asked, HintNoQuestion, asked}, []HintKind{HintNoQuestion, asked}},
		"lost again":                      {[]HintKind{asked, HintNoQuestion, asked, HintNoQuestion}, []HintKind{asked, HintNoQuestion}},
		"refused twice":                   {[]HintKind{asked, HintContactRefused, HintContactRefused}, []HintKind{asked, HintContactRefused}},
		"refused, anonymous, asked anew":  {[]HintKind{asked, HintContactRefused, HintNumberAnonymous, asked, HintContactRefused}, []HintKind{HintNumberAnonymous, asked, HintContactRefused}},
		"then anonymous":                  {[]HintKind{asked, HintNumberAnonymous, asked, HintContactRefused, HintNumberAnonymous}, []HintKind{asked, HintContactRefused, HintNumberAnonymous}},
		"asked twice":                     {[]HintKind{asked, asked}, []HintKind{asked}},
		"another number is no answer":     {[]HintKind{asked, other, asked, other}, []HintKind{asked, other}},
		"a confirmation is not asked for": {[]HintKind{HintTextChanged, HintNoQuestion, HintTextChanged}, []HintKind{HintTextChanged, HintNoQuestion}},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := NewWithT(t), newRefused(t, nil)
			for i, kind := range c.came {
				r.addHint(kind, refusedAt.Add(time.Duration(i)*time.Second))
			}
			var kinds []HintKind
			for _, h := range r.Hints {
				kinds = append(kinds, h.Kind)
			}
			g.Expect(kinds).To(Equal(c.want))
			g.Expect(r.HintAt(refusedAt.Add(time.Minute))).To(Equal(c.want[len(c.want)-1]))
		})
	}
}
