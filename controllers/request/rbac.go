package request

// What noting a wish in the project's status and telling of it takes.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
