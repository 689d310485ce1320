// Command language checks the rules for words that a program can check, and counts what it cannot decide.
//
// It fails on phrases that the project does not use, and on variables of a package that its tests overwrite: what a test
// replaces is passed in. It reports how many unexported functions have a name of one word, and how many errors are
// returned with and without a word about what failed. The arguments are the files.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	problems, report, err := checkFiles(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "language:", err)
		os.Exit(1)
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stdout, problem)
	}
	fmt.Fprintln(os.Stdout, report)
	if len(problems) > 0 {
		fmt.Fprintf(os.Stdout, "%d problems: CONTRIBUTING.md, \"Words\", says what to write instead\n", len(problems))
		os.Exit(1)
	}
}

// checkFiles returns the problems of the files, as FILE:LINE: PROBLEM, and the counts of their Go code.
func checkFiles(files []string) (problems []string, report string, err error) {
	var (
		code   counts
		source = map[string]*folder{}
	)
	for _, name := range files {
		content, err := os.ReadFile(name) //nolint:gosec // the files to check are the arguments
		if err != nil {
			return nil, "", fmt.Errorf("read file: %w", err)
		}
		if filepath.Ext(name) != ".go" {
			if hasProse(name) {
				problems = append(problems, findPhrases(name, 1, string(content))...)
			}
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, content, parser.ParseComments)
		if err != nil {
			return nil, "", fmt.Errorf("parse file: %w", err)
		}
		if hasProse(name) {
			problems = append(problems, findPhrasesOfGo(name, fset, file)...)
		}
		at := filepath.Dir(name)
		if source[at] == nil {
			source[at] = &folder{}
		}
		source[at].add(name, fset, file)
		if isProduct(name) && !ast.IsGenerated(file) {
			code.add(file, string(content))
		}
	}
	for _, at := range source {
		problems = append(problems, at.overwritten()...)
	}
	slices.Sort(problems)
	return problems, code.String(), nil
}

// phrases are those that a reader has to decode, or that name people who are not meant.
var phrases = regexp.MustCompile(`(?i)\b(tells? whether|says? whether|says that|whoever|somebody|nobody|anybody|everybody|` +
	`(is|are|was|were) told|told of|mends?|mended|mending|he|his|him|she|her)\b`)

// unchecked are files whose words are not ours, quote a user or a source, or are of the past.
var unchecked = regexp.MustCompile(`^(docs/adr/|CHANGELOG|hack/language/|LICENSE|go\.|.*/testdata/|.*zz_generated` +
	`|charts/phoneproof/files/|config/crd/|.*\.(sum|mod|json|svg|png|ico|awk|js|html|css)$)`)

// quoted are texts of the product and titles of tests, which pages repeat word by word.
var quoted = regexp.MustCompile(`(?i)send it to nobody else|(send|%20)it%20to%20nobody|"nobody"|user postgres or nobody|\*[^*]+\*`)

func hasProse(name string) bool { return !unchecked.MatchString(name) }

// findPhrasesOfGo returns the lines of comments and texts of Go code that hold a phrase.
func findPhrasesOfGo(name string, fset *token.FileSet, file *ast.File) []string {
	var problems []string
	for _, group := range file.Comments {
		for _, comment := range group.List {
			problems = append(problems, findPhrases(name, fset.Position(comment.Pos()).Line, comment.Text)...)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			problems = append(problems, findPhrases(name, fset.Position(text.Pos()).Line, text.Value)...)
		}
		return true
	})
	return problems
}

// findPhrases returns the lines of a text that hold a phrase; first is the number of its first line.
func findPhrases(name string, first int, text string) []string {
	var problems []string
	for number, line := range strings.Split(text, "\n") {
		line = quoted.ReplaceAllString(line, "")
		for _, phrase := range phrases.FindAllString(line, -1) {
			problems = append(problems, fmt.Sprintf("%s:%d: %q", name, first+number, phrase))
		}
	}
	return problems
}

// isProduct reports whether a file is written by us and shipped.
func isProduct(name string) bool {
	return !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/") && !strings.HasPrefix(name, "hack/")
}

// folder is the Go code of a folder.
type folder struct {
	variables map[string]bool // of the package, outside of its tests
	writes    []write         // to names that no file of the tests declares
}

// write is an assignment in a test.
type write struct {
	name, at string
}

// add adds a file of the folder.
func (f *folder) add(name string, fset *token.FileSet, file *ast.File) {
	if !strings.HasSuffix(name, "_test.go") {
		f.addVariables(file)
		return
	}
	outside := map[*ast.Ident]bool{} // of the file: declared elsewhere in the package
	for _, name := range file.Unresolved {
		outside[name] = true
	}
	note := func(target ast.Expr) {
		if name, ok := target.(*ast.Ident); ok && outside[name] {
			f.writes = append(f.writes, write{name.Name, fset.Position(name.Pos()).String()})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				note(target)
			}
		case *ast.IncDecStmt:
			note(n.X)
		}
		return true
	})
}

func (f *folder) addVariables(file *ast.File) {
	for _, declaration := range file.Decls {
		d, ok := declaration.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names { //nolint:forcetypeassert // what a var declares
				if f.variables == nil {
					f.variables = map[string]bool{}
				}
				f.variables[name.Name] = true
			}
		}
	}
}

// overwritten returns the writes to variables of the package.
func (f *folder) overwritten() []string {
	var problems []string
	for _, w := range f.writes {
		if f.variables[w.name] {
			problems = append(problems, w.at+": a test overwrites the variable "+w.name+" of its package")
		}
	}
	return problems
}

// counts are reported and refuse nothing.
type counts struct {
	functions, oneWord int // unexported
	wrapped, bare      int // errors
}

// idioms are names of one word that need no object.
var idioms = []string{
	"main", "init", "run", "close", "len", "string", "write", "read", "lock", "unlock", "add", "get", "put", "start", "stop",
}

var oneWord = regexp.MustCompile(`^[a-z0-9]+$`)

// add adds a file.
func (c *counts) add(file *ast.File, content string) {
	c.wrapped += strings.Count(content, "%w")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() {
				return true
			}
			c.functions++
			if oneWord.MatchString(n.Name.Name) && !slices.Contains(idioms, n.Name.Name) {
				c.oneWord++
			}
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				return true
			}
			if last, ok := n.Results[len(n.Results)-1].(*ast.Ident); ok && last.Name == "err" {
				c.bare++
			}
		}
		return true
	})
}

// String returns the counts in a sentence each.
func (c *counts) String() string {
	return fmt.Sprintf("unexported functions: %d, of which %d (%d %%) have a name of one word\nerrors: %d wrapped, %d returned as they are (%.1f : 1)",
		c.functions, c.oneWord, 100*c.oneWord/max(1, c.functions), c.wrapped, c.bare, float64(c.wrapped)/float64(max(1, c.bare)))
}
