package integration_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("The annotation "+verifyv1.RedeliverAnnotation, func() {
	It("sends an event once more, with the same id and bytes, and only once across leaders", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		id := s.createVerifiedRequests(ctx, 1)[0]
		s.awaitDelivered(ctx, []string{id}, 1)

		s.requestRedelivery(ctx, id+"/1")
		Eventually(s.timesDelivered).WithContext(ctx).WithArguments(id).Should(Equal(2))
		s.awaitDelivered(ctx, []string{id}, 1) // of the new event
		Expect(s.readRequest(ctx, id).Status.ObservedRedeliver).To(Equal(id + "/1"))
		s.awaitEvents(ctx, "RedeliveryScheduled", 1)
		Expect(s.runKubectl("get", "events.events.k8s.io", "-o=yaml")).To(ContainSubstring(verifyv1.RedeliverAnnotation+": "+id+"/1"), "it says which")

		s.runKubectl("annotate", "--overwrite", "vproj/shop", verifyv1.RedeliverAnnotation+"="+id+"/1")
		s.changeLeader(ctx)
		Expect(s.timesDelivered(id)).To(Equal(2), "the same annotation again")

		By("as if the last leader had died before it recorded the annotation in the project's status")
		s.findLeader(ctx).Kill()
		s.runKubectl("patch", "vproj/shop", "--subresource=status", "--type=merge", `-p={"status":{"observedRedeliver":null}}`)
		s.startOne()
		s.findLeader(ctx)
		Eventually(s.observedRedeliver).WithContext(ctx).Should(Equal(id + "/1"))
		s.changeLeader(ctx)
		Expect(s.timesDelivered(id)).To(Equal(2), "the same annotation again")

		s.requestRedelivery(ctx, id+"/2")
		Eventually(s.timesDelivered).WithContext(ctx).WithArguments(id).Should(Equal(3))

		s.requestRedelivery(ctx, "unknown/1")
		s.awaitEvents(ctx, "RedeliveryRefused", 1)
		Expect(s.runKubectl("get", "events", "--field-selector=type=Warning")).To(ContainSubstring("verificationproject/shop"))

		s.runKubectl("annotate", "--overwrite", "vproj/shop", verifyv1.RedeliverAnnotation+"=no wish")
		s.awaitEvents(ctx, "RedeliveryRefused", 2)
		s.changeLeader(ctx)
		Expect(s.observedRedeliver(ctx)).To(HavePrefix("malformed:"))
		s.awaitEvents(ctx, "RedeliveryRefused", 2)
	}, SpecTimeout(hang))
})

// requestRedelivery annotates the project and waits until its status records the annotation as handled.
func (s *shop) requestRedelivery(ctx context.Context, wish string) {
	GinkgoHelper()
	s.runKubectl("annotate", "--overwrite", "vproj/shop", verifyv1.RedeliverAnnotation+"="+wish)
	Eventually(s.observedRedeliver).WithContext(ctx).Should(Equal(wish))
}

func (s *shop) observedRedeliver(ctx context.Context) (string, error) {
	project := &verifyv1.VerificationProject{}
	err := s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, project)
	return project.Status.ObservedRedeliver, err
}

// timesDelivered counts how often the receiver received the event of a request.
func (s *shop) timesDelivered(id string) int {
	GinkgoHelper()
	return len(s.receiver.byRequest(webhookSecret)[id])
}

// changeLeader kills the leader, and waits until the next one has delivered an event.
func (s *shop) changeLeader(ctx context.Context) {
	GinkgoHelper()
	s.findLeader(ctx).Kill()
	s.startOne()
	s.awaitDelivered(ctx, s.createVerifiedRequests(ctx, 1), 1)
}

// awaitEvents waits until the project has that many Events of a reason; no Event may belong to a request.
func (s *shop) awaitEvents(ctx context.Context, reason string, times int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		list, err := s.clients.EventsV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(countEvents(list.Items, reason)).To(Equal(times), "%v", fmt.Sprint(list.Items))
	}).WithContext(ctx).Should(Succeed())
}

func countEvents(events []eventsv1.Event, reason string) int {
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
