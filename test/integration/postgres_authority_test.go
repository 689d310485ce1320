package integration_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// privateDatabase is a database whose certificate is signed by a private CA, and another private CA.
type privateDatabase struct {
	database    database
	ours, other *pgserver.Authority
}

func newPrivateDatabase(ctx context.Context) privateDatabase {
	GinkgoHelper()
	ours, err := pgserver.NewAuthority("ours")
	Expect(err).NotTo(HaveOccurred())
	other, err := pgserver.NewAuthority("other")
	Expect(err).NotTo(HaveOccurred())
	certificate, err := ours.Certify("localhost")
	Expect(err).NotTo(HaveOccurred())
	return privateDatabase{startDatabase(ctx, pgserver.Options{Certificate: certificate}), ours, other}
}

// connectionURI returns the URI as CloudNativePG writes it, without sslmode.
func (p privateDatabase) connectionURI() string {
	return fmt.Sprintf("postgresql://postgres@localhost:%d/postgres", p.database.server.Port)
}

// storageWithCA returns the settings of a database whose certificate is verified with the CA in a Secret.
func storageWithCA() verifyv1.Storage {
	storage := databaseStorage()
	storage.PostgreSQL.CASecretRef = &verifyv1.CASecretRef{Name: "shop"}
	return storage
}

const unknownAuthority = "the database's certificate is signed by an unknown authority"

// awaitMessage waits until a condition of the project has a reason and a message.
func (s *shop) awaitMessage(ctx context.Context, condition, reason, message string) {
	GinkgoHelper()
	Eventually(func() string {
		found := meta.FindStatusCondition(s.readProject(ctx).Status.Conditions, condition)
		if found == nil {
			return ""
		}
		return found.Reason + ": " + found.Message
	}).WithContext(ctx).Should(Equal(reason + ": " + message))
}

var _ = Describe("A database with a certificate of a private authority", func() {
	It("serves a project file that names its CA, as soon as the Secret has the right one", func(ctx SpecContext) {
		p := newPrivateDatabase(ctx)
		o := newDatabaseShopWith(ctx, p.database, func(project *verifyv1.VerificationProject) { project.Spec.Storage = storageWithCA() })
		o.writeSecret("uri", p.connectionURI())
		o.writeSecret("ca.crt", string(p.other.PEM))
		r := o.startOne()
		Eventually(r.output).WithContext(ctx).Should(ContainSubstring(unknownAuthority))
		_, status, _ := o.tryStart(ctx, r, "+4915112345001", "first")
		Expect(status).To(Equal(http.StatusServiceUnavailable))

		o.writeSecret("ca.crt", string(p.ours.PEM))
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
		o.verifyNumber(ctx, r, o.startRequest(ctx, r, "+4915112345001", "second"))
		Expect(r.Running()).To(BeTrue())
	}, SpecTimeout(hang))

	It("serves a project of a cluster, whose conditions report what is wrong", func(ctx SpecContext) {
		p := newPrivateDatabase(ctx)
		o := &databaseShop{shop: newShop(ctx), database: p.database}
		o.editProject(ctx, func(project *verifyv1.VerificationProject) { project.Spec.Storage = storageWithCA() })
		o.grantDatabaseRole(ctx)
		o.writeSecret("uri", p.connectionURI())
		const field = "spec.storage.postgresql.caSecretRef: Secret shop, key ca.crt "
		r := o.shop.startOne("--store=postgresql")
		o.awaitMessage(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretMissing, field+"is missing")
		o.awaitMessage(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageUnreachable,
			"there is no certificate authority to check the database by")

		o.writeSecret("ca.crt", "the authority's name, which is no certificate")
		o.awaitMessage(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretInvalid, field+"holds no certificate in PEM form")

		o.writeSecret("ca.crt", string(p.other.PEM))
		o.awaitReason(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		o.awaitMessage(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageUnreachable, unknownAuthority)

		o.writeSecret("ca.crt", string(p.ours.PEM))
		o.awaitReason(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		o.verifyAcross(ctx, 1)
	}, SpecTimeout(hang))
})
