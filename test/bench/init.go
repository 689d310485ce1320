package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/system"
)

// measureInitKubernetes measures verifications started, each round in an empty namespace.
func measureInitKubernetes(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.Kubernetes}, func(x *site) error {
		all := b.maximumSide("Init/store=kubernetes", x.shop, x, x.renderInit)
		return b.measureByTurns(ctx, side{all.name, func(ctx context.Context, round int) (sample, error) {
			found, err := all.measure(ctx, round)
			if err != nil {
				return nil, err
			}
			return found, x.deleteRequests(ctx)
		}})
	})
}

// deleteRequests deletes every request.
func (x *site) deleteRequests(ctx context.Context) error {
	here := client.InNamespace(x.Namespace)
	if err := x.system.Admin.DeleteAllOf(ctx, &verifyv1.VerificationRequest{}, here); err != nil {
		return fmt.Errorf("delete requests: %w", err)
	}
	return waitFor(ctx, "an empty namespace", func(ctx context.Context) (bool, error) {
		var left verifyv1.VerificationRequestList
		err := x.system.Admin.List(ctx, &left, here, client.Limit(1))
		return len(left.Items) == 0, err
	})
}

// measureInitPostgreSQL measures verifications started.
func measureInitPostgreSQL(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		return withFloor(ctx, x, "", func(f *floorSite) error {
			const name = "Init/store=postgresql"
			return b.measureByTurns(ctx, b.maximumSide(name+ours, x.shop, x, x.renderInit), b.maximumSide(name+floors, f.shop, f, f.renderInit))
		})
	})
}
