package project

import (
	"context"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/gitops"
)

// health is the state of a project as seen by tools that wait for it.
type health struct {
	Kstatus, Flux status.Status
	ArgoCD        string
}

var (
	inProgress = health{status.InProgressStatus, status.InProgressStatus, "Progressing"}
	reached    = health{status.CurrentStatus, status.CurrentStatus, "Healthy"}
	failed     = health{status.FailedStatus, status.FailedStatus, "Degraded"}
)

func healthOf(ctx context.Context, checks *gitops.Checks, project *verifyv1.VerificationProject) health {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(verifyv1.GroupVersion.WithKind(verifyv1.VerificationProjectKind))
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(project), object)).To(Succeed())
	var h health
	var err error
	h.Kstatus, err = gitops.Kstatus(object)
	Expect(err).NotTo(HaveOccurred())
	h.Flux, err = checks.Flux(object)
	Expect(err).NotTo(HaveOccurred())
	Expect(checks.Expressions(object)).To(Equal(h.Flux), "without Flux's own check of the generation")
	h.ArgoCD, err = checks.ArgoCD(object)
	Expect(err).NotTo(HaveOccurred())
	return h
}

var _ = Describe("Tools that wait for a project", func() {
	var checks *gitops.Checks
	BeforeEach(func() {
		var err error
		checks, err = gitops.ReadChecks()
		Expect(err).NotTo(HaveOccurred())
	})

	It("wait for one that the operator has not reconciled since its creation or its last edit", func(ctx SpecContext) {
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		Expect(current(ctx, project).Status).To(Equal(verifyv1.VerificationProjectStatus{ObservedGeneration: -1}))
		Expect(healthOf(ctx, checks, project)).To(Equal(inProgress))

		By("reporting serve's conditions first")
		report(ctx, project)
		Expect(healthOf(ctx, checks, project)).To(Equal(inProgress))

		By("starting the operator")
		op := startSteppedOperator(ctx, operator, usual())
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonProgressing)
		Expect(healthOf(ctx, checks, project)).To(Equal(inProgress))
		makeReady(ctx, project)
		Expect(healthOf(ctx, checks, project)).To(Equal(reached))

		By("editing the spec while no operator runs")
		op.stop()
		change(ctx, project, func(s *spec) { s.DisplayName = "Shop" })
		Expect(healthOf(ctx, checks, project)).To(Equal(inProgress))
		startSteppedOperator(ctx, operator, usual())
		makeReady(ctx, project)
		Expect(healthOf(ctx, checks, project)).To(Equal(reached))
	})

	It("fail for one that is Stalled", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := newProject(newNamespace(ctx), "shop")
		project.Spec.Server.PriorityClassName = "system-cluster-critical"
		create(ctx, project)
		expectCondition(ctx, project, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		Expect(healthOf(ctx, checks, project)).To(Equal(failed))
	})

	It("succeed for one that is suspended, except those that use kstatus alone", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := newProject(newNamespace(ctx), "shop")
		project.Spec.Suspend = new(true)
		create(ctx, project)
		setRollout(ctx, project, allReady)
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		Expect(healthOf(ctx, checks, project)).To(Equal(health{status.InProgressStatus, status.CurrentStatus, "Suspended"}))
	})
})
