package v1alpha1

import (
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

const (
	nodeSelectorMessage = "nodeSelector must consist of labels: keys like example.com/pool, values of letters, digits, '-', '_' and '.'"
	annotationsMessage  = "annotations must have keys like example.com/name: an optional lower-case domain and '/', " +
		"then letters, digits, '-', '_' and '.'"
	maxPods = 50
)

var (
	maxCPU    = resource.MustParse("1024")
	minMemory = resource.MustParse("16Mi")
	maxMemory = resource.MustParse("1Ti")
)

func (s *Server) validateFields(path *field.Path) field.ErrorList {
	errs := checkUpTo(path.Child("replicas"), s.Replicas, maxPods)
	errs = append(errs, s.Autoscaling.validateFields(path.Child("autoscaling"))...)
	if b := s.PodDisruptionBudget; b != nil {
		errs = append(errs, checkUpTo(path.Child("podDisruptionBudget", "maxUnavailable"), b.MaxUnavailable, maxPods)...)
	}
	errs = append(errs, s.Resources.validateFields(path.Child("resources"))...)
	errs = append(errs, validateMap(path.Child("nodeSelector"), s.NodeSelector, 63, labelValuePattern, nodeSelectorMessage)...)
	errs = append(errs, checkAtMost(path.Child("tolerations"), len(s.Tolerations), 16)...)
	errs = append(errs, checkAtMost(path.Child("topologySpreadConstraints"), len(s.TopologySpreadConstraints), 8)...)
	class := nameRule("priorityClassName", "a PriorityClass")
	return append(errs, class.checkOptional(path.Child("priorityClassName"), s.PriorityClassName)...)
}

func (a *Autoscaling) validateFields(path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := checkUpTo(path.Child("minReplicas"), a.MinReplicas, maxPods)
	errs = append(errs, checkUpTo(path.Child("maxReplicas"), &a.MaxReplicas, maxPods)...)
	errs = append(errs, checkUpTo(path.Child("targetCPUUtilization"), a.TargetCPUUtilization, 100)...)
	if ptr.Deref(a.MinReplicas, DefaultMinReplicas) > a.MaxReplicas {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), ptr.Deref(a.MinReplicas, DefaultMinReplicas),
			"minReplicas must not be greater than maxReplicas; raise maxReplicas or lower minReplicas"))
	}
	return errs
}

func (r *Resources) validateFields(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := r.Requests.validateFields(path.Child("requests"))
	errs = append(errs, r.Limits.validateFields(path.Child("limits"))...)
	if r.Requests == nil || r.Limits == nil {
		return errs
	}
	if isGreater(r.Requests.CPU, r.Limits.CPU) {
		errs = append(errs, field.Invalid(path.Child("requests", "cpu"), quantityText(r.Requests.CPU),
			"requests.cpu must not be greater than limits.cpu"))
	}
	if isGreater(r.Requests.Memory, r.Limits.Memory) {
		errs = append(errs, field.Invalid(path.Child("requests", "memory"), quantityText(r.Requests.Memory),
			"requests.memory must not be greater than limits.memory"))
	}
	return errs
}

// quantityText returns q as text. It formats a copy, because String modifies q,
// which other goroutines may be reading.
func quantityText(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	own := q.DeepCopy()
	return own.String()
}

func isGreater(a, b *resource.Quantity) bool {
	return a != nil && b != nil && a.Cmp(*b) > 0
}

func (a *ResourceAmounts) validateFields(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a == nil {
		return nil
	}
	if cpu := quantityText(a.CPU); a.CPU != nil && (a.CPU.Sign() <= 0 || a.CPU.Cmp(maxCPU) > 0 || !cpuPattern.MatchString(cpu)) {
		errs = append(errs, field.Invalid(path.Child("cpu"), cpu, "cpu must be more than 0 and at most 1024 cores, for example 250m"))
	}
	if memory := quantityText(a.Memory); a.Memory != nil &&
		(a.Memory.Cmp(minMemory) < 0 || a.Memory.Cmp(maxMemory) > 0 || !memoryPattern.MatchString(memory)) {
		errs = append(errs, field.Invalid(path.Child("memory"), memory, "memory must be at least 16Mi and at most 1Ti, for example 256Mi"))
	}
	return errs
}

func (n *NetworkPolicy) validateFields(path *field.Path) field.ErrorList {
	if n == nil {
		return nil
	}
	errs := checkAtMost(path.Child("ingressFrom"), len(n.IngressFrom), 16)
	return append(errs, checkAtMost(path.Child("metricsFrom"), len(n.MetricsFrom), 16)...)
}

func (e *Expose) validateFields(path *field.Path) field.ErrorList {
	service := path.Child("service")
	errs := checkOneOf(service.Child("type"), e.Service.Type, ServiceClusterIP, ServiceNodePort, ServiceLoadBalancer)
	errs = append(errs, validateMap(service.Child("annotations"), e.Service.Annotations, 4096, nil, annotationsMessage)...)
	errs = append(errs, e.Ingress.validateFields(path.Child("ingress"))...)
	return append(errs, e.HTTPRoute.validateFields(path.Child("httpRoute"))...)
}

func (i *IngressSettings) validateFields(path *field.Path) field.ErrorList {
	if i == nil {
		return nil
	}
	errs := nameRule("className", "an IngressClass").checkOptional(path.Child("className"), i.ClassName)
	errs = append(errs, hostRule.checkOptional(path.Child("host"), string(i.Host))...)
	errs = append(errs, nameRule("tlsSecretName", "a Secret").checkOptional(path.Child("tlsSecretName"), i.TLSSecretName)...)
	return append(errs, validateMap(path.Child("annotations"), i.Annotations, 4096, nil, annotationsMessage)...)
}

