package v1alpha1

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Limits and defaults that depend on the kind of storage.
const (
	// RetentionKubernetes is the default of request.retention with storage
	// Kubernetes.
	RetentionKubernetes = time.Hour
	// RetentionPostgreSQL is the default with storage PostgreSQL.
	RetentionPostgreSQL = 24 * time.Hour
	// MaxRetentionKubernetes is the longest retention with storage Kubernetes.
	MaxRetentionKubernetes = 7 * 24 * time.Hour
	// MaxRetentionPostgreSQL is the longest retention with storage PostgreSQL.
	MaxRetentionPostgreSQL = 30 * 24 * time.Hour
	// PerKeyRequestsPostgreSQL is the default number of rateLimit.perKey with
	// storage PostgreSQL.
	PerKeyRequestsPostgreSQL int32 = 600
	// PerKeyPeriodPostgreSQL is its period.
	PerKeyPeriodPostgreSQL Duration = "1m"
)

// silentAfter is the default of whatsapp.silentAfter.
const silentAfter = time.Hour

// codeRest is how long a full store keeps an expired request whose code can be
// sent again, such as one with an Idempotency-Key.
const codeRest = 5 * time.Minute

// Default resources of a pod.
var (
	defaultCPURequest    = resource.MustParse("50m")
	defaultMemoryRequest = resource.MustParse("64Mi")
	defaultMemoryLimit   = resource.MustParse("256Mi")
)

// EffectiveProjectID returns the project id in webhooks: spec.projectID, or
// NAMESPACE/NAME if it is unset.
func (p *VerificationProject) EffectiveProjectID() string {
	if p.Spec.ProjectID != "" {
		return p.Spec.ProjectID
	}
	return p.Namespace + "/" + p.Name
}

// EffectiveDisplayName returns the project's name for end users.
func (p *VerificationProject) EffectiveDisplayName() string {
	if p.Spec.DisplayName != "" {
		return p.Spec.DisplayName
	}
	return p.Name
}

// Suspended reports whether the project must run no pods.
func (p *VerificationProject) Suspended() bool {
	return ptr.Deref(p.Spec.Suspend, false)
}

// EffectiveBaseURL returns baseURL without a trailing slash, so that a route can
// be appended; empty if baseURL is unset.
func (s *VerificationProjectSpec) EffectiveBaseURL() string {
	return strings.TrimSuffix(s.BaseURL, "/")
}

// BasePath returns the path of baseURL, which is the prefix of every route:
// empty, or with a leading slash and no trailing one.
func (s *VerificationProjectSpec) BasePath() string {
	u, err := url.Parse(s.EffectiveBaseURL())
	if err != nil {
		return ""
	}
	return u.Path
}

