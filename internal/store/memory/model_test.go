package memory

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/store/storetest"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// model implements the store by scanning all requests instead of using indexes.
type model struct {
	fixture

	random   *rand.Rand
	requests []verification.Request // oldest first
	leases   map[string]time.Time
	awaiting map[string]string
	created  map[string][]time.Time // by key name
	next     int
}

// TestStore_agreesWithAScan runs random operations against the store and the model.
func TestStore_agreesWithAScan(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			m := &model{
				fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, seed)),
				leases: map[string]time.Time{}, awaiting: map[string]string{}, created: map[string][]time.Time{},
			}
			steps := []func(){m.createRequest, m.createRequest, m.changeRequest, m.changeRequest, m.changeRequest, m.deleteRequest, m.claimRequests}
			for step := range 1000 {
				m.advanceClock(time.Duration(m.random.IntN(40)) * time.Second)
				steps[m.random.IntN(len(steps))]()
				if step%10 == 0 {
					m.compareAll()
				}
			}
		})
	}
}

func (m *model) now() time.Time { return m.clock.Now() }

func (m *model) createRequest() {
	m.next++
	n := m.newCreation(m.next)
	n.KeyName, n.TTL = strconv.Itoa(m.random.IntN(3)), time.Duration(m.random.IntN(600))*time.Second
	n.BodyHash = []string{"", "hash"}[m.random.IntN(2)]
	n.Phone = m.newCreation(m.random.IntN(8)).Phone
	n.Terms.Level = []verification.Level{verification.LevelPossession, verification.LevelSession}[m.random.IntN(2)]
	limits := verification.Limits{
		PerKey: verification.Rate{Requests: 2 + m.random.IntN(6), Period: 5 * time.Minute}, MaxStored: 10 + m.random.IntN(5), KeepLapsed: m.random.IntN(2) == 0,
		DeclineCooldown: time.Duration(m.random.IntN(3)) * 5 * time.Minute,
	}
	times := slices.DeleteFunc(slices.Clone(m.created[n.KeyName]), func(at time.Time) bool {
		return !at.After(m.now().Add(-limits.PerKey.Period))
	})
	wait := m.untilCooledDown(n, limits)
	if len(times) >= limits.PerKey.Requests {
		wait = max(wait, times[len(times)-limits.PerKey.Requests].Add(limits.PerKey.Period).Sub(m.now()))
	}
	evictable := slices.DeleteFunc(slices.Clone(m.requests), func(r verification.Request) bool { return !r.Evictable(limits, m.now()) })
	excess := max(0, len(m.requests)+1-limits.MaxStored)

	created, err := m.Create(m.t.Context(), n, limits)
	var refusal *verification.Error
	switch {
	case wait > 0:
		m.Expect(errors.As(err, &refusal)).To(BeTrue())
		m.Expect(refusal.Code).To(Equal(verification.CodeRateLimited))
		m.Expect(refusal.RetryAfter).To(Equal(wait))
	case len(evictable) < excess:
		m.Expect(errors.As(err, &refusal)).To(BeTrue())
		m.Expect(refusal.Code).To(Equal(verification.CodeTooManyStored))
	default:
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(created.Key.Remaining).To(Equal(limits.PerKey.Requests - len(times) - 1))
		for _, r := range evictable[:excess] {
			m.forgetRequest(r.ID)
		}
		m.requests = append(m.requests, created.Request)
		m.created[n.KeyName] = append(m.created[n.KeyName], m.now())
	}
}

// untilCooledDown returns how long the number of a creation still cools down.
func (m *model) untilCooledDown(n verification.New, limits verification.Limits) (wait time.Duration) {
	for _, r := range m.requests {
		if at := r.DeclinedAt(); r.Phone == n.Phone && !at.IsZero() && limits.DeclineCooldown > 0 {
			wait = max(wait, at.Add(limits.DeclineCooldown).Sub(m.now()))
		}
	}
	return wait
}

func (m *model) forgetRequest(id string) {
	m.requests = slices.DeleteFunc(m.requests, func(r verification.Request) bool { return r.ID == id })
	delete(m.leases, id)
	for binding, bound := range m.awaiting {
		if bound == id {
			delete(m.awaiting, binding)
		}
	}
}

