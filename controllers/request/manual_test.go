package request

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// scriptedManualStore is a store with scripted results that records its calls, and the controller that works on it.
type scriptedManualStore struct {
	*WithT

	controller *ManualController
	settings   *settings.Settings
	clock      *clocktesting.FakePassiveClock
	logs       string

	manual                          kubernetes.ManualRequest
	readErr, completeErr, rejectErr error
	completions                     []kubernetes.Completion
	limits                          verification.Limits
	rejections                      []manualRejection
	invited                         verification.Code
	reads                           int
	started                         []verification.Method
	completed                       chan string
}

type manualRejection struct{ name, reason string }

func newScriptedManualStore(t *testing.T) *scriptedManualStore {
	t.Helper()
	w := &scriptedManualStore{
		WithT: NewWithT(t), settings: usableSettings(nil), completed: make(chan string, 1),
		clock:  clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)),
		manual: kubernetes.ManualRequest{Name: "by-hand", Phone: parseNumber(t, mobile), Method: verification.WhatsApp, Locale: "es"},
	}
	metrics, err := NewManualMetrics(prometheus.NewRegistry())
	w.Expect(err).NotTo(HaveOccurred())
	w.controller = NewManualController(ManualOptions{
		Metrics: metrics, Observer: w,
		Store: w, Project: verification.NewCodeSpace("shop/acme"), Settings: func() *settings.Settings { return w.settings }, Clock: w.clock,
		Invite: func(_ *settings.Settings, r *verification.Request, code verification.Code) (link, text string) {
			w.invited = code
			return "https://" + string(r.Method), r.Locale + ", send to " + r.DisplayName + " " + code.Grouped()
		},
		Log: funcr.New(func(_, args string) { w.logs += args + "\n" }, funcr.Options{}),
	})
	return w
}

// ReadManual implements ManualStore.
func (w *scriptedManualStore) ReadManual(context.Context, string) (kubernetes.ManualRequest, error) {
	w.reads++
	return w.manual, w.readErr
}

// CompleteManual implements ManualStore.
func (w *scriptedManualStore) CompleteManual(
	_ context.Context, name string, c kubernetes.Completion, limits verification.Limits,
) (verification.Request, error) {
	w.completions, w.limits = append(w.completions, c), limits
	if w.completeErr == nil {
		w.completed <- name
	}
	return verification.Request{}, w.completeErr
}

// RejectManual implements ManualStore.
func (w *scriptedManualStore) RejectManual(_ context.Context, name, reason, message string) error {
	w.Expect(message).NotTo(BeEmpty())
	w.rejections = append(w.rejections, manualRejection{name, reason})
	return w.rejectErr
}

// Started implements verification.Observer.
func (w *scriptedManualStore) Started(m verification.Method) { w.started = append(w.started, m) }

// Verified implements verification.Observer.
func (w *scriptedManualStore) Verified(verification.Method, time.Duration) {
	w.Fail("a manual request is not verified")
}

// TestStarted implements verification.Observer.
func (w *scriptedManualStore) TestStarted(verification.TestOutcome) {
	w.Fail("a manual request is none of a test key")
}

// SessionStep implements verification.Observer.
func (w *scriptedManualStore) SessionStep(verification.SessionStep) {
	w.Fail("a manual request needs no confirmation")
}

// CodeRedeemed implements verification.Observer.
func (w *scriptedManualStore) CodeRedeemed(*verification.Request) {
	w.Fail("a manual request delivers no code")
}

func (w *scriptedManualStore) reconcile(t *testing.T) (reconcile.Result, error) {
	t.Helper()
	return w.controller.Reconcile(t.Context(), "by-hand")
}

func TestManual_isCompleted(t *testing.T) {
	w := newScriptedManualStore(t)
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(Equal([]kubernetes.Completion{{
		CodeID: w.controller.Project.RequestID(w.invited), Text: "es, send to Acme " + w.invited.Grouped(), Link: "https://WHATSAPP", TTL: 10 * time.Minute,
		DisplayName: "Acme",
	}}))
	w.Expect(w.limits).To(Equal(w.settings.Limits))
	w.Expect(w.started).To(Equal([]verification.Method{verification.WhatsApp}))
	w.Expect(w.rejections).To(BeEmpty())
	w.Expect(w.logs).To(ContainSubstring("by-hand"))
	w.Expect(w.logs).NotTo(ContainSubstring(w.invited.Grouped()), "the code is a secret")
}

// No client has a session for a manual request, so a message verifies it whatever the project's level is.
func TestManual_needsNoConfirmation(t *testing.T) {
	w := newScriptedManualStore(t)
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	session := newScriptedManualStore(t)
	session.settings = usableSettings(func(s *settings.Settings) {
		s.Level, s.Limits.DeclineCooldown = verification.LevelSession, time.Hour
	})
	session.Expect(session.reconcile(t)).To(Equal(reconcile.Result{}))
	session.Expect(session.completions).To(HaveLen(1))
	session.Expect(session.completions[0].TTL).To(Equal(w.completions[0].TTL))
	session.Expect(session.started).To(Equal(w.started))
	session.Expect(session.limits.DeclineCooldown).To(Equal(time.Hour), "but a number that declined is left in peace")
}

