package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/api"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestErrors_namesAllThatClientsMeet checks that docs/errors.md says what to do with each code, hint, event and reason.
func TestErrors_namesAllThatClientsMeet(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/errors.md"))
	g.Expect(err).NotTo(HaveOccurred())
	var answers []string                   // the first cells of all rows
	hintsAndReasons := map[string]string{} // the last cells of the rows of one name
	for _, line := range tableRows(string(page)) {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		answers = append(answers, cells[0])
		hintsAndReasons[strings.Trim(cells[0], "`")] = cells[len(cells)-1]
	}
	all := strings.Join(answers, "\n")
	document, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	g.Expect(err).NotTo(HaveOccurred())
	schemas := document.Components.Schemas
	codes := openList(t, schemas["Error"].Value.Properties["error"].Value.Properties["code"])
	g.Expect(len(codes)).To(BeNumerically(">", 40))
	for _, code := range codes {
		g.Expect(all).To(ContainSubstring("`"+code+"`"), "the code")
	}
	for _, kind := range []verification.EventKind{
		verification.EventSuccess, verification.EventExpired, verification.EventDeclined, verification.EventAttention,
	} {
		g.Expect(all).To(ContainSubstring("`"+string(kind)+"`"), "the event")
	}
	hints := openList(t, schemas["Hint"])
	for _, kind := range verification.HintKinds() {
		hints = append(hints, string(kind))
	}
	for _, name := range append(hints, inputReasons(t)...) {
		g.Expect(hintsAndReasons).To(HaveKey(name), "a row of its own, for a hint or reason")
		g.Expect(hintsAndReasons[name]).To(MatchRegexp(`\*.+[.]\*`), "a text for the visitor of %s", name)
	}
}

// openList returns the values of a schema that may get more.
func openList(t *testing.T, schema *openapi3.SchemaRef) []string {
	t.Helper()
	list, ok := schema.Value.Extensions["x-extensible-enum"].([]any)
	NewWithT(t).Expect(ok).To(BeTrue())
	var values []string
	for _, value := range list {
		values = append(values, value.(string))
	}
	return values
}

// inputReasons returns the reasons for which a client's number may be refused: all of package phone but that of messengers and stores.
func inputReasons(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal/phone/errors.go"), nil, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	var reasons []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Reason" {
			reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			g.Expect(err).NotTo(HaveOccurred())
			if reason != string(phone.ReasonMalformed) {
				reasons = append(reasons, reason)
			}
		}
		return true
	})
	g.Expect(len(reasons)).To(BeNumerically(">", 10))
	return reasons
}
