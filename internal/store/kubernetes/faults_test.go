package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/phoneproof/phoneproof/internal/store/storetest"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/repository"
)

var errMine = errors.New("mine")

// everySecond spoils every second call of that verb.
func everySecond(
	verb string, spoil func(r *http.Request, forward func() (*http.Response, error)) (*http.Response, error),
) func(string, *http.Request, func() (*http.Response, error)) (*http.Response, error) {
	var seen atomic.Int64
	return func(v string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
		if v == verb && seen.Add(1)%2 == 1 {
			return spoil(r, forward)
		}
		return forward()
	}
}

var _ = Describe("Faults", func() {
	var (
		tap     *wiretap
		a, b    *Store
		project string
	)
	BeforeEach(func(ctx SpecContext) {
		tap = &wiretap{gate: &gate{}}
		project = newNamespace(ctx) + "/shop"
		a, b = open(ctx, project, Options{}), open(ctx, project, Options{Config: tap.config()})
	})
	create := func(ctx SpecContext, s *Store) string {
		GinkgoHelper()
		created, err := s.Create(ctx, newRequest(project), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(created.Existing).To(BeFalse())
		return created.Request.ID
	}
	update := func(ctx SpecContext, s *Store, id string, m verification.Mutation) verification.Request {
		GinkgoHelper()
		r, err := s.Update(ctx, id, m)
		Expect(err).NotTo(HaveOccurred())
		return r
	}

	It("counts exactly where every second status write meets a conflict", func(ctx SpecContext) {
		id := create(ctx, b)
		update(ctx, b, id, verifyNow)
		tap.set(everySecond("update", func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
			return answer(r, http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`), nil
		}))
		for range 20 {
			update(ctx, b, id, attempt(false))
		}
		Expect(a.Read(ctx, id)).To(HaveField("Delivery.Attempts", 20))
	})

	It("finds out what became of writes whose answer is lost", func(ctx SpecContext) {
		lost := func(_ *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			return lose(forward)
		}
		tap.set(everySecond("create", lost))
		id := create(ctx, b)
		tap.set(everySecond("update", lost))
		update(ctx, b, id, verifyNow)
		for i := range 10 {
			Expect(update(ctx, b, id, attempt(false)).Delivery.Attempts).To(Equal(i + 1))
		}
		r, err := a.Read(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Delivery.Attempts).To(Equal(10))
		tap.set(everySecond("delete", lost))
		Expect(b.Delete(ctx, id, r.Version)).To(Succeed())
		Expect(a.Read(ctx, id)).Error().To(MatchError(verification.ErrNotFound))
	})

	It("never takes the request of another replica for its own, not even one of the same microsecond", func(ctx SpecContext) {
		clock := clocktesting.NewFakePassiveClock(time.Now())
		a, b := open(ctx, project, Options{Clock: clock}), open(ctx, project, Options{Config: tap.config(), Clock: clock})
		n := newCode(project)
		n.BodyHash = strings.Repeat("0123456789abcdef", 2)
		twin := n
		twin.Creator = "fedcba9876543210"
		tap.set(func(verb string, _ *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if verb != "create" {
				return forward()
			}
			Expect(a.Create(ctx, twin, verification.Limits{})).To(HaveField("Existing", false))
			return nil, errLost
		})
		Expect(b.Create(ctx, n, verification.Limits{})).To(HaveField("Existing", true), "both would send a code")
		tap.set(everySecond("create", func(_ *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			return lose(forward)
		}))
		own := newCode(project)
		own.Phone = number("+15550100198")
		Expect(b.Create(ctx, own, verification.Limits{})).To(HaveField("Existing", false))

		tap.set(func(verb string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if verb == "create" { // as a proxy may, which repeats a call
				body, err := r.GetBody()
				Expect(err).NotTo(HaveOccurred())
				Expect(lose(forward)).Error().To(HaveOccurred())
				r.Body = body
			}
			return forward()
		})
		own = newCode(project)
		own.Phone = number("+15550100197")
		Expect(b.Create(ctx, own, verification.Limits{})).To(HaveField("Existing", false), "else no one would send its code")
	})

	It("knows its own decision when the event of it was delivered before the decision is read again", func(ctx SpecContext) {
		id := create(ctx, b)
		var once sync.Once
		tap.set(func(verb string, _ *http.Request, forward func() (*http.Response, error)) (response *http.Response, err error) {
			if verb == "update" {
				once.Do(func() {
					_, err = lose(forward)
					update(ctx, a, id, attempt(true))
				})
			}
			if err != nil {
				return nil, err
			}
			return forward()
		})
		decisions := 0
		verified := update(ctx, b, id, func(r *verification.Request, now time.Time) error {
			decisions++
			return verifyNow(r, now)
		})
		Expect(decisions).To(Equal(1), "the second one would take it for another's, which is not counted and not answered")
		Expect(verified).To(And(HaveField("Phase", verification.Verified), HaveField("Delivery.Attempts", 1)))
	})

	DescribeTable("finds out what became of writes that are stored and answered with a failure", func(ctx SpecContext, code int) {
		// As by a load balancer whose connection to the API server broke after it had sent the write.
		failed := func(r *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			_, err := lose(forward)
			Expect(err).To(MatchError(errLost))
			return answer(r, code, "<html>"+http.StatusText(code)+"</html>", "Content-Type", "text/html"), nil
		}
		tap.set(everySecond("create", failed))
		id := create(ctx, b)
		tap.set(everySecond("update", failed))
		update(ctx, b, id, verifyNow)
		for i := range 4 {
			Expect(update(ctx, b, id, attempt(false)).Delivery.Attempts).To(Equal(i + 1))
		}
		r, err := a.Read(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Delivery.Attempts).To(Equal(4))
		tap.set(everySecond("delete", failed))
		Expect(b.Delete(ctx, id, r.Version)).To(Succeed())
		Expect(a.Read(ctx, id)).Error().To(MatchError(verification.ErrNotFound))
	},
		Entry("500", http.StatusInternalServerError),
		Entry("502", http.StatusBadGateway),
		Entry("503", http.StatusServiceUnavailable),
		Entry("504", http.StatusGatewayTimeout),
	)

	It("never takes a write for done that never arrived", func(ctx SpecContext) {
		id := create(ctx, a)
		settle(ctx, b)
		before, err := a.Read(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		tap.set(func(verb string, _ *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if verb == "create" || verb == "update" || verb == "delete" {
				return nil, errLost
			}
			return forward()
		})
		_, err = b.Update(ctx, id, verifyNow)
		Expect(err).To(MatchError(verification.Unavailable(nil)))
		Expect(b.Delete(ctx, id, before.Version)).To(MatchError(verification.Unavailable(nil)))
		n := newRequest(project)
		_, err = b.Create(ctx, n, verification.Limits{})
		Expect(err).To(MatchError(verification.Unavailable(nil)))
		Expect(a.Read(ctx, n.ID)).Error().To(MatchError(verification.ErrNotFound))
		Expect(a.Read(ctx, id)).To(Equal(before))
	})

	It("counts no wrong code too few, whatever becomes of its writes", func(ctx SpecContext) {
		n := newSession(project)
		Expect(a.Create(ctx, n, verification.Limits{})).Error().NotTo(HaveOccurred())
		before := update(ctx, a, n.ID, proveNow)
		settle(ctx, b)
		var once sync.Once
		tap.set(func(verb string, _ *http.Request, forward func() (*http.Response, error)) (resp *http.Response, err error) {
			if verb == "update" {
				once.Do(func() {
					update(ctx, a, n.ID, enterCode(verification.NoMatch)) // the same count, in the place of one that never arrives
					err = errLost
				})
			}
			if err != nil {
				return nil, err
			}
			return forward()
		})
		Expect(update(ctx, b, n.ID, enterCode(verification.NoMatch)).WrongCodes).To(Equal(2))
		Expect(a.Read(ctx, n.ID)).To(And(HaveField("WrongCodes", 2), HaveField("ProvenAt", before.ProvenAt)))

		tap.set(everySecond("update", func(_ *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			return lose(forward)
		}))
		Expect(update(ctx, b, n.ID, enterCode(verification.NoMatch)).WrongCodes).To(Equal(4), "an answer is lost: rather one too many")
		var reasons []error
		ended := update(ctx, b, n.ID, func(r *verification.Request, now time.Time) error {
			reasons = append(reasons, r.ConfirmSession(storetest.Match(verification.NoMatch), now, 0))
			return nil
		})
		Expect(ended).To(And(HaveField("WrongCodes", verification.MaxConfirmTries), HaveField("Phase", verification.Expired)))
		Expect(reasons).To(HaveEach(MatchError(verification.ErrWrongCode)), "the last try is known by the time of its hint")
	})

	It("never takes another's write for its own that never arrived", func(ctx SpecContext) {
		id := create(ctx, a)
		settle(ctx, b)
		var once sync.Once
		tap.set(func(verb string, _ *http.Request, forward func() (*http.Response, error)) (resp *http.Response, err error) {
			if verb == "update" {
				once.Do(func() {
					update(ctx, a, id, bindTo(bindingOf(1)))
					err = errLost
				})
			}
			if err != nil {
				return nil, err
			}
			return forward()
		})
		Expect(update(ctx, b, id, verifyNow).Phase).To(Equal(verification.Verified))
		r, err := a.Read(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Phase).To(Equal(verification.Verified))
		Expect(r.Contacts).To(HaveLen(1))
	})

	It("tells a creation that never arrived from the one before with its id", func(ctx SpecContext) {
		n := newRequest(project)
		defer tap.gate.shut()() // b has not heard of it
		first, err := a.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		tap.set(everySecond("create", func(*http.Request, func() (*http.Response, error)) (*http.Response, error) { return nil, errLost }))
		again, err := b.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Existing).To(BeTrue())
		Expect(again.Request).To(Equal(first.Request))
	})

	It("counts a creation whose outcome is unknown", func(ctx SpecContext) {
		one := verification.Limits{PerKey: verification.Rate{Requests: 1, Period: time.Hour}}
		tap.set(func(verb string, _ *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if verb == "create" {
				return nil, errLost
			}
			return forward()
		})
		_, err := b.Create(ctx, newRequest(project), one)
		Expect(err).To(MatchError(verification.Unavailable(nil)))
		_, err = b.Create(ctx, newRequest(project), one)
		Expect(err).To(MatchError(verification.RateLimited(verification.LimitPerKey, 0)))
	})

	It("passes the API server's Retry-After on and makes no second call", func(ctx SpecContext) {
		id := create(ctx, a)
		settle(ctx, b)
		tap.set(func(_ string, r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
			return answer(r, http.StatusTooManyRequests, "slow down", "Retry-After", "7"), nil
		})
		tap.take()
		_, err := b.Update(ctx, id, verifyNow)
		var refusal *verification.Error
		Expect(errors.As(err, &refusal)).To(BeTrue())
		Expect(refusal.Code).To(Equal(verification.CodeStoreUnavailable))
		Expect(refusal.RetryAfter).To(Equal(7 * time.Second))
		Expect(tap.take()).To(Equal(map[string]int{"update": 1}))
	})

	It("counts no creation that the API server refused", func(ctx SpecContext) {
		one := verification.Limits{
			PerKey: verification.Rate{Requests: 1, Period: time.Hour}, PerPhoneNumber: verification.Rate{Requests: 1, Period: time.Hour},
			MaxStored: 1,
		}
		tap.set(func(verb string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if verb == "create" {
				return answer(r, http.StatusTooManyRequests, "slow down"), nil
			}
			return forward()
		})
		for range 3 {
			_, err := b.Create(ctx, newRequest(project), one)
			Expect(err).To(MatchError(verification.Unavailable(nil)))
		}
		tap.set(func(_ string, _ *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			return forward()
		})
		created, err := b.Create(ctx, newRequest(project), one)
		Expect(err).NotTo(HaveOccurred())
		Expect(created.Key.Remaining).To(BeZero())
		_, err = b.Create(ctx, newRequest(project), one)
		Expect(err).To(MatchError(verification.RateLimited(verification.LimitPerKey, 0)))
	})

	It("tells content that the API server refuses from an API server that fails", func(ctx SpecContext) {
		id := create(ctx, a)
		before := update(ctx, a, id, verifyNow)
		_, err := a.Update(ctx, id, func(r *verification.Request, _ time.Time) error {
			r.Delivery.LastReason = "No Such Word"
			return nil
		})
		Expect(err).To(MatchError(verification.ErrContent))
		Expect(err).NotTo(MatchError(verification.Unavailable(nil)))
		Expect(err.Error()).NotTo(ContainSubstring("No Such"), "what the API server quotes may be a number")
		Expect(a.Read(ctx, id)).To(Equal(before))
		_, err = a.Update(ctx, id, func(r *verification.Request, _ time.Time) error {
			r.Phone = number("+15550100200")
			return nil
		})
		Expect(err).To(MatchError(verification.ErrContent), "what Create decided")
	})

	It("answers nothing stale while its watch is held back", func(ctx SpecContext) {
		id, other := create(ctx, a), create(ctx, a)
		settle(ctx, b)
		reopen := tap.gate.shut()
		defer reopen()
		verified := update(ctx, a, id, verifyNow)
		Expect(b.ReadFinal(ctx, id)).To(Equal(verified))
		Expect(b.Read(ctx, id)).To(Equal(verified))
		_, err := b.Update(ctx, id, func(r *verification.Request, now time.Time) error {
			if r.Phase != verification.Pending {
				return errMine
			}
			r.Phase = verification.Expired
			return nil
		})
		Expect(err).To(MatchError(errMine), "a verified request does not expire")
		bound := update(ctx, a, other, bindTo(bindingOf(1)))
		Expect(b.Awaiting(ctx, bindingOf(1))).To(Equal(bound))
		Expect(b.Awaiting(ctx, bindingOf(2))).Error().To(MatchError(verification.ErrNotFound))
		Expect(b.Delete(ctx, id, "1")).To(MatchError(verification.ErrConflict))
		Expect(b.Delete(ctx, id, verified.Version)).To(Succeed())
		Expect(b.ReadFinal(ctx, id)).Error().To(MatchError(verification.ErrNotFound))
		reopen()
		settle(ctx, b)
		Expect(b.ReadFinal(ctx, id)).Error().To(MatchError(verification.ErrNotFound))
	})

	It("checks a session code by the state of the moment while its watch is held back", func(ctx SpecContext) {
		n := newSession(project)
		Expect(a.Create(ctx, n, verification.Limits{})).Error().NotTo(HaveOccurred())
		update(ctx, a, n.ID, proveNow)
		settle(ctx, b)
		defer tap.gate.shut()()
		check := func(r *verification.Request, now time.Time) error {
			return r.CheckSessionCode(storetest.Match(verification.MatchesSession), now, 0)
		}
		counted := update(ctx, a, n.ID, enterCode(verification.NoMatch))
		Expect(b.Update(ctx, n.ID, check)).To(Equal(counted), "and not the cached one")
		declined := update(ctx, a, n.ID, declineProven)
		Expect(b.ReadCached(ctx, n.ID)).To(HaveField("Phase", verification.Pending))
		current, err := b.Update(ctx, n.ID, check)
		Expect(err).To(MatchError(verification.ErrFinal), "the prover has said No since")
		Expect(current).To(Equal(declined))
	})

	It("reads the open requests for a sender that its watch has not brought, and all only for one of none of them", func(ctx SpecContext) {
		open, final := create(ctx, a), create(ctx, a)
		settle(ctx, b)
		defer tap.gate.shut()()
		bound := update(ctx, a, open, bindTo(bindingOf(1)))
		update(ctx, a, final, bindTo(bindingOf(2)))
		verified := update(ctx, a, final, verifyNow)
		var mu sync.Mutex
		var reads []string
		tap.set(func(verb string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if query := r.URL.Query(); verb == "list" && !strings.HasPrefix(query.Get("fieldSelector"), "metadata.name=") {
				mu.Lock()
				defer mu.Unlock()
				reads = append(reads, query.Get("fieldSelector"))
			}
			return forward()
		})
		Expect(b.Awaiting(ctx, bindingOf(1))).To(Equal(bound))
		opened := "spec.projectRef.name=shop,status.phase!=Verified,status.phase!=Expired"
		Expect(reads).To(Equal([]string{opened}), "those that are kept for hours are many")
		Expect(b.Awaiting(ctx, bindingOf(2))).To(Equal(verified))
		Expect(reads).To(Equal([]string{opened, opened, "spec.projectRef.name=shop"}))
		Expect(b.Awaiting(ctx, bindingOf(3))).Error().To(MatchError(verification.ErrNotFound))
	})

	It("ends an earlier binding when the message whose binding was not acknowledged comes again", func(ctx SpecContext) {
		early, late, sent := create(ctx, b), create(ctx, b), time.Now()
		bind := func(r *verification.Request, now time.Time) error {
			return r.Bind(verification.Evidence{Method: r.Method, SentAt: sent}, bindingOf(1), now, 0)
		}
		update(ctx, b, early, bind)
		settle(ctx, b)
		tap.set(func(verb string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if verb == "update" && strings.Contains(r.URL.Path, early) {
				return nil, errors.New("the write to the earlier request fails")
			}
			return forward()
		})
		Expect(b.Update(ctx, late, bind)).Error().To(HaveOccurred(), "so the message is not acknowledged")
		tap.set(nil)
		update(ctx, b, late, bind)
		Expect(a.Read(ctx, early)).To(HaveField("Contacts", BeEmpty()))
		Expect(a.Read(ctx, late)).To(HaveField("Contacts", HaveLen(1)))
		settle(ctx, b)
		tap.take()
		update(ctx, b, late, bind)
		Expect(tap.take()).NotTo(HaveKey("update"), "nothing is left to end")
	})

	It("lists anew after 410 Gone, as a stream, and misses nothing of it", func(ctx SpecContext) {
		gone, kept := create(ctx, a), create(ctx, a)
		settle(ctx, b)
		changes, cancel := b.Subscribe(kept)
		defer cancel()
		tap.take()
		var expired atomic.Bool
		tap.set(func(verb string, r *http.Request, forward func() (*http.Response, error)) (*http.Response, error) {
			if verb == "informer" && expired.CompareAndSwap(false, true) {
				return answer(r, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`), nil
			}
			return forward()
		})
		tap.hangUp()
		r, err := a.Read(ctx, gone)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Delete(ctx, gone, r.Version)).To(Succeed())
		verified := update(ctx, a, kept, verifyNow)
		settle(ctx, b)
		Expect(expired.Load()).To(BeTrue())
		Eventually(changes).WithContext(ctx).WithTimeout(time.Minute).Should(Receive())
		Expect(b.All()).To(ConsistOf(Change{ID: kept, Kind: KindRequest}))
		Expect(b.ReadFinal(ctx, kept)).To(Equal(verified))
		Expect(tap.take()).NotTo(HaveKey("list of informer"))
	})
})

