package projectstatus

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestSilence_judge(t *testing.T) {
	const silentAfter = time.Hour
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	unheard := func(expired int) verification.Activity { return verification.Activity{Expired: expired} }
	heardBefore := func(expired int, ago time.Duration) verification.Activity {
		return verification.Activity{Expired: expired, LastHeard: at.Add(-ago)}
	}
	for name, c := range map[string]struct {
		watched   time.Duration // since the term began
		before    verification.Activity
		activity  verification.Activity
		retention time.Duration
		want      silenceVerdict
	}{
		"no requests":                             {0, unheard(0), unheard(0), time.Hour, endSilence},
		"two expired":                             {0, unheard(0), unheard(2), time.Hour, leaveSilence},
		"three expired":                           {0, unheard(0), unheard(3), time.Hour, reportSilence},
		"three expired, and a message":            {0, unheard(0), heardBefore(3, time.Minute), time.Hour, endSilence},
		"a message just within the time":          {0, unheard(0), heardBefore(3, silentAfter), time.Hour, endSilence},
		"a message that is no longer stored":      {time.Hour, heardBefore(0, time.Minute), unheard(3), time.Minute, endSilence},
		"the same, before that time":              {time.Hour, heardBefore(0, silentAfter+1), unheard(3), time.Minute, reportSilence},
		"too little was stored when it began":     {54 * time.Minute, unheard(0), unheard(3), 5 * time.Minute, leaveSilence},
		"what was not stored is remembered":       {55 * time.Minute, unheard(0), unheard(3), 5 * time.Minute, reportSilence},
		"too little was stored, and no request":   {0, unheard(0), unheard(0), 5 * time.Minute, endSilence},
		"too little was stored, and a message":    {0, unheard(0), heardBefore(3, time.Minute), 5 * time.Minute, endSilence},
		"an earlier message is seen after others": {time.Hour, heardBefore(0, time.Minute), heardBefore(3, 50*time.Minute), time.Hour, endSilence},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := silence{began: at.Add(-c.watched)}
			s.recordMessage(c.before.LastHeard)
			s.recordMessage(c.activity.LastHeard)
			g.Expect(s.judgeSilence(c.activity.Expired, c.activity.Expired, at, silentAfter, c.retention)).To(Equal(c.want))
		})
	}
}

// TestSilence_remembersExpiredRequests until a message comes, while the store forgets them.
func TestSilence_remembersExpiredRequests(t *testing.T) {
	g := NewWithT(t)
	begin := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	s := newSilence(begin, time.Hour)
	g.Expect(s.countedTo).To(Equal(at(-60)))
	g.Expect(s.countUnheard(1, at(0), time.Hour)).To(Equal(1))
	g.Expect(s.countedTo).To(Equal(at(0)))
	g.Expect(s.countUnheard(1, at(29), time.Hour)).To(Equal(2))
	g.Expect(s.countUnheard(1, at(30), time.Hour)).To(Equal(2), "the same request")
	g.Expect(s.countUnheard(1, at(31), time.Hour)).To(Equal(3), "another one")
	g.Expect(s.judgeSilence(1, 3, at(31), time.Hour, time.Hour)).To(Equal(reportSilence))
	g.Expect(s.judgeSilence(0, 3, at(95), time.Hour, time.Hour)).To(Equal(endSilence), "no request expired for an hour")
	s.recordMessage(at(40))
	s.recordMessage(at(35))
	g.Expect(s.countedTo).To(Equal(at(40)), "what expired before a message does not count")
	g.Expect(s.countUnheard(1, at(45), time.Hour)).To(Equal(1))
}

// withSilence has the project report silence after an hour, with requests that are kept for as long.
func withSilence(s *settings.Settings) {
	s.WhatsApp = &settings.WhatsApp{SilentAfter: time.Hour}
	s.Retention = time.Hour
}

func (w *fakeServer) expireRequests(requests int) {
	for range requests {
		w.expired = append(w.expired, time.Now())
	}
}

// silentCondition returns the condition Silent; nil if the project has none.
func (w *fakeServer) silentCondition() *metav1.Condition {
	for _, c := range w.stored.Status.Conditions {
		if c.Type == verifyv1.ConditionSilent {
			return &c
		}
	}
	return nil
}

