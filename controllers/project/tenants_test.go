package project

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// tenant is a ServiceAccount that has the editor role in a namespace of its own, and no other right.
type tenant struct {
	client.Client

	config    *rest.Config
	namespace string
}

func newTenant(ctx context.Context) tenant {
	GinkgoHelper()
	const name = "tenant"
	namespace := newNamespace(ctx)
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "phoneproof-verificationproject-editor"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		},
	} {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
	config := asAccount(ctx, namespace, name)
	awaitRights(ctx, config, namespace, Not(BeEmpty()))
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return tenant{c, config, namespace}
}

// create creates a project in the tenant's namespace.
func (t tenant) create(ctx context.Context, name string, edit func(*spec)) *verifyv1.VerificationProject {
	GinkgoHelper()
	project := newProject(t.namespace, name)
	edit(&project.Spec)
	Expect(t.Create(ctx, project)).To(Succeed())
	return project
}

// change edits a project with the tenant's rights.
func (t tenant) change(ctx context.Context, project *verifyv1.VerificationProject, edit func(*verifyv1.VerificationProject)) {
	GinkgoHelper()
	Expect(t.Get(ctx, client.ObjectKeyFromObject(project), project)).To(Succeed())
	edit(project)
	Expect(t.Update(ctx, project)).To(Succeed())
}

// expectUntouched checks that a project's Deployment is still the same object.
func expectUntouched(ctx context.Context, project *verifyv1.VerificationProject, uid types.UID) {
	GinkgoHelper()
	elapse(ctx, 2*sharingDelay)
	d := deployment(ctx, project)
	Expect(d.UID).To(Equal(uid))
	Expect(d.DeletionTimestamp).To(BeNil())
}

// ingressHost returns the host of a project's Ingress; empty if there is none.
func ingressHost(ctx context.Context, project *verifyv1.VerificationProject) string {
	GinkgoHelper()
	settle(ctx)
	var ingress networkingv1.Ingress
	err := admin.Get(ctx, client.ObjectKey{Namespace: project.Namespace, Name: render.Name(project.Name)}, &ingress)
	if apierrors.IsNotFound(err) {
		return ""
	}
	Expect(err).NotTo(HaveOccurred())
	return ingress.Spec.Rules[0].Host
}

