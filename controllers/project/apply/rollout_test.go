package apply_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// rollOut does what the Deployment's controller does: it reports that all pods are new, except for these.
func (w *appliedProject) rollOut(ctx context.Context, old, ending int32) {
	GinkgoHelper()
	d := read[appsv1.Deployment](ctx, w)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, UpdatedReplicas: *d.Spec.Replicas, Replicas: *d.Spec.Replicas + old,
		TerminatingReplicas: new(ending),
	}
	Expect(admin.Status().Update(ctx, d)).To(Succeed())
}

var _ = Describe("Another storage", func() {
	It("removes the rights of the old pods only when these are gone", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		w.applyAll(ctx)
		w.rollOut(ctx, 0, 0)
		old := []apply.Ref{{Kind: "RoleBinding", Name: w.name() + "-kubernetes"}}

		w.project.Spec.Storage = verifyv1.Storage{
			Type:       verifyv1.StoragePostgreSQL,
			PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "db"}},
		}
		result, writes := w.apply(ctx)
		Expect(w.writes.all()[0]).To(HaveSuffix("/rolebindings/"+w.name()+"-postgresql"), "the new rights come before the new pods")
		Expect(writes).To(Equal(2))
		Expect(result.Waiting).To(Equal(old))

		for _, phase := range []struct {
			name        string
			old, ending int32
		}{{"old pods run", 1, 0}, {"old pods end", 0, 1}} {
			w.rollOut(ctx, phase.old, phase.ending)
			result, writes = w.apply(ctx)
			Expect(result.Waiting).To(Equal(old), phase.name)
			Expect(writes).To(BeZero(), phase.name)
		}

		w.rollOut(ctx, 0, 0)
		result, writes = w.apply(ctx)
		Expect(result.Deleted).To(Equal(old))
		Expect(writes).To(Equal(1))
	})
})

var _ = Describe("Rolls", func() {
	It("reports whether pods would be replaced", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		rolls := func() bool {
			GinkgoHelper()
			rolls, err := apply.Rolls(w.observe(ctx), render.Project(w.project, w.options))
			Expect(err).NotTo(HaveOccurred())
			return rolls
		}
		Expect(rolls()).To(BeFalse(), "there are none")
		w.applyAll(ctx)
		Expect(rolls()).To(BeFalse(), "nothing changes")
		w.project.Spec.Server.Replicas = new(int32(7))
		Expect(rolls()).To(BeFalse(), "the number changes")
		w.options.Image = "another"
		Expect(rolls()).To(BeTrue(), "the image changes")
	})
})

var _ = Describe("A Deployment that is held", func() {
	It("stays as it is, with its rights, while the other children change", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		w.applyAll(ctx)
		w.rollOut(ctx, 0, 0)
		before := read[appsv1.Deployment](ctx, w)
		w.options.Image, w.options.NamespacedRoles = "another", true
		w.project.Spec.Expose.Service.Type = verifyv1.ServiceNodePort
		result, _, err := w.tryApply(ctx, apply.Request{HoldDeployment: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(read[appsv1.Deployment](ctx, w)).To(Equal(before))
		Expect(result.Applied).To(ConsistOf(
			apply.Ref{Kind: "RoleBinding", Name: w.name() + "-kubernetes-ns"}, apply.Ref{Kind: "Service", Name: w.name()}))
		Expect(result.Waiting).To(ConsistOf(apply.Ref{Kind: "RoleBinding", Name: w.name() + "-kubernetes"}))
	})

	It("is created if there is none", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		_, _, err := w.tryApply(ctx, apply.Request{HoldDeployment: true})
		Expect(err).NotTo(HaveOccurred())
		read[appsv1.Deployment](ctx, w)
	})
})

var _ = Describe("Options of the Service", func() {
	It("can be turned on and off", func(ctx SpecContext) {
		w := newAppliedProject(ctx, smallest())
		for _, kind := range []verifyv1.ServiceType{
			verifyv1.ServiceLoadBalancer, verifyv1.ServiceClusterIP, verifyv1.ServiceNodePort, verifyv1.ServiceClusterIP,
		} {
			w.project.Spec.Expose.Service.Type = kind
			w.applyAll(ctx)
		}
	})
})