func TestRun_silenceBeginsAndEnds(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withSilence(w.current)
		w.begin()
		w.expireRequests(2)
		pass(2 * time.Minute)
		w.Expect(w.silentCondition()).To(BeNil(), "two users who changed their minds")
		w.expireRequests(1)
		pass(2 * time.Minute)
		w.Expect(*w.silentCondition()).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", verifyv1.ReasonNoMessages), HaveField("ObservedGeneration", BeEquivalentTo(7)),
			HaveField("Message", And(ContainSubstring("has come for 1h or longer"), ContainSubstring("subscription"), ContainSubstring("callback"), ContainSubstring("app secret"))),
		))
		w.Expect(w.events).To(Equal([]string{"Silent NoMessages bad"}))
		w.heard = append(w.heard, time.Now())
		pass(2 * time.Minute)
		w.Expect(w.silentCondition()).To(BeNil())
		w.expireRequests(5)
		pass(50 * time.Minute)
		w.Expect(w.silentCondition()).To(BeNil(), "within the hour a message came")
		pass(15 * time.Minute)
		w.Expect(w.silentCondition()).To(BeNil(), "what expired then is no longer recent")
	})
}

// TestRun_silenceOfASmallProject: the store never shows more than two of its expired requests at once.
func TestRun_silenceOfASmallProject(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withSilence(w.current)
		w.kept = time.Hour
		w.heard = append(w.heard, time.Now())
		w.begin()
		expire := func(requests int) {
			for range requests {
				w.expireRequests(1)
				pass(35 * time.Minute)
			}
		}
		expire(2)
		w.Expect(w.silentCondition()).To(BeNil(), "two users who changed their minds")
		expire(1)
		w.Expect(w.silentCondition()).NotTo(BeNil())
		expire(5)
		w.Expect(w.silentCondition()).NotTo(BeNil())
		w.Expect(w.events).To(HaveLen(1), "it does not come and go")

		w.heard = append(w.heard, time.Now())
		pass(2 * time.Minute)
		w.Expect(w.silentCondition()).To(BeNil())
		pass(time.Hour)
		expire(2)
		w.Expect(w.silentCondition()).To(BeNil(), "what expired before the message is forgotten")
		expire(1)
		w.Expect(w.silentCondition()).NotTo(BeNil())
		expire(1)

		w.board.Withdraw(verifyv1.ConditionSilent)
		pass(quiet)
		w.takeover()
		expire(1)
		w.Expect(w.silentCondition()).To(BeNil(), "another leader remembers what the store shows of an hour")
	})
}

func TestRun_silenceEndsWithoutRequests(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withSilence(w.current)
		w.expireRequests(3)
		w.begin()
		w.Expect(w.silentCondition()).NotTo(BeNil())
		pass(30 * time.Minute)
		w.expireRequests(1)
		pass(40 * time.Minute)
		w.Expect(w.silentCondition()).NotTo(BeNil(), "one request expired within the hour")
		writes := len(w.writes)
		pass(25 * time.Minute)
		w.Expect(w.silentCondition()).To(BeNil())
		w.Expect(w.writes).To(HaveLen(writes+1), "one write for the end, none in between")
	})
}

func TestRun_silenceIsKeptByAnotherLeader(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withSilence(w.current)
		w.expireRequests(3)
		w.begin()
		began := w.silentCondition().LastTransitionTime
		w.takeover()
		w.Expect(w.silentCondition().LastTransitionTime).To(Equal(began))
		pass(30 * time.Minute)
		w.expired = w.expired[:1]
		w.takeover()
		pass(time.Minute)
		w.Expect(w.silentCondition()).NotTo(BeNil(), "one expired request ends nothing")
		w.Expect(w.writes).To(BeEmpty())
		w.Expect(w.events).To(BeEmpty())
	})
}

func TestRun_silenceOfAStoreThatDoesNotAnswer(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withSilence(w.current)
		w.expireRequests(3)
		w.begin()
		w.unknown = errors.New("the store does not answer")
		w.heard = append(w.heard, time.Now())
		pass(10 * time.Minute)
		w.Expect(w.silentCondition()).NotTo(BeNil(), "nothing is known")
		w.unknown = nil
		pass(time.Minute)
		w.Expect(w.silentCondition()).To(BeNil())
	})
}

// TestRun_silenceAsksOnceAMinute, however often the settings change, and never without WhatsApp.
func TestRun_silenceAsksOnceAMinute(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withSilence(w.current)
		w.expireRequests(3)
		w.begin()
		w.asked = 0
		for range 600 {
			w.setSettings(func(*settings.Settings) {})
			pass(time.Second)
		}
		w.Expect(w.asked).To(BeNumerically("~", 10, 3))
		w.Expect(w.silentCondition()).NotTo(BeNil())
		w.setSettings(func(s *settings.Settings) { s.WhatsApp = nil })
		pass(2 * time.Minute)
		w.Expect(w.silentCondition()).To(BeNil())
		w.asked = 0
		pass(day)
		w.Expect(w.asked).To(BeZero())
		w.setSettings(withSilence)
		pass(2 * time.Minute)
		w.Expect(w.asked).NotTo(BeZero())
	})
}
