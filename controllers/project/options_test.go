package project

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

type spec = verifyv1.VerificationProjectSpec

var _ = Describe("An option", func() {
	DescribeTable("creates its child, and deletes it when it is turned off",
		func(ctx SpecContext, child string, on, off func(*spec)) {
			startSteppedOperator(ctx, operator, usual())
			project := newProject(newNamespace(ctx), "shop")
			project.Spec.BaseURL = "https://verify.example.com"
			project.Spec.Telegram.Updates = verifyv1.TelegramUpdatesPolling
			create(ctx, project)
			makeReady(ctx, project)
			without := children(ctx, project)
			Expect(without).NotTo(ContainElement(child))

			change(ctx, project, on)
			Expect(children(ctx, project)).To(ContainElement(child))
			change(ctx, project, off)
			Expect(children(ctx, project)).To(Equal(without))
		},
		Entry("Ingress", "Ingress phoneproof-shop",
			func(s *spec) { s.Expose.Ingress = &verifyv1.IngressSettings{} }, func(s *spec) { s.Expose.Ingress = nil }),
		Entry("HorizontalPodAutoscaler", "HorizontalPodAutoscaler phoneproof-shop",
			func(s *spec) { s.Server.Autoscaling = &verifyv1.Autoscaling{MaxReplicas: 5} }, func(s *spec) { s.Server.Autoscaling = nil }),
		Entry("PodDisruptionBudget", "PodDisruptionBudget phoneproof-shop",
			func(s *spec) { s.Server.PodDisruptionBudget = &verifyv1.PodDisruptionBudget{} },
			func(s *spec) { s.Server.PodDisruptionBudget = nil }),
		Entry("NetworkPolicy", "NetworkPolicy phoneproof-shop",
			func(s *spec) { s.NetworkPolicy = &verifyv1.NetworkPolicy{} }, func(s *spec) { s.NetworkPolicy = nil }),
	)

	It("of the storage replaces the rights of the pods once no pod needs the former ones", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		change(ctx, project, func(s *spec) {
			s.Storage = verifyv1.Storage{Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "db"}}}
		})
		Expect(children(ctx, project)).To(ContainElements("RoleBinding phoneproof-shop-postgresql", "RoleBinding phoneproof-shop-kubernetes"))
		makeReady(ctx, project)
		Expect(children(ctx, project)).NotTo(ContainElement("RoleBinding phoneproof-shop-kubernetes"))
	})

	// Each field that the children depend on, and how they show it. The rest of the spec reaches the pods through their own
	// watch: it must change nothing here.
	DescribeTable("of the spec reaches the children",
		func(ctx SpecContext, edit func(*spec), shows func(context.Context, *verifyv1.VerificationProject) any, want any) {
			startSteppedOperator(ctx, operator, usual())
			project := create(ctx, newProject(newNamespace(ctx), "shop"))
			makeReady(ctx, project)
			change(ctx, project, edit)
			settle(ctx)
			Expect(shows(ctx, project)).To(BeEquivalentTo(want))
			makeReady(ctx, project)
		},
		Entry("replicas", func(s *spec) { s.Server.Replicas = new(int32(3)) },
			ofDeployment(func(d *appsv1.Deployment) any { return *d.Spec.Replicas }), 3),
		Entry("resources", func(s *spec) {
			s.Server.Resources = &verifyv1.Resources{Limits: &verifyv1.ResourceAmounts{Memory: new(quantity("512Mi"))}}
		}, ofPod(func(p *corev1.PodSpec) any { return p.Containers[0].Resources.Limits.Memory().String() }), "512Mi"),
		Entry("nodeSelector", func(s *spec) { s.Server.NodeSelector = map[string]verifyv1.LabelValue{"pool": "web"} },
			ofPod(func(p *corev1.PodSpec) any { return p.NodeSelector["pool"] }), "web"),
		Entry("tolerations", func(s *spec) { s.Server.Tolerations = []corev1.Toleration{{Key: "web", Operator: "Exists"}} },
			ofPod(func(p *corev1.PodSpec) any { return p.Tolerations[0].Key }), "web"),
		Entry("affinity", func(s *spec) {
			s.Server.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}},
			}}
		}, ofPod(func(p *corev1.PodSpec) any {
			if p.Affinity == nil {
				return nil
			}
			return p.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
		}), "zone"),
		Entry("topologySpreadConstraints", func(s *spec) {
			s.Server.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 3, TopologyKey: "rack", WhenUnsatisfiable: "DoNotSchedule"}}
		}, ofPod(func(p *corev1.PodSpec) any { return p.TopologySpreadConstraints[0].TopologyKey }), "rack"),
		Entry("a secret reference", func(s *spec) { s.Telegram.BotTokenSecretRef.Name = "another" },
			ofPod(func(p *corev1.PodSpec) any { return len(p.Volumes[0].Projected.Sources) }), 2),
		Entry("the Service's annotations", func(s *spec) {
			s.Expose.Service.Annotations = map[string]verifyv1.AnnotationValue{"external-dns.alpha.kubernetes.io/hostname": "dns.example.com"}
		}, func(ctx context.Context, p *verifyv1.VerificationProject) any {
			var service corev1.Service
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: render.Name(p.Name)}, &service)).To(Succeed())
			return service.Annotations["external-dns.alpha.kubernetes.io/hostname"]
		}, "dns.example.com"),
		Entry("the Ingress's host", func(s *spec) { s.Expose.Ingress = &verifyv1.IngressSettings{Host: "a.example.com"} },
			func(ctx context.Context, p *verifyv1.VerificationProject) any {
				var ingress networkingv1.Ingress
				Expect(admin.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: render.Name(p.Name)}, &ingress)).To(Succeed())
				return ingress.Spec.Rules[0].Host
			}, "a.example.com"),
	)

	It("that only serve reads changes no child", func(ctx SpecContext) {
		op := startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		before := len(op.written(project.Namespace, "phoneproof-shop"))
		change(ctx, project, func(s *spec) {
			s.DisplayName = "Shop"
			s.Webhook = &verifyv1.Webhook{URL: "https://example.com/hook"}
			s.RateLimit.PerKey = &verifyv1.Rate{Requests: 5, Period: "1m"}
			s.Request.TTL = "5m"
			s.Replies = &verifyv1.Replies{Verified: "Thank you"}
		})
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionUnknown, verifyv1.ReasonNotReported)
		report(ctx, project)
		expectReady(ctx, project)
		Expect(op.written(project.Namespace, "phoneproof-shop")).To(HaveLen(before))
	})
})

