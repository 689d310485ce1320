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
	resource = "verificationrequests"
	// fieldManager names us in managedFields. One short name for spec and status keeps objects small.
	fieldManager = "phoneproof"
	// callTimeout bounds one call. A caller whose API server hangs hears so while he is still waiting.
	callTimeout = 1900 * time.Millisecond
)

// api makes the calls of the store: one method, one call. There is no retry in it, because only the caller knows what
// a failed call means to him.
type api struct {
	client    rest.Interface
	namespace string
	project   string
	streaming streaming
}

// newAPI returns the calls as the user of config may make them. The client has no rate limit of its own: client-go's
// default of 5 calls a second would be the slowest part of the service, and the API server protects itself by priority
// and fairness, whose 429 comes with a Retry-After that we pass on.
func newAPI(config *rest.Config, namespace, project string) (*api, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &verifyv1.GroupVersion, "/apis"
	config.NegotiatedSerializer = codecs()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.QPS, config.RateLimiter = -1, nil
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	return &api{client: client, namespace: namespace, project: project}, nil
}

// selection is what the server sends to an informer of this project, and to nobody else's.
func (a *api) selection() string { return "spec.projectRef.name=" + a.project }

func (a *api) get(ctx context.Context, name string) (*entry, error) {
	return a.one(ctx, "get request", a.client.Get().Name(name))
}

func (a *api) create(ctx context.Context, o *verifyv1.VerificationRequest) (*entry, error) {
	return a.one(ctx, "create request", a.client.Post().Param("fieldManager", fieldManager).Body(encode(o)))
}

// putStatus writes the status if the object still has the resourceVersion that o has.
func (a *api) putStatus(ctx context.Context, o *verifyv1.VerificationRequest) (*entry, error) {
	return a.one(ctx, "write status", a.client.Put().Name(o.Name).SubResource("status").
		Param("fieldManager", fieldManager).Body(encode(o)))
}

// patchMetadata sets metadata if the object still has the resourceVersion that is in it.
func (a *api) patchMetadata(ctx context.Context, name string, metadata map[string]any) (*entry, error) {
	return a.one(ctx, "label request", a.client.Patch(types.MergePatchType).Name(name).
		Param("fieldManager", fieldManager).Body(encode(map[string]any{"metadata": metadata})))
}

// patchConditions replaces the conditions and the generation that they speak of if the object still has that
// resourceVersion, and touches nothing else: it is for objects whose content we cannot hold.
func (a *api) patchConditions(
	ctx context.Context, name, version string, generation int64, conditions []metav1.Condition,
) (*entry, error) {
	return a.one(ctx, "write conditions", a.client.Patch(types.MergePatchType).Name(name).SubResource("status").
		Param("fieldManager", fieldManager).Body(encode(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status":   map[string]any{"conditions": conditions, "observedGeneration": generation},
	})))
}

// delete removes the object if it still is what the preconditions say.
func (a *api) delete(ctx context.Context, name string, uid types.UID, version string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := a.client.Delete().Namespace(a.namespace).Resource(resource).Name(name).MaxRetries(0).Body(encode(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})).Do(ctx).Error()
	return classify("delete request", err)
}

// one makes a call that is answered with one object.
func (a *api) one(ctx context.Context, doing string, request *rest.Request) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var o object
	// client-go would wait out a 429 and try again, up to ten times, inside this one call.
	if err := request.Namespace(a.namespace).Resource(resource).MaxRetries(0).Do(ctx).Into(&o); err != nil {
		return nil, classify(doing, err)
	}
	return newEntry(&o), nil
}

// encode returns v as JSON. Our own types always can be.
func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return body
}
