package controlplane_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/repository"
)

var _ = Describe("ControlPlane", func() {
	client := func(config *rest.Config) *kubernetes.Clientset {
		GinkgoHelper()
		c, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}

	It("is ready", func(ctx SpecContext) {
		answer, err := client(plane.Config).RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(answer)).To(Equal("ok"))
	})

	It("gives a service account the rights that RBAC grants to it and no others", func(ctx SpecContext) {
		config, err := plane.ServiceAccount("default", "reader")
		Expect(err).NotTo(HaveOccurred())
		reader := client(config)

		_, err = reader.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden), "before any grant")

		admin := client(plane.Config)
		_, err = admin.RbacV1().Roles("default").Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		// The authorizer receives new bindings through its own watch.
		Eventually(func() error {
			_, err := reader.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		_, err = reader.CoreV1().ConfigMaps("default").Create(ctx, configMap("refused"), metav1.CreateOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
	})

	It("writes a kubeconfig file with which kubectl authenticates", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(controlplane.WriteKubeconfig(file, plane.Config)).To(Succeed())

		output, err := exec.CommandContext(ctx, plane.Kubectl, "--kubeconfig", file,
			"auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
		Expect(string(output)).To(Equal("admin"))
	})

	It("runs the controllers that a test requests", func(ctx SpecContext) {
		maps := client(plane.Config).CoreV1().ConfigMaps("default")
		owner, err := maps.Create(ctx, configMap("owner"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		owned := configMap("owned")
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		_, err = maps.Create(ctx, owned, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		Expect(plane.StartControllers("garbage-collector-controller")).To(Succeed())
		DeferCleanup(plane.StopControllers)
		Expect(maps.Delete(ctx, owner.Name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() bool {
			_, err := maps.Get(ctx, owned.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).WithContext(ctx).WithTimeout(90 * time.Second).Should(BeTrue())
		Expect(plane.StopControllers()).To(Succeed())
		Expect(plane.StopControllers()).To(Succeed(), "nothing to stop the second time")
	}, SpecTimeout(3*time.Minute))

	It("keeps objects, address and users when the API server restarts", func(ctx SpecContext) {
		before := client(plane.Config).CoreV1().ConfigMaps("default")
		_, err := before.Create(ctx, configMap("survivor"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		Expect(plane.StopAPIServer()).To(Succeed())
		_, err = before.Get(ctx, "survivor", metav1.GetOptions{})
		Expect(err).To(HaveOccurred(), "during the outage")

		Expect(plane.StartAPIServer()).To(Succeed())
		_, err = before.Get(ctx, "survivor", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("stops an API server that has ended already", func(ctx SpecContext) {
		process, err := plane.FindAPIServer()
		Expect(err).NotTo(HaveOccurred())
		Expect(process.Kill()).To(Succeed())
		Eventually(func() error { return syscall.Kill(process.Pid, 0) }).WithContext(ctx).WithTimeout(time.Minute).WithPolling(time.Microsecond).
			Should(MatchError(syscall.ESRCH))
		Expect(plane.StopAPIServer()).To(Succeed())
		Expect(plane.StartAPIServer()).To(Succeed())
		_, err = client(plane.Config).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(4*time.Minute))

	It("kills and freezes the API server", func(ctx SpecContext) {
		maps := client(plane.Config).CoreV1().ConfigMaps("default")
		Expect(plane.KillAPIServer()).To(Succeed())
		_, err := maps.List(ctx, metav1.ListOptions{})
		Expect(err).To(HaveOccurred())
		Expect(plane.StartAPIServer()).To(Succeed())
		_, err = maps.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())

		thaw, err := plane.FreezeAPIServer()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(thaw)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = maps.List(short, metav1.ListOptions{})
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(thaw()).To(Succeed())
		Eventually(func() error {
			_, err := maps.List(ctx, metav1.ListOptions{})
			return err
		}).WithContext(ctx).WithTimeout(90 * time.Second).Should(Succeed())
		Expect(plane.EtcdURL()).To(HavePrefix("http://"))
	}, SpecTimeout(4*time.Minute))
})

var _ = Describe("Start", func() {
	It("names the command to run when the binaries are missing", func() {
		GinkgoT().Setenv("KUBEBUILDER_ASSETS", GinkgoT().TempDir())
		_, err := controlplane.Start(controlplane.Options{})
		Expect(err).To(MatchError(ContainSubstring("run make envtest-assets")))
	})

	It("names the command to run when the controllers are missing", func() {
		without := *plane
		without.Kubectl = filepath.Join(GinkgoT().TempDir(), "kubectl")
		Expect(without.StartControllers("namespace-controller")).To(MatchError(ContainSubstring("run hack/envtest-assets.sh controllers")))
	})

	It("leaves no server behind when its test is killed", func(ctx SpecContext) {
		program, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		test := exec.CommandContext(ctx, program)
		test.Env = append(os.Environ(), dieVariable+"=true")
		output, err := test.Output()
		Expect(err).To(MatchError("signal: killed"), string(output))
		dir, count, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
		Expect(count).To(Equal("3"), "API server, etcd and controllers")
		Eventually(controlplane.CountServers).WithContext(ctx).WithArguments(dir).WithTimeout(time.Minute).Should(BeZero())
		Eventually(dir).WithContext(ctx).WithTimeout(time.Minute).ShouldNot(BeADirectory())
	}, SpecTimeout(4*time.Minute))

	It("does not search outside the repository", func() {
		GinkgoT().Chdir(GinkgoT().TempDir())
		_, err := repository.Root()
		Expect(err).To(MatchError(ContainSubstring("no go.mod of github.com/phoneproof/phoneproof")))
	})
})
