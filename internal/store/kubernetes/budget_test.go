package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/store/storetest"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func number(e164 string) phone.Number {
	n, err := phone.FromE164(e164)
	if err != nil {
		panic(err)
	}
	return n
}

// newRequest is a creation in that project.
func newRequest(project string) verification.New {
	p := verification.NewCodeSpace(project)
	code, err := p.NewCode(randomness{})
	Expect(err).NotTo(HaveOccurred())
	return verification.New{
		ID: p.RequestID(code), Phone: number("+15550100199"), Method: verification.Telegram, TTL: 10 * time.Minute, KeyName: "backend",
	}
}

func verifyNow(r *verification.Request, now time.Time) error {
	return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
}

func proveNow(r *verification.Request, now time.Time) error {
	return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, 0)
}

// enterCode is the mutation for a code that a client redeems, with the wrong ones stored as the service does.
func enterCode(match verification.CodeMatch) verification.Mutation {
	return func(r *verification.Request, now time.Time) error {
		err := r.ConfirmSession(storetest.Match(match), now, verification.NewEventKinds(verification.EventSuccess))
		if errors.Is(err, verification.ErrWrongCode) {
			return nil
		}
		return err
	}
}

func declineProven(r *verification.Request, now time.Time) error {
	return r.DeclineProven(func(*verification.Request) bool { return true }, now, 0)
}

// newSession returns a creation of a request that a client must confirm.
func newSession(project string) verification.New {
	n := newRequest(project)
	n.Terms = verification.Terms{Level: verification.LevelSession, Purpose: "sign-in", Browser: "CHROME/WINDOWS"}
	return n
}

// newCode returns a creation of a request whose number gets a code.
func newCode(project string) verification.New {
	n := newSession(project)
	n.Terms.Deliver, n.Creator = verification.DeliverCode, "0123456789abcdef"
	return n
}

func recordSent(r *verification.Request, now time.Time) error {
	return r.RecordCodeResult(verification.CodeResult{State: verification.CodeSent}, now, 0)
}

func bindTo(binding string) verification.Mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, binding, now, 0)
	}
}

func attempt(delivered bool) verification.Mutation {
	return func(r *verification.Request, now time.Time) error {
		a := verification.Attempt{Event: r.Event(), Number: r.Delivery.Attempts + 1, Redelivered: r.Redelivered, At: now, StatusCode: 204, Delivered: delivered}
		if !delivered {
			a.StatusCode, a.Reason, a.Next = 500, "http_500", now.Add(time.Minute)
		}
		return r.RecordAttempt(a)
	}
}

// bindingOf returns a binding as the service makes them: 128 bits in hexadecimal.
func bindingOf(i int) string { return strings.Repeat(fmt.Sprintf("%02x", i+16), 16) }

