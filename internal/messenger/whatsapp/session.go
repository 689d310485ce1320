package whatsapp

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// At level Session a number is proven before it is verified. The prover gets the session codes, below them a button that declines:
// notme:CODE_ID:TOKEN, as below the question of an echo, with another token. Only the prover's own tap counts.

// giveSessionCodes sends the session codes to the prover. The answer to Meta waits for it, as for all prompts.
func (d *delivery) giveSessionCodes(ctx context.Context, to sender, receipt verification.Receipt) (messenger.Outcome, error) {
	r := &receipt.Request
	message, ok := d.settings.SessionMessage(r, d.hook.pageURL(d.settings, r), maxPromptRunes, d.now)
	secret := d.account.AppSecret.Shared(d.now)
	if !ok || len(secret) == 0 {
		return messenger.OutcomeFailed, errSecretLost
	}
	button := Button{
		ID:    declinePrefix + receipt.CodeID + ":" + notMeToken(secret, receipt.CodeID, to.key(), r.CreatedAt),
		Title: d.textsFor(r).ButtonNotMe,
	}
	return d.sendPrompt(ctx, button.ID, r.ID, messenger.OutcomeProven, func(ctx context.Context) error {
		return d.hook.client.AskWithButtons(ctx, d.account, to.recipient(), Question{Text: message, Buttons: []Button{button}})
	})
}

// receiveNotMe handles a tap on a button that declines: of the prover, else of one who is asked by an echo.
func (d *delivery) receiveNotMe(ctx context.Context, m *message, from sender, tap buttonTap) (messenger.Outcome, error) {
	bound := d.proverBindings(from)
	isProver := func(r *verification.Request) bool {
		if !d.isNotMeToken(tap, from, r.CreatedAt) {
			return false
		}
		if !from.number.IsZero() {
			return phone.Same(r.Actual, from.number)
		}
		return slices.ContainsFunc(bound, func(binding string) bool { return !r.BoundAt(binding).IsZero() })
	}
	in := verification.Message{Evidence: m.newEvidence(from.number, verification.AssuranceUsual)}
	if len(bound) > 0 {
		in.Binding = bound[0]
	}
	receipt, err := d.hook.service.DeclineProven(ctx, tap.codeID, in, isProver, d.settings.EventKinds())
	switch {
	case err == nil && receipt.Outcome == verification.OutcomeUnknown:
		return d.receiveEchoTap(ctx, m, from, tap)
	case err == nil && receipt.Outcome == verification.OutcomeVerified:
		return d.replyTooLateToDecline(from, receipt.Request), nil
	default:
		return d.replyToOutcome(ctx, from, receipt, err)
	}
}

// replyTooLateToDecline replies what to do about a number that is verified already. It is trouble, so projects that answer no success
// answer this.
func (d *delivery) replyTooLateToDecline(from sender, r verification.Request) messenger.Outcome {
	if d.hook.replies.PolicyOf(d.settings.Replies.Send, messenger.OutcomeDeclined, from.sentAt) != messenger.NoReply {
		d.replyAboutRequest(from, r, messenger.OutcomeVerified)
	}
	return messenger.OutcomeVerified
}

// proverBindings returns the bindings under which a sender whose number is hidden may have proven one.
func (d *delivery) proverBindings(from sender) []string {
	if from.userID == "" {
		return nil
	}
	return append(senderBindings(d.account, from.userID, d.now), echoBindings(d.account, from.userID, d.now)...)
}

// isNotMeToken reports whether a button was shown to its sender, for the request that was created then. Meta may have reported the
// number, the user id or both with the message that proved it.
func (d *delivery) isNotMeToken(tap buttonTap, from sender, createdAt time.Time) bool {
	found := false
	for _, secret := range d.account.AppSecret.Accepted(d.now) {
		for _, key := range from.keys() {
			if hmac.Equal([]byte(tap.token), []byte(notMeToken(secret, tap.codeID, key, createdAt))) {
				found = true
			}
		}
	}
	return found
}

// notMeToken returns what only the button of one prover of one request carries. Of two requests with the same id, one after the other,
// the times differ.
func notMeToken(secret []byte, codeID, proverKey string, createdAt time.Time) string {
	data := purposeNotMe + codeID + "\x00" + proverKey + "\x00" + strconv.FormatInt(createdAt.UnixMicro(), 10)
	return hex.EncodeToString(hmacOf(secret, []byte(data)))
}
