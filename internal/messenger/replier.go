package messenger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// ReplyPolicy is how the outcome of a message is answered.
type ReplyPolicy int

// The policies.
const (
	NoReply ReplyPolicy = iota
	// ReplyToUser answers a user about a request.
	ReplyToUser
	// ReplyToStranger answers a sender whose message means nothing to us, which StrangerLimiter makes rare.
	ReplyToStranger
)

// allowsReply reports whether the reply to an outcome is sent.
func allowsReply(p settings.SendPolicy, o Outcome) bool {
	return p == settings.SendAlways || p == settings.SendOnTrouble && o != OutcomeVerified
}

// PolicyOf returns how an outcome is answered.
func PolicyOf(o Outcome) ReplyPolicy {
	switch o {
	case OutcomeVerified, OutcomeWrongNumber, OutcomeTooLate, OutcomeTextChanged, OutcomeTapRefused, OutcomeNumberHidden, OutcomeDeclined:
		return ReplyToUser
	case OutcomeProven, OutcomeNeedContact, OutcomeNeedConfirmation, OutcomeNeedEcho, OutcomeEchoLimited, OutcomeNoPrompt,
		OutcomeLimited, OutcomeContentRefused:
		return NoReply
	default:
		return ReplyToStranger
	}
}

const (
	// replyPause is how long no user gets the same reply again.
	replyPause = 24 * time.Hour
	// maxReplied bounds the memory of that.
	maxReplied = 8192
)

// Replier answers the users of a messenger, best effort and once. Nothing is sent before Start.
type Replier struct {
	*ReplyQueue

	strangers *StrangerLimiter
	replied   *Cooldown
	clock     clock.PassiveClock
	log       logr.Logger
	metrics   *Metrics
}

// NewReplier returns a replier without a memory of replies.
func NewReplier(c clock.PassiveClock, log logr.Logger, metrics *Metrics) *Replier {
	r := &Replier{
		strangers: NewStrangerLimiter(), replied: NewCooldown(maxReplied, replyPause), clock: c, log: log, metrics: metrics,
	}
	r.ReplyQueue = NewReplyQueue(func(ctx context.Context, reply SendFunc) {
		if err := r.sendCounted(ctx, reply); err != nil {
			log.Info("reply not sent", "reason", err.Error())
		}
	})
	return r
}

// PolicyOf returns how the outcome of a message that was sent at sentAt is answered in a project with that policy. A reply that is left
// out is counted.
func (r *Replier) PolicyOf(send settings.SendPolicy, o Outcome, sentAt time.Time) ReplyPolicy {
	policy := PolicyOf(o)
	switch {
	case policy == NoReply:
	case !allowsReply(send, o):
		policy = NoReply
		r.countReply(ReplySuppressed)
	case isBacklog(o, r.clock.Now().Sub(sentAt)):
		policy = NoReply
		r.countReply(ReplyBacklog)
	}
	return policy
}

// isBacklog reports whether a message of that age was for no request that is known, and can be for none that lives: it waited at the
// platform, perhaps since before the account was ours. Its sender would be surprised by an answer. The request of a code for another
// messenger is stored.
func isBacklog(o Outcome, age time.Duration) bool {
	return age > verification.MaxTTL && o != OutcomeWrongMethod && (o == OutcomeTapRefused || PolicyOf(o) == ReplyToStranger)
}

// Reply answers a user.
func (r *Replier) Reply(send SendFunc) bool {
	added := r.Add(send)
	if !added {
		r.countReply(ReplyDropped)
	}
	return added
}

// ReplyOnce answers a user, unless the same words were passed within a day.
func (r *Replier) ReplyOnce(send SendFunc, words ...string) {
	if !r.replied.TryStart(r.clock.Now(), words...) {
		r.SkipRepeated()
		return
	}
	if !r.Reply(send) {
		r.replied.Undo(words...)
	}
}

// SkipRepeated counts a reply that is not sent because there was one.
func (r *Replier) SkipRepeated() { r.countReply(ReplyRepeated) }

// ReplyToStranger answers a sender whose message means nothing to us, if it is the sender's turn. key identifies the sender.
func (r *Replier) ReplyToStranger(send SendFunc, key string) {
	switch r.strangers.Decide(r.clock.Now(), key) {
	case StrangerAnswered:
		r.SkipRepeated()
	case StrangersLimited:
		r.countReply(ReplyLimited)
	case AnswerStranger:
		if !r.Reply(send) {
			r.strangers.Undo(key)
		}
	}
}

// ErrPrompt is that a request waits for its user, who does not know what to do next.
var ErrPrompt = errors.New("send prompt")

// Prompt asks a user for what a request needs, and returns asked, or OutcomeNoPrompt if the platform will never deliver it. After
// ErrPrompt the message has to be delivered again.
func (r *Replier) Prompt(ctx context.Context, asked Outcome, send SendFunc) (Outcome, error) {
	err := r.sendCounted(ctx, send)
	switch {
	case err == nil:
		return asked, nil
	case isUndeliverable(err):
		r.log.Info("prompt refused, will not retry", "reason", err.Error())
		return OutcomeNoPrompt, nil
	default:
		return OutcomePromptFailed, fmt.Errorf("%w: %w", ErrPrompt, err)
	}
}

func (r *Replier) countReply(result string) { r.metrics.Replies.WithLabelValues(result).Inc() }

func (r *Replier) sendCounted(ctx context.Context, send SendFunc) error {
	err := send(ctx)
	switch {
	case err == nil:
		r.countReply(ReplySent)
	case isUndeliverable(err):
		r.countReply(ReplyRefused)
	default:
		r.countReply(ReplyFailed)
	}
	return err
}

// isUndeliverable reports whether the platform would refuse the same message to the same user for ever.
func isUndeliverable(err error) bool {
	failure, ok := errors.AsType[interface {
		error
		Undeliverable() bool
	}](err)
	return ok && failure.Undeliverable()
}
