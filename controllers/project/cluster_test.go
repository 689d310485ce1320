package project

import (
	"context"
	"slices"
	"strings"
	"time"

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
	verifyv1ac "github.com/phoneproof/phoneproof/api/v1alpha1/applyconfiguration/api/v1alpha1"
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
	Eventually(func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(project), project); err != nil {
			return err
		}
		edit(&project.Spec)
		return admin.Update(ctx, project)
	}).WithContext(ctx).Should(Succeed())
}

// find returns a current condition of a project; an empty one if there is none.
func find(ctx context.Context, project *verifyv1.VerificationProject, name string) metav1.Condition {
	GinkgoHelper()
	var now verifyv1.VerificationProject
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), &now)).To(Succeed())
	return ptr.Deref(meta.FindStatusCondition(now.Status.Conditions, name), metav1.Condition{})
}

// expectCondition waits until a condition of a project, for its current spec, has a reason.
func expectCondition(ctx context.Context, project *verifyv1.VerificationProject, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	GinkgoHelper()
	var c metav1.Condition
	Eventually(func(g Gomega) {
		var now verifyv1.VerificationProject
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), &now)).To(Succeed())
		found := meta.FindStatusCondition(now.Status.Conditions, name)
		g.Expect(found).NotTo(BeNil(), "%v", now.Status.Conditions)
		g.Expect(found.ObservedGeneration).To(Equal(now.Generation))
		g.Expect(now.Status.ObservedGeneration).To(Equal(now.Generation))
		g.Expect([]string{string(found.Status), found.Reason}).To(Equal([]string{string(status), reason}), "%v", now.Status.Conditions)
		c = *found
	}).WithContext(ctx).Should(Succeed())
	return c
}

// expectReady waits until a project is Ready and not Reconciling.
func expectReady(ctx context.Context, project *verifyv1.VerificationProject) {
	GinkgoHelper()
	expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionTrue, verifyv1.ReasonReady)
	for _, absent := range []string{verifyv1.ConditionReconciling, verifyv1.ConditionStalled} {
		Eventually(find).WithContext(ctx).WithArguments(ctx, project, absent).Should(BeZero())
	}
}

// report applies serve's conditions, as the lease holder does: good ones for the current spec, and the given ones.
func report(ctx context.Context, project *verifyv1.VerificationProject, others ...metav1.Condition) {
	GinkgoHelper()
	var now verifyv1.VerificationProject
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), &now)).To(Succeed())
	status := verifyv1ac.VerificationProjectStatus()
	for _, name := range readyInputs(&now.Spec) {
		c := metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Fine", Message: "it works"}
		if i := slices.IndexFunc(others, func(o metav1.Condition) bool { return o.Type == name }); i >= 0 {
			c = others[i]
		}
		c.ObservedGeneration, c.LastTransitionTime = now.Generation, metav1.Now()
		status.WithConditions(conditionOf(&c))
	}
	Expect(admin.Status().Apply(ctx, verifyv1ac.VerificationProject(now.Name, now.Namespace).WithStatus(status),
		client.FieldOwner("phoneproof-serve"), client.ForceOwnership)).To(Succeed())
}

// deployment returns the project's Deployment once it exists.
func deployment(ctx context.Context, project *verifyv1.VerificationProject) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Eventually(func() error {
		return admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: render.Name(project.Name)}, d)
	}).WithContext(ctx).Should(Succeed())
	return d
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
	Eventually(func() error {
		return playRollout(ctx, deployment(ctx, project), state)
	}).WithContext(ctx).Should(Succeed())
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

// runKubelets plays the Deployment controller for every Deployment of a namespace, until the spec ends: all pods are ready at
// once.
func runKubelets(ctx context.Context, namespace string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			var all appsv1.DeploymentList
			if admin.List(ctx, &all, client.InNamespace(namespace)) == nil {
				for i := range all.Items {
					if all.Items[i].Status.ObservedGeneration < all.Items[i].Generation {
						_ = playRollout(ctx, &all.Items[i], allReady) // the next round retries
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	DeferCleanup(func() {
		cancel()
		<-ended
	})
}

// children returns the children of a project, as KIND NAME.
func children(ctx context.Context, project *verifyv1.VerificationProject) []string {
	GinkgoHelper()
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
	deployment(ctx, project)
	report(ctx, project)
	Eventually(func(g Gomega) {
		if d := deployment(ctx, project); rolloutOf(d) != rolledOut || !isAvailable(d) {
			g.Expect(playRollout(ctx, d, allReady)).To(Succeed())
		}
		now := current(ctx, project)
		c := meta.FindStatusCondition(now.Status.Conditions, verifyv1.ConditionReady)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue), "%v", now.Status.Conditions)
		g.Expect(c.ObservedGeneration).To(Equal(now.Generation))
	}).WithContext(ctx).Should(Succeed())
	expectReady(ctx, project)
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// kindOf and nameOf return the parts of a child as children returns it.
func kindOf(child string) string { return strings.Fields(child)[0] }
func nameOf(child string) string { return strings.Fields(child)[1] }
