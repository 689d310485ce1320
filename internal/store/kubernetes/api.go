package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

const (
	resourceName = "verificationrequests"
	// fieldManager names us in managedFields. One short name for spec and status keeps objects small.
	fieldManager = "phoneproof"
	// callTimeout bounds one call: if the API server hangs, callers get an error while they still wait.
	callTimeout = 1900 * time.Millisecond
)

// api makes the calls of the store: one method, one call. It retries nothing, because only callers know what a failed call
// means to them.
type api struct {
	client    rest.Interface
	namespace string
	project   string
}

// newAPI returns the calls with the rights of config. The client has no rate limit of its own: client-go's default of 5 calls a
// second would be the slowest part of the service, and the API server protects itself by priority and fairness, whose 429 has
// a Retry-After that is passed on.
func newAPI(config *rest.Config, namespace, project string) (*api, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &verifyv1.GroupVersion, "/apis"
	config.NegotiatedSerializer = newCodecs()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.QPS, config.RateLimiter = -1, nil
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	return &api{client: client, namespace: namespace, project: project}, nil
}

// fieldSelector selects the objects of this project.
func (a *api) fieldSelector() string { return "spec.projectRef.name=" + a.project }

func (a *api) getObject(ctx context.Context, name string) (*entry, error) {
	return a.callForObject(ctx, "get request", a.client.Get().Name(name))
}

func (a *api) createObject(ctx context.Context, o *verifyv1.VerificationRequest) (*entry, error) {
	return a.callForObject(ctx, "create request", a.client.Post().Param("fieldManager", fieldManager).Body(encodeJSON(o)))
}

// putStatus writes the status if the object still has the resourceVersion that o has.
func (a *api) putStatus(ctx context.Context, o *verifyv1.VerificationRequest) (*entry, error) {
	return a.callForObject(ctx, "write status", a.client.Put().Name(o.Name).SubResource("status").
		Param("fieldManager", fieldManager).Body(encodeJSON(o)))
}

// patchMetadata sets metadata if the object still has the resourceVersion that is in it.
func (a *api) patchMetadata(ctx context.Context, name string, metadata map[string]any) (*entry, error) {
	return a.callForObject(ctx, "label request", a.client.Patch(types.MergePatchType).Name(name).
		Param("fieldManager", fieldManager).Body(encodeJSON(map[string]any{"metadata": metadata})))
}

// patchConditions replaces the conditions and the generation that they refer to, if the object still has that
// resourceVersion. It touches nothing else, because the types here may not hold the object's content.
func (a *api) patchConditions(
	ctx context.Context, name, version string, generation int64, conditions []metav1.Condition,
) (*entry, error) {
	return a.callForObject(ctx, "write conditions", a.client.Patch(types.MergePatchType).Name(name).SubResource("status").
		Param("fieldManager", fieldManager).Body(encodeJSON(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status":   map[string]any{"conditions": conditions, "observedGeneration": generation},
	})))
}

// deleteObject deletes the object, if it still has that UID and version.
func (a *api) deleteObject(ctx context.Context, name string, uid types.UID, version string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := a.client.Delete().Namespace(a.namespace).Resource(resourceName).Name(name).MaxRetries(0).Body(encodeJSON(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})).Do(ctx).Error()
	return classifyError("delete request", err)
}

// callForObject makes a call whose response is one object.
func (a *api) callForObject(ctx context.Context, doing string, request *rest.Request) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var o rawObject
	// client-go would wait out a 429 and try again, up to ten times, inside this one call.
	if err := request.Namespace(a.namespace).Resource(resourceName).MaxRetries(0).Do(ctx).Into(&o); err != nil {
		return nil, classifyError(doing, err)
	}
	return newEntry(&o), nil
}

// encodeJSON returns v as JSON, which never fails for the types of this package.
func encodeJSON(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return body
}
