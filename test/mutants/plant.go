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

// declaration is a top-level declaration of the product.
type declaration struct {
	pkg, file  string
	start, end int // bytes of the file
}

// product is the parsed source that mutants are planted in.
type product struct {
	files        map[string][]byte
	declarations map[string][]declaration // by name, such as Verify or (*Request).Verify
}

// parseProduct parses the Go files of the product, without tests.
func parseProduct(root string) (*product, error) {
	p := &product{files: map[string][]byte{}, declarations: map[string][]declaration{}}
	for _, folder := range []string{"api", "cmd", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return p.parseFile(path)
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
		return fmt.Errorf("read source: %w", err)
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse source: %w", err)
	}
	p.files[path] = text
	add := func(name string, node ast.Node) {
		p.declarations[name] = append(p.declarations[name], declaration{
			file.Name.Name, path, positions.Position(node.Pos()).Offset, positions.Position(node.End()).Offset,
		})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(functionName(d), d)
		case *ast.GenDecl:
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
	}
	return nil
}

// functionName returns the name of a function or method as in Mutant.Symbol, without the package.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	if star, ok := d.Recv.List[0].Type.(*ast.StarExpr); ok {
		return fmt.Sprintf("(*%s).%s", star.X, d.Name.Name)
	}
	return fmt.Sprintf("%s.%s", d.Recv.List[0].Type, d.Name.Name)
}

// applyMutant returns the file that a mutant changes, and its content then. The text must fit one declaration, once.
func (p *product) applyMutant(m Mutant) (file string, text []byte, err error) {
	all, pkg := p.declarations[m.Symbol], ""
	if qualifier, name, qualified := strings.Cut(m.Symbol, "."); qualified && len(all) == 0 {
		all, pkg = p.declarations[name], qualifier
	}
	if own := slices.DeleteFunc(slices.Clone(all), func(d declaration) bool { return d.pkg != pkg }); len(own) > 0 {
		all = own
	}
	words := strings.Fields(m.Old)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	pattern, fits := regexp.MustCompile(strings.Join(words, `\s+`)), 0
	for _, d := range all {
		before := p.files[d.file]
		for _, at := range pattern.FindAllIndex(before[d.start:d.end], -1) {
			file, fits = d.file, fits+1
			text = slices.Concat(before[:d.start+at[0]], []byte(m.New), before[d.start+at[1]:])
		}
	}
	if fits != 1 {
		return "", nil, fmt.Errorf("%s contains %q %d times, want once", m.Symbol, m.Old, fits)
	}
	return file, text, nil
}
