package integration_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/ports"
)

var _ = Describe("operator and serve", func() {
	It("make a project Ready together, and say which secret is missing until it is back", func(ctx SpecContext) {
		s := newShop(ctx)
		op := startOperator(ctx, s)
		d := s.deployment(ctx)
		s.becomeReady(ctx)
		// The ServiceAccount and the RoleBinding are those that the operator made.
		s.kubeconfig = s.tokenOf(ctx, "phoneproof-shop")
		s.start(ctx, 2)
		s.stands(ctx, verifyv1.ConditionReady, verifyv1.ReasonReady)
		before := s.deployment(ctx)
		Expect(before.Generation).To(Equal(d.Generation))

		Expect(os.Remove(filepath.Join(s.secrets, "shop", "api-key"))).To(Succeed())
		s.stands(ctx, verifyv1.ConditionReady, verifyv1.ReasonSecretMissing)
		ready := s.condition(ctx, verifyv1.ConditionReady)
		Expect(ready.Status).To(Equal(metav1.ConditionFalse))
		Expect(ready.Message).To(Equal("spec.apiKeys[backend].secretRef: Secret shop, key api-key is missing"))
		writeFile(s.secrets, "shop/api-key", "\n")
		s.stands(ctx, verifyv1.ConditionReady, verifyv1.ReasonSecretInvalid)
		Expect(s.condition(ctx, verifyv1.ConditionReady).Message).To(HaveSuffix("key api-key is empty"))
		s.writeSecret("api-key", s.key)
		s.stands(ctx, verifyv1.ConditionReady, verifyv1.ReasonReady)

		By("without touching pods that work")
		Expect(s.deployment(ctx).ResourceVersion).To(Equal(before.ResourceVersion))
		for _, r := range s.replicas {
			Expect(r.running()).To(BeTrue())
		}

		By("saying it in its metrics too")
		Eventually(op.get).WithContext(ctx).WithArguments(op.api, "/metrics").WithTimeout(patience).Should(ContainSubstring(
			`phoneproof_project_condition{name="shop",namespace="` + s.namespace + `",reason="Ready",status="True",type="Ready"} 1`))
		Expect(op.get(ctx, op.health, "/readyz")).To(Equal("ok\n"))
		Expect(op.get(ctx, op.health, "/livez")).To(Equal("ok\n"))
		Expect(op.printed()).NotTo(ContainSubstring(s.receiver.url))
		for line := range strings.Lines(op.printed()) {
			if !strings.Contains(line, "deadline exceeded") { // what a machine that is busy had no time for is tried again
				Expect(line).NotTo(ContainSubstring(`"level":"ERROR"`))
			}
		}
	}, SpecTimeout(3*time.Minute))

	It("go on when the operator that leads is killed", func(ctx SpecContext) {
		s := newShop(ctx)
		first := startOperator(ctx, s)
		s.deployment(ctx)
		second := startOperator(ctx, s)
		Eventually(second.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue(), "one that waits is ready too")
		first.kill()
		s.change(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Server.Replicas = new(int32(3)) })
		Eventually(func() int32 { return *s.deployment(ctx).Spec.Replicas }).WithContext(ctx).WithTimeout(2 * patience).Should(BeEquivalentTo(3))

		By("ending in order on a signal, and giving up the lease")
		second.signal(syscall.SIGTERM)
		Eventually(second.exited).WithContext(ctx).WithTimeout(patience).Should(BeClosed())
		Expect(second.cmd.ProcessState.ExitCode()).To(BeZero(), second.printed)
		lease, err := s.clients.CoordinationV1().Leases(s.namespace).Get(ctx, "phoneproof-operator", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*lease.Spec.HolderIdentity).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))
})

// startOperator starts an operator process for the shop's namespace, with rights in it alone, and does not wait for it. Its metrics
// are in plain text unless a flag says otherwise.
func startOperator(ctx context.Context, s *shop, flags ...string) *replica {
	GinkgoHelper()
	const name = "phoneproof-operator"
	if _, err := s.clients.CoreV1().ServiceAccounts(s.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		_, err := s.clients.CoreV1().ServiceAccounts(s.namespace).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, file := range []string{"role.yaml", "leader_election_role.yaml"} {
			s.bind(ctx, name, s.role(ctx, file))
		}
		s.role(ctx, "server_kubernetes_role.yaml")
	}
	r := &replica{api: ports.Address(GinkgoT()), health: ports.Address(GinkgoT()), exited: make(chan struct{})}
	r.start("log of the operator", append([]string{
		"operator", "--server-image=phoneproof", "--watch-namespace", s.namespace,
		"--leader-elect-namespace", s.namespace, "--kubeconfig", s.tokenOf(ctx, name),
		"--metrics-bind-address", r.api, "--health-probe-bind-address", r.health, "--metrics-secure=false",
		leaseFlags[0], leaseFlags[1], leaseFlags[2],
	}, flags...)...)
	return r
}

// role creates a role of config/rbac as a Role of the shop's namespace, as an install for some namespaces does.
func (s *shop) role(ctx context.Context, file string) string {
	GinkgoHelper()
	root, err := controlplane.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	manifest, err := os.ReadFile(filepath.Join(root, "config", "rbac", file))
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.Role{}
	Expect(yaml.Unmarshal(manifest, role)).To(Succeed())
	role.TypeMeta, role.Namespace = metav1.TypeMeta{}, ""
	_, err = s.clients.RbacV1().Roles(s.namespace).Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return role.Name
}

func (s *shop) bind(ctx context.Context, account, role string) {
	GinkgoHelper()
	_, err := s.clients.RbacV1().RoleBindings(s.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// tokenOf returns a kubeconfig file with a token of a ServiceAccount.
func (s *shop) tokenOf(ctx context.Context, account string) string {
	GinkgoHelper()
	token, err := s.clients.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = token.Status.Token
	canaries.add(token.Status.Token)
	file := filepath.Join(GinkgoT().TempDir(), account)
	Expect(controlplane.WriteKubeconfig(file, config)).To(Succeed())
	return file
}

// deployment returns the Deployment that the operator made, once it is there.
func (s *shop) deployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	var d *appsv1.Deployment
	Eventually(func() (err error) {
		d, err = s.clients.AppsV1().Deployments(s.namespace).Get(ctx, "phoneproof-shop", metav1.GetOptions{})
		return err
	}).WithContext(ctx).WithTimeout(2 * patience).Should(Succeed())
	return d
}

// becomeReady gives the Deployment the status that its controller gives it when its pods are ready.
func (s *shop) becomeReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		d := s.deployment(ctx)
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"}},
		}
		_, err := s.clients.AppsV1().Deployments(s.namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		return err
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

// get returns what an address of the process answers.
func (r *replica) get(ctx context.Context, address, path string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(body)
}
