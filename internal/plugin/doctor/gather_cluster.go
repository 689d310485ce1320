package doctor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/leader"
)

func isNoMatch(err error) bool { return meta.IsNoMatchError(err) }

// readServerClock compares this machine's clock with the header Date of the API server.
func (e *Examiner) readServerClock(ctx context.Context, f *Facts) {
	offset, err := e.measureOffset(ctx)
	if err != nil {
		f.ServerOffset.Why = "the API server does not say what time it is"
		return
	}
	f.ServerOffset = knownValue(offset)
}

func (e *Examiner) measureOffset(ctx context.Context) (time.Duration, error) {
	httpClient, err := rest.HTTPClientFor(e.config)
	if err != nil {
		return 0, fmt.Errorf("create client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(e.config)
	if err != nil {
		return 0, fmt.Errorf("find API server: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return 0, fmt.Errorf("create request: %w", err)
	}
	begun := e.options.Now()
	response, err := httpClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read time: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)) // the connection can be used again
	ended := e.options.Now()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return 0, fmt.Errorf("parse time: %w", err)
	}
	middle := begun.Add(ended.Sub(begun) / 2)
	return middle.Sub(date.Add(time.Second / 2)), nil // the header has whole seconds
}

// readPodClock compares two times of the last renewal of the project's lease: renewTime is by the pod's clock, and that of the
// managed fields by the API server's.
func (e *Examiner) readPodClock(ctx context.Context, f *Facts) {
	var lease coordinationv1.Lease
	name := leader.ProjectLease(f.Project.Name)
	err := e.client.Get(ctx, client.ObjectKey{Namespace: f.Project.Namespace, Name: name}, &lease)
	switch {
	case apierrors.IsNotFound(err): // no pod has ever run
		return
	case err != nil:
		f.PodOffset.Why = explainUnread(err, "get leases", f.Project.Namespace)
		return
	case lease.Spec.RenewTime == nil:
		return
	}
	for _, entry := range lease.ManagedFields {
		if entry.Time != nil && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:renewTime"`) {
			f.PodOffset = knownValue(lease.Spec.RenewTime.Sub(entry.Time.Add(time.Second / 2)))
		}
	}
}

func (e *Examiner) readDeployment(ctx context.Context, f *Facts) {
	var d appsv1.Deployment
	err := e.client.Get(ctx, client.ObjectKey{Namespace: f.Project.Namespace, Name: render.Name(f.Project.Name)}, &d)
	switch {
	case apierrors.IsNotFound(err):
		f.Deployment = knownValue[*appsv1.Deployment](nil)
	case err != nil:
		f.Deployment.Why = explainUnread(err, "get deployments", f.Project.Namespace)
	default:
		f.Deployment = knownValue(&d)
	}
}

func (e *Examiner) readPods(ctx context.Context, f *Facts) {
	var list corev1.PodList
	f.Pods.Why = e.listInProject(ctx, f, &list, "list pods", client.MatchingLabels(render.Selector(f.Project)))
	f.Pods.Value, f.Pods.Read = list.Items, f.Pods.Why == ""
	slices.SortFunc(f.Pods.Value, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}

func (e *Examiner) readQuotas(ctx context.Context, f *Facts) {
	var list corev1.ResourceQuotaList
	f.Quotas.Why = e.listInProject(ctx, f, &list, "list resourcequotas")
	f.Quotas.Value, f.Quotas.Read = list.Items, f.Quotas.Why == ""
}

func (e *Examiner) readRanges(ctx context.Context, f *Facts) {
	var list corev1.LimitRangeList
	f.Ranges.Why = e.listInProject(ctx, f, &list, "list limitranges")
	f.Ranges.Value, f.Ranges.Read = list.Items, f.Ranges.Why == ""
}

func (e *Examiner) readPolicies(ctx context.Context, f *Facts) {
	var list networkingv1.NetworkPolicyList
	f.Policies.Why = e.listInProject(ctx, f, &list, "list networkpolicies.networking.k8s.io")
	f.Policies.Value, f.Policies.Read = list.Items, f.Policies.Why == ""
}

// listInProject lists objects of the project's namespace, and returns why it cannot; empty if it did.
func (e *Examiner) listInProject(ctx context.Context, f *Facts, list client.ObjectList, right string, more ...client.ListOption) string {
	err := e.client.List(ctx, list, append(more, client.InNamespace(f.Project.Namespace))...)
	if err != nil {
		return explainUnread(err, right, f.Project.Namespace)
	}
	return ""
}

// readOperators finds the operator's Deployments by what their containers run, whatever a chart named them.
func (e *Examiner) readOperators(ctx context.Context, f *Facts) {
	var list appsv1.DeploymentList
	labelled := client.MatchingLabels{"app.kubernetes.io/component": "operator"}
	everywhere := true
	err := e.client.List(ctx, &list, labelled)
	if apierrors.IsForbidden(err) {
		everywhere = false
		err = e.client.List(ctx, &list, labelled, client.InNamespace(e.options.OperatorNamespace))
	}
	found := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return !runsOperator(&d) })
	switch {
	case err != nil:
		f.Operators.Why = explainUnread(err, "list deployments", e.options.OperatorNamespace)
	case len(found) == 0 && !everywhere: // it may be elsewhere
		f.Operators.Why = "there is none in " + e.options.OperatorNamespace + ": name its namespace by --operator-namespace"
	default:
		f.Operators = knownValue(found)
		e.checkRoles(ctx, f)
	}
}

func runsOperator(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.Contains(c.Args, "operator") &&
			slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--server-image") })
	})
}
