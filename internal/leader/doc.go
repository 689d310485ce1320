// Package leader elects the one replica of a project that does what only one may do: move requests on in the
// Kubernetes store, look after the messengers, write conditions. A replica that loses the lease tries again to get it; the process
// goes on answering.
//
// Invariants: the work of a term ends before its lease is given up on purpose, and HeldSafely reports, by the monotonic clock and
// before each side effect, whether the lease was renewed recently enough that no other replica can hold it.
package leader

// What a campaign takes.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;update
