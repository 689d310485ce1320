package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

const initBody = `{"phoneNumber": "+49 1511 2345678"}`

var _ = Describe("A change of a project", func() {
	It("of its keys and limits counts on every replica at once", func(ctx SpecContext) {
		s := newShop(ctx)
		second, err := settings.NewAPIKey(rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		s.writeSecret("second-key", second)
		s.start(ctx, 3)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.APIKeys = []verifyv1.APIKey{{Name: "second", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "second-key"}}}
			p.Spec.RateLimit.PerPhoneNumber = &verifyv1.Rate{Requests: 1, Period: "10m"}
		})
		changed := time.Now()
		for _, r := range s.replicas {
			Eventually(r.initStatus).WithContext(ctx).WithArguments(s.key).WithPolling(20 * time.Millisecond).
				Should(Equal(http.StatusUnauthorized))
		}
		AddReportEntry("on all replicas after", time.Since(changed).Round(time.Millisecond).String())
		for _, r := range s.replicas {
			Eventually(r.initStatus).WithContext(ctx).WithArguments(second).
				Should(Equal(http.StatusTooManyRequests))
		}
	}, SpecTimeout(hang))

	It("of its webhook's secret takes effect without losing an event or an attempt", func(ctx SpecContext) {
		const rotated = "the webhook's next secret, also long"
		s := newShop(ctx)
		s.start(ctx, 2)
		ids := s.createVerifiedRequests(ctx, 1)
		s.awaitDelivered(ctx, ids, 1)
		s.writeSecret("webhook", rotated)
		Eventually(func() []string {
			ids = append(ids, s.createVerifiedRequests(ctx, 1)...)
			s.awaitDelivered(ctx, ids, 1)
			got := s.receiver.deliveries()
			return strings.Fields(got[len(got)-1].headers.Get("Webhook-Signature"))
		}).WithContext(ctx).Should(HaveLen(2), "signed with both")
		all := s.receiver.deliveries()
		last := receiver{got: all[len(all)-1:]}
		last.byRequest(rotated) // x-webhook-signature uses the new one

		Expect(os.Remove(filepath.Join(s.secrets, "shop", "webhook"))).To(Succeed())
		for _, r := range s.replicas {
			Eventually(r.hasSecretProblem).WithContext(ctx).Should(BeTrue())
		}
		waiting := s.createVerifiedRequests(ctx, 3)
		Consistently(s.receiver.deliveries).WithContext(ctx).WithTimeout(2*time.Second).Should(HaveLen(len(all)), "never unsigned")
		for _, id := range waiting {
			Expect(s.readRequest(ctx, id).Status.Delivery.Attempts).To(BeZero(), "no attempt is used up")
		}
		s.writeSecret("webhook", rotated)
		restored := time.Now()
		s.awaitDelivered(ctx, waiting, 1)
		// TestTerm_handsEachLoopWhatIsItsOwn shows that the change itself sends them, not the next poll.
		AddReportEntry("delivered after", time.Since(restored).Round(time.Millisecond).String())
	}, SpecTimeout(hang))

	It("of its retention applies to requests that await deletion, but never to an undelivered event", func(ctx SpecContext) {
		s := newShop(ctx)
		s.receiver.answerWith(http.StatusInternalServerError)
		s.start(ctx, 2)
		seen := s.followPhases(ctx)
		undelivered := s.createVerifiedRequests(ctx, 2)
		Eventually(s.countAttempted).WithContext(ctx).WithArguments(undelivered).Should(Equal(2))
		old := s.createBackdated(ctx, 2*time.Hour)
		kept := s.createBackdated(ctx, 30*time.Minute)
		short, err := s.storeRequest(ctx, time.Second)
		Expect(err).NotTo(HaveOccurred())
		Eventually(s.isDeleted).WithContext(ctx).WithArguments(old).Should(BeTrue())
		Eventually(seen.phasesOf).WithContext(ctx).WithArguments(old).
			Should(Equal([]verifyv1.Phase{verifyv1.PhasePending, verifyv1.PhaseExpired}))
		for _, id := range []string{kept, short} {
			Eventually(func() verifyv1.Phase { return s.readRequest(ctx, id).Status.Phase }).WithContext(ctx).
				Should(Equal(verifyv1.PhaseExpired))
		}
		expired := s.readRequest(ctx, short)
		Expect(expired.OwnerReferences).To(HaveLen(1))
		Expect(expired.OwnerReferences[0].Kind).To(Equal(verifyv1.VerificationProjectKind))
		Expect(expired.OwnerReferences[0].BlockOwnerDeletion).To(BeNil())

		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.Request.Retention = "1m"
		})
		Eventually(s.isDeleted).WithContext(ctx).WithArguments(kept).Should(BeTrue())
		deleted := s.isDeleted(ctx, short)
		Expect(deleted && time.Now().Before(expired.Spec.Init.ExpiresAt.Add(time.Minute))).To(BeFalse(), "its retention is not over")
		// As if they had waited for an hour: undelivered events are not dropped for their age.
		for _, id := range undelivered {
			s.runKubectl("patch", "vreq/"+id, "--subresource=status", "--type=merge",
				`-p={"status":{"verifiedAt":"`+time.Now().UTC().Add(-time.Hour).Format(metav1.RFC3339Micro)+`"}}`)
		}
		for _, id := range undelivered { // the third attempt is minutes away
			Eventually(func() int32 { return s.readRequest(ctx, id).Status.Delivery.Attempts }).WithContext(ctx).
				Should(BeEquivalentTo(2))
		}
		// Others are deleted meanwhile. The receiver still fails: after a repair each event that waits would be sent once more.
		Eventually(s.isDeleted).WithContext(ctx).WithArguments(s.createBackdated(ctx, 30*time.Minute)).Should(BeTrue())
		for _, id := range undelivered {
			Expect(s.isDeleted(ctx, id)).To(BeFalse())
			Expect(meta.IsStatusConditionFalse(s.readRequest(ctx, id).Status.Conditions, verifyv1.ConditionWebhookDelivered)).To(BeTrue())
		}
	}, SpecTimeout(hang))
})

