package projectstatus

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/settings"
)

const (
	// silencePeriod is how often the store is asked for silence, less some jitter.
	silencePeriod = time.Minute
	// silenceTimeout bounds one question.
	silenceTimeout = 10 * time.Second
	// expiriesToReport is how many requests must have expired unheard: one or two users may have changed their minds.
	expiriesToReport = 3
)

// silence decides whether a project is silent. Messages and expired requests that the store no longer shows are remembered, so that
// a project with few requests is found, too.
type silence struct {
	began time.Time // of the memory
	heard time.Time // the last message that was seen in it
	// counted is how many requests expired after the last message and before countedTo.
	counted   int
	countedTo time.Time
}

func newSilence(now time.Time, silentAfter time.Duration) *silence {
	return &silence{began: now, countedTo: now.Add(-silentAfter)}
}

// recordMessage remembers the time of the last message. What expired before it no longer counts.
func (s *silence) recordMessage(last time.Time) {
	if !last.After(s.heard) {
		return
	}
	s.heard, s.counted = last, 0
	if last.After(s.countedTo) {
		s.countedTo = last
	}
}

// countUnheard returns how many requests expired since the last message, given how many did since countedTo. It remembers them
// before the store may delete them, after retention.
func (s *silence) countUnheard(expired int, now time.Time, retention time.Duration) int {
	unheard := s.counted + expired
	if now.Sub(s.countedTo) >= retention/2 {
		s.counted, s.countedTo = unheard, now
	}
	return unheard
}

// silenceVerdict is what to do about the condition Silent.
type silenceVerdict int

const (
	leaveSilence silenceVerdict = iota // too little is known
	reportSilence
	endSilence
)

// judgeSilence returns the verdict at now, given how many requests expired within silentAfter, and how many since the last message.
// Requests are kept for retention once they ended.
func (s *silence) judgeSilence(recent, unheard int, now time.Time, silentAfter, retention time.Duration) silenceVerdict {
	remembered := now.Sub(s.began) >= silentAfter-retention
	switch {
	case recent == 0, !s.heard.Before(now.Add(-silentAfter)):
		return endSilence
	case max(recent, unheard) >= expiriesToReport && remembered:
		return reportSilence
	default:
		return leaveSilence
	}
}

// watchSilence keeps the condition Silent current until ctx ends.
func (c *Controller) watchSilence(ctx context.Context) error {
	changes, cancel := c.Projects.Subscribe()
	defer cancel()
	var known *silence
	return controllers.Run(ctx, controllers.Options{
		Reconcile: func(ctx context.Context) (time.Duration, error) {
			s := c.Projects.Current()
			if s.WhatsApp == nil {
				c.Board.Withdraw(verifyv1.ConditionSilent)
				known = nil
				return 0, nil
			}
			if known == nil {
				known = newSilence(c.StoreClock.Now(), s.WhatsApp.SilentAfter)
			}
			return c.checkSilence(ctx, s, known), nil
		},
		Changes: []<-chan struct{}{changes}, MinGap: silencePeriod, Log: c.Log,
	})
}

// checkSilence asks the store, and returns when to ask again.
func (c *Controller) checkSilence(ctx context.Context, s *settings.Settings, known *silence) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	now := c.StoreClock.Now()
	recent, unheard, err := c.countExpired(ctx, s, known, now)
	if err != nil { // what the store does not answer, StorageReady reports
		c.Log.V(1).Info("read activity failed, will retry", "error", err.Error())
		return controllers.Jitter(silencePeriod)
	}
	switch known.judgeSilence(recent, unheard, now, s.WhatsApp.SilentAfter, s.Retention) {
	case reportSilence:
		c.Board.Set(silentCondition(s))
	case endSilence:
		c.Board.Withdraw(verifyv1.ConditionSilent)
	case leaveSilence:
	}
	return controllers.Jitter(silencePeriod)
}

// countExpired returns how many requests expired within silentAfter, and how many since the last message. The latter is only asked
// for where the former is too low to decide.
func (c *Controller) countExpired(
	ctx context.Context, s *settings.Settings, known *silence, now time.Time,
) (recent, unheard int, err error) {
	activity, err := c.Activity(ctx, now.Add(-s.WhatsApp.SilentAfter))
	if err != nil {
		return 0, 0, fmt.Errorf("count recent: %w", err)
	}
	known.recordMessage(activity.LastHeard)
	recent = activity.Expired
	if recent == 0 || recent >= expiriesToReport {
		return recent, recent, nil
	}
	activity, err = c.Activity(ctx, known.countedTo)
	if err != nil {
		return 0, 0, fmt.Errorf("count since last message: %w", err)
	}
	return recent, known.countUnheard(activity.Expired, now, s.Retention), nil
}

func silentCondition(s *settings.Settings) metav1.Condition {
	condition := conditionTrue(verifyv1.ConditionSilent, verifyv1.ReasonNoMessages, fmt.Sprintf(
		"no WhatsApp message with a code has come for %s or longer, and %d or more requests expired in that time; look at the app's "+
			"subscription to the WhatsApp Business account (see WhatsAppReady), at the callback (does spec.baseURL reach this project?), and at "+
			"the app secret (if it is wrong, every message is refused: phoneproof_callback_requests_total, result unauthorized)",
		verifyv1.DurationOf(s.WhatsApp.SilentAfter), expiriesToReport))
	condition.ObservedGeneration = s.Generation
	return condition
}
