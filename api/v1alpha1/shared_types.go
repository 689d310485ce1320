package v1alpha1

// SecretKeyRef names one key of one Secret in the object's own namespace.
// There is no field for another namespace: the namespace is the trust boundary.
type SecretKeyRef struct {
	// name of the Secret, in the namespace of this object. The Secret may be
	// created later; until then the condition SecretsReady names it.
	// Example: shop-credentials. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a Secret: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	Name string `json:"name"`

	// key inside the Secret whose value is used. One newline at the end of the
	// value is ignored. Example: api-key. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$')`,message="key must be a key of a Secret: letters, digits, '-', '_' and '.', and must not begin with '..'"
	Key string `json:"key"`
}

// ConfigMapKeyRef names one key of one ConfigMap in the object's own namespace.
type ConfigMapKeyRef struct {
	// name of the ConfigMap, in the namespace of this object. It may be created
	// later. Example: shop-page. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a ConfigMap: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	Name string `json:"name"`

	// key inside the ConfigMap, of its binaryData or data. Example: logo.png.
	// Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$')`,message="key must be a key of a ConfigMap: letters, digits, '-', '_' and '.', and must not begin with '..'"
	Key string `json:"key"`
}

// URISecretRef names the key of a Secret that holds a connection URI. It is a
// SecretKeyRef whose key has a default.
type URISecretRef struct {
	// name of the Secret, in the namespace of this object. Example: shop-db-app,
	// as CloudNativePG makes it for a cluster shop-db. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a Secret: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	Name string `json:"name"`

	// key inside the Secret that holds the URI. Default: uri, the key that
	// CloudNativePG and other operators use.
	// +optional
	// +default="uri"
	// +kubebuilder:default=uri
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$')`,message="key must be a key of a Secret: letters, digits, '-', '_' and '.', and must not begin with '..'"
	Key string `json:"key,omitempty"`
}

// CASecretRef names the key of a Secret that holds certificates of authorities.
// It is a SecretKeyRef whose key has a default.
type CASecretRef struct {
	// name of the Secret, in the namespace of this object. Example: shop-db-ca,
	// as CloudNativePG makes it for a cluster shop-db. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a Secret: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	Name string `json:"name"`

	// key inside the Secret that holds one or more certificates in PEM form.
	// Default: ca.crt, the key that CloudNativePG and cert-manager use.
	// +optional
	// +default="ca.crt"
	// +kubebuilder:default=ca.crt
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$')`,message="key must be a key of a Secret: letters, digits, '-', '_' and '.', and must not begin with '..'"
	Key string `json:"key,omitempty"`
}

// AnnotationValue is the value of one annotation.
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// LabelValue is the value of one label.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// Hostname is a DNS name in lower case. Example: verify.example.com.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type Hostname string

// Strings returns a map of a bounded string type as a plain map, the form that
// Kubernetes' own types want. It returns nil for an empty map.
func Strings[V ~string](in map[string]V) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}
