package whatsapp

import (
	"net/url"
	"strings"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// ExpectedText returns the text that the user is to send. It says who asks and what sending it means, because a link
// can be passed on: the text is all that its receiver sees before tapping send.
func ExpectedText(displayName string, code verification.Code) string {
	return "I confirm my phone number to " + displayName +
		". I asked for this myself and send it to nobody else. Code: " + code.Grouped()
}

// Link returns the click-to-chat link to a business number in E.164, with text as the draft of the message.
//
// wa.me takes the number as bare digits, and percent-encoding with %20: a plus would reach the chat as a plus
// (WhatsApp, "How to use click to chat").
func Link(businessNumber, text string) string {
	query := strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	return "https://wa.me/" + strings.TrimPrefix(businessNumber, "+") + "?text=" + query
}
