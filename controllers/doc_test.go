package controllers

import (
	"go/parser"
	"go/token"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

// TestTable_isComplete compares the package comment with the folders.
func TestTable_isComplete(t *testing.T) {
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	g.Expect(err).NotTo(HaveOccurred())
	entries, err := os.ReadDir(".")
	g.Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		if entry.IsDir() {
			g.Expect(file.Doc.Text()).To(MatchRegexp(`(?m)^\t`+entry.Name()+` `), "the table names every controller")
		}
	}
}
