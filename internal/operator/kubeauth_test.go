package operator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// guardedHandler is a guard with an API server that knows two users, of whom one may.
type guardedHandler struct {
	*guard

	clock *clocktesting.FakePassiveClock
	asked atomic.Int64
	down  atomic.Bool
	// revoked reports whether all are refused from now on.
	revoked atomic.Bool
	calls   int
}

func newGuardedHandler() *guardedHandler {
	w := &guardedHandler{clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	clients := fake.NewClientset()
	clients.PrependReactor("create", "tokenreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		w.asked.Add(1)
		if w.down.Load() {
			return true, nil, errors.New("connection refused")
		}
		review := a.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		user := map[string]string{"the-scraper": "prometheus", "the-new-scraper": "prometheus", "the-stranger": "stranger"}[review.Spec.Token]
		review.Status.Authenticated, review.Status.User.Username = user != "", user
		return true, review, nil
	})
	clients.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		review := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asks := *review.Spec.NonResourceAttributes
		review.Status.Allowed = !w.revoked.Load() && review.Spec.User == "prometheus" && asks == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		return true, review, nil
	})
	w.guard = newGuard(guardOptions{
		Clients: clients, Path: "/metrics", Clock: w.clock,
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
	})
	return w
}

// get asks from an address of its own each time.
func (w *guardedHandler) get(method string, authorization ...string) *httptest.ResponseRecorder {
	return w.getFrom(fmt.Sprintf("10.1.%d.%d:40000", w.calls/256, w.calls%256), method, authorization...)
}

func (w *guardedHandler) getFrom(address, method string, authorization ...string) *httptest.ResponseRecorder {
	w.calls++
	r := httptest.NewRequest(method, "/metrics", http.NoBody)
	r.RemoteAddr = address
	r.Header["Authorization"] = authorization
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

func TestGuard_whoMay(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		header []string
		status int
		asked  int64
	}{
		"who may":           {"GET", []string{"Bearer the-scraper"}, 200, 1},
		"other spelling":    {"GET", []string{"bearer  the-scraper"}, 200, 1},
		"who may not":       {"GET", []string{"Bearer the-stranger"}, 403, 1},
		"a stranger":        {"GET", []string{"Bearer a-guess"}, 401, 1},
		"no header":         {"GET", nil, 401, 0},
		"no token":          {"GET", []string{"Bearer "}, 401, 0},
		"another scheme":    {"GET", []string{"Basic the-scraper"}, 401, 0},
		"two of them":       {"GET", []string{"Bearer the-scraper", "Bearer the-scraper"}, 401, 0},
		"another method":    {"POST", []string{"Bearer the-scraper"}, 405, 0},
		"a method like GET": {"get", []string{"Bearer the-scraper"}, 405, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newGuardedHandler()
			for range 3 {
				answer := w.get(test.method, test.header...)
				g.Expect(answer.Code).To(Equal(test.status))
				if test.status == http.StatusUnauthorized {
					g.Expect(answer.Header().Get("WWW-Authenticate")).To(Equal("Bearer"))
				}
			}
			g.Expect(w.asked.Load()).To(Equal(test.asked), "the decision is remembered")
		})
	}
}

func TestGuard_forgets(t *testing.T) {
	g := NewWithT(t)
	w := newGuardedHandler()
	for _, token := range []string{"Bearer the-scraper", "Bearer a-guess"} {
		w.get("GET", token)
	}
	w.pass(refusedFor)
	w.get("GET", "Bearer a-guess")
	g.Expect(w.asked.Load()).To(BeEquivalentTo(3))
	w.pass(allowedFor)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK))
	g.Expect(w.asked.Load()).To(BeEquivalentTo(4))
}

func TestGuard_apiServerDown(t *testing.T) {
	g := NewWithT(t)
	w := newGuardedHandler()
	w.down.Store(true)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusServiceUnavailable))
	w.down.Store(false)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK), "a failure is not remembered")
	w.down.Store(true)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK), "a decision outlives the API server for a while")
}

