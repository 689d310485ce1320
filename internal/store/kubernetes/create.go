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
	if err := ctx.Err(); err != nil {
		return verification.Created{}, err
	}
	if len(validation.IsDNS1123Subdomain(n.ID)) > 0 {
		return verification.Created{}, fmt.Errorf("create request: the id is no object name: %w", verification.ErrContent)
	}
	unlock, err := s.turns.lock(ctx, n.ID)
	if err != nil {
		return verification.Created{}, err
	}
	defer unlock()
	if s.cached(n.ID) != nil {
		if created, err := s.existing(ctx, n.ID); !errors.Is(err, verification.ErrNotFound) {
			return created, err
		}
	}
	if !s.HasSynced() {
		return verification.Created{}, errNotSynced() // the limits would count nothing
	}
	a := admission{Counted: n.Counted(), limits: limits, takesRoom: true}
	now, quota, err := s.admit(ctx, a)
	if err != nil {
		return s.afterRefusal(ctx, n, outcome(ctx, err))
	}
	return s.insert(ctx, n, a, now, quota)
}

// afterRefusal answers a creation that was refused. A fresh code's id cannot exist. One made from an Idempotency-Key can, at
// a replica whose news are on their way; who asks for too many such ids is only told of the refusal.
func (s *Store) afterRefusal(ctx context.Context, n verification.New, refusal error) (created verification.Created, _ error) {
	if n.BodyHash == "" || ctx.Err() != nil {
		return verification.Created{}, refusal
	}
	err := s.unknown.read(ctx, func() (err error) {
		created, err = s.existing(ctx, n.ID)
		return err
	})
	if errors.Is(err, verification.ErrNotFound) || errors.Is(err, verification.TooManyUnknown(nil)) {
		return verification.Created{}, refusal
	}
	return created, err
}

// admit counts the request, after it has deleted what must go for it.
func (s *Store) admit(ctx context.Context, a admission) (time.Time, verification.Quota, error) {
	evicted := 0
	for {
		now := s.now()
		quota, oldest, err := s.ledger.admit(a, now)
		if err != nil || oldest == nil {
			return now, quota, err
		}
		if evicted >= maxEvictions {
			// More went than comes. The rest goes with the next creations.
			a.limits.MaxStored = 0
			continue
		}
		err = s.evict(ctx, oldest)
		s.ledger.left(oldest.Name)
		if err != nil {
			return now, quota, err
		}
		evicted++
	}
}

// Room tells whether one more request could be stored by these limits, without creating one: nil, or TooManyStored.
func (s *Store) Room(limits verification.Limits) error { return s.ledger.room(limits, s.now()) }

// evict deletes the oldest request that may go. One that changed in the meantime is looked at again.
func (s *Store) evict(ctx context.Context, e *entry) error {
	err := missing(s.api.delete(ctx, e.Name, e.UID, e.ResourceVersion))
	switch {
	case err == nil:
		s.dropped(e)
		return nil
	case !errors.Is(err, verification.ErrConflict):
		return outcome(ctx, err)
	}
	current, err := s.live(ctx, e.Name)
	switch {
	case errors.Is(err, verification.ErrNotFound):
		s.dropped(e)
		return nil
	case err != nil:
		return err
	}
	s.ledger.replace(current)
	return nil
}

// insert writes the object.
func (s *Store) insert(
	ctx context.Context, n verification.New, a admission, now time.Time, quota verification.Quota,
) (verification.Created, error) {
	o, err := s.newObject(n, now)
	if err != nil {
		s.ledger.withdraw(a, now)
		return verification.Created{}, err
	}
	e, err := s.api.create(ctx, o)
	var unknown uncertain
	switch {
	case err == nil:
		return s.inserted(e, quota)
	case errors.Is(err, errExists):
		s.ledger.withdraw(a, now)
		created, err := s.existing(ctx, n.ID)
		if errors.Is(err, verification.ErrNotFound) {
			err = unavailable("create request", errors.New("the id's object vanished, or is no request of this project"))
		}
		return created, err
	case !errors.As(err, &unknown):
		s.ledger.withdraw(a, now)
		if errors.Is(err, verification.ErrNotFound) {
			err = unavailable("create request", errors.New("the namespace does not exist"))
		}
		return verification.Created{}, outcome(ctx, err)
	}
	// The object may be there, or be on its way still.
	s.ledger.settle(n.ID)
	if ctx.Err() != nil {
		return verification.Created{}, ctx.Err()
	}
	e, readErr := s.live(ctx, n.ID)
	if readErr == nil && e.kind == KindRequest && e.request.CreatedAt.Equal(now) && e.request.BodyHash == n.BodyHash {
		return s.inserted(e, quota)
	}
	if readErr == nil {
		return s.existing(ctx, n.ID)
	}
	return verification.Created{}, outcome(ctx, err)
}

func (s *Store) inserted(e *entry, quota verification.Quota) (verification.Created, error) {
	s.recent.wrote(e)
	s.ledger.inserted(e)
	s.notifier.Notify(e.Name)
	r, err := e.answer()
	return verification.Created{Request: r, Key: quota}, err
}

// existing answers a creation whose id is taken.
func (s *Store) existing(ctx context.Context, id string) (verification.Created, error) {
	e, err := s.live(ctx, id)
	if err != nil {
		return verification.Created{}, err
	}
	if e.kind == KindGone {
		return verification.Created{}, unavailable("create request", errors.New("an object of that name is being deleted"))
	}
	r, err := e.answer()
	return verification.Created{Request: r, Existing: err == nil}, err
}

func (s *Store) newObject(n verification.New, now time.Time) (*verifyv1.VerificationRequest, error) {
	owner, err := s.projectReference()
	if err != nil {
		return nil, err
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
			PhoneNumber: n.Phone.E164(), Method: inverse(methods, n.Method),
			Init: &verifyv1.Init{
				CreatedAt: metav1.NewMicroTime(now), ExpiresAt: metav1.NewMicroTime(verification.TruncateTime(now.Add(n.TTL))),
				KeyName: n.KeyName, BodyHash: n.BodyHash, SubjectHash: n.Subject,
				DisplayName: n.DisplayName,
			},
		},
	}, nil
}

// projectReference makes an object go when the project as it is now goes, and fails while there is none, because what it
// owns would stay for ever. It is without blockOwnerDeletion, which would need a right to the project's finalizers.
func (s *Store) projectReference() (metav1.OwnerReference, error) {
	uid := s.owner()
	if uid == "" {
		return metav1.OwnerReference{}, verification.Unavailable(errors.New("the project's UID is not known"))
	}
	return metav1.OwnerReference{
		APIVersion: verifyv1.GroupVersion.String(), Kind: verifyv1.VerificationProjectKind, Name: s.api.project, UID: uid,
	}, nil
}
