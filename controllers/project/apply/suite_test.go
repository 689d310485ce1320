package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

// timeout is how long a test waits for a result. It is long because the machine may be busy.
const timeout = time.Minute

func TestApply(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Apply")
}

var (
	plane *controlplane.ControlPlane
	// admin plays all clients other than the operator.
	admin client.WithWatch
	// operator has the operator's generated rights, and no others.
	operator *rest.Config
)

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	var err error
	plane, err = controlplane.Start(controlplane.Options{
		WithoutCRDs: true,
		CRDPaths:    []string{"../../../test/controlplane/testdata/httproute.yaml"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	admin, err = client.NewWithWatch(plane.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	for _, file := range []string{
		"config/rbac/role_binding.yaml", "charts/phoneproof/files/rbac/role.yaml",
		"charts/phoneproof/files/rbac/server_kubernetes_role.yaml", "charts/phoneproof/files/rbac/server_postgresql_role.yaml",
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", file))
		Expect(err).NotTo(HaveOccurred())
		var object unstructured.Unstructured
		Expect(yaml.Unmarshal(content, &object.Object)).To(Succeed())
		Expect(admin.Create(ctx, &object)).To(Succeed(), file)
	}
	operator, err = plane.ServiceAccount("phoneproof-system", "phoneproof-operator")
	Expect(err).NotTo(HaveOccurred())
	own, err := client.New(operator, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { // the authorizer sees a binding through a watch
		return own.List(ctx, &corev1.ServiceList{})
	}).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
})

// appliedProject is a project in a namespace of its own, and the applier of its children.
type appliedProject struct {
	project *verifyv1.VerificationProject
	options render.Options
	applier *apply.Applier
	writes  *writes
}

var appliedProjects int

// newAppliedProject creates the namespace of a project, and an applier for it.
func newAppliedProject(ctx SpecContext, c rendertest.Case) *appliedProject {
	GinkgoHelper()
	appliedProjects++
	namespace := fmt.Sprintf("applied-%d", appliedProjects)
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	c.Project.Namespace = namespace
	w := &appliedProject{project: c.Project, options: c.Options, writes: &writes{}}
	w.options.HTTPRoutes = true
	config := rest.CopyConfig(operator)
	config.Wrap(w.writes.count)
	own, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	w.applier = apply.New(apply.Options{Client: own, Live: own, HTTPRoutes: func() bool { return true }})
	return w
}

// smallest is the case of the smallest project.
func smallest() rendertest.Case { return rendertest.Cases()[0] }

// apply observes and applies once, as a reconciliation does, and returns the number of write requests.
func (w *appliedProject) apply(ctx context.Context) (apply.Result, int) {
	GinkgoHelper()
	result, writes, err := w.tryApply(ctx, apply.Request{})
	Expect(err).NotTo(HaveOccurred())
	return result, writes
}

// tryApply does the same but returns the error. Unset fields of the request are filled in.
func (w *appliedProject) tryApply(ctx context.Context, r apply.Request) (apply.Result, int, error) {
	GinkgoHelper()
	if r.Observed == nil {
		r.Observed = w.observe(ctx)
	}
	w.project.Default()
	r.Project, r.Wanted = w.project, render.Project(w.project, w.options)
	w.writes.reset()
	result, err := w.applier.Apply(ctx, r)
	return result, len(w.writes.all()), err
}

func (w *appliedProject) observe(ctx context.Context) *apply.Observed {
	GinkgoHelper()
	observed, err := w.applier.Observe(ctx, w.project)
	Expect(err).NotTo(HaveOccurred())
	return observed
}

// applyAll applies until nothing is left to write.
func (w *appliedProject) applyAll(ctx context.Context) {
	GinkgoHelper()
	for range 3 {
		if _, writes := w.apply(ctx); writes == 0 {
			return
		}
	}
	Fail(fmt.Sprintf("it does not settle, and writes again: %v", w.writes.all()))
}

func (w *appliedProject) name() string { return render.Name(w.project.Name) }

// get reads the child with the usual name into an object.
func (w *appliedProject) get(ctx context.Context, object client.Object) error {
	return admin.Get(ctx, client.ObjectKey{Namespace: w.project.Namespace, Name: w.name()}, object)
}

// read is get for an object that must exist.
func read[O any, P interface {
	*O
	client.Object
}](ctx context.Context, w *appliedProject) P {
	GinkgoHelper()
	object := P(new(O))
	Expect(w.get(ctx, object)).To(Succeed())
	return object
}

// refs returns the references to the usual children of these kinds.
func (w *appliedProject) refs(kinds ...string) []apply.Ref {
	var refs []apply.Ref
	for _, kind := range kinds {
		refs = append(refs, apply.Ref{Kind: kind, Name: w.name()})
	}
	return refs
}

// writes counts the write requests of a client, or all requests.
type writes struct {
	reads bool
	mu    sync.Mutex
	seen  []string
}

func (w *writes) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
}

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.seen...)
}

func (w *writes) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if w.reads || r.Method != http.MethodGet {
			w.mu.Lock()
			w.seen = append(w.seen, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// emptyCache is a client whose cache is empty: not yet filled, or restricted to a label that the objects lack.
type emptyCache struct{ client.Client }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", object)}, key.Name)
}

func (emptyCache) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
