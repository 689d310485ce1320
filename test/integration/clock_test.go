package integration_test

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/program"
)

// beUnixNear matches a header that tells a time in seconds, little away from another one.
func beUnixNear(at time.Time) types.GomegaMatcher {
	return WithTransform(func(text string) (time.Time, error) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		return time.Unix(seconds, 0), err
	}, BeTemporally("~", at, 10*time.Second))
}

// offBy has the replicas that start from now on run on a machine whose clock is so much ahead.
func offBy(offset time.Duration) (right func()) {
	GinkgoHelper()
	Expect(os.Setenv(program.ClockOffset, offset.String())).To(Succeed())
	DeferCleanup(os.Unsetenv, program.ClockOffset)
	return func() { Expect(os.Unsetenv(program.ClockOffset)).To(Succeed()) }
}

// status returns the status that a replica tells of a request.
func (r *replica) status(ctx context.Context, key, id string) any {
	_, answer := r.call(ctx, key, http.MethodGet, "/api/verify/status?id="+id, "")
	return answer["status"]
}

// An hour is more than any request lives, and more than the first steps of the schedule together.
var _ = Describe("A machine whose clock is an hour", func() {
	for name, offset := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		It(name+" goes by the time of the API server", func(ctx SpecContext) {
			s := newShop(ctx)
			s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Request.TTL = "10m" })
			right := offBy(offset)
			wrong := s.startOne() // it leads, and does what is due
			right()
			Eventually(wrong.leads).WithContext(ctx).WithTimeout(patience).Should(BeTrue(), wrong.printed)
			other := s.startOne()
			for _, r := range s.replicas {
				Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue(), r.printed)
			}
			Expect(wrong.metric(ctx, "phoneproof_clock_offset_seconds", nil)).To(BeNumerically("~", -offset.Seconds(), 5))
			Expect(other.metric(ctx, "phoneproof_clock_offset_seconds", nil)).To(BeZero())

			pending := []string{s.init(ctx, other, "+49 1511 2345678"), s.init(ctx, wrong, "+49 1511 2345679")}
			mend := s.receiver.failFirst()
			due := s.verifiedRequests(ctx, 1)
			Eventually(s.receiver.deliveries).WithContext(ctx).WithTimeout(patience).ShouldNot(BeEmpty(), "what is due is sent")
			mend()
			s.allDelivered(ctx, due, 2)
			sent := s.receiver.deliveries()
			Expect(sent[1].at.Sub(sent[0].at)).To(BeNumerically(">", 4900*time.Millisecond), "the schedule, from the right time")
			for _, d := range sent {
				Expect(d.headers.Get("Webhook-Timestamp")).To(beUnixNear(d.at), "a receiver refuses what is old, or of the future")
			}
			lapsed, err := s.request(ctx, time.Second)
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() verifyv1.Phase { return s.object(ctx, lapsed).Status.Phase }).WithContext(ctx).WithTimeout(patience).
				Should(Equal(verifyv1.PhaseExpired), "and what lapses expires")
			for _, id := range pending {
				Expect(s.object(ctx, id).Status.Phase).To(Equal(verifyv1.PhasePending))
				for _, r := range s.replicas {
					Eventually(r.status).WithContext(ctx).WithArguments(s.key, id).WithTimeout(patience).Should(Equal("PENDING"))
				}
			}
		}, SpecTimeout(3*time.Minute))

		It(name+" goes by the time of the database", func(ctx SpecContext) {
			o := newOutlet(ctx, newDatabase(ctx))
			right := offBy(offset)
			o.start(ctx, 1)
			right()
			wrong := o.replicas[0]
			Expect(wrong.metric(ctx, "phoneproof_clock_offset_seconds", nil)).To(BeNumerically("~", -offset.Seconds(), 5))
			b := o.begins(ctx, wrong, "+4915112345001", "first")
			Eventually(wrong.status).WithContext(ctx).WithArguments(o.key, b.id).WithTimeout(patience).Should(Equal("PENDING"))
			mend := o.receiver.failFirst()
			o.proves(ctx, wrong, b)
			Eventually(o.receiver.deliveries).WithContext(ctx).WithTimeout(patience).ShouldNot(BeEmpty(), "what is due is sent")
			mend()
			Eventually(o.count).WithContext(ctx).WithArguments(ctx, undeliveredEvents).WithTimeout(patience).Should(BeZero())
			sent := o.receiver.deliveries()
			Expect(sent).To(HaveLen(2))
			Expect(sent[1].at.Sub(sent[0].at)).To(BeNumerically(">", 4900*time.Millisecond), "the schedule, from the right time")
			for _, d := range sent {
				Expect(d.headers.Get("Webhook-Timestamp")).To(beUnixNear(d.at))
			}
			Eventually(wrong.status).WithContext(ctx).WithArguments(o.key, b.id).WithTimeout(patience).Should(Equal("VERIFIED"))
		}, SpecTimeout(2*time.Minute))
	}
})
