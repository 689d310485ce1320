package texts

import (
	"slices"
	"strings"
)

// SessionMessage is what the prover of a request reads: who asks, and the code that confirms it. What is empty is left out with its line.
type SessionMessage struct {
	Name, Purpose, Browser string
	// Digits are what the user types, Link is what the user may open instead.
	Digits, Link string
}

// FillSession returns the message in the language of the texts. Its values are not searched for places.
func (t *Texts) FillSession(m SessionMessage) string {
	lines := t.Session
	if m.Purpose != "" {
		lines += "\n" + t.SessionPurpose
	}
	if m.Browser != "" {
		lines += "\n" + t.SessionBrowser
	}
	lines += "\n\n" + t.SessionCode
	if m.Link != "" {
		lines += "\n\n" + t.SessionLink
	}
	return strings.NewReplacer(
		"{name}", m.Name, "{purpose}", m.Purpose, "{browser}", m.Browser, "{digits}", m.Digits, "{link}", m.Link, "{notMe}", t.ButtonNotMe,
	).Replace(lines)
}

// NotMeLabels returns the titles of the button that declines in all languages, each once. The caller must not change them.
func (s *Set) NotMeLabels() []string { return s.notMe }

// appendNew appends a text to a list that does not hold it.
func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
