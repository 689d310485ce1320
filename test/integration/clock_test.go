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

// beUnixNear matches a header with a time in Unix seconds close to another time.
func beUnixNear(at time.Time) types.GomegaMatcher {
	return WithTransform(func(text string) (time.Time, error) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		return time.Unix(seconds, 0), err
	}, BeTemporally("~", at, 10*time.Second))
}

// shiftClock sets the clock of replicas that start from now on ahead by the offset.
func shiftClock(offset time.Duration) (right func()) {
	GinkgoHelper()
	Expect(os.Setenv(program.ClockOffset, offset.String())).To(Succeed())
	DeferCleanup(os.Unsetenv, program.ClockOffset)
	return func() { Expect(os.Unsetenv(program.ClockOffset)).To(Succeed()) }
}

// readStatus returns the status of a request from a replica.
func (r *replica) readStatus(ctx context.Context, key, id string) any {
	_, answer := r.callAPI(ctx, key, http.MethodGet, "/api/verify/status?id="+id, "")
	return answer["status"]
}

// An hour is longer than the lifetime of any request, and than the first steps of the schedule together.
var _ = Describe("A machine whose clock is an hour", func() {
	for name, offset := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		It(name+" goes by the time of the API server", func(ctx SpecContext) {
			s := newShop(ctx)
			s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Request.TTL = "10m" })
			s.allowSlowAnswers(ctx)
			right := shiftClock(offset)
			wrong := s.startOne() // it leads, and handles due work
			right()
			Eventually(wrong.isLeading).WithContext(ctx).Should(BeTrue(), wrong.output)
			other := s.startOne()
			for _, r := range s.replicas {
				Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
			}
			Expect(wrong.readMetric(ctx, "phoneproof_clock_offset_seconds", nil)).To(BeNumerically("~", -offset.Seconds(), 5))
			Expect(other.readMetric(ctx, "phoneproof_clock_offset_seconds", nil)).To(BeZero())

			pending := []string{s.initRequest(ctx, other, "+49 1511 2345678"), s.initRequest(ctx, wrong, "+49 1511 2345679")}
			stopFailing := s.receiver.failFirst()
			due := s.createVerifiedRequests(ctx, 1)
			Eventually(s.receiver.deliveries).WithContext(ctx).ShouldNot(BeEmpty(), "due events are sent")
			stopFailing()
			s.awaitDelivered(ctx, due, 2)
			sent := s.receiver.deliveries()
			Expect(sent[1].at.Sub(sent[0].at)).To(BeNumerically(">", 4900*time.Millisecond), "the schedule counts from the right time")
			for _, d := range sent {
				Expect(d.headers.Get("Webhook-Timestamp")).To(beUnixNear(d.at), "a receiver refuses old and future timestamps")
			}
			lapsed, err := s.storeRequest(ctx, time.Second)
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() verifyv1.Phase { return s.readRequest(ctx, lapsed).Status.Phase }).WithContext(ctx).
				Should(Equal(verifyv1.PhaseExpired), "lapsed requests expire")
			for _, id := range pending {
				Expect(s.readRequest(ctx, id).Status.Phase).To(Equal(verifyv1.PhasePending))
				for _, r := range s.replicas {
					Eventually(r.readStatus).WithContext(ctx).WithArguments(s.key, id).Should(Equal("PENDING"))
				}
			}
		}, SpecTimeout(hang))

		It(name+" goes by the time of the database", func(ctx SpecContext) {
			o := newDatabaseShopWith(ctx, newDatabase(ctx), func(p *verifyv1.VerificationProject) {
				p.Spec.Webhook.Timeout = "30s" // as with allowSlowAnswers
			})
			right := shiftClock(offset)
			o.start(ctx, 1)
			right()
			wrong := o.replicas[0]
			Expect(wrong.readMetric(ctx, "phoneproof_clock_offset_seconds", nil)).To(BeNumerically("~", -offset.Seconds(), 5))
			b := o.startRequest(ctx, wrong, "+4915112345001", "first")
			Eventually(wrong.readStatus).WithContext(ctx).WithArguments(o.key, b.id).Should(Equal("PENDING"))
			stopFailing := o.receiver.failFirst()
			o.verifyNumber(ctx, wrong, b)
			Eventually(o.receiver.deliveries).WithContext(ctx).ShouldNot(BeEmpty(), "due events are sent")
			stopFailing()
			Eventually(o.queryCount).WithContext(ctx).WithArguments(ctx, undeliveredEvents).Should(BeZero())
			sent := o.receiver.deliveries()
			Expect(sent).To(HaveLen(2))
			Expect(sent[1].at.Sub(sent[0].at)).To(BeNumerically(">", 4900*time.Millisecond), "the schedule counts from the right time")
			for _, d := range sent {
				Expect(d.headers.Get("Webhook-Timestamp")).To(beUnixNear(d.at))
			}
			Eventually(wrong.readStatus).WithContext(ctx).WithArguments(o.key, b.id).Should(Equal("VERIFIED"))
		}, SpecTimeout(hang))
	}
})
