package integration_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
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
			Expect(r.Running()).To(BeTrue())
		}

		By("reporting it in its metrics, too")
		Eventually(readPage).WithContext(ctx).WithArguments(op.API + "/metrics").Should(ContainSubstring(
			`phoneproof_project_condition{name="shop",namespace="` + s.namespace + `",reason="Ready",status="True",type="Ready"} 1`))
		Expect(readPage(op.Health + "/readyz")).To(Equal("ok\n"))
		Expect(readPage(op.Health + "/livez")).To(Equal("ok\n"))
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
		Eventually(second.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), "a standby is ready, too")
		first.Kill()
		s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Server.Replicas = new(int32(3)) })
		Eventually(func() int32 { return *s.awaitDeployment(ctx).Spec.Replicas }).WithContext(ctx).Should(BeEquivalentTo(3))

		By("shutting down gracefully on a signal, and releasing the lease")
		Expect(second.Terminate()).To(Succeed(), second.output)
		Expect(second.ExitCode()).To(BeZero(), second.output)
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
		s.createAccount(ctx, name)
		for _, file := range []string{"role.yaml", "leader_election_role.yaml"} {
			s.bindRole(ctx, name, "Role", s.createRole(ctx, file))
		}
		s.createRole(ctx, "server_kubernetes_role.yaml")
	}
	r := newReplica()
	r.start("log of the operator", append([]string{
		"operator", "--server-image=phoneproof", "--watch-namespace", s.namespace,
		"--leader-elect-namespace", s.namespace, "--kubeconfig", s.tokenOf(ctx, name),
		"--metrics-bind-address", r.API, "--health-probe-bind-address", r.Health, "--metrics-secure=false",
		"--leader-elect=false",
	}, flags...)...)
	return r
}

// createRole creates a role of the chart as a Role of the shop's namespace, like an installation for some namespaces.
func (s *shop) createRole(ctx context.Context, file string) string {
	GinkgoHelper()
	role := &rbacv1.Role{}
	Expect(repository.Decode(role, repository.Roles, file)).To(Succeed())
	role.TypeMeta, role.Namespace = metav1.TypeMeta{}, ""
	_, err := s.clients.RbacV1().Roles(s.namespace).Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return role.Name
}

func (s *shop) bindRole(ctx context.Context, account, kind, role string) {
	GinkgoHelper()
	_, err := s.clients.RbacV1().RoleBindings(s.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// tokenOf returns a kubeconfig file with a token of a ServiceAccount.
func (s *shop) tokenOf(ctx context.Context, account string) string {
	GinkgoHelper()
	token := s.tokenFor(ctx, account)
	canaries.add(token)
	return s.writeConfig(s.config.Host, token, s.config.CAData)
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
