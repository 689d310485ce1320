package leader

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownedLock is a Lease that goes with its owner: client-go's lock has no word for that.
type ownedLock struct {
	*resourcelock.LeaseLock

	owner func() *metav1.OwnerReference
}

// Create makes the lease with its owner, and reads it back, which is how the lock below learns what it renews.
func (l *ownedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	owner := l.owner()
	if owner == nil {
		return errors.New("the owner of the lease is not known")
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.LeaseMeta.Namespace, Name: l.LeaseMeta.Name, OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&record),
	}
	if _, err := l.Client.Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create lease %s: %w", lease.Name, err)
	}
	if _, _, err := l.Get(ctx); err != nil {
		return fmt.Errorf("read the new lease %s: %w", lease.Name, err)
	}
	return nil
}
