package render_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

// Every spec is rendered, and always to the same objects. The API server refuses an invalid one; it must not keep the operator
// from the other projects.
func TestProject_of_any_spec(t *testing.T) {
	g := NewWithT(t)
	o := rendertest.Options()
	o.HTTPRoutes = true
	fill := randfill.NewWithSeed(1).NilChance(0.2).NumElements(0, 4).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63(), resource.BinarySI)
		},
		func(*metav1.Time, randfill.Continue) {},
	)
	for range 100 {
		p := rendertest.Project()
		fill.Fill(&p.Spec)
		first, err := json.Marshal(render.Project(p.DeepCopy(), o).List())
		g.Expect(err).NotTo(HaveOccurred())
		second, err := json.Marshal(render.Project(p, o).List())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second).To(Equal(first))
	}
}
