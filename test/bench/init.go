package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// limitNamespace has the objects of the limit, which no process watches.
const limitNamespace = "limit"

// measureInitKubernetes compares verifications started with objects of the same kind and size created by client-go, as
// the same user.
func measureInitKubernetes(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.Kubernetes}, func(x *site) error {
		creator, err := newCreator(ctx, x)
		if err != nil {
			return err
		}
		ours := func(ctx context.Context, _ int) (sample, error) {
			found, _, err := b.measureMaximum(ctx, x, load.Expect(x.replica.API, x.renderInit))
			if err != nil {
				return nil, err
			}
			return found, x.deleteRequests(ctx, x.Namespace)
		}
		limit := func(ctx context.Context, _ int) (sample, error) {
			r, err := load.Closed(ctx, clients, b.length, func(context.Context) (load.Call, func() error, error) {
				return creator.createObject, nil, nil
			})
			if err != nil {
				return nil, err
			}
			return sample{"rate": r.PerSecond()}, x.deleteRequests(ctx, limitNamespace)
		}
		found, err := b.measureByTurns(ctx, ours, limit)
		if err != nil {
			return err
		}
		b.addRow(row{
			figure: "init, Kubernetes", unit: "1/s", ours: found[0].valuesOf("rate"), limit: found[1].valuesOf("rate"),
			limitIs: "client-go create", aim: atLeast(0.95),
		})
		b.addCostRows("init, Kubernetes", found[0], nil, "")
		return b.takeProfile(ctx, "init-kubernetes", x.replica, ours)
	})
}

// creator creates objects as any client-go program does.
type creator struct {
	client   client.Client
	template *verifyv1.VerificationRequest
}

// newCreator copies one of our objects as a template and lets our user write to a namespace that no process watches.
func newCreator(ctx context.Context, x *site) (*creator, error) {
	admin := x.system.Admin
	binding := &rbacv1.RoleBinding{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: x.Namespace, Name: "serve"}, binding); err != nil {
		return nil, err
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: limitNamespace}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: limitNamespace, Name: binding.Name}, RoleRef: binding.RoleRef, Subjects: binding.Subjects,
		},
	} {
		if err := admin.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	begun, err := x.startVerifications(ctx, 1)
	if err != nil {
		return nil, err
	}
	model := &verifyv1.VerificationRequest{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: x.Namespace, Name: begun[0].ID}, model); err != nil {
		return nil, err
	}
	config, err := x.Config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := verifyv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := &creator{template: &verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: limitNamespace, Labels: model.Labels, Annotations: model.Annotations, Finalizers: model.Finalizers,
			OwnerReferences: model.OwnerReferences,
		},
		Spec: model.Spec,
	}}
	if c.client, err = client.New(config, client.Options{Scheme: scheme, Mapper: verifyv1.Mapper()}); err != nil {
		return nil, err
	}
	return c, c.checkSize(ctx, x, model)
}

// checkSize waits until the user may write there, and checks that the objects compared have about the same size.
func (c *creator) checkSize(ctx context.Context, x *site, model *verifyv1.VerificationRequest) error {
	err := waitFor(ctx, "permission to create objects", func(ctx context.Context) (bool, error) {
		return c.createObject(ctx, load.Turn{}) == nil, nil
	})
	if err != nil {
		return err
	}
	var made verifyv1.VerificationRequestList
	if err := x.system.Admin.List(ctx, &made, client.InNamespace(limitNamespace)); err != nil {
		return err
	}
	ours, theirs := encodedSize(model), encodedSize(&made.Items[0])
	if difference := float64(theirs) / float64(ours); difference < 0.98 || difference > 1.02 {
		return fmt.Errorf("object of PhoneProof has %d bytes, object of the limit %d", ours, theirs)
	}
	return nil
}

func encodedSize(o *verifyv1.VerificationRequest) int {
	o.TypeMeta = metav1.TypeMeta{} // only objects from a list have it
	content, err := json.Marshal(o)
	if err != nil {
		panic(err) // our types can always be encoded
	}
	return len(content)
}

// createObject creates an object with a name like a request's.
func (c *creator) createObject(ctx context.Context, _ load.Turn) error {
	o := c.template.DeepCopy()
	o.Name = "vr" + strings.ToLower(rand.Text())[:24]
	return c.client.Create(ctx, o, client.FieldOwner("phoneproof"))
}

// deleteRequests deletes every request of a namespace, so that each round begins with none.
func (x *site) deleteRequests(ctx context.Context, namespace string) error {
	if err := x.system.Admin.DeleteAllOf(ctx, &verifyv1.VerificationRequest{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete requests in %s: %w", namespace, err)
	}
	return waitFor(ctx, "an empty namespace", func(ctx context.Context) (bool, error) {
		var left verifyv1.VerificationRequestList
		err := x.system.Admin.List(ctx, &left, client.InNamespace(namespace), client.Limit(1))
		return len(left.Items) == 0, err
	})
}

// measureInitPostgreSQL compares verifications started with single rows committed by pgbench: first at the maximum
// rate, then the latency (p50 and p99) at half of it.
func measureInitPostgreSQL(ctx context.Context, b *bench) error {
	return b.withSite(ctx, system.Options{Store: system.PostgreSQL}, func(x *site) error {
		ours := func(ctx context.Context, _ int) (sample, error) {
			found, _, err := b.measureMaximum(ctx, x, load.Expect(x.replica.API, x.renderInit))
			return found, err
		}
		limit := func(ctx context.Context, _ int) (sample, error) {
			rate, _, err := b.runPgbench(ctx, x.system.Database, 0)
			return sample{"rate": rate}, err
		}
		var most []samples
		err := b.withFloor(ctx, x, "", func(f *floorSite) (err error) {
			most, err = b.measureByTurns(ctx, ours, limit, f.measureMaximum(b, f.renderInit))
			return err
		})
		if err != nil {
			return err
		}
		b.addRow(row{
			figure: "init, PostgreSQL, 32 clients", unit: "1/s", ours: most[0].valuesOf("rate"), limit: most[1].valuesOf("rate"),
			limitIs: "pgbench commits", aim: atLeast(1),
		})
		b.addFloorRows("init, PostgreSQL", most[0], most[2], atMost(1.5))
		half := func(s samples) float64 { return s.valuesOf("rate").median() / 2 }
		calm, err := b.measureByTurns(ctx, func(ctx context.Context, round int) (sample, error) {
			r, err := load.Open(ctx, openClients, half(most[0]), b.length, uint64(round), load.Expect(x.replica.API, x.renderInit))
			return sample{"p50": toMilliseconds(r.Latency.Quantile(0.5)), "p99": toMilliseconds(r.Latency.Quantile(0.99))}, err
		}, func(ctx context.Context, _ int) (sample, error) {
			_, latency, err := b.runPgbench(ctx, x.system.Database, half(most[1]))
			if err != nil {
				return nil, err
			}
			return sample{"p50": toMilliseconds(latency.Quantile(0.5)), "p99": toMilliseconds(latency.Quantile(0.99))}, nil
		})
		if err != nil {
			return err
		}
		for _, key := range []string{"p50", "p99"} {
			b.addRow(row{
				figure: "init, PostgreSQL, at half of the maximum, " + key, unit: "ms", ours: calm[0].valuesOf(key), limit: calm[1].valuesOf(key),
				limitIs: "pgbench at half of its own",
			})
		}
		return b.takeProfile(ctx, "init-postgresql", x.replica, ours)
	})
}

// toMilliseconds returns a duration in milliseconds.
func toMilliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
