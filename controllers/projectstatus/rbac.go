package projectstatus

// What reading what the leader before left, writing the conditions, and telling of them takes.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects,verbs=get
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
