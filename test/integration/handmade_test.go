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

// manualRequest is the manifest of a manual request.
const manualRequest = `apiVersion: phoneproof.dev/v1alpha1
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
		s.applyManifest(fmt.Sprintf(manualRequest, "my-number", "+4915112345678", "WhatsApp") + "  locale: es-MX\n")
		s.runKubectl("wait", "--for=condition=Accepted", "--timeout="+patience.String(), "vreq/my-number")
		completed := s.readRequest(ctx, "my-number").Status
		Expect(completed.Phase).To(Equal(verifyv1.PhasePending))
		Expect(completed.Init.ExpiresAt.Sub(completed.Init.CreatedAt.Time)).To(Equal(10 * time.Minute))
		Expect(completed.Link).To(HavePrefix("https://wa.me/"))
		Expect(completed.ExpectedText).To(HavePrefix("Confirmo mi número de teléfono a "))
		canaries.addText(completed.ExpectedText)
		// The metric is incremented after the write.
		Eventually(s.findLeader(ctx).readMetric).WithContext(ctx).
			WithArguments("phoneproof_verifications_started_total", map[string]string{"method": "WHATSAPP"}).
			Should(BeEquivalentTo(1))

		number, err := phone.FromE164("+4915112345678")
		Expect(err).NotTo(HaveOccurred())
		service := verification.NewService(verification.NewCodeSpace(s.namespace+"/shop"), s.openStore(ctx))
		receipt, err := service.Receive(ctx, verification.Message{
			Evidence: verification.Evidence{Method: verification.WhatsApp, Sender: number, SentAt: time.Now()},
			Text:     completed.ExpectedText,
		}, verification.NewEventKinds(verification.EventSuccess))
		Expect(err).NotTo(HaveOccurred())
		Expect(receipt.Outcome).To(Equal(verification.OutcomeVerified))

		s.awaitDelivered(ctx, []string{"my-number"}, 1)
		Expect(s.receiver.byRequest(webhookSecret)).To(HaveKey("my-number"))
		verified := s.readRequest(ctx, "my-number")
		Expect(verified.Status.Phase).To(Equal(verifyv1.PhaseVerified))
		Expect(verified.Status.ExpectedText).To(BeEmpty())
		Expect(verified.Status.Link).To(BeEmpty())
		Expect(verified.OwnerReferences).To(HaveLen(1), "it is deleted with its project")
		Expect(verified.OwnerReferences[0].Name).To(Equal("shop"))
		Expect(s.runKubectl("get", "vreq", "my-number", "-o", "yaml")).NotTo(ContainSubstring(completed.ExpectedText))
	}, SpecTimeout(hang))

	It("that cannot be completed reports why, and the metric counts it", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 1)
		for name, draft := range map[string]struct{ number, method, reason string }{
			"premium":  {"+499001234567", "WhatsApp", verifyv1.ReasonPhoneNumberRefused},
			"telegram": {"+4915112345678", "Telegram", verifyv1.ReasonMethodNotConfigured},
			"own":      {"+4915112345670", "WhatsApp", verifyv1.ReasonPhoneNumberRefused}, // the shop's
		} {
			s.applyManifest(fmt.Sprintf(manualRequest, name, draft.number, draft.method))
			Eventually(s.readAccepted).WithContext(ctx).WithArguments(name).
				Should(Equal(string(metav1.ConditionFalse)+" "+draft.reason), name)
			// The metric is incremented after the write.
			Eventually(s.findLeader(ctx).readMetric).WithContext(ctx).
				WithArguments("phoneproof_manual_refusals_total", map[string]string{"reason": draft.reason}).Should(BeNumerically(">=", 1))
		}
	}, SpecTimeout(hang))

	It("that makes no sense is marked or skipped, and does not affect others", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		fates := s.createMalformed(ctx)
		s.awaitDelivered(ctx, s.createVerifiedRequests(ctx, 5), 1)
		s.changeLeader(ctx) // the next leader starts with all of them
		s.applyManifest(fmt.Sprintf(manualRequest, "good", "+4915112345678", "WhatsApp"))
		s.runKubectl("wait", "--for=condition=Accepted", "--timeout="+patience.String(), "vreq/good")
		var leader *replica
		skips := func() float64 { return leader.readMetric(ctx, "phoneproof_request_skipped_total", nil) }
		Eventually(func() float64 {
			leader = s.findLeader(ctx)
			return skips()
		}).WithContext(ctx).Should(BeNumerically(">=", len(fates[skipped])))
		for fate, names := range fates {
			for _, name := range names {
				Eventually(s.fateOf).WithContext(ctx).WithArguments(leader, name).Should(Equal(fate), name)
			}
		}
		Expect(skips()).To(BeNumerically("<=", leader.countTerms()*len(fates[skipped])), "each once by each leader")
		running := 0
		for _, r := range s.replicas {
			if r.Running() {
				running++
			}
			Expect(r.output()).NotTo(ContainSubstring("panic"))
		}
		Expect(running).To(Equal(2), "only the killed leader ended")
		s.initRequest(ctx, s.findLeader(ctx), "+49 1511 2345678")
	}, SpecTimeout(hang))
})

// fate is the outcome for an object that phoneproof itself would never write.
type fate string

const (
	marked    fate = "marked: its condition Accepted has the reason Malformed"
	skipped   fate = "skipped: it cannot be updated, which is counted and logged"
	sent      fate = "sent: unusual, but a request with an event"
	untouched fate = "untouched: no work is due"
)

// createMalformed creates objects that the schema allows but phoneproof never writes, and returns their expected fates.
func (s *shop) createMalformed(ctx context.Context) map[fate][]string {
	GinkgoHelper()
	fates := map[fate][]string{}
	status := func(becomes fate, name, status string) {
		s.applyManifest(fmt.Sprintf(manualRequest, name, "+4915112345678", "WhatsApp"))
		s.runKubectl("wait", "--for=condition=Accepted", "--timeout="+patience.String(), "vreq/"+name)
		s.runKubectl("patch", "vreq/"+name, "--subresource=status", "--type=merge", `-p={"status":`+status+`}`)
		fates[becomes] = append(fates[becomes], name)
	}
	now := time.Now().UTC().Format(metav1.RFC3339Micro)
	many := make([]string, 8)
	for i := range many {
		many[i] = fmt.Sprintf(`{"type":"Mine%d","status":"True","reason":"Mine","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, i)
	}
	conditions := `"conditions":[` + strings.Join(many, ",") + `]`
	// Verified without a phone number: it has no event.
	status(skipped, "nameless", `{"phase":"Verified","verifiedAt":"`+now+`","delivery":{"nextAttemptAt":"`+now+`"}}`)
	// No room for our conditions, so that no update is valid. The first is due to expire, the second to be sent.
	status(skipped, "crowded", `{`+conditions+`,"init":{"createdAt":"2026-01-01T00:00:00.000000Z","expiresAt":"2026-01-01T00:00:00.000001Z"}}`)
	status(skipped, "full", `{`+conditions+`,"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"nextAttemptAt":"`+now+`"}}`)
	status(untouched, "dateless", `{"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"nextAttemptAt":"0001-01-01T00:00:00.000000Z"}}`)
	status(untouched, "endless", `{"init":{"createdAt":"0001-01-01T00:00:00.000001Z","expiresAt":"9999-12-31T23:59:59.999999Z"}}`)
	// Attempt 1001 exceeds the limit of the field; attempt 1000 does not.
	status(skipped, "tried", `{"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"attempts":1000,"nextAttemptAt":"`+now+`"}}`)
	status(sent, "patient", `{"phase":"Verified","verifiedAt":"`+now+`","actualPhoneNumber":"+4915112345678",`+
		`"delivery":{"attempts":999,"nextAttemptAt":"`+now+`"}}`)
	status(untouched, "strange", `{"actualPhoneNumber":"+9999999"}`)
	status(marked, "timeless", `{"phase":"Verified"}`)
	// A label that maps another request's code to it.
	s.runKubectl("label", "--overwrite", "vreq/endless", verifyv1.CodeIDLabel+"="+s.createVerifiedRequests(ctx, 1)[0])
	Expect(s.listRequests(ctx)).To(HaveKey("endless"))
	return fates
}

