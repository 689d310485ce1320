package verification

import (
	"crypto/sha256"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/redact"
)

// TestDelivery_hidesTheCode tries all codes of six digits with all that a dump of a store shows: the project, the number, and what stands
// in place of the code, but not the API key.
func TestDelivery_hidesTheCode(t *testing.T) {
	g, space := NewWithT(t), NewCodeSpace("shop/acme")
	in := Initiation{
		Phone: number(t, "+4915123456789"), KeyHash: sha256.Sum256([]byte("the key of the identity server")), KeyName: "login",
		Given: redact.New("482915"), Terms: Terms{Deliver: DeliverGiven},
	}
	identity, fingerprint := space.deliveryFor(in)
	again, same := space.deliveryFor(in)
	g.Expect([]any{again.Reveal(), same}).To(Equal([]any{identity.Reveal(), fingerprint}), "a retry is known by both")
	g.Expect(fmt.Sprintf("%+v %v", in, identity)).NotTo(ContainSubstring("482915"))
	stored := NewRequest(New{ID: space.RequestID(identity), BodyHash: fingerprint, Phone: in.Phone, KeyName: in.KeyName, Terms: in.Terms}, created)
	g.Expect(fmt.Sprintf("%+v", stored)).NotTo(ContainSubstring("482915"))

	guess := in
	for _, public := range [][sha256.Size]byte{{}, sha256.Sum256([]byte(space.Name() + in.KeyName))} {
		guess.KeyHash = public
		known, shown := space.deliveryFor(guess)
		g.Expect([]any{known.Reveal(), shown}).NotTo(ContainElement(BeElementOf(identity.Reveal(), fingerprint)), "the right code")
	}
	for code := range 1_000_000 {
		guess.Given = redact.New(fmt.Sprintf("%06d", code))
		if space.fingerprintOf(guess) == stored.BodyHash { // the id follows from it
			t.Fatalf("the store shows the code %06d", code)
		}
	}
}
