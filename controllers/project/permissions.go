package project

import (
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// anything is the pattern that every value matches, an empty one too.
const anything = "*"

// Permissions are what the cluster's administrator lets projects ask for. A pattern is a whole value, or has * for any
// text without a slash; * alone matches everything.
type Permissions struct {
	// Annotations are patterns of the keys that may stand on Service and Ingress.
	Annotations []string
	// PriorityClasses are patterns of the PriorityClasses that pods may have.
	PriorityClasses []string
	// Tolerations are patterns of the keys of taints that pods may tolerate. A toleration without a key tolerates every
	// taint, so only * allows it.
	Tolerations []string
	// ServiceTypes are the types that a Service may have.
	ServiceTypes []string
	// AccountGrants and HostGrants give messenger accounts and host names to namespaces: projects of others may not have them.
	AccountGrants, HostGrants []Grant

	grants *grantIndex // nil outside of a Controller
}

// The operator's flags for grants.
const (
	accountGrantFlag = "--grant-account"
	hostGrantFlag    = "--grant-host"
)

// Validate returns what is wrong with the patterns.
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

// refusal says which field asks for something that is not allowed, and by which flag it would be; empty if all is.
func (p *Permissions) refusal(spec *verifyv1.VerificationProjectSpec) string {
	if text := p.refusedAnnotation("spec.expose.service.annotations", spec.Expose.Service.Annotations); text != "" {
		return text
	}
	if ingress := spec.Expose.Ingress; ingress != nil {
		if text := p.refusedAnnotation("spec.expose.ingress.annotations", ingress.Annotations); text != "" {
			return text
		}
	}
	if name := string(spec.Expose.Service.Type); name != "" && !slices.Contains(p.ServiceTypes, name) {
		return refused("spec.expose.service.type", name, "--allow-service-type")
	}
	if name := spec.Server.PriorityClassName; name != "" && !matches(p.PriorityClasses, name) {
		return refused("spec.server.priorityClassName", name, "--allow-priority-class")
	}
	return p.refusedToleration(spec.Server.Tolerations)
}

func (p *Permissions) refusedAnnotation(field string, annotations map[string]verifyv1.AnnotationValue) string {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !matches(p.Annotations, key) {
			return refused(field, key, "--allow-annotation")
		}
	}
	return ""
}

func (p *Permissions) refusedToleration(tolerations []corev1.Toleration) string {
	for i, toleration := range tolerations {
		if !matches(p.Tolerations, toleration.Key) {
			return refused(fmt.Sprintf("spec.server.tolerations[%d].key", i), toleration.Key, "--allow-toleration")
		}
	}
	return ""
}

// matches tells whether a value matches one of the patterns.
func matches(patterns []string, value string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == anything {
			return true
		}
		ok, err := path.Match(pattern, value)
		return ok && err == nil && value != ""
	})
}

func refused(field, value, flag string) string {
	return fmt.Sprintf("%s: %s is not allowed by the cluster's administrator (operator flag %s)", field, quoted(value), flag)
}

// quoted returns a value that somebody chose, fit for a message: in quotes, on one line, and not too long.
func quoted(value string) string {
	const most = 128
	if len(value) > most {
		value = value[:most] + "..."
	}
	return fmt.Sprintf("%q", value)
}
