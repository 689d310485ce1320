package integration_test

import (
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

var _ = Describe("A project that moves to PostgreSQL", func() {
	It("leaves its objects as they are, and goes on with them when it comes back", func(ctx SpecContext) {
		c, _ := startCluster(ctx)
		o := &databaseShop{shop: newShopIn(ctx, c), database: startDatabase(ctx, pgserver.Options{})}
		o.writeSecret("uri", o.database.connectionURI())
		serve := func(flags ...string) *replica {
			GinkgoHelper()
			r := o.shop.startOne(flags...)
			Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
			return r
		}
		status := func(r *replica, id string) any {
			code, answer := r.callAPI(ctx, o.key, http.MethodGet, "/api/verify/status?id="+id, "")
			if code != http.StatusOK {
				return code
			}
			return answer["status"]
		}
		delivered := func(id string) func() int { return func() int { return o.timesDelivered(id) } }

		first := serve()
		o.receiver.answerWith(http.StatusInternalServerError)
		verified := o.startRequest(ctx, first, "+4915112345001", "one")
		o.verifyNumber(ctx, first, verified)
		Eventually(delivered(verified.id)).WithContext(ctx).Should(BeNumerically(">", 0))
		pending := o.startRequest(ctx, first, "+4915112345002", "two")
		first.Kill()
		tried := o.timesDelivered(verified.id)

		o.runKubectl("patch", "vproj", "shop", "--type", "merge", "-p",
			`{"spec":{"storage":{"type":"PostgreSQL","postgresql":{"uriSecretRef":{"name":"shop","key":"uri"}}}}}`)
		o.grantDatabaseRole(ctx)
		o.receiver.answerWith(http.StatusNoContent)
		second := serve("--store=postgresql")
		Expect(status(second, verified.id)).To(Equal(http.StatusNotFound))
		o.verifyNumber(ctx, second, pending)
		Expect(status(second, pending.id)).To(Equal(http.StatusNotFound), "its code is unknown")
		other := o.startRequest(ctx, second, "+4915112345003", "three")
		o.verifyNumber(ctx, second, other)
		Eventually(delivered(other.id)).WithContext(ctx).Should(Equal(1))
		Expect(o.listRequests(ctx)).To(HaveLen(2))
		Expect(o.timesDelivered(verified.id)).To(Equal(tried))
		Expect(o.readRequest(ctx, pending.id).Status.Phase).To(Equal(verifyv1.PhasePending))

		By("deleting the data of one person as docs/security.md says")
		stored := o.countNumber(ctx, "+4915112345003")
		Expect(stored).To(BeNumerically(">=", 2))
		page, err := os.ReadFile("../../docs/security.md")
		Expect(err).NotTo(HaveOccurred())
		_, statements, _ := strings.Cut(string(page), "```sql\nBEGIN;\n")
		statements, _, _ = strings.Cut(statements, "COMMIT;")
		statements = strings.ReplaceAll(statements, "+4915112345678", "+4915112345003")
		Expect(o.database.server.Exec(ctx, "postgres", statements)).To(Succeed())
		Expect(o.countNumber(ctx, "+4915112345003")).To(Equal(stored), "the rows of another project than that of the page")
		Expect(statements).To(ContainSubstring("default/shop"))
		statements = strings.ReplaceAll(statements, "default/shop", o.namespace+"/shop")
		Expect(o.database.server.Exec(ctx, "postgres", statements)).To(Succeed())
		Expect(o.countNumber(ctx, "+4915112345003")).To(BeZero())
		Expect(status(second, other.id)).To(Equal(http.StatusNotFound))
		second.Kill()

		o.runKubectl("patch", "vproj", "shop", "--type", "merge", "-p", `{"spec":{"storage":{"type":"Kubernetes","postgresql":null}}}`)
		o.bindRole(ctx, "serve", "ClusterRole", kubernetesRole)
		third := serve()
		Eventually(delivered(verified.id)).WithContext(ctx).Should(Equal(tried + 1))
		Expect(status(third, pending.id)).To(Equal("PENDING"))
		o.verifyNumber(ctx, third, pending)
		Eventually(status).WithContext(ctx).WithArguments(third, pending.id).Should(Equal("VERIFIED"))
		o.runKubectl("delete", "vreq", "--field-selector", "spec.projectRef.name=shop")
		Eventually(status).WithContext(ctx).WithArguments(third, pending.id).Should(Equal(http.StatusNotFound))
	}, SpecTimeout(hang))
})

// countNumber counts the rows of all tables that have a number.
func (o *databaseShop) countNumber(ctx SpecContext, number string) int {
	GinkgoHelper()
	count := 0
	Expect(o.database.queryRow(ctx, `SELECT coalesce(sum((xpath('//n/text()', query_to_xml(format(
		'SELECT count(*) AS n FROM %I AS t WHERE t::text LIKE %L', table_name, '%'||'`+number+`'||'%'), false, true, '')))[1]::text::int), 0)
		FROM information_schema.tables WHERE table_name LIKE 'phoneproof_%'`, &count)).To(Succeed())
	return count
}
