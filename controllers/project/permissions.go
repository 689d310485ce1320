package project

import (
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// anything is the pattern that matches every value, even an empty one.
const anything = "*"

// Permissions are what the cluster's administrator lets projects ask for. A pattern is a whole value, or has * for any text
// without a slash; * alone matches everything.
type Permissions struct {
	// Annotations are patterns of the allowed keys on Service and Ingress.
	Annotations []string
	// PriorityClasses are patterns of the allowed PriorityClasses of pods.
	PriorityClasses []string
	// Tolerations are patterns of the taint keys that pods may tolerate. A toleration without a key tolerates every taint, so
	// only * allows it.
	Tolerations []string
	// ServiceTypes are the allowed types of a Service.
	ServiceTypes []string
	// AccountGrants and HostGrants give messenger accounts and host names to namespaces: projects of other namespaces may not use
	// them.
	AccountGrants, HostGrants []Grant

	grants *grantIndex // nil outside of a Controller
}

// DefaultPermissions returns what projects may ask for unless the administrator decides otherwise. The annotations name an issuer and
// a DNS record; other ones of the same controllers give a certificate more names, or further uses.
func DefaultPermissions() Permissions {
	return Permissions{
		Annotations: []string{
			"cert-manager.io/issuer", "cert-manager.io/cluster-issuer",
			"external-dns.alpha.kubernetes.io/hostname", "external-dns.alpha.kubernetes.io/ttl",
		},
		ServiceTypes: []string{string(verifyv1.ServiceClusterIP)},
	}
}

// The operator's flags for grants.
const (
	accountGrantFlag = "--grant-account"
	hostGrantFlag    = "--grant-host"
)

// Validate reports invalid patterns and types.
func (p *Permissions) Validate() error {
	for flag, patterns := range map[string][]string{
		"--allow-annotation": p.Annotations, "--allow-priority-class": p.PriorityClasses, "--allow-toleration": p.Tolerations,
	} {
		for _, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("%s: %q is no pattern: %w", flag, pattern, err)
			}
		}
	}
	for _, name := range p.ServiceTypes {
		switch verifyv1.ServiceType(name) {
		case verifyv1.ServiceClusterIP, verifyv1.ServiceNodePort, verifyv1.ServiceLoadBalancer:
		default:
			return fmt.Errorf("--allow-service-type is %q: want ClusterIP, NodePort or LoadBalancer", name)
		}
	}
	return nil
}

// findRefusal returns which field asks for something that is not allowed, with the flag that would allow it; empty if all is
// allowed.
func (p *Permissions) findRefusal(spec *verifyv1.VerificationProjectSpec) string {
	if text := p.checkAnnotations("spec.expose.service.annotations", spec.Expose.Service.Annotations); text != "" {
		return text
	}
	if ingress := spec.Expose.Ingress; ingress != nil {
		if text := p.checkAnnotations("spec.expose.ingress.annotations", ingress.Annotations); text != "" {
			return text
		}
	}
	if name := string(spec.Expose.Service.Type); name != "" && !slices.Contains(p.ServiceTypes, name) {
		return describeRefusal("spec.expose.service.type", name, "--allow-service-type")
	}
	if name := spec.Server.PriorityClassName; name != "" && !matchesAny(p.PriorityClasses, name) {
		return describeRefusal("spec.server.priorityClassName", name, "--allow-priority-class")
	}
	return p.checkTolerations(spec.Server.Tolerations)
}

func (p *Permissions) checkAnnotations(field string, annotations map[string]verifyv1.AnnotationValue) string {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !matchesAny(p.Annotations, key) {
			return describeRefusal(field, key, "--allow-annotation")
		}
	}
	return ""
}

func (p *Permissions) checkTolerations(tolerations []corev1.Toleration) string {
	for i, toleration := range tolerations {
		if !matchesAny(p.Tolerations, toleration.Key) {
			return describeRefusal(fmt.Sprintf("spec.server.tolerations[%d].key", i), toleration.Key, "--allow-toleration")
		}
	}
	return ""
}

// matchesAny reports whether a value matches one of the patterns.
func matchesAny(patterns []string, value string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == anything {
			return true
		}
		ok, err := path.Match(pattern, value)
		return ok && err == nil && value != ""
	})
}

func describeRefusal(field, value, flag string) string {
	return fmt.Sprintf("%s: %s is not allowed by the cluster's administrator (operator flag %s)", field, quoteValue(value), flag)
}

// quoteValue returns a user's value in the form of a message: in quotes, on one line, and shortened.
func quoteValue(value string) string {
	const most = 128
	if len(value) > most {
		value = value[:most] + "..."
	}
	return fmt.Sprintf("%q", value)
}
