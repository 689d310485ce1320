package project

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// exposeAt makes a project ask for the host of its base URL by an Ingress.
func exposeAt(base string) func(*spec) {
	return func(s *spec) {
		s.BaseURL, s.Expose.Ingress, s.Telegram.Updates = base, &verifyv1.IngressSettings{}, verifyv1.TelegramUpdatesPolling
	}
}

// expectRefused starts a project whose host another one has, and checks that the operator refuses it.
func expectRefused(ctx context.Context, project *verifyv1.VerificationProject) {
	GinkgoHelper()
	deployment(ctx, project)
	report(ctx, project)
	setRollout(ctx, project, allReady)
	expectCondition(ctx, project, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
	elapse(ctx, 2*sharingDelay) // its own status requeues it once more
	expectCondition(ctx, project, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
}

// expectHost checks that a project gets its Ingress within a minute without being edited.
func expectHost(ctx context.Context, project *verifyv1.VerificationProject, host string) {
	GinkgoHelper()
	elapse(ctx, afterHeld)
	Expect(ingressHost(ctx, project)).To(Equal(host))
}

// takeIngressName creates a foreign Ingress with the name of a project's.
func takeIngressName(ctx context.Context, namespace, project string) {
	GinkgoHelper()
	foreign := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: render.Name(project)},
		Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: "other", Port: networkingv1.ServiceBackendPort{Number: 80},
		}}},
	}
	Expect(admin.Create(ctx, foreign)).To(Succeed())
}

// stalledReason returns why a project is Stalled; empty if it is not.
func stalledReason(ctx context.Context, project *verifyv1.VerificationProject) string {
	GinkgoHelper()
	return find(ctx, project, verifyv1.ConditionStalled).Reason
}

// annotationOf returns an annotation of a project's Service or Ingress; empty if there is none.
func annotationOf(ctx context.Context, project *verifyv1.VerificationProject, object client.Object, key string) string {
	GinkgoHelper()
	settle(ctx)
	err := admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: render.Name(project.Name)}, object)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return object.GetAnnotations()[key]
}

