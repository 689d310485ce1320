package storetest

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

var errRefused = errors.New("refused by the mutation")

func updateChecks() []check {
	return []check{
		{name: "returns a mutation's own error with the current state and writes nothing", run: updateFails},
		{name: "writes nothing if the mutation changes nothing", run: updateUnchanged},
		{name: "refuses a mutation of what Create decided", run: updateImmutable},
		{name: "changes the version with every write", run: updateVersions},
		{name: "passes mutations the time of the clock that stamps requests", run: updateClock},
		{name: "never leaves a final state", run: updateFinal},
	}
}

// changeEverything returns a mutation that changes a request in every way and then returns err.
func changeEverything(err error) mutation {
	return func(r *verification.Request, now time.Time) error {
		r.Phase, r.VerifiedAt, r.Actual = verification.Verified, now, r.Phone
		r.Delivery = verification.Delivery{Attempts: 7, NextAttemptAt: now, LastReason: "spoiled"}
		for i := range r.Contacts {
			r.Contacts[i].Binding = "spoiled"
		}
		r.Contacts = append(r.Contacts, verification.Contact{Binding: "spoiled", BoundAt: now})
		return err
	}
}

func updateFails(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	before := t.updateRequest(ctx, s, id, bindSender("sender"))
	returned, err := s.Update(ctx, id, changeEverything(errRefused))
	t.Expect(err).To(MatchError(errRefused))
	t.Expect(returned).To(equalRequest(before))
	t.expectUnchanged(ctx, before)
}

func updateUnchanged(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	before := t.updateRequest(ctx, s, id, bindSender("sender"))
	returned, err := s.Update(ctx, id, changeEverything(verification.ErrUnchanged))
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(returned).To(equalRequest(before), "including the version")
	t.expectUnchanged(ctx, before)
}

func updateImmutable(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.createRequest(ctx, s, t.newCreation()).ID
	before := t.updateRequest(ctx, s, id, bindSender("sender"))
	other := t.newCreation()
	for _, change := range []func(*verification.Request){
		func(r *verification.Request) { r.ID = other.ID },
		func(r *verification.Request) { r.Phone = mustNumber("+15550100299") },
		func(r *verification.Request) { r.CreatedAt = r.CreatedAt.Add(-time.Hour) },
		func(r *verification.Request) { r.ExpiresAt = r.ExpiresAt.Add(time.Hour) },
		func(r *verification.Request) { r.KeyName += "-other" },
	} {
		returned, err := s.Update(ctx, id, func(r *verification.Request, now time.Time) error {
			change(r)
			return changeEverything(nil)(r, now)
		})
		t.Expect(err).To(MatchError(verification.ErrContent))
		t.Expect(returned).To(equalRequest(before))
		t.expectUnchanged(ctx, before)
	}
}

func (t *trial) expectUnchanged(ctx context.Context, before verification.Request) {
	s := t.openReplica()
	t.Expect(t.getRequest(ctx, s, before.ID)).To(equalRequest(before))
	t.Expect(s.Awaiting(ctx, "sender")).To(equalRequest(before))
	_, err := s.Awaiting(ctx, "spoiled")
	t.Expect(err).To(haveCode(verification.CodeNotFound))
}

func updateVersions(ctx context.Context, t *trial) {
	s := t.openReplica()
	r := t.createRequest(ctx, s, t.newCreation())
	seen := map[string]bool{r.Version: true}
	for range 10 {
		t.passMoment(ctx) // so that each write differs from the previous one
		r = t.updateRequest(ctx, s, r.ID, bindSender("sender"))
		t.Expect(seen).NotTo(HaveKey(r.Version))
		seen[r.Version] = true
	}
}

func updateClock(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	id := t.createRequest(ctx, a, t.newCreation()).ID
	before := t.readClock(ctx, a, id)
	t.passTime(ctx, t.harness.Tick)
	after := t.readClock(ctx, b, id)
	t.Expect(after.Sub(before)).To(BeNumerically(">=", t.harness.Tick))
	if t.hasSteppedClock() {
		t.Expect(after.Sub(before)).To(Equal(t.harness.Tick))
	}
	t.Expect(t.createRequest(ctx, a, t.newCreation()).CreatedAt).NotTo(BeTemporally("<", after))
}

func updateFinal(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	expired := t.createRequest(ctx, a, t.newLapsing(1))
	verified := t.createRequest(ctx, a, t.newCreation())
	verified = t.updateRequest(ctx, b, verified.ID, verifyClaimed(true))
	t.lapseRequests()
	expired = t.updateRequest(ctx, b, expired.ID, expireLapsed)
	t.Expect(expired.Phase).To(Equal(verification.Expired))

	for _, s := range []verification.Store{a, b} {
		t.Expect(s.Update(ctx, verified.ID, expireLapsed)).To(equalRequest(verified))
		for _, final := range []verification.Request{expired, verified} {
			returned, err := s.Update(ctx, final.ID, verifyClaimed(true))
			t.Expect(err).To(MatchError(verification.ErrFinal))
			t.Expect(returned).To(equalRequest(final))
			t.Expect(t.getRequest(ctx, s, final.ID)).To(equalRequest(final))
		}
	}
}
