package projectstatus

import (
	"errors"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var errDown = errors.New("the API server is down")

// day is longer than any wait here.
const day = 24 * time.Hour

var missing = []settings.Problem{{Field: "spec.app", Secret: "shop", Key: "app", Reason: settings.ReasonMissing}}

// withWebhook gives the project a receiver.
func withWebhook(s *settings.Settings) {
	s.Webhook = &settings.Webhook{URL: "https://shop.example.com/hook"}
}

func TestRun_aSteadyProjectCostsOneWrite(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretsRead", "StorageReady StorageReachable"}))
		pass(day)
		for range 10 { // events that change no condition
			w.stored.Annotations = map[string]string{"at": time.Now().String()}
			w.change()
			w.changes.Notify("settings")
			pass(time.Minute)
		}
		w.Expect(w.writes).To(HaveLen(1))
		w.Expect(w.events).To(BeEmpty(), "all is well")

		w.takeover()
		pass(day)
		w.Expect(w.writes).To(BeEmpty(), "a change of leaders writes nothing")
	})
}

func TestRun_writesAndReportsEachChangeOnce(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		first := w.stored.Status.Conditions[0].LastTransitionTime
		pass(time.Hour)
		w.setSettings(func(s *settings.Settings) { s.Problems = missing })
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("SecretsReady SecretMissing"))
		w.Expect(w.stored.Status.Conditions[0].LastTransitionTime.Time).To(BeTemporally("~", first.Add(time.Hour), time.Second))
		w.Expect(w.events).To(Equal([]string{"SecretsReady SecretMissing bad"}))
		pass(day)
		w.setSettings(func(s *settings.Settings) { s.Problems = nil })
		pass(quiet)
		w.Expect(w.events).To(Equal([]string{"SecretsReady SecretMissing bad", "SecretsReady SecretsRead"}))
		pass(day)
		w.Expect(w.writes).To(HaveLen(3))
	})
}

func TestRun_aNewGenerationIsWrittenAndNotReported(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		w.setSettings(func(*settings.Settings) {})
		w.board.Set(metav1.Condition{
			Type: verifyv1.ConditionWhatsAppReady, Status: metav1.ConditionTrue, Reason: verifyv1.ReasonRegistered, ObservedGeneration: 8,
		})
		pass(quiet)
		w.Expect(w.writes).To(HaveLen(2), "together with another loop's condition")
		for _, c := range w.stored.Status.Conditions {
			w.Expect(c.ObservedGeneration).To(BeEquivalentTo(8))
		}
		w.Expect(w.events).To(BeEmpty())
	})
}

func TestRun_theReceiversRecoveryIsReportedByAnotherLeader(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withWebhook(w.current)
		w.begin()
		w.attempts(failed, failed, failed, failed)
		pass(quiet)
		w.Expect(w.events).To(Equal([]string{"WebhookHealthy ReceiverFailing bad"}))
		w.Expect(w.stored.Status.Conditions[2].Message).To(ContainSubstring("(http_500)"))

		w.takeover()
		pass(day)
		w.attempts(timedOut, timedOut, timedOut, timedOut)
		pass(quiet)
		w.Expect(w.events).To(BeEmpty(), "it was reported already")
		w.Expect(w.writes).To(BeEmpty())

		w.takeover()
		w.attempts(delivered, delivered)
		pass(quiet)
		w.Expect(w.events).To(Equal([]string{"WebhookHealthy NoFailures"}))
		w.attempts(failed, failed, delivered)
		pass(quiet)
		w.Expect(w.writes).To(HaveLen(1))
	})
}

func TestRun_anotherReceiverBeginsAnew(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withWebhook(w.current)
		w.begin()
		w.attempts(failed, failed, failed)
		pass(quiet)
		w.setSettings(func(s *settings.Settings) { s.Webhook = &settings.Webhook{URL: "https://new.example.com/hook"} })
		pass(quiet)
		w.attempts(failed)
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("WebhookHealthy NoFailures"))
		w.setSettings(func(s *settings.Settings) { s.Webhook = nil })
		pass(quiet)
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretsRead", "StorageReady StorageReachable"}))
		w.Expect(w.events).To(Equal([]string{"WebhookHealthy ReceiverFailing bad", "WebhookHealthy NoFailures"}))
	})
}

func TestRun_storage(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		w.storage = verification.TooManyStored(time.Second)
		pass(defaultStoragePeriod)
		w.Expect(w.conditions()).To(ContainElement("StorageReady StorageReachable"), "one check is not enough")
		pass(checksToBelieve * defaultStoragePeriod / doubtFactor)
		w.Expect(w.conditions()).To(ContainElement("StorageReady StorageFull"))
		w.storage = nil
		pass((checksToBelieve + 1) * defaultStoragePeriod / doubtFactor) // not defaultStoragePeriod: an outage is checked more often
		w.Expect(w.events).To(Equal([]string{"StorageReady StorageFull bad", "StorageReady StorageReachable"}))
	})
}

func TestRun_aStoreThatHangsHoldsNothingBack(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.setSettings(func(s *settings.Settings) { s.Problems = missing })
		w.storage = errDown
		w.begin()
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretMissing"}), "nothing is known of the store yet")
		pass(checksToBelieve * defaultStoragePeriod / doubtFactor)
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretMissing", "StorageReady StorageUnreachable"}))
	})
}