func (h *HTTPRouteSettings) validateFields(path *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	parents := path.Child("parentRefs")
	if len(h.ParentRefs) == 0 {
		return field.ErrorList{field.Required(parents, "at least one Gateway is needed")}
	}
	errs := checkAtMost(parents, len(h.ParentRefs), 8)
	if errs != nil {
		return errs
	}
	for i, ref := range h.ParentRefs {
		errs = append(errs, nameRule("name", "a Gateway").checkRequired(parents.Index(i).Child("name"), ref.Name)...)
		errs = append(errs, nameRule("sectionName", "a listener").checkOptional(parents.Index(i).Child("sectionName"), ref.SectionName)...)
	}
	if tooMany := checkAtMost(path.Child("hostnames"), len(h.Hostnames), 16); tooMany != nil {
		return append(errs, tooMany...)
	}
	for i, name := range h.Hostnames {
		at := path.Child("hostnames").Index(i)
		errs = append(errs, hostnameRule.checkRequired(at, string(name))...)
		if slices.Contains(h.Hostnames[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
	}
	return errs
}

// validateMap checks a map of labels or annotations: the number of entries, the
// keys, the length of values and, if values is set, their pattern.
func validateMap[V ~string](path *field.Path, m map[string]V, maxValue int, values *regexp.Regexp, message string) field.ErrorList {
	if len(m) > 16 {
		return field.ErrorList{field.TooMany(path, len(m), 16)}
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := m[key]
		switch {
		case len(key) > maxMapKey, !mapKeyPattern.MatchString(key), values != nil && !values.MatchString(string(value)):
			errs = append(errs, field.Invalid(path.Key(key), field.OmitValueType{}, message))
		case len([]rune(string(value))) > maxValue:
			errs = append(errs, field.TooLong(path.Key(key), "", maxValue))
		}
	}
	return errs
}

func (s *VerificationRequestSpec) validateFields(path *field.Path) field.ErrorList {
	errs := nameRule("name", "a VerificationProject").checkRequired(path.Child("projectRef", "name"), s.ProjectRef.Name)
	errs = append(errs, phoneNumberRule.checkRequired(path.Child("phoneNumber"), s.PhoneNumber)...)
	errs = append(errs, checkOneOf(path.Child("method"), s.Method, MethodWhatsApp, MethodTelegram, MethodTestWhatsApp, MethodTestTelegram)...)
	if s.Init == nil && s.Method.IsTest() {
		errs = append(errs, field.Invalid(path.Child("method"), s.Method, "method must be WhatsApp or Telegram in a manual request: "+
			"the others are for requests that a test key made by the API"))
	}
	errs = append(errs, referenceRule.checkOptional(path.Child("reference"), s.Reference)...)
	errs = append(errs, validateMetadata(path.Child("metadata"), s.Metadata)...)
	errs = append(errs, localeRule.checkOptional(path.Child("locale"), s.Locale)...)
	return append(errs, s.Init.validateFields(path.Child("init"))...)
}

// validateMetadata checks the client's own pairs.
func validateMetadata(path *field.Path, metadata map[string]MetadataValue) field.ErrorList {
	if len(metadata) > maxMetadata {
		return field.ErrorList{field.TooMany(path, len(metadata), maxMetadata)}
	}
	var errs field.ErrorList
	size, named, plain := 0, true, true
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := metadata[key]
		size += len(key) + len(value)
		named = named && utf8.RuneCountInString(key) <= maxMetadataKey && metadataKeyPattern.MatchString(key)
		plain = plain && metadataValuePattern.MatchString(string(value))
		if utf8.RuneCountInString(string(value)) > maxMetadataBytes {
			errs = append(errs, field.TooLong(path.Key(key), "", maxMetadataBytes))
		}
	}
	if !plain {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "metadata must have values without control characters"))
	}
	if !named {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "metadata must have keys of 1 to 64 letters, digits, '_', '.' and '-'"))
	}
	if size > maxMetadataBytes {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "metadata must have at most 1024 bytes in all keys and values"))
	}
	return errs
}

func (i *Init) validateFields(path *field.Path) field.ErrorList {
	if i == nil {
		return nil
	}
	var errs field.ErrorList
	if i.CreatedAt.IsZero() {
		errs = append(errs, field.Required(path.Child("createdAt"), "createdAt is when the request was accepted"))
	}
	if !i.ExpiresAt.After(i.CreatedAt.Time) {
		errs = append(errs, field.Invalid(path.Child("expiresAt"), i.ExpiresAt, "expiresAt must be later than createdAt"))
	}
	errs = append(errs, keyNameRule.checkOptional(path.Child("keyName"), i.KeyName)...)
	errs = append(errs, bodyHashRule.checkOptional(path.Child("bodyHash"), i.BodyHash)...)
	errs = append(errs, preparedNameRule.checkOptional(path.Child("displayName"), i.DisplayName)...)
	errs = append(errs, validateSet(path.Child("otherMethods"), "otherMethods", "for none", i.OtherMethods, MethodWhatsApp, MethodTelegram)...)
	errs = append(errs, returnURLRule.checkOptional(path.Child("returnURL"), i.ReturnURL)...)
	errs = append(errs, checkOneOf(path.Child("assurance"), i.Assurance, AssuranceLevelSession)...)
	errs = append(errs, purposeRule.checkOptional(path.Child("purpose"), i.Purpose)...)
	errs = append(errs, checkOneOf(path.Child("deliver"), i.Deliver, DeliverCode, DeliverGiven)...)
	errs = append(errs, creatorRule.checkOptional(path.Child("creator"), i.Creator)...)
	errs = append(errs, browserRule.checkOptional(path.Child("browser"), i.Browser)...)
	return append(errs, subjectHashRule.checkOptional(path.Child("subjectHash"), i.SubjectHash)...)
}
