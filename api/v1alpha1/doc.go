// Package v1alpha1 holds the two custom resources of the group phoneproof.dev:
// VerificationProject, what a cluster administrator declares, and
// VerificationRequest, one verification of one phone number.
//
// Invariant: what the API server refuses, Validate refuses, and what it fills
// in, Default fills in, so that the same YAML means the same thing on a
// cluster and in a file given to "phoneproof serve --project-file". Every
// example under testdata runs through both.
//
// Second invariant: whatever the schema lets through decodes into these types.
// One object that does not would stop the informers of all others, so
// times and quantities carry patterns that are stricter than their formats.
//
// The package imports nothing of ours and needs no server.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="applyconfiguration"
// +groupName=phoneproof.dev
package v1alpha1
