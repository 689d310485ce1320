package render_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
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
		for _, pool := range []string{"", "small"} {
			p.Spec.Server.Pool = pool
			g.Expect(renderAll(g, p, o)).To(Equal(renderAll(g, p.DeepCopy(), o)))
		}
	}
}

// renderAll returns the children of a project, and those of a pool with it, as JSON.
func renderAll(g Gomega, p *verifyv1.VerificationProject, o render.Options) string {
	pool := render.Pool{Name: "small", Members: []render.Member{{Project: p, Port: 9000}}}
	all, err := json.Marshal(append(render.Project(p, o).List(), render.PoolChildren(pool, o).List()...))
	g.Expect(err).NotTo(HaveOccurred())
	return string(all)
}
