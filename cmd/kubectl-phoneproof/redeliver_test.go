package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// lead stands for the holder of the lease: it records each annotation, writes the Event of its outcome, and delivers the event.
func (w *world) lead(refused ...string) {
	done := make(chan struct{})
	w.t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for last := ""; w.t.Context().Err() == nil; waitABit(w.t.Context()) {
			project := &verifyv1.VerificationProject{}
			if w.kube.Get(w.t.Context(), client.ObjectKeyFromObject(w.project), project) != nil {
				continue
			}
			mark := project.Annotations[verifyv1.RedeliverAnnotation]
			if mark == "" || mark == last {
				continue
			}
			project.Status.ObservedRedeliver = mark
			if w.kube.Status().Update(w.t.Context(), project) != nil {
				continue
			}
			last = mark
			id, _, _ := strings.Cut(mark, "/")
			granted := true
			for _, one := range refused {
				granted = granted && one != id
			}
			w.storeOutcome(project, mark, granted)
			if granted {
				w.deliver(id)
			}
		}
	}()
}

// storeOutcome stores the Event of a redelivery. Servers do so a little later than they write its status.
func (w *world) storeOutcome(project *verifyv1.VerificationProject, mark string, granted bool) {
	id, _, _ := strings.Cut(mark, "/")
	kind, reason, note := corev1.EventTypeNormal, "RedeliveryScheduled", "the event of request "+id+" is sent once more"
	if !granted {
		kind, reason, note = corev1.EventTypeWarning, "RedeliveryRefused", "no such request is stored, so its event cannot be sent again"
	}
	if w.eventsComeLate {
		waitABit(w.t.Context())
	}
	_ = w.kube.Create(w.t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, GenerateName: "shop-", Annotations: map[string]string{verifyv1.RedeliverAnnotation: mark},
		},
		EventTime: metav1.NowMicro(), ReportingController: "phoneproof-serve", ReportingInstance: "phoneproof-shop-0", Action: "Redeliver",
		Reason: reason, Note: note, Type: kind,
		Regarding: corev1.ObjectReference{
			APIVersion: verifyv1.GroupVersion.String(), Kind: "VerificationProject", Namespace: w.namespace, Name: "shop", UID: project.UID,
		},
	})
}

func (w *world) deliver(id string) {
	request := &verifyv1.VerificationRequest{}
	if w.kube.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: id}, request) != nil {
		return
	}
	at := metav1.NowMicro()
	request.Status.Delivery = &verifyv1.Delivery{Attempts: 1, LastAttemptAt: &at, LastStatusCode: 204, DeliveredAt: &at}
	_ = w.kube.Status().Update(w.t.Context(), request)
}

func TestRedeliver(t *testing.T) {
	w := newWorld(t)
	w.lead("absent")
	w.createRequest("given-up", time.Hour, makeVerified(true))
	w.Expect(w.must("redeliver", "shop", "given-up")).To(Equal("given-up: the event of request given-up is sent once more\n"))
	w.Expect(w.mustFail("redeliver", "shop", "absent")).To(And(
		ContainSubstring("absent: no such request is stored"), ContainSubstring("not every event was sent")))
	w.Expect(w.reload().Annotations[verifyv1.RedeliverAnnotation]).To(HavePrefix("absent/"))
}

// The Event of a redelivery comes after its status, when the outcome of the one before has been there for a moment.
func TestRedeliver_saysNoOutcomeOfTheOneBefore(t *testing.T) {
	w := newWorld(t)
	w.eventsComeLate = true
	w.lead("absent", "missing")
	w.createRequest("first", time.Hour, makeVerified(true))
	w.createRequest("second", time.Hour, makeVerified(true))
	w.Expect(w.mustFail("redeliver", "shop", "absent", "first", "missing", "second")).To(ContainSubstring(
		"absent: no such request is stored, so its event cannot be sent again\nfirst: the event of request first is sent once more\n" +
			"missing: no such request is stored, so its event cannot be sent again\nsecond: the event of request second is sent once more\n"))
}

