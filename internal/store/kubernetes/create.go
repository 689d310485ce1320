package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// maxEvictions bounds what one creation deletes to make room, so that a lowered cap is reached creation by creation
// and not in one storm of deletions.
const maxEvictions = 8

// Create implements verification.Store.
func (s *Store) Create(ctx context.Context, n verification.New, limits verification.Limits) (verification.Created, error) {
	if len(validation.IsDNS1123Subdomain(n.ID)) > 0 {
		return verification.Created{}, fmt.Errorf("create request: the id is no object name: %w", verification.ErrContent)
	}
	unlock, err := s.locks.lock(ctx, n.ID)
	if err != nil {
		return verification.Created{}, fmt.Errorf("wait for lock: %w", err)
	}
	defer unlock()
	if s.cachedEntry(n.ID) != nil {
		if created, err := s.answerExisting(ctx, n.ID); !errors.Is(err, verification.ErrNotFound) {
			return created, err
		}
	}
	if !s.HasSynced() {
		return verification.Created{}, errNotSynced() // the limits count nothing yet
	}
	a := admission{Counted: n.Counted(), limits: limits, takesRoom: true}
	now, quota, err := s.admitCreation(ctx, a)
	if err != nil {
		return s.afterRefusal(ctx, n, preferContextError(ctx, err))
	}
	return s.createObject(ctx, n, a, now, quota)
}

// afterRefusal answers a creation that was refused. The id of a fresh code cannot exist. One made from an Idempotency-Key can,
// stored by a replica a moment ago; a caller with too many such ids gets the refusal.
func (s *Store) afterRefusal(ctx context.Context, n verification.New, refusal error) (verification.Created, error) {
	if n.BodyHash == "" || ctx.Err() != nil {
		return verification.Created{}, refusal
	}
	created, err := readUnderLimit(ctx, s.unknown, func() (verification.Created, error) { return s.answerExisting(ctx, n.ID) })
	if errors.Is(err, verification.ErrNotFound) || errors.Is(err, verification.TooManyUnknown(nil)) {
		return verification.Created{}, refusal
	}
	return created, err
}

// admitCreation counts the request, after it has evicted what must make room for it.
func (s *Store) admitCreation(ctx context.Context, a admission) (time.Time, verification.Quota, error) {
	evicted := 0
	for {
		now := s.now()
		quota, oldest, err := s.limits.admitOrEvict(a, now)
		if err != nil || oldest == nil {
			return now, quota, err
		}
		if evicted >= maxEvictions {
			// The rest is evicted by the next creations.
			a.limits.MaxStored = 0
			continue
		}
		err = s.evictRequest(ctx, oldest)
		s.limits.endEviction(oldest.Name)
		if err != nil {
			return now, quota, fmt.Errorf("make room: %w", err)
		}
		evicted++
	}
}

// Room returns nil if one more request could be stored by these limits, else TooManyStored.
func (s *Store) Room(limits verification.Limits) error { return s.limits.checkRoom(limits, s.now()) }

// evictRequest deletes a request to make room. One that changed in the meantime is considered again.
func (s *Store) evictRequest(ctx context.Context, e *entry) error {
	err := ignoreNotFound(s.api.deleteObject(ctx, e.Name, e.UID, e.ResourceVersion))
	switch {
	case err == nil:
		s.recordDeletion(e)
		return nil
	case !errors.Is(err, verification.ErrConflict):
		return preferContextError(ctx, err)
	}
	current, err := s.readObject(ctx, e.Name)
	switch {
	case errors.Is(err, verification.ErrNotFound):
		s.recordDeletion(e)
		return nil
	case err != nil:
		return fmt.Errorf("read request to evict: %w", err)
	}
	s.limits.replaceStored(current)
	return nil
}

