package whatsapp

import (
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// ExpectedText returns the text that the user of a request is to send. It says who asks and what sending it means, because a link
// can be passed on: the text is all that its receiver sees before tapping send.
func ExpectedText(s *settings.Settings, r *verification.Request, code verification.Code) string {
	return texts.FillPrepared(s.TextsIn(r.Locale).Prepared, s.DisplayNameOf(r), code.Grouped())
}

// preparedTexts returns every text that counts as the prepared one: in the language of the request, then in all others of the
// project, and as they were before a change of the project.
func preparedTexts(s *settings.Settings, r *verification.Request, code verification.Code, now time.Time) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(ExpectedText(s, r, code)) {
			return
		}
		name, grouped := s.DisplayNameOf(r), code.Grouped()
		for text := range s.PreparedTexts(now) {
			if !yield(texts.FillPrepared(text, name, grouped)) {
				return
			}
		}
	}
}

// Link returns the click-to-chat link to a business number in E.164, with text as the draft of the message.
//
// wa.me takes the number as bare digits, and percent-encoding with %20: a plus would reach the chat as a plus
// (WhatsApp, "How to use click to chat").
func Link(businessNumber, text string) string {
	query := strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	return "https://wa.me/" + strings.TrimPrefix(businessNumber, "+") + "?text=" + query
}