var _ = Describe("A project that was refused a host", func() {
	It("gets it when the Ingress of another namespace gives it up", func(ctx SpecContext) {
		const host, base = "given-up.refused.example.com", "https://given-up.refused.example.com"
		startSteppedOperator(ctx, operator, usual())
		holder := create(ctx, newProject(newNamespace(ctx), "holder"))
		change(ctx, holder, exposeAt(base))
		makeReady(ctx, holder)
		waiting := create(ctx, newProject(newNamespace(ctx), "waiting"))
		change(ctx, waiting, exposeAt(base))
		expectRefused(ctx, waiting)

		change(ctx, holder, func(s *spec) { s.BaseURL = "https://elsewhere.refused.example.com" })
		expectHost(ctx, waiting, host)
	})

	It("gets a new one eleven minutes after the start of an operator that cannot read a namespace", func(ctx SpecContext) {
		const host, base = "unread.refused.example.com", "https://unread.refused.example.com"
		o, namespace := usual(), newNamespace(ctx)
		o.LeftOut = []string{"unread"}
		startSteppedOperator(ctx, operator, o, namespace)
		waiting := create(ctx, newProject(namespace, "waiting"))
		change(ctx, waiting, exposeAt(base))
		deployment(ctx, waiting)
		report(ctx, waiting)
		setRollout(ctx, waiting, allReady)
		found := expectCondition(ctx, waiting, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonProgressing)
		Expect(found.Message).To(ContainSubstring("spec.expose: the host name \"" + host + "\" waits"))
		Expect(children(ctx, waiting)).NotTo(ContainElement(HavePrefix("Ingress")))
		elapse(ctx, unreadDelay)
		expectHost(ctx, waiting, host)
		expectReady(ctx, waiting)
	})

	It("gets it when the project that had it by an HTTPRoute is deleted", func(ctx SpecContext) {
		const host, base = "routed.refused.example.com", "https://routed.refused.example.com"
		installGatewayAPI(ctx)
		startSteppedOperator(ctx, operator, usual())
		holder := newProject(newNamespace(ctx), "holder")
		holder.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{
			ParentRefs: []verifyv1.GatewayRef{{Name: "public"}}, Hostnames: []verifyv1.Hostname{host},
		}
		create(ctx, holder)
		makeReady(ctx, holder)
		Expect(string(route(ctx, holder).GetUID())).NotTo(BeEmpty())
		waiting := create(ctx, newProject(newNamespace(ctx), "waiting"))
		change(ctx, waiting, exposeAt(base))
		expectRefused(ctx, waiting)

		Expect(admin.Delete(ctx, holder)).To(Succeed())
		expectHost(ctx, waiting, host)
	})

	It("gets it when the Ingress of a deleted project is deleted, even if a finalizer keeps the project", func(ctx SpecContext) {
		const host, base = "deleted.refused.example.com", "https://deleted.refused.example.com"
		first := startSteppedOperator(ctx, operator, usual())
		holder := newProject(newNamespace(ctx), "holder")
		holder.Finalizers = []string{"example.com/wait"}
		exposeAt(base)(&holder.Spec)
		makeReady(ctx, create(ctx, holder))
		Expect(ingressHost(ctx, holder)).To(Equal(host))
		Expect(admin.Delete(ctx, holder)).To(Succeed())
		first.stop()
		startSteppedOperator(ctx, operator, usual()) // it has not given the host to the holder
		waiting := create(ctx, newProject(newNamespace(ctx), "waiting"))
		change(ctx, waiting, exposeAt(base))
		expectRefused(ctx, waiting)

		Expect(admin.DeleteAllOf(ctx, &networkingv1.Ingress{}, client.InNamespace(holder.Namespace))).To(Succeed())
		expectHost(ctx, waiting, host)
	})

	It("gets it when a project of its own namespace moves to another path", func(ctx SpecContext) {
		const host, base = "moved.refused.example.com", "https://moved.refused.example.com"
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		holder := create(ctx, newProject(namespace, "holder"))
		change(ctx, holder, exposeAt(base))
		makeReady(ctx, holder)
		Expect(ingressHost(ctx, holder)).To(Equal(host))
		waiting := create(ctx, newProject(namespace, "waiting"))
		change(ctx, waiting, exposeAt(base))
		expectRefused(ctx, waiting)

		change(ctx, holder, func(s *spec) { s.BaseURL = base + "/holder" })
		expectHost(ctx, waiting, host)
		Expect(ingressHost(ctx, holder)).To(Equal(host))
	})

	It("gets it when the holder's Ingress is refused after all, and the host with it", func(ctx SpecContext) {
		const host, base = "conflict.refused.example.com", "https://conflict.refused.example.com"
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		takeIngressName(ctx, namespace, "loser")
		loser := create(ctx, newProject(namespace, "loser"))
		change(ctx, loser, exposeAt(base))
		waiting := create(ctx, newProject(newNamespace(ctx), "waiting"))
		change(ctx, waiting, exposeAt(base))
		for _, project := range []*verifyv1.VerificationProject{loser, waiting} {
			deployment(ctx, project)
			report(ctx, project)
			setRollout(ctx, project, allReady)
		}
		expectHost(ctx, waiting, host)
		// The loser's reason is the Ingress or, if it asked again after it gave the host up, the host.
		Expect(stalledReason(ctx, loser)).To(BeElementOf(verifyv1.ReasonConflict, verifyv1.ReasonHostInUse))
	})

	It("gets it also from an operator with rights in only two namespaces", func(ctx SpecContext) {
		const name, host, base = "phoneproof-two", "two.refused.example.com", "https://two.refused.example.com"
		Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}})).To(Succeed())
		namespaces := []string{newNamespace(ctx), newNamespace(ctx)}
		account := asAccount(ctx, operatorNamespace, name)
		for _, namespace := range namespaces {
			bindRole(ctx, namespace, name)
			awaitRights(ctx, account, namespace, Not(BeEmpty()))
		}
		startSteppedOperator(ctx, account, usual(), namespaces...)
		holder := create(ctx, newProject(namespaces[0], "holder"))
		change(ctx, holder, exposeAt(base))
		makeReady(ctx, holder)
		waiting := create(ctx, newProject(namespaces[1], "waiting"))
		change(ctx, waiting, exposeAt(base))
		expectRefused(ctx, waiting)
		unseen := create(ctx, newProject(newNamespace(ctx), "unseen"))
		change(ctx, unseen, exposeAt(base))

		change(ctx, holder, func(s *spec) { s.Expose.Ingress = nil })
		expectHost(ctx, waiting, host)
		Expect(children(ctx, unseen)).To(BeEmpty(), "this operator does not work there")
	})
})

