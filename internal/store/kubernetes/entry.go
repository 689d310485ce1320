package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Kind says what an object of the project is to a controller.
type Kind int

const (
	// KindRequest is a request like any other.
	KindRequest Kind = iota
	// KindIncomplete is a request made with kubectl that was not completed yet: nobody can verify it. See Complete.
	KindIncomplete
	// KindMalformed is an object that makes no sense. It is skipped everywhere; see Reject.
	KindMalformed
	// KindGone is an object that was deleted, or is about to be.
	KindGone
)

// MalformedError says that an object's content makes no request. To everybody but a controller the request does not
// exist, so it matches verification.ErrNotFound; it also matches verification.ErrContent, because trying again changes
// nothing.
type MalformedError struct {
	// Name is the object's.
	Name string
	Err  error
}

// Error names the object and what is wrong. It may quote the object's content, so it is for nobody's eyes but a log
// that is allowed to hold that; conditions carry Reason alone.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("object %s is malformed: %v", e.Name, e.Err)
}

// Unwrap makes the error match its cause and verification.ErrNotFound.
func (e *MalformedError) Unwrap() []error { return []error{verification.ErrNotFound, e.Err} }

// Is makes the error match verification.ErrContent.
func (e *MalformedError) Is(target error) bool { return target == verification.ErrContent }

// errIncomplete says that nobody has completed a request made with kubectl yet.
var errIncomplete = errors.New("the request is not completed yet")

// entry is one object as it is held in memory: read once, when it arrives, without managedFields. It is never changed
// after that. The embedded metadata is what informers key by.
type entry struct {
	metav1.ObjectMeta

	project string
	kind    Kind
	// object is nil where the content makes no sense.
	object *verifyv1.VerificationRequest
	// request is set where kind is KindRequest or, for who counts, was.
	request verification.Request
	// accepted is the condition Accepted, where there is one.
	accepted *metav1.Condition
	err      error
}

// typeMeta is what clients of client-go take off an object that they read, and the API server demands of one that they
// write.
var typeMeta = metav1.TypeMeta{APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationRequestKind}

// newEntry reads an object. It accepts any content.
func newEntry(o *object) *entry {
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
	err := errors.Join(unmarshal("spec", o.Spec, &typed.Spec), unmarshal("status", o.Status, &typed.Status))
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
func (e *entry) counted() verification.Counted {
	c := verification.Counted{ID: e.Name, KeyName: e.request.KeyName, Phone: e.request.Phone}
	if accepted := e.object.EffectiveInit(); accepted != nil {
		c.Subject = accepted.SubjectHash
	}
	return c
}

func unmarshal(field string, raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read %s: %w", field, err)
	}
	return nil
}

// answer returns the request for a caller, who may do with it what he likes.
func (e *entry) answer() (verification.Request, error) {
	switch e.kind {
	case KindRequest:
		r := e.request
		r.Contacts = slices.Clone(r.Contacts)
		return r, nil
	case KindMalformed:
		return verification.Request{}, e.err
	default:
		return verification.Request{}, verification.ErrNotFound
	}
}

// final tells whether the entry is a request that never changes its phase again.
func (e *entry) final() bool { return e.kind == KindRequest && e.request.Phase.Final() }

// newer tells whether a is a later state than b. Versions of one resource are ordered (KEP-5504); versions that are no
// numbers are an API server that breaks its own contract, and there nothing is newer than anything.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
