package integration_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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
	"github.com/phoneproof/phoneproof/test/repository"
)

var _ = Describe("operator and serve", func() {
	It("make a project Ready together, and report which secret is missing until it is back", func(ctx SpecContext) {
		s := newShop(ctx)
		op := startOperator(ctx, s)
		d := s.awaitDeployment(ctx)
		s.becomeReady(ctx)
		// The operator created the ServiceAccount and the RoleBinding.
		s.kubeconfig = s.tokenOf(ctx, "phoneproof-shop")
		s.start(ctx, 2)
		s.awaitReason(ctx, verifyv1.ConditionReady, verifyv1.ReasonReady)
		before := s.awaitDeployment(ctx)
		Expect(before.Generation).To(Equal(d.Generation))

		Expect(os.Remove(filepath.Join(s.secrets, "shop", "api-key"))).To(Succeed())
		s.awaitReason(ctx, verifyv1.ConditionReady, verifyv1.ReasonSecretMissing)
		ready := s.readCondition(ctx, verifyv1.ConditionReady)
		Expect(ready.Status).To(Equal(metav1.ConditionFalse))
		Expect(ready.Message).To(Equal("spec.apiKeys[backend].secretRef: Secret shop, key api-key is missing"))
		writeFile(s.secrets, "shop/api-key", "\n")
		s.awaitReason(ctx, verifyv1.ConditionReady, verifyv1.ReasonSecretInvalid)
		Expect(s.readCondition(ctx, verifyv1.ConditionReady).Message).To(HaveSuffix("key api-key is empty"))
		s.writeSecret("api-key", s.key)
		s.awaitReason(ctx, verifyv1.ConditionReady, verifyv1.ReasonReady)

		By("without changing working pods")
		Expect(s.awaitDeployment(ctx).ResourceVersion).To(Equal(before.ResourceVersion))
		for _, r := range s.replicas {
			Expect(r.isRunning()).To(BeTrue())
		}

		By("reporting it in its metrics, too")
		Eventually(op.getBody).WithContext(ctx).WithArguments(op.api, "/metrics").Should(ContainSubstring(
			`phoneproof_project_condition{name="shop",namespace="` + s.namespace + `",reason="Ready",status="True",type="Ready"} 1`))
		Expect(op.getBody(ctx, op.health, "/readyz")).To(Equal("ok\n"))
		Expect(op.getBody(ctx, op.health, "/livez")).To(Equal("ok\n"))
		Expect(op.output()).NotTo(ContainSubstring(s.receiver.url))
		for line := range strings.Lines(op.output()) {
			if !strings.Contains(line, "deadline exceeded") { // calls that time out on a loaded machine are retried
				Expect(line).NotTo(ContainSubstring(`"level":"ERROR"`))
			}
		}
	}, SpecTimeout(hang))

	It("continue when the leading operator is killed", func(ctx SpecContext) {
		s := newShop(ctx)
		leading := append([]string{"--leader-elect"}, leaseFlags...)
		first := startOperator(ctx, s, leading...)
		s.awaitDeployment(ctx)
		second := startOperator(ctx, s, leading...)
		Eventually(second.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), "a standby is ready, too")
		first.kill()
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Server.Replicas = new(int32(3)) })
		Eventually(func() int32 { return *s.awaitDeployment(ctx).Spec.Replicas }).WithContext(ctx).Should(BeEquivalentTo(3))

		By("shutting down gracefully on a signal, and releasing the lease")
		second.sendSignal(syscall.SIGTERM)
		Eventually(second.exited).WithContext(ctx).Should(BeClosed())
		Expect(second.cmd.ProcessState.ExitCode()).To(BeZero(), second.output)
		lease, err := s.clients.CoordinationV1().Leases(s.namespace).Get(ctx, "phoneproof-operator", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*lease.Spec.HolderIdentity).To(BeEmpty())
	}, SpecTimeout(hang))
})

// startOperator starts an operator process for the shop's namespace, with rights only there, and does not wait for it. Its
// metrics are served over plain HTTP, and it needs no lease, whose loss ends the process, unless a flag sets otherwise.
func startOperator(ctx context.Context, s *shop, flags ...string) *replica {
	GinkgoHelper()
	const name = "phoneproof-operator"
	if _, err := s.clients.CoreV1().ServiceAccounts(s.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		_, err := s.clients.CoreV1().ServiceAccounts(s.namespace).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, file := range []string{"role.yaml", "leader_election_role.yaml"} {
			s.bindRole(ctx, name, s.createRole(ctx, file))
		}
		s.createRole(ctx, "server_kubernetes_role.yaml")
	}
	r := &replica{api: ports.Address(GinkgoT()), health: ports.Address(GinkgoT()), exited: make(chan struct{})}
	r.start("log of the operator", append([]string{
		"operator", "--server-image=phoneproof", "--watch-namespace", s.namespace,
		"--leader-elect-namespace", s.namespace, "--kubeconfig", s.tokenOf(ctx, name),
		"--metrics-bind-address", r.api, "--health-probe-bind-address", r.health, "--metrics-secure=false",
		"--leader-elect=false",
	}, flags...)...)
	return r
}

// createRole creates a role of the chart as a Role of the shop's namespace, like an installation for some namespaces.
func (s *shop) createRole(ctx context.Context, file string) string {
	GinkgoHelper()
	root, err := repository.Root()
	Expect(err).NotTo(HaveOccurred())
	manifest, err := os.ReadFile(filepath.Join(root, "charts", "phoneproof", "files", "rbac", file))
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.Role{}
	Expect(yaml.Unmarshal(manifest, role)).To(Succeed())
	role.TypeMeta, role.Namespace = metav1.TypeMeta{}, ""
	_, err = s.clients.RbacV1().Roles(s.namespace).Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return role.Name
}

func (s *shop) bindRole(ctx context.Context, account, role string) {
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

// awaitDeployment returns the Deployment that the operator created, once it exists.
func (s *shop) awaitDeployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	var d *appsv1.Deployment
	Eventually(func() (err error) {
		d, err = s.clients.AppsV1().Deployments(s.namespace).Get(ctx, "phoneproof-shop", metav1.GetOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	return d
}

// becomeReady sets the Deployment's status as its controller does when the pods are ready.
func (s *shop) becomeReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		d := s.awaitDeployment(ctx)
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"}},
		}
		_, err := s.clients.AppsV1().Deployments(s.namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
}

// getBody returns the response of an address of the process.
func (r *replica) getBody(ctx context.Context, address, path string) string {
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
