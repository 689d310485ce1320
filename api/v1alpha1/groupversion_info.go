package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of this group, as in the kind field of an object.
const (
	VerificationProjectKind = "VerificationProject"
	VerificationRequestKind = "VerificationRequest"
)

var (
	// GroupVersion is the group and version of every kind of this package.
	GroupVersion = schema.GroupVersion{Group: "phoneproof.dev", Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that the generated
	// apply configurations use.
	SchemeGroupVersion = GroupVersion

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers both kinds and their lists.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&VerificationProject{}, &VerificationProjectList{},
		&VerificationRequest{}, &VerificationRequestList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
