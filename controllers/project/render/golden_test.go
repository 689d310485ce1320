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

// The golden file of the smallest project holds all of its children, that of any other the children that differ.
func TestProject_goldens(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	minimal := map[string]bool{}
	for i, c := range rendertest.Cases() {
		var golden [][]byte
		for _, child := range render.Project(c.Project, c.Options).List() {
			document := encode(g, child)
			if i == 0 {
				minimal[string(document)] = true
			}
			if i == 0 || !minimal[string(document)] {
				golden = append(golden, document)
			}
		}
		g.Expect(golden).NotTo(BeEmpty(), c.Name+" changes no child")
		file := goldenFile(c.Name)
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
