package v1alpha1

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

const retentionMessage = "retention must be a duration between 1m and 720h (30 days; 168h with storage Kubernetes), for example 24h"

// Validate returns the errors that the API server would return for a new project,
// for use without one. Call Default first. It does not check the content of
// Kubernetes types (tolerations, affinity, topologySpreadConstraints, peers),
// which is not used without a cluster.
func (p *VerificationProject) Validate() field.ErrorList {
	errs := validateMeta(&p.ObjectMeta)
	return append(errs, p.Spec.validateFields(field.NewPath("spec"))...)
}

// ValidateUpdate returns the errors that the API server would return if p
// replaced old.
func (p *VerificationProject) ValidateUpdate(old *VerificationProject) field.ErrorList {
	errs := p.Validate()
	if p.Spec.ProjectID != old.Spec.ProjectID {
		errs = append(errs, field.Invalid(field.NewPath("spec", "projectID"), p.Spec.ProjectID,
			"projectID is immutable, whether set or unset: receivers of webhooks know the project by it; "+
				"create a new VerificationProject instead"))
	}
	return errs
}

// Validate returns the errors that the API server would return for a new request.
// It ignores the status, which only PhoneProof writes.
func (r *VerificationRequest) Validate() field.ErrorList {
	errs := validateMeta(&r.ObjectMeta)
	return append(errs, r.Spec.validateFields(field.NewPath("spec"))...)
}

// ValidateUpdate returns the errors that the API server would return if r
// replaced old.
func (r *VerificationRequest) ValidateUpdate(old *VerificationRequest) field.ErrorList {
	errs := r.Validate()
	if !equalRequestSpec(&r.Spec, &old.Spec) {
		errs = append(errs, field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			"spec is immutable; create another VerificationRequest instead"))
	}
	return errs
}

func equalRequestSpec(a, b *VerificationRequestSpec) bool {
	x, y := ptr.Deref(a.Init, Init{}), ptr.Deref(b.Init, Init{})
	return a.ProjectRef == b.ProjectRef && a.PhoneNumber == b.PhoneNumber && a.Method == b.Method &&
		(a.Init == nil) == (b.Init == nil) &&
		x.CreatedAt.Equal(&y.CreatedAt) && x.ExpiresAt.Equal(&y.ExpiresAt) &&
		x.KeyName == y.KeyName && x.BodyHash == y.BodyHash && x.SubjectHash == y.SubjectHash && x.DisplayName == y.DisplayName &&
		x.ReturnURL == y.ReturnURL && slices.Equal(x.OtherMethods, y.OtherMethods) &&
		x.Assurance == y.Assurance && x.Purpose == y.Purpose && x.Browser == y.Browser && x.Deliver == y.Deliver && x.Creator == y.Creator &&
		a.Reference == b.Reference && a.Locale == b.Locale && maps.Equal(a.Metadata, b.Metadata)
}

func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if meta.Name == "" {
		return field.ErrorList{field.Required(path, "name or generateName is required")}
	}
	var errs field.ErrorList
	for _, message := range validation.NameIsDNSSubdomain(meta.Name, false) {
		errs = append(errs, field.Invalid(path, meta.Name, message))
	}
	return errs
}

