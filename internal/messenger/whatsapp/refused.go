package whatsapp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// A message that never counts is looked at for the request that it names alone, so that its sender is not left without a word.

// readContent returns the text of a message, and the outcome of one that never counts, whatever its text is; empty if it may count.
func (m *message) readContent() (text string, refused messenger.Outcome, err error) {
	text, ok, err := m.readText()
	forwarded := bool(m.Context.Forwarded || m.Context.FrequentlyForwarded)
	switch {
	case err != nil:
		return "", "", err
	case forwarded && m.Type == "text":
		return text, messenger.OutcomeForwarded, nil
	case forwarded:
		return m.readOtherText(), messenger.OutcomeForwarded, nil
	case !ok && m.Type != typeContacts:
		return m.readOtherText(), messenger.OutcomeOtherType, nil
	default:
		return text, "", nil
	}
}

// readOtherText returns the text of a message that is none: the caption of a picture, a video or a file, or the new text of a message that
// was edited (webhooks/reference/messages/edit). It is empty if there is none that can be read.
func (m *message) readOtherText() string {
	var part json.RawMessage
	switch m.Type {
	case "image":
		part = m.Image
	case "video":
		part = m.Video
	case "document":
		part = m.Document
	case "edit":
		return m.readEditedText()
	}
	var captioned struct {
		Caption string `json:"caption"`
	}
	if !isPresent(part) || json.Unmarshal(part, &captioned) != nil {
		return ""
	}
	return captioned.Caption
}

func (m *message) readEditedText() string {
	var edit struct {
		Message message `json:"message"`
	}
	if !isPresent(m.Edit) || json.Unmarshal(m.Edit, &edit) != nil || edit.Message.Type == m.Type {
		return ""
	}
	if text, ok, err := edit.Message.readText(); ok && err == nil {
		return text
	}
	return edit.Message.readOtherText()
}

// refuseMessage handles a message that never counts.
func (d *delivery) refuseMessage(
	ctx context.Context, m *message, from sender, text string, refused messenger.Outcome,
) (messenger.Outcome, error) {
	if m.Type == typeContacts {
		return d.refuseContact(ctx, m, from, refused)
	}
	why, reply := verification.HintTextRefused, func(t *texts.Texts) string { return t.TextRefused }
	if from.number.IsZero() && d.account.HiddenNumbers == settings.HiddenRefused {
		// The prepared text would be refused, too.
		why, reply = verification.HintNumberHidden, func(t *texts.Texts) string { return t.NumberHidden }
	}
	in := verification.Message{
		Evidence: m.newEvidence(from.number, verification.AssuranceUsual), Text: text, Binding: from.key(),
	}
	if bound := d.proverBindings(from); from.number.IsZero() && len(bound) > 0 {
		in.Binding, in.OlderBindings = bound[0], bound[1:]
	}
	receipt, err := d.hook.service.RefuseText(ctx, in, why, d.settings.EventKinds())
	return d.replyToRefusal(from, refused, receipt, err, reply)
}

// refuseContact handles a contact that is not one's own, or may not be. It names the request that its sender was asked about.
func (d *delivery) refuseContact(
	ctx context.Context, m *message, from sender, refused messenger.Outcome,
) (messenger.Outcome, error) {
	if d.account.HiddenNumbers != settings.HiddenShared || from.userID == "" {
		return refused, nil
	}
	e := m.newEvidence(phone.Number{}, verification.AssuranceUsual)
	for _, binding := range senderBindings(d.account, from.userID, d.now) {
		receipt, err := d.hook.service.RefuseContact(ctx, binding, e, verification.HintContactRefused, d.settings.EventKinds())
		if err == nil && receipt.Outcome == verification.OutcomeUnknown {
			continue // bound under another app secret, or never
		}
		return d.replyToRefusal(from, refused, receipt, err, func(t *texts.Texts) string { return t.ContactRefused })
	}
	return refused, nil
}

// replyToRefusal replies with the message that left the hint, and so once over all replicas.
func (d *delivery) replyToRefusal(
	to sender, refused messenger.Outcome, receipt verification.Receipt, err error, text func(*texts.Texts) string,
) (messenger.Outcome, error) {
	came, err := messenger.OutcomeOfRefusal(refused, receipt, err)
	if err != nil {
		return came, fmt.Errorf("refuse message: %w", err)
	}
	if receipt.Hinted && d.hook.replies.PolicyOf(d.settings.Replies.Send, refused, to.sentAt) != messenger.NoReply {
		r := &receipt.Request
		d.hook.replies.Reply(d.replyWith(to, texts.Fill(text(d.textsFor(r)), d.settings.DisplayNameOf(r))))
	}
	return came, nil
}
