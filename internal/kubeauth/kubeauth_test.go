package kubeauth

import (
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

// world is a handler with an API server that knows two users, of whom one may.
type world struct {
	*Handler

	clock *clocktesting.FakePassiveClock
	asked atomic.Int64
	down  atomic.Bool
}

func newWorld() *world {
	w := &world{clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	clients := fake.NewClientset()
	clients.PrependReactor("create", "tokenreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		w.asked.Add(1)
		if w.down.Load() {
			return true, nil, errors.New("connection refused")
		}
		review := a.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		user := map[string]string{"the-scraper": "prometheus", "somebody": "somebody"}[review.Spec.Token]
		review.Status.Authenticated, review.Status.User.Username = user != "", user
		return true, review, nil
	})
	clients.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		review := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asks := *review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && asks == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		return true, review, nil
	})
	w.Handler = New(Options{
		Clients: clients, Path: "/metrics", Clock: w.clock,
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
	})
	return w
}

func (w *world) get(method string, authorization ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/metrics", http.NoBody)
	r.Header["Authorization"] = authorization
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

func TestHandler_whoMay(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		header []string
		status int
		asked  int64
	}{
		"who may":           {"GET", []string{"Bearer the-scraper"}, 200, 1},
		"other spelling":    {"GET", []string{"bearer  the-scraper"}, 200, 1},
		"who may not":       {"GET", []string{"Bearer somebody"}, 403, 1},
		"a stranger":        {"GET", []string{"Bearer a-guess"}, 401, 1},
		"nobody":            {"GET", nil, 401, 0},
		"no token":          {"GET", []string{"Bearer "}, 401, 0},
		"another scheme":    {"GET", []string{"Basic the-scraper"}, 401, 0},
		"two of them":       {"GET", []string{"Bearer the-scraper", "Bearer the-scraper"}, 401, 0},
		"another method":    {"POST", []string{"Bearer the-scraper"}, 405, 0},
		"a method like GET": {"get", []string{"Bearer the-scraper"}, 405, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld()
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

func TestHandler_forgets(t *testing.T) {
	g := NewWithT(t)
	w := newWorld()
	for _, token := range []string{"Bearer the-scraper", "Bearer a-guess"} {
		w.get("GET", token)
	}
	w.clock.SetTime(w.clock.Now().Add(refusedFor))
	w.get("GET", "Bearer a-guess")
	g.Expect(w.asked.Load()).To(BeEquivalentTo(3))
	w.clock.SetTime(w.clock.Now().Add(allowedFor))
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK))
	g.Expect(w.asked.Load()).To(BeEquivalentTo(4))
}

func TestHandler_apiServerDown(t *testing.T) {
	g := NewWithT(t)
	w := newWorld()
	w.down.Store(true)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusServiceUnavailable))
	w.down.Store(false)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK), "a failure is not remembered")
	w.down.Store(true)
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK), "a decision outlives the API server for a while")
}

func TestHandler_guessesPushNobodyOut(t *testing.T) {
	g := NewWithT(t)
	w := newWorld()
	w.get("GET", "Bearer the-scraper")
	for i := range 3 * maxDecisions {
		g.Expect(w.get("GET", fmt.Sprintf("Bearer guess-%d", i)).Code).To(Equal(http.StatusUnauthorized))
		g.Expect(len(w.decisions)).To(BeNumerically("<=", maxDecisions))
	}
	asked := w.asked.Load()
	g.Expect(w.get("GET", "Bearer the-scraper").Code).To(Equal(http.StatusOK))
	g.Expect(w.asked.Load()).To(Equal(asked))
}
