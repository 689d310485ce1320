package app

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
)

// axeScript is axe-core as hack/browser-assets.sh installs it, in the version of hack/browser/package-lock.json.
const axeScript = "../../../bin/browser/node_modules/axe-core/axe.min.js"

// axe judges pages by the rules of axe-core: all that it has by default, and the size of targets.
type axe struct {
	*browser

	script string
	ran    map[string]bool
}

// newAxe returns an axe for a browser; nil where axe-core is not installed.
func newAxe(b *browser) *axe {
	script, err := os.ReadFile(axeScript)
	if err != nil {
		return nil
	}
	return &axe{browser: b, script: string(script), ran: map[string]bool{}}
}

// axeFinding is a rule that elements of the page break.
type axeFinding struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Nodes  []struct {
		Target  []any  `json:"target"`
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (f axeFinding) String() string {
	lines := []string{fmt.Sprintf("%s (%s)", f.ID, f.Impact)}
	for _, node := range f.Nodes {
		lines = append(lines, fmt.Sprintf("  %v %s\n    %s", node.Target, node.HTML, strings.ReplaceAll(node.Summary, "\n", "\n    ")))
	}
	return strings.Join(lines, "\n")
}

// listFindings returns the rules that the page breaks as it is now.
func (a *axe) listFindings() []axeFinding {
	a.t.Helper()
	if a.eval(`typeof axe`) != "object" {
		a.eval(a.script + `; 0`)
	}
	text := a.eval(`axe.run(document, {rules: {"target-size": {enabled: true}}}).then((result) => JSON.stringify({
		violations: result.violations, ran: [...result.violations, ...result.passes, ...result.incomplete].map((rule) => rule.id)}))`).(string)
	var result struct {
		Violations []axeFinding `json:"violations"`
		Ran        []string     `json:"ran"`
	}
	a.Expect(json.Unmarshal([]byte(text), &result)).To(Succeed())
	a.Expect(result.Ran).To(ContainElements("color-contrast", "label", "button-name"), "axe looked at the page")
	for _, rule := range result.Ran {
		a.ran[rule] = true
	}
	return result.Violations
}

// listRules returns the names of the rules that found something to judge so far.
func (a *axe) listRules() []string {
	names := make([]string, 0, len(a.ran))
	for name := range a.ran {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
