package whatsapp

import (
	"context"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// textsFor returns the texts for the user of a request, in its language.
func (d *delivery) textsFor(r *verification.Request) *texts.Texts {
	return d.settings.TextsIn(r.Locale)
}

// outcomeText returns the reply to an outcome.
func outcomeText(t *texts.Texts, o messenger.Outcome) string {
	switch o {
	case messenger.OutcomeVerified:
		return t.Verified
	case messenger.OutcomeTextChanged:
		return t.TextChanged
	case messenger.OutcomeDeclined:
		return t.Declined
	case messenger.OutcomeWrongNumber:
		return t.WrongNumber
	case messenger.OutcomeTooLate:
		return t.Expired
	case messenger.OutcomeNumberHidden:
		return t.NumberHidden
	default: // a code for another messenger among them: to this chat it is none
		return t.Unknown
	}
}

// replyAboutRequest replies the outcome of a code, once for each sender, request and outcome: redeliveries and a sender who repeats
// the code get none.
func (d *delivery) replyAboutRequest(to sender, about verification.Request, o messenger.Outcome) {
	text := texts.Fill(outcomeText(d.textsFor(&about), o), d.settings.DisplayNameOf(&about))
	d.hook.replies.ReplyOnce(d.replyWith(to, text), to.key(), about.ID, string(o))
}

// replyToStranger answers a sender whose message holds no known code, and whose language is not known either.
func (d *delivery) replyToStranger(to sender) {
	text := texts.Fill(d.settings.TextsIn("").Unknown, d.settings.DisplayName)
	d.hook.replies.ReplyToStranger(d.replyWith(to, text), to.key())
}

func (d *delivery) replyWith(to sender, text string) messenger.SendFunc {
	client, account, recipient := d.hook.client, d.account, to.recipient()
	return func(ctx context.Context) error { return client.SendText(ctx, account, recipient, text) }
}
