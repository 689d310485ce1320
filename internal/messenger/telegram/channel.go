package telegram

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Options are what a Channel is made of.
type Options struct {
	// Settings returns the current settings of the project; never nil. Required.
	Settings func() *settings.Settings
	// Service is the project's domain over its store. Required.
	Service *verification.Service
	// Client calls the Bot API. Required.
	Client *Client
	// Clock tells the time; the real one if nil. Timers are always real.
	Clock clock.PassiveClock
	// Log gets what became of messages. Its zero value logs nothing.
	Log logr.Logger
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Channel takes the messages to a project's bot. It is safe for concurrent use. Every replica has one: its Hook takes
// what Telegram posts, its NewPoller fetches where one replica is to, and Start sends the replies of both.
type Channel struct {
	settings func() *settings.Settings
	service  *verification.Service
	client   *Client
	clock    clock.PassiveClock
	log      logr.Logger
	metrics  *metrics

	replies   *messenger.ReplyQueue
	strangers *messenger.StrangerLimiter
	senders   *messenger.SenderLimiter
}

// New returns a channel, with its metrics registered.
func New(o Options) (*Channel, error) {
	if o.Settings == nil || o.Service == nil || o.Client == nil {
		return nil, errors.New("a Telegram channel needs Settings, Service and Client")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Channel{
		settings: o.Settings, service: o.Service, client: o.Client, clock: o.Clock, log: o.Log,
		metrics: newMetrics(), replies: messenger.NewReplyQueue(),
		strangers: messenger.NewStrangerLimiter(), senders: messenger.NewSenderLimiter(),
	}
	if o.Registerer != nil {
		if err := c.metrics.register(o.Registerer); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return c, nil
}

// Start sends replies until ctx ends, and then those that wait already, for a few seconds.
func (c *Channel) Start(ctx context.Context) error { return c.replies.Start(ctx) }

// NeedLeaderElection says that every replica sends the replies to what it received.
func (c *Channel) NeedLeaderElection() bool { return false }

// promptError says that the request is bound and the sender does not know what to do next.
type promptError struct{ error }

func (e promptError) Unwrap() error { return e.error }

// receive does what an update asks for, and survives it. An error means that it is to be delivered again: nothing is known
// to be stored, or, if it is a promptError, the user was not asked for the contact. An update that met a bug once will meet
// it again, and hold up what comes after it, so it is acknowledged. s.Telegram is not nil.
func (c *Channel) receive(ctx context.Context, log logr.Logger, s *settings.Settings, raw []byte) (err error) {
	defer func() {
		if value := recover(); value != nil {
			c.metrics.updates.WithLabelValues(string(panicked)).Inc()
			log.Error(panicError(value), "telegram update dropped")
			err = nil
		}
	}()
	return c.receiveOnce(ctx, log, s, raw)
}

// panicError describes a panic by where it happened. Its value may be anything, a part of the message too, so only the
// runtime's own are told.
func panicError(value any) error {
	if err, ok := value.(runtime.Error); ok {
		return fmt.Errorf("panic: %w\n%s", err, debug.Stack())
	}
	return fmt.Errorf("panic: %T\n%s", value, debug.Stack())
}

func (c *Channel) receiveOnce(ctx context.Context, log logr.Logger, s *settings.Settings, raw []byte) error {
	start := c.clock.Now()
	in, why := read(raw, s.Telegram.BotUsername)
	var (
		bound []string
		err   error
	)
	if in.sender != 0 {
		bound = bindings(s, in.sender, start)
		if len(bound) == 0 { // The token went away since the update was authentic.
			return ErrNoToken
		}
	}
	var receipt verification.Receipt
	if why == "" {
		receipt, why, err = c.apply(ctx, s, in, bound, start)
	}
	c.observe(log, why, c.clock.Since(start))
	if err != nil {
		return err
	}
	c.reply(s, in, bound, why, receipt)
	return nil
}

// read takes an update apart and judges it.
func read(raw []byte, botUsername string) (inbound, outcome) {
	id, m, err := readUpdate(raw)
	switch {
	case err != nil, id == 0:
		return inbound{}, refusedMalformed
	case m == nil:
		return inbound{}, refusedKind
	default:
		return judge(m, botUsername)
	}
}

// apply tells the domain, and prompts for the contact where it wants one.
func (c *Channel) apply(
	ctx context.Context, s *settings.Settings, in inbound, bound []string, now time.Time,
) (verification.Receipt, outcome, error) {
	if c.senders.Exceeded(now, bound[0]) {
		return verification.Receipt{}, refusedLimited, nil
	}
	receipt, err := c.tell(ctx, s, in, bound)
	switch {
	case errors.Is(err, verification.ErrContent):
		// Never met with a message. If it were, it would hold up everything behind it for a day.
		c.log.Error(err, "telegram update dropped")
		return receipt, refusedByStore, nil
	case err != nil:
		return receipt, failedStore, err
	}
	became := outcomes[receipt.Outcome]
	if became == outcomeNeedContact {
		if became, err = c.prompt(ctx, s, in, receipt.Request); err != nil {
			return receipt, became, err
		}
	}
	// Only now: a message that is delivered again because we failed counts once.
	c.senders.Count(now, bound[0])
	return receipt, became, nil
}

func (c *Channel) tell(
	ctx context.Context, s *settings.Settings, in inbound, bound []string,
) (receipt verification.Receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	eventWanted := s.EventPolicy() != verification.EventsOff
	evidence := verification.Evidence{Method: verification.Telegram, Sender: in.number, SentAt: in.sentAt, PromptedAt: in.promptedAt}
	if !in.isContact {
		return c.service.Receive(ctx, verification.Message{Evidence: evidence, Text: in.text, Binding: bound[0]}, eventWanted)
	}
	for _, binding := range bound {
		receipt, err = c.service.ReceiveContact(ctx, binding, evidence, eventWanted)
		if err != nil || receipt.Outcome != verification.OutcomeUnknown {
			return receipt, err
		}
	}
	return receipt, nil
}

// prompt asks for the sender's contact, in the name that the request was made under. Where the chat cannot be written to, as
// when the user blocked the bot meanwhile, trying again would change nothing.
func (c *Channel) prompt(
	ctx context.Context, s *settings.Settings, in inbound, request verification.Request,
) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, promptTimeout)
	defer cancel()
	err := c.client.SendMessage(ctx, s.Telegram, in.sender, shareText(s, &request), KeyboardContact)
	c.metrics.reply(err)
	switch {
	case err == nil:
		return outcomeNeedContact, nil
	case errors.Is(err, ErrRefused):
		return givenUpPrompt, nil
	default:
		return failedPrompt, promptError{err}
	}
}

// observe counts an update, and logs it: verified ones as a change, the others as decisions.
func (c *Channel) observe(log logr.Logger, became outcome, took time.Duration) {
	c.metrics.update(became, took)
	if became == outcomeVerified {
		log.Info("telegram message", "outcome", string(became))
		return
	}
	log.V(1).Info("telegram message", "outcome", string(became))
}