// deliverOne lets the receiver succeed and returns a request that is delivered: earlier work was handled by then.
func (s *shop) deliverOne(ctx context.Context) []string {
	GinkgoHelper()
	s.receiver.answerBy(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return s.createVerifiedRequests(ctx, 1)
}

// createBackdated creates a request, like a replica, that expired that long ago.
func (s *shop) createBackdated(ctx context.Context, ago time.Duration) string {
	GinkgoHelper()
	o := &verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "vr"},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: fmt.Sprintf("+49151%08d", s.verified.Add(1)),
			Method: verifyv1.MethodWhatsApp, Init: &verifyv1.Init{
				CreatedAt: metav1.NewMicroTime(time.Now().Add(-ago - time.Minute)), ExpiresAt: metav1.NewMicroTime(time.Now().Add(-ago)),
				KeyName: "backend",
			},
		},
	}
	Expect(s.admin.Create(ctx, o, client.FieldOwner("test"))).To(Succeed())
	return o.Name
}

// editProject updates the project.
func (s *shop) editProject(ctx context.Context, edit func(*verifyv1.VerificationProject)) {
	GinkgoHelper()
	Eventually(func() error {
		project := &verifyv1.VerificationProject{}
		if err := s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, project); err != nil {
			return err
		}
		edit(project)
		return s.admin.Update(ctx, project)
	}).WithContext(ctx).Should(Succeed())
}

// initStatus returns the HTTP status of an init with a key.
func (r *replica) initStatus(ctx context.Context, key string) int {
	status, _ := r.callAPI(ctx, key, http.MethodPost, "/api/verify/init", initBody)
	return status
}

// hasSecretProblem reports whether the replica reports the webhook's secret as unusable.
func (r *replica) hasSecretProblem(ctx context.Context) bool {
	GinkgoHelper()
	status, _, page := sendRequest(ctx, http.MethodGet, "http://"+r.Health+"/problems", nil, "")
	Expect(status).To(Equal(http.StatusOK))
	return strings.Contains(string(page), "spec.webhook.secretRef")
}
