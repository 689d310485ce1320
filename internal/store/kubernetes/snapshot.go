package kubernetes

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selection selects objects by fields and labels.
type selection struct {
	fields, labels string
	// since is a revision that was current after the call began, which is recent enough. Empty for the present, which costs
	// the API server a quorum read of etcd, and its cache up to a tenth of a second if nothing happens to the kind.
	since string
}

// selectNothing selects a name that no object has. The API server resolves it to one key and reads no object.
var selectNothing = selection{fields: "metadata.name=phoneproof-now"}

// readSnapshot returns the selected objects as they were at one moment after the call began, or after since, and the
// resourceVersion of that moment, which is not older than any write acknowledged before the call: a LIST without a
// resourceVersion promises that, which an informer's own watch never does.
func (a *api) readSnapshot(ctx context.Context, of selection) ([]*entry, string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list := &rawObjectList{}
	options := &metav1.ListOptions{FieldSelector: of.fields, LabelSelector: of.labels, ResourceVersion: of.since}
	if of.since != "" {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	err := a.client.Get().Namespace(a.namespace).Resource(resourceName).MaxRetries(0).
		VersionedParams(options, metav1.ParameterCodec).Do(ctx).Into(list)
	if err != nil {
		return nil, "", classifyError("read requests", err)
	}
	found := make([]*entry, len(list.Items))
	for i := range list.Items {
		found[i] = newEntry(&list.Items[i])
	}
	return found, list.ResourceVersion, nil
}
