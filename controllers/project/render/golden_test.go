package render_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
)

var update = flag.Bool("update", false, "write the golden files")

// rendered are children with the name of their golden file.
type rendered struct {
	name     string
	children render.Children
}

// listRendered returns the children of each project of rendertest, and of its pool with one of its projects.
func listRendered() []rendered {
	var all []rendered
	for _, c := range rendertest.Cases() {
		all = append(all, rendered{c.Name, render.Project(c.Project, c.Options)})
	}
	pool, o := rendertest.Pool(), rendertest.Options()
	all = append(all, rendered{"pool", render.PoolChildren(pool, o)})
	o.PoolPort = pool.Members[0].Port
	return append(all, rendered{"pool-member", render.Project(pool.Members[0].Project, o)})
}

// The golden file of the smallest project holds all of its children, that of any other the children that differ.
func TestProject_goldens(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	minimal := map[string]bool{}
	for i, c := range listRendered() {
		var golden [][]byte
		for _, child := range c.children.List() {
			document := encode(g, child)
			if i == 0 {
				minimal[string(document)] = true
			}
			if i == 0 || !minimal[string(document)] {
				golden = append(golden, document)
			}
		}
		g.Expect(golden).NotTo(BeEmpty(), c.name+" changes no child")
		file := goldenFile(c.name)
		seen[file] = true
		have := bytes.Join(golden, []byte("---\n"))
		if *update {
			g.Expect(os.WriteFile(file, have, 0o644)).To(Succeed())
		}
		want, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(have)).To(Equal(string(want)), file)
	}
	files, err := filepath.Glob(goldenFile("*"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		g.Expect(seen).To(HaveKey(file), "a golden file without its case")
	}
}

func goldenFile(name string) string { return filepath.Join("testdata", name+".yaml") }

func encode(g Gomega, child runtime.ApplyConfiguration) []byte {
	document, err := yaml.Marshal(child)
	g.Expect(err).NotTo(HaveOccurred())
	return document
}