var _ = Describe("The budget of calls", func() {
	var (
		tap     *wiretap
		s       *Store
		project string
	)
	BeforeEach(func(ctx SpecContext) {
		tap = &wiretap{}
		project = newNamespace(ctx) + "/shop"
		s = open(ctx, project, Options{Config: tap.config()})
		Expect(tap.take()).To(And(HaveLen(1), HaveKey("informer")), "the start: one stream, no LIST")
	})
	create := func(ctx SpecContext) string {
		GinkgoHelper()
		created, err := s.Create(ctx, newRequest(project), verification.Limits{
			PerKey: verification.Rate{Requests: 600, Period: time.Minute}, MaxStored: 1500,
		})
		Expect(err).NotTo(HaveOccurred())
		return created.Request.ID
	}
	update := func(ctx SpecContext, id string, m verification.Mutation) verification.Request {
		GinkgoHelper()
		r, err := s.Update(ctx, id, m)
		Expect(err).NotTo(HaveOccurred())
		return r
	}

	It("is four writes and no read for a request that is verified and delivered", func(ctx SpecContext) {
		id := create(ctx)
		update(ctx, id, verifyNow)
		r := update(ctx, id, attempt(true))
		Expect(s.Delete(ctx, id, r.Version)).To(Succeed())
		Expect(tap.take()).To(Equal(map[string]int{"create": 1, "update": 2, "delete": 1}))
	})

	It("is one write more for a request that a client confirms, and one per wrong code", func(ctx SpecContext) {
		n := newSession(project)
		_, err := s.Create(ctx, n, verification.Limits{DeclineCooldown: time.Hour})
		Expect(err).NotTo(HaveOccurred())
		update(ctx, n.ID, proveNow)
		update(ctx, n.ID, enterCode(verification.MatchesSession))
		r := update(ctx, n.ID, attempt(true))
		Expect(s.Delete(ctx, n.ID, r.Version)).To(Succeed())
		Expect(tap.take()).To(Equal(map[string]int{"create": 1, "update": 3, "delete": 1}))

		n = newSession(project)
		_, err = s.Create(ctx, n, verification.Limits{DeclineCooldown: time.Hour})
		Expect(err).NotTo(HaveOccurred())
		update(ctx, n.ID, proveNow)
		tap.take()
		update(ctx, n.ID, enterCode(verification.NoMatch))
		Expect(tap.take()).To(Equal(map[string]int{"update": 1}))
	})

	It("is one GET and no write for a right code that is only checked", func(ctx SpecContext) {
		n := newSession(project)
		_, err := s.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		proven := update(ctx, n.ID, proveNow)
		tap.take()
		checked := update(ctx, n.ID, func(r *verification.Request, now time.Time) error {
			return r.CheckSessionCode(storetest.Match(verification.MatchesSession), now, 0)
		})
		Expect(checked).To(Equal(proven))
		Expect(tap.take()).To(Equal(map[string]int{"get": 1}), "a cached state is never the answer")
	})

	It("is one write more for a code, and none where its result is reported again", func(ctx SpecContext) {
		n := newCode(project)
		Expect(s.Create(ctx, n, verification.Limits{})).Error().NotTo(HaveOccurred())
		r := update(ctx, n.ID, func(r *verification.Request, now time.Time) error { return r.Cancel(now, 0) })
		Expect(tap.take()).To(Equal(map[string]int{"create": 1, "update": 1}))
		Expect(s.ReadFinal(ctx, n.ID)).To(Equal(r))
		Expect(tap.take()).To(Equal(map[string]int{"get": 1}), "another replica may have stored the result")
		r = update(ctx, n.ID, recordSent)
		Expect(tap.take()).To(Equal(map[string]int{"update": 1}))
		Expect(s.ReadFinal(ctx, n.ID)).To(Equal(r))
		Expect(tap.take()).To(BeEmpty())
		Expect(update(ctx, n.ID, recordSent)).To(Equal(r))
		Expect(tap.take()).To(Equal(map[string]int{"get": 1}))
	})

	It("is one write more per failed attempt", func(ctx SpecContext) {
		id := create(ctx)
		update(ctx, id, verifyNow)
		tap.take()
		for range 5 {
			update(ctx, id, attempt(false))
		}
		Expect(tap.take()).To(Equal(map[string]int{"update": 5}))
	})

	It("is one write more per contact binding, and at most two reads of many", func(ctx SpecContext) {
		id := create(ctx)
		tap.take()
		update(ctx, id, bindTo(bindingOf(1)))
		calls := tap.take()
		Expect(calls["list"]).To(BeNumerically("<=", 2), "none, unless the watch is late")
		delete(calls, "list")
		Expect(calls).To(Equal(map[string]int{"update": 1}))

		_, err := s.Awaiting(ctx, bindingOf(1))
		Expect(err).NotTo(HaveOccurred())
		calls = tap.take()
		Expect(calls["list"]).To(And(BeNumerically(">=", 1), BeNumerically("<=", 2)))
		delete(calls, "list")
		Expect(calls).To(BeEmpty())
	})

	It("is no read for bindings of before a write that the watch has brought", func(ctx SpecContext) {
		r := update(ctx, create(ctx), bindTo(bindingOf(1)))
		settle(ctx, s)
		tap.take()
		bound, err := s.bindingsSince(ctx, r.Version)
		Expect(err).NotTo(HaveOccurred())
		Expect(bound(bindingOf(1))).To(HaveLen(1))
		Expect(tap.take()).To(BeEmpty())
	})

	It("is three writes for a request that expires", func(ctx SpecContext) {
		n := newRequest(project)
		n.TTL = time.Microsecond
		created, err := s.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		r := update(ctx, created.Request.ID, func(r *verification.Request, _ time.Time) error {
			r.Phase = verification.Expired
			return nil
		})
		Expect(s.Delete(ctx, r.ID, r.Version)).To(Succeed())
		Expect(tap.take()).To(Equal(map[string]int{"create": 1, "update": 1, "delete": 1}))
	})

	It("is one deletion for a creation in a full store, however many there are at the same time", func(ctx SpecContext) {
		const full = 30
		for range full {
			update(ctx, create(ctx), func(r *verification.Request, now time.Time) error {
				return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, 0)
			})
		}
		settle(ctx, s)
		tap.take()
		var all sync.WaitGroup
		var late atomic.Int64
		for range full {
			all.Go(func() {
				defer GinkgoRecover()
				_, err := s.Create(ctx, newRequest(project), verification.Limits{MaxStored: full})
				if errors.Is(err, verification.Unavailable(nil)) {
					late.Add(1) // on a machine that is slow enough some of so many calls at once take too long
					return
				}
				Expect(err).NotTo(HaveOccurred())
			})
		}
		all.Wait()
		calls := tap.take()
		delete(calls, "informer") // its watch may end and begin anew at any time
		if late.Load() == 0 && calls["get"] == 0 {
			Expect(calls).To(Equal(map[string]int{"create": full, "delete": full}))
			return
		}
		Expect(calls["delete"]).To(BeNumerically("~", full, full/2), "and not each for itself, again and again: %v", calls)
	})

	It("is one GET for an open request and none for a final one that ReadFinal reads", func(ctx SpecContext) {
		id := create(ctx)
		tap.take()
		for range 3 {
			Expect(s.ReadFinal(ctx, id)).To(HaveField("Phase", verification.Pending))
		}
		Expect(tap.take()).To(Equal(map[string]int{"get": 3}))
		update(ctx, id, verifyNow)
		tap.take()
		for range 100 {
			Expect(s.ReadFinal(ctx, id)).To(HaveField("Phase", verification.Verified))
		}
		Expect(tap.take()).To(BeEmpty())
	})

	It("is nothing for a state that is cached", func(ctx SpecContext) {
		id := create(ctx)
		tap.take()
		Expect(s.ReadCached(ctx, id)).To(HaveField("Phase", verification.Pending))
		update(ctx, id, verifyNow)
		tap.take()
		Expect(s.ReadCached(ctx, id)).To(HaveField("Phase", verification.Verified))
		Expect(tap.take()).To(BeEmpty())
	})

	It("is one read at a time for all unknown codes, however many are sent", func(ctx SpecContext) {
		known := create(ctx)
		tap.take()
		const codes = 100
		var all sync.WaitGroup
		begin := time.Now()
		for range codes {
			all.Go(func() {
				defer GinkgoRecover()
				code := newRequest(project).ID
				Eventually(func() error {
					_, err := s.Read(ctx, code)
					return err
				}).WithTimeout(time.Minute).Should(MatchError(verification.ErrNotFound))
			})
		}
		Expect(s.Read(ctx, known)).To(HaveField("ID", known), "a code that leads somewhere waits for none of them")
		all.Wait()
		calls := tap.take()
		Expect(calls["list"]).To(And(BeNumerically(">=", 1), BeNumerically("<", codes/2)))
		AddReportEntry(fmt.Sprintf("%d unknown codes in %s: %v", codes, time.Since(begin).Round(time.Millisecond), calls))
	})

	It("is bounded for what is not stored, while others are served", func(ctx SpecContext) {
		clock := clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Microsecond))
		tap, other := &wiretap{gate: &gate{}}, open(ctx, project, Options{Clock: clock})
		late := open(ctx, project, Options{Config: tap.config(), Clock: clock})
		service := verification.NewService(verification.NewCodeSpace(project), late)
		reopen := tap.gate.shut() // so that it knows nothing of what the other replica stores
		defer reopen()
		stored := func() (string, string) {
			GinkgoHelper()
			started, err := verification.NewService(verification.NewCodeSpace(project), other).Initiate(ctx, verification.Initiation{
				Phone: number("+15550100199"), Method: verification.Telegram, KeyName: "honest", TTL: 10 * time.Minute,
			})
			Expect(err).NotTo(HaveOccurred())
			return started.Request.ID, started.Code.Grouped()
		}
		flood := func(calls int, call func(i int)) map[string]int {
			GinkgoHelper()
			tap.take()
			var all sync.WaitGroup
			for worker := range 16 {
				all.Go(func() {
					defer GinkgoRecover()
					for i := worker; i < calls; i += 16 {
						call(i)
					}
				})
			}
			all.Wait()
			return tap.take()
		}
		l := defaultReadLimits()

		By("asking for 3,000 made-up ids with one API key")
		attacker := verification.WithCaller(ctx, verification.Client("leaked"))
		var refused atomic.Int64
		calls := flood(3000, func(int) {
			if _, err := service.Status(attacker, newRequest(project).ID); errors.Is(err, verification.TooManyUnknown(nil)) {
				refused.Add(1)
			}
		})
		Expect(calls).To(Equal(map[string]int{"get": int(l.client.Burst)}))
		Expect(refused.Load()).To(BeEquivalentTo(3000 - l.client.Burst))
		id, code := stored()
		honest := verification.WithCaller(ctx, verification.Client("honest"))
		Expect(service.Status(honest, id)).To(HaveField("Phase", verification.Pending), "another key reads what another replica stored")
		Expect(service.Status(attacker, id)).Error().To(MatchError(verification.TooManyUnknown(nil)), "and never a wrong 404")

		By("sending 500 made-up codes from 25 numbers")
		calls = flood(500, func(i int) {
			code, err := verification.NewCodeSpace(project).NewCode(randomness{})
			Expect(err).NotTo(HaveOccurred())
			_, err = service.Receive(ctx, verification.Message{
				Evidence: verification.Evidence{Method: verification.Telegram, Sender: number(fmt.Sprintf("+155501002%02d", i%25)), SentAt: clock.Now()},
				Text:     code.Grouped(),
			}, 0)
			Expect(err).To(Or(Succeed(), MatchError(verification.TooManyUnknown(nil))))
		})
		Expect(calls["get"]).To(BeNumerically("<=", l.senders.Burst))
		Expect(calls["list"]).To(BeNumerically("<=", calls["get"]))
		Expect(calls).To(HaveLen(2))
		AddReportEntry(fmt.Sprintf("500 messages: %v", calls))
		clock.SetTime(clock.Now().Add(time.Second))
		receipt, err := service.Receive(ctx, verification.Message{
			Evidence: verification.Evidence{Method: verification.Telegram, Sender: number("+15550100199"), SentAt: clock.Now()}, Text: code,
		}, 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified), "the message of another sender counts")
	})

	It("is bounded for retries that are refused", func(ctx SpecContext) {
		id := create(ctx)
		s := open(ctx, project, Options{Config: tap.config(), Clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Microsecond))})
		bodyHash := strings.Repeat("0123456789abcdef", 2)
		full := verification.Limits{PerKey: verification.Rate{Requests: 1, Period: time.Hour}}
		attacker := verification.WithCaller(ctx, verification.Client("leaked"))
		tap.take()
		for range 200 {
			n := newRequest(project)
			n.BodyHash = bodyHash
			Expect(s.Create(attacker, n, full)).Error().To(MatchError(verification.RateLimited(verification.LimitPerKey, 0)))
		}
		Expect(tap.take()).To(HaveKeyWithValue("get", int(defaultReadLimits().client.Burst)))
		n := newRequest(project)
		n.ID, n.BodyHash = id, bodyHash
		Expect(s.Create(attacker, n, full)).To(HaveField("Existing", true))
	})

	It("is shared by those who ask for one request at the same time", func(ctx SpecContext) {
		id := create(ctx)
		tap.take()
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				defer GinkgoRecover()
				Expect(s.Read(ctx, id)).To(HaveField("ID", id))
			})
		}
		all.Wait()
		Expect(tap.take()["get"]).To(BeNumerically("<", 100))
	})
})