func TestManual_outcomes(t *testing.T) {
	broken := errors.New("broken")
	down := verification.Unavailable(broken)
	malformed := &kubernetes.MalformedError{Name: "by-hand", Err: broken}
	for name, tc := range map[string]struct {
		read, complete, reject error
		edit                   func(*settings.Settings)
		reason                 string
		recheck                time.Duration
		fails                  error
		completes              int
	}{
		"deleted, or already completed": {read: verification.ErrNotFound},
		"malformed":                     {read: malformed, reason: verifyv1.ReasonMalformed},
		"store down at the read":        {read: down, fails: broken},
		"store down at the completion":  {complete: down, fails: broken, completes: 1},
		"store down at the rejection":   {read: malformed, reject: down, reason: verifyv1.ReasonMalformed, fails: broken},
		"another writer was first":      {complete: verification.ErrConflict, fails: verification.ErrConflict, completes: 1},
		"deleted at the completion":     {complete: verification.ErrNotFound, completes: 1},
		"malformed at the completion":   {complete: malformed, reason: verifyv1.ReasonMalformed, completes: 1},
		"no account": {
			edit:   func(s *settings.Settings) { s.WhatsApp = nil },
			reason: verifyv1.ReasonMethodNotConfigured,
		},
		"no account, and the store is down": {
			edit: func(s *settings.Settings) { s.WhatsApp = nil }, reject: down,
			reason: verifyv1.ReasonMethodNotConfigured, fails: broken,
		},
		"rate limited": {
			complete: verification.RateLimited(verification.LimitPerPhoneNumber, 7*time.Minute),
			reason:   verifyv1.ReasonRateLimited, recheck: 7 * time.Minute, completes: 1,
		},
		"too many stored": {
			complete: verification.TooManyStored(time.Minute),
			reason:   verifyv1.ReasonTooManyStored, recheck: time.Minute, completes: 1,
		},
		"the condition is refused too": {read: malformed, reject: verification.ErrContent, reason: verifyv1.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScriptedManualStore(t)
			w.readErr, w.completeErr, w.rejectErr = tc.read, tc.complete, tc.reject
			if tc.edit != nil {
				tc.edit(w.settings)
			}
			result, err := w.reconcile(t)
			if tc.fails == nil {
				w.Expect(err).NotTo(HaveOccurred())
			} else {
				w.Expect(err).To(MatchError(tc.fails))
				w.Expect(err).To(MatchError(ContainSubstring("by-hand")))
			}
			w.Expect(result).To(Equal(reconcile.Result{RequeueAfter: tc.recheck}))
			w.Expect(w.completions).To(HaveLen(tc.completes))
			w.Expect(w.started).To(BeEmpty(), "nothing was completed")
			if tc.reason == "" {
				w.Expect(w.rejections).To(BeEmpty())
				return
			}
			w.Expect(w.rejections).To(Equal([]manualRejection{{"by-hand", tc.reason}}))
			counted := 0
			if tc.reject == nil {
				counted = 1
			}
			w.Expect(testutil.ToFloat64(w.controller.Metrics.refusals.WithLabelValues(tc.reason))).To(BeEquivalentTo(counted))
		})
	}
}

func TestManual_isLeftAloneIfItCannotEvenBeRejected(t *testing.T) {
	w := newScriptedManualStore(t)
	w.readErr, w.rejectErr = &kubernetes.MalformedError{Name: "by-hand", Err: errors.New(mobile)}, verification.ErrContent
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(testutil.ToFloat64(w.controller.Metrics.skips)).To(BeEquivalentTo(1))
	w.Expect(testutil.CollectAndCount(w.controller.Metrics.refusals)).To(BeEquivalentTo(7), "each reason has a series from the start")
	w.Expect(w.logs).To(ContainSubstring("request skipped"))
	w.Expect(w.logs).NotTo(ContainSubstring(mobile), "the cause may quote the object")
}

// Completing writes a label before the store refuses the content, and that write requeues the manual request at once.
func TestManual_doesNotLoopWithRefusedContent(t *testing.T) {
	w := newScriptedManualStore(t)
	w.completeErr = verification.ErrContent
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{RequeueAfter: contentRecheck - time.Minute}))
	w.Expect(w.completions).To(HaveLen(1))
	w.Expect(w.controller.Reconcile(t.Context(), "another")).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(HaveLen(2), "other requests go on")

	w.completeErr = nil
	w.clock.SetTime(w.clock.Now().Add(contentRecheck))
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(HaveLen(3))
	w.Expect(w.controller.heldOff.until).NotTo(HaveKey("by-hand"))
}

func TestManual_usesTheCurrentSettings(t *testing.T) {
	w := newScriptedManualStore(t)
	w.settings = usableSettings(func(s *settings.Settings) { s.WhatsApp = nil })
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.settings = usableSettings(nil)
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(HaveLen(1))
}

func TestManualRun(t *testing.T) {
	w := newScriptedManualStore(t)
	w.controller.Log = logr.Discard() // many goroutines write it
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- w.controller.Run(ctx, source.TypedFunc[string](
			func(_ context.Context, queue workqueue.TypedRateLimitingInterface[string]) error {
				queue.Add("by-hand")
				return nil
			}))
	}()
	w.Eventually(w.completed).WithTimeout(30 * time.Second).Should(Receive(Equal("by-hand")))
	stop()
	w.Eventually(ended).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
}

func TestManualRun_sourceFails(t *testing.T) {
	w := newScriptedManualStore(t)
	broken := errors.New("broken")
	w.Expect(w.controller.Run(t.Context(), source.TypedFunc[string](
		func(context.Context, workqueue.TypedRateLimitingInterface[string]) error { return broken },
	))).To(MatchError(broken))
}
