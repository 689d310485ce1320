package storetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func listChecks() []check {
	return []check{
		{name: "list requests newest first, in pages that follow one another", run: listsInPages},
		{name: "list requests by status, reference and time", run: listsFiltered},
		{name: "find the requests of a number, in whichever form, and no others", run: listsOfANumber},
		{name: "list each request once that stays, whatever comes, changes and goes meanwhile", run: listsUnderChanges},
		{name: "list the requests of their own project alone", run: listsOwnProject},
		{name: "let no place in a list of one mode be that of a request of the other", run: listsOneMode},
		{name: "list nothing for a caller whose context has ended", run: listsForNobody},
		{name: "keep the last attempts through a redelivery and a later event", run: keepsAttempts},
		{name: "keep no attempt of a request that had none but the last", run: keepsNoAttempt},
	}
}

// walkList returns the requests of all pages. between is called after each page but the last.
func (t *trial) walkList(
	ctx context.Context, s verification.Store, q verification.ListQuery, between func(),
) (all []verification.Request) {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	for range 1000 {
		page, err := s.List(ctx, q)
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(len(page.Requests)).To(BeNumerically("<=", q.Limit))
		all = append(all, page.Requests...)
		if page.Next.IsZero() {
			return all
		}
		q.After = page.Next
		between()
	}
	t.Expect("the walk").To(Equal("ended"))
	return nil
}

// expectListed expects a walk to show exactly those requests, in the order of lists.
func (t *trial) expectListed(ctx context.Context, s verification.Store, q verification.ListQuery, want ...verification.Request) {
	ginkgo.GinkgoHelper()
	want = slices.Clone(want)
	slices.SortFunc(want, func(a, b verification.Request) int {
		if byTime := b.CreatedAt.Compare(a.CreatedAt); byTime != 0 {
			return byTime
		}
		return strings.Compare(b.ID, a.ID)
	})
	t.Expect(requestIDs(t.walkList(ctx, s, q, func() {}))).To(Equal(requestIDs(want)))
}

func listsInPages(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	t.Expect(t.walkList(ctx, a, verification.ListQuery{Limit: 1}, func() {})).To(BeEmpty())
	var made []verification.Request
	for i := range 7 {
		n := t.newKeyed()
		n.Reference = "order"
		r := t.createRequest(ctx, []verification.Store{a, b}[i%2], n)
		if i%3 == 0 { // the others may have been created at the same time
			r = t.updateRequest(ctx, b, r.ID, verifyClaimed(true))
			t.passMoment(ctx)
		}
		made = append(made, r)
	}
	for _, limit := range []int{1, 2, 3, 6, 7, 8, verification.MaxPage} {
		t.expectListed(ctx, b, verification.ListQuery{Limit: limit}, made...)
	}
	for _, listed := range t.walkList(ctx, a, verification.ListQuery{Limit: 3}, func() {}) {
		t.Expect(listed).To(equalRequest(t.getRequest(ctx, b, listed.ID)))
	}
	first, err := a.List(ctx, verification.ListQuery{Limit: len(made)})
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(first.Next.IsZero()).To(BeTrue(), "a full page is the last if nothing follows")
	first.Requests[0].Reference = "spoiled"
	t.expectListed(ctx, a, verification.ListQuery{ListFilter: verification.ListFilter{Reference: "order"}, Limit: 2}, made...)
}

// listsOneMode walks in pages of one. A page that is empty, although it is not the last, or one more page than there are requests, would
// tell a test key of live ones.
func listsOneMode(ctx context.Context, t *trial) {
	s := t.openReplica()
	var live, tests []verification.Request
	for range 3 {
		live = append(live, t.createRequest(ctx, s, t.newLasting()))
		t.passMoment(ctx)
		tests = append(tests, t.createRequest(ctx, s, t.newTest(testNumberDeclined)))
		t.passMoment(ctx)
	}
	live = append(live, t.createRequest(ctx, s, t.newLasting()))
	t.harness.Settle()
	for _, test := range []bool{true, false} {
		want := map[bool][]verification.Request{true: tests, false: live}[test]
		q := verification.ListQuery{ListFilter: verification.ListFilter{Test: test}, Limit: 1}
		for i := range slices.Backward(want) {
			page, err := s.List(ctx, q)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(requestIDs(page.Requests)).To(Equal([]string{want[i].ID}))
			t.Expect(page.Next.IsZero()).To(Equal(i == 0))
			q.After = page.Next
		}
	}
}

