package app

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/verification/codesender"
)

// openCodePage starts a verification whose code is sent to the number, and opens its page.
func (b *tab) openCodePage(s *sessionSite) *sessionUser {
	b.t.Helper()
	s.service.Sender = codesender.New(1)
	return b.openSessionPage(s, "", func(in *verification.Initiation) { in.Terms.Deliver = verification.DeliverCode })
}

// readCode returns the digits that the phone shows, with a blank in their middle.
func (u *sessionUser) readCode() string {
	u.t.Helper()
	r := u.readStored()
	code, found := u.site.settings.DeliveredCode(&r, time.Now())
	u.Expect(found).To(BeTrue())
	return code.Reveal()[:4] + " " + code.Reveal()[4:]
}

// isTextOffered is JavaScript that reports whether the way to a message is shown.
const isTextOffered = `document.getElementById("text").checkVisibility({visibilityProperty: true})`

// TestUserCode_isTypedAtADesktop: the sentence appears by itself, twenty seconds after the request began; what is typed stays when the page
// moves on; and the digits are taken with a blank.
func TestUserCode_isTypedAtADesktop(t *testing.T) {
	t.Parallel()
	skipping := &skippingClock{Clock: clock.RealClock{}}
	s := startSessionSite(t, skipping)
	b := openTab(t)
	u := b.openCodePage(s)
	u.AwaitText("h1", Equal("Enter the code"))
	u.Expect(u.Eval(isTextOffered)).To(BeFalse())
	skipping.ahead.Store(int64(18 * time.Second))
	u.Reload()
	u.Await(isTextOffered, BeTrue())
	u.expectTitle("Enter the code")
	u.Expect(u.TakeProblems()).To(BeEmpty())
	code := u.readCode()
	u.TabTo("#digits")
	u.Type(code[:3])
	_, err := s.store.Update(t.Context(), u.id, func(r *verification.Request, now time.Time) error {
		r.Hints = append(r.Hints, verification.Hint{Kind: verification.HintOtherNumber, At: now})
		return nil
	})
	u.Expect(err).NotTo(HaveOccurred())
	u.expectTitle("That was another number")
	u.AwaitFocus("#digits")
	u.AwaitValue("#digits", Equal(code[:3]))
	u.Type(code[3:])
	u.PressKey("Enter")
	u.expectBack()
	u.Expect(u.readStored().Via).To(Equal(verification.ViaCode))
}