func TestGuard_guessesPushNobodyOut(t *testing.T) {
	g := NewWithT(t)
	w := newGuardedHandler()
	w.get("GET", "Bearer the-scraper")
	for i := range 3 * maxDecisions {
		g.Expect(w.get("GET", fmt.Sprintf("Bearer guess-%d", i)).Code).To(Equal(http.StatusUnauthorized))
		g.Expect(len(w.decisions.byToken)).To(BeNumerically("<=", maxDecisions))
		w.pass(time.Second / reviewRate)
	}
	for range 10 {
		g.Expect(w.get("GET", fmt.Sprintf("Bearer guess-%d", 3*maxDecisions-1)).Code).To(Equal(http.StatusUnauthorized))
	}
	asked := w.asked.Load()
	_, known := w.decisions.find(sha256.Sum256([]byte("the-scraper")))
	g.Expect(known).To(BeTrue(), "though its decision has expired meanwhile")
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK))
	g.Expect(w.asked.Load()).To(Equal(asked + 1))
}

func (w *guardedHandler) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// A stranger sends made-up tokens as fast as it can.
func TestGuard_guessesAreNoLoad(t *testing.T) {
	g := NewWithT(t)
	w := newGuardedHandler()
	const seconds, perSecond = 60, 50
	for i := range seconds * perSecond {
		answer := w.getFrom("10.0.0.1:40000", "GET", fmt.Sprintf("Bearer guess-%d", i))
		if answer.Code == http.StatusTooManyRequests {
			g.Expect(answer.Header().Get("Retry-After")).To(Equal("1"))
		}
		w.pass(time.Second / perSecond)
	}
	g.Expect(w.asked.Load()).To(BeNumerically("~", callerBurst+seconds*callerRate, 1))

	w = newGuardedHandler()
	for i := range seconds * perSecond {
		w.get("GET", fmt.Sprintf("Bearer guess-%d", i))
		w.pass(time.Second / perSecond)
	}
	g.Expect(w.asked.Load()).To(BeNumerically("~", reviewBurst+seconds*reviewRate, 1), "from many addresses")
}

// Whatever a stranger sends, a Prometheus goes on: with the token that it has, even from the stranger's own address, and with a
// new one from another address.
func TestGuard_guessesCutNobodyOff(t *testing.T) {
	g := NewWithT(t)
	w := newGuardedHandler()
	const stranger, prometheus = "10.0.0.1:40000", "10.0.0.2:40000"
	guess := 0
	flood := func() {
		for range 10 * callerBurst {
			guess++
			w.getFrom(stranger, "GET", fmt.Sprintf("Bearer guess-%d", guess))
		}
		g.Expect(w.getFrom(stranger, "GET", "Bearer one-more").Code).To(Equal(http.StatusTooManyRequests))
	}
	g.Expect(w.getFrom(stranger, "GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK))
	for range 60 {
		flood()
		g.Expect(w.getFrom(stranger, "GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK))
		w.pass(allowedFor + time.Second)
	}
	flood()
	g.Expect(w.getFrom(prometheus, "GET", "Bearer the-new-scraper").Code).To(Equal(http.StatusOK))
}

func TestGuard_forgetsWhoIsNotSeen(t *testing.T) {
	g := NewWithT(t)
	w := newGuardedHandler()
	key := sha256.Sum256([]byte("the-scraper"))
	w.get("GET", "Bearer the-scraper")
	w.pass(knownFor)
	_, known := w.decisions.find(key)
	g.Expect(known).To(BeFalse())

	w.get("GET", "Bearer the-scraper")
	w.revoked.Store(true)
	w.pass(allowedFor)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusForbidden), "a right ends within a minute")
	_, known = w.decisions.find(key)
	g.Expect(known).To(BeFalse())
}

func TestCallers(t *testing.T) {
	for name, test := range map[string]struct {
		one, other string
		same       bool
	}{
		"ports of one address":   {"10.0.0.1:1", "10.0.0.1:2", true},
		"two addresses":          {"10.0.0.1:1", "10.0.0.2:1", false},
		"one in another family":  {"10.0.0.1:1", "[::ffff:10.0.0.1]:1", true},
		"a network of IPv6":      {"[2001:db8::1]:1", "[2001:db8::ffff:2]:1", true},
		"two networks of IPv6":   {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		"two interfaces":         {"[fe80::1%eth0]:1", "[fe80::1%eth1]:1", true},
		"what is no address":     {"@", "", true},
		"a loopback of its own":  {"127.0.0.1:1", "[::1]:1", false},
		"a name is not resolved": {"localhost:1", "otherhost:1", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newGuardedHandler()
			for range callerBurst {
				g.Expect(w.takeReview(test.one)).To(BeTrue())
			}
			g.Expect(w.takeReview(test.one)).To(BeFalse())
			g.Expect(w.takeReview(test.other)).To(Equal(!test.same))
		})
	}
}
