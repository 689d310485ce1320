package project

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

var _ = Describe("A host name", func() {
	const a, b = "a.example.com", "b.example.com"
	paths := []string{"/api/verify/"}
	wants := func(hosts ...string) *hostRequest {
		return &hostRequest{
			exposure: exposure{namespace: "shop", project: "own", owner: "own", hosts: hosts, paths: paths},
			answers:  true,
		}
	}
	has := func(r *hostRequest, present ...string) *hostRequest {
		r.present = present
		return r
	}
	silent := func(r *hostRequest) *hostRequest {
		r.answers = false
		return r
	}
	unread := func(r *hostRequest) *hostRequest {
		r.delay = time.Minute
		return r
	}
	other := func(namespace string, paths []string, hosts ...string) exposure {
		return exposure{namespace: namespace, project: "other", owner: types.UID(namespace + "/other"), hosts: hosts, paths: paths}
	}
	granted := &Permissions{HostGrants: []Grant{{"shop", a}, {"staging", a}}}

	DescribeTable("stays with the project that answers to it",
		func(r *hostRequest, permissions *Permissions, want hostDecision, others ...exposure) {
			if permissions == nil {
				permissions = &Permissions{}
			}
			Expect(decideHosts(r, others, permissions)).To(Equal(want))
		},
		Entry("a free one is given", wants(a), nil, hostDecision{open: []string{a}}, other("bank", paths, b)),
		Entry("not before a pod answers", silent(wants(a)), nil, hostDecision{}),
		Entry("and is kept while none does", silent(has(wants(a), a)), nil, hostDecision{open: []string{a}}),
		Entry("another namespace has it", wants(a), nil, hostDecision{held: []string{a}}, other("bank", paths, a)),
		Entry("also at other paths", wants(a), nil, hostDecision{held: []string{a}}, other("bank", []string{"/bank/api/verify/"}, a)),
		Entry("also where no pod of one's own answers", silent(wants(a)), nil, hostDecision{held: []string{a}}, other("bank", paths, a)),
		Entry("the same namespace has it at the same paths", wants(a), nil, hostDecision{held: []string{a}}, other("shop", paths, a)),
		Entry("the same namespace has it at other paths", wants(a), nil, hostDecision{open: []string{a}}, other("shop", []string{"/bank/api/verify/"}, a)),
		Entry("some of several", wants(a, b), nil, hostDecision{open: []string{b}, held: []string{a}}, other("bank", paths, a)),
		Entry("two have it: neither loses it, and both are shared", has(wants(a), a), nil,
			hostDecision{open: []string{a}, shared: []string{a}}, other("bank", paths, a)),
		Entry("its own other exposure has it", wants(a), nil, hostDecision{open: []string{a}},
			exposure{namespace: "shop", project: "own", owner: "own", hosts: []string{a}, paths: paths}),
		Entry("another owner: a former project of its name", wants(a), nil, hostDecision{open: []string{a}},
			exposure{namespace: "shop", project: "own", owner: "former", hosts: []string{a}, paths: paths}),
		Entry("a namespace is unread: a new one waits", unread(wants(a)), nil, hostDecision{delayed: []string{a}, delay: time.Minute}),
		Entry("it waits for a pod first", unread(silent(wants(a))), nil, hostDecision{}),
		Entry("and one that it has does not", unread(has(wants(a), a)), nil, hostDecision{open: []string{a}}),
		Entry("nor one that is granted to it", unread(wants(a)), granted, hostDecision{open: []string{a}}),
		Entry("nor every host, which no other namespace keeps", unread(wants(render.EveryHost)), nil, hostDecision{open: []string{render.EveryHost}}),
		Entry("a wildcard holds no name below it", wants(a), nil, hostDecision{open: []string{a}}, other("bank", paths, "*.example.com")),
		Entry("a wildcard holds itself", wants("*.example.com"), nil, hostDecision{held: []string{"*.example.com"}}, other("bank", paths, "*.example.com")),
		Entry("every host is held by no other namespace", wants(render.EveryHost), nil,
			hostDecision{open: []string{render.EveryHost}, shared: []string{render.EveryHost}}, other("bank", paths, render.EveryHost)),
		Entry("every host is held inside a namespace", wants(render.EveryHost), nil,
			hostDecision{held: []string{render.EveryHost}}, other("shop", paths, render.EveryHost)),
		Entry("every host includes one that is granted to another namespace", has(wants(render.EveryHost), render.EveryHost),
			&Permissions{HostGrants: []Grant{{"bank", b}}}, hostDecision{denied: []string{render.EveryHost}}),
		Entry("it is granted to another namespace: its holder loses it", has(wants(b), b),
			&Permissions{HostGrants: []Grant{{"bank", b}}}, hostDecision{denied: []string{b}}),
		Entry("it is granted: its holder without a grant loses it", wants(a), granted, hostDecision{open: []string{a}}, other("bank", paths, a)),
		Entry("it is granted to both, at other paths", wants(a), granted, hostDecision{open: []string{a}}, other("staging", []string{"/staging/api/verify/"}, a)),
		Entry("it is granted to both, at the same paths", wants(a), granted, hostDecision{held: []string{a}}, other("staging", paths, a)),
	)

	It("is removed from the wanted children, and a route without hosts too", func() {
		project := newProject("shop", "own")
		project.Spec.BaseURL = "https://a.example.com:8443/verify"
		project.Spec.Expose.Ingress = &verifyv1.IngressSettings{}
		project.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{Hostnames: []verifyv1.Hostname{a, b}}
		project.Default()
		wanted := func() *render.Children {
			children := render.Project(project, render.Options{HTTPRoutes: true})
			return &children
		}
		names := func(route *unstructured.Unstructured) []string {
			list, _, err := unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
			Expect(err).NotTo(HaveOccurred())
			return list
		}
		whole := wanted()
		limitExposures(whole, project, []string{a, b})
		Expect(whole.Ingress).NotTo(BeNil())
		Expect(names(whole.HTTPRoute)).To(Equal([]string{a, b}))

		part := wanted()
		limitExposures(part, project, []string{b})
		Expect(part.Ingress).To(BeNil())
		Expect(names(part.HTTPRoute)).To(Equal([]string{b}))

		none := wanted()
		limitExposures(none, project, nil)
		Expect(none.Ingress).To(BeNil())
		Expect(none.HTTPRoute).To(BeNil())
	})

	It("is read, with its paths, from the operator's objects", func() {
		project := newProject("shop", "own")
		project.UID = "own"
		project.Spec.BaseURL = "https://a.example.com:8443/verify"
		project.Spec.Expose.Ingress = &verifyv1.IngressSettings{}
		project.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{}
		project.Default()
		children := render.Project(project, render.Options{HTTPRoutes: true})
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(children.Ingress)
		Expect(err).NotTo(HaveOccurred())
		var ingress networkingv1.Ingress
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(content, &ingress)).To(Succeed())

		read := func() (exposure, bool) { return readExposure(&ingress, project) }
		want := exposure{namespace: "shop", project: "own", owner: "own", hosts: []string{a}, paths: render.Paths(project)}
		made, ok := read()
		Expect(ok).To(BeTrue())
		Expect(made).To(Equal(want))
		made, ok = readExposure(children.HTTPRoute, project)
		Expect(ok).To(BeTrue())
		Expect(made).To(Equal(want))

		By("skipping objects that only name the project as their owner")
		ingress.Spec.Rules = append(ingress.Spec.Rules, networkingv1.IngressRule{Host: b})
		made, _ = read()
		Expect(made.hosts).To(Equal([]string{a}), "a host that the project does not ask for")
		for what, forge := range map[string]func(*networkingv1.Ingress){
			"name":    func(i *networkingv1.Ingress) { i.Name = "another" },
			"label":   func(i *networkingv1.Ingress) { i.Labels = map[string]string{verifyv1.ProjectLabel: "another"} },
			"UID":     func(i *networkingv1.Ingress) { i.OwnerReferences[0].UID = "another" },
			"owner":   func(i *networkingv1.Ingress) { i.OwnerReferences = nil },
			"project": func(i *networkingv1.Ingress) { i.Namespace = "bank" },
		} {
			forged := ingress.DeepCopy()
			forge(forged)
			_, ok := readExposure(forged, project)
			Expect(ok).To(BeFalse(), what)
		}

		ingress.Spec.Rules = []networkingv1.IngressRule{{}}
		hosts, _ := readIngressRules(&ingress)
		Expect(hosts).To(Equal([]string{render.EveryHost}))
	})

	Describe("that was given", func() {
		var reader *indexedReader
		var given hosts
		BeforeEach(func(ctx SpecContext) { reader, given = newIndexedReader(ctx), hosts{} })
		// exists puts a project that asks for a host into the cache.
		exists := func(namespace, host string) {
			p := newProject(namespace, "own")
			p.UID = types.UID(namespace)
			p.Spec.Expose.Ingress = &verifyv1.IngressSettings{Host: verifyv1.Hostname(host)}
			reader.addObjects(p)
		}
		request := func(ctx context.Context, namespace string, ready bool) hostDecision {
			GinkgoHelper()
			r := wants(a)
			r.namespace, r.owner, r.answers = namespace, types.UID(namespace), ready
			decision, err := given.requestHosts(ctx, reader, false, r, &Permissions{})
			Expect(err).NotTo(HaveOccurred())
			return decision
		}
		opened, kept, held := hostDecision{open: []string{a}, opened: true}, hostDecision{open: []string{a}}, hostDecision{held: []string{a}}

		It("is kept, whatever the cache shows, until it is released", func(ctx SpecContext) {
			exists("shop", a)
			exists("bank", a)
			Expect(request(ctx, "shop", true)).To(Equal(opened))
			Expect(request(ctx, "bank", true)).To(Equal(held), "the cache does not show the Ingress yet")
			Expect(request(ctx, "shop", true)).To(Equal(kept), "it is not new any more")
			Expect(request(ctx, "shop", false)).To(Equal(kept), "its exposure was deleted by mistake while no pod answers")
			Expect(request(ctx, "bank", true)).To(Equal(held))
			given.releaseHosts("shop")
			Expect(request(ctx, "bank", true)).To(Equal(opened))
			Expect(request(ctx, "shop", true)).To(Equal(held))
		})

		It("is free once the spec no longer names it, even if the spec is refused", func(ctx SpecContext) {
			exists("shop", a)
			exists("bank", a)
			Expect(request(ctx, "shop", true)).To(Equal(opened))
			exists("shop", b)
			Expect(request(ctx, "bank", true)).To(Equal(opened))
		})

		It("is not kept for a project that was deleted while it was being given", func(ctx SpecContext) {
			Expect(request(ctx, "shop", true)).To(Equal(opened))
			Expect(given.given).To(BeEmpty())
		})
	})

	It("is released if an exposure was refused and none was created", func() {
		ingress, route := apply.Ref{Kind: "Ingress"}, apply.Ref{Kind: "HTTPRoute"}
		Expect(isExposureRefused(apply.Result{Conflicts: []apply.Ref{ingress}})).To(BeTrue())
		Expect(isExposureRefused(apply.Result{Rejections: []apply.Rejection{{Ref: route}}})).To(BeTrue())
		Expect(isExposureRefused(apply.Result{Rejections: []apply.Rejection{{Ref: route}}, Applied: []apply.Ref{ingress}})).
			To(BeFalse(), "the cache may not show the Ingress yet")
		Expect(isExposureRefused(apply.Result{Rejections: []apply.Rejection{{Ref: apply.Ref{Kind: "Deployment"}}}})).To(BeFalse())
	})
})
