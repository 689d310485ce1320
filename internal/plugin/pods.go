package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Ports of the server's pods.
const (
	PortAPI     = 8080
	PortMetrics = 8081
)

// errNoPod means that no pod of the project is ready.
var errNoPod = errors.New("no pod of the project is ready")

// Pods returns the project's pods by name.
func (c *Client) Pods(ctx context.Context) ([]corev1.Pod, error) {
	return c.ListPods(ctx, c.Project.Namespace, render.Selector(c.Project))
}

// ListPods returns the pods with some labels, by name.
func (c *Cluster) ListPods(ctx context.Context, namespace string, labels client.MatchingLabels) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// findReadyPod returns a pod of the project that answers; errNoPod if there is none.
func (c *Client) findReadyPod(ctx context.Context) (*corev1.Pod, error) {
	pods, err := c.Pods(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if isReady(&pods[i]) {
			return &pods[i], nil
		}
	}
	if c.Project.Suspended() {
		return nil, fmt.Errorf("%w: it is suspended; kubectl phoneproof resume %s starts it", errNoPod, c.Project.Name)
	}
	return nil, fmt.Errorf("%w; kubectl phoneproof status %s says why", errNoPod, c.Project.Name)
}

// isReady reports whether a pod answers and is not about to stop.
func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// chooseContainer names PhoneProof's own container, because the API server chooses none where a mesh has put another one beside it.
func chooseContainer(pod *corev1.Pod, options *corev1.PodLogOptions) *corev1.PodLogOptions {
	chosen := *options
	for i := range pod.Spec.Containers {
		if name := pod.Spec.Containers[i].Name; name == "server" || name == "operator" {
			chosen.Container = name
		}
	}
	return &chosen
}

// NewReadLogs returns a ReadLogs that asks the API server.
func NewReadLogs(config *rest.Config) (ReadLogs, error) {
	pods, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return func(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		stream, err := pods.Pods(pod.Namespace).GetLogs(pod.Name, chooseContainer(pod, options)).Stream(ctx)
		if err != nil {
			return nil, fmt.Errorf("read log of pod %s: %w", pod.Name, err)
		}
		return stream, nil
	}, nil
}
