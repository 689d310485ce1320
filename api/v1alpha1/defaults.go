package v1alpha1

import "reflect"

// Default values of unset fields, in Default and in the schema of the CRDs.
const (
	DefaultTTL                    Duration = "10m"
	DefaultWebhookTimeout         Duration = "15s"
	DefaultPerPhoneNumberRequests int32    = 5
	DefaultPerPhoneNumberPeriod   Duration = "10m"
	DefaultMaxStored              int32    = 1500
	DefaultReplicas               int32    = 2
	DefaultMinReplicas            int32    = 2
	DefaultTargetCPUUtilization   int32    = 70
	DefaultMaxUnavailable         int32    = 1
	DefaultURIKey                          = "uri"
	DefaultCAKey                           = "ca.crt"
	DefaultObservedGeneration     int64    = -1
	DefaultMethod                          = MethodWhatsApp
	DefaultPhase                           = PhasePending
	DefaultStorageType                     = StorageKubernetes
	DefaultServiceType                     = ServiceClusterIP
	DefaultSendReplies                     = SendRepliesAlways
	DefaultAssuranceLevel                  = AssuranceLevelPossession
	DefaultDeclineCooldown        Duration = "1h"
)

// Default sets unset fields exactly as the API server does. Fields whose default
// depends on other fields stay unset in both, and so do fields within lists, whose
// defaults would be differences to tools that compare a list as one value; see the
// methods in effective.go.
func (p *VerificationProject) Default() {
	s := &p.Spec
	if s.Webhook != nil {
		setDefault(&s.Webhook.Timeout, DefaultWebhookTimeout)
		if s.Webhook.Events == nil {
			s.Webhook.Events = []Event{EventSuccess}
		}
	}
	if s.Replies != nil {
		setDefault(&s.Replies.Send, DefaultSendReplies)
	}
	if s.Assurance != nil {
		setDefault(&s.Assurance.Level, DefaultAssuranceLevel)
		setDefault(&s.Assurance.DeclineCooldown, DefaultDeclineCooldown)
	}
	s.Request.setDefaults()
	s.RateLimit.setDefaults()
	s.Storage.setDefaults()
	s.Server.setDefaults()
	setDefault(&s.Expose.Service.Type, DefaultServiceType)
	setUnobserved(&p.Status, &p.Status.ObservedGeneration)
}

// Default sets unset fields exactly as the API server does.
func (r *VerificationRequest) Default() {
	setDefault(&r.Spec.Method, DefaultMethod)
	setUnobserved(&r.Status, &r.Status.ObservedGeneration)
	setDefault(&r.Status.Phase, DefaultPhase)
}

func (s *RequestSettings) setDefaults() {
	setDefault(&s.TTL, DefaultTTL)
	setDefaultPtr(&s.MaxStored, DefaultMaxStored)
}

func (l *RateLimit) setDefaults() {
	setDefaultPtr(&l.PerPhoneNumber, Rate{Requests: DefaultPerPhoneNumberRequests, Period: DefaultPerPhoneNumberPeriod})
}

func (s *Storage) setDefaults() {
	setDefault(&s.Type, DefaultStorageType)
	if s.PostgreSQL != nil {
		setDefault(&s.PostgreSQL.URISecretRef.Key, DefaultURIKey)
		if s.PostgreSQL.CASecretRef != nil {
			setDefault(&s.PostgreSQL.CASecretRef.Key, DefaultCAKey)
		}
	}
}

func (s *Server) setDefaults() {
	setDefaultPtr(&s.Replicas, DefaultReplicas)
	if s.Autoscaling != nil {
		setDefaultPtr(&s.Autoscaling.MinReplicas, DefaultMinReplicas)
		setDefaultPtr(&s.Autoscaling.TargetCPUUtilization, DefaultTargetCPUUtilization)
	}
	if s.PodDisruptionBudget != nil {
		setDefaultPtr(&s.PodDisruptionBudget.MaxUnavailable, DefaultMaxUnavailable)
	}
}

// setUnobserved sets the observed generation of a status that was never written.
func setUnobserved[T any](status *T, observedGeneration *int64) {
	if reflect.ValueOf(status).Elem().IsZero() {
		*observedGeneration = DefaultObservedGeneration
	}
}

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setDefaultPtr[T any](field **T, value T) {
	if *field == nil {
		*field = new(value)
	}
}
