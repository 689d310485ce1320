package storetest

import (
	"context"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func creation() []check {
	return []check{
		{name: "stores a pending request, stamped by the store's clock", run: createsPending},
		{name: "returns the stored request to a second creation, whatever that asks for", run: createsOnce},
		{name: "returns the stored request to a second creation that takes its id for fresh", run: createsFreshOnce},
		{name: "makes one request of two hundred concurrent creations of one id", run: createsOneAmongMany},
		{name: "loses none of many concurrent creations", run: createsAllOfMany},
		{name: "shows a new request at once through every instance", run: createsForAll},
		{name: "keeps projects apart that use the same id", run: createsPerProject},
		{name: "keeps projects of one namespace apart", run: createsPerProjectOfNamespace},
		{name: "knows nothing of an id that was never created", run: createsNothingByItself},
	}
}

func createsPending(ctx context.Context, t *trial) {
	s := t.open()
	n := t.new()
	n.BodyHash, n.Phone, n.Method = "d41d8cd98f00b204e9800998ecf8427e", number("+551187654321"), verification.WhatsApp
	n.DisplayName = "Ada's Bücher 📚"
	created := t.admitted(ctx, s, n, verification.Limits{})

	r := created.Request
	t.Expect(r).To(be(verification.Request{
		ID: n.ID, Phone: n.Phone, Method: n.Method, KeyName: n.KeyName, BodyHash: n.BodyHash, DisplayName: n.DisplayName,
		Phase:     verification.Pending,
		CreatedAt: r.CreatedAt, ExpiresAt: r.CreatedAt.Add(n.TTL), Version: r.Version,
	}))
	t.Expect(r.Version).NotTo(BeEmpty())
	t.Expect(r.CreatedAt).To(BeTemporally("==", r.CreatedAt.Truncate(time.Microsecond)), "times are whole microseconds")
	t.Expect(created.Key).To(BeZero(), "there is no limit to have something left of")
	t.Expect(t.get(ctx, s, n.ID)).To(be(r))

	now := t.clock(ctx, s, n.ID)
	t.Expect(r.CreatedAt).NotTo(BeTemporally(">", now))
	if t.stepped() {
		t.Expect(r.CreatedAt).To(BeTemporally("==", now))
	}
}

func createsOnce(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	n := t.new()
	first := t.create(ctx, a, n)
	t.moment(ctx)

	again := n
	again.Phone, again.Method, again.TTL = number("+525512345678"), verification.WhatsApp, time.Minute
	again.KeyName, again.BodyHash, again.DisplayName = "other", "other", "other"
	for _, s := range []verification.Store{a, b} {
		created, err := s.Create(ctx, again, verification.Limits{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(created.Existing).To(BeTrue())
		t.Expect(created.Key).To(BeZero())
		t.Expect(created.Request).To(be(first))
	}

	verified := t.update(ctx, b, n.ID, verify(true))
	created, err := a.Create(ctx, n, verification.Limits{})
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(created.Existing).To(BeTrue())
	t.Expect(created.Request).To(be(verified), "the state of now, not of the creation")
}

func createsFreshOnce(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	n := t.new()
	n.Fresh = true
	first := t.create(ctx, a, n)
	t.Expect(first.ID).To(Equal(n.ID))
	for _, s := range []verification.Store{a, b} {
		created, err := s.Create(ctx, n, verification.Limits{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(created.Existing).To(BeTrue())
		t.Expect(created.Request).To(be(first))
	}
}

func createsOneAmongMany(ctx context.Context, t *trial) {
	const racers = 200
	stores := t.replicas(4)
	n := t.new()
	results, errs := race(racers, func(i int) (verification.Created, error) {
		return stores[i%len(stores)].Create(ctx, n, verification.Limits{})
	})

	t.Expect(errs).To(HaveEach(BeNil()))
	fresh := 0
	for _, created := range results {
		if !created.Existing {
			fresh++
		}
		t.Expect(created.Request).To(be(results[0].Request), "all see one request")
	}
	t.Expect(fresh).To(Equal(1), "creations that are not Existing")
}

func createsAllOfMany(ctx context.Context, t *trial) {
	const racers = 100
	stores := t.replicas(4)
	news := make([]verification.New, racers)
	for i := range news {
		news[i] = t.new()
	}
	results, errs := race(racers, func(i int) (verification.Created, error) {
		return stores[i%len(stores)].Create(ctx, news[i], verification.Limits{})
	})
	t.Expect(errs).To(HaveEach(BeNil()))
	for i, created := range results {
		t.Expect(created.Existing).To(BeFalse())
		t.Expect(created.Request.ID).To(Equal(news[i].ID), "the answer belongs to the question")
		t.Expect(t.get(ctx, stores[(i+1)%len(stores)], news[i].ID)).To(be(created.Request))
	}
}

func createsForAll(ctx context.Context, t *trial) {
	stores := t.replicas(3)
	for i := range 30 {
		created, err := stores[i%3].Create(ctx, t.new(), verification.Limits{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(t.get(ctx, stores[(i+1)%3], created.Request.ID)).To(be(created.Request))
		t.Expect(t.get(ctx, stores[(i+2)%3], created.Request.ID)).To(be(created.Request))
	}
}

func createsPerProject(ctx context.Context, t *trial) {
	a, b := t.open(), t.harness.Open(newProject().Name())
	n := t.new()
	mine := t.create(ctx, a, n)
	t.gone(ctx, b, n.ID)

	t.moment(ctx)
	n.Phone = number("+525512345678")
	theirs := t.create(ctx, b, n)
	t.update(ctx, b, n.ID, bind("sender"))
	_, err := a.Awaiting(ctx, "sender")
	t.Expect(err).To(haveCode(verification.CodeNotFound), "a sender bound in another project")

	t.remove(ctx, b, n.ID)
	t.Expect(t.get(ctx, a, n.ID)).To(be(mine))
	t.Expect(mine.Phone).NotTo(Equal(theirs.Phone))
}

func createsPerProjectOfNamespace(ctx context.Context, t *trial) {
	a, b := t.open(), t.harness.Open(t.project.Name()+"-2")
	mine := t.create(ctx, a, t.new())
	mine = t.update(ctx, a, mine.ID, bind("sender"))
	t.harness.Settle()

	t.gone(ctx, b, mine.ID)
	_, err := b.Update(ctx, mine.ID, verify(false))
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	_, err = b.Awaiting(ctx, "sender")
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.Expect(b.Delete(ctx, mine.ID, mine.Version)).To(Succeed(), "what the project does not have is gone already")
	t.Expect(t.get(ctx, a, mine.ID)).To(be(mine))
}

func createsNothingByItself(ctx context.Context, t *trial) {
	s := t.open()
	id := t.newID()
	t.gone(ctx, s, id)
	_, err := s.Update(ctx, id, verify(false))
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.Expect(s.Delete(ctx, id, "1")).To(Succeed())
	_, err = s.Awaiting(ctx, "nobody")
	t.Expect(err).To(haveCode(verification.CodeNotFound))
	t.gone(ctx, s, id)
}