// fateOf returns the fate of an object under a leader.
func (s *shop) fateOf(ctx context.Context, leader *replica, name string) fate {
	GinkgoHelper()
	leftAlone := regexp.MustCompile(`"msg":"(manual )?request skipped[^\n]*"request":"` + name + `"`).MatchString(leader.output())
	o := s.readRequest(ctx, name)
	switch {
	case s.readAccepted(ctx, name) == string(metav1.ConditionFalse)+" "+verifyv1.ReasonMalformed:
		return marked
	case leftAlone:
		return skipped
	case isDelivered(*o):
		return sent
	case o.Status.Delivery == nil || o.Status.Delivery.Attempts == 0:
		return untouched
	default:
		return "unknown"
	}
}

// readAccepted returns status and reason of a request's condition Accepted.
func (s *shop) readAccepted(ctx context.Context, name string) string {
	GinkgoHelper()
	accepted := meta.FindStatusCondition(s.readRequest(ctx, name).Status.Conditions, verifyv1.ConditionAccepted)
	if accepted == nil {
		return ""
	}
	return string(accepted.Status) + " " + accepted.Reason
}

// applyManifest runs kubectl apply with a manifest.
func (s *shop) applyManifest(manifest string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), strings.ToLower(rand.Text())+".yaml")
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	s.runKubectl("apply", "-f", file)
}