func TestRedeliver_failed(t *testing.T) {
	w := newWorld(t)
	w.lead()
	w.Expect(w.must("redeliver", "shop", "--failed")).To(Equal("There is no such event.\n"))
	w.createRequest("newer", time.Minute, makeVerified(true))
	w.createRequest("older", time.Hour, makeVerified(true))
	w.createRequest("delivered", time.Hour, makeVerified(false))
	waits := func(change func(*verifyv1.VerificationRequest)) func(*verifyv1.VerificationRequest) {
		return func(r *verifyv1.VerificationRequest) {
			makeVerified(true)(r)
			at := metav1.NewMicroTime(time.Now().Add(time.Hour))
			r.Status.Delivery.Attempts, r.Status.Delivery.ExhaustedAt, r.Status.Delivery.NextAttemptAt = 3, nil, &at
			change(r)
		}
	}
	w.createRequest("waits", time.Minute, waits(func(*verifyv1.VerificationRequest) {}))
	w.createRequest("due", time.Minute, waits(func(r *verifyv1.VerificationRequest) {
		r.Status.Delivery.NextAttemptAt = r.Status.Delivery.LastAttemptAt
	}))
	w.createRequest("pending", time.Minute, waits(func(r *verifyv1.VerificationRequest) {
		r.Status.Phase, r.Status.VerifiedAt, r.Status.ActualPhoneNumber = verifyv1.PhasePending, nil, ""
	}))
	w.Expect(w.must("redeliver", "shop", "--due", "--wait")).To(Equal("waits: the event of request waits is sent once more\nwaits: delivered\n"))
	printed := w.must("redeliver", "shop", "--failed", "--wait")
	w.Expect(printed).To(Equal("older: the event of request older is sent once more\nolder: delivered\n" +
		"newer: the event of request newer is sent once more\nnewer: delivered\n"))
	w.Expect(w.must("redeliver", "shop", "--failed")).To(Equal("There is no such event.\n"))
	w.createRequest("waits-too", time.Minute, waits(func(*verifyv1.VerificationRequest) {}))
	w.Expect(w.must("redeliver", "shop", "--failed")).To(Equal("No event was given up. Waiting for their next attempt: 1, which --due sends now.\n"))
}

func TestRedeliver_refusesWhatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.mustFail("redeliver", "shop", "any", "--timeout=1s")).To(ContainSubstring("no holder of the lease has carried it out within 1s"))
	w.Expect(w.mustFail("redeliver", "shop", "a/b")).To(ContainSubstring("is not the id of a request"))
	w.Expect(w.mustFail("redeliver", "shop", "A_b")).To(ContainSubstring("is not the id of a request"))
	w.Expect(w.mustFail("redeliver", "shop")).To(ContainSubstring("or use --failed"))
	w.Expect(w.mustFail("redeliver", "shop", "a", "--failed")).To(ContainSubstring("leave out the ids"))
	silent := newWorld(t, func(p *verifyv1.VerificationProject) { p.Spec.Webhook = nil })
	silent.Expect(silent.mustFail("redeliver", "shop", "a")).To(ContainSubstring("has no webhook"))
}

func TestRedeliver_byTheAPI(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	service, store := w.serveAPI()
	const failed = 55 // a key has fifty redeliveries at once, and the others are waited for
	ids := startMany(w, service, failed+1)
	for _, id := range ids[:failed] {
		giveUp(w, store, id)
	}
	printed := w.must("redeliver", "shop", "--failed", "--api-key=backend")
	w.Expect(strings.Count(printed, "the event is sent once more")).To(Equal(failed))
	for _, id := range ids[:failed] {
		stored, err := service.Status(t.Context(), id)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(stored.Delivery.Wanted()).To(BeTrue(), "it is due")
	}
	w.Expect(w.mustFail("redeliver", "shop", ids[failed], "--api-key=backend")).To(ContainSubstring("not every event was sent"), "it is pending")
	w.Expect(w.mustFail("redeliver", "shop", "vr1", "--api-key=backend")).To(ContainSubstring("not every event was sent"))
	w.Expect(w.mustFail("redeliver", "shop", ids[0], "--wait", "--timeout=1s", "--api-key=backend")).To(ContainSubstring("was not sent within 1s"))
}

// An attempt that was under way when the redelivery was asked for is not its outcome.
func TestRedeliver_waitsForTheAttemptOfItsOwn(t *testing.T) {
	w := newWorld(t, onPostgreSQL)
	w.createPod()
	service, store := w.serveAPI()
	id := startMany(w, service, 1)[0]
	update := func(mutate verification.Mutation) verification.Request {
		t.Helper()
		stored, err := store.Update(t.Context(), id, mutate)
		w.Expect(err).NotTo(HaveOccurred())
		return stored
	}
	attempted := update(func(r *verification.Request, now time.Time) error {
		r.Phase, r.VerifiedAt, r.Actual, r.Delivery = verification.Verified, now, r.Phone, verification.Delivery{NextAttemptAt: now}
		return nil
	})
	ended := make(chan string, 1)
	go func() {
		printed, _, err := w.runIn(t.Context(), "redeliver", "shop", id, "--wait", "--api-key=backend")
		ended <- fmt.Sprint(printed, err)
	}()
	record := func(mark string, status int) {
		t.Helper()
		update(func(r *verification.Request, now time.Time) error {
			return r.RecordAttempt(verification.Attempt{
				Event: r.Event(), Number: 1, Redelivered: mark, At: now, StatusCode: status, Delivered: true,
			})
		})
	}
	var mark string
	w.Eventually(func() (string, error) {
		stored, err := store.Read(t.Context(), id)
		mark = stored.Redelivered
		return mark, err
	}).ShouldNot(BeEmpty())
	record(attempted.Redelivered, 200)
	w.Consistently(ended, time.Second).ShouldNot(Receive())
	record(mark, 204)
	w.Eventually(ended).Should(Receive(Equal(id + ": the event is sent once more\n" + id + ": delivered\n<nil>")))
}