func listsFiltered(ctx context.Context, t *trial) {
	s := t.openReplica()
	create := func(reference string, change mutation) verification.Request {
		n := t.newLasting()
		n.Reference = reference
		r := t.createRequest(ctx, s, n)
		if change != nil {
			r = t.updateRequest(ctx, s, r.ID, change)
		}
		t.passMoment(ctx)
		return r
	}
	lapsed := t.createRequest(ctx, s, t.newLapsing(0))
	t.passMoment(ctx)
	pending, verified, expired := create("order-1", nil), create("order-2", verifyClaimed(true)), create("", expireRequest)
	last := create("order-2", expireRequest)
	t.lapseRequests()
	list := func(f verification.ListFilter, want ...verification.Request) {
		ginkgo.GinkgoHelper()
		t.expectListed(ctx, s, verification.ListQuery{ListFilter: f, Limit: 2}, want...)
	}
	list(verification.ListFilter{}, lapsed, pending, verified, expired, last)
	list(verification.ListFilter{Phase: verification.Pending}, pending)
	list(verification.ListFilter{Phase: verification.Verified}, verified)
	list(verification.ListFilter{Phase: verification.Expired}, expired, last)
	list(verification.ListFilter{Reference: "order-2"}, verified, last)
	list(verification.ListFilter{Reference: "order-"})
	list(verification.ListFilter{Reference: `x' OR ''='`})
	list(verification.ListFilter{Reference: "order-2", Phase: verification.Expired}, last)
	list(verification.ListFilter{Reference: "order-1", Phase: verification.Expired})
	list(verification.ListFilter{Since: verified.CreatedAt}, verified, expired, last)
	list(verification.ListFilter{Since: verified.CreatedAt.Add(time.Microsecond)}, expired, last)
	list(verification.ListFilter{Since: verified.CreatedAt, Phase: verification.Verified, Reference: "order-2"}, verified)
	list(verification.ListFilter{Since: last.CreatedAt.Add(time.Hour)})
}

func listsOfANumber(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	create := func(n verification.New, number string, change mutation) verification.Request {
		n.Phone = mustNumber(number)
		r := t.createRequest(ctx, a, n)
		if change != nil {
			r = t.updateRequest(ctx, b, r.ID, change)
		}
		t.passMoment(ctx)
		return r
	}
	const claimed, otherForm, neighbour = "+525512345678", "+5215512345678", "+525512345679"
	first := create(t.newLasting(), claimed, expireRequest)
	create(t.newLasting(), neighbour, nil)
	verified := create(t.newLasting(), otherForm, verifyClaimed(true))
	referenced := t.newLasting()
	referenced.Reference = "order-7"
	last := create(referenced, claimed, nil)
	test := t.createRequest(ctx, a, t.newTest(testNumberDeclined))
	other := *t
	other.project = newProject()
	stranger := other.newLasting()
	stranger.Phone = mustNumber(claimed)
	other.createRequest(ctx, other.openReplica(), stranger)
	list := func(number string, f verification.ListFilter, want ...verification.Request) {
		ginkgo.GinkgoHelper()
		f.Phone = mustNumber(number)
		t.expectListed(ctx, b, verification.ListQuery{ListFilter: f, Limit: 1}, want...)
	}
	list(claimed, verification.ListFilter{}, first, verified, last)
	list(otherForm, verification.ListFilter{}, first, verified, last)
	list(claimed, verification.ListFilter{Phase: verification.Verified}, verified)
	list(claimed, verification.ListFilter{Since: verified.CreatedAt}, verified, last)
	list(claimed, verification.ListFilter{Reference: "order-7"}, last)
	list("+525512345670", verification.ListFilter{})
	list(testNumberDeclined, verification.ListFilter{})
	list(testNumberDeclined, verification.ListFilter{Test: true}, test)
	list(claimed, verification.ListFilter{Test: true})
}