// createObject creates the object of an admitted request.
func (s *Store) createObject(
	ctx context.Context, n verification.New, a admission, now time.Time, quota verification.Quota,
) (verification.Created, error) {
	o, err := s.newObject(n, now)
	if err != nil {
		s.limits.undoAdmission(a, now)
		return verification.Created{}, fmt.Errorf("build object: %w", err)
	}
	e, err := s.api.createObject(ctx, o)
	var unknown unknownOutcomeError
	switch {
	case err == nil:
		return s.finishCreation(e, quota)
	case errors.Is(err, errExists):
		if n.Creator != "" { // what lies between may have repeated this very call, and then no one else sends the code
			if own, err := s.readObject(ctx, n.ID); err == nil && own.isCreationOf(n, now) {
				return s.finishCreation(own, quota)
			}
		}
		s.limits.undoAdmission(a, now)
		created, err := s.answerExisting(ctx, n.ID)
		if errors.Is(err, verification.ErrNotFound) {
			err = unavailableError("create request", errors.New("the id's object vanished, or is no request of this project"))
		}
		return created, err
	case !errors.As(err, &unknown):
		s.limits.undoAdmission(a, now)
		if errors.Is(err, verification.ErrNotFound) {
			err = unavailableError("create request", errors.New("the namespace does not exist"))
		}
		return verification.Created{}, preferContextError(ctx, err)
	}
	// The object may exist, or may still be created.
	s.limits.endReservation(n.ID)
	if ctx.Err() != nil {
		return verification.Created{}, ctx.Err()
	}
	e, readErr := s.readObject(ctx, n.ID)
	if readErr == nil && e.isCreationOf(n, now) {
		return s.finishCreation(e, quota)
	}
	if readErr == nil {
		return s.answerExisting(ctx, n.ID)
	}
	return verification.Created{}, preferContextError(ctx, err)
}

// isCreationOf reports whether the entry is what the creation at now stored. Only Creator distinguishes two replicas that stored the same
// in one microsecond, of which one alone may send a code.
func (e *entry) isCreationOf(n verification.New, now time.Time) bool {
	return e.kind == KindRequest && e.request.CreatedAt.Equal(now) && e.request.BodyHash == n.BodyHash &&
		e.object.EffectiveInit().Creator == n.Creator
}

func (s *Store) finishCreation(e *entry, quota verification.Quota) (verification.Created, error) {
	s.ownWrites.recordWrite(e)
	s.limits.confirmCreation(e)
	s.notifier.Notify(e.Name)
	r, err := e.toRequest()
	if err != nil {
		return verification.Created{}, fmt.Errorf("read created object: %w", err)
	}
	return verification.Created{Request: r, Key: quota}, nil
}

// answerExisting answers a creation whose id is taken.
func (s *Store) answerExisting(ctx context.Context, id string) (verification.Created, error) {
	e, err := s.readObject(ctx, id)
	if err != nil {
		return verification.Created{}, fmt.Errorf("read existing request: %w", err)
	}
	if e.kind == KindGone {
		return verification.Created{}, unavailableError("create request", errors.New("an object of that name is being deleted"))
	}
	r, err := e.toRequest()
	if err != nil {
		return verification.Created{}, fmt.Errorf("read existing object: %w", err)
	}
	return verification.Created{Request: r, Existing: true}, nil
}

func (s *Store) newObject(n verification.New, now time.Time) (*verifyv1.VerificationRequest, error) {
	owner, err := s.projectReference()
	if err != nil {
		return nil, fmt.Errorf("refer to project: %w", err)
	}
	return &verifyv1.VerificationRequest{
		TypeMeta: typeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.api.namespace, Name: n.ID,
			Labels:          map[string]string{verifyv1.ProjectLabel: verifyv1.ProjectLabelValue(s.api.project)},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef:  verifyv1.ProjectRef{Name: s.api.project},
			PhoneNumber: n.Phone.E164(), Method: methodName(n.Method, n.Test),
			Reference: n.Reference, Metadata: fromMetadata(n.Metadata), Locale: n.Locale,
			Init: &verifyv1.Init{
				CreatedAt: metav1.NewMicroTime(now), ExpiresAt: metav1.NewMicroTime(verification.TruncateTime(now.Add(n.TTL))),
				KeyName: n.KeyName, BodyHash: n.BodyHash, SubjectHash: n.Subject,
				DisplayName: n.DisplayName, ReturnURL: n.ReturnURL, OtherMethods: fromMethods(n.OtherMethods),
				Assurance: nameOf(levels, n.Terms.Level), Purpose: n.Terms.Purpose, Browser: n.Terms.Browser,
				Deliver: nameOf(deliverKinds, n.Terms.Deliver), Creator: n.Creator,
			},
		},
	}, nil
}

// projectReference returns the reference by which an object is deleted with its project. It fails while the project's UID is
// unknown, because the object would stay for ever. It does not block the owner's deletion, which would need a right to the
// project's finalizers.
func (s *Store) projectReference() (metav1.OwnerReference, error) {
	uid := s.owner()
	if uid == "" {
		return metav1.OwnerReference{}, verification.Unavailable(errors.New("the project's UID is not known"))
	}
	return metav1.OwnerReference{
		APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationProjectKind, Name: s.api.project, UID: uid,
	}, nil
}