var _ = Describe("A tenant with nothing but the editor role", func() {
	It("cannot stop a project of another namespace by naming its account", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		parked := evil.create(ctx, "parked", func(s *spec) { s.Suspend = new(true) })
		nextSecond(ctx, parked)
		shop := victim.create(ctx, "shop", func(*spec) {})
		makeReady(ctx, shop)
		running := deployment(ctx, shop).UID

		By("editing an old, suspended project without Secrets to the public name of the bot")
		evil.change(ctx, parked, func(p *verifyv1.VerificationProject) {
			p.Spec.Telegram.BotUsername = strings.ToUpper(shop.Spec.Telegram.BotUsername)
			p.Finalizers = []string{"example.com/for-ever"}
		})
		expectUntouched(ctx, shop, running)
		for _, project := range []*verifyv1.VerificationProject{shop, parked} {
			condition := expectCondition(ctx, project, verifyv1.ConditionShared, metav1.ConditionTrue, verifyv1.ReasonAccountShared)
			Expect(condition.Message).To(And(HavePrefix("spec.telegram.botUsername: "), Not(ContainSubstring(evil.namespace)),
				Not(ContainSubstring(victim.namespace)), Not(ContainSubstring("parked"))))
			expectEvent(ctx, project, corev1.EventTypeWarning, verifyv1.ReasonAccountShared)
		}
		expectReady(ctx, shop)

		By("starting it")
		evil.change(ctx, parked, func(p *verifyv1.VerificationProject) { p.Spec.Suspend = nil })
		makeReady(ctx, parked)
		expectReady(ctx, shop)

		By("still sharing the account when it is deleted and a finalizer keeps it and its Deployment")
		Expect(evil.Delete(ctx, parked)).To(Succeed())
		touch(ctx, shop)
		elapse(ctx, 2*sharingDelay)
		Expect(find(ctx, shop, verifyv1.ConditionShared).Reason).To(Equal(verifyv1.ReasonAccountShared))
		expectUntouched(ctx, shop, running)
		Expect(admin.Delete(ctx, deployment(ctx, parked))).To(Succeed())
		elapse(ctx, 2*sharingDelay)
		Expect(find(ctx, shop, verifyv1.ConditionShared)).To(BeZero())
		expectReady(ctx, shop)

		By("writing a status")
		now := current(ctx, parked)
		now.Status.Claims = []verifyv1.AccountClaim{newAccountClaim(listAccounts(&now.Spec)[0], shop.CreationTimestamp.Time)}
		Expect(evil.Status().Update(ctx, now)).To(Satisfy(apierrors.IsForbidden))
		evil.change(ctx, parked, func(p *verifyv1.VerificationProject) { p.Finalizers = nil })
	})

	It("cannot take a host name from another namespace, nor reserve one without a running pod", func(ctx SpecContext) {
		const host, base = "verify.tenants.example.com", "https://verify.tenants.example.com"
		first := startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		exposed := func(s *spec) {
			s.BaseURL, s.Expose.Ingress, s.Telegram.Updates = base, &verifyv1.IngressSettings{}, verifyv1.TelegramUpdatesPolling
		}
		squatter := evil.create(ctx, "squatter", exposed)
		setRollout(ctx, squatter, noneReady)
		expectCondition(ctx, squatter, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
		nextSecond(ctx, squatter)

		shop := victim.create(ctx, "shop", exposed)
		makeReady(ctx, shop)
		Expect(ingressHost(ctx, shop)).To(Equal(host))
		Expect(ingressHost(ctx, squatter)).To(BeEmpty())

		By("starting the older project after all, at another path of the host")
		evil.change(ctx, squatter, func(p *verifyv1.VerificationProject) { p.Spec.BaseURL = base + "/more" })
		report(ctx, squatter)
		setRollout(ctx, squatter, allReady)
		condition := expectCondition(ctx, squatter, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
		Expect(condition.Message).To(And(ContainSubstring(`"`+host+`"`), Not(ContainSubstring(victim.namespace))))
		expectCondition(ctx, squatter, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonHostInUse)
		Expect(ingressHost(ctx, squatter)).To(BeEmpty())
		expectReady(ctx, shop)

		By("keeping the host during an outage and a suspension of its holder, and after a restart")
		setRollout(ctx, shop, noneReady)
		expectCondition(ctx, shop, verifyv1.ConditionAvailable, metav1.ConditionFalse, verifyv1.ReasonPodsUnavailable)
		victim.change(ctx, shop, func(p *verifyv1.VerificationProject) { p.Spec.Suspend = new(true) })
		expectCondition(ctx, shop, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		first.stop()
		startSteppedOperator(ctx, operator, usual())
		touch(ctx, squatter)
		expectCondition(ctx, squatter, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
		Expect(ingressHost(ctx, shop)).To(Equal(host))

		By("giving the host to the next project once its holder gives it up")
		victim.change(ctx, shop, func(p *verifyv1.VerificationProject) { p.Spec.Expose.Ingress = nil })
		Expect(ingressHost(ctx, shop)).To(BeEmpty())
		touch(ctx, squatter)
		Expect(ingressHost(ctx, squatter)).To(Equal(host))
		expectReady(ctx, squatter)
		evil.change(ctx, squatter, func(p *verifyv1.VerificationProject) { p.Spec.Expose.Ingress = nil })
	})

	It("cannot take one by an HTTPRoute either, and gets the other hosts of the route", func(ctx SpecContext) {
		const held, free = "held.tenants.example.com", "free.tenants.example.com"
		installGatewayAPI(ctx)
		startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		shop := victim.create(ctx, "shop", func(s *spec) { s.Expose.Ingress = &verifyv1.IngressSettings{Host: held} })
		makeReady(ctx, shop)
		Expect(ingressHost(ctx, shop)).To(Equal(held))

		thief := evil.create(ctx, "thief", func(s *spec) {
			s.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{
				ParentRefs: []verifyv1.GatewayRef{{Name: "own"}}, Hostnames: []verifyv1.Hostname{held, free},
			}
		})
		deployment(ctx, thief)
		report(ctx, thief)
		setRollout(ctx, thief, allReady)
		expectCondition(ctx, thief, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
		names, _ := readRouteRules(route(ctx, thief))
		Expect(names).To(Equal([]string{free}))

		By("deleting a route without hosts, because it would answer to all hosts of its Gateway")
		evil.change(ctx, thief, func(p *verifyv1.VerificationProject) { p.Spec.Expose.HTTPRoute.Hostnames = []verifyv1.Hostname{held} })
		Expect(string(route(ctx, thief).GetUID())).To(BeEmpty())
		expectReady(ctx, shop)
	})

	It("reports a shared Ingress without a host until the other project is gone", func(ctx SpecContext) {
		evil, victim := newTenant(ctx), newTenant(ctx)
		startSteppedOperator(ctx, operator, usual(), evil.namespace, victim.namespace)
		exposed := func(s *spec) {
			s.BaseURL, s.Expose.Ingress, s.Telegram.Updates = "http://192.0.2.1", &verifyv1.IngressSettings{}, verifyv1.TelegramUpdatesPolling
		}
		other := evil.create(ctx, "other", exposed)
		makeReady(ctx, other)
		shop := victim.create(ctx, "shop", exposed)
		makeReady(ctx, shop)
		expectCondition(ctx, shop, verifyv1.ConditionShared, metav1.ConditionTrue, verifyv1.ReasonHostShared)
		Expect(evil.Delete(ctx, other)).To(Succeed())
		elapse(ctx, 2*afterHeld)
		Expect(find(ctx, shop, verifyv1.ConditionShared)).To(BeZero())
	})

	It("loses its pods and hosts by the administrator's grant to another namespace", func(ctx SpecContext) {
		const host, base = "granted.tenants.example.com", "https://granted.tenants.example.com"
		first := startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		account := bot()
		exposed := func(s *spec) {
			s.BaseURL, s.Expose.Ingress, s.Telegram.Updates = base, &verifyv1.IngressSettings{}, verifyv1.TelegramUpdatesPolling
		}
		both := func(s *spec) {
			exposed(s)
			s.Telegram.BotUsername = account
		}
		thief := evil.create(ctx, "thief", both)
		makeReady(ctx, thief)
		squatter := evil.create(ctx, "squatter", func(s *spec) {
			exposed(s)
			s.BaseURL += "/more"
		})
		makeReady(ctx, squatter)
		nextSecond(ctx, squatter)
		shop := victim.create(ctx, "shop", both)
		deployment(ctx, shop)
		setRollout(ctx, shop, allReady)
		expectCondition(ctx, shop, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonHostInUse)
		first.stop()

		o := usual()
		o.Permissions.AccountGrants = []Grant{{victim.namespace, "telegram:" + account}}
		o.Permissions.HostGrants = []Grant{{victim.namespace, host}}
		startSteppedOperator(ctx, operator, o)
		condition := expectCondition(ctx, thief, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		Expect(condition.Message).To(ContainSubstring("(operator flag --grant-account)"))
		Expect(children(ctx, thief)).NotTo(ContainElement(Or(HavePrefix("Deployment"), HavePrefix("Ingress"))))
		condition = expectCondition(ctx, squatter, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)
		Expect(condition.Message).To(ContainSubstring("(operator flag --grant-host)"))
		Expect(ingressHost(ctx, squatter)).To(BeEmpty())
		expectCondition(ctx, squatter, verifyv1.ConditionAvailable, metav1.ConditionTrue, verifyv1.ReasonPodsAvailable)
		makeReady(ctx, shop)
		Expect(ingressHost(ctx, shop)).To(Equal(host))
		Expect(find(ctx, shop, verifyv1.ConditionShared)).To(BeZero(), "a project without the grant is not counted")
	})

	It("loses only the granted host names, also in annotations", func(ctx SpecContext) {
		const taken, kept = "taken.tenants.example.com", "left.tenants.example.com"
		const key = "external-dns.alpha.kubernetes.io/hostname"
		installGatewayAPI(ctx)
		first := startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		thief := evil.create(ctx, "thief", func(s *spec) {
			s.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{
				ParentRefs: []verifyv1.GatewayRef{{Name: "own"}}, Hostnames: []verifyv1.Hostname{taken, kept},
			}
			s.Expose.Service.Annotations = map[string]verifyv1.AnnotationValue{key: kept + ", " + taken}
		})
		makeReady(ctx, thief)
		names := func() []string {
			names, _ := readRouteRules(route(ctx, thief))
			return names
		}
		annotation := func() string {
			settle(ctx)
			var service corev1.Service
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: thief.Namespace, Name: render.Name(thief.Name)}, &service)).To(Succeed())
			return service.Annotations[key]
		}
		Expect(names()).To(Equal([]string{taken, kept}))
		before := route(ctx, thief).GetUID()
		first.stop()

		o := usual()
		o.Permissions.HostGrants = []Grant{{victim.namespace, taken}}
		second := startSteppedOperator(ctx, operator, o)
		Expect(annotation()).To(Equal(kept))
		Expect(names()).To(Equal([]string{kept}))
		Expect(route(ctx, thief).GetUID()).To(Equal(before))
		expectCondition(ctx, thief, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonNotPermitted)

		By("getting them back once the grant is taken back")
		second.stop()
		startSteppedOperator(ctx, operator, usual())
		Expect(names()).To(Equal([]string{taken, kept}))
		Expect(annotation()).To(Equal(kept + ", " + taken))
	})

	It("is stopped by a grant even if a finalizer keeps its deleted project", func(ctx SpecContext) {
		const host = "kept.tenants.example.com"
		first := startSteppedOperator(ctx, operator, usual())
		evil, victim := newTenant(ctx), newTenant(ctx)
		thief := evil.create(ctx, "thief", func(s *spec) {
			s.BaseURL, s.Expose.Ingress = "https://"+host, &verifyv1.IngressSettings{}
		})
		makeReady(ctx, thief)
		Expect(ingressHost(ctx, thief)).To(Equal(host))
		evil.change(ctx, thief, func(p *verifyv1.VerificationProject) { p.Finalizers = []string{"example.com/for-ever"} })
		Expect(evil.Delete(ctx, thief, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		shop := victim.create(ctx, "shop", func(s *spec) { s.Telegram.BotUsername = thief.Spec.Telegram.BotUsername })
		makeReady(ctx, shop)
		expectCondition(ctx, shop, verifyv1.ConditionShared, metav1.ConditionTrue, verifyv1.ReasonAccountShared)
		first.stop()

		o := usual()
		o.Permissions.AccountGrants = []Grant{{victim.namespace, "telegram:" + thief.Spec.Telegram.BotUsername}}
		o.Permissions.HostGrants = []Grant{{victim.namespace, host}}
		startSteppedOperator(ctx, operator, o)
		Expect(children(ctx, thief)).NotTo(ContainElement(Or(HavePrefix("Deployment"), HavePrefix("Ingress"))))
		elapse(ctx, 2*sharingDelay)
		Expect(find(ctx, shop, verifyv1.ConditionShared)).To(BeZero())
		evil.change(ctx, thief, func(p *verifyv1.VerificationProject) { p.Finalizers = nil })
	})

	It("cannot block an operator's upgrade of other namespaces with projects that are never ready", func(ctx SpecContext) {
		evil, victim := newTenant(ctx), newTenant(ctx)
		o := usual()
		o.MaxUnreadyRollouts = 2
		first := startSteppedOperator(ctx, operator, o, evil.namespace, victim.namespace)
		shop := victim.create(ctx, "shop", func(*spec) {})
		makeReady(ctx, shop)
		for _, name := range []string{"one", "two", "three"} {
			broken := evil.create(ctx, name, func(*spec) {})
			makeReady(ctx, broken)
			evil.change(ctx, broken, func(p *verifyv1.VerificationProject) {
				p.Spec.Server.NodeSelector = map[string]verifyv1.LabelValue{"pool": "none"}
			})
			Expect(podOf(ctx, broken).NodeSelector).To(HaveKey("pool"))
			setRollout(ctx, broken, oldReady)
		}
		first.stop()

		o.Render.Image = "ghcr.io/phoneproof/phoneproof:2.0.0"
		startSteppedOperator(ctx, operator, o, evil.namespace, victim.namespace)
		Expect(imageOf(ctx, shop)).To(Equal(o.Render.Image))
	})
})

var _ = Describe("A messenger account, within a namespace,", func() {
	It("stays with the project that has named it for longer", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		op := startSteppedOperator(ctx, operator, usual(), namespace) // where the rollouts of other specs take no turn
		old := create(ctx, newProject(namespace, "old"))
		makeReady(ctx, old)
		nextSecond(ctx, old)
		holder := newProject(namespace, "holder")
		holder.Spec.Telegram, holder.Spec.WhatsApp = nil, whatsApp("1234")
		create(ctx, holder)
		makeReady(ctx, holder)
		running := deployment(ctx, old).UID

		By("stalling an older project that names it later, and leaving its pods running")
		change(ctx, old, func(s *spec) { s.Telegram, s.WhatsApp = nil, whatsApp("1234") })
		condition := expectCondition(ctx, old, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonAccountInUse)
		Expect(condition.Message).To(Equal("spec.whatsapp.phoneNumberID belongs to the project holder, which has named it for longer; " +
			"use another account, or remove it from that project"))
		expectEvent(ctx, old, corev1.EventTypeWarning, verifyv1.ReasonAccountInUse)
		expectUntouched(ctx, old, running)
		expectReady(ctx, holder)
		Expect(find(ctx, holder, verifyv1.ConditionShared)).To(BeZero())

		By("not starting a third project, even after a restart")
		op.stop()
		late := newProject(namespace, "late")
		late.Spec.Telegram, late.Spec.WhatsApp = nil, whatsApp("1234")
		create(ctx, late)
		startSteppedOperator(ctx, operator, usual(), namespace)
		expectCondition(ctx, late, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonAccountInUse)
		Expect(children(ctx, late)).To(BeEmpty())

		By("keeping it while its holder is suspended")
		change(ctx, holder, func(s *spec) { s.Suspend = new(true) })
		expectCondition(ctx, holder, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		touch(ctx, late)
		expectCondition(ctx, late, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonAccountInUse)

		By("passing it on in the order of the claims when its holder is deleted, even if a finalizer keeps the holder")
		change(ctx, holder, func(s *spec) { s.Suspend = nil })
		Expect(admin.Patch(ctx, holder, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": ["example.com/wait"]}}`)))).
			To(Succeed())
		Expect(admin.Delete(ctx, holder)).To(Succeed())
		makeReady(ctx, old)
		expectCondition(ctx, late, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonAccountInUse)
		Expect(admin.Patch(ctx, holder, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`)))).To(Succeed())

		By("passing it on when its holder changes to another account")
		change(ctx, old, func(s *spec) { s.WhatsApp = whatsApp("5678") })
		makeReady(ctx, late)
		makeReady(ctx, old)

		By("losing the claim by that change")
		change(ctx, old, func(s *spec) { s.WhatsApp = whatsApp("1234") })
		expectCondition(ctx, old, verifyv1.ConditionStalled, metav1.ConditionTrue, verifyv1.ReasonAccountInUse)
		expectReady(ctx, late)
	})

	It("moves from one project to another in one apply", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		namespace := newNamespace(ctx)
		from, to := create(ctx, newProject(namespace, "from")), create(ctx, newProject(namespace, "to"))
		makeReady(ctx, from)
		makeReady(ctx, to)
		account := from.Spec.Telegram.BotUsername
		running := []types.UID{deployment(ctx, from).UID, deployment(ctx, to).UID}
		change(ctx, to, func(s *spec) { s.Telegram.BotUsername = account }) // the worse order of the two
		change(ctx, from, func(s *spec) { s.Telegram.BotUsername = bot() })
		makeReady(ctx, from)
		makeReady(ctx, to)
		Expect([]types.UID{deployment(ctx, from).UID, deployment(ctx, to).UID}).To(Equal(running))
	})
})
