package projectstatus

// Needed to read the former leader's conditions, to write the conditions, and to emit Events about them.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects,verbs=get
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
