package projectstatus

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// fence orders the steps of a test before those of the loops, which the timers of a bubble alone do not.
var fence sync.Mutex

func orderSteps() {
	fence.Lock()
	defer fence.Unlock()
}

// pass lets that much time pass, and returns when all goroutines are blocked.
func pass(d time.Duration) {
	orderSteps()
	<-time.After(d)
	synctest.Wait()
}

// fakeServer is an API server with one project, a watch of it, and the controller of a term. The server is a fake; suite_test.go
// compares it with the real one. In a bubble a test may read everything when all goroutines are blocked.
type fakeServer struct {
	*WithT

	t *testing.T

	// stored is the object; nil if there is none.
	stored  *verifyv1.VerificationProject
	version int
	// writes are the conditions of each successful apply; failed counts the others.
	writes [][]metav1.Condition
	failed int
	// down is the API server's error; mute is set if it fails after it has processed the request.
	down error
	mute bool

	// watched is what the watch has brought; lagging stops the watch.
	watched *verifyv1.VerificationProject
	lagging bool
	current *settings.Settings
	changes verification.Notifier
	storage error
	// expired is when WhatsApp requests expired, heard when messages of users came. asked counts the questions about both.
	expired []time.Time
	heard   []time.Time
	// kept is how long the store shows either; zero is for ever.
	kept    time.Duration
	unknown error
	asked   int
	// codes are when each API key started requests with a code; codesAsked counts the questions.
	codes      map[verification.Method]map[string][]time.Time
	codesAsked int
	events     []string
	board      *Board
	stop       context.CancelFunc
	ended      chan error
	follower   atomic.Int64
}

// inBubble runs a test with a fake clock.
func inBubble(t *testing.T, test func(w *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &fakeServer{WithT: NewWithT(t), t: t, current: simpleSettings()}
		w.create("first")
		test(w)
		w.end()
		w.Expect(w.follower.Load()).To(BeZero(), "subscriptions end with the term")
	})
}

// begin starts a term and returns when it is idle.
func (w *fakeServer) begin() {
	ctx, stop := context.WithCancel(w.t.Context())
	w.board, w.stop, w.ended = NewBoard(), stop, make(chan error, 1)
	c := New(Options{
		Projects: w, Client: w, Board: w.board, Log: logr.Discard(),
		Storage: func(context.Context) error {
			orderSteps()
			return w.storage
		},
		Activity: w.readActivity, CodesStarted: w.countCodes,
		Tell: func(_ *verifyv1.VerificationProject, condition metav1.Condition, bad bool) {
			w.events = append(w.events, condition.Type+" "+condition.Reason+map[bool]string{true: " bad", false: ""}[bad])
		},
	})
	go func() { w.ended <- c.Run(ctx) }()
	pass(quiet)
}

// readActivity is that of a store which shows requests for kept.
func (w *fakeServer) readActivity(_ context.Context, since time.Time) (a verification.Activity, err error) {
	orderSteps()
	w.asked++
	if oldest := time.Now().Add(-w.kept); w.kept > 0 && since.Before(oldest) {
		since = oldest
	}
	for _, at := range w.expired {
		if !at.Before(since) {
			a.Expired++
		}
	}
	for _, at := range w.heard {
		if !at.Before(since) {
			a.LastHeard = at
		}
	}
	return a, w.unknown
}

func (w *fakeServer) countCodes(_ context.Context, m verification.Method, since time.Time) (map[string]int, error) {
	orderSteps()
	w.codesAsked++
	started := map[string]int{}
	for key, times := range w.codes[m] {
		for _, at := range times {
			if at.After(since) {
				started[key]++
			}
		}
	}
	return started, w.unknown
}

// end ends the term, if one is running.
func (w *fakeServer) end() {
	if w.stop != nil {
		w.stop()
		w.Expect(<-w.ended).To(Succeed())
		w.stop = nil
	}
}

// takeover begins another term, as another leader would, and clears the recorded events.
func (w *fakeServer) takeover() {
	w.end()
	w.events, w.writes = nil, nil
	w.begin()
}

