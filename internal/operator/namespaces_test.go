package operator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/ports"
	"github.com/phoneproof/phoneproof/test/repository"
)

// asOperator has this test program run as an operator.
const asOperator = "PHONEPROOF_TEST_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) == "" {
		os.Exit(m.Run())
	}
	if err := runOperator(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runOperator runs an operator by the arguments of this process until SIGTERM.
func runOperator() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o, err := parseOptions(os.Args[1:]...)
	if err != nil {
		return err
	}
	o.probePeriod = 200 * time.Millisecond
	return Run(ctx, o, funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{}))
}

// tenants is a cluster with an operator that has the chart's Roles in some namespaces.
type tenants struct {
	*WithT
	t     *testing.T
	admin client.Client
	args  []string
	// api and health are the addresses of the running operator, ended is closed at its end.
	api, health string
	process     *exec.Cmd
	ended       chan struct{}
	log         bytes.Buffer
}

// newRole returns the roles of the chart as it installs them in a namespace.
func (c *tenants) newRole(namespace string) []client.Object {
	c.t.Helper()
	var objects []client.Object
	for _, file := range []string{"role.yaml", "server_kubernetes_role.yaml"} {
		role := &rbacv1.Role{}
		c.Expect(repository.Decode(role, repository.Roles, file)).To(Succeed())
		role.TypeMeta, role.Namespace = metav1.TypeMeta{}, namespace
		objects = append(objects, role)
	}
	return append(objects, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "phoneproof-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "phoneproof-operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "phoneproof-system", Name: "phoneproof-operator"}},
	})
}

func (c *tenants) create(objects ...client.Object) {
	c.t.Helper()
	for _, object := range objects {
		c.Expect(c.admin.Create(c.t.Context(), object)).To(Succeed())
	}
}

func newNamespace(name string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// deleteNamespace returns when the namespace is gone.
func (c *tenants) deleteNamespace(name string) {
	c.t.Helper()
	c.Expect(c.admin.Delete(c.t.Context(), newNamespace(name))).To(Succeed())
	c.eventually(func() bool {
		return apierrors.IsNotFound(c.admin.Get(c.t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}))
	}).Should(BeTrue())
}

func (c *tenants) eventually(check any) AsyncAssertion {
	return c.Eventually(check).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond)
}

// start starts the operator.
func (c *tenants) start() {
	c.t.Helper()
	c.api, c.health, c.ended = ports.Address(c.t), ports.Address(c.t), make(chan struct{})
	c.process = exec.Command(os.Args[0], append(slices.Clone(c.args), "--metrics-bind-address", c.api, "--health-probe-bind-address", c.health)...)
	c.process.Env, c.process.Stderr = append(os.Environ(), asOperator+"=1"), &c.log
	c.Expect(c.process.Start()).To(Succeed())
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait()
		close(ended)
	}(c.process, c.ended)
}

// restart stops the operator as the kubelet does, and starts it again.
func (c *tenants) restart() {
	c.t.Helper()
	c.Expect(c.process.Process.Signal(syscall.SIGTERM)).To(Succeed())
	c.awaitEnd()
	c.start()
}

// awaitEnd waits until the operator has ended in order.
func (c *tenants) awaitEnd() {
	c.t.Helper()
	c.eventually(c.ended).Should(BeClosed())
	c.Expect(c.process.ProcessState.ExitCode()).To(BeZero())
}

func get(address, path string) string {
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// expectUnread checks that the operator is ready, and names exactly one namespace, or none, as unread.
func (c *tenants) expectUnread(namespace string) {
	c.t.Helper()
	want := "200 ok\n"
	if namespace != "" {
		want += "namespace " + namespace + " is not read: missing, or lacks the chart's Roles\n"
	}
	c.eventually(func() string { return get(c.health, "/readyz") }).Should(Equal(want))
	metrics := get(c.api, "/metrics")
	for _, name := range []string{"a", "b", "c"} {
		c.Expect(metrics).To(ContainSubstring(fmt.Sprintf("phoneproof_operator_namespace_unread{namespace=%q} %d",
			name, map[bool]int{true: 1}[name == namespace])))
	}
}

// expectServed checks that the operator carries out a change of a project of each namespace.
func (c *tenants) expectServed(replicas int32, names ...string) {
	c.t.Helper()
	for _, namespace := range names {
		p := &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
		c.eventually(func() error {
			err := c.admin.Get(c.t.Context(), client.ObjectKeyFromObject(p), p)
			p.Spec = verifyv1.VerificationProjectSpec{
				APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "api-key"}}},
				Telegram: &verifyv1.Telegram{
					BotUsername: "shop_" + namespace + "_bot", BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"},
				},
				Server: verifyv1.Server{Replicas: &replicas},
			}
			if apierrors.IsNotFound(err) {
				return c.admin.Create(c.t.Context(), p)
			}
			return c.admin.Update(c.t.Context(), p)
		}).Should(Succeed())
		c.eventually(func() int32 {
			var d appsv1.Deployment
			_ = c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: "phoneproof-shop"}, &d)
			return ptr.Deref(d.Spec.Replicas, 0)
		}).Should(Equal(replicas), namespace)
	}
}

