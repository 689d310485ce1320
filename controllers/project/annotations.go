package project

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// maxAnnotatedHosts is how many host names the annotations of a project may hold, because each is looked up.
const maxAnnotatedHosts = 32

// hostAnnotations are the names of annotations that hold host names, after the slash: the prefix is a flag of each controller.
// Those of external-dns and of load balancers end in hostname and are not listed.
var hostAnnotations = map[string]bool{
	"server-alias":        true, // ingress-nginx, HAProxy Ingress
	"server-alias-regex":  true, // HAProxy Ingress
	"redirect-from":       true, // HAProxy Ingress
	"redirect-from-regex": true, // HAProxy Ingress
	"host-aliases":        true, // Kong
	"alt-names":           true, // cert-manager: a certificate for them
	"common-name":         true, // cert-manager
	"dnsname":             true, // external-dns --compatibility=mate
	"domainName":          true, // external-dns --compatibility=molecule
}

// hostAnnotationKeys are full keys whose names alone are not specific enough: external-dns --compatibility=kops-dns-controller.
var hostAnnotationKeys = map[string]bool{"dns.alpha.kubernetes.io/external": true, "dns.alpha.kubernetes.io/internal": true}

const (
	// traefikDomains begins the names of annotations by which Traefik gets certificates.
	traefikDomains = "router.tls.domains."
	// wwwRedirect is the name by which ingress-nginx also answers to a host with www. before it, or without.
	wwwRedirect = "from-to-www-redirect"
	// albConditions begins the names by which the AWS Load Balancer Controller adds hosts to a rule, as JSON.
	albConditions = "conditions."
)

// annotationName returns an annotation's key without its prefix.
func annotationName(key string) string { return key[strings.LastIndex(key, "/")+1:] }

// holdsHosts reports whether the value of an annotation is a list of host names.
func holdsHosts(key string) bool {
	name := annotationName(key)
	return strings.HasSuffix(name, "hostname") || hostAnnotations[name] || hostAnnotationKeys[key] || strings.HasPrefix(name, traefikDomains)
}

// readAnnotation returns the host names that an annotation asks for, in the form of grants. The host is the one in the rules of
// the same object; empty if they have none.
func readAnnotation(key, value, host string) []string {
	switch {
	case annotationName(key) == wwwRedirect:
		if enabled, _ := strconv.ParseBool(value); !enabled || host == "" || host == render.EveryHost {
			return nil
		}
		if bare, ok := strings.CutPrefix(host, "www."); ok {
			return []string{bare}
		}
		return []string{"www." + host}
	case !holdsHosts(key):
		return nil
	}
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), ".")); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// readAnnotations returns the host names that the annotations of one object ask for.
func readAnnotations(annotations map[string]string, host string) []string {
	var names []string
	for key, value := range annotations {
		names = append(names, readAnnotation(key, value, host)...)
	}
	return names
}

// limitAnnotation returns the value of an annotation with only the permitted host names; ok is false if none is left.
func limitAnnotation(key, value, host string, permitted func(string) bool) (limited string, ok bool) {
	names := readAnnotation(key, value, host)
	kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !permitted(name) })
	switch len(kept) {
	case len(names):
		return value, true
	case 0:
		return "", false
	default:
		return strings.Join(kept, ","), true
	}
}

// limitAnnotations removes the host names that are not permitted from the annotations of one object.
func limitAnnotations(annotations map[string]string, host string, permitted func(string) bool) {
	for key, value := range annotations {
		limited, ok := limitAnnotation(key, value, host, permitted)
		if !ok {
			delete(annotations, key)
			continue
		}
		annotations[key] = limited
	}
}

// isHostName reports whether every controller reads a name in an annotation as the operator does: external-dns removes spaces and
// maps letters of other scripts, others accept regular expressions.
func isHostName(name string) bool {
	return len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, wildcard))) == 0
}

// collectAnnotated returns the host names that the annotations of a project ask for.
func collectAnnotated(p *verifyv1.VerificationProject) []string {
	names := readAnnotations(verifyv1.Strings(p.Spec.Expose.Service.Annotations), "")
	if ingress := p.Spec.Expose.Ingress; ingress != nil {
		names = append(names, readAnnotations(verifyv1.Strings(ingress.Annotations), render.IngressHost(p))...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isHostName(name) })
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxAnnotatedHosts)]
}

// refuseHostAnnotations returns which annotation asks for hosts in a form that the operator cannot limit; empty if none does.
func refuseHostAnnotations(p *verifyv1.VerificationProject) string {
	count := 0
	check := func(field string, annotations map[string]verifyv1.AnnotationValue, host string) string {
		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			names := readAnnotation(key, string(annotations[key]), host)
			if i := slices.IndexFunc(names, func(name string) bool { return !isHostName(name) }); i >= 0 {
				return fmt.Sprintf("%s: %s holds %s, which is no DNS name", field, key, quoteValue(names[i]))
			}
			if setsHostCondition(key, string(annotations[key])) {
				return fmt.Sprintf("%s: %s adds host names to a rule; name them in a list that the operator can read", field, key)
			}
			if count += len(names); count > maxAnnotatedHosts {
				return fmt.Sprintf("%s: the annotations hold more than %d host names", field, maxAnnotatedHosts)
			}
		}
		return ""
	}
	if text := check("spec.expose.service.annotations", p.Spec.Expose.Service.Annotations, ""); text != "" || p.Spec.Expose.Ingress == nil {
		return text
	}
	return check("spec.expose.ingress.annotations", p.Spec.Expose.Ingress.Annotations, render.IngressHost(p))
}

// setsHostCondition reports whether an annotation of the AWS Load Balancer Controller adds hosts to a rule. Removing it could
// open a rule that it restricts, so it is refused.
func setsHostCondition(key, value string) bool {
	if !strings.HasPrefix(annotationName(key), albConditions) {
		return false
	}
	var conditions []struct {
		Field            string          `json:"field"`
		HostHeaderConfig json.RawMessage `json:"hostHeaderConfig"`
	}
	if err := json.Unmarshal([]byte(value), &conditions); err != nil {
		return strings.Contains(strings.ToLower(value), "host")
	}
	for _, condition := range conditions {
		if condition.Field == "host-header" || condition.HostHeaderConfig != nil {
			return true
		}
	}
	return false
}
