package kubernetes

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/repository"
)

func TestKubernetes(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Kubernetes store")
}

const (
	serviceAccount = "serve"
	role           = "phoneproof-server-kubernetes"
	ownerUID       = types.UID("5e2f4ff8-6a8e-4a0a-9b4e-0123456789ab")
)

var (
	plane *controlplane.ControlPlane
	admin *kubernetes.Clientset
	// server may do what the role that the chart installs grants in the namespaces it is bound in. The stores under
	// test have no other rights.
	server *rest.Config
)

var _ = BeforeSuite(func(ctx SpecContext) {
	startPlane(ctx)
	// The first creation has the API server compile the schema's rules, which takes longer than a call may.
	project := newNamespace(ctx) + "/warm"
	s, err := New(Options{Config: server, Project: project, ProjectUID: func() types.UID { return ownerUID }})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		o, err := s.newObject(newRequest(project), time.Now())
		Expect(err).NotTo(HaveOccurred())
		_, err = s.api.createObject(ctx, o)
		return err
	}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
})

func startPlane(ctx context.Context) {
	GinkgoHelper()
	var err error
	plane, err = controlplane.Start(controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	admin, err = kubernetes.NewForConfig(plane.Config)
	Expect(err).NotTo(HaveOccurred())
	server, err = plane.ServiceAccount("default", serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	server.Wrap(patient)

	granted := &rbacv1.ClusterRole{}
	Expect(repository.Decode(granted, repository.Roles, "server_kubernetes_role.yaml")).To(Succeed())
	Expect(granted.Name).To(Equal(role))
	_, err = admin.RbacV1().ClusterRoles().Create(ctx, granted, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// patient gives calls as long as a machine needs that is busy with other things. callTimeout is there for people who wait,
// and would have a stall of two seconds decide a spec.
func patient(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		caller := r.Context()
		ctx, cancel := context.WithCancel(context.WithoutCancel(caller))
		context.AfterFunc(caller, func() {
			if errors.Is(caller.Err(), context.Canceled) {
				cancel()
				return
			}
			time.AfterFunc(time.Minute, cancel)
		})
		return next.RoundTrip(r.Clone(ctx))
	})
}

// randomness is crypto/rand's.
type randomness struct{}

func (randomness) Read(p []byte) (int, error) { return rand.Read(p) }

var prepared sync.Map

// prepare makes a namespace in which the server has its role.
func prepare(ctx context.Context, namespace string) {
	GinkgoHelper()
	if _, done := prepared.LoadOrStore(namespace, true); done {
		return
	}
	_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: serviceAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: serviceAccount}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	a, err := newAPI(server, namespace, "any")
	Expect(err).NotTo(HaveOccurred())
	// The authorizer learns of a binding through its own watch.
	Eventually(func() error {
		err := a.client.Get().Namespace(namespace).Resource(resourceName).Name("any").Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := "test-" + strings.ToLower(rand.Text()[:12])
	prepare(ctx, namespace)
	return namespace
}

// open starts a store as the server and ends it with the spec.
func open(ctx context.Context, project string, o Options) *Store {
	GinkgoHelper()
	namespace, _, _ := strings.Cut(project, "/")
	prepare(ctx, namespace)
	o.Project = project
	if o.Config == nil {
		o.Config = server
	}
	if o.ProjectUID == nil {
		o.ProjectUID = func() types.UID { return ownerUID }
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	s, err := New(o)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { _ = s.Start(running) })
	DeferCleanup(func() {
		stop()
		done.Wait()
	})
	Eventually(s.HasSynced).WithContext(ctx).WithPolling(time.Millisecond).WithTimeout(time.Minute).Should(BeTrue())
	return s
}

// settle returns once the store's informer has brought it to the present. After failures an informer waits for up to a minute
// before it tries again. Listeners hear of the last change a moment later.
func settle(ctx context.Context, s *Store) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		moved := s.contacts.nextProgress()
		found, _, err := s.api.readSnapshot(ctx, selection{fields: s.api.fieldSelector()})
		Expect(err).NotTo(HaveOccurred())
		if s.limits.agrees(found) {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			Fail("the informer never arrived")
		}
	}
}

func (l *creationLimits) agrees(all []*entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(all) != len(l.stored) {
		return false
	}
	for _, e := range all {
		if known := l.stored[e.Name]; known == nil || known.ResourceVersion != e.ResourceVersion {
			return false
		}
	}
	return true
}
