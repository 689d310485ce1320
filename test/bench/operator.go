package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/cputime"
)

const (
	// restTime is how long an operator at rest is measured. It is fixed, because some of its work comes twice a minute, and
	// processor time is counted in hundredths of a second.
	restTime = time.Minute
	// quietTime is how long nothing must be written until an operator counts as at rest.
	quietTime = 10 * time.Second
	// operatedNamespaces is the number of namespaces of the projects.
	operatedNamespaces = 10
	// turnsAtOnce is how many projects get new pods at a time, by the operator's default.
	turnsAtOnce = 10
	// writersAtOnce is the number of objects that are written at the same time.
	writersAtOnce = 8
)

// operated is an operator's cluster, without kubelets and controllers: no Deployment becomes ready by itself.
type operated struct {
	plane    *controlplane.ControlPlane
	admin    client.Client
	dir      string
	program  string
	operator *exec.Cmd
}

// measureOperator measures what an operator and its API server use when there is nothing to do: with projects that never became
// ready, with ready ones, and after an upgrade whose first pods never become ready, so that all other projects wait for a turn.
func measureOperator(ctx context.Context, b *bench) (err error) {
	o, err := b.startOperated()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.stop()) }()
	if err := o.startOperator("phoneproof:1"); err != nil {
		return err
	}
	for _, state := range []struct {
		name              string
		begin             func(context.Context) error
		condition, reason string
		projects          int // with this condition
	}{
		{
			"unready", func(ctx context.Context) error { return o.createProjects(ctx, b.operated) },
			verifyv1.ConditionReconciling, verifyv1.ReasonProgressing, b.operated,
		},
		{"ready", o.makeReady, verifyv1.ConditionAvailable, verifyv1.ReasonPodsAvailable, b.operated},
		{
			"waiting", o.upgradeOperator,
			verifyv1.ConditionReconciling, verifyv1.ReasonRolloutQueued, max(0, b.operated-turnsAtOnce),
		},
	} {
		if err := state.begin(ctx); err != nil {
			return err
		}
		if err := o.awaitProjects(ctx, state.condition, state.reason, state.projects); err != nil {
			return err
		}
		if err := o.awaitRest(ctx); err != nil {
			return err
		}
		if err := b.measureRest(ctx, fmt.Sprintf("Operator/projects=%d/state=%s", b.operated, state.name), o); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) startOperated() (*operated, error) {
	plane, err := controlplane.Start(controlplane.Options{Durable: true, APIServerArgs: map[string]string{
		"service-cluster-ip-range": "10.0.0.0/16", // each project has a Service, and the default range has 254 addresses
		"request-timeout":          "12s",         // when stopped, it waits this long for open watches
	}})
	if err != nil {
		return nil, err
	}
	o := &operated{plane: plane, dir: b.dir, program: b.program}
	scheme, err := project.Scheme()
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	if o.admin, err = client.New(plane.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return o, nil
}

func (o *operated) stop() error {
	o.stopOperator()
	return o.plane.Stop()
}

// startOperator starts an operator whose projects get this image. It has all rights.
func (o *operated) startOperator(image string) error {
	kubeconfig := filepath.Join(o.dir, "operator.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, o.plane.Config); err != nil {
		return err
	}
	o.operator = exec.Command(o.program, "operator", "--server-image="+image, "--kubeconfig="+kubeconfig, //nolint:noctx // it ends with stop
		"--leader-elect-namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	o.operator.Env = os.Environ()
	o.operator.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := o.operator.Start(); err != nil {
		o.operator = nil
		return fmt.Errorf("start operator: %w", err)
	}
	return nil
}

// stopOperator kills the operator, if one runs. The next one works when the lease has expired.
func (o *operated) stopOperator() {
	if o.operator != nil {
		_ = o.operator.Process.Kill() // it may have ended
		_ = o.operator.Wait()         // it was killed
		o.operator = nil
	}
}

func (o *operated) createProjects(ctx context.Context, n int) error {
	for i := range operatedNamespaces {
		if err := o.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatedNamespace(i)}}); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writersAtOnce)
	for i := range n {
		group.Go(func() error {
			return o.admin.Create(ctx, &verifyv1.VerificationProject{
				ObjectMeta: metav1.ObjectMeta{Namespace: operatedNamespace(i), Name: fmt.Sprintf("p%d", i)},
				Spec: verifyv1.VerificationProjectSpec{
					APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "api-key"}}},
					Telegram: &verifyv1.Telegram{
						BotUsername: fmt.Sprintf("p%07d_bot", i), BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"},
					},
				},
			})
		})
	}
	return group.Wait()
}

