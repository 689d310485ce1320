package project

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// This file plays what no operator does: the Deployment controller, and serve.

// newProject returns the smallest useful project, with an account of its own.
func newProject(namespace, name string) *verifyv1.VerificationProject {
	return &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: verifyv1.VerificationProjectSpec{
			APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "api-key"}}},
			Telegram: &verifyv1.Telegram{
				BotUsername:       bot(),
				BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"},
			},
		},
	}
}

var bots int

// bot returns a unique username.
func bot() string {
	bots++
	digits := []byte("a000000")
	for i, n := len(digits)-1, bots; n > 0; i, n = i-1, n/10 {
		digits[i] += byte(n % 10)
	}
	return string(digits) + "_bot"
}

// create creates a project.
func create(ctx context.Context, project *verifyv1.VerificationProject) *verifyv1.VerificationProject {
	GinkgoHelper()
	Expect(admin.Create(ctx, project)).To(Succeed())
	return project
}

// change edits a project as a user does.
func change(ctx context.Context, project *verifyv1.VerificationProject, edit func(*verifyv1.VerificationProjectSpec)) {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), project)).To(Succeed())
	edit(&project.Spec)
	Expect(admin.Update(ctx, project)).To(Succeed())
}

// find returns a condition of a project; an empty one if there is none.
func find(ctx context.Context, project *verifyv1.VerificationProject, name string) metav1.Condition {
	GinkgoHelper()
	settle(ctx)
	return ptr.Deref(meta.FindStatusCondition(current(ctx, project).Status.Conditions, name), metav1.Condition{})
}

// expectCondition checks that a condition of a project, for its current spec, has a reason.
func expectCondition(ctx context.Context, project *verifyv1.VerificationProject, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	GinkgoHelper()
	settle(ctx)
	now := current(ctx, project)
	found := meta.FindStatusCondition(now.Status.Conditions, name)
	Expect(found).NotTo(BeNil(), "%v", now.Status.Conditions)
	Expect(found.ObservedGeneration).To(Equal(now.Generation))
	Expect(now.Status.ObservedGeneration).To(Equal(now.Generation))
	Expect([]string{string(found.Status), found.Reason}).To(Equal([]string{string(status), reason}), "%v", now.Status.Conditions)
	return *found
}

// expectReady checks that a project is Ready and neither Reconciling nor Stalled.
func expectReady(ctx context.Context, project *verifyv1.VerificationProject) {
	GinkgoHelper()
	expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionTrue, verifyv1.ReasonReady)
	for _, absent := range []string{verifyv1.ConditionReconciling, verifyv1.ConditionStalled} {
		Expect(find(ctx, project, absent)).To(BeZero())
	}
}

// report applies serve's conditions, as the lease holder does: good ones for the current spec, and the given ones.
func report(ctx context.Context, project *verifyv1.VerificationProject, others ...metav1.Condition) {
	GinkgoHelper()
	var now verifyv1.VerificationProject
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), &now)).To(Succeed())
	status := &verifyv1.VerificationProjectStatus{}
	for _, name := range readyInputs(&now.Spec) {
		c := metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Fine", Message: "it works"}
		if i := slices.IndexFunc(others, func(o metav1.Condition) bool { return o.Type == name }); i >= 0 {
			c = others[i]
		}
		c.ObservedGeneration, c.LastTransitionTime = now.Generation, metav1.Now()
		status.Conditions = append(status.Conditions, c)
	}
	applied := verifyv1.ApplyStatus(now.Namespace, now.Name, status)
	Expect(admin.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
		client.FieldOwner("phoneproof-serve"), client.ForceOwnership)).To(Succeed())
}

// deployment returns the project's Deployment, which must exist.
func deployment(ctx context.Context, project *verifyv1.VerificationProject) *appsv1.Deployment {
	GinkgoHelper()
	settle(ctx)
	d := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: render.Name(project.Name)}, d)).To(Succeed())
	return d
}

