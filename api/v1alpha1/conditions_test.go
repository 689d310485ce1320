package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestConditions_areDocumented compares the documents with the existing types and reasons.
func TestConditions_areDocumented(t *testing.T) {
	g := NewWithT(t)
	var pages strings.Builder
	for _, page := range []string{"../../docs/conditions.md", "../../docs/spec/verificationrequest.md"} {
		content, err := os.ReadFile(page)
		g.Expect(err).NotTo(HaveOccurred())
		pages.Write(content)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	g.Expect(err).NotTo(HaveOccurred())
	var words []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			word, err := strconv.Unquote(literal.Value)
			g.Expect(err).NotTo(HaveOccurred())
			words = append(words, word)
		}
		return true
	})
	g.Expect(len(words)).To(BeNumerically(">", 50))
	for _, word := range words {
		g.Expect(pages.String()).To(ContainSubstring("`"+word+"`"), "a page names it")
	}
}
