package project

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/render"
)

var _ = Describe("A host name", func() {
	const a, b = "a.example.com", "b.example.com"
	paths := []string{"/api/verify/"}
	wants := func(hosts ...string) *hostRequest {
		return &hostRequest{
			door:    door{namespace: "shop", name: "phoneproof-own", owner: "own", hosts: hosts, paths: paths},
			answers: true,
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
	other := func(namespace string, paths []string, hosts ...string) door {
		return door{namespace: namespace, name: "phoneproof-other", owner: types.UID(namespace + "/other"), hosts: hosts, paths: paths}
	}
	granted := &Permissions{HostGrants: []Grant{{"shop", a}, {"staging", a}}}

	DescribeTable("stays with who answers to it",
		func(r *hostRequest, permissions *Permissions, want hostDecision, others ...door) {
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
		Entry("two have it: neither loses it, and both are told", has(wants(a), a), nil,
			hostDecision{open: []string{a}, shared: []string{a}}, other("bank", paths, a)),
		Entry("its own other door has it", wants(a), nil, hostDecision{open: []string{a}},
			door{namespace: "shop", name: "phoneproof-own", owner: "own", hosts: []string{a}, paths: paths}),
		Entry("what is left of a former project of its name is told otherwise", wants(a), nil, hostDecision{open: []string{a}},
			door{namespace: "shop", name: "phoneproof-own", owner: "former", hosts: []string{a}, paths: paths}),
		Entry("a wildcard holds no name below it", wants(a), nil, hostDecision{open: []string{a}}, other("bank", paths, "*.example.com")),
		Entry("a wildcard holds itself", wants("*.example.com"), nil, hostDecision{held: []string{"*.example.com"}}, other("bank", paths, "*.example.com")),
		Entry("every host holds itself", wants(render.EveryHost), nil, hostDecision{held: []string{render.EveryHost}}, other("bank", paths, render.EveryHost)),
		Entry("it is granted to another namespace: also who has it loses it", has(wants(b), b),
			&Permissions{HostGrants: []Grant{{"bank", b}}}, hostDecision{denied: []string{b}}),
		Entry("it is granted: who has it without a grant holds it no more", wants(a), granted, hostDecision{open: []string{a}}, other("bank", paths, a)),
		Entry("it is granted to both, at other paths", wants(a), granted, hostDecision{open: []string{a}}, other("staging", []string{"/staging/api/verify/"}, a)),
		Entry("it is granted to both, at the same paths", wants(a), granted, hostDecision{held: []string{a}}, other("staging", paths, a)),
	)

	It("is taken from what is applied, and a route that keeps none goes", func() {
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
		closeDoors(whole, project, []string{a, b})
		Expect(whole.Ingress).NotTo(BeNil())
		Expect(names(whole.HTTPRoute)).To(Equal([]string{a, b}))

		part := wanted()
		closeDoors(part, project, []string{b})
		Expect(part.Ingress).To(BeNil())
		Expect(names(part.HTTPRoute)).To(Equal([]string{b}))

		none := wanted()
		closeDoors(none, project, nil)
		Expect(none.Ingress).To(BeNil())
		Expect(none.HTTPRoute).To(BeNil())
	})

	It("is read from what the operator made, with its paths", func() {
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

		made, ok := doorOf(&ingress)
		Expect(ok).To(BeTrue())
		made.hosts, made.paths = ingressRules(&ingress)
		want := door{namespace: "shop", name: "phoneproof-own", owner: "own", hosts: []string{a}, paths: render.Paths(project)}
		Expect(made).To(Equal(want))
		made, ok = doorOf(children.HTTPRoute)
		Expect(ok).To(BeTrue())
		made.hosts, made.paths = routeRules(children.HTTPRoute)
		Expect(made).To(Equal(want))

		ingress.Spec.Rules[0].Host = ""
		hosts, _ := ingressRules(&ingress)
		Expect(hosts).To(Equal([]string{render.EveryHost}))
		ingress.OwnerReferences = nil
		_, ok = doorOf(&ingress)
		Expect(ok).To(BeFalse(), "somebody else's")
	})
})
