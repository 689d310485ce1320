package v1alpha1_test

import (
	"testing"

	"github.com/nyaruka/phonenumbers"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

// TestCountry has the regions of the phone library, and no others.
func TestCountry(t *testing.T) {
	known := phonenumbers.GetSupportedRegions()
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			code := string([]rune{a, b})
			NewWithT(t).Expect(v1alpha1.IsCountry(code)).To(Equal(known[code]), code)
		}
	}
}