// changeRequest applies a random mutation of the domain to a request.
func (m *model) changeRequest() {
	if len(m.requests) == 0 {
		return
	}
	r := &m.requests[m.random.IntN(len(m.requests))]
	binding, later := fmt.Sprint("sender-", m.random.IntN(12)), time.Duration(m.random.IntN(300))*time.Second
	wanted := verification.EventKinds(m.random.IntN(16))
	mutations := []func(r *verification.Request, now time.Time) error{
		func(r *verification.Request, now time.Time) error {
			return r.Bind(verification.Evidence{Method: r.Method, SentAt: now}, binding, now, wanted)
		},
		func(r *verification.Request, now time.Time) error {
			return r.Verify(verification.Evidence{Method: r.Method, SentAt: now, Sender: r.Phone}, now, wanted)
		},
		func(r *verification.Request, now time.Time) error { return r.Expire(now, wanted) },
		func(r *verification.Request, now time.Time) error {
			return r.DeclineProven(func(*verification.Request) bool { return true }, now, wanted)
		},
		func(r *verification.Request, now time.Time) error {
			return r.ConfirmSession(storetest.Match(verification.MatchesSession), now, wanted)
		},
		func(r *verification.Request, now time.Time) error { return r.Cancel(now, wanted) },
		func(r *verification.Request, now time.Time) error {
			return r.RecordAttempt(verification.Attempt{Event: r.Event(),
				Number: r.Delivery.Attempts + 1, Epoch: r.Epoch, At: now, Delivered: later < time.Minute, Next: now.Add(later),
			})
		},
	}
	mutate := mutations[m.random.IntN(len(mutations))]
	want, wantErr := r.Apply(mutate, m.now())
	got, err := m.Update(m.t.Context(), r.ID, mutate)
	if errors.Is(wantErr, verification.ErrUnchanged) {
		wantErr = nil
		want = r.Clone()
	}
	if wantErr != nil {
		m.Expect(err).To(MatchError(wantErr))
		return
	}
	m.Expect(err).NotTo(HaveOccurred())
	if got.Version != r.Version {
		delete(m.leases, r.ID)
	}
	m.rebindContacts(*r, want)
	want.Version = got.Version
	m.Expect(got).To(Equal(want))
	*r = got
}

func (m *model) rebindContacts(before, after verification.Request) {
	for _, c := range before.Contacts {
		if after.BoundAt(c.Binding).IsZero() && m.awaiting[c.Binding] == after.ID {
			delete(m.awaiting, c.Binding)
		}
	}
	for _, c := range after.Contacts {
		if !slices.Contains(before.Contacts, c) {
			m.awaiting[c.Binding] = after.ID
		}
	}
}

func (m *model) deleteRequest() {
	if len(m.requests) > 0 && m.random.IntN(3) == 0 {
		r := m.requests[m.random.IntN(len(m.requests))]
		m.Expect(m.Delete(m.t.Context(), r.ID, r.Version+"0")).To(MatchError(verification.ErrConflict))
		m.Expect(m.Delete(m.t.Context(), r.ID, r.Version)).To(Succeed())
		m.forgetRequest(r.ID)
	}
}

func (m *model) claimRequests() {
	policy := verification.Policy{
		Retention: time.Duration(m.random.IntN(2)) * 5 * time.Minute, Events: verification.EventPolicy(m.random.IntN(3)),
	}
	limit, lease := m.random.IntN(5), time.Duration(m.random.IntN(90))*time.Second
	due := slices.DeleteFunc(slices.Clone(m.requests), func(r verification.Request) bool {
		return m.leases[r.ID].After(m.now()) || verification.Next(&r, m.now(), policy).Step == verification.StepWait
	})
	slices.SortStableFunc(due, func(a, b verification.Request) int {
		return verification.Next(&a, time.Time{}, policy).At.Compare(verification.Next(&b, time.Time{}, policy).At)
	})
	due = due[:min(limit, len(due))]

	claims, err := m.Claim(m.t.Context(), policy, limit, lease)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(claims).To(HaveLen(len(due)))
	for i, c := range claims {
		want := due[i]
		want.Epoch, want.Version = want.Epoch+1, c.Version
		m.Expect(c).To(Equal(want))
		m.leases[c.ID] = m.now().Add(lease)
		m.requests[slices.IndexFunc(m.requests, func(r verification.Request) bool { return r.ID == c.ID })] = c
	}
}

// compareAll compares everything that is stored.
func (m *model) compareAll() {
	p := m.project
	m.Expect(p.records).To(HaveLen(len(m.requests)))
	for _, want := range m.requests {
		m.Expect(m.Read(m.t.Context(), want.ID)).To(Equal(want))
	}
	m.Expect(p.awaiting).To(HaveLen(len(m.awaiting)))
	for binding, id := range m.awaiting {
		bound, err := m.Awaiting(m.t.Context(), binding)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(bound.ID).To(Equal(id))
	}
	m.Expect(len(p.work.waiting) + len(p.work.due)).To(Equal(len(p.records)))
	m.Expect(len(p.room.ripening) + len(p.room.evictable)).To(BeNumerically("<=", len(p.records)))
}
