package project

// The operator's rights: none on Secrets, none on VerificationRequests. It binds the project's pods to a role that it does not
// have itself, so it may bind these two by name, and no other.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects,verbs=get;list;watch
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=serviceaccounts;services,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;roles,resourceNames=phoneproof-server-kubernetes;phoneproof-server-postgresql,verbs=bind
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
