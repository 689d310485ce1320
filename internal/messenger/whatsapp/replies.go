package whatsapp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The built-in texts. None holds a number or a code; none asks for anything that a fraudster could use. Those with a place
// in them name who asks, because a link can be forwarded.
const (
	textVerified     = "Your phone number is confirmed to %[1]s. You can return to the app or website now.\n\nIf you did not start this yourself, tell %[1]s at once: someone else may be using your number there."
	textConfirm      = "You are about to confirm your phone number to %[1]s.\n\nIf you have just started this yourself, tap the button below. If someone else sent you here or gave you the message to send, do nothing: nothing is confirmed without the button."
	textTextChanged  = "Nothing was confirmed, because this is not the message that was prepared for you. If you started this yourself, return to the app or website, open the link again and send the message as it is."
	textTapRefused   = "Nothing was confirmed, because this button is no longer valid. If you started this yourself, return to the app or website, open the link again and send the message as it is."
	textEcho         = "%[1]s asks to confirm that this phone number is yours.\n\nIf you have just started this yourself, tap Confirm. If not, tap Not me."
	textDeclined     = "Nothing was confirmed. You do not need to do anything else."
	buttonConfirm    = "Confirm"
	buttonNotMe      = "Not me"
	textWrongNumber  = "We could not confirm this phone number: the code belongs to a different one. Please send it from the phone number that you entered."
	textExpired      = "This code is no longer valid. Please return to the app or website and get a new one."
	textUnknown      = "We found no valid code in your message. This chat only confirms phone numbers, and messages here are not read. If you did not ask to confirm your phone number, you can ignore this."
	textShareContact = "%[1]s asks to confirm your phone number, which WhatsApp hides from us.\n\nIf you have just started this yourself, share it with the button below. If someone else sent you here, do nothing."
	textNumberHidden = "WhatsApp hides your phone number from us because you use a username, so we cannot confirm it here. Please return to the app or website and choose another way."
)

// texts are the texts of one project.
type texts struct{ settings.Replies }

func (d *delivery) projectTexts() texts { return texts{d.settings.Replies} }

func (t texts) unknownText() string { return cmp.Or(t.Unknown, textUnknown) }

// shareContact returns what asks for a contact in the name of a project.
func (t texts) shareContact(name string) string {
	return cmp.Or(t.ShareContact, fmt.Sprintf(textShareContact, name))
}

// outcomeText returns the reply to an outcome in the name of a project.
func (t texts) outcomeText(o messenger.Outcome, name string) string {
	switch o {
	case messenger.OutcomeVerified:
		return cmp.Or(t.Verified, fmt.Sprintf(textVerified, name))
	case messenger.OutcomeTextChanged:
		return textTextChanged
	case messenger.OutcomeTapRefused:
		return textTapRefused
	case messenger.OutcomeDeclined:
		return textDeclined
	case messenger.OutcomeWrongNumber:
		return cmp.Or(t.WrongNumber, textWrongNumber)
	case messenger.OutcomeTooLate:
		return cmp.Or(t.Expired, textExpired)
	case messenger.OutcomeNumberHidden:
		return cmp.Or(t.NumberHidden, textNumberHidden)
	default: // a code for another messenger among them: to this chat it is none
		return t.unknownText()
	}
}

// replyAboutRequest replies the outcome of a code, once for each sender, request and outcome: redeliveries and a sender who repeats
// the code get none.
func (d *delivery) replyAboutRequest(to sender, about verification.Request, o messenger.Outcome) {
	d.hook.replies.ReplyOnce(d.replyWith(to, d.projectTexts().outcomeText(o, d.settings.DisplayNameOf(&about))), to.key(), about.ID, string(o))
}

// replyToStranger answers a sender whose message holds no known code.
func (d *delivery) replyToStranger(to sender) {
	d.hook.replies.ReplyToStranger(d.replyWith(to, d.projectTexts().unknownText()), to.key())
}

func (d *delivery) replyWith(to sender, text string) messenger.SendFunc {
	client, account, recipient := d.hook.client, d.account, to.recipient()
	return func(ctx context.Context) error { return client.SendText(ctx, account, recipient, text) }
}
