package v1alpha1

// Expose says how the API is reached. A Service is always made; Ingress and
// HTTPRoute lead only to the API, the messengers' callbacks and /openapi.json.
type Expose struct {
	// service that stands before the pods.
	// +optional
	// +kubebuilder:default={}
	Service ServiceSettings `json:"service,omitzero"`

	// ingress, when present, makes an Ingress. Needs host or baseURL.
	// Default: unset, none.
	// +optional
	Ingress *IngressSettings `json:"ingress,omitempty"`

	// httpRoute, when present, makes an HTTPRoute of the Gateway API, where the
	// cluster has that API. Default: unset, none.
	// +optional
	HTTPRoute *HTTPRouteSettings `json:"httpRoute,omitempty"`
}

// ServiceType is the type of the Service.
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type ServiceType string

const (
	// ServiceClusterIP is reachable inside the cluster only.
	ServiceClusterIP ServiceType = "ClusterIP"
	// ServiceNodePort is reachable on a port of every node.
	ServiceNodePort ServiceType = "NodePort"
	// ServiceLoadBalancer is reachable through a load balancer of the cloud.
	ServiceLoadBalancer ServiceType = "LoadBalancer"
)

// ServiceSettings shapes the Service.
type ServiceSettings struct {
	// type of the Service: ClusterIP, NodePort or LoadBalancer. The cluster's
	// administrator says which are allowed. Default: ClusterIP.
	// +optional
	// +kubebuilder:default=ClusterIP
	Type ServiceType `json:"type,omitempty"`

	// annotations of the Service. The cluster's administrator says which are
	// allowed. At most 16 entries, each value at most 4096 characters.
	// Default: unset, none.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(k, size(k) <= 317 && k.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))`,message="annotations must have keys like example.com/name: an optional lower-case domain and '/', then letters, digits, '-', '_' and '.'"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// IngressSettings shapes the Ingress.
type IngressSettings struct {
	// className is the IngressClass to use. Default: unset, the cluster's
	// default class. Example: nginx.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="className must be the name of an IngressClass: lower-case letters, digits, '-' and '.'"
	ClassName string `json:"className,omitempty"`

	// host that the Ingress answers to. Default: unset, the host of baseURL.
	// Example: verify.example.com. Required where baseURL is unset.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="host must be a DNS name in lower case, without port or wildcard, for example verify.example.com"
	Host Hostname `json:"host,omitempty"`

	// tlsSecretName is the Secret that holds the certificate for host, or into
	// which cert-manager writes it. Default: unset, the Ingress has no TLS
	// section. Example: verify-example-com-tls.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="tlsSecretName must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	TLSSecretName string `json:"tlsSecretName,omitempty"`

	// annotations of the Ingress. The cluster's administrator says which are
	// allowed; by default issuer and cluster-issuer of cert-manager.io, hostname
	// and ttl of external-dns.alpha.kubernetes.io. At most 16 entries, each value
	// at most 4096 characters.
	// Default: unset, none. Example: cert-manager.io/cluster-issuer: letsencrypt.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(k, size(k) <= 317 && k.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))`,message="annotations must have keys like example.com/name: an optional lower-case domain and '/', then letters, digits, '-', '_' and '.'"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// HTTPRouteSettings shapes the HTTPRoute.
type HTTPRouteSettings struct {
	// parentRefs are the Gateways, in this object's namespace, that the route
	// attaches to. 1 to 8 entries. Required.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ParentRefs []GatewayRef `json:"parentRefs"`

	// hostnames that the route answers to; a name may begin with "*.".
	// At most 16 entries. Default: unset, the host of baseURL, or every host of
	// the Gateway's listener where baseURL is unset too.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule=`self.all(h, h.matches(r'^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))`,message="hostnames must be DNS names in lower case, without a port, for example verify.example.com or *.example.com"
	Hostnames []Hostname `json:"hostnames,omitempty"`
}

// GatewayRef names a Gateway of the Gateway API in the object's own namespace.
type GatewayRef struct {
	// name of the Gateway. Example: public. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a Gateway: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`

	// sectionName is the Gateway's listener to attach to. Default: unset, every
	// listener that allows it. Example: https.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="sectionName must be the name of a listener: lower-case letters, digits, '-' and '.'"
	SectionName string `json:"sectionName,omitempty"`
}
