package integration_test

import (
	"fmt"
	"net"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

var _ = Describe("A database beyond loopback that has no TLS", func() {
	It("serves a project only if its URI has sslmode=disable, which the condition reports", func(ctx SpecContext) {
		host, err := pgserver.OwnAddress()
		Expect(err).NotTo(HaveOccurred())
		if host == "" {
			Skip("this machine has no IPv4 address besides loopback")
		}
		d := startDatabase(ctx, pgserver.Options{
			Settings: map[string]string{"listen_addresses": "'127.0.0.1," + host + "'"},
			Access:   []string{fmt.Sprintf("host all app %s/32 scram-sha-256", host)},
		})
		Expect(d.server.Exec(ctx, "postgres", "CREATE ROLE app LOGIN PASSWORD 'right'")).To(Succeed())
		Expect(d.server.Exec(ctx, "postgres", "CREATE SCHEMA AUTHORIZATION app")).To(Succeed())
		o := &databaseShop{shop: newShop(ctx), database: d}
		o.editProject(ctx, func(project *verifyv1.VerificationProject) { project.Spec.Storage = databaseStorage() })
		o.grantDatabaseRole(ctx)
		uri := fmt.Sprintf("postgresql://app:right@%s/postgres", net.JoinHostPort(host, strconv.Itoa(d.server.Port)))
		o.writeSecret("uri", uri)
		o.shop.startOne("--store=postgresql")
		o.awaitMessage(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageUnreachable,
			"the database does not offer TLS; a connection without it takes sslmode=disable in the connection URI")

		o.writeSecret("uri", uri+"?sslmode=disable")
		o.awaitMessage(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable,
			"requests can be stored; the connection to the database is unencrypted")
	}, SpecTimeout(hang))
})