var _ = Describe("An API server that goes away", Serial, func() {
	It("is unavailable meanwhile, and everything resumes", func(ctx SpecContext) {
		project := newNamespace(ctx) + "/shop"
		tap := &wiretap{gate: &gate{}}
		s := open(ctx, project, Options{Config: tap.config()})
		n := newRequest(project)
		_, err := s.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		final := newRequest(project)
		_, err = s.Create(ctx, final, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.Update(ctx, final.ID, verifyNow)
		Expect(err).NotTo(HaveOccurred())
		settle(ctx, s)
		changes, cancel := s.Subscribe(n.ID)
		defer cancel()

		stopped := make(chan error, 1)
		go func() { stopped <- plane.StopAPIServer() }()
		// It would wait a minute for the end of watches.
		Eventually(func() <-chan error {
			tap.hangUp()
			return stopped
		}).WithContext(ctx).WithTimeout(90 * time.Second).Should(Receive(BeNil()))
		down := MatchError(verification.Unavailable(nil))
		Consistently(func(g Gomega) {
			g.Expect(s.Read(ctx, n.ID)).Error().To(down)
			g.Expect(s.ReadFinal(ctx, n.ID)).Error().To(down)
			g.Expect(s.Update(ctx, n.ID, verifyNow)).Error().To(down)
			g.Expect(s.Awaiting(ctx, bindingOf(1))).Error().To(down)
			g.Expect(s.Create(ctx, newRequest(project), verification.Limits{})).Error().To(down)
			g.Expect(s.Delete(ctx, n.ID, "1")).To(down)
			g.Expect(s.Ready(ctx)).To(down)
			g.Expect(s.ReadFinal(ctx, final.ID)).To(HaveField("Phase", verification.Verified), "a final state stays known")
		}).WithContext(ctx).WithTimeout(5 * time.Second).WithPolling(100 * time.Millisecond).Should(Succeed())
		Expect(plane.StartAPIServer()).To(Succeed())
		Eventually(s.Ready).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Eventually(func(ctx context.Context) error {
			_, err := s.Update(ctx, n.ID, func(r *verification.Request, now time.Time) error {
				if r.Phase.Final() {
					return verification.ErrUnchanged
				}
				return verifyNow(r, now)
			})
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		// An informer that failed often enough waits for up to a minute before it tries again.
		Eventually(changes).WithContext(ctx).WithTimeout(2 * time.Minute).Should(Receive())
		// The API server's own caches come later than the API server.
		Eventually(func(ctx context.Context) error {
			_, err := s.Awaiting(ctx, bindingOf(1))
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(verification.ErrNotFound))
		settle(ctx, s)
		Expect(s.ReadFinal(ctx, n.ID)).To(HaveField("Phase", verification.Verified))
	})
})

var _ = Describe("A store whose kind is deleted", Serial, func() {
	It("is unavailable, takes nothing for absent, and goes on when the kind is back", func(ctx SpecContext) {
		project := newNamespace(ctx) + "/shop"
		s := open(ctx, project, Options{})
		n := newRequest(project)
		_, err := s.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		settle(ctx, s)
		root, err := repository.Root()
		Expect(err).NotTo(HaveOccurred())
		kinds := envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "charts", "phoneproof", "files", "crds")}}
		Expect(envtest.UninstallCRDs(plane.Config, kinds)).To(Succeed())
		install := func() error { // it fails until what was deleted is gone
			_, err := envtest.InstallCRDs(plane.Config, kinds)
			return err
		}
		DeferCleanup(func() { Eventually(install).WithTimeout(time.Minute).Should(Succeed()) })
		down := MatchError(verification.Unavailable(nil))
		// The objects go first, the kind a while later.
		Eventually(func(g Gomega) {
			g.Expect(s.Read(ctx, n.ID)).Error().To(down, "the request may be gone, and it may not")
			g.Expect(s.Create(ctx, newRequest(project), verification.Limits{})).Error().To(down)
			g.Expect(s.Update(ctx, n.ID, verifyNow)).Error().To(down)
			g.Expect(s.Ready(ctx)).To(down)
		}).WithContext(ctx).WithTimeout(2 * time.Minute).Should(Succeed())
		Eventually(install).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Eventually(func(ctx context.Context) error {
			_, err := s.Create(ctx, newRequest(project), verification.Limits{})
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Eventually(s.Ready).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Eventually(func(ctx context.Context) error {
			_, err := s.Read(ctx, n.ID)
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(verification.ErrNotFound), "it went with its kind")
		settle(ctx, s)
	})
})
