package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// productFolders are the folders of the product.
//
//nolint:gochecknoglobals // Go has no constant slices
var productFolders = []string{"api", "cmd", "controllers", "internal"}

// declaration is a top-level declaration of the product.
type declaration struct {
	pkg        string // name of its package
	file       string // absolute path
	start, end int    // bytes of the file
}

// product is the parsed source that mutants are planted in.
type product struct {
	files        map[string][]byte
	declarations map[string][]declaration // by name, such as Verify or (*Request).Verify
}

// parseProduct parses the Go files of the folders, without tests.
func parseProduct(root string, folders ...string) (*product, error) {
	p := &product{files: map[string][]byte{}, declarations: map[string][]declaration{}}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
				return nil
			default:
				return p.parseFile(path)
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("parse %s: %w", folder, err)
		}
	}
	return p, nil
}

func (p *product) parseFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p.files[path] = text
	add := func(name string, node ast.Node) {
		p.declarations[name] = append(p.declarations[name], declaration{
			pkg: file.Name.Name, file: path,
			start: positions.Position(node.Pos()).Offset, end: positions.Position(node.End()).Offset,
		})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(functionName(d), d)
		case *ast.GenDecl:
			addSpecs(d, add)
		}
	}
	return nil
}

// addSpecs adds each type, variable and constant of a declaration.
func addSpecs(d *ast.GenDecl, add func(name string, node ast.Node)) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			add(spec.Name.Name, spec)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				add(name.Name, spec)
			}
		}
	}
}

// functionName returns the name of a function or method as in Edit.Symbol, without the package and type parameters.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver, format := d.Recv.List[0].Type, "%s.%s"
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver, format = star.X, "(*%s).%s"
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	return fmt.Sprintf(format, receiver, d.Name.Name)
}

// applyMutant returns the content of the files that a mutant changes, by path.
func (p *product) applyMutant(m Mutant) (map[string][]byte, error) {
	type place struct {
		file       string
		start, end int
		text       string
	}
	var places []place
	for _, e := range m.edits() {
		d, at, err := p.findEdit(e)
		if err != nil {
			return nil, err
		}
		places = append(places, place{d.file, at[0], at[1], e.New})
	}
	// From the end, so that an edit does not move the bytes of the next.
	slices.SortFunc(places, func(a, b place) int { return b.start - a.start })
	changed := map[string][]byte{}
	for _, at := range places {
		text := changed[at.file]
		if text == nil {
			text = p.files[at.file]
		}
		changed[at.file] = slices.Concat(text[:at.start], []byte(at.text), text[at.end:])
	}
	return changed, nil
}

// findEdit returns the one declaration that an edit fits, and the range of bytes in its file to replace.
func (p *product) findEdit(e Edit) (declaration, [2]int, error) {
	all, pkg := p.declarations[e.Symbol], ""
	if qualifier, name, qualified := strings.Cut(e.Symbol, "."); qualified && len(all) == 0 {
		all, pkg = p.declarations[name], qualifier
	}
	if len(all) == 0 {
		return declaration{}, [2]int{}, fmt.Errorf("%s is not declared", e.Symbol)
	}
	if own := declaredIn(all, pkg); len(own) > 0 {
		all = own
	}
	var (
		found  []declaration
		places [][2]int
	)
	pattern := spacePattern(e.Old)
	for _, d := range all {
		for _, at := range pattern.FindAllIndex(p.files[d.file][d.start:d.end], -1) {
			found, places = append(found, d), append(places, [2]int{d.start + at[0], d.start + at[1]})
		}
	}
	if len(found) != 1 {
		return declaration{}, [2]int{}, fmt.Errorf("%s contains %q %d times, want once", e.Symbol, e.Old, len(found))
	}
	return found[0], places[0], nil
}

func declaredIn(all []declaration, pkg string) []declaration {
	var kept []declaration
	for _, d := range all {
		if d.pkg == pkg {
			kept = append(kept, d)
		}
	}
	return kept
}

// spacePattern matches a text with any white space, because formatting may change.
func spacePattern(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}
