package whatsapp

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// confirmationPrefix begins the id of the button that confirms: confirm:CODE_ID:TOKEN.
const confirmationPrefix = "confirm:"

// askContact asks a sender without a number for it.
func (d *delivery) askContact(ctx context.Context, to sender, binding string, receipt verification.Receipt) (messenger.Outcome, error) {
	r := &receipt.Request
	text := texts.Fill(d.textsFor(r).ShareContact, d.settings.DisplayNameOf(r))
	return d.askSender(ctx, receipt, binding, messenger.OutcomeNeedContact, func(ctx context.Context, reference string) error {
		return d.hook.client.RequestContact(ctx, d.account, to.recipient(), text, reference)
	})
}

// askConfirmation asks the owner of the claimed number, whose message was not the prepared text, by a button. The button
// answers the question as it is stored, which may be that of an earlier delivery, under a secret that was replaced since.
func (d *delivery) askConfirmation(ctx context.Context, to sender, receipt verification.Receipt) (messenger.Outcome, error) {
	asked, _ := receipt.Request.Confirmation()
	secrets := d.account.AppSecret.Accepted(d.now)
	if len(secrets) == 0 {
		return messenger.OutcomeFailed, errSecretLost
	}
	id := confirmationPrefix + receipt.CodeID + ":" + confirmationToken(secrets[0], receipt.CodeID, to, asked.Binding)
	t := d.textsFor(&receipt.Request)
	question := Question{
		Text: texts.Fill(t.Confirm, d.settings.DisplayNameOf(&receipt.Request)), Buttons: []Button{{ID: id, Title: t.ButtonConfirm}},
	}
	return d.askSender(ctx, receipt, asked.Binding, messenger.OutcomeNeedConfirmation, func(ctx context.Context, reference string) error {
		question.Reference = reference
		return d.hook.client.AskWithButtons(ctx, d.account, to.recipient(), question)
	})
}

// questionPrefix begins the reference of a question to the sender of a code, question:CODE_ID:BINDING:BOUND_AT. That of an echo
// is a code's id.
const questionPrefix = "question:"

// askSender is sendPrompt for a question to the sender of a code. If Meta never delivers it, whether that is answered or reported by a
// status, the hint of the request is that there is no question.
func (d *delivery) askSender(
	ctx context.Context, receipt verification.Receipt, binding string, asked messenger.Outcome, send func(context.Context, string) error,
) (messenger.Outcome, error) {
	boundAt := receipt.Request.BoundAt(binding).UnixMicro() // each question has its own, a copy of its message has the same
	reference := questionPrefix + receipt.CodeID + ":" + binding + ":" + strconv.FormatInt(boundAt, 10)
	became, err := d.sendPrompt(ctx, reference, receipt.Request.ID, asked, func(ctx context.Context) error { return send(ctx, reference) })
	if err != nil || became != messenger.OutcomeNoPrompt {
		return became, err
	}
	err = d.recordLostQuestion(ctx, reference)
	switch {
	case errors.Is(err, verification.ErrContent):
		logr.FromContextOrDiscard(ctx).Error(err, "lost question not recorded")
		return messenger.OutcomeContentRefused, nil
	case err != nil:
		d.hook.prompted.Undo(reference, receipt.Request.ID) // a copy of the message finds that out again
		return messenger.OutcomeFailed, err
	default:
		return became, nil
	}
}

// recordLostQuestion records that the question with a reference is never delivered. It does nothing for other messages.
func (d *delivery) recordLostQuestion(ctx context.Context, reference string) error {
	ids, isQuestion := strings.CutPrefix(reference, questionPrefix)
	if !isQuestion {
		return nil
	}
	codeID, question, _ := strings.Cut(ids, ":")
	binding, boundAt, _ := strings.Cut(question, ":")
	micros, err := strconv.ParseInt(boundAt, 10, 64)
	if err != nil {
		return nil // no reference of ours
	}
	asked := verification.Contact{Binding: binding, BoundAt: time.UnixMicro(micros)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), messageTimeout) // sending may have used up the time of the message
	defer cancel()
	if err := d.hook.service.RecordNoQuestion(ctx, codeID, asked, d.settings.EventKinds()); err != nil {
		return fmt.Errorf("record lost question: %w", err)
	}
	return nil
}

