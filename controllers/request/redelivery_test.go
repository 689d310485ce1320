package request

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// redeliveryEvent is an event of the project.
type redeliveryEvent struct {
	granted bool
	message string
}

// annotatedProject is a project in memory whose annotation asks for redeliveries, and the controller of its requests.
type annotatedProject struct {
	*storedRequests

	projects   *fakeProjects
	controller *RedeliveryController

	observedErr error
	observed    []string
	events      []redeliveryEvent
}

func newAnnotatedProject(t *testing.T) *annotatedProject {
	t.Helper()
	w := &annotatedProject{storedRequests: newStoredRequests(t), projects: newFakeProjects()}
	w.restart()
	return w
}

// restart begins a new term, as another leader would.
func (w *annotatedProject) restart() {
	w.controller = NewRedeliveryController(RedeliveryOptions{
		Projects: w.projects, Store: w.store, Log: logr.Discard(),
		Observed: func(_ context.Context, annotation string) error {
			if w.observedErr != nil {
				return w.observedErr
			}
			w.observed = append(w.observed, annotation)
			w.projects.edit(func(p *verifyv1.VerificationProject) { p.Status.ObservedRedeliver = annotation })
			return nil
		},
		Tell: func(p *verifyv1.VerificationProject, mark string, granted bool, message string) {
			w.Expect(mark).To(Equal(redeliveryMark(p.Annotations[verifyv1.RedeliverAnnotation])), "the outcome names its annotation")
			w.events = append(w.events, redeliveryEvent{granted, message})
		},
	})
}

// createDelivered stores a verified request whose event was delivered.
func (w *annotatedProject) createDelivered(id string) {
	w.t.Helper()
	w.verify(id)
	w.recordDelivery(id)
}

// recordDelivery records that the receiver took the event.
func (w *annotatedProject) recordDelivery(id string) {
	w.t.Helper()
	w.update(id, func(r *verification.Request, now time.Time) error {
		return r.RecordAttempt(verification.Attempt{Event: r.Event(),
			Number: 1, Redelivered: r.Redelivered, At: now, StatusCode: 204, Delivered: true,
		})
	})
}

// isDue reports whether the request's event is due.
func (w *annotatedProject) isDue(id string) bool {
	w.t.Helper()
	r, err := w.store.Read(w.t.Context(), id)
	w.Expect(err).NotTo(HaveOccurred())
	return r.Delivery.Wanted()
}

func (w *annotatedProject) reconcile() error { return w.controller.reconcileOnce(w.t.Context()) }

func TestRedelivery_nothingToDo(t *testing.T) {
	w := newAnnotatedProject(t)
	w.Expect(w.reconcile()).To(Succeed(), "without the annotation")
	w.projects.annotate("a/1")
	w.projects.edit(func(p *verifyv1.VerificationProject) { p.Status.ObservedRedeliver = "a/1" })
	w.Expect(w.reconcile()).To(Succeed(), "with one that was observed")
	w.projects.remove()
	w.Expect(w.reconcile()).To(Succeed(), "without a project")
	w.Expect(w.observed).To(BeEmpty())
	w.Expect(w.events).To(BeEmpty())
}

func TestRedelivery_isGrantedOnce(t *testing.T) {
	w := newAnnotatedProject(t)
	w.createDelivered("a")
	w.projects.annotate("a/1")
	w.Expect(w.reconcile()).To(Succeed())
	w.Expect(w.isDue("a")).To(BeTrue())
	w.Expect(w.observed).To(Equal([]string{"a/1"}))
	w.Expect(w.events).To(Equal([]redeliveryEvent{{true, "the event of request a is sent once more"}}))

	w.recordDelivery("a")
	w.Expect(w.reconcile()).To(Succeed())
	w.restart()
	w.Expect(w.reconcile()).To(Succeed())
	w.Expect(w.isDue("a")).To(BeFalse(), "neither this nor the next leader sends it again")
	w.Expect(w.events).To(HaveLen(1))

	w.projects.annotate("a/2")
	w.Expect(w.reconcile()).To(Succeed())
	w.Expect(w.isDue("a")).To(BeTrue(), "another nonce asks again")
	w.Expect(w.events).To(HaveLen(2))
}

func TestRedelivery_hastensAnAttemptThatIsDueLater(t *testing.T) {
	w := newAnnotatedProject(t)
	w.createDelivered("a")
	w.update("a", func(r *verification.Request, now time.Time) error {
		r.Delivery = verification.Delivery{Attempts: 3, NextAttemptAt: now.Add(time.Hour)}
		return nil
	})
	w.projects.annotate("a/1")
	w.Expect(w.reconcile()).To(Succeed())
	r, err := w.store.Read(t.Context(), "a")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(r.Delivery).To(Equal(verification.Delivery{Attempts: 2, NextAttemptAt: start}), "that attempt is not counted")
}

func TestRedelivery_refusals(t *testing.T) {
	for name, tc := range map[string]struct{ annotation, message string }{
		"unknown id": {"unknown/1", "no such request"},
		"pending":    {"pending/1", "request pending has no event to send"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAnnotatedProject(t)
			w.create("pending")
			w.projects.annotate(tc.annotation)
			for range 2 {
				w.Expect(w.reconcile()).To(Succeed())
				w.restart()
			}
			w.Expect(w.observed).To(Equal([]string{tc.annotation}), "a refusal is recorded too")
			w.Expect(w.events).To(HaveLen(1))
			w.Expect(w.events[0].granted).To(BeFalse())
			w.Expect(w.events[0].message).To(ContainSubstring(tc.message))
		})
	}
}

