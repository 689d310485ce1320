package project

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("Permissions", func() {
	usual := Permissions{
		Annotations: []string{"cert-manager.io/*", "example.com/one"}, Tolerations: []string{"*"},
		ServiceTypes: []string{"ClusterIP", "LoadBalancer"}, PriorityClasses: []string{"web-*"},
	}
	DescribeTable("name the field and the operator's flag in a refusal",
		func(edit func(*spec), p Permissions, refusal string) {
			var s spec
			edit(&s)
			Expect(p.findRefusal(&s)).To(Equal(refusal))
		},
		Entry("nothing of an empty spec", func(*spec) {}, Permissions{}, ""),
		Entry("an annotation that matches no pattern", func(s *spec) { s.Expose.Service.Annotations = notes("example.com/two") }, usual,
			refusedAnnotation("service", "example.com/two")),
		Entry("the first of several, whatever the order of the map", func(s *spec) {
			s.Expose.Ingress = &verifyv1.IngressSettings{Annotations: notes("b/c", "a/b", "cert-manager.io/issuer")}
		}, usual, refusedAnnotation("ingress", "a/b")),
		Entry("no annotation that matches", func(s *spec) {
			s.Expose.Service.Annotations = notes("cert-manager.io/issuer", "example.com/one")
		}, usual, ""),
		Entry("a key whose prefix only begins like the pattern", func(s *spec) { s.Expose.Service.Annotations = notes("cert-manager.io.evil/x") }, usual,
			refusedAnnotation("service", "cert-manager.io.evil/x")),
		Entry("no annotation where all are allowed", func(s *spec) { s.Expose.Service.Annotations = notes("any/thing", "thing") },
			Permissions{Annotations: []string{"*"}}, ""),
		Entry("a type of Service", func(s *spec) { s.Expose.Service.Type = verifyv1.ServiceNodePort }, usual,
			`spec.expose.service.type: "NodePort" is not allowed by the cluster's administrator (operator flag --allow-service-type)`),
		Entry("no allowed type of Service", func(s *spec) { s.Expose.Service.Type = verifyv1.ServiceLoadBalancer }, usual, ""),
		Entry("a priority class", func(s *spec) { s.Server.PriorityClassName = "system-node-critical" }, usual,
			`spec.server.priorityClassName: "system-node-critical" is not allowed by the cluster's administrator (operator flag --allow-priority-class)`),
		Entry("no allowed priority class", func(s *spec) { s.Server.PriorityClassName = "web-high" }, usual, ""),
		Entry("by default, what names an issuer and a DNS record", func(s *spec) {
			s.Expose.Service.Annotations = notes("external-dns.alpha.kubernetes.io/hostname", "external-dns.alpha.kubernetes.io/ttl")
			s.Expose.Ingress = &verifyv1.IngressSettings{Annotations: notes("cert-manager.io/issuer", "cert-manager.io/cluster-issuer")}
		}, DefaultPermissions(), ""),
		Entry("by default, further names of a certificate", func(s *spec) {
			s.Expose.Ingress = &verifyv1.IngressSettings{Annotations: notes("cert-manager.io/uri-sans")}
		}, DefaultPermissions(), refusedAnnotation("ingress", "cert-manager.io/uri-sans")),
		Entry("by default, the uses of a certificate", func(s *spec) {
			s.Expose.Ingress = &verifyv1.IngressSettings{Annotations: notes("cert-manager.io/usages")}
		}, DefaultPermissions(), refusedAnnotation("ingress", "cert-manager.io/usages")),
		Entry("by default, the target of a DNS record", func(s *spec) {
			s.Expose.Service.Annotations = notes("external-dns.alpha.kubernetes.io/target")
		}, DefaultPermissions(), refusedAnnotation("service", "external-dns.alpha.kubernetes.io/target")),
		Entry("by default, a toleration", tolerates("node-role.kubernetes.io/control-plane"), DefaultPermissions(),
			`spec.server.tolerations[0].key: "node-role.kubernetes.io/control-plane" is not allowed by the cluster's administrator (operator flag --allow-toleration)`),
		Entry("no toleration where all are allowed", tolerates("", "a", "b/c"), usual, ""),
		Entry("a toleration of another taint", tolerates("a/b", "c"), Permissions{Tolerations: []string{"a/*"}},
			`spec.server.tolerations[1].key: "c" is not allowed by the cluster's administrator (operator flag --allow-toleration)`),
		Entry("a toleration of all taints, unless all are allowed", tolerates(""), Permissions{Tolerations: []string{"**", "?", "a"}},
			`spec.server.tolerations[0].key: "" is not allowed by the cluster's administrator (operator flag --allow-toleration)`),
	)

	DescribeTable("are validated",
		func(p Permissions, problem string) {
			if problem == "" {
				Expect(p.Validate()).To(Succeed())
				return
			}
			Expect(p.Validate()).To(MatchError(ContainSubstring(problem)))
		},
		Entry("the usual ones", usual, ""),
		Entry("an invalid pattern", Permissions{Annotations: []string{"["}}, `--allow-annotation: "[" is no pattern`),
		Entry("an unknown type of Service", Permissions{ServiceTypes: []string{"ExternalName"}}, `--allow-service-type is "ExternalName"`),
	)

	It("quote a refused value on one line, shortened", func() {
		long := make([]byte, 1000)
		Expect(len(quoteValue(string(long)))).To(BeNumerically("<", 600))
		Expect(quoteValue("a\nb")).To(Equal(`"a\nb"`))
	})
})

func refusedAnnotation(where, key string) string {
	return fmt.Sprintf("spec.expose.%s.annotations: %q is not allowed by the cluster's administrator (operator flag --allow-annotation)", where, key)
}

func notes(keys ...string) map[string]verifyv1.AnnotationValue {
	out := map[string]verifyv1.AnnotationValue{}
	for _, key := range keys {
		out[key] = "value"
	}
	return out
}

func tolerates(keys ...string) func(*spec) {
	return func(s *spec) {
		for _, key := range keys {
			s.Server.Tolerations = append(s.Server.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
	}
}