// TestRun_aWatchThatLags: neither the first reconciliation of a term nor one after a write may use a stale state.
func TestRun_aWatchThatLags(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		withWebhook(w.current)
		w.begin()
		w.lagging = true
		w.attempts(failed, failed, failed)
		pass(quiet)
		w.Expect(w.events).To(HaveLen(1))
		w.takeover()
		w.changes.Notify("")
		pass(time.Minute)
		w.Expect(w.events).To(BeEmpty())
		w.Expect(w.writes).To(BeEmpty(), "the watch has not brought the last write")
		w.attempts(delivered)
		pass(quiet)
		w.Expect(w.events).To(Equal([]string{"WebhookHealthy NoFailures"}))
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
	inBubble(t, func(w *fakeServer) {
		w.down = errDown
		w.begin()
		pass(time.Hour)
		w.Expect(w.stored.Status.Conditions).To(BeEmpty())
		w.down = nil
		pass(2 * controllers.MaxBackoff)
		w.Expect(w.conditions()).NotTo(BeEmpty(), "the first read is retried")

		w.down = errDown
		w.setSettings(func(s *settings.Settings) { s.Problems = missing })
		pass(time.Hour)
		w.Expect(w.failed).To(And(BeNumerically(">", 100), BeNumerically("<", 200)), "tries in an hour")
		w.Expect(w.events).To(BeEmpty(), "nothing is reported before it was written")
		w.down = nil
		pass(2 * controllers.MaxBackoff)
		w.Expect(w.events).To(Equal([]string{"SecretsReady SecretMissing bad"}))
		w.Expect(w.writes).To(HaveLen(2))
	})
}

// TestRun_anAnswerThatIsLost: the write happened, and is reported once.
func TestRun_anAnswerThatIsLost(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		w.down, w.mute = errDown, true
		w.setSettings(func(s *settings.Settings) { s.Problems = missing })
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("SecretsReady SecretMissing"))
		w.Expect(w.events).To(BeEmpty())
		pass(2 * controllers.MinBackoff)
		w.Expect(w.events).To(Equal([]string{"SecretsReady SecretMissing bad"}))
		w.Expect(w.writes).To(HaveLen(2), "the watch brought it")
	})
}

func TestRun_aChangeThatIsRevertedBeforeTheWriteIsNotReported(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		for range 50 {
			w.setSettings(func(s *settings.Settings) { s.Problems = missing })
			w.setSettings(func(s *settings.Settings) { s.Problems = nil; s.Generation -= 2 })
			pass(quiet)
		}
		w.Expect(w.writes).To(HaveLen(1))
		w.Expect(w.events).To(BeEmpty())
	})
}

func TestRun_aFlappingConditionIsPaced(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
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

func TestRun_correctsForeignChanges(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		pass(time.Hour)
		w.stored.Status.Conditions[0].Status = metav1.ConditionFalse
		w.change()
		pass(quiet)
		w.Expect(w.stored.Status.Conditions[0].Status).To(Equal(metav1.ConditionTrue))
		w.Expect(w.writes).To(HaveLen(2))
		w.Expect(w.events).To(BeEmpty())
	})
}

// TestRun_aForeignCondition: a condition that no longer applies but has another field owner cannot be removed, and is not written
// repeatedly.
func TestRun_aForeignCondition(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
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
	inBubble(t, func(w *fakeServer) {
		w.begin()
		w.lagging = true
		w.create("second") // which the watch has not brought yet
		w.setSettings(func(s *settings.Settings) { s.Problems = missing })
		pass(time.Minute)
		w.Expect(w.stored.Status.Conditions).To(BeEmpty(), "the write was meant for another object")
		w.Expect(w.failed).NotTo(BeZero())
		w.catchUp()
		pass(2 * controllers.MaxBackoff)
		w.Expect(w.conditions()).To(Equal([]string{"SecretsReady SecretMissing", "StorageReady StorageReachable"}))
		w.Expect(w.events).To(Equal([]string{"SecretsReady SecretMissing bad"}))
	})
}

func TestRun_aProjectThatIsDeleted(t *testing.T) {
	inBubble(t, func(w *fakeServer) {
		w.begin()
		pass(time.Minute)
		watched := w.watched
		w.stored = nil // which the watch has not brought yet
		w.setSettings(func(s *settings.Settings) { s.Problems = missing })
		pass(time.Minute)
		w.Expect(w.watched).To(Equal(watched))
		w.Expect(w.stored).To(BeNil())
		w.remove()
		pass(day)
		w.Expect(w.failed).To(Equal(1), "it is not retried")
		w.Expect(w.events).To(BeEmpty())

		w.end()
		w.begin()
		pass(day)
		w.create("second")
		pass(quiet)
		w.Expect(w.conditions()).To(ContainElement("SecretsReady SecretMissing"))
	})
}

func TestRun_endsAtOnce(t *testing.T) {
	for name, before := range map[string]func(w *fakeServer){
		"waiting for changes":        func(*fakeServer) { pass(time.Hour) },
		"collecting changes":         func(w *fakeServer) { w.changes.Notify(""); pass(quiet / 2) },
		"waiting for the API server": func(w *fakeServer) { w.down = errDown; w.setSettings(withWebhook); pass(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *fakeServer) {
				w.begin()
				before(w)
				began := time.Now()
				w.end()
				w.Expect(time.Now()).To(Equal(began))
			})
		})
	}
}
