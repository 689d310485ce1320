package verification_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestSessionCodes_dependOnAllThatTheyBelongTo(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	initiated, _ := w.startSession()
	r := initiated.Request
	usual := verification.NewCodeSpace(projectName).SessionCodes(sessionSecret, &r)
	g.Expect(usual.Digits.Reveal()).To(MatchRegexp(`^[0-9]{6}$`))
	g.Expect(usual.Return.Reveal()).To(MatchRegexp(`^[A-Za-z0-9_-]{22}$`))
	g.Expect(fmt.Sprintf("%v %+v %#v", usual, usual, usual)).NotTo(SatisfyAny(
		ContainSubstring(usual.Digits.Reveal()), ContainSubstring(usual.Return.Reveal())))
	again, other := r, r
	again.CreatedAt, other.ID = r.CreatedAt.Add(time.Microsecond), "vr"+strings.Repeat("b", 24)
	for name, codes := range map[string]verification.SessionCodes{
		"secret":  verification.NewCodeSpace(projectName).SessionCodes(bytes.ToUpper(sessionSecret), &r),
		"project": verification.NewCodeSpace("shop/other").SessionCodes(sessionSecret, &r),
		"id":      verification.NewCodeSpace(projectName).SessionCodes(sessionSecret, &other),
		"time":    verification.NewCodeSpace(projectName).SessionCodes(sessionSecret, &again),
	} {
		g.Expect(codes.Return.Reveal()).NotTo(Equal(usual.Return.Reveal()), name)
		g.Expect(codes.Digits.Reveal()).NotTo(Equal(usual.Digits.Reveal()), name)
	}
}

func TestParseSessionCode_sixOrEight(t *testing.T) {
	g := NewWithT(t)
	for text, want := range map[string]string{
		"123456": "123456", "123 456": "123456", "\t123\n456": "123456", "12-34-56": "123456", "١٢٣٤٥٦": "123456", "१२३४५६": "123456",
		"１２３４５６": "123456", "AAAAAAAAAAAAAAAAAAAAAA": "AAAAAAAAAAAAAAAAAAAAAA",
		"12345678": "12345678", " 1234 5678\n": "12345678", "12-34-56-78": "12345678", "١٢٣٤٥٦٧٨": "12345678", "१२३४ ५६७८": "12345678",
	} {
		code, ok := verification.ParseSessionCode(text)
		g.Expect(ok).To(BeTrue(), text)
		g.Expect(code.Reveal()).To(Equal(want))
		g.Expect(fmt.Sprint(code)).NotTo(ContainSubstring(want))
	}
	for _, text := range []string{
		"", "12345", "1234567", "123 45 67", "١٢٣٤٥٦٧", "123456789", "1234567a", "1234567 8 9", "12345a", "123456 x", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAAAAA",
		"AAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAA\n", "AAAAAAAAAAA\r\nAAAAAAAAAAA", "+123456", "\x00123456", strings.Repeat("1", 10_000),
	} {
		_, ok := verification.ParseSessionCode(text)
		g.Expect(ok).To(BeFalse(), text)
	}
}

// TestDelivered_hasAPurposeOfItsOwn: eight digits that depend on all that they belong to, and are none of the chat's.
func TestDelivered_hasAPurposeOfItsOwn(t *testing.T) {
	w := newWorld(t)
	made, _ := w.startCode()
	r, space := made.Request, verification.NewCodeSpace(projectName)
	usual := space.DeliveredCode(waSecret, &r)
	w.Expect(usual.Reveal()).To(MatchRegexp(`^[0-9]{8}$`))
	w.Expect(fmt.Sprintf("%v %+v %#v", usual, usual, usual)).NotTo(ContainSubstring(usual.Reveal()))
	six := space.SessionCodes(waSecret, &r).Digits.Reveal()
	w.Expect(usual.Reveal()).NotTo(Or(HavePrefix(six), HaveSuffix(six)), "who has one cannot make the other")
	byTelegram := r
	byTelegram.Method = verification.Telegram
	telegrams := space.DeliveredCode(waSecret, &byTelegram).Reveal()
	w.Expect(telegrams).To(MatchRegexp(`^[0-9]{8}$`))
	w.Expect(telegrams).NotTo(Or(Equal(usual.Reveal()), HavePrefix(six), HaveSuffix(six)), "the same secret makes three codes")
	again, other := r, r
	again.CreatedAt, other.ID = r.CreatedAt.Add(time.Microsecond), "vr"+strings.Repeat("b", 24)
	for name, digits := range map[string]string{
		"secret":  space.DeliveredCode(botSecret, &r).Reveal(),
		"project": verification.NewCodeSpace("shop/other").DeliveredCode(waSecret, &r).Reveal(),
		"id":      space.DeliveredCode(waSecret, &other).Reveal(),
		"time":    space.DeliveredCode(waSecret, &again).Reveal(),
	} {
		w.Expect(digits).NotTo(Equal(usual.Reveal()), name)
	}
}

func TestBrowserName(t *testing.T) {
	g := NewWithT(t)
	g.Expect(verification.BrowserName("CHROME/WINDOWS")).To(Equal("Chrome, Windows"))
	g.Expect(verification.Browsers()).To(HaveLen(7 * 6))
	for _, browser := range verification.Browsers() {
		g.Expect(verification.BrowserName(browser)).NotTo(BeEmpty())
	}
	for _, text := range []string{"", "CHROME", "/", "CHROME/", "chrome/windows", "CHROME/WINDOWS/X", "CHROME/WINDOWS ", "Call +49 now"} {
		g.Expect(verification.BrowserName(text)).To(BeEmpty(), text)
	}
}
