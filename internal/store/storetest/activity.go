package storetest

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func activityChecks() []check {
	return []check{
		{name: "count requests that expired since a time, of one method", run: countsExpired},
		{name: "report the last message, whatever became of its request", run: reportsLastMessage},
	}
}

// expireRequest is the mutation for the end of a request, however early.
func expireRequest(r *verification.Request, _ time.Time) error {
	r.Phase = verification.Expired
	return nil
}

func (t *trial) newForWhatsApp() verification.New {
	n := t.newCreation()
	n.Method = verification.WhatsApp
	return n
}

// expectActivity expects every replica to report that of WhatsApp requests.
func (t *trial) expectActivity(ctx context.Context, since time.Time, want verification.Activity) {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	for _, store := range t.openReplicas(2) {
		t.harness.Settle()
		counter, ok := store.(verification.Counter)
		t.Expect(ok).To(BeTrue(), "the store counts")
		got, err := counter.Activity(ctx, verification.WhatsApp, since)
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(got).To(Equal(want))
	}
}

func countsExpired(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	t.createRequest(ctx, a, t.newForWhatsApp()) // pending
	keyed := t.newForWhatsApp()
	keyed.BodyHash = "hash" // deleted later than others
	first := t.createRequest(ctx, a, t.newForWhatsApp())
	t.passMoment(ctx)
	second := t.createRequest(ctx, b, keyed)
	other, gone := t.createRequest(ctx, a, t.newCreation()), t.createRequest(ctx, a, t.newForWhatsApp())
	for _, r := range []verification.Request{first, second, other} {
		t.updateRequest(ctx, b, r.ID, expireRequest)
	}
	t.deleteRequest(ctx, a, gone.ID)
	begun := first.CreatedAt
	t.expectActivity(ctx, begun, verification.Activity{Expired: 2})
	ended := second.ExpiresAt.Add(verification.ExpiryGrace)
	t.expectActivity(ctx, ended, verification.Activity{Expired: 1})
	t.expectActivity(ctx, ended.Add(time.Microsecond), verification.Activity{})
	third := t.createRequest(ctx, a, t.newForWhatsApp())
	t.updateRequest(ctx, a, third.ID, verifyClaimed(false))
	verified := t.getRequest(ctx, a, third.ID).VerifiedAt
	t.expectActivity(ctx, begun, verification.Activity{Expired: 2, LastHeard: verified})
}

func reportsLastMessage(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	begun := t.createRequest(ctx, a, t.newForWhatsApp()).CreatedAt
	heard := begun
	for _, step := range []struct {
		name    string
		expired int
		heard   bool
		method  verification.Method
		change  []mutation
	}{
		{"verified through the other messenger", 0, false, verification.Telegram, []mutation{verifyClaimed(false)}},
		{"pending, and bound to a sender", 0, true, verification.WhatsApp, []mutation{bindSender("anna")}},
		{"expired, and bound to a sender", 1, true, verification.WhatsApp, []mutation{bindSender("bruno"), expireRequest}},
		{"verified, its event due", 1, true, verification.WhatsApp, []mutation{verifyClaimed(true)}},
		{"verified, its event due later", 1, true, verification.WhatsApp, []mutation{dueIn(time.Hour)}},
		{"verified, without an event", 1, true, verification.WhatsApp, []mutation{verifyClaimed(false)}},
		{"verified after it was bound", 1, true, verification.WhatsApp, []mutation{bindSender("carla"), verifyClaimed(false)}},
		{"expired unheard", 2, false, verification.WhatsApp, []mutation{expireRequest}},
	} {
		n := t.newCreation()
		n.Method = step.method
		r := t.createRequest(ctx, a, n)
		for _, m := range step.change {
			t.passMoment(ctx)
			r = t.updateRequest(ctx, b, r.ID, m)
		}
		before := heard
		if step.heard {
			heard = r.HeardAt()
			t.Expect(heard.After(before)).To(BeTrue(), step.name)
		}
		want := verification.Activity{Expired: step.expired, LastHeard: heard}
		if heard.Equal(begun) {
			want.LastHeard = time.Time{}
		}
		t.expectActivity(ctx, begun, want)
		t.expectActivity(ctx, heard.Add(time.Microsecond), verification.Activity{Expired: step.expired})
	}
}
