package postgres

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestChange_restoreFixedFields(t *testing.T) {
	g := NewWithT(t)
	claimed, err := phone.Parse("+4915112345001")
	g.Expect(err).NotTo(HaveOccurred())
	other, err := phone.Parse("+4915112345002")
	g.Expect(err).NotTo(HaveOccurred())
	created := time.Unix(1000, 0).UTC()
	before := verification.Request{
		ID: "first", Phone: claimed, Method: verification.WhatsApp, CreatedAt: created, ExpiresAt: created.Add(time.Minute),
		KeyName: "web", BodyHash: "hash", DisplayName: "Shop", Phase: verification.Pending, Epoch: 3,
	}
	after := verification.Request{
		ID: "second", Phone: other, Method: verification.Telegram, CreatedAt: created.Add(time.Hour), ExpiresAt: created.Add(time.Hour),
		KeyName: "app", BodyHash: "changed", DisplayName: "Other", Epoch: 4, Version: "any",
		Phase: verification.Verified, VerifiedAt: created.Add(time.Second), Actual: other,
	}
	c := change{before: state{Request: before}, after: after, version: 2}
	c.restoreFixedFields()

	want := before
	want.Phase, want.VerifiedAt, want.Actual = after.Phase, after.VerifiedAt, after.Actual
	want.Contacts, want.Version = []verification.Contact{}, versionText(2)
	g.Expect(c.after).To(Equal(want))
}
