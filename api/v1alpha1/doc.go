// Package v1alpha1 holds the two custom resources of the group phoneproof.dev:
// VerificationProject, the configuration of a server, and VerificationRequest,
// one verification of one phone number.
//
// Invariant: Validate and Default do exactly what the API server does, so that
// the same YAML has the same meaning in a cluster and in a file for "phoneproof
// serve --project-file". Every example under testdata is tested with both.
//
// Second invariant: every object that the schema accepts can be decoded into these
// types. A single one that cannot would stop the informers of all others, so times
// and quantities have patterns that are stricter than their formats.
//
// The package imports no other package of this module and needs no server.
//
// +kubebuilder:object:generate=true
// +groupName=phoneproof.dev
package v1alpha1