// sendPrompt asks a sender for what the request needs. The answer to Meta waits for it: without the prompt the user is stuck,
// and only a redelivery of the message asks again.
func (d *delivery) sendPrompt(
	ctx context.Context, question, requestID string, asked messenger.Outcome, send messenger.SendFunc,
) (messenger.Outcome, error) {
	if !d.hook.prompted.TryStart(d.hook.clock.Now(), question, requestID) {
		return asked, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promptTimeout)
	defer cancel()
	became, err := d.hook.replies.Prompt(ctx, asked, send)
	if err != nil {
		d.hook.prompted.Undo(question, requestID)
	}
	return became, err
}

// confirmationTap returns the id of the button with which the sender confirms; false if the message is nothing of the kind.
// Only Meta writes a button_reply: an id that a user types is text.
func (m *message) confirmationTap() (string, bool) {
	if m.Type != "interactive" {
		return "", false
	}
	var reply interactiveReply
	if json.Unmarshal(m.Interactive, &reply) != nil || reply.Type != "button_reply" {
		return "", false
	}
	return strings.CutPrefix(reply.ButtonReply.ID, confirmationPrefix)
}

// receiveTap handles a tap on the button that confirms. It verifies only for the sender who was asked, and for the request
// that the prompt was about: both are in the token, with the prompt that is stored.
func (d *delivery) receiveTap(ctx context.Context, m *message, from sender, tap string) (messenger.Outcome, error) {
	codeID, token, _ := strings.Cut(tap, ":")
	if from.number.IsZero() {
		return d.refuseTap(from, tap), nil
	}
	secrets := d.account.AppSecret.Accepted(d.now)
	answers := func(binding string) bool {
		found := false
		for _, secret := range secrets {
			if hmac.Equal([]byte(token), []byte(confirmationToken(secret, codeID, from, binding))) {
				found = true
			}
		}
		return found
	}
	e := m.newEvidence(from.number, verification.AssuranceUsual)
	receipt, err := d.hook.service.Confirm(ctx, codeID, e, answers, d.settings.EventKinds())
	if err == nil && receipt.Outcome == verification.OutcomeUnknown {
		return d.refuseTap(from, tap), nil
	}
	return d.replyToOutcome(ctx, from, receipt, err)
}

// refuseTap replies to a tap what to do instead, once for each button. It may be a user whose question was asked under
// another app secret, or who was asked long ago.
func (d *delivery) refuseTap(from sender, tap string) messenger.Outcome {
	const came = messenger.OutcomeTapRefused
	if d.hook.replies.PolicyOf(d.settings.Replies.Send, came, from.sentAt) != messenger.NoReply {
		d.hook.replies.ReplyOnce(func(ctx context.Context) error {
			text := texts.Fill(d.settings.TextsIn(d.localeOfTap(ctx, from, tap)).TapRefused, d.settings.DisplayName)
			return d.replyWith(from, text)(ctx)
		}, from.key(), tap, string(came))
	}
	return came
}

// localeOfTap returns the locale of the request that a button names; empty if it is not known. Whether the button is genuine does not
// matter: the text says nothing about the request.
func (d *delivery) localeOfTap(ctx context.Context, from sender, tap string) string {
	parts := strings.Split(tap, ":") // the last two are an id and a token
	if len(parts) < 2 || !verification.IsRequestID(parts[len(parts)-2]) {
		return ""
	}
	ctx = verification.WithCaller(ctx, verification.Sender(from.key()))
	r, err := d.hook.service.StatusCached(ctx, parts[len(parts)-2])
	if err != nil || r.Test {
		return "" // best effort, like the reply
	}
	return r.Locale
}

// confirmationBindings returns the bindings of a sender who is asked to confirm a message, the one to store first. Each message
// has others, so that a copy of it differs from the next one.
func confirmationBindings(account *settings.WhatsApp, from sender, messageID string, now time.Time) []string {
	return keyedHashes(account.AppSecret.Accepted(now),
		purposeConfirmed+account.PhoneNumberID+"\x00"+from.number.Digits()+"\x00"+messageID)
}

// confirmationToken returns what only the button of one prompt carries.
func confirmationToken(secret []byte, codeID string, to sender, binding string) string {
	return hex.EncodeToString(hmacOf(secret, []byte(purposeConfirmation+codeID+"\x00"+to.number.Digits()+"\x00"+binding)))
}
