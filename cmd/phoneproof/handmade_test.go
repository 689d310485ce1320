package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// byHand is a request as people write it.
const byHand = `apiVersion: phoneproof.dev/v1alpha1
kind: VerificationRequest
metadata:
  name: %s
spec:
  projectRef: {name: shop}
  phoneNumber: %q
  method: %s
`

var _ = Describe("A request made with kubectl", func() {
	It("is completed, verified by the code in its text, delivered, and forgets the code", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		s.apply(fmt.Sprintf(byHand, "my-number", "+4915112345678", "WhatsApp"))
		s.kubectl("wait", "--for=condition=Accepted", "--timeout=10s", "vreq/my-number")
		completed := s.object(ctx, "my-number").Status
		Expect(completed.Phase).To(Equal(verifyv1.PhasePending))
		Expect(completed.Init.ExpiresAt.Sub(completed.Init.CreatedAt.Time)).To(Equal(10 * time.Minute))
		Expect(completed.Link).To(HavePrefix("https://wa.me/"))
		canaries.addText(completed.ExpectedText)

		number, err := phone.FromE164("+4915112345678")
		Expect(err).NotTo(HaveOccurred())
		service := verification.NewService(verification.NewProject(s.namespace+"/shop"), s.open(ctx))
		outcome, _, err := service.Receive(ctx, verification.Message{
			Evidence: verification.Evidence{Method: verification.WhatsApp, Sender: number, SentAt: time.Now()},
			Text:     completed.ExpectedText,
		}, true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome).To(Equal(verification.OutcomeVerified))

		s.allDelivered(ctx, []string{"my-number"}, 1)
		Expect(s.receiver.byRequest(webhookSecret)).To(HaveKey("my-number"))
		verified := s.object(ctx, "my-number")
		Expect(verified.Status.Phase).To(Equal(verifyv1.PhaseVerified))
		Expect(verified.Status.ExpectedText).To(BeEmpty())
		Expect(verified.Status.Link).To(BeEmpty())
		Expect(verified.OwnerReferences).To(HaveLen(1), "it goes with its project")
		Expect(verified.OwnerReferences[0].Name).To(Equal("shop"))
		Expect(s.kubectl("get", "vreq", "my-number", "-o", "yaml")).NotTo(ContainSubstring(completed.ExpectedText))
	}, SpecTimeout(2*time.Minute))

	It("that cannot be completed says why, and one that makes no sense harms nobody", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		for name, draft := range map[string]struct{ number, method, reason string }{
			"premium":  {"+499001234567", "WhatsApp", verifyv1.ReasonPhoneNumberRefused},
			"telegram": {"+4915112345678", "Telegram", verifyv1.ReasonMethodNotConfigured},
		} {
			s.apply(fmt.Sprintf(byHand, name, draft.number, draft.method))
			Eventually(s.acceptance).WithContext(ctx).WithArguments(name).WithTimeout(10*time.Second).
				Should(Equal(string(metav1.ConditionFalse)+" "+draft.reason), name)
		}
		ids := s.poison(ctx)
		s.allDelivered(ctx, s.verifiedRequests(ctx, 5), 1)
		s.changeLeader(ctx) // the next one begins with all of them
		s.apply(fmt.Sprintf(byHand, "good", "+4915112345678", "WhatsApp"))
		s.kubectl("wait", "--for=condition=Accepted", "--timeout=10s", "vreq/good")
		for _, id := range ids {
			Eventually(s.acceptance).WithContext(ctx).WithArguments(id).WithTimeout(10*time.Second).
				Should(Equal(string(metav1.ConditionFalse)+" "+verifyv1.ReasonMalformed), id)
		}
		running := 0
		for _, r := range s.replicas {
			if r.running() {
				running++
			}
			Expect(r.printed()).NotTo(ContainSubstring("panic"))
		}
		Expect(running).To(Equal(2), "only the killed leader ended")
		s.init(ctx, s.leader(ctx), "+49 1511 2345678")
	}, SpecTimeout(2*time.Minute))
})

// poison makes objects of which the schema allows each and our own writes none, and returns those that are to be marked.
func (s *shop) poison(ctx context.Context) []string {
	GinkgoHelper()
	status := func(name, status string) string {
		s.apply(fmt.Sprintf(byHand, name, "+4915112345678", "WhatsApp"))
		s.kubectl("wait", "--for=condition=Accepted", "--timeout=10s", "vreq/"+name)
		s.kubectl("patch", "vreq/"+name, "--subresource=status", "--type=merge", `-p={"status":`+status+`}`)
		return name
	}
	now := time.Now().UTC().Format(metav1.RFC3339Micro)
	many := make([]string, 8)
	for i := range many {
		many[i] = fmt.Sprintf(`{"type":"Mine%d","status":"True","reason":"Mine","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, i)
	}
	conditions := `"conditions":[` + strings.Join(many, ",") + `]`
	// Verified by nobody knows whom: there is no event to make of it.
	status("nameless", `{"phase":"Verified","verifiedAt":"`+now+`","delivery":{"nextAttemptAt":"`+now+`"}}`)
	// No room for our conditions: nothing can be written to them any more. The one is due to expire, the other to be sent.
	status("crowded", `{`+conditions+`,"init":{"createdAt":"2026-01-01T00:00:00.000000Z","expiresAt":"2026-01-01T00:00:00.000001Z"}}`)
	status("full", `{`+conditions+`,"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"nextAttemptAt":"0001-01-01T00:00:00.000000Z"}}`)
	status("endless", `{"init":{"createdAt":"0001-01-01T00:00:00.000001Z","expiresAt":"9999-12-31T23:59:59.999999Z"}}`)
	status("tried", `{"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"attempts":1000,"nextAttemptAt":"`+now+`"}}`)
	status("strange", `{"actualPhoneNumber":"+9999999"}`)
	marked := []string{status("timeless", `{"phase":"Verified"}`)}
	// A label that leads from somebody else's code to it.
	s.kubectl("label", "--overwrite", "vreq/endless", verifyv1.CodeIDLabel+"="+s.verifiedRequests(ctx, 1)[0])
	Expect(s.objects(ctx)).To(HaveKey("endless"))
	return marked
}

// acceptance returns status and reason of a request's condition Accepted.
func (s *shop) acceptance(ctx context.Context, name string) string {
	GinkgoHelper()
	accepted := meta.FindStatusCondition(s.object(ctx, name).Status.Conditions, verifyv1.ConditionAccepted)
	if accepted == nil {
		return ""
	}
	return string(accepted.Status) + " " + accepted.Reason
}

// apply runs kubectl apply with a manifest.
func (s *shop) apply(manifest string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), strings.ToLower(rand.Text())+".yaml")
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	s.kubectl("apply", "-f", file)
}
