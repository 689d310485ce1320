package kubernetes

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestNewer(t *testing.T) {
	g := NewWithT(t)
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"8", "7", true}, {"10", "9", true}, {"7", "8", false}, {"9", "10", false}, {"7", "7", false},
		{"x", "7", false}, {"7", "x", false}, {"", "7", false},
	} {
		g.Expect(isNewer(c.a, c.b)).To(Equal(c.want), "%q after %q", c.a, c.b)
	}
}
