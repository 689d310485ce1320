package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
		s.kubectl("wait", "--for=condition=Accepted", "--timeout=30s", "vreq/my-number")
		completed := s.object(ctx, "my-number").Status
		Expect(completed.Phase).To(Equal(verifyv1.PhasePending))
		Expect(completed.Init.ExpiresAt.Sub(completed.Init.CreatedAt.Time)).To(Equal(10 * time.Minute))
		Expect(completed.Link).To(HavePrefix("https://wa.me/"))
		canaries.addText(completed.ExpectedText)
		// It counts when it has written.
		Eventually(s.leader(ctx).metric).WithContext(ctx).WithTimeout(patience).
			WithArguments("phoneproof_verifications_started_total", map[string]string{"method": "WHATSAPP"}).
			Should(BeEquivalentTo(1))

		number, err := phone.FromE164("+4915112345678")
		Expect(err).NotTo(HaveOccurred())
		service := verification.NewService(verification.NewCodeSpace(s.namespace+"/shop"), s.open(ctx))
		receipt, err := service.Receive(ctx, verification.Message{
			Evidence: verification.Evidence{Method: verification.WhatsApp, Sender: number, SentAt: time.Now()},
			Text:     completed.ExpectedText,
		}, true)
		Expect(err).NotTo(HaveOccurred())
		Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified))

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

	It("that cannot be completed says why, and how often that was", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 1)
		for name, draft := range map[string]struct{ number, method, reason string }{
			"premium":  {"+499001234567", "WhatsApp", verifyv1.ReasonPhoneNumberRefused},
			"telegram": {"+4915112345678", "Telegram", verifyv1.ReasonMethodNotConfigured},
		} {
			s.apply(fmt.Sprintf(byHand, name, draft.number, draft.method))
			Eventually(s.acceptance).WithContext(ctx).WithArguments(name).WithTimeout(30*time.Second).
				Should(Equal(string(metav1.ConditionFalse)+" "+draft.reason), name)
			// It counts when it has written.
			Eventually(s.leader(ctx).metric).WithContext(ctx).WithTimeout(patience).
				WithArguments("phoneproof_draft_refusals_total", map[string]string{"reason": draft.reason}).Should(BeNumerically(">=", 1))
		}
	}, SpecTimeout(2*time.Minute))

	It("that makes no sense is marked or skipped, and harms nobody", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		fates := s.poison(ctx)
		s.allDelivered(ctx, s.verifiedRequests(ctx, 5), 1)
		s.changeLeader(ctx) // the next one begins with all of them
		s.apply(fmt.Sprintf(byHand, "good", "+4915112345678", "WhatsApp"))
		s.kubectl("wait", "--for=condition=Accepted", "--timeout=30s", "vreq/good")
		leader := s.leader(ctx)
		Eventually(leader.metric).WithContext(ctx).WithArguments("phoneproof_request_skipped_total", map[string]string{}).
			WithTimeout(time.Minute).Should(BeEquivalentTo(len(fates[skipped])), "each once by a leader")
		for fate, names := range fates {
			for _, name := range names {
				Eventually(s.fateOf).WithContext(ctx).WithArguments(leader, name).WithTimeout(30*time.Second).Should(Equal(fate), name)
			}
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
	}, SpecTimeout(3*time.Minute))
})

// fate is what becomes of an object that no request of ours ever was.
type fate string

const (
	marked    fate = "marked: its condition Accepted says that it is malformed"
	skipped   fate = "skipped: nothing can be written to it, which is counted and logged"
	sent      fate = "sent: strange, and yet a request with an event"
	untouched fate = "untouched: a request that needs nothing yet"
)

// poison makes objects of which the schema allows each and our own writes none, and returns what is to become of them.
func (s *shop) poison(ctx context.Context) map[fate][]string {
	GinkgoHelper()
	fates := map[fate][]string{}
	status := func(becomes fate, name, status string) {
		s.apply(fmt.Sprintf(byHand, name, "+4915112345678", "WhatsApp"))
		s.kubectl("wait", "--for=condition=Accepted", "--timeout=30s", "vreq/"+name)
		s.kubectl("patch", "vreq/"+name, "--subresource=status", "--type=merge", `-p={"status":`+status+`}`)
		fates[becomes] = append(fates[becomes], name)
	}
	now := time.Now().UTC().Format(metav1.RFC3339Micro)
	many := make([]string, 8)
	for i := range many {
		many[i] = fmt.Sprintf(`{"type":"Mine%d","status":"True","reason":"Mine","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, i)
	}
	conditions := `"conditions":[` + strings.Join(many, ",") + `]`
	// Verified by nobody knows whom: there is no event to make of it.
	status(skipped, "nameless", `{"phase":"Verified","verifiedAt":"`+now+`","delivery":{"nextAttemptAt":"`+now+`"}}`)
	// No room for our conditions: nothing can be written to them any more. The one is due to expire, the other to be sent.
	status(skipped, "crowded", `{`+conditions+`,"init":{"createdAt":"2026-01-01T00:00:00.000000Z","expiresAt":"2026-01-01T00:00:00.000001Z"}}`)
	status(skipped, "full", `{`+conditions+`,"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"nextAttemptAt":"`+now+`"}}`)
	status(untouched, "dateless", `{"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"nextAttemptAt":"0001-01-01T00:00:00.000000Z"}}`)
	status(untouched, "endless", `{"init":{"createdAt":"0001-01-01T00:00:00.000001Z","expiresAt":"9999-12-31T23:59:59.999999Z"}}`)
	// One attempt is more than can be written, the other is not.
	status(skipped, "tried", `{"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"attempts":1000,"nextAttemptAt":"`+now+`"}}`)
	status(sent, "patient", `{"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"attempts":999,"nextAttemptAt":"`+now+`"}}`)
	status(untouched, "strange", `{"actualPhoneNumber":"+9999999"}`)
	status(marked, "timeless", `{"phase":"Verified"}`)
	// A label that leads from somebody else's code to it.
	s.kubectl("label", "--overwrite", "vreq/endless", verifyv1.CodeIDLabel+"="+s.verifiedRequests(ctx, 1)[0])
	Expect(s.objects(ctx)).To(HaveKey("endless"))
	return fates
}

// fateOf returns what became of an object under a leader.
func (s *shop) fateOf(ctx context.Context, leader *replica, name string) fate {
	GinkgoHelper()
	leftAlone := regexp.MustCompile(`"msg":"(manual )?request skipped[^\n]*"request":"` + name + `"`).MatchString(leader.printed())
	o := s.object(ctx, name)
	switch {
	case s.acceptance(ctx, name) == string(metav1.ConditionFalse)+" "+verifyv1.ReasonMalformed:
		return marked
	case leftAlone:
		return skipped
	case delivered(*o):
		return sent
	case o.Status.Delivery == nil || o.Status.Delivery.Attempts == 0:
		return untouched
	default:
		return "unknown"
	}
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
