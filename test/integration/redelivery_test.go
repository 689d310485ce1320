package integration_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("The annotation "+verifyv1.RedeliverAnnotation, func() {
	It("sends an event once more, with the same id and bytes, and once only whoever leads", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		id := s.verifiedRequests(ctx, 1)[0]
		s.allDelivered(ctx, []string{id}, 1)

		s.wish(ctx, id+"/1")
		Eventually(s.timesDelivered).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(Equal(2))
		s.allDelivered(ctx, []string{id}, 1) // of the new event
		Expect(s.object(ctx, id).Status.ObservedRedeliver).To(Equal(id + "/1"))
		s.told(ctx, "RedeliveryScheduled", 1)

		s.kubectl("annotate", "--overwrite", "vproj/shop", verifyv1.RedeliverAnnotation+"="+id+"/1")
		s.changeLeader(ctx)
		Expect(s.timesDelivered(id)).To(Equal(2), "the same wish again")

		By("as if the last holder had died before it noted the wish in the project's status")
		s.leader(ctx).kill()
		s.kubectl("patch", "vproj/shop", "--subresource=status", "--type=merge", `-p={"status":{"observedRedeliver":null}}`)
		s.startOne()
		s.leader(ctx)
		Eventually(s.observedRedeliver).WithContext(ctx).WithTimeout(patience).Should(Equal(id + "/1"))
		s.changeLeader(ctx)
		Expect(s.timesDelivered(id)).To(Equal(2), "the same wish again")

		s.wish(ctx, id+"/2")
		Eventually(s.timesDelivered).WithContext(ctx).WithArguments(id).WithTimeout(patience).Should(Equal(3))

		s.wish(ctx, "nobody/1")
		s.told(ctx, "RedeliveryRefused", 1)
		Expect(s.kubectl("get", "events", "--field-selector=type=Warning")).To(ContainSubstring("verificationproject/shop"))

		s.kubectl("annotate", "--overwrite", "vproj/shop", verifyv1.RedeliverAnnotation+"=no wish")
		s.told(ctx, "RedeliveryRefused", 2)
		s.changeLeader(ctx)
		Expect(s.observedRedeliver(ctx)).To(HavePrefix("malformed:"))
		s.told(ctx, "RedeliveryRefused", 2)
	}, SpecTimeout(4*time.Minute))
})

// wish annotates the project and returns when its status says that the wish was seen to.
func (s *shop) wish(ctx context.Context, wish string) {
	GinkgoHelper()
	s.kubectl("annotate", "--overwrite", "vproj/shop", verifyv1.RedeliverAnnotation+"="+wish)
	Eventually(s.observedRedeliver).WithContext(ctx).WithTimeout(patience).Should(Equal(wish))
}

func (s *shop) observedRedeliver(ctx context.Context) (string, error) {
	project := &verifyv1.VerificationProject{}
	err := s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, project)
	return project.Status.ObservedRedeliver, err
}

// timesDelivered counts how often the receiver got the event of a request.
func (s *shop) timesDelivered(id string) int {
	GinkgoHelper()
	return len(s.receiver.byRequest(webhookSecret)[id])
}

// changeLeader kills the leader, and returns when the next one has delivered something.
func (s *shop) changeLeader(ctx context.Context) {
	GinkgoHelper()
	s.leader(ctx).kill()
	s.startOne()
	s.allDelivered(ctx, s.verifiedRequests(ctx, 1), 1)
}

// told returns when the project has that many events of a reason; all events must be the project's, none a request's.
func (s *shop) told(ctx context.Context, reason string, times int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		list, err := s.clients.EventsV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(count(list.Items, reason)).To(Equal(times), "%v", fmt.Sprint(list.Items))
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

func count(events []eventsv1.Event, reason string) int {
	GinkgoHelper()
	total := 0
	for _, e := range events {
		Expect(e.Regarding.Kind).To(Equal(verifyv1.VerificationProjectKind))
		switch {
		case e.Reason != reason:
		case e.Series != nil:
			total += int(e.Series.Count)
		default:
			total++
		}
	}
	return total
}
