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
		{name: "take neither a code for a message, nor the end of its request for silence", run: hearsNoCode},
	}
}

// expireRequest is the mutation for the end of a request, however early.
func expireRequest(r *verification.Request, _ time.Time) error {
	r.Phase = verification.Expired
	return nil
}

// playTest is the mutation for the outcome of a test number.
func playTest(r *verification.Request, now time.Time) error { return r.Play(now, 0) }

// expireWithEvent is expireRequest with an event that is due.
func expireWithEvent(r *verification.Request, now time.Time) error {
	r.Phase, r.Delivery = verification.Expired, verification.Delivery{NextAttemptAt: now}
	return nil
}

// verifyByWhatsApp is the mutation for a message through the messenger that the client did not choose.
func verifyByWhatsApp(r *verification.Request, now time.Time) error {
	return r.Verify(verification.Evidence{Method: verification.WhatsApp, Sender: r.Phone, SentAt: now}, now, 0)
}

// confirmProven is the mutation for a right session code.
func confirmProven(wanted verification.EventKinds) mutation {
	return func(r *verification.Request, now time.Time) error {
		return r.ConfirmSession(Match(verification.MatchesSession), now, wanted)
	}
}

// cancelRequest is the mutation for a user who gives up on the page.
func cancelRequest(r *verification.Request, now time.Time) error { return r.Cancel(now, 0) }

// cancelByClient is the mutation for a client that needs the request no longer.
func cancelByClient(wanted verification.EventKinds) mutation {
	return func(r *verification.Request, now time.Time) error { return r.CancelByClient(now, wanted) }
}

func (t *trial) newForWhatsApp() verification.New {
	n := t.newCreation()
	n.Method = verification.WhatsApp
	return n
}

// expectActivity expects every replica to report that of WhatsApp requests.
func (t *trial) expectActivity(ctx context.Context, since time.Time, want verification.Activity) {
	ginkgo.GinkgoHelper()
	t.expectActivityOf(ctx, t.openReplicas(2), since, want)
}