func (w *fakeServer) create(uid types.UID) {
	w.stored = &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: "books", Name: "shop", UID: uid}}
	w.change()
}

func (w *fakeServer) remove() {
	w.stored, w.watched = nil, nil
	w.changes.Notify("")
}

// change gives the object a new version, which the watch brings unless it lags.
func (w *fakeServer) change() {
	w.version++
	w.stored.ResourceVersion = strconv.Itoa(w.version)
	if !w.lagging {
		w.catchUp()
	}
}

func (w *fakeServer) catchUp() {
	w.lagging = false
	w.watched = w.stored.DeepCopy()
	w.changes.Notify("")
}

// setSettings edits the current settings.
func (w *fakeServer) setSettings(edit func(*settings.Settings)) {
	next := *w.current
	edit(&next)
	next.Generation++
	w.current = &next
	w.changes.Notify("settings")
}

func (w *fakeServer) attempts(all ...verification.Attempt) {
	for _, a := range all {
		w.board.Attempted(a)
	}
}

// conditions returns the object's conditions, as TYPE REASON.
func (w *fakeServer) conditions() []string {
	var all []string
	for _, c := range w.stored.Status.Conditions {
		all = append(all, c.Type+" "+c.Reason)
	}
	return all
}

// Project implements Projects.
func (w *fakeServer) Project() *verifyv1.VerificationProject {
	orderSteps()
	return w.watched
}

// Current implements Projects.
func (w *fakeServer) Current() *settings.Settings {
	orderSteps()
	return w.current
}

// Observe implements Projects.
func (w *fakeServer) Observe() (changes <-chan struct{}, cancel func()) { return w.follow("") }

// Subscribe implements Projects.
func (w *fakeServer) Subscribe() (changes <-chan struct{}, cancel func()) {
	return w.follow("settings")
}

func (w *fakeServer) follow(what string) (changes <-chan struct{}, cancel func()) {
	changes, unsubscribe := w.changes.Subscribe(what)
	w.follower.Add(1)
	return changes, func() {
		unsubscribe()
		w.follower.Add(-1)
	}
}

var resource = schema.GroupResource{Group: "phoneproof.dev", Resource: "verificationprojects"}

// Get implements Client.
func (w *fakeServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	orderSteps()
	if w.down != nil {
		return w.down
	}
	if w.stored == nil {
		return apierrors.NewNotFound(resource, key.Name)
	}
	w.stored.DeepCopyInto(into.(*verifyv1.VerificationProject))
	return nil
}

// List implements Client and is never called.
func (w *fakeServer) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("unexpected")
}

// Status implements Client.
func (w *fakeServer) Status() client.SubResourceWriter { return statusOf{server: w} }

// statusOf is a status writer that supports only Apply.
type statusOf struct {
	client.SubResourceWriter

	server *fakeServer
}

// Apply implements client.SubResourceWriter.
func (s statusOf) Apply(_ context.Context, applied runtime.ApplyConfiguration, o ...client.SubResourceApplyOption) error {
	orderSteps()
	w, given := s.server, applied.(interface {
		metav1.Object
		runtime.Unstructured
	})
	w.Expect(o).To(ConsistOf(fieldOwner, client.ForceOwnership))
	switch {
	case w.down != nil && !w.mute:
		w.failed++
		return w.down
	case w.stored == nil:
		w.failed++
		return apierrors.NewNotFound(resource, given.GetName())
	case given.GetResourceVersion() != w.stored.ResourceVersion:
		w.failed++
		return apierrors.NewConflict(resource, given.GetName(), errors.New("another version"))
	}
	var sent verifyv1.VerificationProject
	w.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(given.UnstructuredContent(), &sent)).To(Succeed())
	conditions := sent.Status.Conditions
	next := slices.DeleteFunc(slices.Clone(w.stored.Status.Conditions), func(c metav1.Condition) bool { return c.Message != "foreign" })
	w.writes = append(w.writes, conditions)
	if next = append(next, conditions...); !slices.Equal(next, w.stored.Status.Conditions) {
		w.stored.Status.Conditions = next
		w.change()
	}
	given.SetResourceVersion(w.stored.ResourceVersion)
	return w.down
}