func (s *VerificationProjectSpec) validateFields(path *field.Path) field.ErrorList {
	errs := projectIDRule.checkOptional(path.Child("projectID"), s.ProjectID)
	errs = append(errs, displayNameRule.checkOptional(path.Child("displayName"), s.DisplayName)...)
	errs = append(errs, baseURLRule.checkOptional(path.Child("baseURL"), s.BaseURL)...)
	errs = append(errs, validateAPIKeys(path.Child("apiKeys"), s.APIKeys)...)
	errs = append(errs, s.Webhook.validateFields(path.Child("webhook"))...)
	errs = append(errs, s.WhatsApp.validateFields(path.Child("whatsapp"))...)
	errs = append(errs, s.Telegram.validateFields(path.Child("telegram"))...)
	errs = append(errs, s.Replies.validateFields(path.Child("replies"))...)
	errs = append(errs, validateTexts(path.Child("texts"), s.Texts)...)
	errs = append(errs, s.Page.validateFields(path.Child("page"))...)
	errs = append(errs, s.Assurance.validateFields(path.Child("assurance"))...)
	errs = append(errs, validatePurposes(path.Child("purposes"), s.Purposes)...)
	errs = append(errs, s.Request.validateFields(path.Child("request"))...)
	errs = append(errs, s.RateLimit.validateFields(path.Child("rateLimit"))...)
	errs = append(errs, s.Storage.validateFields(path.Child("storage"))...)
	errs = append(errs, s.Server.validateFields(path.Child("server"))...)
	errs = append(errs, s.Expose.validateFields(path.Child("expose"))...)
	errs = append(errs, s.NetworkPolicy.validateFields(path.Child("networkPolicy"))...)
	errs = append(errs, s.validateAddresses(path)...)
	errs = append(errs, s.validateMessages(path)...)
	errs = append(errs, s.validatePage(path)...)
	errs = append(errs, s.validateAssurance(path)...)
	errs = append(errs, s.validateCodes(path)...)
	return append(errs, s.validateRetention(path)...)
}

// validateAddresses checks the rules between messengers and baseURL.
func (s *VerificationProjectSpec) validateAddresses(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.WhatsApp == nil && s.Telegram == nil {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"whatsapp or telegram must be set, or both: without a messenger no number can be verified"))
	}
	if s.Telegram != nil && s.Telegram.Updates == TelegramUpdatesWebhook && !s.HasHTTPSBaseURL() {
		errs = append(errs, field.Invalid(path.Child("telegram", "updates"), s.Telegram.Updates,
			"telegram.updates: Webhook needs a baseURL that begins with https://; set baseURL, or use Polling"))
	}
	if s.WhatsApp != nil && ptr.Deref(s.WhatsApp.RegisterWebhook, false) && !s.HasHTTPSBaseURL() {
		errs = append(errs, field.Invalid(path.Child("whatsapp", "registerWebhook"), true,
			"whatsapp.registerWebhook needs a baseURL that begins with https://; set baseURL, "+
				"or set registerWebhook to false and register the callback by hand"))
	}
	if in := s.Expose.Ingress; in != nil && in.Host == "" && s.BaseURL == "" {
		errs = append(errs, field.Invalid(path.Child("expose", "ingress"), field.OmitValueType{},
			"expose.ingress needs a host: set expose.ingress.host, or set baseURL, whose host is then used"))
	}
	return errs
}

// validateMessages checks the rules between WhatsApp, replies and stored requests.
func (s *VerificationProjectSpec) validateMessages(path *field.Path) field.ErrorList {
	w := s.WhatsApp
	if w == nil {
		return nil
	}
	var errs field.ErrorList
	mayAsk := !ptr.Deref(w.AcceptAnyText, false) || w.EffectiveHiddenNumbers() != HiddenNumbersRefuse
	if s.EffectiveSendReplies() == SendRepliesNever && mayAsk {
		errs = append(errs, field.Invalid(path.Child("replies", "send"), s.Replies.Send,
			"replies.send: Never needs whatsapp.acceptAnyText: true and whatsapp.hiddenNumbers: Refuse: "+
				"otherwise WhatsApp users are asked by messages; set them so, or use OnTrouble"))
	}
	if w.SilentAfter.Or(0) > s.longestSilence() {
		errs = append(errs, field.Invalid(path.Child("whatsapp", "silentAfter"), w.SilentAfter,
			"whatsapp.silentAfter must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL) "+
				"and request.ttl together: deleted requests show no silence; shorten it, or raise request.retention"))
	}
	return errs
}