// operatedNamespace returns the namespace of a project.
func operatedNamespace(i int) string { return fmt.Sprintf("shop-%d", i%operatedNamespaces) }

// awaitProjects waits until as many projects have a condition with this reason.
func (o *operated) awaitProjects(ctx context.Context, condition, reason string, n int) error {
	return waitQuietly(ctx, fmt.Sprintf("%d projects with %s %s", n, condition, reason), func(ctx context.Context) (bool, error) {
		var all verifyv1.VerificationProjectList
		err := o.admin.List(ctx, &all)
		found := 0
		for i := range all.Items {
			if c := meta.FindStatusCondition(all.Items[i].Status.Conditions, condition); c != nil && c.Reason == reason {
				found++
			}
		}
		return found == n, err
	})
}

// upgradeOperator gives the projects another image.
func (o *operated) upgradeOperator(context.Context) error {
	o.stopOperator()
	return o.startOperator("phoneproof:2")
}

// makeReady sets the status of each Deployment as its controller does when the pods are ready.
func (o *operated) makeReady(ctx context.Context) error {
	var all appsv1.DeploymentList
	if err := o.admin.List(ctx, &all); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writersAtOnce)
	for i := range all.Items {
		group.Go(func() error {
			d := &all.Items[i]
			n := ptr.Deref(d.Spec.Replicas, 1)
			d.Status = appsv1.DeploymentStatus{
				ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				},
			}
			return o.admin.Status().Update(ctx, d)
		})
	}
	return group.Wait()
}

// awaitRest waits until nothing is written.
func (o *operated) awaitRest(ctx context.Context) error {
	last := -1.0
	return waitQuietly(ctx, "the operator to rest", func(ctx context.Context) (bool, error) {
		now, err := countWrites(ctx, o.plane.Config)
		before := last
		last = now
		return now == before, err
	})
}

// waitQuietly is waitFor for what takes long: it polls once per quietTime.
func waitQuietly(ctx context.Context, what string, so func(context.Context) (bool, error)) error {
	return waitFor(ctx, what, func(ctx context.Context) (bool, error) {
		if err := sleepFor(ctx, quietTime); err != nil {
			return false, err
		}
		return so(ctx)
	})
}

// countWrites returns the number of writes so far by the API server's own metrics, without those of leases, which show only
// that their holders run.
func countWrites(ctx context.Context, config *rest.Config) (float64, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	content, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	writes := 0.0
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		isWrite := slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, labels["verb"])
		if isWrite && labels["resource"] != "leases" {
			writes += m.GetCounter().GetValue()
		}
	}
	return writes, nil
}

// measureRest measures once for restTime.
func (b *bench) measureRest(ctx context.Context, name string, o *operated) error {
	before, err := o.readUse(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := sleepFor(ctx, restTime); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := o.readUse(ctx)
	if err != nil {
		return err
	}
	return b.writeSample(name, sample{
		"operator-%":  100 * (after.server - before.server).Seconds() / took.Seconds(),
		"apiserver-%": 100 * (after.store - before.store).Seconds() / took.Seconds(), // with etcd
		"writes/min":  (after.writes - before.writes) / took.Minutes(),
	})
}

// use is what an operator has used so far.
type use struct {
	cost

	writes float64
}

func (o *operated) readUse(ctx context.Context) (use, error) {
	operator, err := cputime.OfProcess(o.operator.Process.Pid)
	if err != nil {
		return use{}, err
	}
	store, err := o.plane.CPU()
	if err != nil {
		return use{}, err
	}
	writes, err := countWrites(ctx, o.plane.Config)
	return use{cost{operator, store}, writes}, err
}