var _ = Describe("A host in an annotation", func() {
	const host = "bank.annotated.example.com"
	// asks makes a project answer to a host of its own, and name another one in an annotation of its Service or Ingress.
	asks := func(own string, on client.Object, key, value string) func(*spec) {
		return func(s *spec) {
			exposeAt("https://" + own)(s)
			annotations := map[string]verifyv1.AnnotationValue{key: verifyv1.AnnotationValue(value)}
			if _, ok := on.(*corev1.Service); ok {
				s.Expose.Service.Annotations = annotations
				return
			}
			s.Expose.Ingress.Annotations = annotations
		}
	}
	allowing := func() Options {
		o := usual()
		o.Permissions.Annotations = []string{"*"}
		return o
	}

	DescribeTable("is refused if a project of another namespace has it",
		func(ctx SpecContext, on client.Object, key, own, value, kept string) {
			startSteppedOperator(ctx, operator, allowing())
			evil, victim := newTenant(ctx), newTenant(ctx)
			shop := victim.create(ctx, "shop", exposeAt("https://"+host))
			makeReady(ctx, shop)
			Expect(ingressHost(ctx, shop)).To(Equal(host))

			thief := evil.create(ctx, "thief", asks(own, on, key, value))
			DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, thief)).To(Succeed()) }) // the next entry has the same host
			expectRefused(ctx, thief)
			Expect(ingressHost(ctx, thief)).To(Equal(own))
			Expect(annotationOf(ctx, thief, on, key)).To(Equal(kept))
			expectReady(ctx, shop)

			By("getting it once it is free")
			victim.change(ctx, shop, func(p *verifyv1.VerificationProject) { p.Spec.Expose.Ingress = nil })
			elapse(ctx, afterHeld)
			Expect(annotationOf(ctx, thief, on, key)).To(Equal(value))
			expectReady(ctx, thief)
		},
		Entry("external-dns, on a Service", &corev1.Service{}, "external-dns.alpha.kubernetes.io/hostname",
			"a.thief.example.com", "a.thief.example.com, Bank.annotated.example.com.", "a.thief.example.com"),
		Entry("external-dns, inside the cluster", &corev1.Service{}, "external-dns.alpha.kubernetes.io/internal-hostname",
			"b.thief.example.com", host, ""),
		Entry("external-dns 0.22 and later, on an Ingress", &networkingv1.Ingress{}, "external-dns.kubernetes.io/hostname",
			"c.thief.example.com", host, ""),
		Entry("ingress-nginx", &networkingv1.Ingress{}, "nginx.ingress.kubernetes.io/server-alias", "d.thief.example.com", host, ""),
		Entry("ingress-nginx, by its www", &networkingv1.Ingress{}, "nginx.ingress.kubernetes.io/from-to-www-redirect",
			"www."+host, "true", ""),
		Entry("HAProxy Ingress", &networkingv1.Ingress{}, "haproxy-ingress.github.io/redirect-from", "e.thief.example.com", host, ""),
		Entry("Kong", &networkingv1.Ingress{}, "konghq.com/host-aliases", "f.thief.example.com", host, ""),
		Entry("cert-manager, which makes a certificate for it", &networkingv1.Ingress{}, "cert-manager.io/alt-names",
			"g.thief.example.com", host, ""),
	)

	It("is kept from Ingresses of others too, also after a restart", func(ctx SpecContext) {
		const own, key = "own.annotated.example.com", "external-dns.alpha.kubernetes.io/hostname"
		const named = "named.annotated.example.com"
		first := startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		shop := victim.create(ctx, "shop", asks(own, &corev1.Service{}, key, named))
		deployment(ctx, shop)
		Expect(annotationOf(ctx, shop, &corev1.Service{}, key)).To(BeEmpty(), "no pod answers yet")
		makeReady(ctx, shop)
		Expect(annotationOf(ctx, shop, &corev1.Service{}, key)).To(Equal(named))
		thief := evil.create(ctx, "thief", exposeAt("https://"+named))
		expectRefused(ctx, thief)
		first.stop()
		startSteppedOperator(ctx, operator, usual())
		touch(ctx, thief)
		expectCondition(ctx, thief, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
		Expect(ingressHost(ctx, thief)).To(BeEmpty())

		victim.change(ctx, shop, func(p *verifyv1.VerificationProject) { p.Spec.Expose.Service.Annotations = nil })
		expectHost(ctx, thief, named)
	})

	DescribeTable("is refused in a form that its controller interprets differently",
		func(ctx SpecContext, key, value string) {
			o := allowing()
			evil, victim := newTenant(ctx), newTenant(ctx)
			o.Permissions.HostGrants = []Grant{{victim.namespace, host}}
			startSteppedOperator(ctx, operator, o)
			thief := evil.create(ctx, "thief", asks("h.thief.example.com", &networkingv1.Ingress{}, key, value))
			condition := expectCondition(ctx, thief, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
			Expect(condition.Message).To(ContainSubstring(key))
			Expect(children(ctx, thief)).To(BeEmpty())
		},
		Entry("external-dns removes spaces", "external-dns.alpha.kubernetes.io/hostname", "ba nk.annotated.example.com"),
		Entry("external-dns maps letters of other scripts", "external-dns.alpha.kubernetes.io/hostname", "ｂank.annotated.example.com"),
		Entry("HAProxy Ingress takes a regular expression", "haproxy-ingress.github.io/server-alias-regex", "^bank[.]annotated.*$"),
		Entry("AWS takes JSON", "alb.ingress.kubernetes.io/conditions.phoneproof-thief",
			`[{"field":"host-header","hostHeaderConfig":{"values":["bank.annotated.example.com"]}}]`),
	)
})

