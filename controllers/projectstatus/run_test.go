package projectstatus

import (
	"errors"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var errDown = errors.New("the API server is down")

// day is longer than anything here waits for.
const day = 24 * time.Hour

var missing = []settings.Problem{{Field: "spec.app", Secret: "shop", Key: "app", Reason: settings.ReasonMissing}}

// withWebhook gives the project a receiver.
func withWebhook(s *settings.Settings) {
	s.Webhook = &settings.Webhook{URL: "https://shop.example.com/hook"}
}

func TestRun_aSteadyProjectCostsOneWrite(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretsRead", "StorageReady StorageReachable"}))
		pass(day)
		for range 10 { // what is no news to a condition
			w.stored.Annotations = map[string]string{"at": time.Now().String()}
			w.change()
			w.changes.Notify("settings")
			pass(time.Minute)
		}
		w.Expect(w.writes).To(HaveLen(1))
		w.Expect(w.told).To(BeEmpty(), "all is well")

		w.takeover()
		pass(day)
		w.Expect(w.writes).To(BeEmpty(), "a change of leaders is no news")
	})
}

func TestRun_writesAndTellsEachChangeOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		first := w.stored.Status.Conditions[0].LastTransitionTime
		pass(time.Hour)
		w.set(func(s *settings.Settings) { s.Problems = missing })
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("SecretsReady SecretMissing"))
		w.Expect(w.stored.Status.Conditions[0].LastTransitionTime.Time).To(BeTemporally("~", first.Add(time.Hour), time.Second))
		w.Expect(w.told).To(Equal([]string{"SecretsReady SecretMissing bad"}))
		pass(day)
		w.set(func(s *settings.Settings) { s.Problems = nil })
		pass(quiet)
		w.Expect(w.told).To(Equal([]string{"SecretsReady SecretMissing bad", "SecretsReady SecretsRead"}))
		pass(day)
		w.Expect(w.writes).To(HaveLen(3))
	})
}

func TestRun_aNewGenerationIsWrittenAndNotTold(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		w.set(func(*settings.Settings) {})
		w.board.Set(metav1.Condition{
			Type: verifyv1.ConditionWhatsAppReady, Status: metav1.ConditionTrue, Reason: verifyv1.ReasonRegistered, ObservedGeneration: 8,
		})
		pass(quiet)
		w.Expect(w.writes).To(HaveLen(2), "together with what another loop says about it")
		for _, c := range w.stored.Status.Conditions {
			w.Expect(c.ObservedGeneration).To(BeEquivalentTo(8))
		}
		w.Expect(w.told).To(BeEmpty())
	})
}

func TestRun_theReceiversRecoveryIsToldByAnotherLeader(t *testing.T) {
	inBubble(t, func(w *world) {
		withWebhook(w.current)
		w.begin()
		w.attempts(failed, failed, failed, failed)
		pass(quiet)
		w.Expect(w.told).To(Equal([]string{"WebhookHealthy ReceiverFailing bad"}))
		w.Expect(w.stored.Status.Conditions[2].Message).To(ContainSubstring("(http_500)"))

		w.takeover()
		pass(day)
		w.attempts(timedOut, timedOut, timedOut, timedOut)
		pass(quiet)
		w.Expect(w.told).To(BeEmpty(), "it was told")
		w.Expect(w.writes).To(BeEmpty())

		w.takeover()
		w.attempts(delivered, delivered)
		pass(quiet)
		w.Expect(w.told).To(Equal([]string{"WebhookHealthy NoFailures"}))
		w.attempts(failed, failed, delivered)
		pass(quiet)
		w.Expect(w.writes).To(HaveLen(1))
	})
}

