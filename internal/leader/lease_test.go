package leader_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

var plane *controlplane.ControlPlane

func TestLease(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Lease")
}

var _ = BeforeSuite(func() {
	var err error
	plane, err = controlplane.Start(controlplane.Options{WithoutCRDs: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
})

// times are the usual ones, which no stall of a busy machine uses up, but for the pace.
var times = leader.Times{RetryPeriod: 200 * time.Millisecond}.Defaulted()

// patience is how long a spec waits for what must happen.
const patience = time.Minute

// candidate is a replica that campaigns, and whose way to the API server can be cut.
type candidate struct {
	*leader.Elector

	leading atomic.Bool
	firm    atomic.Bool // at the end of the last term
	terms   atomic.Int32
	cut     atomic.Bool
	stop    context.CancelFunc
	ended   chan error
}

// RoundTrip lets requests through unless the way is cut.
func (c *candidate) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if c.cut.Load() {
			return nil, errors.New("the way is cut")
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func startCandidate(ctx context.Context, name, identity string) *candidate {
	GinkgoHelper()
	c := &candidate{ended: make(chan error, 1)}
	config := rest.CopyConfig(plane.Config)
	config.Wrap(c.wrap)
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	c.Elector, err = leader.New(leader.Options{
		Client: client, Namespace: "default", Name: name, Identity: identity, Times: times,
		Term: func(ctx context.Context) error {
			c.terms.Add(1)
			c.leading.Store(true)
			<-ctx.Done()
			c.firm.Store(c.HeldSafely())
			c.leading.Store(false)
			return nil
		},
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, c.stop = context.WithCancel(ctx)
	go func() { c.ended <- c.Start(ctx) }()
	DeferCleanup(c.stop)
	return c
}

// leaseHolder returns the identity that a lease names; empty if it is free.
func leaseHolder(ctx context.Context, name string) string {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(plane.Config)
	Expect(err).NotTo(HaveOccurred())
	got, err := client.CoordinationV1().Leases("default").Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return *got.Spec.HolderIdentity
}

var _ = Describe("Campaign", func() {
	It("lets one lead, and the next as soon as the first one ends", func(ctx SpecContext) {
		first := startCandidate(ctx, "handover", "first")
		Eventually(first.leading.Load).WithTimeout(patience).Should(BeTrue())
		Expect(first.HeldSafely()).To(BeTrue())
		second := startCandidate(ctx, "handover", "second")
		Consistently(second.leading.Load).WithTimeout(time.Second).Should(BeFalse())
		Expect(second.HeldSafely()).To(BeFalse())

		first.stop()
		Eventually(first.ended).WithTimeout(patience).Should(Receive(BeNil()))
		Expect(first.leading.Load()).To(BeFalse(), "the term ends before the lease is given up")
		Expect(first.HeldSafely()).To(BeFalse())
		Expect(leaseHolder(ctx, "handover")).To(BeElementOf("", "second"), "it was given up, so its end is not waited for")
		Eventually(second.leading.Load).WithTimeout(patience).Should(BeTrue())
	}, SpecTimeout(5*time.Minute))

	It("stops leading without the API server, and campaigns again without ending the process", func(ctx SpecContext) {
		first := startCandidate(ctx, "blackout", "first")
		Eventually(first.leading.Load).WithTimeout(patience).Should(BeTrue())
		first.cut.Store(true)
		Eventually(first.leading.Load).WithTimeout(patience).Should(BeFalse())
		Expect(first.firm.Load()).To(BeFalse(), "it stops acting on the lease before its term ends")
		second := startCandidate(ctx, "blackout", "second")
		Eventually(second.leading.Load).WithTimeout(patience).Should(BeTrue())

		first.cut.Store(false)
		Consistently(first.leading.Load).WithTimeout(time.Second).Should(BeFalse())
		second.stop()
		Eventually(first.leading.Load).WithTimeout(patience).Should(BeTrue())
		Expect(first.terms.Load()).To(BeEquivalentTo(2), "each term begins afresh")
	}, SpecTimeout(5*time.Minute))

	It("makes a lease that goes with its owner, once that is known", func(ctx SpecContext) {
		client, err := kubernetes.NewForConfig(plane.Config)
		Expect(err).NotTo(HaveOccurred())
		var owner atomic.Pointer[metav1.OwnerReference]
		var led atomic.Bool
		owned, err := leader.New(leader.Options{
			Client: client, Namespace: "default", Name: "owned", Identity: "only", Times: times, Owner: owner.Load,
			Term: func(ctx context.Context) error {
				led.Store(true)
				<-ctx.Done()
				return nil
			},
		})
		Expect(err).NotTo(HaveOccurred())
		campaigning, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- owned.Start(campaigning) }()
		DeferCleanup(stop)
		Consistently(led.Load).WithTimeout(3 * times.RetryPeriod).Should(BeFalse())

		want := metav1.OwnerReference{APIVersion: "phoneproof.dev/v1alpha1", Kind: "VerificationProject", Name: "shop", UID: "a-uid"}
		owner.Store(&want)
		Eventually(led.Load).WithTimeout(patience).Should(BeTrue())
		Expect(owned.HeldSafely()).To(BeTrue())
		read := func(g Gomega) *coordinationv1.Lease {
			got, err := client.CoordinationV1().Leases("default").Get(ctx, "owned", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return got
		}
		first := read(NewGomega(Fail))
		Expect(first.OwnerReferences).To(ConsistOf(want))
		Eventually(func(g Gomega) {
			renewed := read(g)
			g.Expect(renewed.Spec.RenewTime.After(first.Spec.RenewTime.Time)).To(BeTrue())
			g.Expect(renewed.OwnerReferences).To(ConsistOf(want), "a renewal keeps it")
		}).WithTimeout(patience).Should(Succeed())
		stop()
		Eventually(ended).WithTimeout(patience).Should(Receive(BeNil()))
	}, SpecTimeout(5*time.Minute))

	It("ends while another one leads", func(ctx SpecContext) {
		first := startCandidate(ctx, "waiting", "first")
		Eventually(first.leading.Load).WithTimeout(patience).Should(BeTrue())
		second := startCandidate(ctx, "waiting", "second")
		second.stop()
		Eventually(second.ended).WithTimeout(patience).Should(Receive(BeNil()))
		Expect(first.leading.Load()).To(BeTrue())
	}, SpecTimeout(5*time.Minute))

	It("refuses times that cannot work", func() {
		client, err := kubernetes.NewForConfig(plane.Config)
		Expect(err).NotTo(HaveOccurred())
		_, err = leader.New(leader.Options{
			Client: client, Namespace: "default", Name: "x", Identity: "x",
			Times: leader.Times{Duration: time.Second, RenewDeadline: time.Second},
		})
		Expect(err).To(MatchError(ContainSubstring("lease times")))
	})
})
