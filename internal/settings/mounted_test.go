package settings

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseMounted(t *testing.T) {
	g := NewWithT(t)
	none, err := ParseMounted(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.has(ref("shop", "app"))).To(BeTrue(), "an empty list stands for all secrets")

	some, err := ParseMounted([]string{"shop/app", "shop/bot", "shop/app"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(some.has(ref("shop", "app"))).To(BeTrue())
	g.Expect(some.has(ref("shop", "bot"))).To(BeTrue())
	g.Expect(some.has(ref("shop", "token"))).To(BeFalse())
	g.Expect(some.has(ref("other", "app"))).To(BeFalse())

	for _, bad := range []string{"", "shop", "shop/", "/app", "shop/a/b", "../app", "shop/..data"} {
		_, err := ParseMounted([]string{"shop/app", bad})
		g.Expect(err).To(MatchError(ContainSubstring("is not SECRET/KEY")), bad)
	}
}

func TestLive_a_reference_that_is_not_mounted_is_not_missing(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	mounted, err := ParseMounted([]string{
		"shop/backend", "shop/monitor", "shop/webhook", "shop/webhook-previous", "shop/token", "shop/app",
	})
	g.Expect(err).NotTo(HaveOccurred())
	f.files.mounted = mounted
	g.Expect(f.Problems()).To(BeEmpty(), "an existing file is used even if it is not listed")

	f.removeSecret(t, "bot")
	f.removeSecret(t, "app")
	g.Expect(f.Problems()).To(Equal([]Problem{
		problem(fieldBotToken, "bot", ReasonNotMounted), problem(fieldAppSecret, "app", ReasonMissing),
	}))
}
