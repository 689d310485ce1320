package controlplane_test

import (
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/test/controlplane"
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

		// The authorizer learns of a new binding through its own watch.
		Eventually(func() error {
			_, err := reader.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err
		}).WithContext(ctx).Should(Succeed())
		_, err = reader.CoreV1().ConfigMaps("default").Create(ctx, configMap("refused"), metav1.CreateOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
	})

	It("lets kubectl in with a kubeconfig file", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(controlplane.WriteKubeconfig(file, plane.Config)).To(Succeed())

		output, err := exec.CommandContext(ctx, plane.Kubectl, "--kubeconfig", file,
			"auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
		Expect(string(output)).To(Equal("admin"))
	})

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
})

var _ = Describe("Start", func() {
	It("names the command to run when the binaries are missing", func() {
		GinkgoT().Setenv("KUBEBUILDER_ASSETS", GinkgoT().TempDir())
		_, err := controlplane.Start(controlplane.Options{})
		Expect(err).To(MatchError(ContainSubstring("run make envtest-assets")))
	})

	It("does not search outside the repository", func() {
		GinkgoT().Chdir(GinkgoT().TempDir())
		_, err := controlplane.RepositoryRoot()
		Expect(err).To(MatchError(ContainSubstring("no go.mod of github.com/phoneproof/phoneproof")))
	})
})
