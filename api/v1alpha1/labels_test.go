package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

func TestProjectLabelValue_isTheNameWhereItFits(t *testing.T) {
	for _, name := range []string{"shop", "a.b-c", "shop-012345678", "shop-01234567890", "shop-abcdefghij", strings.Repeat("a", 63)} {
		NewWithT(t).Expect(v1alpha1.ProjectLabelValue(name)).To(Equal(name))
	}
}

// TestProjectLabelValue_staysAValueOfItsOwn also pins one value, because objects labelled by an earlier version must still be
// found.
func TestProjectLabelValue_staysAValueOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]string{}
	names := []string{
		"shop", "shop-0123456789", strings.Repeat("a", 52) + "-0123456789",
		strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 52) + strings.Repeat("b", 12),
		strings.Repeat("a", 51) + "." + strings.Repeat("b", 12), strings.Repeat("a", 50) + "-." + strings.Repeat("b", 12),
	}
	for _, name := range names { // projects with the names of others' values
		names = append(names, v1alpha1.ProjectLabelValue(name))
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		value := v1alpha1.ProjectLabelValue(name)
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), name)
		g.Expect(seen).NotTo(HaveKey(value), name)
		seen[value] = name
	}
	g.Expect(v1alpha1.ProjectLabelValue(strings.Repeat("a", 64))).To(Equal(strings.Repeat("a", 52) + "-ffe054fe7a"))
}
