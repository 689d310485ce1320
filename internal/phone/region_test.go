package phone

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRegionOf(t *testing.T) {
	for number, want := range map[string]struct {
		region Region
		kind   LineKind
	}{
		// Regions that share a country code.
		"+12015550123":  {"US", LineUsual},
		"+14165550123":  {"CA", LineUsual},
		"+18092345678":  {"DO", LineUsual},
		"+18762101234":  {"JM", LineUsual},
		"+447400123456": {"GB", LineUsual},
		"+447797712345": {"JE", LineUsual},
		"+441534456789": {"JE", LineUsual},
		"+447624123456": {"IM", LineUsual},
		"+77012345678":  {"KZ", LineUsual},
		"+79123456789":  {"RU", LineUsual},
		"+393123456789": {"IT", LineUsual},
		"+39066982":     {"VA", LineUsual},
		"+590690001234": {"GP", LineUsual},
		"+4741234567":   {"NO", LineUsual},
		"+4779123456":   {"SJ", LineUsual},
		// All forms of one line.
		"+525512345678":  {"MX", LineUsual},
		"+5215512345678": {"MX", LineUsual},
		"+5511987654321": {"BR", LineUsual},
		"+551187654321":  {"BR", LineUsual},
		// Kinds that cost extra, or that have no phone.
		"+449012345678": {"GB", LinePremium},
		"+19002345678":  {"US", LinePremium},
		"+448431234567": {"GB", LinePremium},
		"+491801123456": {"DE", LineSharedCost},
		"+447640123456": {"GB", LinePager},
		"+445612345678": {"GB", LineVoIP},
		"+33912345678":  {"FR", LineVoIP},
		// Outside of the plan of their region, and of no region.
		"+49110":         {"DE", LineUnknown},
		"+12025550":      {},
		"+878101234567":  {},
		"+870773111632":  {},
		"+8835100000123": {},
		"+88812345678":   {},
		"+2101234567":    {},
	} {
		t.Run(number, func(t *testing.T) {
			g := NewWithT(t)
			region, kind, found := RegionOf(mustNumber(number))
			g.Expect(found).To(Equal(want.region != ""))
			g.Expect(region).To(Equal(want.region))
			if found {
				g.Expect(kind).To(Equal(want.kind))
			}
		})
	}
}
