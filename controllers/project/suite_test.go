package project

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/repository"
)

func TestProject(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Project controller")
}

// The operators of these specs have the generated role and no other right; admin plays all other clients.
var (
	plane    *controlplane.ControlPlane
	admin    client.WithWatch
	clients  *clientset.Clientset
	operator *rest.Config
)

const operatorNamespace = "phoneproof-system"

var _ = BeforeSuite(func(ctx SpecContext) {
	log.SetLogger(GinkgoLogr)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyTimeout(2 * time.Minute) // the machine may be busy
	var err error
	plane, err = controlplane.Start(controlplane.Options{APIServerArgs: map[string]string{
		"service-cluster-ip-range": "10.0.0.0/20", // the default range of envtest has no room for the Services of many projects
		"watch-cache":              "false",       // a list would wait up to 100 ms until the cache has what was written last
	}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	scheme, err := Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(plane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	clients, err = clientset.NewForConfig(plane.Config)
	Expect(err).NotTo(HaveOccurred())

	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})).To(Succeed())
	for _, file := range []string{
		"config/rbac/service_account.yaml", roles + "role.yaml", "config/rbac/role_binding.yaml", roles + "server_kubernetes_role.yaml",
		roles + "server_postgresql_role.yaml", roles + "verificationproject_editor_role.yaml",
	} {
		Expect(admin.Create(ctx, manifest(file))).To(Succeed(), file)
	}
	operator = asAccount(ctx, operatorNamespace, "phoneproof-operator")
	awaitRights(ctx, operator, operatorNamespace, Not(BeEmpty()))
})

const roles = "charts/phoneproof/files/rbac/"

// manifest reads an object of the repository.
func manifest(file string) *unstructured.Unstructured {
	GinkgoHelper()
	var u unstructured.Unstructured
	Expect(repository.Decode(&u.Object, file)).To(Succeed())
	return &u
}

// asAccount returns the configuration of a client with a token of a ServiceAccount.
func asAccount(ctx context.Context, namespace, name string) *rest.Config {
	GinkgoHelper()
	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(plane.Config)
	config.BearerToken = token.Status.Token
	config.QPS = -1
	return config
}

// bindRole gives a ServiceAccount the rules of the operator's role in one namespace, as an install for some namespaces does.
func bindRole(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	role := &rbacv1.Role{}
	content, err := manifest(roles + "role.yaml").MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(content, role)).To(Succeed())
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: role.Rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: name}},
		},
	} {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
}

// newNamespace creates a namespace for the spec and returns its name. Its projects are deleted with the spec, because most
// operators work in all namespaces and would reconcile them in every later spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(deleteProjects, namespace.Name)
	return namespace.Name
}

// deleteProjects deletes the projects of a namespace, whatever finalizers keep them, and what a garbage collector would delete
// then.
func deleteProjects(ctx context.Context, namespace string) {
	GinkgoHelper()
	var all verifyv1.VerificationProjectList
	Expect(admin.List(ctx, &all, client.InNamespace(namespace))).To(Succeed())
	for i := range all.Items {
		if len(all.Items[i].Finalizers) > 0 {
			without := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
			Expect(client.IgnoreNotFound(admin.Patch(ctx, &all.Items[i], without))).To(Succeed())
		}
	}
	for _, kind := range append([]client.Object{&verifyv1.VerificationProject{}}, apply.Objects(false)...) {
		Expect(admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace))).To(Succeed(), "%T", kind)
	}
}

// lines returns a text's lines without the empty ones.
func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// kubectl runs kubectl as the cluster's administrator.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "admin")
	Expect(controlplane.WriteKubeconfig(file, plane.Config)).To(Succeed())
	out, err := exec.CommandContext(ctx, plane.Kubectl, append([]string{"--kubeconfig", file}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

// newList returns an empty list of a kind.
func newList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}