// validateRetention checks the rules between retention, storage and limits:
// deleted requests cannot be counted.
func (s *VerificationProjectSpec) validateRetention(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	retention := s.EffectiveRetention()
	if s.Storage.Type == StorageKubernetes && retention > MaxRetentionKubernetes {
		errs = append(errs, field.Invalid(path.Child("request", "retention"), s.Request.Retention,
			"request.retention must be at most 168h (7 days) with storage.type Kubernetes; shorten it, or use PostgreSQL"))
	}
	for _, limit := range []struct {
		name string
		rate *Rate
	}{
		{"perKey", s.RateLimit.PerKey}, {"perPhoneNumber", s.RateLimit.PerPhoneNumber},
		{"perPrefix", s.RateLimit.PerPrefix.toRate()}, {"perSubject", s.RateLimit.PerSubject},
	} {
		if limit.rate != nil && limit.rate.Period.Or(0) > retention {
			errs = append(errs, field.Invalid(path.Child("rateLimit", limit.name, "period"), limit.rate.Period,
				"rateLimit."+limit.name+".period must not be longer than request.retention (unset: 1h with Kubernetes, 24h with PostgreSQL): "+
					"deleted requests cannot be counted; raise request.retention or shorten the period"))
		}
	}
	return errs
}

func (s *RequestSettings) validateFields(path *field.Path) field.ErrorList {
	errs := checkDuration(path.Child("ttl"), s.TTL, time.Minute, time.Hour,
		"ttl must be a duration between 1m and 1h, for example 10m")
	errs = append(errs, checkDuration(path.Child("retention"), s.Retention, time.Minute, MaxRetentionPostgreSQL, retentionMessage)...)
	return append(errs, checkUpTo(path.Child("maxStored"), s.MaxStored, 10000)...)
}

func (l *RateLimit) validateFields(path *field.Path) field.ErrorList {
	errs := l.PerKey.validateFields(path.Child("perKey"))
	errs = append(errs, l.PerPhoneNumber.validateFields(path.Child("perPhoneNumber"))...)
	errs = append(errs, l.PerPrefix.validateFields(path.Child("perPrefix"))...)
	errs = append(errs, l.PerSubject.validateFields(path.Child("perSubject"))...)
	if l.PerSubject != nil && l.PerSubject.Requests > 10_000 {
		errs = append(errs, field.Invalid(path.Child("perSubject", "requests"), l.PerSubject.Requests,
			"requests must be between 1 and 10000 for a subject"))
	}
	return errs
}

// toRate returns r without its digits; nil if r is nil.
func (r *PrefixRate) toRate() *Rate {
	if r == nil {
		return nil
	}
	return &Rate{Requests: r.Requests, Period: r.Period}
}

func (r *PrefixRate) validateFields(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := checkUpTo(path.Child("digits"), &r.Digits, 9)
	errs = append(errs, checkUpTo(path.Child("requests"), &r.Requests, 10_000)...)
	return append(errs, validatePeriod(path.Child("period"), r.Period)...)
}

func (r *Rate) validateFields(path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := checkUpTo(path.Child("requests"), &r.Requests, 1_000_000)
	return append(errs, validatePeriod(path.Child("period"), r.Period)...)
}

func validatePeriod(path *field.Path, period Duration) field.ErrorList {
	const message = "period must be a duration between 1s and 24h, for example 10m"
	if period == "" {
		return field.ErrorList{field.Required(path, message)}
	}
	return checkDuration(path, period, time.Second, 24*time.Hour, message)
}

func (s *Storage) validateFields(path *field.Path) field.ErrorList {
	errs := checkOneOf(path.Child("type"), s.Type, StorageKubernetes, StoragePostgreSQL)
	switch {
	case s.Type == StoragePostgreSQL && s.PostgreSQL == nil:
		errs = append(errs, field.Invalid(path.Child("postgresql"), field.OmitValueType{},
			"postgresql is required with type PostgreSQL; set postgresql.uriSecretRef"))
	case s.Type != StoragePostgreSQL && s.PostgreSQL != nil:
		errs = append(errs, field.Invalid(path.Child("postgresql"), field.OmitValueType{},
			"postgresql is only for type PostgreSQL; set type to PostgreSQL, or remove postgresql"))
	}
	if s.PostgreSQL != nil {
		errs = append(errs, s.PostgreSQL.validateFields(path.Child("postgresql"))...)
	}
	return errs
}

func (p *PostgreSQL) validateFields(path *field.Path) field.ErrorList {
	errs := p.URISecretRef.Ref().validateFields(path.Child("uriSecretRef"))
	if p.CASecretRef != nil {
		errs = append(errs, p.CASecretRef.Ref().validateFields(path.Child("caSecretRef"))...)
	}
	return errs
}