func TestRun_namespaceThatCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	plane, err := controlplane.Start(controlplane.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(plane.Stop()).To(Succeed()) })
	g.Expect(plane.StartControllers("namespace-controller")).To(Succeed())
	scheme, err := project.Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	admin, err := client.New(plane.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	account, err := plane.ServiceAccount("phoneproof-system", "phoneproof-operator")
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(t.TempDir(), "operator")
	g.Expect(controlplane.WriteKubeconfig(kubeconfig, account)).To(Succeed())
	c := &tenants{WithT: g, t: t, admin: admin, args: []string{
		"--server-image=phoneproof", "--watch-namespace=a,b,c", "--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-secure=false",
	}}
	t.Cleanup(func() {
		_ = c.process.Process.Kill()
		<-c.ended
		if t.Failed() {
			t.Log(c.log.String())
		}
	})
	for _, name := range []string{"a", "b"} {
		c.create(newNamespace(name))
		c.create(c.newRole(name)...)
	}

	c.start()
	c.expectUnread("c")
	c.expectServed(2, "a", "b")

	c.create(newNamespace("c")) // without the chart's Roles
	c.restart()
	c.expectUnread("c")
	c.expectServed(3, "a", "b")

	c.create(c.newRole("c")...)
	c.awaitEnd()
	c.start()
	c.expectUnread("")
	c.expectServed(4, "a", "b", "c")

	c.deleteNamespace("a") // while it runs
	c.expectUnread("a")
	c.expectServed(5, "b", "c")
	c.Expect(c.ended).NotTo(BeClosed(), "the loss alone ends nothing")
	c.create(newNamespace("a"))
	c.create(c.newRole("a")...)
	c.expectUnread("")
	c.expectServed(6, "a", "b", "c") // its watches go on
	c.Expect(c.ended).NotTo(BeClosed())

	c.deleteNamespace("b")
	c.restart()
	c.expectUnread("b")
	c.expectServed(7, "a", "c")
	c.create(newNamespace("b"))
	c.create(c.newRole("b")...)
	c.awaitEnd()
	c.start()
	c.expectUnread("")
	c.expectServed(8, "a", "b", "c")
}

// failing is a client whose lists fail with an error.
type failing struct {
	client.Client
	err error
}

func (f *failing) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return verifyv1.GroupVersion.WithKind("VerificationProject"), nil
}

func (f *failing) List(context.Context, client.ObjectList, ...client.ListOption) error { return f.err }

func TestNamespaces_probe(t *testing.T) {
	g := NewWithT(t)
	var log []string
	logger := funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})
	n, err := (&Options{Namespaces: []string{"a"}}).newNamespaces(&rest.Config{}, logger)
	g.Expect(err).NotTo(HaveOccurred())
	forbidden, unavailable := apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewServiceUnavailable("")
	for _, step := range []struct {
		err    error
		unread []string
	}{
		{unavailable, []string{}}, {forbidden, []string{"a"}}, {unavailable, []string{"a"}}, {nil, []string{}}, {unavailable, []string{}},
	} {
		n.client = &failing{err: step.err}
		n.probeAll(t.Context())
		g.Expect(n.listUnread()).To(Equal(step.unread))
	}
	g.Expect(log).To(ContainElement(ContainSubstring("namespace can be read, and is served after a restart")))
	for _, state := range []struct {
		cached []string
		note   string
		gauge  float64
	}{
		{[]string{}, "\nnamespace a can be read, and is served after a restart: by itself within ten minutes, or at once by kubectl rollout restart", 1},
		{[]string{"a"}, "", 0},
	} {
		n.cached = state.cached
		n.probeAll(t.Context())
		g.Expect(n.describeUnread()).To(Equal(state.note))
		g.Expect(testutil.ToFloat64(n.gauge)).To(Equal(state.gauge))
	}
}

func TestNamespaces_shouldEnd(t *testing.T) {
	ab, abc := []string{"a", "b"}, []string{"a", "b", "c"}
	for name, test := range map[string]struct {
		cached, unread     []string
		blocked, old, want bool
	}{
		"all are read":                   {cached: abc, old: true},
		"one is left out":                {cached: ab, unread: []string{"c"}, old: true},
		"it has come back":               {cached: ab, old: true, want: true},
		"it has come back early":         {cached: ab},
		"another is lost":                {cached: ab, unread: []string{"b", "c"}, old: true},
		"one is lost before it is read":  {cached: abc, unread: []string{"c"}, blocked: true, want: true},
		"the API server is slow":         {cached: abc, blocked: true, old: true},
		"none can be read":               {cached: abc, unread: abc, blocked: true, old: true},
		"the first of all has come back": {cached: abc, unread: ab, blocked: true, want: true},
	} {
		n := &namespaces{watched: abc, cached: test.cached}
		n.unread.Store(&test.unread)
		NewWithT(t).Expect(n.shouldEnd(test.blocked, test.old)).To(Equal(test.want), name)
	}
}