func listsUnderChanges(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	var staying, going []string
	for i := range 24 {
		r := t.createRequest(ctx, a, t.newCreation())
		if i%3 == 0 {
			going = append(going, r.ID)
		} else {
			staying = append(staying, r.ID)
		}
		if i%4 == 0 {
			t.passMoment(ctx)
		}
	}
	changed := 0
	seen := map[string]int{}
	for _, r := range t.walkList(ctx, b, verification.ListQuery{Limit: 4}, func() {
		t.passMoment(ctx)
		t.createRequest(ctx, a, t.newCreation())
		if changed < len(going) {
			t.deleteRequest(ctx, a, going[changed])
			t.updateRequest(ctx, a, staying[changed], verifyClaimed(true))
			t.updateRequest(ctx, a, staying[len(staying)-1-changed], expireRequest)
			changed++
		}
	}) {
		seen[r.ID]++
		t.Expect(seen[r.ID]).To(Equal(1), "no request is shown twice")
	}
	for _, id := range staying {
		t.Expect(seen).To(HaveKey(id))
	}
}

func listsOwnProject(ctx context.Context, t *trial) {
	own := t.openReplica()
	r := t.createRequest(ctx, own, t.newCreation())
	other := *t
	other.project = newProject()
	stranger := other.createRequest(ctx, other.openReplica(), other.newCreation())
	t.expectListed(ctx, own, verification.ListQuery{Limit: 10}, r)
	other.expectListed(ctx, other.openReplica(), verification.ListQuery{Limit: 10}, stranger)
	foreign := verification.Position{CreatedAt: stranger.CreatedAt.Add(time.Hour), ID: stranger.ID}
	t.expectListed(ctx, own, verification.ListQuery{Limit: 10, After: foreign}, r)
}

func listsForNobody(ctx context.Context, t *trial) {
	s := t.openReplica()
	t.createRequest(ctx, s, t.newCreation())
	t.harness.Settle()
	ended, end := context.WithCancel(ctx)
	end()
	_, err := s.List(ended, verification.ListQuery{Limit: 1})
	t.Expect(err).To(MatchError(context.Canceled))
}

// fewestAttempts is how many attempts every store keeps.
const fewestAttempts = 4

func keepsAttempts(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	r := t.createRequest(ctx, a, t.newCreation())
	var made []verification.PastAttempt
	record := func(code int) {
		ginkgo.GinkgoHelper()
		t.passMoment(ctx)
		r = t.updateRequest(ctx, b, r.ID, func(r *verification.Request, now time.Time) error {
			attempt := verification.Attempt{
				Event: r.Event(), Number: r.Delivery.Attempts + 1, Redelivered: r.Redelivered, At: now, StatusCode: code,
				Delivered: code == 204, Next: now,
			}
			if !attempt.Delivered {
				attempt.Reason = "status"
			}
			return r.RecordAttempt(attempt)
		})
		last := verification.PastAttempt{At: r.Delivery.LastAttemptAt, Event: r.Event().Kind, StatusCode: code, Reason: r.Delivery.LastReason}
		made = append([]verification.PastAttempt{last}, made...)
	}
	expectKept := func() {
		ginkgo.GinkgoHelper()
		read := t.getRequest(ctx, a, r.ID)
		kept := read.PastAttempts()
		t.Expect(len(kept)).To(BeNumerically(">=", min(len(made), fewestAttempts)))
		t.Expect(len(kept)).To(BeNumerically("<=", min(len(made), verification.MaxAttempts)))
		t.Expect(kept).To(Equal(made[:len(kept)]))
	}
	r = t.updateRequest(ctx, a, r.ID, refuseNumber)
	record(503)
	record(204)
	expectKept()
	r = t.updateRequest(ctx, a, r.ID, verifyClaimed(true))
	t.Expect(r.Delivery.Attempts).To(BeZero(), "the event of the verification has attempts of its own")
	expectKept()
	record(500)
	record(204)
	expectKept()
	t.updateRequest(ctx, b, r.ID, func(r *verification.Request, now time.Time) error { return r.Redeliver("once more", now, allEvents) })
	expectKept()
	for range verification.MaxAttempts + 2 {
		record(502)
		expectKept()
	}
	t.Expect(made[len(made)-1].Event).To(Equal(verification.EventAttention))
}

func keepsNoAttempt(ctx context.Context, t *trial) {
	s := t.openReplica()
	r := t.createRequest(ctx, s, t.newCreation())
	r = t.updateRequest(ctx, s, r.ID, verifyClaimed(true))
	t.updateRequest(ctx, s, r.ID, recordDelivered(r))
	read := t.getRequest(ctx, s, r.ID)
	t.Expect(read.EarlierAttempts).To(BeEmpty(), "the only attempt is in Delivery")
	t.Expect(read.PastAttempts()).To(HaveLen(1))
}
