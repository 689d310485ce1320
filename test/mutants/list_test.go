package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// leastMutants is the least number of mutants.
const leastMutants = 120

// An outdated list proves nothing: each mutant must fit the current product.
func TestList_fitsTheProduct(t *testing.T) {
	g := NewWithT(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	g.Expect(err).NotTo(HaveOccurred())
	p, err := parseProduct(root, productFolders...)
	g.Expect(err).NotTo(HaveOccurred())
	for _, m := range allMutants() {
		t.Run(m.Name, func(t *testing.T) {
			changed, err := p.applyMutant(m)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(changed).NotTo(BeEmpty())
		})
	}
}

func TestList_isComplete(t *testing.T) {
	g := NewWithT(t)
	names := map[string]bool{}
	for _, m := range allMutants() {
		g.Expect(m.Name).To(MatchRegexp(`^[a-z0-9]+(-[a-z0-9]+)*$`))
		g.Expect(names).NotTo(HaveKey(m.Name), "names are unique")
		names[m.Name] = true
		g.Expect(m.Promise).To(MatchRegexp(`^(design\.md|proof\.md|hazards\.md|platforms\.md|reliability\.md|security\.md|adr) ?[\w ]*: \S`), m.Name)
		g.Expect(suites).To(HaveKey(m.Suite), m.Name)
		g.Expect(m.Test).NotTo(BeEmpty(), m.Name)
	}
	g.Expect(len(names)).To(BeNumerically(">=", leastMutants))
	for name, suite := range suites {
		g.Expect(os.Stat(filepath.Join("..", "..", suite.Package))).Error().NotTo(HaveOccurred(), name)
	}
}
