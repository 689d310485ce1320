package projectstatus

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/loop"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// silencePeriod is how often the store is asked for silence, less some jitter.
	silencePeriod = time.Minute
	// silenceTimeout bounds one question.
	silenceTimeout = 10 * time.Second
	// expiriesToReport is how many requests must have expired unheard: one or two users may have changed their minds.
	expiriesToReport = 3
)

// silence decides whether a project is silent. A stored request shows a message for as long as it is retained, and expired requests
// are stored for longer than that, so what the store no longer shows is remembered.
type silence struct {
	began time.Time // of the memory
	heard time.Time // the last message that was seen in it
}

// silenceVerdict is what to do about the condition Silent.
type silenceVerdict int

const (
	leaveSilence silenceVerdict = iota // too little is known
	reportSilence
	endSilence
)

// judgeSilence returns the verdict at now on what became of requests within silentAfter. Requests are kept for retention once they ended.
func (s *silence) judgeSilence(a verification.Activity, now time.Time, silentAfter, retention time.Duration) silenceVerdict {
	if a.LastHeard.After(s.heard) {
		s.heard = a.LastHeard
	}
	remembered := now.Sub(s.began) >= silentAfter-retention
	switch {
	case a.Expired == 0, !s.heard.Before(now.Add(-silentAfter)):
		return endSilence
	case a.Expired >= expiriesToReport && remembered:
		return reportSilence
	default:
		return leaveSilence
	}
}

// watchSilence keeps the condition Silent current until ctx ends.
func (c *Controller) watchSilence(ctx context.Context) error {
	changes, cancel := c.Projects.Subscribe()
	defer cancel()
	known := silence{began: c.StoreClock.Now()}
	return loop.Run(ctx, loop.Options{
		Reconcile: func(ctx context.Context) (time.Duration, error) { return c.checkSilence(ctx, &known), nil },
		Changes:   []<-chan struct{}{changes}, MinGap: silencePeriod, Log: c.Log,
	})
}

// checkSilence asks the store once, and returns when to ask again; zero if only a change can make a difference.
func (c *Controller) checkSilence(ctx context.Context, known *silence) time.Duration {
	s := c.Projects.Current()
	if s.WhatsApp == nil {
		c.Board.Withdraw(verifyv1.ConditionSilent)
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	now := c.StoreClock.Now()
	activity, err := c.Activity(ctx, now.Add(-s.WhatsApp.SilentAfter))
	if err != nil { // what the store does not answer, StorageReady reports
		c.Log.V(1).Info("read activity failed, will retry", "error", err.Error())
		return loop.Jitter(silencePeriod)
	}
	switch known.judgeSilence(activity, now, s.WhatsApp.SilentAfter, s.Retention) {
	case reportSilence:
		c.Board.Set(silentCondition(s))
	case endSilence:
		c.Board.Withdraw(verifyv1.ConditionSilent)
	case leaveSilence:
	}
	return loop.Jitter(silencePeriod)
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
