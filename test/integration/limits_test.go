package integration_test

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A process that may open 256 files", func() {
	It("acknowledges nothing that it cannot store, uses up no attempt, and recovers", func(ctx SpecContext) {
		s := newShop(ctx)
		s.openStore(ctx)
		s.start(ctx, 1)
		r := s.replicas[0]
		s.findLeader(ctx)
		// Go raises the soft limit to the hard limit, so both are lowered.
		limit := exec.CommandContext(ctx, "prlimit", "--pid", strconv.Itoa(r.PID), "--nofile=256:256")
		if out, err := limit.CombinedOutput(); err != nil {
			Skip("the limit cannot be set: " + string(out))
		}
		stop := s.openConnections(ctx, r, 400)
		ids := s.createVerifiedRequests(ctx, 20)
		var acked []string
		answers, began := map[int]int{}, time.Now()
		for n := 0; time.Since(began) < 4*time.Second; n++ {
			status, answer := r.callAPI(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": "+49152%08d"}`, n))
			answers[status]++
			if status == http.StatusOK {
				acked = append(acked, answer["requestId"].(string))
			}
		}
		Eventually(r.output).WithContext(ctx).Should(ContainSubstring("too many open files"))
		stop()
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		s.awaitDelivered(ctx, ids, 1)
		s.receiver.byRequest(webhookSecret)
		Eventually(r.initStatus).WithContext(ctx).WithArguments(s.key).Should(Equal(http.StatusOK))
		Expect(r.Running()).To(BeTrue())
		objects := s.listRequests(ctx)
		for _, id := range acked {
			Expect(objects).To(HaveKey(id), "acknowledged means stored")
		}
		AddReportEntry("answers under the flood", fmt.Sprintf("%v by status, 0 for none; events held back %d times", answers, r.countHeld(ctx, "resources")))
	}, SpecTimeout(hang))
})

// openConnections opens connections to a replica that stay idle, until stop.
func (s *shop) openConnections(ctx SpecContext, r *replica, connections int) (stop func()) {
	GinkgoHelper()
	var open []net.Conn
	var dialer net.Dialer
	for range connections {
		conn, err := dialer.DialContext(ctx, "tcp", r.API)
		Expect(err).NotTo(HaveOccurred(), "the kernel accepts them, whatever the process does")
		open = append(open, conn)
	}
	return func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}
}