// The status cannot hold every malformed annotation, and yet only the first leader refuses it.
func TestRedelivery_malformed(t *testing.T) {
	for name, annotation := range map[string]string{
		"no slash": "a", "no id": "/1", "no nonce": "a/", "control character": "a/1\x7f", "a number": "+4915112345678/1",
		"too long": "a/" + strings.Repeat("x", maxRedelivery),
	} {
		t.Run(name, func(t *testing.T) {
			w := newAnnotatedProject(t)
			w.createDelivered("a")
			w.projects.annotate(annotation)
			for range 2 {
				for range 3 {
					w.Expect(w.reconcile()).To(Succeed())
				}
				w.Expect(w.events).To(Equal([]redeliveryEvent{{false, malformedRedelivery}}), "and nothing of the annotation is repeated")
				w.restart()
			}
			w.Expect(w.observed).To(ConsistOf(MatchRegexp(`^malformed:[0-9a-f]{8}$`)))
			w.Expect(w.isDue("a")).To(BeFalse())

			w.projects.annotate("?/" + annotation) // malformed in another way
			w.Expect(w.reconcile()).To(Succeed())
			w.Expect(w.events).To(HaveLen(2))

			w.projects.annotate("a/1")
			w.Expect(w.reconcile()).To(Succeed())
			w.Expect(w.isDue("a")).To(BeTrue())
		})
	}
}

func TestRedelivery_withoutAWebhook(t *testing.T) {
	w := newAnnotatedProject(t)
	w.createDelivered("a")
	w.projects.edit(func(p *verifyv1.VerificationProject) { p.Spec.Webhook = nil })
	w.projects.annotate("a/1")
	w.Expect(w.reconcile()).To(Succeed())
	w.Expect(w.isDue("a")).To(BeFalse())
	w.Expect(w.events).To(Equal([]redeliveryEvent{{false, "the project has no webhook, so there is nowhere to send an event"}}))
}

func TestRedelivery_storeDown(t *testing.T) {
	w := newAnnotatedProject(t)
	w.createDelivered("a")
	w.projects.annotate("a/1")
	broken := errors.New("broken")
	w.backend.Fail(broken)
	w.Expect(w.reconcile()).To(MatchError(broken))
	w.Expect(w.observed).To(BeEmpty())
	w.Expect(w.events).To(BeEmpty(), "nothing is refused")
	w.backend.Fail(nil)
	w.Expect(w.reconcile()).To(Succeed())
	w.Expect(w.isDue("a")).To(BeTrue())
}

func TestRedelivery_statusThatCannotBeWritten(t *testing.T) {
	w := newAnnotatedProject(t)
	w.createDelivered("a")
	w.projects.annotate("a/1")
	w.observedErr = errors.New("API server is unreachable")
	w.Expect(w.reconcile()).To(MatchError(w.observedErr))
	w.Expect(w.isDue("a")).To(BeTrue())
	w.recordDelivery("a")
	w.Expect(w.reconcile()).To(MatchError(w.observedErr))
	w.restart()
	w.Expect(w.reconcile()).To(MatchError(w.observedErr))

	w.observedErr = nil
	w.Expect(w.reconcile()).To(Succeed())
	w.Expect(w.observed).To(Equal([]string{"a/1"}))
	w.Expect(w.events).To(HaveLen(1))
	w.Expect(w.isDue("a")).To(BeFalse(), "the request records that it was sent for this annotation")
}

// The watch brings another change before it brings the status.
func TestRedelivery_staleStatus(t *testing.T) {
	w := newAnnotatedProject(t)
	w.createDelivered("a")
	w.projects.annotate("a/1")
	w.Expect(w.reconcile()).To(Succeed())
	w.projects.edit(func(p *verifyv1.VerificationProject) { p.Status.ObservedRedeliver = "" })
	w.Expect(w.reconcile()).To(Succeed())
	w.Expect(w.events).To(HaveLen(1), "no event is repeated")
}

// fakeProjects holds the project's object as a watch would bring it.
type fakeProjects struct {
	changes verification.Notifier
	project atomic.Pointer[verifyv1.VerificationProject]
	ended   int
}

func newFakeProjects() *fakeProjects {
	p := &fakeProjects{}
	p.project.Store(&verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "acme"},
		Spec:       verifyv1.VerificationProjectSpec{Webhook: &verifyv1.Webhook{URL: "https://shop.example/hook"}},
	})
	return p
}

// Project implements Projects.
func (p *fakeProjects) Project() *verifyv1.VerificationProject { return p.project.Load() }

// Observe implements Projects.
func (p *fakeProjects) Observe() (changes <-chan struct{}, cancel func()) {
	changes, end := p.changes.Subscribe("")
	return changes, func() {
		p.ended++
		end()
	}
}

// edit replaces the object by a changed copy, since readers may still use the old one.
func (p *fakeProjects) edit(change func(*verifyv1.VerificationProject)) {
	next := p.project.Load().DeepCopy()
	change(next)
	p.project.Store(next)
	p.changes.Notify("")
}

func (p *fakeProjects) annotate(annotation string) {
	p.edit(func(project *verifyv1.VerificationProject) {
		metav1.SetMetaDataAnnotation(&project.ObjectMeta, verifyv1.RedeliverAnnotation, annotation)
	})
}

func (p *fakeProjects) remove() {
	p.project.Store(nil)
	p.changes.Notify("")
}
