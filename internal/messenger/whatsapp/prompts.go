package whatsapp

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// confirmationPrefix begins the id of the button that confirms: confirm:CODE_ID:TOKEN.
const confirmationPrefix = "confirm:"

// askContact asks a sender without a number for it.
func (d *delivery) askContact(ctx context.Context, to sender, binding string, r verification.Request) (outcome, error) {
	text := d.texts().shareContact(d.settings.DisplayNameOf(&r))
	return d.prompt(ctx, binding, r.ID, outcomeNeedContact, func(ctx context.Context) error {
		return d.hook.client.RequestContact(ctx, d.account, to.recipient(), text)
	})
}

// askConfirmation asks the owner of the claimed number, whose message was not the prepared text, by a button. The button
// answers the question as it is stored, which may be that of an earlier delivery, under a secret that was replaced since.
func (d *delivery) askConfirmation(ctx context.Context, to sender, receipt verification.Receipt) (outcome, error) {
	asked, _ := receipt.Request.Confirmation()
	secrets := d.account.AppSecret.Accepted(d.now)
	if len(secrets) == 0 {
		return outcomeFailed, errSecretLost
	}
	id := confirmationPrefix + receipt.CodeID + ":" + confirmationToken(secrets[0], receipt.CodeID, to, asked.Binding)
	text := fmt.Sprintf(textConfirm, d.settings.DisplayNameOf(&receipt.Request))
	return d.prompt(ctx, asked.Binding, receipt.Request.ID, outcomeNeedConfirmation, func(ctx context.Context) error {
		return d.hook.client.RequestConfirmation(ctx, d.account, to.recipient(), text, id)
	})
}

// prompt asks a sender for what the request needs. The answer to Meta waits for it: without the prompt the user is stuck,
// and only a redelivery of the message asks again. It ends where Meta will never deliver the prompt.
func (d *delivery) prompt(
	ctx context.Context, binding, requestID string, came outcome, send func(context.Context) error,
) (outcome, error) {
	if !d.hook.prompted.TryStart(d.hook.clock.Now(), binding, requestID) {
		return came, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promptTimeout)
	defer cancel()
	err := send(ctx)
	if err == nil {
		d.hook.metrics.replies.WithLabelValues(replySent).Inc()
		return came, nil
	}
	d.hook.metrics.replies.WithLabelValues(replyFailed).Inc()
	if undeliverable(err) {
		d.hook.log.Info("WhatsApp prompt refused, will not retry", "reason", err.Error())
		return outcomeNoPrompt, nil
	}
	d.hook.prompted.Undo(binding, requestID)
	return outcomeFailed, fmt.Errorf("send a prompt: %w", err)
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

// receiveTap takes a tap on the button that confirms. It verifies only for the sender who was asked, and for the request
// that the prompt was about: both are in the token, with the prompt that is stored.
func (d *delivery) receiveTap(ctx context.Context, m *message, from sender, tap string) (outcome, error) {
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
	e := m.evidence(from.number, verification.AssuranceUsual)
	receipt, err := d.hook.service.Confirm(ctx, codeID, e, answers, d.eventWanted())
	if err == nil && receipt.Outcome == verification.OutcomeUnknown {
		return d.refuseTap(from, tap), nil
	}
	return d.settle(from, receipt, err)
}

// refuseTap tells the sender of a tap what to do instead, once for each button. It may be a user whose question was asked under
// another app secret, or who was asked long ago.
func (d *delivery) refuseTap(from sender, tap string) outcome {
	d.reply(from, verification.Request{ID: tap}, outcomeTapRefused)
	return outcomeTapRefused
}

// confirmationBindings returns what a sender is bound by who is asked to confirm a message, the one to store first: another
// for each message, so that a copy of it is told from the next one.
func confirmationBindings(account *settings.WhatsApp, from sender, messageID string, now time.Time) []string {
	secrets := account.AppSecret.Accepted(now)
	hashes := make([]string, len(secrets))
	for i, secret := range secrets {
		hashes[i] = hex.EncodeToString(keyed(secret,
			[]byte(purposeConfirmed+account.PhoneNumberID+"\x00"+from.number.Digits()+"\x00"+messageID)))
	}
	return hashes
}

// confirmationToken returns what only the button of one prompt carries.
func confirmationToken(secret []byte, codeID string, to sender, binding string) string {
	return hex.EncodeToString(keyed(secret, []byte(purposeConfirmation+codeID+"\x00"+to.number.Digits()+"\x00"+binding)))
}
