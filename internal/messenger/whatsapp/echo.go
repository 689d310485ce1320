package whatsapp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The echo verifies a user whose number is hidden. The code comes from a business-scoped user id B without a number, and claims
// the number N. A question with two buttons goes to N, never to B. The number is verified if the answer comes from B: the account
// that sent the code then reads the messages to N.

// The ids of its buttons are echo:CODE_ID:TOKEN and notme:CODE_ID:TOKEN.
const (
	echoConfirmPrefix = "echo:"
	declinePrefix     = "notme:"
)

// nonceBytes is the length of a nonce: 128 bits.
const nonceBytes = 16

// receiveForEcho handles a text from a sender without a number. The sender and a nonce are stored before anything is sent, so a
// copy of the message after a crash asks the same question.
func (d *delivery) receiveForEcho(ctx context.Context, m *message, from sender, text string) (messenger.Outcome, error) {
	bound := echoBindings(d.account, from.userID, d.now)
	if len(bound) == 0 {
		return messenger.OutcomeFailed, errSecretLost
	}
	receipt, err := d.hook.service.AwaitEcho(ctx, verification.Message{
		Evidence: m.newEvidence(phone.Number{}, verification.AssuranceUsual), Text: text, Binding: bound[0], OlderBindings: bound[1:],
	}, newNonce(), d.settings.EventKinds())
	switch {
	case err == nil && receipt.Outcome == verification.OutcomeNeedEcho:
		return d.askByEcho(ctx, bound, receipt)
	case err == nil && receipt.Outcome == verification.OutcomeLimited && receipt.Request.ID != "":
		return messenger.OutcomeEchoLimited, nil // too many senders claim the number
	}
	return d.replyToOutcome(ctx, from, receipt, err)
}

// askByEcho sends the question to the claimed number. The sender of the code gets no reply, whatever becomes of it: that Meta
// delivers to the number only after its user wrote to us would otherwise show who is a customer.
func (d *delivery) askByEcho(ctx context.Context, bound []string, receipt verification.Receipt) (messenger.Outcome, error) {
	secrets := d.account.AppSecret.Accepted(d.now)
	if len(secrets) == 0 {
		return messenger.OutcomeFailed, errSecretLost
	}
	r := &receipt.Request
	echo, _ := r.EchoOf(bound)
	if !d.hook.echoed.TryStart(d.now, echoSlot(r.Phone)) {
		return messenger.OutcomeEchoLimited, nil
	}
	token := receipt.CodeID + ":" + echoToken(secrets[0], receipt.CodeID, r.Phone, echo)
	t := d.textsFor(r)
	question := Question{
		Text: texts.Fill(t.EchoQuestion, d.settings.DisplayNameOf(r)), Reference: receipt.CodeID,
		Buttons: []Button{
			{ID: echoConfirmPrefix + token, Title: t.ButtonConfirm}, {ID: declinePrefix + token, Title: t.ButtonNotMe},
		},
	}
	asked := false
	came, err := d.sendPrompt(ctx, echo.Binding, r.ID, messenger.OutcomeNeedEcho, func(ctx context.Context) error {
		err := d.hook.client.AskWithButtons(ctx, d.account, ToNumber(r.Phone), question)
		asked = err == nil
		return err
	})
	if !asked {
		d.hook.echoed.Undo(echoSlot(r.Phone))
	}
	if err != nil {
		return came, fmt.Errorf("ask claimed number: %w", err)
	}
	return came, nil
}

// echoSlot returns the words by which a number is asked once a day, in whatever form it was claimed.
func echoSlot(claimed phone.Number) string { return phone.Canonical(claimed).E164() }

// freeEchoSlot lets the number of a question be asked again on the same day, because Meta did not deliver it. Otherwise a stranger
// could keep the number's user from being verified, by claiming it while no window is open.
func (d *delivery) freeEchoSlot(s *status) {
	if !verification.IsRequestID(s.CallbackData) {
		return // only the question of an echo has such a reference
	}
	if asked, err := phone.FromE164("+" + s.RecipientID); err == nil {
		d.hook.echoed.Undo(echoSlot(asked))
	}
}