func TestRun_anotherReceiverBeginsAnew(t *testing.T) {
	inBubble(t, func(w *world) {
		withWebhook(w.current)
		w.begin()
		w.attempts(failed, failed, failed)
		pass(quiet)
		w.set(func(s *settings.Settings) { s.Webhook = &settings.Webhook{URL: "https://new.example.com/hook"} })
		pass(quiet)
		w.attempts(failed)
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("WebhookHealthy NoFailures"))
		w.set(func(s *settings.Settings) { s.Webhook = nil })
		pass(quiet)
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretsRead", "StorageReady StorageReachable"}))
		w.Expect(w.told).To(Equal([]string{"WebhookHealthy ReceiverFailing bad", "WebhookHealthy NoFailures"}))
	})
}

func TestRun_storage(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		w.storage = verification.TooManyStored(time.Second)
		pass(defaultStoragePeriod)
		w.Expect(w.conditions()).To(ContainElement("StorageReady StorageReachable"), "one look is not enough")
		pass(looksToBelieve * defaultStoragePeriod / doubtFactor)
		w.Expect(w.conditions()).To(ContainElement("StorageReady StorageFull"))
		w.storage = nil
		pass((looksToBelieve + 1) * defaultStoragePeriod / doubtFactor) // and not defaultStoragePeriod: who waits for it wants to know
		w.Expect(w.told).To(Equal([]string{"StorageReady StorageFull bad", "StorageReady StorageReachable"}))
	})
}

func TestRun_aStoreThatHangsHoldsNothingBack(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set(func(s *settings.Settings) { s.Problems = missing })
		w.storage = errDown
		w.begin()
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretMissing"}), "nothing is known of the store yet")
		pass(looksToBelieve * defaultStoragePeriod / doubtFactor)
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretMissing", "StorageReady StorageUnreachable"}))
	})
}

// TestRun_aWatchThatLags: neither the first look of a term nor what follows a write may go by an old state.
func TestRun_aWatchThatLags(t *testing.T) {
	inBubble(t, func(w *world) {
		withWebhook(w.current)
		w.begin()
		w.lagging = true
		w.attempts(failed, failed, failed)
		pass(quiet)
		w.Expect(w.told).To(HaveLen(1))
		w.takeover()
		w.changes.Notify("")
		pass(time.Minute)
		w.Expect(w.told).To(BeEmpty())
		w.Expect(w.writes).To(BeEmpty(), "the watch does not know of the last write")
		w.attempts(delivered)
		pass(quiet)
		w.Expect(w.told).To(Equal([]string{"WebhookHealthy NoFailures"}))
		for range 5 {
			w.changes.Notify("")
			pass(time.Minute)
		}
		w.catchUp()
		pass(time.Minute)
		w.Expect(w.writes).To(HaveLen(1))
	})
}

func TestRun_anAPIServerThatFails(t *testing.T) {
	inBubble(t, func(w *world) {
		w.down = errDown
		w.begin()
		pass(time.Hour)
		w.Expect(w.stored.Status.Conditions).To(BeEmpty())
		w.down = nil
		pass(2 * maxBackoff)
		w.Expect(w.conditions()).NotTo(BeEmpty(), "the first look is tried again")

		w.down = errDown
		w.set(func(s *settings.Settings) { s.Problems = missing })
		pass(time.Hour)
		w.Expect(w.failed).To(And(BeNumerically(">", 100), BeNumerically("<", 200)), "tries in an hour")
		w.Expect(w.told).To(BeEmpty(), "nothing is told before it was written")
		w.down = nil
		pass(2 * maxBackoff)
		w.Expect(w.told).To(Equal([]string{"SecretsReady SecretMissing bad"}))
		w.Expect(w.writes).To(HaveLen(2))
	})
}

// TestRun_anAnswerThatIsLost: the write happened, and is told once.
func TestRun_anAnswerThatIsLost(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		w.down, w.mute = errDown, true
		w.set(func(s *settings.Settings) { s.Problems = missing })
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("SecretsReady SecretMissing"))
		w.Expect(w.told).To(BeEmpty())
		pass(2 * minBackoff)
		w.Expect(w.told).To(Equal([]string{"SecretsReady SecretMissing bad"}))
		w.Expect(w.writes).To(HaveLen(2), "the watch brought it")
	})
}