var _ = Describe("A grant to two namespaces", func() {
	It("lets both use the account, and the host at different paths", func(ctx SpecContext) {
		const host, base = "both.refused.example.com", "https://both.refused.example.com"
		one, two, none := newTenant(ctx), newTenant(ctx), newTenant(ctx)
		account := bot()
		o := usual()
		o.Permissions.HostGrants = []Grant{{one.namespace, host}, {two.namespace, host}}
		o.Permissions.AccountGrants = []Grant{{one.namespace, "telegram:" + account}, {two.namespace, "telegram:" + account}}
		startSteppedOperator(ctx, operator, o)
		first := one.create(ctx, "first", func(s *spec) {
			exposeAt(base)(s)
			s.Telegram.BotUsername = account
		})
		makeReady(ctx, first)
		Expect(ingressHost(ctx, first)).To(Equal(host))

		By("giving the second the host at another path, with the same account")
		second := two.create(ctx, "second", func(s *spec) {
			exposeAt(base + "/second")(s)
			s.Telegram.BotUsername = account
		})
		makeReady(ctx, second)
		Expect(ingressHost(ctx, second)).To(Equal(host))
		for _, project := range []*verifyv1.VerificationProject{first, second} {
			condition := expectCondition(ctx, project, verifyv1.ConditionShared, metav1.ConditionTrue, verifyv1.ReasonAccountShared)
			Expect(condition.Message).NotTo(ContainSubstring(host), "both may have the host")
		}

		By("refusing it to a third at the path of the first until the first is deleted")
		third := two.create(ctx, "third", exposeAt(base))
		expectRefused(ctx, third)
		Expect(one.Delete(ctx, first)).To(Succeed())
		expectHost(ctx, third, host)
		Expect(find(ctx, second, verifyv1.ConditionShared)).To(BeZero())

		By("refusing both to a namespace without a grant")
		stranger := none.create(ctx, "stranger", exposeAt(base+"/stranger"))
		deployment(ctx, stranger)
		report(ctx, stranger)
		setRollout(ctx, stranger, allReady)
		expectCondition(ctx, stranger, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		Expect(ingressHost(ctx, stranger)).To(BeEmpty())
		thief := none.create(ctx, "thief", func(s *spec) { s.Telegram.BotUsername = account })
		expectCondition(ctx, thief, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		Expect(children(ctx, thief)).NotTo(ContainElement(HavePrefix("Deployment")))
	})
})
