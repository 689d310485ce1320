package texts

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// longestSession has the longest of everything but the link, which is left out where it does not fit.
var longestSession = SessionMessage{
	Name: strings.Repeat("n", 253), Purpose: strings.Repeat("p", 64), Browser: "Samsung Internet, ChromeOS", Digits: "123456",
}

// TestFillSession_everyLanguage: each language says all of it, in the room that WhatsApp has for it.
func TestFillSession_everyLanguage(t *testing.T) {
	for _, language := range Languages() {
		g, own := NewWithT(t), builtIn[language]
		for part, places := range map[string][]string{
			own.Session: {"{name}"}, own.SessionPurpose: {"{purpose}"}, own.SessionBrowser: {"{browser}"},
			own.SessionCode: {"{digits}", "{name}", "{notMe}"}, own.SessionLink: {"{link}"},
		} {
			for _, place := range places {
				g.Expect(strings.Count(part, place)).To(Equal(1), language+" "+place)
				part = strings.Replace(part, place, "", 1)
			}
			g.Expect(part).NotTo(MatchRegexp(`[{}0-9]|http`), language)
		}
		g.Expect(own.SessionLink).To(HaveSuffix("\n{link}"), language+": what stands beside a link may be taken for a part of it")
		own.ButtonNotMe = strings.Repeat("b", 20)
		longest := own.FillSession(longestSession)
		g.Expect(len([]rune(longest))).To(BeNumerically("<=", 1024), language)
		g.Expect(strings.Count(longest, longestSession.Name)).To(Equal(2), language)
		g.Expect(longest).To(And(ContainSubstring("123456"), ContainSubstring(longestSession.Browser), ContainSubstring(own.ButtonNotMe)))
	}
}

func TestFillSession_leavesOutLines(t *testing.T) {
	g, own := NewWithT(t), builtIn["en"]
	m := SessionMessage{Name: "Ada's Books", Digits: "123456"}
	plain := own.FillSession(m)
	g.Expect(plain).To(HavePrefix("Ada's Books asks to confirm this phone number.\n\nCode: 123456\n\nEnter it only where"))
	g.Expect(plain).To(HaveSuffix("If you did not start this, tap “Not me”: that ends it."))
	m.Browser = "Chrome, Windows"
	g.Expect(own.FillSession(m)).To(HavePrefix("Ada's Books asks to confirm this phone number.\nStarted in: Chrome, Windows\n\nCode"))
	m.Purpose = "Sign in"
	g.Expect(own.FillSession(m)).To(HavePrefix("Ada's Books asks to confirm this phone number.\nFor: Sign in\nStarted in: Chrome, Windows\n\nCode"))
	m.Link = "https://verify.example/v/x"
	g.Expect(own.FillSession(m)).To(HaveSuffix("started:\nhttps://verify.example/v/x"))
}

// TestFillSession_searchesNoValue: what a project or a client names is shown as it is.
func TestFillSession_searchesNoValue(t *testing.T) {
	g, own := NewWithT(t), builtIn["en"]
	text := own.FillSession(SessionMessage{Name: "{digits}", Purpose: "{link}", Browser: "{name}", Digits: "123456", Link: "{notMe}"})
	g.Expect(strings.Count(text, "123456")).To(Equal(1))
	g.Expect(text).To(And(HavePrefix("{digits} asks"), ContainSubstring("For: {link}\n"), ContainSubstring("in: {name}\n"), HaveSuffix("\n{notMe}")))
}

// TestNotMeLabels are those of every language, a project's own among them.
func TestNotMeLabels(t *testing.T) {
	g := NewWithT(t)
	s := NewSet(Texts{}, map[string]Texts{"es": {ButtonNotMe: "Fuera"}, "es-MX": {ButtonNotMe: "Fuera"}})
	g.Expect(s.NotMeLabels()).To(ContainElements("Fuera", "Not me", "Nicht ich"))
	g.Expect(s.NotMeLabels()).NotTo(ContainElement(builtIn["es"].ButtonNotMe), "which the project replaced")
	g.Expect(s.NotMeLabels()).To(HaveLen(12), "each once")
	seen := map[string]bool{}
	for _, language := range Languages() {
		seen[strings.ToLower(builtIn[language].ButtonNotMe)] = true
		g.Expect(builtIn[language].ButtonNotMe).NotTo(Equal(builtIn[language].ButtonConfirm))
	}
	g.Expect(seen).To(HaveLen(12))
}