// podOf returns the pods of the project's Deployment.
func podOf(ctx context.Context, project *verifyv1.VerificationProject) *corev1.PodSpec {
	GinkgoHelper()
	return &deployment(ctx, project).Spec.Template.Spec
}

// imageOf returns the image of the project's pods.
func imageOf(ctx context.Context, project *verifyv1.VerificationProject) string {
	GinkgoHelper()
	return podOf(ctx, project).Containers[0].Image
}

// The states of a rollout that setRollout can set.
const (
	allReady  = "ready"
	noneReady = "none ready"
	oldReady  = "the former ones ready"
	givenUp   = "given up"
)

// setRollout gives the project's Deployment the status that its controller would, once its pods are in that state.
func setRollout(ctx context.Context, project *verifyv1.VerificationProject, state string) {
	GinkgoHelper()
	Expect(playRollout(ctx, deployment(ctx, project), state)).To(Succeed())
}

func playRollout(ctx context.Context, d *appsv1.Deployment, state string) error {
	n := ptr.Deref(d.Spec.Replicas, 1)
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n}
	progressing := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}
	switch state {
	case allReady:
		status.ReadyReplicas, status.AvailableReplicas = n, n
		progressing.Reason = reasonRolledOut
	case oldReady:
		status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas = n+1, 1, n, n
	case givenUp:
		status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas = n+1, 1, n, n
		progressing.Status, progressing.Reason = corev1.ConditionFalse, reasonStuck
	}
	status.Conditions = []appsv1.DeploymentCondition{progressing}
	d.Status = status
	return admin.Status().Update(ctx, d)
}

// finishRollouts plays the Deployment controller for every Deployment of a namespace until none has new pods: all are ready at
// once.
func finishRollouts(ctx context.Context, namespace string) {
	GinkgoHelper()
	for begun := true; begun; {
		settle(ctx)
		var all appsv1.DeploymentList
		Expect(admin.List(ctx, &all, client.InNamespace(namespace))).To(Succeed())
		begun = false
		for i := range all.Items {
			if all.Items[i].Status.ObservedGeneration < all.Items[i].Generation {
				begun = true
				Expect(playRollout(ctx, &all.Items[i], allReady)).To(Succeed())
			}
		}
	}
}

// children returns the children of a project, as KIND NAME.
func children(ctx context.Context, project *verifyv1.VerificationProject) []string {
	GinkgoHelper()
	settle(ctx)
	var out []string
	for _, object := range objectsOf(ctx, project.Namespace) {
		if metav1.IsControlledBy(object, project) {
			gvk, err := admin.GroupVersionKindFor(object)
			Expect(err).NotTo(HaveOccurred())
			out = append(out, gvk.Kind+" "+object.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// objectsOf returns all objects of a namespace with the kinds of children.
func objectsOf(ctx context.Context, namespace string) []client.Object {
	GinkgoHelper()
	var out []client.Object
	for _, kind := range apply.Objects(true) {
		gvk, err := admin.GroupVersionKindFor(kind)
		Expect(err).NotTo(HaveOccurred())
		list := newList(gvk)
		err = admin.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			out = append(out, item.(client.Object))
			return nil
		})).To(Succeed())
	}
	return out
}

// makeReady makes a project Ready as the other controllers would: later changes of the operator are rolled out too.
func makeReady(ctx context.Context, project *verifyv1.VerificationProject) {
	GinkgoHelper()
	const limit = 5 // a rollout may let the operator begin another one
	deployment(ctx, project)
	report(ctx, project)
	for range limit {
		d := deployment(ctx, project)
		if rolloutOf(d) == rolledOut && isAvailable(d) {
			break
		}
		Expect(playRollout(ctx, d, allReady)).To(Succeed())
	}
	expectReady(ctx, project)
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// kindOf and nameOf return the parts of a child as children returns it.
func kindOf(child string) string { return strings.Fields(child)[0] }
func nameOf(child string) string { return strings.Fields(child)[1] }
