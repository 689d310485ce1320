package draft

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

// world is a controller over a store that answers as the test says, and notes what it is asked for.
type world struct {
	*WithT

	controller *Controller
	settings   *settings.Settings
	clock      *clocktesting.FakePassiveClock
	logs       string

	draft                            kubernetes.Draft
	draftErr, completeErr, rejectErr error
	completions                      []kubernetes.Completion
	limits                           verification.Limits
	rejections                       []rejection
	invited                          verification.Code
	reads                            int
	started                          []verification.Method
	completed                        chan string
}

type rejection struct{ name, reason string }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		WithT: NewWithT(t), settings: usable(nil), completed: make(chan string, 1),
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)),
		draft: kubernetes.Draft{Name: "by-hand", Phone: number(t, mobile), Method: verification.WhatsApp},
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	w.Expect(err).NotTo(HaveOccurred())
	w.controller = New(Options{
		Metrics: metrics, Observer: w,
		Store: w, Project: verification.NewProject("shop/acme"), Settings: func() *settings.Settings { return w.settings }, Clock: w.clock,
		Invite: func(_ *settings.Settings, m verification.Method, code verification.Code) (link, text string) {
			w.invited = code
			return "https://" + string(m), "send " + code.Grouped()
		},
		Log: funcr.New(func(_, args string) { w.logs += args + "\n" }, funcr.Options{}),
	})
	return w
}

// Draft implements Store.
func (w *world) Draft(context.Context, string) (kubernetes.Draft, error) {
	w.reads++
	return w.draft, w.draftErr
}

// Complete implements Store.
func (w *world) Complete(
	_ context.Context, name string, c kubernetes.Completion, limits verification.Limits,
) (verification.Request, error) {
	w.completions, w.limits = append(w.completions, c), limits
	if w.completeErr == nil {
		w.completed <- name
	}
	return verification.Request{}, w.completeErr
}

// Reject implements Store.
func (w *world) Reject(_ context.Context, name, reason, message string) error {
	w.Expect(message).NotTo(BeEmpty())
	w.rejections = append(w.rejections, rejection{name, reason})
	return w.rejectErr
}

// Started implements verification.Observer.
func (w *world) Started(m verification.Method) { w.started = append(w.started, m) }

// Verified implements verification.Observer.
func (w *world) Verified(verification.Method, time.Duration) { w.Fail("a draft is not verified") }

func (w *world) reconcile(t *testing.T) (reconcile.Result, error) {
	t.Helper()
	return w.controller.Reconcile(t.Context(), "by-hand")
}

func TestReconcile_completes(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(Equal([]kubernetes.Completion{{
		CodeID: w.controller.Project.RequestID(w.invited), Text: "send " + w.invited.Grouped(), Link: "https://WHATSAPP", TTL: 10 * time.Minute,
		DisplayName: "Acme",
	}}))
	w.Expect(w.limits).To(Equal(w.settings.Limits))
	w.Expect(w.started).To(Equal([]verification.Method{verification.WhatsApp}))
	w.Expect(w.rejections).To(BeEmpty())
	w.Expect(w.logs).To(ContainSubstring("by-hand"))
	w.Expect(w.logs).NotTo(ContainSubstring(w.invited.Grouped()), "whoever has the code can be verified")
}

func TestReconcile_outcomes(t *testing.T) {
	broken := errors.New("broken")
	down := verification.Unavailable(broken)
	malformed := &kubernetes.MalformedError{Name: "by-hand", Err: broken}
	for name, tc := range map[string]struct {
		draft, complete, reject error
		edit                    func(*settings.Settings)
		reason                  string
		recheck                 time.Duration
		fails                   error
		completes               int
	}{
		"gone, or no draft any more":   {draft: verification.ErrNotFound},
		"malformed":                    {draft: malformed, reason: verifyv1.ReasonMalformed},
		"store down at the draft":      {draft: down, fails: broken},
		"store down at the completion": {complete: down, fails: broken, completes: 1},
		"store down at the rejection":  {draft: malformed, reject: down, reason: verifyv1.ReasonMalformed, fails: broken},
		"somebody else wrote first":    {complete: verification.ErrConflict, fails: verification.ErrConflict, completes: 1},
		"gone at the completion":       {complete: verification.ErrNotFound, completes: 1},
		"malformed at the completion":  {complete: malformed, reason: verifyv1.ReasonMalformed, completes: 1},
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
		"the condition is refused too": {draft: malformed, reject: verification.ErrContent, reason: verifyv1.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.draftErr, w.completeErr, w.rejectErr = tc.draft, tc.complete, tc.reject
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
			w.Expect(w.rejections).To(Equal([]rejection{{"by-hand", tc.reason}}))
			counted := 0
			if tc.reject == nil {
				counted = 1
			}
			w.Expect(testutil.ToFloat64(w.controller.Metrics.refusals.WithLabelValues(tc.reason))).To(BeEquivalentTo(counted))
		})
	}
}

func TestReconcile_leavesAloneWhatCannotEvenBeRejected(t *testing.T) {
	w := newWorld(t)
	w.draftErr, w.rejectErr = &kubernetes.MalformedError{Name: "by-hand", Err: errors.New(mobile)}, verification.ErrContent
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(testutil.ToFloat64(w.controller.Metrics.skips)).To(BeEquivalentTo(1))
	w.Expect(testutil.CollectAndCount(w.controller.Metrics.refusals)).To(BeEquivalentTo(7), "each reason has a series from the start")
	w.Expect(w.logs).To(ContainSubstring("left a request alone"))
	w.Expect(w.logs).NotTo(ContainSubstring(mobile), "the cause may quote the object")
}

// Completing writes a label before the store refuses the content, and that write brings the draft here again at once.
func TestReconcile_doesNotGoRoundWithRefusedContent(t *testing.T) {
	w := newWorld(t)
	w.completeErr = verification.ErrContent
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{RequeueAfter: contentRecheck - time.Minute}))
	w.Expect(w.completions).To(HaveLen(1))
	w.Expect(w.controller.Reconcile(t.Context(), "another")).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(HaveLen(2), "others go on")

	w.completeErr = nil
	w.clock.SetTime(w.clock.Now().Add(contentRecheck))
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(HaveLen(3))
	w.Expect(w.controller.brake.until).NotTo(HaveKey("by-hand"))
}

func TestReconcile_goesByTheSettingsOfTheMoment(t *testing.T) {
	w := newWorld(t)
	w.settings = usable(func(s *settings.Settings) { s.WhatsApp = nil })
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.settings = usable(nil)
	w.Expect(w.reconcile(t)).To(Equal(reconcile.Result{}))
	w.Expect(w.completions).To(HaveLen(1))
}

func TestRun(t *testing.T) {
	w := newWorld(t)
	w.controller.Log = logr.Discard() // many write it
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

func TestRun_aSourceThatFails(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("broken")
	w.Expect(w.controller.Run(t.Context(), source.TypedFunc[string](
		func(context.Context, workqueue.TypedRateLimitingInterface[string]) error { return broken },
	))).To(MatchError(broken))
}
