package project

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

var _ = Describe("An annotation", func() {
	const a, b = "a.example.com", "b.example.com"
	DescribeTable("asks for hosts, whatever the prefix of its key",
		func(key, value, host string, names ...string) {
			Expect(readAnnotation(key, value, host)).To(HaveExactElements(names))
		},
		Entry("external-dns", "external-dns.alpha.kubernetes.io/hostname", " A.example.com. ,"+b, "", a, b),
		Entry("external-dns since 0.22", "external-dns.kubernetes.io/internal-hostname", a, "", a),
		Entry("external-dns with a prefix of its own", "dns.example.com/hostname", a, "", a),
		Entry("external-dns for Cloudflare", "external-dns.alpha.kubernetes.io/cloudflare-custom-hostname", a, "", a),
		Entry("external-dns, not where hosts come from", "external-dns.alpha.kubernetes.io/ingress-hostname-source", "annotation-only", ""),
		Entry("external-dns, not where the name leads", "external-dns.alpha.kubernetes.io/target", a, ""),
		Entry("external-dns as kops", "dns.alpha.kubernetes.io/external", a, "", a),
		Entry("external-dns as Mate", "zalando.org/dnsname", a, "", a),
		Entry("external-dns as Molecule", "domainName", a, "", a),
		Entry("ingress-nginx", "nginx.ingress.kubernetes.io/server-alias", "*.example.com,", "", "*.example.com"),
		Entry("ingress-nginx: with www.", "nginx.ingress.kubernetes.io/from-to-www-redirect", "true", a, "www."+a),
		Entry("ingress-nginx: without www.", "nginx.ingress.kubernetes.io/from-to-www-redirect", "1", "www."+a, a),
		Entry("ingress-nginx: not", "nginx.ingress.kubernetes.io/from-to-www-redirect", "false", a),
		Entry("ingress-nginx: of an Ingress without a host", "nginx.ingress.kubernetes.io/from-to-www-redirect", "true", render.EveryHost),
		Entry("HAProxy Ingress", "haproxy-ingress.github.io/redirect-from", a, "", a),
		Entry("Kong", "konghq.com/host-aliases", a+","+b, "", a, b),
		Entry("Traefik", "traefik.ingress.kubernetes.io/router.tls.domains.0.sans", a, "", a),
		Entry("cert-manager", "cert-manager.io/common-name", a, "", a),
		Entry("cert-manager, not its issuer", "cert-manager.io/cluster-issuer", a, ""),
	)

	DescribeTable("keeps the hosts that are permitted",
		func(value, limited string, kept bool) {
			got, ok := limitAnnotation("konghq.com/host-aliases", value, "", func(name string) bool { return name == a })
			Expect(got).To(Equal(limited))
			Expect(ok).To(Equal(kept))
		},
		Entry("all, as they are written", "A.example.com.", "A.example.com.", true),
		Entry("some", b+", "+a, a, true),
		Entry("none", b, "", false),
		Entry("an empty one", "", "", true),
	)

	DescribeTable("is refused if the operator cannot limit it",
		func(key, value, refusal string) {
			p := newProject("shop", "shop")
			p.Spec.Expose.Ingress = &verifyv1.IngressSettings{Host: a, Annotations: map[string]verifyv1.AnnotationValue{
				key: verifyv1.AnnotationValue(value),
			}}
			Expect(refuseHostAnnotations(p)).To(Equal(refusal))
			p.Spec.Expose.Service.Annotations, p.Spec.Expose.Ingress = p.Spec.Expose.Ingress.Annotations, nil
			onService := strings.ReplaceAll(refusal, "spec.expose.ingress", "spec.expose.service")
			Expect(refuseHostAnnotations(p)).To(Equal(onService))
		},
		Entry("a list of names", "dns.example.com/hostname", a+", *.example.com", ""),
		Entry("no host", "cert-manager.io/cluster-issuer", "let us encrypt", ""),
		Entry("a space inside", "dns.example.com/hostname", "a. example.com",
			`spec.expose.ingress.annotations: dns.example.com/hostname holds "a. example.com", which is no DNS name`),
		Entry("every host", "konghq.com/host-aliases", "*", `spec.expose.ingress.annotations: konghq.com/host-aliases holds "*", which is no DNS name`),
		Entry("JSON that names hosts", "alb.ingress.kubernetes.io/conditions.a", `[{"field":"host-header"}]`,
			"spec.expose.ingress.annotations: alb.ingress.kubernetes.io/conditions.a adds host names to a rule; "+
				"name them in a list that the operator can read"),
		Entry("JSON that names hosts in another case", "alb.ingress.kubernetes.io/conditions.a", `[{"HOSTHEADERCONFIG":{"values":["x"]}}]`,
			"spec.expose.ingress.annotations: alb.ingress.kubernetes.io/conditions.a adds host names to a rule; "+
				"name them in a list that the operator can read"),
		Entry("JSON that restricts a rule", "alb.ingress.kubernetes.io/conditions.a", `[{"field":"source-ip"}]`, ""),
	)

	It("is refused if there are too many hosts to look up", func() {
		p := newProject("shop", "shop")
		var names []string
		for i := range maxAnnotatedHosts + 1 {
			names = append(names, fmt.Sprintf("h%d.example.com", i))
		}
		p.Spec.Expose.Service.Annotations = map[string]verifyv1.AnnotationValue{
			"dns.example.com/hostname": verifyv1.AnnotationValue(strings.Join(names, ",")),
		}
		Expect(refuseHostAnnotations(p)).To(ContainSubstring("more than 32 host names"))
		Expect(collectHosts(p, true)).To(HaveLen(maxAnnotatedHosts))
	})

	It("is limited in the objects that are applied", func() {
		p := newProject("shop", "shop")
		p.Spec.BaseURL = "https://" + a
		const alias, dns = "nginx.ingress.kubernetes.io/server-alias", "external-dns.alpha.kubernetes.io/hostname"
		p.Spec.Expose.Ingress = &verifyv1.IngressSettings{Annotations: map[string]verifyv1.AnnotationValue{alias: b, "note": "kept"}}
		p.Spec.Expose.Service.Annotations = map[string]verifyv1.AnnotationValue{dns: a + "," + b}
		p.Default()
		wanted := render.Project(p, render.Options{})
		limitExposures(&wanted, p, []string{a})
		Expect(wanted.Ingress.Annotations).To(Equal(map[string]string{"note": "kept"}))
		Expect(wanted.Service.Annotations).To(Equal(map[string]string{dns: a}))
		Expect(p.Spec.Expose.Ingress.Annotations).To(HaveKey(alias), "the project itself is not changed")
	})

	It("loses hosts of an existing object that are granted to another namespace, or are no DNS names", func() {
		permissions := Permissions{HostGrants: []Grant{{"bank", b}}}
		ingress := &networkingv1.Ingress{}
		ingress.Namespace = "shop"
		ingress.Annotations = map[string]string{
			"dns.example.com/hostname": a + "," + b, "konghq.com/host-aliases": "a.exa mple.com", "note": "kept",
			"nginx.ingress.kubernetes.io/from-to-www-redirect": "true",
		}
		Expect(permissions.limitHostAnnotations(ingress, "www."+b)).To(Equal(map[string]any{
			"dns.example.com/hostname": a, "konghq.com/host-aliases": nil,
			"nginx.ingress.kubernetes.io/from-to-www-redirect": nil,
		}))
	})
})
