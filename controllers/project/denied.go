package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project/apply"
)

// removeDenied removes the hosts that are granted to another namespace from the children of a project that otherwise stays
// unchanged: a grant holds in every state of a project.
func (c *Controller) removeDenied(ctx context.Context, seen *observed) error {
	var errs []error
	for _, object := range seen.children.Exposures() {
		if object.GetDeletionTimestamp() == nil {
			errs = append(errs, c.removeDeniedFrom(ctx, object))
		}
	}
	return errors.Join(errs...)
}

// removeDeniedFrom removes the denied hosts from one child. An Ingress has a single host, and a route without any would answer to
// all hosts of its Gateway: both are deleted then.
func (c *Controller) removeDeniedFrom(ctx context.Context, object client.Object) error {
	hosts, _ := readRules(object)
	permitted := c.Permissions.selectPermitted(object.GetNamespace(), hosts)
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
	if annotations := c.Permissions.limitHostAnnotations(object, findRuleHost(hosts)); len(annotations) > 0 {
		metadata["annotations"] = annotations
	} else if len(patch) == 0 {
		return nil
	}
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode permitted hosts: %w", err)
	}
	changed, ok := object.DeepCopyObject().(client.Object) // the cache's object must not be changed
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

// selectPermitted returns the hosts that the projects of a namespace may answer to.
func (p *Permissions) selectPermitted(namespace string, hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return !p.mayUseHost(namespace, host) })
}

// limitHostAnnotations returns a merge patch for the annotations of a child that name a denied host; empty if none does.
func (p *Permissions) limitHostAnnotations(object client.Object, host string) map[string]any {
	permitted := func(name string) bool { return isHostName(name) && p.mayUseHost(object.GetNamespace(), name) }
	patch := map[string]any{}
	for key, value := range object.GetAnnotations() {
		limited, ok := limitAnnotation(key, value, host, permitted)
		switch {
		case !ok:
			patch[key] = nil
		case limited != value:
			patch[key] = limited
		}
	}
	return patch
}