func TestRun_whatIsBackBeforeItWasWrittenIsNoNews(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		for range 50 {
			w.set(func(s *settings.Settings) { s.Problems = missing })
			w.set(func(s *settings.Settings) { s.Problems = nil; s.Generation -= 2 })
			pass(quiet)
		}
		w.Expect(w.writes).To(HaveLen(1))
		w.Expect(w.told).To(BeEmpty())
	})
}

func TestRun_aConditionThatCannotMakeUpItsMindIsPaced(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		const minutes = 10
		for i := range minutes * 60 {
			w.board.Set(metav1.Condition{
				Type: verifyv1.ConditionWhatsAppReady, Status: metav1.ConditionFalse, Reason: verifyv1.ReasonRegistering, Message: strconv.Itoa(i),
			})
			pass(time.Second)
		}
		w.Expect(len(w.writes)).To(BeNumerically("~", minutes*60/int(gap.Seconds())+burst, 2))
		pass(gap)
		w.Expect(w.stored.Status.Conditions[2].Message).To(Equal(strconv.Itoa(minutes*60-1)), "the last one is written in the end")
	})
}

func TestRun_whatSomebodyElseChangedIsMended(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		pass(time.Hour)
		w.stored.Status.Conditions[0].Status = metav1.ConditionFalse
		w.change()
		pass(quiet)
		w.Expect(w.stored.Status.Conditions[0].Status).To(Equal(metav1.ConditionTrue))
		w.Expect(w.writes).To(HaveLen(2))
		w.Expect(w.told).To(BeEmpty())
	})
}

// TestRun_aConditionThatIsSomebodyElses: what does not apply and is held by another field owner cannot be taken off, and
// is not fought over.
func TestRun_aConditionThatIsSomebodyElses(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		w.stored.Status.Conditions = append(w.stored.Status.Conditions, metav1.Condition{
			Type: verifyv1.ConditionTelegramReady, Status: metav1.ConditionTrue, Reason: "Foreign", Message: "foreign",
		})
		w.change()
		pass(time.Minute)
		writes := len(w.writes)
		for range 100 {
			w.changes.Notify("")
			w.changes.Notify("settings")
			pass(time.Minute)
		}
		w.Expect(w.writes).To(HaveLen(writes))
	})
}

func TestRun_anotherProjectOfTheSameName(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		w.lagging = true
		w.create("second") // which the watch does not know yet
		w.set(func(s *settings.Settings) { s.Problems = missing })
		pass(time.Minute)
		w.Expect(w.stored.Status.Conditions).To(BeEmpty(), "the write was meant for another object")
		w.Expect(w.failed).NotTo(BeZero())
		w.catchUp()
		pass(2 * maxBackoff)
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretMissing", "StorageReady StorageReachable"}))
		w.Expect(w.told).To(Equal([]string{"SecretsReady SecretMissing bad"}))
	})
}

func TestRun_aProjectThatIsDeleted(t *testing.T) {
	inBubble(t, func(w *world) {
		w.begin()
		pass(time.Minute)
		watched := w.watched
		w.stored = nil // and the watch does not know yet
		w.set(func(s *settings.Settings) { s.Problems = missing })
		pass(time.Minute)
		w.Expect(w.watched).To(Equal(watched))
		w.Expect(w.stored).To(BeNil())
		w.remove()
		pass(day)
		w.Expect(w.failed).To(Equal(1), "and it is not tried again")
		w.Expect(w.told).To(BeEmpty())

		w.end()
		w.begin()
		pass(day)
		w.create("second")
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("SecretsReady SecretMissing"))
	})
}

func TestRun_endsAtOnce(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"waiting for news":           func(*world) { pass(time.Hour) },
		"collecting news":            func(w *world) { w.changes.Notify(""); pass(quiet / 2) },
		"waiting for the API server": func(w *world) { w.down = errDown; w.set(withWebhook); pass(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.begin()
				before(w)
				began := time.Now()
				w.end()
				w.Expect(time.Now()).To(Equal(began))
			})
		})
	}
}
