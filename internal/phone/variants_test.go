package phone

import (
	"slices"
	"testing"

	"github.com/nyaruka/phonenumbers"
	. "github.com/onsi/gomega"
)

func TestSame_condition(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		same       bool
	}{
		{"equal", "+4915112345678", "+4915112345678", true},
		{"another number", "+4915112345678", "+4915112345679", false},
		{"Brazil, mobile with and without 9", "+5511987654321", "+551187654321", true},
		{"Brazil, mobile from 6", "+5511961234567", "+551161234567", true},
		{"Brazil, eight digits from 7 are a line of their own", "+5511978123456", "+551178123456", false},
		{"Brazil, eight digits from 7 in area 28", "+5528978123456", "+552878123456", false},
		{"Brazil, eight digits from 7 as WhatsApp reports them from area 31 on", "+5531971234567", "+553171234567", true},
		{"Brazil, landline gets no 9", "+5511923456789", "+551123456789", false},
		{"Brazil, eight digits from 5 are no mobile", "+5511951234567", "+551151234567", false},
		{"Brazil, another area", "+5521987654321", "+551187654321", false},
		{"Brazil, the extra digit is not 9", "+5511887654321", "+551187654321", false},
		{"Brazil, no such area code", "+5510987654321", "+551087654321", false},
		{"Mexico, 52 and 521", "+525512345678", "+5215512345678", true},
		{"Mexico, another number", "+525512345678", "+5215512345679", false},
		{"Mexico, 522 is no form", "+525512345678", "+5225512345678", false},
		{"Mexico, too short", "+52551234567", "+521551234567", false},
		{"Argentina, 54 and 549", "+541123456789", "+5491123456789", true},
		{"Argentina, 548 is no form", "+541123456789", "+5481123456789", false},
		{"Argentina, domestic 15 is no form", "+5491123456789", "+54111523456789", false},
		{"+1 is not +1 1", "+12015550123", "+112015550123", false},
		{"China is not Brazil", "+8611987654321", "+861187654321", false},
		{"the same digits in another country", "+525512345678", "+545512345678", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			a, b := mustNumber(tc.a), mustNumber(tc.b)
			g.Expect(Same(a, b)).To(Equal(tc.same))
			checkSame(t, a, b)
		})
	}
}

// TestSame_brazilFromSeven shows why eight digits from 7 are not a variant where WhatsApp reports nine: unlike those
// from 6, 8 and 9, they are a mobile number of today's plan, in addition to the one with the ninth digit.
func TestSame_brazilFromSeven(t *testing.T) {
	g := NewWithT(t)
	for first, own := range map[string]bool{"6": false, "7": true, "8": false, "9": false} {
		eight, nine := mustNumber("+5511"+first+"8123456"), mustNumber("+55119"+first+"8123456")
		want := phonenumbers.UNKNOWN
		if own {
			want = phonenumbers.MOBILE
		}
		g.Expect(lineType(eight)).To(Equal(want), eight.E164())
		g.Expect(lineType(nine)).To(Equal(phonenumbers.MOBILE), nine.E164())
		g.Expect(Same(eight, nine)).To(Equal(!own), eight.E164())
	}
}

func TestSame_noneMatchesNothing(t *testing.T) {
	g := NewWithT(t)
	n := mustNumber("+4915112345678")
	g.Expect(Same(Number{}, Number{})).To(BeFalse())
	g.Expect(Same(n, Number{})).To(BeFalse())
	g.Expect(Same(Number{}, n)).To(BeFalse())
	g.Expect(Variants(Number{})).To(BeEmpty())
	g.Expect(Canonical(Number{})).To(Equal(Number{}))
}

func TestVariants_givenFormFirst(t *testing.T) {
	for _, forms := range [][]string{
		{"+5511987654321", "+551187654321"},
		{"+551187654321", "+5511987654321"},
		{"+525512345678", "+5215512345678"},
		{"+5215512345678", "+525512345678"},
		{"+541123456789", "+5491123456789"},
		{"+5491123456789", "+541123456789"},
		{"+551123456789"},
		{"+4915112345678"},
	} {
		t.Run(forms[0], func(t *testing.T) {
			var got []string
			for _, v := range Variants(mustNumber(forms[0])) {
				got = append(got, v.E164())
			}
			NewWithT(t).Expect(got).To(Equal(forms))
		})
	}
}

func TestCanonical_isTodaysMobileForm(t *testing.T) {
	g := NewWithT(t)
	for given, want := range map[string]string{
		"+551187654321":  "+5511987654321",
		"+551123456789":  "+551123456789",
		"+5215512345678": "+525512345678",
		"+541123456789":  "+5491123456789",
		"+4915112345678": "+4915112345678",
	} {
		g.Expect(Canonical(mustNumber(given)).E164()).To(Equal(want))
	}
}

// checkSame checks the properties of every pair of numbers.
func checkSame(t *testing.T, a, b Number) {
	t.Helper()
	for _, n := range []Number{a, b} {
		variants := Variants(n)
		if !Same(n, n) || variants[0] != n || len(variants) > 2 || Canonical(Canonical(n)) != Canonical(n) {
			t.Errorf("%s: not reflexive, or its canonical form is not stable", n.E164())
		}
		for _, v := range variants {
			if !Same(n, v) {
				t.Errorf("%s is not the same as its variant %s", n.E164(), v.E164())
			}
		}
	}
	same := Same(a, b)
	if same != Same(b, a) || same != (Canonical(a) == Canonical(b)) || same != slices.Contains(Variants(a), b) {
		t.Errorf("%s and %s: Same, Canonical and Variants disagree", a.E164(), b.E164())
	}
}