// expectActivityOf expects those replicas to report it.
func (t *trial) expectActivityOf(ctx context.Context, stores []verification.Store, since time.Time, want verification.Activity) {
	ginkgo.GinkgoHelper()
	t.harness.Settle()
	for _, store := range stores {
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
	for _, end := range []mutation{expireRequest, expireWithEvent, playTest} { // no messenger has a part in these
		n := t.newTest(testNumberAtOnce)
		n.Method, n.Terms.Level = verification.WhatsApp, verification.LevelSession
		t.updateRequest(ctx, b, t.createRequest(ctx, a, n).ID, end)
	}
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
	whatsApp := []verification.Method{verification.WhatsApp}
	whatsAppFirst := []verification.Method{verification.WhatsApp, verification.Telegram}
	telegramFirst := []verification.Method{verification.Telegram, verification.WhatsApp}
	const possession, session = verification.LevelPossession, verification.LevelSession
	for _, step := range []struct {
		name    string
		expired int
		heard   bool
		level   verification.Level
		methods []verification.Method
		change  []mutation
	}{
		{"verified through the other messenger", 0, false, possession, telegramFirst, []mutation{verifyClaimed(false)}},
		{"pending, and bound to a sender", 0, true, possession, whatsApp, []mutation{bindSender("anna")}},
		{"expired, and bound to a sender", 1, true, possession, whatsApp, []mutation{bindSender("bruno"), expireRequest}},
		{"verified, its event due", 1, true, possession, whatsApp, []mutation{verifyClaimed(true)}},
		{"verified, its event due later", 1, true, possession, whatsApp, []mutation{dueIn(time.Hour)}},
		{"verified, without an event", 1, true, possession, whatsApp, []mutation{verifyClaimed(false)}},
		{"verified after it was bound", 1, true, possession, whatsApp, []mutation{bindSender("carla"), verifyClaimed(false)}},
		{"verified through the other of two messengers", 1, true, possession, telegramFirst, []mutation{verifyByWhatsApp}},
		{"expired unheard", 2, false, possession, whatsApp, []mutation{expireRequest}},
		{"expired unheard, its event due", 3, false, possession, whatsApp, []mutation{expireWithEvent}},
		{"pending, and bound to a sender of one of two messengers", 3, false, possession, whatsAppFirst, []mutation{bindSender("dora")}},
		{"pending, and refused through one of two messengers", 3, false, possession, whatsAppFirst, []mutation{refuseNumber}},
		{"expired, and heard of through one of two messengers", 4, false, possession, whatsAppFirst,
			[]mutation{bindSender("emil"), refuseNumber, expireRequest}},
		{"verified through the first of two messengers", 4, true, possession, whatsAppFirst, []mutation{bindSender("fred"), verifyByWhatsApp}},
		{"proven", 4, true, session, whatsApp, []mutation{verifyClaimed(false)}},
		{"proven, its event due", 4, true, session, whatsApp, []mutation{verifyClaimed(true)}},
		{"proven through the other of two messengers", 4, true, session, telegramFirst, []mutation{verifyByWhatsApp}},
		{"proven through the other messenger", 4, false, session, telegramFirst, []mutation{verifyClaimed(false)}},
		{"confirmed", 4, true, session, whatsApp, []mutation{verifyClaimed(false), confirmProven(0)}},
		{"confirmed, its event due", 4, true, session, whatsAppFirst, []mutation{verifyByWhatsApp, confirmProven(allEvents)}},
		{"proven, and expired", 5, true, session, whatsApp, []mutation{verifyClaimed(false), expireRequest}},
		{"canceled on the page", 5, false, session, whatsApp, []mutation{cancelRequest}},
		{"canceled by its client", 5, false, possession, whatsApp, []mutation{cancelByClient(0)}},
		{"canceled by its client, its event due", 5, false, possession, whatsApp, []mutation{cancelByClient(allEvents)}},
		{"canceled after it was bound", 5, true, possession, whatsApp, []mutation{bindSender("greta"), cancelByClient(0)}},
		{"expired unheard, after those", 6, false, possession, whatsApp, []mutation{expireRequest}},
	} {
		n := t.newCreation()
		n.Terms.Level = step.level
		n.Method, n.OtherMethods = step.methods[0], step.methods[1:]
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
		// Two more replicas for each question of each step would be near a hundred.
		t.expectActivityOf(ctx, []verification.Store{a, b}, begun, want)
		t.expectActivityOf(ctx, []verification.Store{a, b}, heard.Add(time.Microsecond), verification.Activity{Expired: step.expired})
	}
}

// proveByCode is the mutation for the code that was sent to the number, entered on the page.
func proveByCode(r *verification.Request, now time.Time) error {
	r.ProvenAt, r.Actual, r.Via, r.Delivery = now, r.Phone, verification.ViaCode, verification.Delivery{}
	return nil
}

// redeemCode is the same by the client.
func redeemCode(r *verification.Request, now time.Time) error {
	r.Phase, r.VerifiedAt = verification.Verified, now
	return proveByCode(r, now)
}

// redeemWithEvent is redeemCode with an event that is due.
func redeemWithEvent(r *verification.Request, now time.Time) error {
	defer func() { r.Delivery.NextAttemptAt = now }()
	return redeemCode(r, now)
}

func hearsNoCode(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	begun := t.createRequest(ctx, a, t.newForWhatsApp()).CreatedAt
	want := verification.Activity{}
	for i, step := range []struct {
		name   string
		heard  bool // by the first change
		change []mutation
	}{
		{"entered on the page", false, []mutation{proveByCode}},
		{"redeemed", false, []mutation{redeemCode}},
		{"redeemed, its event due", false, []mutation{redeemWithEvent}},
		{"expired unheard", false, []mutation{expireRequest}},
		{"expired unheard, its event due", false, []mutation{expireWithEvent}},
		{"proven by a message", true, []mutation{verifyClaimed(false)}},
		{"confirmed after a message", true, []mutation{verifyClaimed(false), confirmProven(0)}},
		{"redeemed after a refused message", true, []mutation{refuseNumber, redeemCode}},
		{"redeemed after a refused message, its event due", true, []mutation{refuseNumber, redeemWithEvent}},
		{"expired after a refused message", true, []mutation{refuseNumber, expireRequest}},
	} {
		r := t.createRequest(ctx, a, t.newCodeFor("key", numberOf(i)))
		for k, m := range step.change {
			t.passMoment(ctx)
			r = t.updateRequest(ctx, b, r.ID, m)
			if step.heard && k == 0 {
				want.LastHeard = r.HeardAt()
			}
		}
		t.Expect(want.LastHeard.IsZero()).To(Equal(!step.heard), step.name)
		t.expectActivityOf(ctx, []verification.Store{a, b}, begun, want)
	}
}
