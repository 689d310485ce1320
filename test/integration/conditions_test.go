package integration_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("The conditions that serve writes", func() {
	It("name a secret that is missing, and recover with it, without a restart", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		s.awaitReason(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		wasRead := s.readCondition(ctx, verifyv1.ConditionSecretsReady).LastTransitionTime

		Expect(os.Remove(filepath.Join(s.secrets, "shop", "app-secret"))).To(Succeed())
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretMissing)
		missing := s.readCondition(ctx, verifyv1.ConditionSecretsReady)
		Expect(missing.Status).To(Equal(metav1.ConditionFalse))
		Expect(missing.Message).To(Equal("spec.whatsapp.appSecretRef: Secret shop, key app-secret is missing"))
		Expect(missing.LastTransitionTime.Time).To(BeTemporally(">=", wasRead.Time))
		writeFile(s.secrets, "shop/app-secret", "\n")
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretInvalid)
		Expect(s.readCondition(ctx, verifyv1.ConditionSecretsReady).Message).To(HaveSuffix("key app-secret is empty"))
		Expect(s.readCondition(ctx, verifyv1.ConditionSecretsReady).LastTransitionTime).To(Equal(missing.LastTransitionTime), "still False")

		s.writeSecret("app-secret", "0123456789abcdef0123456789abcdef")
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.awaitEvents(ctx, verifyv1.ReasonSecretMissing, 1)
		s.awaitEvents(ctx, verifyv1.ReasonSecretsRead, 1)
		s.awaitEvents(ctx, verifyv1.ReasonSecretInvalid, 0)
		for _, r := range s.replicas {
			Expect(r.Running()).To(BeTrue())
		}
	}, SpecTimeout(hang))

	It("report that a receiver fails, and, by another leader, that it recovers", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 2)
		s.receiver.answerWith(http.StatusInternalServerError)
		s.createVerifiedRequests(ctx, 4)
		s.awaitReason(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonReceiverFailing)
		Expect(s.readCondition(ctx, verifyv1.ConditionWebhookHealthy).Message).To(ContainSubstring("(http_500)"))
		s.awaitEvents(ctx, verifyv1.ReasonReceiverFailing, 1)

		killed := s.findLeader(ctx)
		killed.Kill()
		s.deliverOne(ctx) // before any replica leads: otherwise the leader may send the others, whose third attempt is minutes away
		Expect(s.findLeader(ctx)).NotTo(BeIdenticalTo(killed))
		s.awaitReason(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		s.awaitEvents(ctx, verifyv1.ReasonNoFailures, 1)
		s.awaitEvents(ctx, verifyv1.ReasonReceiverFailing, 1)
		Expect(s.runKubectl("get", "events")).NotTo(Or(ContainSubstring("verificationrequest"), ContainSubstring(s.receiver.url)))
	}, SpecTimeout(hang))

	It("do not report a secret as missing that only new pods will mount", func(ctx SpecContext) {
		s := newShop(ctx)
		const mounted = "--mounted-secrets=shop/api-key,shop/webhook,shop/access-token,shop/app-secret"
		old := s.startOne(mounted)
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.APIKeys = append(p.Spec.APIKeys, verifyv1.APIKey{Name: "second", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "second-key"}})
		})
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonAwaitingRollout)
		waiting := s.readCondition(ctx, verifyv1.ConditionSecretsReady)
		Expect(waiting.Status).To(Equal(metav1.ConditionUnknown))
		Expect(waiting.Message).To(Equal("spec.apiKeys[second].secretRef: Secret shop, key second-key is not mounted into this pod yet"))

		s.startOne(mounted + ",shop/second-key")
		old.Kill()
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretMissing)
		s.awaitEvents(ctx, verifyv1.ReasonSecretMissing, 1)
	}, SpecTimeout(hang))

	It("say that the store is full, and that it has room again", func(ctx SpecContext) {
		s := newShop(ctx)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Request.MaxStored = new(int32(2)) })
		s.start(ctx, 2)
		// On a busy machine a new informer may not have synced when the store is first checked, which is an event of its own.
		s.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		for range 2 {
			_, err := s.storeRequest(ctx, 10*time.Minute)
			Expect(err).NotTo(HaveOccurred())
		}
		s.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageFull)
		status, _ := s.replicas[0].awaitDecision(ctx, s.key, http.MethodPost, "/api/verify/init", initBody)
		Expect(status).To(Equal(http.StatusTooManyRequests))
		s.awaitEvents(ctx, verifyv1.ReasonStorageFull, 1)
		Expect(s.admin.DeleteAllOf(ctx, &verifyv1.VerificationRequest{}, client.InNamespace(s.namespace))).To(Succeed())
		s.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		Eventually(func(g Gomega) {
			list, err := s.clients.EventsV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(countEvents(list.Items, verifyv1.ReasonStorageReachable)).To(BeNumerically(">=", 1))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(hang))

	It("warn that the keys can fill the store, leave the project Ready, and name the command that ends the warning", func(ctx SpecContext) {
		s := newShop(ctx)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) {
			p.Spec.RateLimit.PerKey = &verifyv1.Rate{Requests: 600, Period: "1m"}
			p.Spec.Request.TTL, p.Spec.Request.MaxStored = "10m", new(int32(1500))
		})
		s.start(ctx, 1)
		s.awaitReason(ctx, verifyv1.ConditionLimitsContradict, verifyv1.ReasonKeysFillStore)
		message := s.readCondition(ctx, verifyv1.ConditionLimitsContradict).Message
		Expect(message).To(And(ContainSubstring("9000 requests in 15m"), ContainSubstring("maxStored is 1500")))
		s.awaitEvents(ctx, verifyv1.ReasonKeysFillStore, 1)
		s.replicas[0].mustCall(ctx, s.key, http.MethodPost, "/api/verify/init", initBody)
		_, command, found := strings.Cut(message, "run: kubectl ")
		Expect(found).To(BeTrue(), message)
		options, patch, _ := strings.Cut(command, " -p ")
		s.runKubectl(append(strings.Fields(options), "-p", strings.Trim(patch, "'"))...)
		Eventually(func() *metav1.Condition { return s.readCondition(ctx, verifyv1.ConditionLimitsContradict) }).
			WithContext(ctx).Should(BeNil())
	}, SpecTimeout(hang))

	It("report that requests expire and no message comes, until one does", func(ctx SpecContext) {
		s := newShop(ctx)
		s.start(ctx, 1)
		for range 3 {
			lapsed, err := s.storeRequest(ctx, 100*time.Millisecond)
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() verifyv1.Phase { return s.readRequest(ctx, lapsed).Status.Phase }).WithContext(ctx).
				Should(Equal(verifyv1.PhaseExpired))
		}
		s.replaceLeader(ctx) // a term begins with the question
		s.awaitReason(ctx, verifyv1.ConditionSilent, verifyv1.ReasonNoMessages)
		Expect(s.readCondition(ctx, verifyv1.ConditionSilent)).To(And(HaveField("Status", metav1.ConditionTrue),
			HaveField("Message", ContainSubstring("has come for 1h or longer, and 3 or more requests expired in that time"))))
		s.awaitEvents(ctx, verifyv1.ReasonNoMessages, 1)
		s.createVerifiedRequests(ctx, 1)
		s.replaceLeader(ctx)
		Eventually(func() *metav1.Condition { return s.readCondition(ctx, verifyv1.ConditionSilent) }).
			WithContext(ctx).Should(BeNil())
	}, SpecTimeout(hang))

	It("are removed when they no longer apply, and follow every generation", func(ctx SpecContext) {
		s := newShop(ctx)
		s.writeSecret("access-token", "sim_access-token")
		s.writeSecret("app-secret", "sim_0123456789abcdef0123456789abcdef")
		s.start(ctx, 2)
		s.awaitReason(ctx, verifyv1.ConditionSimulated, verifyv1.ReasonSimulatorCredentials)
		s.awaitReason(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Webhook = nil })
		s.awaitReason(ctx, verifyv1.ConditionSimulated, verifyv1.ReasonSimulatorCredentials)
		s.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		Expect(s.readCondition(ctx, verifyv1.ConditionWebhookHealthy)).To(BeNil())
		for _, entry := range s.readProject(ctx).ManagedFields {
			if strings.Contains(entry.FieldsV1.GetRawString(), verifyv1.ConditionSimulated) {
				Expect(entry.Manager).To(Equal("phoneproof-serve"))
			}
		}
	}, SpecTimeout(hang))
})

