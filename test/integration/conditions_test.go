package integration_test

import (
	"context"
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
)

var _ = Describe("The conditions that serve answers for", func() {
	It("name a secret that is missing, and are mended with it, without a restart", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.stands(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		s.stands(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		wasRead := s.condition(ctx, verifyv1.ConditionSecretsReady).LastTransitionTime

		Expect(os.Remove(filepath.Join(s.secrets, "shop", "app-secret"))).To(Succeed())
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretMissing)
		missing := s.condition(ctx, verifyv1.ConditionSecretsReady)
		Expect(missing.Status).To(Equal(metav1.ConditionFalse))
		Expect(missing.Message).To(Equal("spec.whatsapp.appSecretRef: Secret shop, key app-secret is missing"))
		Expect(missing.LastTransitionTime.Time).To(BeTemporally(">=", wasRead.Time))
		writeFile(s.secrets, "shop/app-secret", "\n")
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretInvalid)
		Expect(s.condition(ctx, verifyv1.ConditionSecretsReady).Message).To(HaveSuffix("key app-secret is empty"))
		Expect(s.condition(ctx, verifyv1.ConditionSecretsReady).LastTransitionTime).To(Equal(missing.LastTransitionTime), "it was False before")

		s.writeSecret("app-secret", "0123456789abcdef0123456789abcdef")
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.told(ctx, verifyv1.ReasonSecretMissing, 1)
		s.told(ctx, verifyv1.ReasonSecretsRead, 1)
		s.told(ctx, verifyv1.ReasonSecretInvalid, 0)
		for _, r := range s.replicas {
			Expect(r.running()).To(BeTrue())
		}
	}, SpecTimeout(3*time.Minute))

	It("tell that a receiver fails, and by another leader that it recovers", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		s.receiver.answerWith(http.StatusInternalServerError)
		s.verifiedRequests(ctx, 4)
		s.stands(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonReceiverFailing)
		Expect(s.condition(ctx, verifyv1.ConditionWebhookHealthy).Message).To(ContainSubstring("(http_500)"))
		s.told(ctx, verifyv1.ReasonReceiverFailing, 1)

		killed := s.leader(ctx)
		killed.kill()
		s.deliverable(ctx) // before anybody leads: else he may send the others, whose third attempt is minutes away
		Expect(s.leader(ctx)).NotTo(BeIdenticalTo(killed))
		s.stands(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		s.told(ctx, verifyv1.ReasonNoFailures, 1)
		s.told(ctx, verifyv1.ReasonReceiverFailing, 1)
		Expect(s.kubectl("get", "events")).NotTo(Or(ContainSubstring("verificationrequest"), ContainSubstring(s.receiver.url)))
	}, SpecTimeout(3*time.Minute))

	It("do not call missing what only pods that are on their way will see", func(ctx SpecContext) {
		s := newShop(ctx)
		const mounted = "--mounted-secrets=shop/api-key,shop/webhook,shop/access-token,shop/app-secret"
		old := s.startOne(mounted)
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.APIKeys = append(p.Spec.APIKeys, verifyv1.APIKey{Name: "second", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "second-key"}})
		})
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonAwaitingRollout)
		waiting := s.condition(ctx, verifyv1.ConditionSecretsReady)
		Expect(waiting.Status).To(Equal(metav1.ConditionUnknown))
		Expect(waiting.Message).To(Equal("spec.apiKeys[second].secretRef: Secret shop, key second-key is not mounted into this pod yet"))

		s.startOne(mounted + ",shop/second-key")
		old.kill()
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretMissing)
		s.told(ctx, verifyv1.ReasonSecretMissing, 1)
	}, SpecTimeout(3*time.Minute))

	It("say that the store is full, and that it has room again", func(ctx SpecContext) {
		s := newShop(ctx)
		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Request.MaxStored = new(int32(2)) })
		s.start(ctx, 2)
		for range 2 {
			_, err := s.request(ctx, 10*time.Minute)
			Expect(err).NotTo(HaveOccurred())
		}
		s.stands(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageFull)
		status, _ := s.replicas[0].call(ctx, s.key, http.MethodPost, "/api/verify/init", initBody)
		Expect(status).To(Equal(http.StatusTooManyRequests))
		s.told(ctx, verifyv1.ReasonStorageFull, 1)
		Expect(s.admin.DeleteAllOf(ctx, &verifyv1.VerificationRequest{}, client.InNamespace(s.namespace))).To(Succeed())
		s.stands(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		s.told(ctx, verifyv1.ReasonStorageReachable, 1)
	}, SpecTimeout(4*time.Minute))

	It("say that the keys can fill the store, which keeps the project from nothing, and with which command it ends", func(ctx SpecContext) {
		s := newShop(ctx)
		s.change(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.RateLimit.PerKey = &verifyv1.Rate{Requests: 600, Period: "1m"}
			p.Spec.Request.TTL, p.Spec.Request.MaxStored = "10m", new(int32(1500))
		})
		s.start(ctx, 1)
		s.stands(ctx, verifyv1.ConditionLimitsContradict, verifyv1.ReasonKeysFillStore)
		message := s.condition(ctx, verifyv1.ConditionLimitsContradict).Message
		Expect(message).To(And(ContainSubstring("9000 requests in 15m"), ContainSubstring("maxStored is 1500")))
		s.told(ctx, verifyv1.ReasonKeysFillStore, 1)
		status, _ := s.replicas[0].call(ctx, s.key, http.MethodPost, "/api/verify/init", initBody)
		Expect(status).To(Equal(http.StatusOK))
		_, command, found := strings.Cut(message, "run: kubectl ")
		Expect(found).To(BeTrue(), message)
		options, patch, _ := strings.Cut(command, " -p ")
		s.kubectl(append(strings.Fields(options), "-p", strings.Trim(patch, "'"))...)
		Eventually(func() *metav1.Condition { return s.condition(ctx, verifyv1.ConditionLimitsContradict) }).
			WithContext(ctx).WithTimeout(patience).Should(BeNil())
	}, SpecTimeout(3*time.Minute))

	It("go when they do not apply any longer, and follow every generation", func(ctx SpecContext) {
		s := newShop(ctx)
		s.writeSecret("access-token", "sim_access-token")
		s.writeSecret("app-secret", "sim_0123456789abcdef0123456789abcdef")
		s.start(ctx, 2)
		s.stands(ctx, verifyv1.ConditionSimulated, verifyv1.ReasonSimulatorCredentials)
		s.stands(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Webhook = nil })
		s.stands(ctx, verifyv1.ConditionSimulated, verifyv1.ReasonSimulatorCredentials)
		s.stands(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		Expect(s.condition(ctx, verifyv1.ConditionWebhookHealthy)).To(BeNil())
		for _, entry := range s.present(ctx).ManagedFields {
			if strings.Contains(entry.FieldsV1.GetRawString(), verifyv1.ConditionSimulated) {
				Expect(entry.Manager).To(Equal("phoneproof-serve"))
			}
		}
	}, SpecTimeout(3*time.Minute))
})

