package render_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

func TestName_of_plain_projects(t *testing.T) {
	g := NewWithT(t)
	for project, want := range map[string]string{
		"shop":   "phoneproof-shop",
		"0":      "phoneproof-0",
		"a-b--c": "phoneproof-a-b--c",
		// The longest that is kept unchanged.
		strings.Repeat("x", 38): "phoneproof-" + strings.Repeat("x", 38),
		// Ten characters that are no hash.
		"shop-abcdefghij": "phoneproof-shop-abcdefghij",
	} {
		g.Expect(render.Name(project)).To(Equal(want))
	}
}

func TestName_with_a_hash(t *testing.T) {
	g := NewWithT(t)
	for project, want := range map[string]string{
		"shop.example.com":      "phoneproof-shop-example-com-[0-9a-f]{10}",
		"a.b":                   "phoneproof-a-b-[0-9a-f]{10}",
		strings.Repeat("x", 39): "phoneproof-x{27}-[0-9a-f]{10}",
		// The cut falls on a dot.
		strings.Repeat("x", 26) + ".yyyyyyyyyyyyy": "phoneproof-x{26}-[0-9a-f]{10}",
		// Looks like the name of another project with its hash.
		"shop-0123456789": "phoneproof-shop-0123456789-[0-9a-f]{10}",
	} {
		g.Expect(render.Name(project)).To(MatchRegexp("^" + want + "$"))
	}
}

// Names must never change: a new name would delete the old children, and their pods with them.
func TestName_is_stable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(render.Name("shop.example.com")).To(Equal("phoneproof-shop-example-com-951623a26f"))
}

func TestName_fits_and_is_unique(t *testing.T) {
	g := NewWithT(t)
	projects := []string{"a.b", "a-b", strings.Repeat("x", 253), strings.Repeat("x.", 126) + "x", strings.Repeat("x-", 126) + "x"}
	for length := 1; length < 253; length++ {
		name := strings.Repeat("x", length)
		projects = append(projects, name, "0"+name[1:]+"z", strings.ReplaceAll(name, "xx", "x.")+"x")
	}
	for i := range 1000 {
		projects = append(projects, fmt.Sprintf("%s.%d", strings.Repeat("y", 60), i))
	}
	// Projects with the names of other projects' children, without the prefix.
	for _, project := range projects {
		projects = append(projects, strings.TrimPrefix(render.Name(project), "phoneproof-"))
	}
	children := map[string]string{}
	for _, project := range projects {
		p := rendertest.Project()
		p.Name = project
		g.Expect(validation.IsDNS1123Subdomain(project)).To(BeEmpty(), project)
		for _, namespaced := range []bool{true, false} {
			binding := *render.RoleBinding(p, render.Options{NamespacedRoles: namespaced}).Name
			g.Expect(validation.IsDNS1123Label(binding)).To(BeEmpty(), binding)
		}
		name := render.Name(project)
		g.Expect(validation.IsDNS1035Label(name)).To(BeEmpty(), name)
		if other, taken := children[name]; taken {
			g.Expect(other).To(Equal(project), name)
		}
		children[name] = project
	}
}
