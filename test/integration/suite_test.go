package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/program"
	"github.com/phoneproof/phoneproof/test/repository"
	_ "github.com/phoneproof/phoneproof/test/skipped" // prints which specs are skipped and why
)

// asProcess makes the test binary run as the program that the tests start, stop and kill.
const asProcess = "PHONEPROOF_TEST_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		os.Exit(program.Main())
	}
	os.Exit(m.Run())
}

// What must come is waited for, and what hangs is ended, by bounds that no healthy spec comes near, also where the machine has other
// things to do: how long something takes is measured by benchmarks.
const (
	patience = 3 * time.Minute  // for each Eventually
	hang     = 15 * time.Minute // for each spec
)

// TestIntegration is the only test of this package: each process of `ginkgo -procs` runs the whole binary.
func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	EnforceDefaultTimeoutsWhenUsingContexts()
	// Specs wait longer than Gomega's default interval of 10 ms, and polling less often saves processor time.
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Whole processes")
}

// The servers that specs share; each spec has its own namespace or database. Specs that stop, fill or measure a server start
// their own.
var (
	sharedCluster  *cluster
	sharedDatabase *pgserver.Server // nil if PostgreSQL is not installed
	sharedDir      string           // of all processes
)

// sharedServers is the data about the servers that the first process passes to the others.
type sharedServers struct {
	Dir        string           `json:"dir"`
	Kubeconfig string           `json:"kubeconfig"`
	Kubectl    string           `json:"kubectl"`
	Database   *pgserver.Server `json:"database"`
}

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	plane := startPlane()
	dir, err := os.MkdirTemp("", "phoneproof-integration-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	servers := sharedServers{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"), Kubectl: plane.Kubectl}
	Expect(controlplane.WriteKubeconfig(servers.Kubeconfig, plane.Config)).To(Succeed())
	newCluster(plane.Config, plane.Kubectl).createRoles(ctx)
	servers.Database, err = pgserver.Start(ctx, pgserver.Options{})
	if !errors.Is(err, pgserver.ErrNotInstalled) {
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(servers.Database.Stop)
	}
	encoded, err := json.Marshal(servers) //nolint:musttag // read by this program alone
	Expect(err).NotTo(HaveOccurred())
	return encoded
}, func(encoded []byte) {
	var servers sharedServers
	Expect(json.Unmarshal(encoded, &servers)).To(Succeed()) //nolint:musttag // as it was written
	config, err := clientcmd.BuildConfigFromFlags("", servers.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	sharedCluster, sharedDatabase, sharedDir = newCluster(config, servers.Kubectl), servers.Database, servers.Dir
})

func startPlane() *controlplane.ControlPlane {
	GinkgoHelper()
	// When stopped, it waits this long for open watches; the default is a minute.
	plane, err := controlplane.Start(controlplane.Options{APIServerArgs: map[string]string{"request-timeout": "12s"}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	return plane
}

// cluster is an API server with the specs' own clients.
type cluster struct {
	config  *rest.Config
	kubectl string
	admin   client.Client
	clients *clientset.Clientset
}

func newCluster(config *rest.Config, kubectl string) *cluster {
	GinkgoHelper()
	config.QPS = -1
	c := &cluster{config: config, kubectl: kubectl}
	var err error
	c.clients, err = clientset.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	Expect(verifyv1.AddToScheme(scheme)).To(Succeed())
	Expect(corev1.AddToScheme(scheme)).To(Succeed())
	c.admin, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// startCluster starts an API server for one spec.
func startCluster(ctx context.Context) (*cluster, *controlplane.ControlPlane) {
	GinkgoHelper()
	plane := startPlane()
	c := newCluster(plane.Config, plane.Kubectl)
	c.createRoles(ctx)
	return c, plane
}

// The roles of the serve processes, which are users with a token of a ServiceAccount.
const (
	kubernetesRole = "phoneproof-server-kubernetes"
	postgresRole   = "phoneproof-server-postgresql"
)

// createRoles creates the servers' roles, like an installation.
func (c *cluster) createRoles(ctx context.Context) {
	GinkgoHelper()
	for _, file := range []string{"server_kubernetes_role.yaml", "server_postgresql_role.yaml"} {
		role := &rbacv1.ClusterRole{}
		Expect(repository.Decode(role, repository.Roles, file)).To(Succeed())
		_, err := c.clients.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}
