package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/internal/apply"
)

// removeDenied takes the hosts that are granted to another namespace from the children of a project that is otherwise left as
// it is: a grant holds in every state of a project.
func (c *Controller) removeDenied(ctx context.Context, seen *observed) error {
	var errs []error
	for _, object := range seen.children.Exposures() {
		if object.GetDeletionTimestamp() == nil {
			errs = append(errs, c.removeDeniedFrom(ctx, object))
		}
	}
	return errors.Join(errs...)
}

// removeDeniedFrom takes the denied hosts from one child. An Ingress has a single host, and a route without any would answer to
// all of its Gateway's: both are deleted then.
func (c *Controller) removeDeniedFrom(ctx context.Context, object client.Object) error {
	hosts := exposedHosts(object)
	permitted := c.Permissions.permitHosts(object.GetNamespace(), hosts)
	_, ingress := object.(*networkingv1.Ingress)
	if len(permitted) < len(hosts) && (ingress || len(permitted) == 0) {
		err := c.client.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())})
		return wrapUnlessGone(err, "delete "+object.GetName()+" for a host that is granted to another namespace")
	}
	patch := map[string]any{}
	metadata := map[string]any{"resourceVersion": object.GetResourceVersion()}
	if len(permitted) < len(hosts) {
		patch["spec"] = map[string]any{"hostnames": permitted}
	}
	if annotations := c.Permissions.reduceHostAnnotations(object); len(annotations) > 0 {
		metadata["annotations"] = annotations
	} else if len(patch) == 0 {
		return nil
	}
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode the permitted hosts: %w", err)
	}
	changed, ok := object.DeepCopyObject().(client.Object) // the cache's own must not be changed
	if !ok {
		return fmt.Errorf("copy %T", object)
	}
	err = c.client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, data), apply.FieldOwner)
	return wrapUnlessGone(err, "remove hosts that are granted to another namespace from "+object.GetName())
}

func wrapUnlessGone(err error, doing string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// permitHosts returns those of some hosts that the projects of a namespace may answer to.
func (p *Permissions) permitHosts(namespace string, hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return !p.mayUseHost(namespace, host) })
}

// reduceHostAnnotations returns a merge patch for the annotations of a child that name a denied host; empty if none does.
func (p *Permissions) reduceHostAnnotations(object client.Object) map[string]any {
	patch := map[string]any{}
	for key, value := range object.GetAnnotations() {
		if !namesHosts(key) {
			continue
		}
		hosts := splitHosts(value)
		switch permitted := p.permitHosts(object.GetNamespace(), hosts); {
		case len(permitted) == len(hosts):
		case len(permitted) == 0:
			patch[key] = nil
		default:
			patch[key] = strings.Join(permitted, ",")
		}
	}
	return patch
}
