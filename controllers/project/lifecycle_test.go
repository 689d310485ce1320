package project

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A project", func() {
	It("becomes a running API step by step", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))

		By("creating its children")
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonProgressing)
		expectCondition(ctx, project, verifyv1.ConditionReconciling, metav1.ConditionTrue, verifyv1.ReasonProgressing)
		expectCondition(ctx, project, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
		Expect(children(ctx, project)).To(ConsistOf("Deployment phoneproof-shop", "Service phoneproof-shop",
			"ServiceAccount phoneproof-shop", "RoleBinding phoneproof-shop-kubernetes"))

		By("waiting for reports of its pods")
		setRollout(ctx, project, allReady)
		expectCondition(ctx, project, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionUnknown, verifyv1.ReasonNotReported)

		By("becoming Ready after the reports")
		report(ctx, project)
		expectReady(ctx, project)
	})

	It("is not Ready while serve reports a problem, and its pods stay the same", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		before := deployment(ctx, project)

		const message = "Secret shop has no key api-key"
		report(ctx, project, metav1.Condition{
			Type: verifyv1.ConditionSecretsReady, Status: metav1.ConditionFalse, Reason: verifyv1.ReasonSecretMissing, Message: message,
		})
		Expect(expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSecretMissing).Message).
			To(Equal(message))
		expectCondition(ctx, project, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)

		report(ctx, project)
		expectReady(ctx, project)
		Expect(deployment(ctx, project).ResourceVersion).To(Equal(before.ResourceVersion))
		Expect(accepted(op.written(project.Namespace, "deployments"))).To(HaveLen(1), "made once")
	})

	It("has its children deleted with it", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		for _, object := range objectsOf(ctx, project.Namespace) {
			if metav1.IsControlledBy(object, project) {
				Expect(object.GetOwnerReferences()).To(HaveLen(1))
				Expect(object.GetOwnerReferences()[0].BlockOwnerDeletion).To(BeNil())
			}
		}
		// No garbage collector runs here; the operator's part is that nothing is created again.
		Expect(admin.Delete(ctx, project)).To(Succeed())
		Expect(admin.Delete(ctx, deployment(ctx, project))).To(Succeed())
		elapse(ctx, lastRetry)
		Expect(children(ctx, project)).NotTo(ContainElement("Deployment phoneproof-shop"))
	})

	It("can be waited for with kubectl", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		Expect(kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=30s", "--namespace", project.Namespace, "vproj/shop")).
			To(ContainSubstring("condition met"))
		change(ctx, project, func(s *verifyv1.VerificationProjectSpec) { s.DisplayName = "Shop" })
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionUnknown, verifyv1.ReasonNotReported)
		report(ctx, project)
		settle(ctx)
		Expect(kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=30s", "--namespace", project.Namespace, "vproj/shop")).
			To(ContainSubstring("condition met"))
		Expect(client.IgnoreNotFound(admin.Delete(ctx, project))).To(Succeed())
	})
})