var _ = Describe("What the conditions cost the API server", func() {
	It("is nothing at rest, also when the leader changes, and one replica writes them", func(ctx SpecContext) {
		s := newShop(ctx)
		way := s.middleman()
		s.start(ctx, 3)
		s.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.stands(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		s.stands(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		Eventually(func() *metav1.Condition { return s.condition(ctx, verifyv1.ConditionWhatsAppReady) }).WithContext(ctx).
			WithTimeout(patience).ShouldNot(BeNil(), "all have been judged")
		s.settled(ctx)
		before, version := way.statusWrites(), s.present(ctx).ResourceVersion
		Expect(before).NotTo(BeZero(), "they are counted")
		const rest = 6 * time.Second
		Consistently(func() int { return way.statusWrites() - before }).WithContext(ctx).WithTimeout(rest).WithPolling(time.Second).Should(BeZero())

		s.leader(ctx).kill()
		s.leader(ctx)
		Consistently(func() int { return way.statusWrites() - before }).WithContext(ctx).WithTimeout(rest).WithPolling(time.Second).Should(BeZero())
		Expect(s.present(ctx).ResourceVersion).To(Equal(version))

		Expect(os.Remove(filepath.Join(s.secrets, "shop", "app-secret"))).To(Succeed())
		s.told(ctx, verifyv1.ReasonSecretMissing, 1)
		const says = `"msg":"a condition changed","logger":"report","type":"SecretsReady"`
		leader := s.leader(ctx)
		for _, r := range s.replicas {
			Expect(strings.Contains(r.printed(), says)).To(Equal(r == leader), r.printed())
		}
	}, SpecTimeout(3*time.Minute))
})

// condition returns one of the project's; nil if it has none of that type.
func (s *shop) condition(ctx context.Context, conditionType string) *metav1.Condition {
	GinkgoHelper()
	return meta.FindStatusCondition(s.present(ctx).Status.Conditions, conditionType)
}

// settled returns when the project's status has not changed for a while.
func (s *shop) settled(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		version := s.present(ctx).ResourceVersion
		g.Consistently(func() string { return s.present(ctx).ResourceVersion }).WithTimeout(3 * time.Second).Should(Equal(version))
	}).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())
}

// statusWrites counts what the API server was asked to write into the status of the project so far, whatever came of it.
func (m *middleman) statusWrites() int {
	total := 0
	for verb, n := range m.counted("verificationprojects/status") {
		if verb != http.MethodGet {
			total += n
		}
	}
	return total
}
