package phone

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/nyaruka/phonenumbers"
	. "github.com/onsi/gomega"
)

func TestFromE164_condition(t *testing.T) {
	for _, tc := range []struct {
		name, stored string
		ok           bool
	}{
		{"number", "+4915112345678", true},
		{"no longer valid for libphonenumber", "+5215512345678", true},
		{"shortest", "+12345", true},
		{"longest", "+999999999999999", true},
		{"nothing", "", false},
		{"plus alone", "+", false},
		{"no plus", "4915112345678", false},
		{"too short", "+1234", false},
		{"too long", "+1234567890123456", false},
		{"leading zero", "+049151123", false},
		{"two pluses", "++49151123456", false},
		{"separator", "+49 15112345678", false},
		{"masked form", "+49*********78", false},
		{"hexadecimal digit", "+4915112345a78", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			n, err := FromE164(tc.stored)
			if tc.ok {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(n.E164()).To(Equal(tc.stored))
				return
			}
			g.Expect(reasonOf(err)).To(Equal(ReasonMalformed))
			g.Expect(n.IsZero()).To(BeTrue())
		})
	}
}

func TestNumber_isSmallAndAKey(t *testing.T) {
	g := NewWithT(t)
	g.Expect(unsafe.Sizeof(Number{})).To(BeEquivalentTo(8))
	seen := map[Number]int{mustNumber("+4915112345678"): 1}
	g.Expect(seen[mustNumber("+4915112345678")]).To(Equal(1))
	g.Expect(seen[mustNumber("+4915112345679")]).To(BeZero())
}

func TestNumber_zeroIsNone(t *testing.T) {
	g := NewWithT(t)
	var none Number
	g.Expect(none.IsZero()).To(BeTrue())
	g.Expect(none.E164()).To(BeEmpty())
	g.Expect(none.Digits()).To(BeEmpty())
	g.Expect(none.String()).To(Equal("none"))
}

func TestCountryCode_agreesWithLibphonenumber(t *testing.T) {
	g := NewWithT(t)
	codes := phonenumbers.GetSupportedCallingCodes()
	g.Expect(len(codes)).To(BeNumerically(">", 200))
	for code := range codes {
		text := strconv.Itoa(code)
		got, length := mustNumber("+" + text + "1234567").countryCode()
		g.Expect(length).To(Equal(len(text)), text)
		g.Expect(toDecimal(got)).To(BeEquivalentTo(code))
		g.Expect(isAssigned(got)).To(BeTrue(), text)
	}
}

// Every libphonenumber example of an accepted line must parse to itself, so that our own split of country codes misses
// no country.
func TestParse_everyCountrysExamples(t *testing.T) {
	lines := []phonenumbers.PhoneNumberType{phonenumbers.FIXED_LINE, phonenumbers.MOBILE}
	for region := range phonenumbers.GetSupportedRegions() {
		for _, line := range lines {
			example := phonenumbers.GetExampleNumberForType(region, line)
			if example == nil {
				continue
			}
			want := phonenumbers.Format(example, phonenumbers.E164)
			n, err := Parse(want)
			if err != nil || n.E164() != want {
				t.Errorf("%s: %s is refused or changed: %v", region, want, err)
			}
		}
	}
}

func mustNumber(e164 string) Number {
	n, err := FromE164(e164)
	if err != nil {
		panic(e164 + ": " + err.Error())
	}
	return n
}
