package kubernetes

import (
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Pending is InProgress, Verified is Current, and Expired is Failed.
var _ = Describe("Tools that follow kstatus", func() {
	var (
		s       *Store
		project string
	)
	BeforeEach(func(ctx SpecContext) {
		project = newNamespace(ctx) + "/shop"
		s = open(ctx, project, Options{})
	})
	kstatus := func(ctx SpecContext, name string) status.Status {
		GinkgoHelper()
		raw, err := s.api.client.Get().Namespace(s.api.namespace).Resource(resourceName).Name(name).Do(ctx).Raw()
		Expect(err).NotTo(HaveOccurred())
		o := &unstructured.Unstructured{}
		Expect(o.UnmarshalJSON(raw)).To(Succeed())
		result, err := status.Compute(o)
		Expect(err).NotTo(HaveOccurred())
		return result.Status
	}
	update := func(ctx SpecContext, id string, m verification.Mutation) {
		GinkgoHelper()
		_, err := s.Update(ctx, id, m)
		Expect(err).NotTo(HaveOccurred())
	}
	expire := func(r *verification.Request, _ time.Time) error {
		r.Phase = verification.Expired
		return nil
	}
	create := func(ctx SpecContext) string {
		GinkgoHelper()
		created, err := s.Create(ctx, newRequest(project), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		return created.Request.ID
	}
	createManual := func(ctx SpecContext, name string) {
		GinkgoHelper()
		o, err := s.newObject(newRequest(project), time.Now())
		Expect(err).NotTo(HaveOccurred())
		o.Name, o.Labels, o.OwnerReferences, o.Spec.Init = name, nil, nil, nil
		_, err = s.api.createObject(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		settle(ctx, s)
	}

	It("wait for a request of the API until it is verified, whether the event was delivered or not", func(ctx SpecContext) {
		id := create(ctx)
		Expect(kstatus(ctx, id)).To(Equal(status.InProgressStatus), "not written yet")
		update(ctx, id, bindTo(bindingOf(1)))
		Expect(kstatus(ctx, id)).To(Equal(status.InProgressStatus), "waits for a contact")
		update(ctx, id, verifyNow)
		Expect(kstatus(ctx, id)).To(Equal(status.CurrentStatus), "verified")
		update(ctx, id, attempt(false))
		Expect(kstatus(ctx, id)).To(Equal(status.CurrentStatus), "the receiver is down")
		update(ctx, id, attempt(true))
		Expect(kstatus(ctx, id)).To(Equal(status.CurrentStatus), "delivered")
	})

	It("wait for a proven request until a client confirms it", func(ctx SpecContext) {
		n := newSession(project)
		Expect(s.Create(ctx, n, verification.Limits{})).Error().NotTo(HaveOccurred())
		update(ctx, n.ID, proveNow)
		Expect(kstatus(ctx, n.ID)).To(Equal(status.InProgressStatus), "proven")
		update(ctx, n.ID, enterCode(verification.NoMatch))
		Expect(kstatus(ctx, n.ID)).To(Equal(status.InProgressStatus), "a wrong code")
		update(ctx, n.ID, enterCode(verification.MatchesSession))
		Expect(kstatus(ctx, n.ID)).To(Equal(status.CurrentStatus), "confirmed")
	})

	DescribeTable("fail for a proven request that ends without a confirmation",
		func(ctx SpecContext, end verification.Mutation, reason, message string) {
			n := newSession(project)
			Expect(s.Create(ctx, n, verification.Limits{})).Error().NotTo(HaveOccurred())
			update(ctx, n.ID, proveNow)
			update(ctx, n.ID, end)
			Expect(kstatus(ctx, n.ID)).To(Equal(status.FailedStatus))
			e, err := s.api.getObject(ctx, n.ID)
			Expect(err).NotTo(HaveOccurred())
			conditions := e.object.Status.Conditions
			Expect(meta.FindStatusCondition(conditions, verifyv1.ConditionStalled)).
				To(And(HaveField("Reason", reason), HaveField("Message", message)))
			Expect(meta.FindStatusCondition(conditions, verifyv1.ConditionVerified)).
				To(And(HaveField("Reason", reason), HaveField("Status", metav1.ConditionFalse)))
		},
		Entry("declined", declineProven, verifyv1.ReasonDeclined, "the owner of the number declined"),
		Entry("canceled", func(r *verification.Request, now time.Time) error { return r.Cancel(now, 0) },
			verifyv1.ReasonExpired, "the user gave up on the page, or the client canceled it"),
		Entry("too many wrong codes", func(r *verification.Request, now time.Time) error {
			for r.Phase == verification.Pending {
				if err := enterCode(verification.NoMatch)(r, now); err != nil {
					return err
				}
			}
			return nil
		}, verifyv1.ReasonExpired, "too many wrong session codes were entered"),
		Entry("out of time", func(r *verification.Request, _ time.Time) error { return expire(r, time.Time{}) },
			verifyv1.ReasonExpired, "the time ran out before the client confirmed the request"),
	)

	It("wait for a delivery until it is known how its sending went", func(ctx SpecContext) {
		n := newRequest(project)
		n.Terms, n.BodyHash = verification.Terms{Deliver: verification.DeliverGiven}, "0123456789abcdef0123456789abcdef"
		Expect(s.Create(ctx, n, verification.Limits{})).Error().NotTo(HaveOccurred())
		Expect(kstatus(ctx, n.ID)).To(Equal(status.InProgressStatus), "not written yet")
		update(ctx, n.ID, func(r *verification.Request, now time.Time) error {
			return r.RecordCodeResult(verification.CodeResult{State: verification.CodeSent}, now, 0)
		})
		Expect(kstatus(ctx, n.ID)).To(Equal(status.CurrentStatus))
		e, err := s.api.getObject(ctx, n.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(e.object.Status.Conditions).To(BeEmpty())
	})

	It("fail for a request that expires, waited for a contact or not", func(ctx SpecContext) {
		for _, waited := range []bool{false, true} {
			id := create(ctx)
			if waited {
				update(ctx, id, bindTo(bindingOf(1)))
			}
			update(ctx, id, expire)
			Expect(kstatus(ctx, id)).To(Equal(status.FailedStatus))
		}
	})

	It("wait for a manual request from its creation on", func(ctx SpecContext) {
		createManual(ctx, "by-hand")
		Expect(kstatus(ctx, "by-hand")).To(Equal(status.InProgressStatus), "not seen yet")
		_, err := s.CompleteManual(ctx, "by-hand", Completion{
			CodeID: newRequest(project).ID, Text: "verify ABCD-EFGH", Link: "https://wa.me/1555?text=ABCD", TTL: 10 * time.Minute,
		}, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(kstatus(ctx, "by-hand")).To(Equal(status.InProgressStatus), "accepted")
		update(ctx, "by-hand", verifyNow)
		Expect(kstatus(ctx, "by-hand")).To(Equal(status.CurrentStatus), "verified")
	})

	DescribeTable("tell refusals that may end by themselves from those that do not",
		func(ctx SpecContext, reason string, want status.Status) {
			createManual(ctx, "by-hand")
			Expect(s.RejectManual(ctx, "by-hand", reason, "the reason in words")).To(Succeed())
			Expect(kstatus(ctx, "by-hand")).To(Equal(want))
			_, err := s.CompleteManual(ctx, "by-hand", Completion{
				CodeID: newRequest(project).ID, Text: "verify ABCD-EFGH", Link: "https://wa.me/1555?text=ABCD", TTL: 10 * time.Minute,
			}, verification.Limits{})
			Expect(err).NotTo(HaveOccurred())
			Expect(kstatus(ctx, "by-hand")).To(Equal(status.InProgressStatus), "accepted after all")
			update(ctx, "by-hand", verifyNow)
			Expect(kstatus(ctx, "by-hand")).To(Equal(status.CurrentStatus), "verified")
		},
		Entry(nil, verifyv1.ReasonSuspended, status.InProgressStatus),
		Entry(nil, verifyv1.ReasonSecretsNotReady, status.InProgressStatus),
		Entry(nil, verifyv1.ReasonRateLimited, status.InProgressStatus),
		Entry(nil, verifyv1.ReasonTooManyStored, status.InProgressStatus),
		Entry(nil, verifyv1.ReasonMethodNotConfigured, status.FailedStatus),
		Entry(nil, verifyv1.ReasonPhoneNumberRefused, status.FailedStatus),
		Entry(nil, verifyv1.ReasonMalformed, status.FailedStatus),
	)
})
