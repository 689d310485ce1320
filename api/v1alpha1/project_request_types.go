package v1alpha1

// RequestSettings bounds the life of one verification request.
type RequestSettings struct {
	// ttl is how long the user has to send the message before the request
	// expires. 1m to 1h. Default: 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('1h')`,message="ttl must be a duration between 1m and 1h, for example 10m"
	TTL Duration `json:"ttl,omitempty"`

	// retention is how long a finished request is kept, and can be asked for,
	// from its end, or from that of its event's delivery. It must cover the
	// longest period of rateLimit. 1m to 168h (7 days) with storage Kubernetes,
	// to 720h (30 days) with PostgreSQL. Default: unset, which means 1h with
	// Kubernetes and 24h with PostgreSQL.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('720h')`,message="retention must be a duration between 1m and 720h (30 days; 168h with storage Kubernetes), for example 24h"
	Retention Duration `json:"retention,omitempty"`

	// maxStored is how many requests of this project may be stored at once with
	// storage Kubernetes, in objects of every phase. Above it the oldest
	// finished ones are deleted early, and then new ones are refused. It is not
	// used with PostgreSQL. 1 to 10000. Default: 1500, the number of objects
	// per namespace that Kubernetes is tested with.
	// +optional
	// +kubebuilder:default=1500
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxStored *int32 `json:"maxStored,omitempty"`
}

// Rate is a number of requests in a sliding period of time.
type Rate struct {
	// requests is how many requests may be started within one period.
	// 1 to 1000000. Example: 600. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Requests int32 `json:"requests"`

	// period is the length of the sliding window. 1s to 24h, and not longer
	// than request.retention. Example: 1m. Required.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')`,message="period must be a duration between 1s and 24h, for example 10m"
	Period Duration `json:"period"`
}

// PrefixRate is a number of requests in a sliding period of time, for all phone
// numbers that begin with the same digits.
type PrefixRate struct {
	// digits is how many digits of the number decide, those of the country code
	// included: with 6, +49 1512 3456789 counts for 491512. Numbers with fewer
	// digits count for themselves. 1 to 9: more would be the number of one person,
	// stored beside it for as long as period. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Digits int32 `json:"digits"`

	// requests is how many requests may be started within one period.
	// 1 to 10000. Example: 100. Required.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Requests int32 `json:"requests"`

	// period is the length of the sliding window. 1s to 24h, and not longer
	// than request.retention. Example: 10m. Required.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')`,message="period must be a duration between 1s and 24h, for example 10m"
	Period Duration `json:"period"`
}

// RateLimit bounds how many requests are started. Above a limit the API
// answers 429 with Retry-After.
type RateLimit struct {
	// perKey bounds the requests that one API key may start. Default: unset,
	// which means with storage Kubernetes that the keys with scope Init share
	// request.maxStored: maxStored / the number of these keys, or half of it for a
	// single one, in the ttl + 5m for which a request may stay stored (one or two
	// keys: 750 each in 15m; five: 300). So no key takes another's room while
	// events are delivered; undelivered ones stay. And 600 in 1m with PostgreSQL.
	// +optional
	PerKey *Rate `json:"perKey,omitempty"`

	// perPhoneNumber bounds the requests for one phone number, whichever key
	// starts them. Default: 5 requests in 10m.
	// +optional
	// +kubebuilder:default={requests: 5, period: "10m"}
	PerPhoneNumber *Rate `json:"perPhoneNumber,omitempty"`

	// perPrefix bounds the requests that one API key starts for all phone numbers
	// that begin with the same digits: a flood of sign-ups mostly has its numbers
	// from one range. Requests made with kubectl are counted like those of one
	// more key. Default: unset, no such limit.
	// +optional
	PerPrefix *PrefixRate `json:"perPrefix,omitempty"`

	// perSubject bounds the requests that one API key starts for one subject:
	// what the client sends in the field subject of init. It must be something
	// that its user cannot renew for free: the user's id or, before there is one,
	// the IPv4 address or the IPv6 /64 that the client's own proxy saw; not a
	// session, a cookie or a header that the user sends. Where it is set, init
	// without a subject is refused with 400. requests is at most 10000. Default:
	// unset, no such limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.requests <= 10000",message="requests must be between 1 and 10000 for a subject",fieldPath=".requests"
	PerSubject *Rate `json:"perSubject,omitempty"`
}

// StorageType is where requests are kept.
// +kubebuilder:validation:Enum=Kubernetes;PostgreSQL
type StorageType string

const (
	// StorageKubernetes keeps requests as VerificationRequest objects.
	StorageKubernetes StorageType = "Kubernetes"
	// StoragePostgreSQL keeps requests in a PostgreSQL database.
	StoragePostgreSQL StorageType = "PostgreSQL"
)

// Storage says where requests are kept.
//
// type may be changed: it is how a project moves to PostgreSQL when it grows.
// Requests in the old store are not carried over, so change it when no
// request is pending and no webhook is due.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'PostgreSQL' || has(self.postgresql)",message="postgresql is required with type PostgreSQL; set postgresql.uriSecretRef",fieldPath=".postgresql"
// +kubebuilder:validation:XValidation:rule="self.type == 'PostgreSQL' || !has(self.postgresql)",message="postgresql is only for type PostgreSQL; set type to PostgreSQL, or remove postgresql",fieldPath=".postgresql"
type Storage struct {
	// type is Kubernetes (VerificationRequest objects; nothing else to install;
	// about 5 verifications a second, sustained) or PostgreSQL (for more).
	// Requests are not carried over when it changes. Default: Kubernetes.
	// +optional
	// +kubebuilder:default=Kubernetes
	Type StorageType `json:"type,omitempty"`

	// postgresql says which database. Required with type PostgreSQL, and not
	// allowed with any other.
	// +optional
	PostgreSQL *PostgreSQL `json:"postgresql,omitempty"`
}

// PostgreSQL is a database that speaks PostgreSQL's protocol.
type PostgreSQL struct {
	// uriSecretRef names the Secret key that holds the connection URI of the
	// primary, postgresql://USER:PASSWORD@HOST:PORT/DATABASE. The connection is
	// unencrypted only if sslmode in it says so. Every row that the user may
	// reach is open to who knows the URI: projects that must not trust each
	// other need a user and a schema each. The tables are made and migrated by
	// PhoneProof. Required.
	// +required
	URISecretRef URISecretRef `json:"uriSecretRef"`

	// caSecretRef names the Secret key that holds the certificates of the
	// authorities, in PEM form, of which one must have signed the server's
	// certificate. It takes the place of sslrootcert in the URI. sslmode counts
	// as the URI has it, and disable, allow and prefer check nothing; where the
	// URI has none, it is verify-full. Default: unset, the server is checked as
	// the URI says.
	// +optional
	CASecretRef *CASecretRef `json:"caSecretRef,omitempty"`
}
