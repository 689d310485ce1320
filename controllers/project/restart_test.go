package project

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// lifeSteps is the life of a project in the specs below: each step is a change by its user.
var lifeSteps = []func(*spec){
	func(s *spec) { s.Server.Replicas = new(int32(4)) },
	func(s *spec) { s.Expose.Ingress = &verifyv1.IngressSettings{Host: "a.example.com"} },
	func(s *spec) { s.NetworkPolicy = &verifyv1.NetworkPolicy{} },
	func(s *spec) { s.Server.PodDisruptionBudget = &verifyv1.PodDisruptionBudget{} },
	func(s *spec) { s.Suspend = new(true) },
	func(s *spec) { s.Expose.Ingress, s.Suspend = nil, nil },
	func(s *spec) {
		s.Storage = verifyv1.Storage{Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "db"}}}
	},
	func(s *spec) { s.Server.Tolerations = []corev1.Toleration{{Key: "web", Operator: "Exists"}} },
}

var _ = Describe("An operator that crashes after any of its writes", func() {
	It("leaves a state from which the next operator finishes everything", func(ctx SpecContext) {
		untouched := newNamespace(ctx)
		stop := startSteppedOperator(ctx, operator, usual(), untouched).stop
		want := liveThrough(ctx, untouched, func() {})
		stop()

		for writes := 1; writes <= 4; writes++ {
			namespace := newNamespace(ctx)
			op := startSteppedOperator(ctx, operator, usual(), namespace)
			got := liveThrough(ctx, namespace, func() {
				op.crashAfter(writes)
				settle(ctx)
				Expect(op.isCrashed() || writes > 1).To(BeTrue(), "each change takes a write")
				op.stop()
				op = startSteppedOperator(ctx, operator, usual(), namespace)
			})
			op.stop()
			Expect(got).To(Equal(want))
		}
	})
})

// liveThrough takes a project through its life, and returns all objects of its namespace at the end. It calls happens right after
// each change.
func liveThrough(ctx context.Context, namespace string, happens func()) []string {
	GinkgoHelper()
	project := newProject(namespace, "shop")
	project.Spec.Telegram.BotUsername = "life_of_" + strings.ReplaceAll(namespace, "-", "_") + "_bot"
	create(ctx, project)
	happens()
	report(ctx, project)
	finishRollouts(ctx, namespace)
	expectReady(ctx, project)
	for _, step := range lifeSteps {
		change(ctx, project, step)
		happens()
		finishRollouts(ctx, namespace)
		if project.Suspended() {
			expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
			continue
		}
		report(ctx, project)
		expectReady(ctx, project)
	}
	Expect(children(ctx, project)).NotTo(ContainElement("RoleBinding phoneproof-shop-kubernetes"))
	// If one crashed between its writes, only the cluster shows that pods are due.
	Expect(rolloutOf(deployment(ctx, project))).To(Equal(rolledOut))
	expectReady(ctx, project)
	var out []string
	for _, object := range append(objectsOf(ctx, namespace), current(ctx, project)) {
		if metav1.IsControlledBy(object, project) || object.GetUID() == project.UID {
			out = append(out, normalize(object))
		}
	}
	slices.Sort(out)
	return out
}

func current(ctx context.Context, project *verifyv1.VerificationProject) *verifyv1.VerificationProject {
	GinkgoHelper()
	now := &verifyv1.VerificationProject{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), now)).To(Succeed())
	return now
}

// normalize returns an object as text, without what differs between two lives: names of the namespace, ids, times, and the number
// of writes.
func normalize(object client.Object) string {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{Object: content}
	namespace := u.GetNamespace()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	owners := u.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = "owner"
	}
	u.SetOwnerReferences(owners)
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(u.Object, "spec", field)
	}
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	Expect(err).NotTo(HaveOccurred())
	for _, c := range conditions {
		for _, field := range []string{"lastTransitionTime", "lastUpdateTime"} {
			delete(c.(map[string]any), field)
		}
	}
	slices.SortFunc(conditions, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["type"].(string), b.(map[string]any)["type"].(string))
	})
	claims, _, err := unstructured.NestedSlice(u.Object, "status", "claims")
	Expect(err).NotTo(HaveOccurred())
	for _, c := range claims {
		delete(c.(map[string]any), "since")
	}
	if len(claims) > 0 {
		Expect(unstructured.SetNestedSlice(u.Object, claims, "status", "claims")).To(Succeed())
	}
	if len(conditions) > 0 {
		Expect(unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")).To(Succeed())
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	text, err := json.Marshal(u.Object)
	Expect(err).NotTo(HaveOccurred())
	replaced := strings.ReplaceAll(string(text), namespace, "NAMESPACE")
	replaced = strings.ReplaceAll(replaced, strings.ReplaceAll(namespace, "-", "_"), "NAMESPACE")
	observedGeneration, err := json.Marshal(object.GetGeneration())
	Expect(err).NotTo(HaveOccurred())
	return strings.ReplaceAll(replaced, `"observedGeneration":`+string(observedGeneration), `"observedGeneration":"current"`)
}
