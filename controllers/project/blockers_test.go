package project

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A foreign object", func() {
	It("is named in the status and stays unchanged until it is deleted", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		foreign := someDeployment(namespace, "phoneproof-shop")
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		project := create(ctx, newProject(namespace, "shop"))

		stalled := expectCondition(ctx, project, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonConflict)
		Expect(stalled.Message).To(Equal("Deployment phoneproof-shop exists and does not belong to this project; delete or rename it"))
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonConflict)
		expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonConflict)
		now := &appsv1.Deployment{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(foreign.ResourceVersion), "untouched")

		Expect(admin.Delete(ctx, foreign)).To(Succeed())
		touch(ctx, project)
		makeReady(ctx, project)
	})
})

var _ = Describe("A spec that the administrator has not allowed", func() {
	It("is refused with its field and the operator's flag, and running pods stay", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		before := deployment(ctx, project)

		change(ctx, project, func(s *spec) { s.Server.PriorityClassName, s.Server.Replicas = "system-node-critical", new(int32(7)) })
		stalled := expectCondition(ctx, project, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		Expect(stalled.Message).To(Equal(`spec.server.priorityClassName: "system-node-critical" is not allowed by the cluster's ` +
			`administrator (operator flag --allow-priority-class)`))
		expectCondition(ctx, project, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)
		Expect(deployment(ctx, project).ResourceVersion).To(Equal(before.ResourceVersion))

		By("stopping the pods when it is suspended")
		change(ctx, project, func(s *spec) { s.Suspend = new(true) })
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		Expect(children(ctx, project)).NotTo(ContainElement(HavePrefix("Deployment")))
		change(ctx, project, func(s *spec) { s.Suspend = nil })
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonNotPermitted)

		By("applying it once the flag allows it")
		op.stop()
		allowing := usual()
		allowing.Permissions.PriorityClasses = []string{"system-*"}
		startSteppedOperator(ctx, operator, allowing)
		makeReady(ctx, project)
		Expect(*deployment(ctx, project).Spec.Replicas).To(BeEquivalentTo(7))
	})
})

var _ = Describe("A child that the API server refuses", func() {
	It("is named with its field, and the other children are applied", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := newProject(newNamespace(ctx), "shop")
		project.Spec.Server.Tolerations = []corev1.Toleration{{Key: "a key", Operator: "Exists"}}
		create(ctx, project)
		stalled := expectCondition(ctx, project, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonChildRejected)
		Expect(stalled.Message).To(HavePrefix(
			"the API server refuses Deployment phoneproof-shop: spec.template.spec.tolerations[0].key: "))
		Expect(children(ctx, project)).To(ConsistOf("Service phoneproof-shop", "ServiceAccount phoneproof-shop",
			"RoleBinding phoneproof-shop-kubernetes"))
		expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonChildRejected)

		change(ctx, project, func(s *spec) { s.Server.Tolerations = nil })
		expectEvent(ctx, project, corev1.EventTypeNormal, verifyv1.ReasonProgressing)
		makeReady(ctx, project)
	})
})

func someDeployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": "another"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "another"}}},
			},
		},
	}
}

func whatsApp(id string) *verifyv1.WhatsApp {
	return &verifyv1.WhatsApp{
		PhoneNumber: "+15550100123", PhoneNumberID: id,
		AccessTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "access-token"},
		AppSecretRef:         verifyv1.SecretKeyRef{Name: "shop", Key: "app-secret"},
	}
}

// touch changes something irrelevant in a project, so that it is reconciled.
func touch(ctx context.Context, project *verifyv1.VerificationProject) {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), project)).To(Succeed())
	project.Annotations = map[string]string{"example.com/touched": project.ResourceVersion}
	Expect(admin.Update(ctx, project)).To(Succeed())
}

// nextSecond returns when a new object would be younger than the project, because ages are counted in seconds.
func nextSecond(ctx context.Context, project *verifyv1.VerificationProject) {
	GinkgoHelper()
	Eventually(func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project.Namespace, GenerateName: "probe-"}}
		Expect(admin.Create(ctx, probe)).To(Succeed())
		return probe.CreationTimestamp.After(project.CreationTimestamp.Time)
	}).WithContext(ctx).Should(BeTrue())
}

// expectEvent checks that there is an Event about a project.
func expectEvent(ctx context.Context, project *verifyv1.VerificationProject, kind, reason string) {
	GinkgoHelper()
	settle(ctx)
	Expect(eventsOf(ctx, project)).To(ContainElement(kind + " " + reason))
}

// eventsOf returns the Events about a project, as TYPE REASON.
func eventsOf(ctx context.Context, project *verifyv1.VerificationProject) (out []string) {
	GinkgoHelper()
	var all eventsv1.EventList
	Expect(admin.List(ctx, &all, client.InNamespace(project.Namespace))).To(Succeed())
	for _, e := range all.Items {
		if e.Regarding.UID == project.UID {
			out = append(out, e.Type+" "+e.Reason)
		}
	}
	return out
}
