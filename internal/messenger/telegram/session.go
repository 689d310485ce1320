package telegram

import (
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// giveSessionCodes sends the session codes of a proven request to its prover, above a keyboard of one button that declines. The message
// that proved the number waits for it, as for the prompt.
func (c *Channel) giveSessionCodes(
	ctx context.Context, s *settings.Settings, in inbound, r *verification.Request,
) (messenger.Outcome, error) {
	text, ok := s.SessionMessage(r, c.pageURL(s, r), maxTextCharacters, c.clock.Now())
	if !ok {
		return messenger.OutcomeFailed, ErrNoToken
	}
	ctx, cancel := context.WithTimeout(ctx, promptTimeout)
	defer cancel()
	keyboard := Keyboard{Answer: s.TextsIn(r.Locale).ButtonNotMe}
	return c.replies.Prompt(ctx, messenger.OutcomeProven, func(ctx context.Context) error {
		return c.client.SendWithoutPreview(ctx, s.Telegram, in.sender, text, keyboard)
	})
}

// declineProven ends the request that the sender opened last, if the sender proved it. All others have written a text without a code.
func (c *Channel) declineProven(
	ctx context.Context, s *settings.Settings, e verification.Evidence, bound []string,
) (verification.Receipt, error) {
	for _, binding := range bound {
		receipt, err := c.service.DeclineAwaiting(ctx, verification.Message{Evidence: e, Binding: binding}, s.EventKinds())
		if err != nil {
			return receipt, fmt.Errorf("decline request: %w", err)
		}
		if receipt.Outcome != verification.OutcomeUnknown {
			return receipt, nil
		}
	}
	return verification.Receipt{}, nil
}