var _ = Describe("The size of objects", func() {
	var (
		s       *Store
		project string
	)
	BeforeEach(func(ctx SpecContext) {
		project = newNamespace(ctx) + "/shop"
		s = open(ctx, project, Options{})
	})
	// size is that of the whole object, and of its managedFields.
	size := func(ctx SpecContext, what, name string) (whole, managed int) {
		GinkgoHelper()
		raw, err := s.api.client.Get().Namespace(s.api.namespace).Resource(resourceName).Name(name).Do(ctx).Raw()
		Expect(err).NotTo(HaveOccurred())
		var o rawObject
		Expect(json.Unmarshal(raw, &o)).To(Succeed())
		whole, managed = len(raw), len(encodeJSON(o.ManagedFields))
		AddReportEntry(fmt.Sprintf("%s: %d bytes, %d of them managedFields", what, whole, managed))
		return whole, managed
	}
	create := func(ctx SpecContext, n verification.New) string {
		GinkgoHelper()
		Expect(s.Create(ctx, n, verification.Limits{})).Error().NotTo(HaveOccurred())
		return n.ID
	}
	update := func(ctx SpecContext, id string, m verification.Mutation) {
		GinkgoHelper()
		Expect(s.Update(ctx, id, m)).Error().NotTo(HaveOccurred())
	}
	// longest has all that the project and the key decide, as long as possible.
	longest := func() verification.New {
		n := newRequest(project)
		n.BodyHash = strings.Repeat("ab", 16)
		n.KeyName, n.Subject = strings.Repeat("k", 63), strings.Repeat("cd", 12)
		n.DisplayName = strings.Repeat("書", 64)
		return n
	}
	// withData has the most client data but the returnURL, too.
	withData := func() verification.New {
		n := longest()
		n.Reference, n.Locale, n.Metadata = strings.Repeat("r", 128), "zh-Hant-TW", map[string]string{}
		for i := range 16 {
			n.Metadata[fmt.Sprintf("key-%02d", i)] = strings.Repeat("v", 1024/16-6)
		}
		return n
	}

	// awaitEchoes stores eight echoes and all hints.
	awaitEchoes := func(ctx SpecContext, id string) {
		GinkgoHelper()
		for i := range verification.MaxContacts {
			update(ctx, id, func(r *verification.Request, now time.Time) error {
				sender := verification.Contact{Binding: bindingOf(i), Nonce: strings.Repeat("0f", 16)}
				return r.AwaitEcho(verification.Evidence{Method: r.Method, SentAt: now}, sender, nil, now, 0)
			})
		}
		update(ctx, id, func(r *verification.Request, now time.Time) error {
			r.Hints = nil
			for _, kind := range verification.HintKinds() {
				r.Hints = append(r.Hints, verification.Hint{Kind: kind, At: now})
			}
			return nil
		})
	}

	It("is at most 2 KiB for one sender, without client data", func(ctx SpecContext) {
		usual := newRequest(project)
		usual.DisplayName = "Ada's Bookshop"
		for what, n := range map[string]verification.New{"usual": usual, "longest": longest()} {
			id := create(ctx, n)
			whole, _ := size(ctx, what+", pending", id)
			Expect(whole).To(BeNumerically("<", 2048))
			update(ctx, id, bindTo(bindingOf(0)))
			whole, _ = size(ctx, what+", one contact", id)
			Expect(whole).To(BeNumerically("<", 2048))
		}
		update(ctx, usual.ID, verifyNow)
		update(ctx, usual.ID, attempt(true))
		whole, _ := size(ctx, "usual, one contact, delivered", usual.ID)
		Expect(whole).To(BeNumerically("<", 2048))
	})

	It("is at most 2 KiB with all the attempts that it keeps, and as before with one", func(ctx SpecContext) {
		n := newRequest(project)
		n.DisplayName = "Ada's Bookshop"
		id := create(ctx, n)
		update(ctx, id, verifyNow)
		for i := range 12 {
			update(ctx, id, attempt(i == 11))
			whole, _ := size(ctx, fmt.Sprintf("usual, %d attempts", i+1), id)
			Expect(whole).To(BeNumerically("<", 2048))
		}
		update(ctx, id, func(r *verification.Request, now time.Time) error {
			return r.Redeliver("api:ABCDEFGHIJKLMNOP", now, verification.NewEventKinds(verification.EventSuccess))
		})
		whole, _ := size(ctx, "usual, redelivered", id)
		Expect(whole).To(BeNumerically("<", 2048))
		for i := range 5 {
			update(ctx, id, attempt(i == 4))
			whole, _ = size(ctx, fmt.Sprintf("usual, redelivered, %d attempts", i+1), id)
			Expect(whole).To(BeNumerically("<", 2048))
		}
		r, err := s.Read(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.PastAttempts()).To(HaveLen(keptAttempts))

		once := create(ctx, newRequest(project))
		update(ctx, once, verifyNow)
		update(ctx, once, attempt(true))
		raw, err := s.api.client.Get().Namespace(s.api.namespace).Resource(resourceName).Name(once).Do(ctx).Raw()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(raw)).NotTo(ContainSubstring("earlierAttempts"))
	})

	It("is at most 2 KiB for a request that a client confirms, and 2.5 KiB with a contact, wrong codes and events", func(ctx SpecContext) {
		shareContact := func(r *verification.Request, now time.Time) error {
			e := verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now, Assurance: verification.AssuranceSharedContact}
			return r.VerifyContact(e, bindingOf(0), now, verification.NewEventKinds(verification.EventAttention))
		}
		for most, steps := range map[int][]verification.Mutation{
			2048: {recordSent, proveNow, enterCode(verification.MatchesSession), attempt(true)},
			2560: {bindTo(bindingOf(0)), shareContact, attempt(false), enterCode(verification.NoMatch), enterCode(verification.MatchesSession), attempt(false), attempt(true)},
		} {
			n := newCode(project)
			n.Phone, n.DisplayName = number(fmt.Sprint("+1555010", most)), "Ada's Bookshop" // a number gets one code a minute
			id := create(ctx, n)
			for i, step := range steps {
				update(ctx, id, step)
				whole, _ := size(ctx, fmt.Sprintf("session, at most %d, step %d", most, i+1), id)
				Expect(whole).To(BeNumerically("<", most))
			}
		}
	})

	It("is at most 8 KiB with everything at once", func(ctx SpecContext) {
		n := withData()
		n.OtherMethods, n.ReturnURL = []verification.Method{verification.WhatsApp}, "https://shop.example/"+strings.Repeat("u", 2048-21)
		id := create(ctx, n)
		awaitEchoes(ctx, id)
		update(ctx, id, verifyNow)
		update(ctx, id, attempt(false))
		whole, _ := size(ctx, "everything at once", id)
		Expect(whole).To(BeNumerically("<", 8192))
	})

	It("grows with client data, whose keys are not managed one by one", func(ctx SpecContext) {
		_, managed := size(ctx, "longest, pending", create(ctx, longest()))
		whole, managedData := size(ctx, "with reference, metadata and locale, pending", create(ctx, withData()))
		Expect(whole).To(BeNumerically("<", 3072))
		Expect(managedData).To(Equal(managed), "the spec is owned as a whole")

		n := withData()
		n.OtherMethods, n.ReturnURL = []verification.Method{verification.WhatsApp}, "https://shop.example/"+strings.Repeat("u", 2048-21)
		id := create(ctx, n)
		whole, _ = size(ctx, "with returnURL and otherMethods, too, pending", id)
		Expect(whole).To(BeNumerically("<", 5120))
		update(ctx, id, verifyNow)
		update(ctx, id, attempt(true))
		whole, _ = size(ctx, "with returnURL and otherMethods, too, delivered", id)
		Expect(whole).To(BeNumerically("<", 6144))
	})

	It("is bounded whatever senders send", func(ctx SpecContext) {
		shared, echoed := create(ctx, longest()), create(ctx, longest())
		for i := range verification.MaxContacts {
			update(ctx, shared, bindTo(bindingOf(i)))
		}
		awaitEchoes(ctx, echoed)
		for what, id := range map[string]string{"eight contacts": shared, "eight echoes and all hints": echoed} {
			size(ctx, what, id)
			update(ctx, id, func(r *verification.Request, now time.Time) error {
				r.Assurance = verification.AssuranceSharedContact
				return verifyNow(r, now)
			})
			update(ctx, id, attempt(false))
			size(ctx, what+", between attempts", id)
			update(ctx, id, attempt(true))
			whole, _ := size(ctx, what+", delivered", id)
			Expect(whole).To(BeNumerically("<", 4608), "eight senders of one code are an attack or a test")
		}
	})
})
