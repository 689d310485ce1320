package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/gomega"
)

// axeFile is axe-core as hack/browser-assets.sh installs it, in the version of hack/browser/package-lock.json.
const axeFile = "bin/browser/node_modules/axe-core/axe.min.js"

// axe judges a page by the rules of axe-core: all that it has by default, and the size of targets.
type axe struct {
	script string
	must   []string
	ran    map[string]bool
}

// UseAxe reports whether axe-core is installed, and has it judge the page from now on. Each state of the page must have
// something to judge for these rules, as a sign that axe looked at it.
func (p *Page) UseAxe(must ...string) bool {
	p.t.Helper()
	script, err := readAbove(axeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	p.Expect(err).NotTo(gomega.HaveOccurred())
	p.axe = &axe{script: string(script), must: must, ran: map[string]bool{}}
	return true
}

// readAbove reads a file of the repository from one of its folders.
func readAbove(name string) ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for ; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return content, err
		}
	}
}

// finding is a rule that elements of the page break.
type finding struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Nodes  []struct {
		Target  []any  `json:"target"`
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (f finding) String() string {
	lines := []string{fmt.Sprintf("%s (%s)", f.ID, f.Impact)}
	for _, node := range f.Nodes {
		lines = append(lines, fmt.Sprintf("  %v %s\n    %s", node.Target, node.HTML, strings.ReplaceAll(node.Summary, "\n", "\n    ")))
	}
	return strings.Join(lines, "\n")
}

// ExpectAccessible expects axe-core to find nothing in a state of the page, in light and dark colors, on a wide screen and on one
// of 320 pixels. Without axe-core it expects nothing.
func (p *Page) ExpectAccessible(state string) {
	p.t.Helper()
	if p.axe == nil {
		return
	}
	before := p.screen
	for _, view := range []struct {
		scheme string
		width  int
	}{{"dark", 1280}, {"dark", 320}, {"light", 320}, {"light", 1280}} {
		p.EmulateScheme(view.scheme)
		p.Resize(view.width, 800)
		for _, f := range p.listFindings() {
			p.t.Errorf("%s, %s, %d pixels wide: %s", state, view.scheme, view.width, f)
		}
	}
	p.show(before)
}

// ExpectNarrow expects a state of the page to fit on 320 pixels.
func (p *Page) ExpectNarrow(state string) {
	p.t.Helper()
	before := p.screen
	p.Resize(320, 640)
	p.Expect(p.Eval(`document.documentElement.scrollWidth`)).To(gomega.BeNumerically("<=", 320), "%s scrolls sideways", state)
	p.show(before)
}

// listFindings returns the rules that the page breaks as it is now.
func (p *Page) listFindings() []finding {
	p.t.Helper()
	// A page may go on to its next state at any time, by loading a new document, which has no axe.
	var text string
	p.Eventually(func() error {
		known, err := p.tryEval(`typeof axe`)
		if err == nil && known != "object" {
			_, err = p.tryEval(p.axe.script + `; 0`)
		}
		if err != nil {
			return err
		}
		found, err := p.tryEval(`axe.run(document, {rules: {"target-size": {enabled: true}}}).then((result) => JSON.stringify({
			violations: result.violations, ran: [...result.violations, ...result.passes, ...result.incomplete].map((rule) => rule.id)}))`)
		text, _ = found.(string)
		return err
	}).WithTimeout(patience).Should(gomega.Succeed())
	var result struct {
		Violations []finding `json:"violations"`
		Ran        []string  `json:"ran"`
	}
	p.Expect(json.Unmarshal([]byte(text), &result)).To(gomega.Succeed())
	p.Expect(result.Ran).To(gomega.ContainElements(p.axe.must), "axe looked at the page")
	for _, rule := range result.Ran {
		p.axe.ran[rule] = true
	}
	return result.Violations
}

// ListRules returns the names of axe-core's rules that found something to judge so far.
func (p *Page) ListRules() []string { return slices.Sorted(maps.Keys(p.axe.ran)) }
