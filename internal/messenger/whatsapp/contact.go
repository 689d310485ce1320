package whatsapp

import (
	"context"
	"encoding/json"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// originPrompt is the origin of a contact that was shared by the button of a prompt; a card that the user attached
// without it has the origin "other" (Kapso, "Request contact info").
const originPrompt = "contact_request"

// sharedContact is what counts of a contact: not its name, not its vCard, and not phone, which is as the card has it.
type sharedContact struct {
	Origin string `json:"origin"`
	Phones []struct {
		WaID string `json:"wa_id"`
	} `json:"phones"`
}

// sharedNumber returns the number of a contact that can be the answer to a prompt; false if it cannot. Where origin
// stands differs between sources: in the message (restfb's fixture of Meta's sample) or in the contact (Kapso, Chatwoot).
// Both places count, and may not contradict.
func (m *message) sharedNumber() (phone.Number, bool) {
	var contacts []sharedContact
	if json.Unmarshal(m.Contacts, &contacts) != nil || len(contacts) != 1 || len(contacts[0].Phones) != 1 {
		return phone.Number{}, false
	}
	inMessage, inContact := m.Origin, contacts[0].Origin
	if inMessage == "" {
		inMessage = inContact
	}
	if inContact == "" {
		inContact = inMessage
	}
	if inMessage != originPrompt || inContact != originPrompt {
		return phone.Number{}, false
	}
	number, err := phone.ParseWhatsApp(contacts[0].Phones[0].WaID)
	return number, err == nil
}

// receiveContact handles the answer to a prompt. The binding proves that the prompt was ours and to this very user: it is found
// by the id only.
func (d *delivery) receiveContact(ctx context.Context, m *message, from sender) (messenger.Outcome, error) {
	number, ok := m.sharedNumber()
	// Sharing a number shows it in webhooks from then on, perhaps in this one already. If it is another, the card is not
	// the sender's own.
	if !ok || !from.number.IsZero() && !phone.Same(from.number, number) {
		return d.refuseContact(ctx, m, from, messenger.OutcomeContactRefused)
	}
	if d.account.HiddenNumbers != settings.HiddenShared || from.userID == "" {
		return messenger.OutcomeContactRefused, nil
	}
	e := m.newEvidence(number, verification.AssuranceSharedContact)
	for _, binding := range senderBindings(d.account, from.userID, d.now) {
		receipt, err := d.hook.service.ReceiveContact(ctx, binding, e, d.settings.EventKinds())
		if err == nil && receipt.Outcome == verification.OutcomeUnknown {
			continue // bound under another app secret, or never
		}
		if err == nil && receipt.Outcome == verification.OutcomeNeedContact { // it answers an older prompt
			return d.askContact(ctx, from, binding, receipt)
		}
		return d.replyToOutcome(ctx, from, receipt, err)
	}
	return messenger.OutcomeContactRefused, nil
}
