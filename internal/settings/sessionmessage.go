package settings

import (
	"time"
	"unicode/utf8"

	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// SessionMessage returns the text that gives the session codes of a proven request to its prover; false if the account's secret is gone.
// page is the URL of the request's page for the chat, empty if it has none. The text has at most that many characters: a return link that
// does not fit is left out, because the digits will do.
func (s *Settings) SessionMessage(r *verification.Request, page string, characters int, now time.Time) (string, bool) {
	codes, ok := s.SessionCodes(r, now)
	if !ok {
		return "", false
	}
	t := s.TextsIn(r.Locale)
	m := texts.SessionMessage{
		Name: s.DisplayNameOf(r), Purpose: s.PurposeOf(r), Browser: verification.BrowserName(r.Terms.Browser), Digits: codes.Digits.Reveal(),
	}
	if page != "" && s.Page.AllowsReturn(r.ReturnURL) {
		m.Link = page + "/return?code=" + codes.Return.Reveal()
	}
	text := t.FillSession(m)
	if utf8.RuneCountInString(text) > characters {
		m.Link = ""
		text = t.FillSession(m)
	}
	return text, true
}
