package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func creationChecks() []check {
	return []check{
		{name: "stores a pending request, stamped by the store's clock", run: createsPending},
		{name: "returns the stored request to a second creation, whatever its fields", run: createsOnce},
		{name: "returns the stored request to a second creation that assumes a fresh id", run: createsFreshOnce},
		{name: "creates one request from two hundred concurrent creations of one id", run: createsOneAmongMany},
		{name: "loses none of many concurrent creations", run: createsAllOfMany},
		{name: "shows a new request at once through every instance", run: createsForAll},
		{name: "keeps projects apart that use the same id", run: createsPerProject},
		{name: "keeps projects of one namespace apart", run: createsPerProjectOfNamespace},
		{name: "finds nothing for an id that was never created", run: createsNothingByItself},
	}
}

func createsPending(ctx context.Context, t *trial) {
	s := t.openReplica()
	n := t.newCreation()
	n.BodyHash, n.Phone, n.Method = "d41d8cd98f00b204e9800998ecf8427e", mustNumber("+551187654321"), verification.WhatsApp
	n.DisplayName, n.ReturnURL = "Ada's Bücher 📚", "https://shop.example/back?x=ü"
	n.OtherMethods = []verification.Method{verification.Telegram}
	created := t.expectAdmitted(ctx, s, n, verification.Limits{})

	r := created.Request
	t.Expect(r).To(equalRequest(verification.Request{
		ID: n.ID, Phone: n.Phone, Method: n.Method, KeyName: n.KeyName, BodyHash: n.BodyHash, DisplayName: n.DisplayName,
		OtherMethods: n.OtherMethods, ClientData: n.ClientData, Phase: verification.Pending,
		CreatedAt: r.CreatedAt, ExpiresAt: r.CreatedAt.Add(n.TTL), Version: r.Version,
	}))
	t.Expect(r.Version).NotTo(BeEmpty())
	t.Expect(r.CreatedAt).To(BeTemporally("==", r.CreatedAt.Truncate(time.Microsecond)), "times are whole microseconds")
	t.Expect(created.Key).To(BeZero(), "without a limit there is no quota")
	t.Expect(t.getRequest(ctx, s, n.ID)).To(equalRequest(r))

	now := t.readClock(ctx, s, n.ID)
	t.Expect(r.CreatedAt).NotTo(BeTemporally(">", now))
	if t.hasSteppedClock() {
		t.Expect(r.CreatedAt).To(BeTemporally("==", now))
	}
}

func createsOnce(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	n := t.newCreation()
	first := t.createRequest(ctx, a, n)
	t.passMoment(ctx)

	again := n
	again.Phone, again.Method, again.TTL = mustNumber("+525512345678"), verification.WhatsApp, time.Minute
	again.KeyName, again.BodyHash, again.DisplayName = "other", "other", "other"
	for _, s := range []verification.Store{a, b} {
		created, err := s.Create(ctx, again, verification.Limits{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(created.Existing).To(BeTrue())
		t.Expect(created.Key).To(BeZero())
		t.Expect(created.Request).To(equalRequest(first))
	}

	verified := t.updateRequest(ctx, b, n.ID, verifyClaimed(true))
	created, err := a.Create(ctx, n, verification.Limits{})
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(created.Existing).To(BeTrue())
	t.Expect(created.Request).To(equalRequest(verified), "the current state, not that of the creation")
}

func createsFreshOnce(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	n := t.newCreation()
	n.Fresh = true
	first := t.createRequest(ctx, a, n)
	t.Expect(first.ID).To(Equal(n.ID))
	for _, s := range []verification.Store{a, b} {
		created, err := s.Create(ctx, n, verification.Limits{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(created.Existing).To(BeTrue())
		t.Expect(created.Request).To(equalRequest(first))
	}
}

func createsOneAmongMany(ctx context.Context, t *trial) {
	const racers = 200
	stores := t.openReplicas(4)
	n := t.newCreation()
	results, errs := runRacers(racers, func(i int) (verification.Created, error) {
		return stores[i%len(stores)].Create(ctx, n, verification.Limits{})
	})

	t.Expect(errs).To(HaveEach(BeNil()))
	fresh := 0
	for _, created := range results {
		if !created.Existing {
			fresh++
		}
		t.Expect(created.Request).To(equalRequest(results[0].Request), "all callers get one request")
	}
	t.Expect(fresh).To(Equal(1), "creations that are not Existing")
}

func createsAllOfMany(ctx context.Context, t *trial) {
	const racers = 100
	stores := t.openReplicas(4)
	news := make([]verification.New, racers)
	for i := range news {
		news[i] = t.newCreation()
	}
	results, errs := runRacers(racers, func(i int) (verification.Created, error) {
		return stores[i%len(stores)].Create(ctx, news[i], verification.Limits{})
	})
	t.Expect(errs).To(HaveEach(BeNil()))
	for i, created := range results {
		t.Expect(created.Existing).To(BeFalse())
		t.Expect(created.Request.ID).To(Equal(news[i].ID), "each caller gets its own request")
		t.Expect(t.getRequest(ctx, stores[(i+1)%len(stores)], news[i].ID)).To(equalRequest(created.Request))
	}
}

func createsForAll(ctx context.Context, t *trial) {
	stores := t.openReplicas(3)
	for i := range 30 {
		created, err := stores[i%3].Create(ctx, t.newCreation(), verification.Limits{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(t.getRequest(ctx, stores[(i+1)%3], created.Request.ID)).To(equalRequest(created.Request))
		t.Expect(t.getRequest(ctx, stores[(i+2)%3], created.Request.ID)).To(equalRequest(created.Request))
	}
}

func createsPerProject(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.harness.Open(newProject().Name())
	n := t.newCreation()
	own := t.createRequest(ctx, a, n)
	t.expectGone(ctx, b, n.ID)

	t.passMoment(ctx)
	n.Phone = mustNumber("+525512345678")
	foreign := t.createRequest(ctx, b, n)
	t.updateRequest(ctx, b, n.ID, bindSender("sender"))
	_, err := a.Awaiting(ctx, "sender")
	t.Expect(err).To(haveCode(verification.CodeNotFound), "a sender bound in another project")

	t.deleteRequest(ctx, b, n.ID)
	t.Expect(t.getRequest(ctx, a, n.ID)).To(equalRequest(own))
	t.Expect(own.Phone).NotTo(Equal(foreign.Phone))
}

func createsPerProjectOfNamespace(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.harness.Open(t.project.Name()+"-2")
	own := t.createRequest(ctx, a, t.newCreation())
	own = t.updateRequest(ctx, a, own.ID, bindSender("sender"))
	t.harness.Settle()

	t.expectGone(ctx, b, own.ID)
	_, err := b.Update(ctx, own.ID, verifyClaimed(false))
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	_, err = b.Awaiting(ctx, "sender")
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.Expect(b.Delete(ctx, own.ID, own.Version)).To(Succeed(), "the project has no such request")
	t.Expect(t.getRequest(ctx, a, own.ID)).To(equalRequest(own))
}

func createsNothingByItself(ctx context.Context, t *trial) {
	s := t.openReplica()
	id := t.newID()
	t.expectGone(ctx, s, id)
	_, err := s.Update(ctx, id, verifyClaimed(false))
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.Expect(s.Delete(ctx, id, "1")).To(Succeed())
	_, err = s.Awaiting(ctx, "unbound")
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.expectGone(ctx, s, id)
}
