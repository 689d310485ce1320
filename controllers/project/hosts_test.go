package project

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
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
	unread := func(r *hostRequest, former ...string) *hostRequest {
		r.delay, r.former = time.Minute, former
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
		Entry("nor one whose exposure was deleted by mistake", unread(wants(a), a), nil, hostDecision{open: []string{a}}),
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

	It("is not kept for a project that was deleted while it was being given", func(ctx SpecContext) {
		reader := newIndexedReader(ctx)
		var given hosts
		request := func(namespace, name string, uid types.UID) hostDecision {
			GinkgoHelper()
			r := wants(a)
			r.exposure = exposure{namespace: namespace, project: name, owner: uid, hosts: []string{a}, paths: paths}
			decision, _, err := given.requestHosts(ctx, reader, false, r, &Permissions{})
			Expect(err).NotTo(HaveOccurred())
			return decision
		}
		Expect(request("shop", "own", "own")).To(Equal(hostDecision{open: []string{a}, opened: true}))
		Expect(given.given).To(BeEmpty())
		Expect(given.holders).To(BeEmpty())

		next := newProject("bank", "next")
		next.UID = "next"
		next.Spec.Expose.Ingress = &verifyv1.IngressSettings{Host: a}
		reader.addObjects(next)
		Expect(request("bank", "next", "next")).To(Equal(hostDecision{open: []string{a}, opened: true}))
		Expect(request("bank", "next", "next")).To(Equal(hostDecision{open: []string{a}}), "it is not new any more")
		Expect(request("shop", "own", "own")).To(Equal(hostDecision{held: []string{a}}), "the cache does not show the Ingress yet")

		By("releasing it once the spec no longer names it, even if it was given")
		next = next.DeepCopy()
		next.Spec.Expose.Ingress.Host = b
		reader.addObjects(next)
		Expect(request("shop", "own", "own")).To(Equal(hostDecision{open: []string{a}, opened: true}))
	})

	It("is returned as lost when a project no longer gets it", func(ctx SpecContext) {
		reader := newIndexedReader(ctx)
		own := newProject("shop", "own")
		own.UID = "own"
		reader.addObjects(own)
		var given hosts
		_, lost, err := given.requestHosts(ctx, reader, false, wants(a, b), &Permissions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(lost).To(BeEmpty())
		_, lost, err = given.requestHosts(ctx, reader, false, wants(b), &Permissions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(lost).To(Equal([]string{a}))
		Expect(given.releaseHosts("own")).To(Equal([]string{b}))
		Expect(given.holders).To(BeEmpty())
	})
})
