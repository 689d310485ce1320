package telegram

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Options configure a Channel.
type Options struct {
	// Settings returns the current settings of the project; never nil. Required.
	Settings func() *settings.Settings
	// Service is the project's domain over its store. Required.
	Service *verification.Service
	// Client calls the Bot API. Required.
	Client *Client
	// PageURL returns the page of a proven request, empty if it has none; nil if no project has a page.
	PageURL func(*settings.Settings, *verification.Request) string
	// Clock is the clock; the real one if nil. Timers are always real.
	Clock clock.PassiveClock
	// Log logs the outcomes of messages. Its zero value logs nothing.
	Log logr.Logger
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Channel handles the messages to a project's bot. It is safe for concurrent use. Every replica has one: its Hook receives
// what Telegram posts, its NewPoller fetches updates on the one replica that may, and Start sends the replies of both.
type Channel struct {
	settings func() *settings.Settings
	service  *verification.Service
	client   *Client
	pageURL  func(*settings.Settings, *verification.Request) string
	clock    clock.PassiveClock
	log      logr.Logger
	metrics  *metrics

	replies *messenger.Replier
	senders *messenger.SenderLimiter
}

// New returns a channel, with its metrics registered.
func New(o Options) (*Channel, error) {
	if o.Settings == nil || o.Service == nil || o.Client == nil {
		return nil, errors.New("a Telegram channel needs Settings, Service and Client")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.PageURL == nil {
		o.PageURL = func(*settings.Settings, *verification.Request) string { return "" }
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("create metrics: %w", err)
	}
	return &Channel{
		settings: o.Settings, service: o.Service, client: o.Client, pageURL: o.PageURL, clock: o.Clock, log: o.Log, metrics: m,
		replies: messenger.NewReplier(o.Clock, o.Log, m.Metrics), senders: messenger.NewSenderLimiter(),
	}, nil
}

// Start sends replies until ctx ends, and then those that wait already, for a few seconds.
func (c *Channel) Start(ctx context.Context) error { return c.replies.Start(ctx) }

// NeedLeaderElection reports false: every replica sends the replies to what it received.
func (c *Channel) NeedLeaderElection() bool { return false }

// receiveUpdate handles an update, and survives a panic. An error means that the update has to be delivered again: nothing is known
// to be stored, or, with messenger.ErrPrompt, the user was not asked for the contact. s.Telegram is not nil.
func (c *Channel) receiveUpdate(ctx context.Context, log logr.Logger, s *settings.Settings, raw []byte) (err error) {
	defer panics.Recover(func(failure error) {
		c.metrics.Count(messenger.OutcomePanicked, 1)
		log.Error(failure, "Telegram update dropped")
		err = nil
	})
	return c.handleUpdate(ctx, log, s, raw)
}

func (c *Channel) handleUpdate(ctx context.Context, log logr.Logger, s *settings.Settings, raw []byte) error {
	start := c.clock.Now()
	in, why := readInbound(raw, s.Telegram.BotUsername)
	in.isNotMe = !in.isContact && !in.isCommand && s.IsNotMe(in.text, start)
	var (
		bound []string
		err   error
	)
	if in.sender != 0 {
		bound = senderBindings(s, in.sender, start)
		if len(bound) == 0 { // The token went away since the update was authentic.
			return ErrNoToken
		}
	}
	var receipt verification.Receipt
	switch {
	case why == "":
		receipt, why, err = c.applyInbound(ctx, s, in, bound, start)
	case in.isContact && why != messenger.OutcomeBadNumber: // a bad number may be the sender's own
		in.isRefused = true
		receipt, why, err = c.refuseContact(ctx, s, in, bound, why, start)
	}
	c.recordOutcome(log, why, c.clock.Since(start))
	if err != nil {
		return fmt.Errorf("handle update: %w", err)
	}
	c.replyToMessage(s, in, bound, why, receipt)
	return nil
}

// readInbound parses an update and judges it.
func readInbound(raw []byte, botUsername string) (inbound, messenger.Outcome) {
	id, m, err := readUpdate(raw)
	switch {
	case err != nil, id == 0:
		return inbound{}, messenger.OutcomeMalformed
	case m == nil:
		return inbound{}, messenger.OutcomeOtherUpdate
	default:
		return judgeMessage(m, botUsername)
	}
}

// applyInbound passes a message to the domain, and sends what its sender needs next: a prompt for the contact, or the session codes.
func (c *Channel) applyInbound(
	ctx context.Context, s *settings.Settings, in inbound, bound []string, now time.Time,
) (verification.Receipt, messenger.Outcome, error) {
	if c.senders.Exceeded(now, bound[0]) {
		return verification.Receipt{}, messenger.OutcomeLimited, nil
	}
	receipt, cause := c.passToService(ctx, s, in, bound)
	became, err := messenger.OutcomeOf(receipt, cause)
	if became == messenger.OutcomeContentRefused {
		// Never met with a message. If it were, it would hold up everything behind it for a day.
		c.log.Error(cause, "Telegram update dropped")
		return receipt, became, nil
	}
	switch became {
	case messenger.OutcomeNeedContact:
		became, err = c.promptForContact(ctx, s, in, receipt.Request)
	case messenger.OutcomeProven:
		became, err = c.giveSessionCodes(ctx, s, in, &receipt.Request)
	default: // it is replied to later, if at all
	}
	if err != nil {
		return receipt, became, err
	}
	// Only now: a message that is delivered again because we failed counts once.
	c.senders.Count(now, bound[0])
	return receipt, became, nil
}

// refuseContact passes on that the sender shared a contact that never counts. It names the request that the sender was asked about.
func (c *Channel) refuseContact(
	ctx context.Context, s *settings.Settings, in inbound, bound []string, refused messenger.Outcome, now time.Time,
) (receipt verification.Receipt, came messenger.Outcome, err error) {
	if c.senders.Exceeded(now, bound[0]) {
		return receipt, messenger.OutcomeLimited, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	hint := verification.HintContactRefused
	if refused == messenger.OutcomeAnonymousNumber {
		hint = verification.HintNumberAnonymous
	}
	evidence := verification.Evidence{Method: verification.Telegram, SentAt: in.sentAt}
	for _, binding := range bound {
		receipt, err = c.service.RefuseContact(ctx, binding, evidence, hint, s.EventKinds())
		if err != nil || receipt.Outcome != verification.OutcomeUnknown {
			break
		}
	}
	if came, err = messenger.OutcomeOfRefusal(refused, receipt, err); err != nil {
		return receipt, came, fmt.Errorf("refuse contact: %w", err)
	}
	c.senders.Count(now, bound[0])
	return receipt, came, nil
}

func (c *Channel) passToService(
	ctx context.Context, s *settings.Settings, in inbound, bound []string,
) (receipt verification.Receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	evidence := verification.Evidence{Method: verification.Telegram, Sender: in.number, SentAt: in.sentAt, PromptedAt: in.promptedAt}
	switch {
	case in.isNotMe:
		return c.declineProven(ctx, s, evidence, bound)
	case !in.isContact:
		return c.service.Receive(ctx, verification.Message{Evidence: evidence, Text: in.text, Binding: bound[0]}, s.EventKinds())
	}
	for _, binding := range bound {
		receipt, err = c.service.ReceiveContact(ctx, binding, evidence, s.EventKinds())
		if err != nil {
			return receipt, fmt.Errorf("receive contact: %w", err)
		}
		if receipt.Outcome != verification.OutcomeUnknown {
			break
		}
	}
	return receipt, nil
}

// promptForContact asks for the sender's contact, in the name that the request was made under.
func (c *Channel) promptForContact(
	ctx context.Context, s *settings.Settings, in inbound, request verification.Request,
) (messenger.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, promptTimeout)
	defer cancel()
	keyboard := Keyboard{Contact: s.TextsIn(request.Locale).TelegramButton}
	return c.replies.Prompt(ctx, messenger.OutcomeNeedContact, c.replyWith(s, in, shareText(s, &request), keyboard))
}

// recordOutcome counts and logs an update.
func (c *Channel) recordOutcome(log logr.Logger, became messenger.Outcome, took time.Duration) {
	c.metrics.recordUpdate(became, took)
	switch became {
	case messenger.OutcomeVerified, messenger.OutcomeProven, messenger.OutcomeDeclined:
		log.Info("Telegram message handled", "outcome", string(became))
	default:
		log.V(1).Info("Telegram message handled", "outcome", string(became))
	}
}
