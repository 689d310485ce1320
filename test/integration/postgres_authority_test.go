package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// private is a database whose certificate is signed by an authority that nobody knows, and another such authority.
type private struct {
	database    database
	ours, other *pgserver.Authority
}

func newPrivate(ctx context.Context) private {
	GinkgoHelper()
	ours, err := pgserver.NewAuthority("ours")
	Expect(err).NotTo(HaveOccurred())
	other, err := pgserver.NewAuthority("other")
	Expect(err).NotTo(HaveOccurred())
	certificate, err := ours.Certify("localhost")
	Expect(err).NotTo(HaveOccurred())
	return private{startDatabase(ctx, pgserver.Options{Certificate: certificate}), ours, other}
}

// uri is as CloudNativePG writes it: without sslmode.
func (p private) uri() string {
	return fmt.Sprintf("postgresql://postgres@localhost:%d/postgres", p.database.server.Port)
}

// checked is storage in a database that is checked by the authority in a Secret.
func checked() verifyv1.Storage {
	storage := inDatabase()
	storage.PostgreSQL.CASecretRef = &verifyv1.CASecretRef{Name: "shop"}
	return storage
}

const unknownAuthority = "the database's certificate is signed by an unknown authority"

// tells returns when a condition of the project has a reason, with this message.
func (s *shop) tells(ctx context.Context, condition, reason, message string) {
	GinkgoHelper()
	Eventually(func() string {
		found := meta.FindStatusCondition(s.present(ctx).Status.Conditions, condition)
		if found == nil {
			return ""
		}
		return found.Reason + ": " + found.Message
	}).WithContext(ctx).WithTimeout(2 * patience).Should(Equal(reason + ": " + message))
}

var _ = Describe("A database with a certificate of a private authority", func() {
	It("serves a project file by the authority that it names, as soon as the Secret has the right one", func(ctx SpecContext) {
		p := newPrivate(ctx)
		o := newOutletOn(ctx, p.database, func(project *verifyv1.VerificationProject) { project.Spec.Storage = checked() })
		o.writeSecret("uri", p.uri())
		o.writeSecret("ca.crt", string(p.other.PEM))
		r := o.startOne()
		Eventually(r.printed).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring(unknownAuthority))
		_, status, _ := o.begin(ctx, r, "+4915112345001", "first")
		Expect(status).To(Equal(http.StatusServiceUnavailable))

		o.writeSecret("ca.crt", string(p.ours.PEM))
		Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue(), r.printed)
		o.proves(ctx, r, o.begins(ctx, r, "+4915112345001", "second"))
		Expect(r.running()).To(BeTrue())
	}, SpecTimeout(2*time.Minute))

	It("serves a project of a cluster, whose conditions tell what is wrong", func(ctx SpecContext) {
		p := newPrivate(ctx)
		o := &outlet{shop: newShop(ctx), database: p.database}
		o.change(ctx, func(project *verifyv1.VerificationProject) { project.Spec.Storage = checked() })
		o.regrant(ctx)
		o.writeSecret("uri", p.uri())
		const field = "spec.storage.postgresql.caSecretRef: Secret shop, key ca.crt "
		r := o.shop.startOne("--store=postgresql")
		o.tells(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretMissing, field+"is missing")
		o.tells(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageUnreachable,
			"there is no certificate authority to check the database by")

		o.writeSecret("ca.crt", "the authority's name, which is no certificate")
		o.tells(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretInvalid, field+"holds no certificate in PEM form")

		o.writeSecret("ca.crt", string(p.other.PEM))
		o.stands(ctx, verifyv1.ConditionSecretsReady, verifyv1.ReasonSecretsRead)
		o.tells(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageUnreachable, unknownAuthority)

		o.writeSecret("ca.crt", string(p.ours.PEM))
		o.stands(ctx, verifyv1.ConditionStorageReady, verifyv1.ReasonStorageReachable)
		Eventually(r.ready).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(BeTrue())
		o.proven(ctx, 1)
	}, SpecTimeout(5*time.Minute))
})
