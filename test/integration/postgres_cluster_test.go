package integration_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// newClusterDatabaseShop creates a project of the cluster with a database, served with only the role for such projects.
func newClusterDatabaseShop(ctx context.Context, c *cluster) *databaseShop {
	GinkgoHelper()
	o := &databaseShop{shop: newShopIn(ctx, c), database: startDatabase(ctx, pgserver.Options{})}
	o.writeSecret("uri", o.database.connectionURI())
	o.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Storage = databaseStorage() })
	o.grantDatabaseRole(ctx)
	return o
}

// grantDatabaseRole binds the ServiceAccount to the role of projects with a database, and to no other.
func (o *databaseShop) grantDatabaseRole(ctx context.Context) {
	GinkgoHelper()
	Expect(o.clients.RbacV1().RoleBindings(o.namespace).Delete(ctx, kubernetesRole, metav1.DeleteOptions{})).To(Succeed())
	o.bindRole(ctx, "serve", "ClusterRole", postgresRole)
}

// verifyAcross starts a verification at one replica and completes it at another.
func (o *databaseShop) verifyAcross(ctx context.Context, n int) {
	GinkgoHelper()
	b := o.startRequest(ctx, o.replicas[n%len(o.replicas)], fmt.Sprintf("+491511234%04d", n), fmt.Sprint("cluster-", n))
	o.verifyNumber(ctx, o.replicas[(n+1)%len(o.replicas)], b)
	Eventually(func() any {
		_, answer := o.replicas[n%len(o.replicas)].callAPI(ctx, o.key, http.MethodGet, "/api/verify/status?id="+b.id, "")
		return answer["status"]
	}).WithContext(ctx).Should(Equal("VERIFIED"))
	Eventually(func() map[string][]delivery { return o.receiver.byRequest(webhookSecret) }).
		WithContext(ctx).Should(HaveKey(b.id))
}

var _ = Describe("A project of a cluster with a database", func() {
	It("is served without rights on requests, reports the state of its database, and goes on without the API server", func(ctx SpecContext) {
		c, plane := startCluster(ctx)
		o := newClusterDatabaseShop(ctx, c)
		for range 3 {
			o.shop.startOne("--store=postgresql", "--claim-lease="+claimLease.String())
		}
		for _, r := range o.replicas {
			Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
			Expect(r.output()).NotTo(ContainSubstring("database does not serve"), "it is healthy")
		}
		o.verifyAcross(ctx, 1)
		o.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		Expect(o.listRequests(ctx)).To(BeEmpty(), "no request is stored as an object")

		By("stopping the database")
		Expect(o.database.server.Crash()).To(Succeed())
		o.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageUnreachable)
		Expect(o.database.server.Up(ctx)).To(Succeed())
		o.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		o.verifyAcross(ctx, 2)

		By("stopping the API server")
		Expect(plane.StopAPIServer()).To(Succeed())
		for n := range 5 {
			o.verifyAcross(ctx, 3+n)
		}
		o.replicas[0].Kill()
		o.replicas = o.replicas[1:]
		for n := range 5 {
			o.verifyAcross(ctx, 8+n)
		}
		for _, r := range o.replicas {
			Expect(r.Running()).To(BeTrue())
		}
	}, SpecTimeout(hang))
})
