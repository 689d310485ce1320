package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/repository"
)

const serverRole = "phoneproof-server-kubernetes"

// objectKey returns a valid API key that is unique for n.
func objectKey(n string) string { return "api-key-" + strings.Repeat("x", 32) + n }

// newProject returns a project with two API keys and a bot. Its secrets are shop/<key>.
func newProject() *verifyv1.VerificationProject {
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	p := &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: "books", Name: "shop"},
		Spec: verifyv1.VerificationProjectSpec{
			APIKeys: []verifyv1.APIKey{
				{Name: "backend", SecretRef: ref("backend")},
				{Name: "monitor", SecretRef: ref("monitor"), Scopes: []verifyv1.Scope{verifyv1.ScopeStatus}},
			},
			Telegram: &verifyv1.Telegram{BotUsername: "ada_books_bot", BotTokenSecretRef: ref("bot")},
		},
	}
	p.Default()
	return p
}

// layOutSecrets writes the secrets of newProject to DIR/shop/KEY.
func layOutSecrets(dir string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Join(dir, "shop"), 0o750)).To(Succeed())
	for key, value := range map[string]string{"backend": objectKey("backend"), "monitor": objectKey("monitor"), "bot": "123456789:AA-bot-token"} {
		Expect(os.WriteFile(filepath.Join(dir, "shop", key), []byte(value), 0o600)).To(Succeed())
	}
}

// findKeyName returns the name of the API key with a value; empty if there is none.
func findKeyName(s *settings.Settings, value string) string {
	key, err := s.Keys.Find(value, time.Now())
	if err != nil {
		return ""
	}
	return key.Name
}

var (
	plane *controlplane.ControlPlane
	admin client.Client
	// serverConfig has the permissions of the chart's role in the namespaces where it is bound. Only the objects under test use it.
	serverConfig *rest.Config
)

// TestObject runs the tests that share one API server.
func TestObject(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Settings of a project's object")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr) // client-go's watches log through it
	var err error
	// A stopping API server waits for its watches, by default for a minute.
	plane, err = controlplane.Start(controlplane.Options{APIServerArgs: map[string]string{"request-timeout": "12s"}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, verifyv1.AddToScheme, apiextensionsv1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	admin, err = client.New(plane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	serverConfig, err = plane.ServiceAccount("default", "serve")
	Expect(err).NotTo(HaveOccurred())

	granted := &rbacv1.ClusterRole{}
	Expect(repository.Decode(granted, repository.Roles, "server_kubernetes_role.yaml")).To(Succeed())
	Expect(granted.Name).To(Equal(serverRole))
	Expect(admin.Create(ctx, granted)).To(Succeed())
})

// calls records the requests to the API server.
type calls struct {
	mu   sync.Mutex
	made []*http.Request
}

// wrap records the requests of a client.
func (c *calls) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		c.made = append(c.made, r)
		c.mu.Unlock()
		return next.RoundTrip(r)
	})
}

func (c *calls) all() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*http.Request(nil), c.made...)
}

// watchedProject is a project in its own namespace, and the Object that watches it.
type watchedProject struct {
	*object

	key   types.NamespacedName
	logs  *gbytes.Buffer
	calls calls
}

// newWatchedProject returns a namespace without a project, and an Object that is not started.
func newWatchedProject(ctx context.Context) *watchedProject {
	GinkgoHelper()
	f := &watchedProject{key: types.NamespacedName{Namespace: "test-" + strings.ToLower(rand.Text()[:12]), Name: "shop"}}
	grantRole(ctx, f.key.Namespace)
	dir := GinkgoT().TempDir()
	layOutSecrets(dir)
	config := rest.CopyConfig(serverConfig)
	config.Wrap(f.calls.wrap)
	f.logs = gbytes.NewBuffer()
	log := logr.FromSlogHandler(slog.NewJSONHandler(f.logs, nil))
	var err error
	f.object, err = newObject(config, f.key, dir, nil, clock.RealClock{}, log)
	Expect(err).NotTo(HaveOccurred())
	Expect(f.calls.all()).To(BeEmpty(), "no requests before Start")
	return f
}

// grantRole creates a namespace in which the server has its role.
func grantRole(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serve"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: serverRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "serve"}},
	})).To(Succeed())
	reader, err := client.New(serverConfig, client.Options{Scheme: admin.Scheme(), Mapper: verifyv1.Mapper()})
	Expect(err).NotTo(HaveOccurred())
	// The authorizer receives the binding through its own watch.
	Eventually(func() error {
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "any"}, &verifyv1.VerificationProject{})
		return client.IgnoreNotFound(err)
	}).WithContext(ctx).WithTimeout(changeTimeout).Should(Succeed())
}

// start runs the Object until the spec ends.
func (f *watchedProject) start() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).WithTimeout(changeTimeout).Should(Receive(BeNil()))
	})
}

// serveProject creates the project, starts its Object and returns when settings are available.
func serveProject(ctx context.Context) *watchedProject {
	GinkgoHelper()
	f := newWatchedProject(ctx)
	f.create(ctx, nil)
	f.start()
	Expect(f.Wait(ctx)).To(Succeed())
	return f
}

// create creates the project in the cluster and returns its UID.
func (f *watchedProject) create(ctx context.Context, edit func(*verifyv1.VerificationProject)) types.UID {
	GinkgoHelper()
	p := newProject()
	p.Namespace, p.Name = f.key.Namespace, f.key.Name
	if edit != nil {
		edit(p)
	}
	Expect(admin.Create(ctx, p)).To(Succeed())
	return p.UID
}

// edit changes the project in the cluster, and retries on conflicts.
func (f *watchedProject) edit(ctx context.Context, change func(*verifyv1.VerificationProject)) {
	GinkgoHelper()
	Eventually(func() error {
		p := &verifyv1.VerificationProject{}
		if err := admin.Get(ctx, f.key, p); err != nil {
			return err
		}
		change(p)
		return admin.Update(ctx, p)
	}).WithContext(ctx).WithTimeout(changeTimeout).Should(Succeed())
}

// remove deletes the project and waits until it is gone.
func (f *watchedProject) remove(ctx context.Context) {
	GinkgoHelper()
	p := &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: f.key.Namespace, Name: f.key.Name}}
	Expect(admin.Delete(ctx, p)).To(Succeed())
	Eventually(func() error { return admin.Get(ctx, f.key, p) }).WithContext(ctx).WithTimeout(changeTimeout).
		Should(Satisfy(apierrors.IsNotFound))
}

func (f *watchedProject) logged() string { return string(f.logs.Contents()) }
