package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var root = filepath.Join("..", "..")

// An outdated list proves nothing: each mutant must fit the current product.
func TestList_fitsTheProduct(t *testing.T) {
	p, err := parseProduct(root)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, m := range allMutants() {
		t.Run(m.Name, func(t *testing.T) {
			_, changed, err := p.applyMutant(m)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(changed).NotTo(BeEmpty())
		})
	}
}

func TestList_namesWhatExists(t *testing.T) {
	g := NewWithT(t)
	names, used := map[string]bool{}, map[string]bool{}
	for _, m := range allMutants() {
		g.Expect(m.Name).To(MatchRegexp(`^[a-z0-9]+(-[a-z0-9]+)*$`))
		g.Expect(names).NotTo(HaveKey(m.Name), "names are unique")
		names[m.Name], used[m.Suite] = true, true
		g.Expect(suites).To(HaveKey(m.Suite), m.Name)
		g.Expect(m.Test).NotTo(BeEmpty(), m.Name)
		if suite := suites[m.Suite]; suite.Specs == "" && suite.Program == nil {
			name, _, _ := strings.Cut(m.Test, "/")
			g.Expect(listTests(g, suite.Package)).To(ContainElement(MatchRegexp(name)), m.Name)
		}
		section, promise, _ := strings.Cut(m.Promise, ": ")
		g.Expect(promise).NotTo(BeEmpty(), m.Name)
		page, anchor, _ := strings.Cut(section, "#")
		g.Expect(listSections(g, page)).To(ContainElement(anchor), "%s: %s", m.Name, section)
	}
	for name, suite := range suites {
		g.Expect(used).To(HaveKey(name))
		g.Expect(os.Stat(filepath.Join(root, suite.Package))).Error().NotTo(HaveOccurred(), name)
	}
}

// listTests returns the names of a package's test functions.
func listTests(g *WithT, pkg string) (names []string) {
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names = append(names, string(name[1]))
		}
	}
	return names
}

// listSections returns the anchors of a page's headings as GitHub makes them, and an empty one if the page is its only section.
func listSections(g *WithT, page string) []string {
	text, err := os.ReadFile(filepath.Join(root, page))
	g.Expect(err).NotTo(HaveOccurred())
	var sections []string
	for _, heading := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllSubmatch(text, -1) {
		words := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(string(heading[1])), "")
		sections = append(sections, strings.ReplaceAll(words, " ", "-"))
	}
	if len(sections) == 0 {
		return []string{""}
	}
	return sections
}
