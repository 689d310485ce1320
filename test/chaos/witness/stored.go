package witness

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Stored implements Witness.
func (d *Database) Stored(ctx context.Context, id string) (bool, error) {
	found := false
	err := d.queryChanges(ctx, storedQuery+fmt.Sprintf(` WHERE id = '%s'`, id), func(ledger.Change) error {
		found = true
		return nil
	})
	return found, err
}

// Stored implements Witness.
func (w *Etcd) Stored(ctx context.Context, id string) (bool, error) {
	err := w.admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: id}, &verifyv1.VerificationRequest{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