var _ = Describe("The load of the conditions on the API server", func() {
	It("is zero at rest, also when the leader changes, and one replica writes them", func(ctx SpecContext) {
		s := newShop(ctx)
		var writes atomic.Int64 // that were tried, whatever became of them
		s.startProxy().AnswerWith(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/verificationprojects/shop/status") {
				writes.Add(1)
			}
			return false
		})
		s.start(ctx, 3)
		s.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		s.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		s.awaitReason(ctx, verifyv1.ConditionWebhookHealthy, verifyv1.ReasonNoFailures)
		Eventually(func() *metav1.Condition { return s.readCondition(ctx, verifyv1.ConditionWhatsAppReady) }).WithContext(ctx).
			ShouldNot(BeNil(), "all have been computed")
		s.awaitStableStatus(ctx)
		before, version := writes.Load(), s.readProject(ctx).ResourceVersion
		Expect(before).NotTo(BeZero(), "status writes are counted")
		const rest = 6 * time.Second
		Consistently(func() int64 { return writes.Load() - before }).WithContext(ctx).WithTimeout(rest).WithPolling(time.Second).Should(BeZero())

		s.findLeader(ctx).Kill()
		s.findLeader(ctx)
		Consistently(func() int64 { return writes.Load() - before }).WithContext(ctx).WithTimeout(rest).WithPolling(time.Second).Should(BeZero())
		Expect(s.readProject(ctx).ResourceVersion).To(Equal(version))

		Expect(os.Remove(filepath.Join(s.secrets, "shop", "app-secret"))).To(Succeed())
		s.awaitEvents(ctx, verifyv1.ReasonSecretMissing, 1)
		const says = `"msg":"a condition changed","logger":"report","type":"SecretsReady"`
		said := 0
		for _, r := range s.replicas {
			said += strings.Count(r.output(), says)
			if earlier, _, found := strings.Cut(r.output(), says); found { // it may have lost the lease since
				Expect(strings.Count(earlier, `"msg":"leading"`)).
					To(BeNumerically(">", strings.Count(earlier, `"msg":"no longer leading"`)), r.output())
			}
		}
		Expect(said).To(Equal(1), "by the leader of that time alone")
	}, SpecTimeout(hang))
})

// replaceLeader kills the leader, and starts another replica, which leads.
func (s *shop) replaceLeader(ctx context.Context) {
	GinkgoHelper()
	s.findLeader(ctx).Kill()
	s.startOne()
	s.findLeader(ctx)
}

// readCondition returns the project's condition of a type; nil if there is none.
func (s *shop) readCondition(ctx context.Context, conditionType string) *metav1.Condition {
	GinkgoHelper()
	return meta.FindStatusCondition(s.readProject(ctx).Status.Conditions, conditionType)
}

// awaitStableStatus waits until the project's status has not changed for a while.
func (s *shop) awaitStableStatus(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		version := s.readProject(ctx).ResourceVersion
		g.Consistently(func() string { return s.readProject(ctx).ResourceVersion }).WithTimeout(3 * time.Second).Should(Equal(version))
	}).WithContext(ctx).Should(Succeed())
}
