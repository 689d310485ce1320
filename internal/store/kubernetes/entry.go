package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Kind is what an object of the project is to a controller.
type Kind int

const (
	// KindRequest is a request like any other.
	KindRequest Kind = iota
	// KindIncomplete is a manual request that is not completed yet and cannot be verified. See CompleteManual.
	KindIncomplete
	// KindMalformed is an object whose content is no request. It is skipped everywhere; see RejectManual.
	KindMalformed
	// KindGone is an object that was deleted, or is about to be.
	KindGone
)

// MalformedError means that an object's content is no request. Except to controllers the request does not exist, so the error
// matches verification.ErrNotFound. It also matches verification.ErrContent, because a retry does not help.
type MalformedError struct {
	// Name is the object's.
	Name string
	Err  error
}

// Error names the object and what is wrong. It may quote the object's content, so it is only for logs that may hold that;
// conditions have the reason alone.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("object %s is malformed: %v", e.Name, e.Err)
}

// Unwrap makes the error match its cause and verification.ErrNotFound.
func (e *MalformedError) Unwrap() []error { return []error{verification.ErrNotFound, e.Err} }

// Is makes the error match verification.ErrContent.
func (e *MalformedError) Is(target error) bool { return target == verification.ErrContent }

// errIncomplete means that a manual request is not completed yet.
var errIncomplete = errors.New("the request is not completed yet")

// entry is an object as it is held in memory: decoded once, without managedFields, and never changed. Informers key it by the
// embedded metadata.
type entry struct {
	metav1.ObjectMeta

	project string
	kind    Kind
	// object is nil if the content is malformed.
	object *verifyv1.VerificationRequest
	// request is set if kind is KindRequest, or was before the deletion.
	request verification.Request
	// accepted is the condition Accepted, if there is one.
	accepted *metav1.Condition
	err      error
}

// typeMeta is required of objects that are written. Clients of client-go remove it from those that they read.
var typeMeta = metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationRequestKind}

// newEntry decodes an object, with any content.
func newEntry(o *rawObject) *entry {
	e := &entry{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: o.Labels,
		Generation:        o.Generation,
		DeletionTimestamp: o.DeletionTimestamp, CreationTimestamp: o.CreationTimestamp, Finalizers: o.Finalizers,
	}}
	typed := &verifyv1.VerificationRequest{TypeMeta: typeMeta, ObjectMeta: *o.DeepCopy()}
	typed.ManagedFields = nil
	var ref struct {
		ProjectRef verifyv1.ProjectRef `json:"projectRef"`
	}
	if json.Unmarshal(o.Spec, &ref) == nil {
		e.project = ref.ProjectRef.Name
	}
	err := errors.Join(unmarshalField("spec", o.Spec, &typed.Spec), unmarshalField("status", o.Status, &typed.Status))
	if err == nil {
		e.request, err = toRequest(typed)
	}
	var seen struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if json.Unmarshal(o.Status, &seen) == nil {
		e.accepted = meta.FindStatusCondition(seen.Conditions, verifyv1.ConditionAccepted)
	}
	switch {
	case errors.Is(err, errIncomplete):
		e.kind, e.object = KindIncomplete, typed
	case err != nil:
		e.kind, e.err = KindMalformed, &MalformedError{Name: o.Name, Err: err}
	default:
		e.object = typed
	}
	if o.DeletionTimestamp != nil {
		e.kind = KindGone
	}
	return e
}

// counted returns the creation as limits count it.
func (e *entry) countedCreation() verification.Counted {
	c := verification.Counted{ID: e.Name, KeyName: e.request.KeyName, Phone: e.request.Phone, Test: e.request.Test}
	if accepted := e.object.EffectiveInit(); accepted != nil {
		c.Subject = accepted.SubjectHash
	}
	return c
}

func unmarshalField(field string, raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read %s: %w", field, err)
	}
	return nil
}

// toRequest returns the request as a copy of the caller's own.
func (e *entry) toRequest() (verification.Request, error) {
	switch e.kind {
	case KindRequest:
		return e.request.Clone(), nil
	case KindMalformed:
		return verification.Request{}, e.err
	default:
		return verification.Request{}, verification.ErrNotFound
	}
}

// requestOf returns the request of the object that a read returned, or the error of the read.
func requestOf(e *entry, err error) (verification.Request, error) {
	if err != nil {
		return verification.Request{}, err
	}
	return e.toRequest()
}

// isTest reports whether the entry is a request of a test key; false for nil.
func (e *entry) isTest() bool { return e != nil && e.request.Test }

// isFinal reports whether the entry is a request that never changes its phase again.
func (e *entry) isFinal() bool { return e.kind == KindRequest && e.request.Phase.Final() }

// isNewer reports whether a is a later version than b. Versions of one resource are ordered (KEP-5504). If an API server breaks
// that contract by versions that are no numbers, none is newer than another.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