// BaseHost returns the host of baseURL without a port; empty if baseURL is
// unset.
func (s *VerificationProjectSpec) BaseHost() string {
	u, err := url.Parse(s.BaseURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// HasHTTPSBaseURL reports whether messengers can send callbacks to baseURL.
func (s *VerificationProjectSpec) HasHTTPSBaseURL() bool {
	return strings.HasPrefix(s.BaseURL, "https://")
}

// EffectiveRetention returns how long a finished request is kept.
func (s *VerificationProjectSpec) EffectiveRetention() time.Duration {
	if s.Storage.Type == StoragePostgreSQL {
		return s.Request.Retention.Or(RetentionPostgreSQL)
	}
	return s.Request.Retention.Or(RetentionKubernetes)
}

// EffectiveTTL returns how long a request may take.
func (s *VerificationProjectSpec) EffectiveTTL() time.Duration {
	return s.Request.TTL.Or(10 * time.Minute)
}

// EffectiveAssuranceLevel returns what it takes to verify a number.
func (s *VerificationProjectSpec) EffectiveAssuranceLevel() AssuranceLevel {
	if s.Assurance == nil || s.Assurance.Level == "" {
		return AssuranceLevelPossession
	}
	return s.Assurance.Level
}

// EffectiveDeclineCooldown returns how long no request starts for a number whose
// owner answered "Not me"; zero for no such time.
func (s *VerificationProjectSpec) EffectiveDeclineCooldown() time.Duration {
	if s.Assurance == nil {
		return 0
	}
	return s.Assurance.DeclineCooldown.Or(time.Hour)
}

// EffectiveMaxStored returns how many objects a project may have.
func (s *VerificationProjectSpec) EffectiveMaxStored() int {
	return int(ptr.Deref(s.Request.MaxStored, DefaultMaxStored))
}

// EffectivePerKey returns the limit of each API key. With storage Kubernetes, the
// default divides maxStored among the keys that may start requests, so that they
// cannot fill the store while events are delivered. A single key gets half, so
// that its share does not change while a second key replaces it.
func (s *VerificationProjectSpec) EffectivePerKey() Rate {
	switch {
	case s.RateLimit.PerKey != nil:
		return *s.RateLimit.PerKey
	case s.Storage.Type == StoragePostgreSQL:
		return Rate{Requests: PerKeyRequestsPostgreSQL, Period: PerKeyPeriodPostgreSQL}
	default:
		share := max(1, s.linkRoom()/max(2, s.countInitKeys()))
		return Rate{Requests: share, Period: DurationOf(s.LongestStored())}
	}
}

// linkRoom returns how many of maxStored are for requests to whose number no code
// is sent: those with one stay for a day.
func (s *VerificationProjectSpec) linkRoom() int32 {
	return max(0, ptr.Deref(s.Request.MaxStored, DefaultMaxStored)-s.codesPerDay())
}

// countInitKeys returns how many API keys may start requests. It includes expired
// keys, so that the limit does not change without an edit. Test keys have room of
// their own.
func (s *VerificationProjectSpec) countInitKeys() int32 {
	var keys int32
	for i := range s.APIKeys {
		if !s.APIKeys[i].IsTest() && slices.Contains(s.APIKeys[i].EffectiveScopes(), ScopeInit) {
			keys++
		}
	}
	return keys
}

// CodesPerDay returns how many codes are sent through WhatsApp in a day at most.
func (w *WhatsApp) CodesPerDay() int32 {
	if w == nil || w.Codes == nil {
		return 0
	}
	return w.Codes.MaxPerDay
}

// CodesPerDay returns how many codes are sent through Telegram in a day at most.
func (t *Telegram) CodesPerDay() int32 {
	if t == nil || t.Codes == nil {
		return 0
	}
	return t.Codes.MaxPerDay
}

// SendsCodes reports whether codes are sent to numbers.
func (s *VerificationProjectSpec) SendsCodes() bool {
	return s.WhatsApp != nil && s.WhatsApp.Codes != nil || s.Telegram != nil && s.Telegram.Codes != nil
}

// codesPerDay returns how many codes are sent in a day at most.
func (s *VerificationProjectSpec) codesPerDay() int32 {
	return s.WhatsApp.CodesPerDay() + s.Telegram.CodesPerDay()
}

// countDeliverKeys returns how many API keys may have codes sent. It includes
// expired keys, as the shares of other limits do, and no test keys.
func (s *VerificationProjectSpec) countDeliverKeys() int32 {
	var keys int32
	for i := range s.APIKeys {
		if !s.APIKeys[i].IsTest() && slices.Contains(s.APIKeys[i].Scopes, ScopeDeliver) {
			keys++
		}
	}
	return keys
}

// EffectiveCodeShare returns how many of the codes of a messenger each API key may
// have sent in a day, and in an hour.
func (s *VerificationProjectSpec) EffectiveCodeShare(perDay int32) (day, hour int32) {
	day = perDay / max(1, s.countDeliverKeys())
	return day, day / 6
}

// LongestStored returns the longest time that a request occupies a full store if
// its event is delivered.
func (s *VerificationProjectSpec) LongestStored() time.Duration {
	return s.EffectiveTTL() + codeRest
}

// EffectivePerPhoneNumber returns the limit of each phone number.
func (s *VerificationProjectSpec) EffectivePerPhoneNumber() Rate {
	return ptr.Deref(s.RateLimit.PerPhoneNumber,
		Rate{Requests: DefaultPerPhoneNumberRequests, Period: DefaultPerPhoneNumberPeriod})
}

// EffectiveTelegramUpdates returns how messages are received from Telegram;
// empty without spec.telegram.
func (s *VerificationProjectSpec) EffectiveTelegramUpdates() TelegramUpdates {
	switch {
	case s.Telegram == nil:
		return ""
	case s.Telegram.Updates != "":
		return s.Telegram.Updates
	case s.HasHTTPSBaseURL():
		return TelegramUpdatesWebhook
	default:
		return TelegramUpdatesPolling
	}
}

// RegistersWhatsAppWebhook reports whether our callback is registered with Meta.
func (s *VerificationProjectSpec) RegistersWhatsAppWebhook() bool {
	return s.WhatsApp != nil && ptr.Deref(s.WhatsApp.RegisterWebhook, s.HasHTTPSBaseURL())
}

// EffectiveSilentAfter returns how long no WhatsApp message must have come before
// the project counts as silent; zero without spec.whatsapp. Silence is found in
// stored requests, so it is never longer than these are kept.
func (s *VerificationProjectSpec) EffectiveSilentAfter() time.Duration {
	if s.WhatsApp == nil {
		return 0
	}
	return min(s.WhatsApp.SilentAfter.Or(silentAfter), s.longestSilence())
}

// longestSilence returns the longest silence that stored requests can show.
func (s *VerificationProjectSpec) longestSilence() time.Duration {
	return s.EffectiveTTL() + s.EffectiveRetention()
}

// EffectiveSendReplies returns which outcomes of messages are answered.
func (s *VerificationProjectSpec) EffectiveSendReplies() SendReplies {
	if s.Replies == nil || s.Replies.Send == "" {
		return DefaultSendReplies
	}
	return s.Replies.Send
}

// EffectiveIngressHost returns the host of the Ingress; empty without
// expose.ingress.
func (s *VerificationProjectSpec) EffectiveIngressHost() string {
	if s.Expose.Ingress == nil {
		return ""
	}
	if s.Expose.Ingress.Host != "" {
		return string(s.Expose.Ingress.Host)
	}
	return s.BaseHost()
}

// EffectiveEvents returns the kinds of events that are sent.
func (w *Webhook) EffectiveEvents() []Event {
	if len(w.Events) == 0 {
		return []Event{EventSuccess}
	}
	return w.Events
}

// EffectiveHiddenNumbers returns how users are verified whose number is hidden.
func (w *WhatsApp) EffectiveHiddenNumbers() HiddenNumbers {
	return cmp.Or(w.HiddenNumbers, HiddenNumbersRefuse)
}

// EffectiveTimeout returns how long one webhook attempt may take.
func (w *Webhook) EffectiveTimeout() time.Duration {
	return w.Timeout.Or(15 * time.Second)
}

// Secret returns the Secret key that holds the API key, or what its calls are
// signed with.
func (k *APIKey) Secret() SecretKeyRef { return ptr.Deref(k.SigningSecretRef, k.SecretRef) }

// IsTest reports whether the key makes requests of test numbers alone.
func (k *APIKey) IsTest() bool { return k.Mode == KeyModeTest }

// IsTest reports whether a request with the method is one of a test key.
func (m Method) IsTest() bool { return m == MethodTestWhatsApp || m == MethodTestTelegram }

// EffectiveScopes returns the scopes of the key.
func (k *APIKey) EffectiveScopes() []Scope {
	if k.Scopes == nil {
		return []Scope{ScopeInit, ScopeStatus}
	}
	return k.Scopes
}

// Ref returns r as a SecretKeyRef, with the default key if none is set.
func (r URISecretRef) Ref() SecretKeyRef {
	if r.Key == "" {
		return SecretKeyRef{Name: r.Name, Key: DefaultURIKey}
	}
	return SecretKeyRef(r)
}

// Ref returns r as a SecretKeyRef, with the default key if none is set.
func (r CASecretRef) Ref() SecretKeyRef {
	if r.Key == "" {
		return SecretKeyRef{Name: r.Name, Key: DefaultCAKey}
	}
	return SecretKeyRef(r)
}

// EffectiveInit returns the init data of r, from its spec or its status; nil for
// a manual request that is not completed yet.
func (r *VerificationRequest) EffectiveInit() *Init {
	if r.Spec.Init != nil {
		return r.Spec.Init
	}
	return r.Status.Init
}

// EffectiveResources returns the resources of each pod. Defaults never contradict
// set values: the default request is lowered to the limit, and the default limit
// is raised to the request.
func (s *Server) EffectiveResources() corev1.ResourceRequirements {
	requests, limits := ResourceAmounts{}, ResourceAmounts{}
	if s.Resources != nil {
		requests = ptr.Deref(s.Resources.Requests, ResourceAmounts{})
		limits = ptr.Deref(s.Resources.Limits, ResourceAmounts{})
	}
	if requests.CPU == nil {
		requests.CPU = minQuantity(&defaultCPURequest, limits.CPU)
	}
	if requests.Memory == nil {
		requests.Memory = minQuantity(&defaultMemoryRequest, limits.Memory)
	}
	if limits.Memory == nil {
		limits.Memory = new(defaultMemoryLimit)
		if requests.Memory.Cmp(*limits.Memory) > 0 {
			limits.Memory = requests.Memory
		}
	}
	return corev1.ResourceRequirements{Requests: requests.toResourceList(), Limits: limits.toResourceList()}
}

func (a ResourceAmounts) toResourceList() corev1.ResourceList {
	out := corev1.ResourceList{}
	if a.CPU != nil {
		out[corev1.ResourceCPU] = a.CPU.DeepCopy()
	}
	if a.Memory != nil {
		out[corev1.ResourceMemory] = a.Memory.DeepCopy()
	}
	return out
}

// minQuantity returns a, or limit if it is set and smaller.
func minQuantity(a, limit *resource.Quantity) *resource.Quantity {
	if limit != nil && limit.Cmp(*a) < 0 {
		return limit
	}
	return a
}

// SendsTestEvents reports whether the events of test keys are sent: to a receiver
// of their own, signed by a secret of their own.
func (w *Webhook) SendsTestEvents() bool { return w.TestURL != "" && w.TestSecretRef != nil }

// SecretRefs returns all Secret keys that the project refers to and its pods must
// mount, in a fixed order and without duplicates.
func (s *VerificationProjectSpec) SecretRefs() []SecretKeyRef {
	var refs []SecretKeyRef
	for _, k := range s.APIKeys {
		refs = append(refs, k.Secret())
	}
	if w := s.Webhook; w != nil {
		for _, r := range []*SecretKeyRef{w.SecretRef, w.PreviousSecretRef, w.TestSecretRef} {
			if r != nil {
				refs = append(refs, *r)
			}
		}
	}
	if w := s.WhatsApp; w != nil {
		refs = append(refs, w.AccessTokenSecretRef, w.AppSecretRef)
	}
	if t := s.Telegram; t != nil {
		refs = append(refs, t.BotTokenSecretRef)
		if t.Codes != nil {
			refs = append(refs, t.Codes.GatewayTokenSecretRef)
		}
	}
	if p := s.Storage.PostgreSQL; p != nil && s.Storage.Type == StoragePostgreSQL {
		refs = append(refs, p.URISecretRef.Ref())
		if p.CASecretRef != nil {
			refs = append(refs, p.CASecretRef.Ref())
		}
	}
	seen := make(map[SecretKeyRef]bool, len(refs))
	unique := refs[:0]
	for _, r := range refs {
		if !seen[r] {
			seen[r] = true
			unique = append(unique, r)
		}
	}
	return unique
}
