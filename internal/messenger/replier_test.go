package messenger

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

type refusal struct{ error }

func (refusal) Undeliverable() bool { return true }

func newReplier(t *testing.T) (r *Replier, counted func(result string) float64) {
	t.Helper()
	metrics, err := NewMetrics(verification.Telegram, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return NewReplier(clocktesting.NewFakePassiveClock(begin), logr.Discard(), metrics), func(result string) float64 {
		return testutil.ToFloat64(metrics.Replies.WithLabelValues(result))
	}
}

func TestReplier_results(t *testing.T) {
	g := NewWithT(t)
	r, counted := newReplier(t)
	for _, err := range []error{nil, errors.New("away"), refusal{errors.New("blocked")}} {
		r.Reply(func(context.Context) error { return err })
	}
	sent := func(context.Context) error { return nil }
	for range 3 {
		r.ReplyOnce(sent, "user", "request")
		r.ReplyToStranger(sent, "stranger")
	}
	r.ReplyToStranger(sent, "another")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(r.Start(ctx)).To(Succeed())
	for result, want := range map[string]float64{
		ReplySent: 3, ReplyFailed: 1, ReplyRefused: 1, ReplyRepeated: 4, ReplyLimited: 1, ReplyDropped: 0,
	} {
		g.Expect(counted(result)).To(Equal(want), result)
	}
}

// TestReplier_dropped: a reply that found no room in the queue may be sent later.
func TestReplier_dropped(t *testing.T) {
	g := NewWithT(t)
	r, counted := newReplier(t)
	sent := func(context.Context) error { return nil }
	for range ReplyQueueSize {
		g.Expect(r.Reply(sent)).To(BeTrue())
	}
	r.ReplyOnce(sent, "user", "request")
	r.ReplyOnce(sent, "user", "request")
	r.ReplyToStranger(sent, "stranger")
	g.Expect(counted(ReplyDropped)).To(BeEquivalentTo(3))
	g.Expect(r.strangers.TryStart(begin, "stranger")).To(BeTrue())
}

func TestReplier_prompt(t *testing.T) {
	g := NewWithT(t)
	r, _ := newReplier(t)
	away := errors.New("away")
	for err, want := range map[error]Outcome{
		nil: OutcomeNeedContact, refusal{errors.New("blocked")}: OutcomeNoPrompt, away: OutcomePromptFailed,
	} {
		became, failed := r.Prompt(t.Context(), OutcomeNeedContact, func(context.Context) error { return err })
		g.Expect(became).To(Equal(want))
		g.Expect(errors.Is(failed, away)).To(Equal(want == OutcomePromptFailed))
	}
}

func TestPolicyOf(t *testing.T) {
	g := NewWithT(t)
	for o, want := range map[Outcome]ReplyPolicy{
		OutcomeVerified: ReplyToUser, OutcomeTooLate: ReplyToUser, OutcomeWrongNumber: ReplyToUser,
		OutcomeNeedContact: NoReply, OutcomeLimited: NoReply, OutcomeNoPrompt: NoReply,
		OutcomeNoCode: ReplyToStranger, OutcomeUnknownCode: ReplyToStranger, OutcomeForwarded: ReplyToStranger,
	} {
		g.Expect(PolicyOf(o)).To(Equal(want), string(o))
	}
}

// TestReplier_policyOf: a project's policy suppresses replies and nothing else, and counts them.
func TestReplier_policyOf(t *testing.T) {
	for policy, want := range map[settings.SendPolicy]map[Outcome]ReplyPolicy{
		settings.SendAlways:    {OutcomeVerified: ReplyToUser, OutcomeWrongNumber: ReplyToUser, OutcomeNoCode: ReplyToStranger, OutcomeLimited: NoReply},
		settings.SendOnTrouble: {OutcomeVerified: NoReply, OutcomeWrongNumber: ReplyToUser, OutcomeNoCode: ReplyToStranger, OutcomeLimited: NoReply},
		settings.SendNever:     {OutcomeVerified: NoReply, OutcomeWrongNumber: NoReply, OutcomeNoCode: NoReply, OutcomeLimited: NoReply},
	} {
		g := NewWithT(t)
		r, counted := newReplier(t)
		suppressed := 0.0
		for o, answered := range want {
			g.Expect(r.PolicyOf(policy, o, begin)).To(Equal(answered), "policy %d: %s", policy, o)
			if answered != PolicyOf(o) {
				suppressed++
			}
		}
		g.Expect(counted(ReplySuppressed)).To(Equal(suppressed))
	}
}

// TestReplier_backlog: strangers get no answer to what waited at the platform for longer than any request lives. Users of stored
// requests do.
func TestReplier_backlog(t *testing.T) {
	const old, fresh = verification.MaxTTL + time.Second, verification.MaxTTL
	for o, want := range map[Outcome]map[time.Duration]ReplyPolicy{
		OutcomeNoCode:      {old: NoReply, fresh: ReplyToStranger, -time.Hour: ReplyToStranger, 7 * 24 * time.Hour: NoReply},
		OutcomeUnknownCode: {old: NoReply, fresh: ReplyToStranger},
		OutcomeOtherType:   {old: NoReply, fresh: ReplyToStranger},
		OutcomeForwarded:   {old: NoReply, fresh: ReplyToStranger},
		OutcomeWrongMethod: {old: ReplyToStranger, fresh: ReplyToStranger},
		OutcomeTapRefused:  {old: NoReply, fresh: ReplyToUser},
		OutcomeTooLate:     {old: ReplyToUser, fresh: ReplyToUser, 7 * 24 * time.Hour: ReplyToUser},
		OutcomeVerified:    {old: ReplyToUser},
		OutcomeDeclined:    {old: ReplyToUser},
	} {
		g := NewWithT(t)
		for age, answered := range want {
			r, counted := newReplier(t)
			g.Expect(r.PolicyOf(settings.SendAlways, o, begin.Add(-age))).To(Equal(answered), "%s, %s old", o, age)
			g.Expect(counted(ReplyBacklog) > 0).To(Equal(answered == NoReply), "%s, %s old", o, age)
			g.Expect(r.PolicyOf(settings.SendNever, o, begin.Add(-age))).To(Equal(NoReply))
			g.Expect(counted(ReplySuppressed)).To(Equal(1.0), "what the project does not want counts as that")
		}
	}
}
