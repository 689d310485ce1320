package kubernetes

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// ManualRequest is a manual request that waits for its completion.
type ManualRequest struct {
	Name   string
	Phone  phone.Number
	Method verification.Method
	// Locale is the language of the texts for the user; empty for the project's own.
	Locale string
}

// Completion holds the fields that a manual request lacks.
type Completion struct {
	// CodeID is the id that the code in Text leads to.
	CodeID string
	// Text is the text that the user sends, and Link opens it in the messenger. Both are removed when the request is final.
	Text, Link string
	TTL        time.Duration
	// DisplayName is the project's name in Text.
	DisplayName string
}

// ReadManual returns the request with that name as it is now, verification.ErrNotFound if it does not wait for completion.
func (s *Store) ReadManual(ctx context.Context, name string) (ManualRequest, error) {
	e, err := s.readObject(ctx, name)
	switch {
	case err != nil:
		return ManualRequest{}, fmt.Errorf("read request: %w", err)
	case e.kind == KindMalformed:
		return ManualRequest{}, e.err
	case e.kind != KindIncomplete:
		return ManualRequest{}, verification.ErrNotFound
	}
	number, err := phone.FromE164(e.object.Spec.PhoneNumber)
	if err != nil {
		return ManualRequest{}, fmt.Errorf("read phone number: %w", err)
	}
	return ManualRequest{
		Name: e.Name, Phone: number, Method: methods[e.object.Spec.Method], Locale: e.object.Spec.Locale,
	}, nil
}

// CompleteManual makes a manual request like any other, stamped by the store's clock, if the limits but PerKey and PerSubject
// admit it. It costs two writes: the label that leads from the code to the object, and then the status with the code, so that
// no code is shown that leads nowhere. A request that is already complete is returned as it is.
func (s *Store) CompleteManual(ctx context.Context, name string, c Completion, limits verification.Limits) (verification.Request, error) {
	unlock, err := s.locks.lock(ctx, name)
	if err != nil {
		return verification.Request{}, fmt.Errorf("wait for lock: %w", err)
	}
	defer unlock()
	e, err := s.readObject(ctx, name)
	if err != nil {
		return verification.Request{}, fmt.Errorf("read request: %w", err)
	}
	if e.kind != KindIncomplete {
		return e.toRequest()
	}
	number, err := phone.FromE164(e.object.Spec.PhoneNumber)
	if err != nil {
		return verification.Request{}, fmt.Errorf("read phone number: %w", err)
	}
	limits.PerKey = verification.Rate{}
	a := admission{Counted: verification.Counted{ID: name, Phone: number}, limits: limits}
	now, _, err := s.admitCreation(ctx, a)
	if err != nil {
		return verification.Request{}, fmt.Errorf("admit request: %w", err)
	}
	done, err := s.completeManual(ctx, e, c, now)
	if err != nil {
		// If it happened nevertheless, the watch brings it, and then it counts.
		s.limits.undoAdmission(a, now)
		return verification.Request{}, preferContextError(ctx, err)
	}
	return done.toRequest()
}

func (s *Store) completeManual(ctx context.Context, e *entry, c Completion, now time.Time) (*entry, error) {
	owner, err := s.projectReference()
	if err != nil {
		return nil, fmt.Errorf("refer to project: %w", err)
	}
	metadata := map[string]any{
		"resourceVersion": e.ResourceVersion,
		"labels": map[string]string{
			verifyv1.ProjectLabel: verifyv1.ProjectLabelValue(s.api.project), verifyv1.CodeIDLabel: c.CodeID,
		},
		"ownerReferences": addOwner(e.object.OwnerReferences, owner),
	}
	labelled, err := s.api.patchMetadata(ctx, e.Name, metadata)
	if err != nil {
		return nil, fmt.Errorf("set label and owner: %w", err)
	}
	if labelled.kind != KindIncomplete {
		return nil, verification.ErrConflict
	}
	o := labelled.object.DeepCopy()
	o.Status.Phase = verifyv1.PhasePending
	o.Status.Init = &verifyv1.Init{
		CreatedAt: metav1.NewMicroTime(now), ExpiresAt: metav1.NewMicroTime(verification.TruncateTime(now.Add(c.TTL))),
		DisplayName: c.DisplayName,
	}
	o.Status.ExpectedText, o.Status.Link = c.Text, c.Link
	setAccepted(&o.Status.Conditions, metav1.ConditionTrue, verifyv1.ReasonAccepted, "", now)
	r, err := toRequest(o)
	if err != nil {
		return nil, fmt.Errorf("complete request: %w", err)
	}
	setConditions(o, &r, now)
	done, err := s.api.putStatus(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("store completion: %w", err)
	}
	s.ownWrites.recordWrite(done)
	s.limits.replaceStored(done)
	return done, nil
}

// addOwner returns the references, with ours among them.
func addOwner(references []metav1.OwnerReference, ours metav1.OwnerReference) []metav1.OwnerReference {
	for _, r := range references {
		if r.UID == ours.UID {
			return references
		}
	}
	return append(references, ours)
}

// RejectManual marks an incomplete or malformed object with Accepted=False. A second time it writes nothing. An object that
// became a request, or was deleted, is not changed. If the API server refuses even that for the object's content, the error
// matches verification.ErrContent.
func (s *Store) RejectManual(ctx context.Context, name, reason, message string) error {
	e, err := s.readObject(ctx, name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if e.kind != KindIncomplete && e.kind != KindMalformed {
		return nil
	}
	if e.accepted != nil && e.accepted.Status == metav1.ConditionFalse && e.accepted.Reason == reason && e.accepted.Message == message {
		return nil
	}
	var conditions []metav1.Condition
	if e.object != nil {
		conditions = e.object.DeepCopy().Status.Conditions
	}
	now := s.now()
	setAccepted(&conditions, metav1.ConditionFalse, reason, message, now)
	setProgressOfRefused(&conditions, reason, message, now)
	_, err = s.api.patchConditions(ctx, name, e.ResourceVersion, e.Generation, conditions)
	return preferContextError(ctx, ignoreNotFound(err))
}

func setAccepted(conditions *[]metav1.Condition, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: verifyv1.ConditionAccepted, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}
