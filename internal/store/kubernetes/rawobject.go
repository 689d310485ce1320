package kubernetes

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// object is a VerificationRequest decoded only as far as the API server guarantees its form. One object with a spec or
// a status that our types cannot hold, for example after the schema changed, would otherwise break the decoding of the
// whole watch, and with it every other request.
type rawObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   json.RawMessage `json:"spec,omitempty"`
	Status json.RawMessage `json:"status,omitempty"`
}

type rawObjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []rawObject `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (o *rawObject) DeepCopyObject() runtime.Object {
	return &rawObject{
		TypeMeta: o.TypeMeta, ObjectMeta: *o.DeepCopy(), Spec: bytes.Clone(o.Spec), Status: bytes.Clone(o.Status),
	}
}

// DeepCopyObject implements runtime.Object.
func (l *rawObjectList) DeepCopyObject() runtime.Object {
	list := &rawObjectList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy(), Items: make([]rawObject, len(l.Items))}
	for i := range l.Items {
		list.Items[i] = *l.Items[i].DeepCopyObject().(*rawObject) //nolint:forcetypeassert // that is what it returns
	}
	return list
}

// codecs decode VerificationRequests into object.
func newCodecs() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(verifyv1.GroupVersion.WithKind(verifyv1.VerificationRequestKind), &rawObject{})
	scheme.AddKnownTypeWithName(verifyv1.GroupVersion.WithKind(verifyv1.VerificationRequestKind+"List"), &rawObjectList{})
	metav1.AddToGroupVersion(scheme, verifyv1.GroupVersion)
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}