// buttonTap is a tap on a button of an echo, or on one that declines.
type buttonTap struct {
	id            string
	confirms      bool
	codeID, token string
}

// buttonTap returns the tap; false if the message is nothing of the kind. Only Meta writes a button_reply: an id that a user types
// is text.
func (m *message) buttonTap() (buttonTap, bool) {
	if m.Type != "interactive" {
		return buttonTap{}, false
	}
	var reply interactiveReply
	if json.Unmarshal(m.Interactive, &reply) != nil || reply.Type != "button_reply" {
		return buttonTap{}, false
	}
	tap := buttonTap{id: reply.ButtonReply.ID}
	rest, confirms := strings.CutPrefix(tap.id, echoConfirmPrefix)
	if !confirms {
		var declines bool
		if rest, declines = strings.CutPrefix(tap.id, declinePrefix); !declines {
			return buttonTap{}, false
		}
	}
	tap.confirms = confirms
	tap.codeID, tap.token, _ = strings.Cut(rest, ":")
	return tap, true
}

// receiveEchoTap handles a tap. Anyone who has the button may decline: the question went to the claimed number. Only the sender of
// the code confirms, known by the user id in the message itself.
func (d *delivery) receiveEchoTap(ctx context.Context, m *message, from sender, tap buttonTap) (messenger.Outcome, error) {
	if d.account.HiddenNumbers != settings.HiddenEcho {
		return d.refuseTap(from, tap.id), nil
	}
	secrets := d.account.AppSecret.Accepted(d.now)
	fits := func(r *verification.Request, c verification.Contact) bool {
		found := false
		for _, secret := range secrets {
			if hmac.Equal([]byte(tap.token), []byte(echoToken(secret, tap.codeID, r.Phone, c))) {
				found = true
			}
		}
		return found
	}
	in := verification.Message{Evidence: m.newEvidence(from.number, verification.AssuranceUsual)}
	var bound []string
	if from.userID != "" {
		bound = echoBindings(d.account, from.userID, d.now)
	}
	if len(bound) > 0 {
		in.Binding, in.OlderBindings = bound[0], bound[1:]
	}
	var (
		receipt verification.Receipt
		err     error
	)
	if tap.confirms {
		receipt, err = d.hook.service.ConfirmEcho(ctx, tap.codeID, in, func(r *verification.Request, c verification.Contact) bool {
			return slices.Contains(bound, c.Binding) && fits(r, c)
		}, d.settings.EventKinds())
	} else {
		receipt, err = d.hook.service.Decline(ctx, tap.codeID, in, fits, d.settings.EventKinds())
	}
	if err == nil && receipt.Outcome == verification.OutcomeUnknown {
		return d.refuseTap(from, tap.id), nil
	}
	return d.replyToOutcome(ctx, from, receipt, err)
}

// echoBindings returns the keyed hashes that the sender of a code may be known by in an echo, the one to store first.
func echoBindings(account *settings.WhatsApp, userID string, now time.Time) []string {
	return keyedHashes(account.AppSecret.Accepted(now), purposeEchoSender+account.PhoneNumberID+"\x00"+userID)
}

// echoToken returns what only the buttons of one question carry. The stored nonce is not enough to make it.
func echoToken(secret []byte, codeID string, claimed phone.Number, c verification.Contact) string {
	return hex.EncodeToString(hmacOf(secret, []byte(purposeEcho+codeID+"\x00"+claimed.Digits()+"\x00"+c.Binding+"\x00"+c.Nonce)))
}

func newNonce() string {
	nonce := make([]byte, nonceBytes)
	_, _ = rand.Read(nonce) // it never fails
	return hex.EncodeToString(nonce)
}