var _ = Describe("The number of pods", func() {
	It("never falls when an autoscaler takes over, and is the declared one after its removal", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := newProject(newNamespace(ctx), "shop")
		project.Spec.Server.Replicas = new(int32(5))
		create(ctx, project)
		makeReady(ctx, project)
		seen := watchReplicas(ctx, project)

		change(ctx, project, func(s *spec) { s.Server.Autoscaling = &verifyv1.Autoscaling{MaxReplicas: 9} })
		Expect(children(ctx, project)).To(ContainElement("HorizontalPodAutoscaler phoneproof-shop"))
		makeReady(ctx, project)
		for _, n := range []int32{7, 4} {
			scale(ctx, project, n)
			makeReady(ctx, project)
		}
		change(ctx, project, func(s *spec) { s.Server.Replicas = new(int32(6)) }) // ignored while there is an autoscaler
		makeReady(ctx, project)
		Expect(*deployment(ctx, project).Spec.Replicas).To(BeEquivalentTo(4))

		change(ctx, project, func(s *spec) { s.Server.Autoscaling = nil })
		Expect(*deployment(ctx, project).Spec.Replicas).To(BeEquivalentTo(6))
		makeReady(ctx, project)
		Expect(seen()).To(Equal([]int32{5, 7, 4, 6}))
	})

	It("is 0 while the project is suspended, and the former one afterwards", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := newProject(newNamespace(ctx), "shop")
		project.Spec.Server.Autoscaling = &verifyv1.Autoscaling{MinReplicas: new(int32(3)), MaxReplicas: 9}
		create(ctx, project)
		makeReady(ctx, project)
		scale(ctx, project, 5)
		makeReady(ctx, project)

		change(ctx, project, func(s *spec) { s.Suspend = new(true) })
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		Expect(*deployment(ctx, project).Spec.Replicas).To(BeZero())
		setRollout(ctx, project, allReady)
		Expect(children(ctx, project)).NotTo(ContainElement(HavePrefix("HorizontalPodAutoscaler")))
		expectCondition(ctx, project, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		Expect(find(ctx, project, verifyv1.ConditionReconciling)).To(Equal(metav1.Condition{}))

		change(ctx, project, func(s *spec) { s.Suspend = nil })
		Expect(*deployment(ctx, project).Spec.Replicas).To(BeEquivalentTo(3))
		makeReady(ctx, project)
		Expect(children(ctx, project)).To(ContainElement(HavePrefix("HorizontalPodAutoscaler")))
	})
})

func ofDeployment(show func(*appsv1.Deployment) any) func(context.Context, *verifyv1.VerificationProject) any {
	return func(ctx context.Context, p *verifyv1.VerificationProject) any { return show(deployment(ctx, p)) }
}

func ofPod(show func(*corev1.PodSpec) any) func(context.Context, *verifyv1.VerificationProject) any {
	return ofDeployment(func(d *appsv1.Deployment) any {
		pod := d.Spec.Template.Spec
		if len(pod.Tolerations) == 0 {
			pod.Tolerations = []corev1.Toleration{{}}
		}
		return show(&pod)
	})
}

// scale sets the number of pods as an autoscaler does.
func scale(ctx context.Context, project *verifyv1.VerificationProject, n int32) {
	GinkgoHelper()
	d := deployment(ctx, project)
	by := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	Expect(admin.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(by),
		client.FieldOwner("kube-controller-manager"))).To(Succeed())
}

// watchReplicas returns a function that returns all numbers of pods of the Deployment from now on.
func watchReplicas(ctx context.Context, project *verifyv1.VerificationProject) func() []int32 {
	GinkgoHelper()
	watching, err := admin.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(project.Namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watching.Stop)
	return func() (numbers []int32) {
		GinkgoHelper()
		now := deployment(ctx, project).ResourceVersion
		for version := ""; version != now; { // a watch may be late
			var event watch.Event
			select {
			case event = <-watching.ResultChan():
			case <-ctx.Done():
				Fail("the watch shows no change of the Deployment")
			}
			d, ok := event.Object.(*appsv1.Deployment)
			Expect(ok).To(BeTrue(), "%v", event)
			if len(numbers) == 0 || numbers[len(numbers)-1] != *d.Spec.Replicas {
				numbers = append(numbers, *d.Spec.Replicas)
			}
			version = d.ResourceVersion
		}
		return numbers
	}
}
