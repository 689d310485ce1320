// Command platforms checks that the programs compile for the platforms in its arguments, such as windows/amd64. It reads the source of
// all they import, and of other modules no function: compiling those takes minutes for each platform, and this takes seconds.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

func main() {
	for _, platform := range os.Args[1:] {
		if err := checkPlatform(context.Background(), platform, "./cmd/..."); err != nil {
			fmt.Fprintf(os.Stderr, "platforms: the programs do not compile for %s: %v\n", platform, err)
			os.Exit(1)
		}
	}
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string            `json:"ImportPath"`
	Dir        string            `json:"Dir"`
	GoFiles    []string          `json:"GoFiles"`
	ImportMap  map[string]string `json:"ImportMap"`
	// Module is nil for the standard library.
	Module *struct {
		Main      bool   `json:"Main"`
		GoVersion string `json:"GoVersion"`
	} `json:"Module"`
}

// checkPlatform checks the types of packages and of all they import.
func checkPlatform(ctx context.Context, platform string, patterns ...string) error {
	system, processor, found := strings.Cut(platform, "/")
	if !found {
		return fmt.Errorf("%q is not like windows/amd64", platform)
	}
	all, err := listPackages(ctx, system, processor, patterns)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	parsed := parsePackages(files, all)
	known := knownPackages{"unsafe": types.Unsafe}
	for i, p := range all { // what a package imports comes before it
		if parsed[i].err != nil {
			return parsed[i].err
		}
		if known[p.ImportPath], err = checkTypes(files, processor, p, parsed[i].files, known); err != nil {
			return err
		}
	}
	return nil
}

// listPackages returns the packages and all they import for a platform, each after its imports.
func listPackages(ctx context.Context, system, processor string, patterns []string) ([]listed, error) {
	args := append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the patterns are the caller's
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("decode answer of go list: %w", err)
		case p.ImportPath != "unsafe":
			all = append(all, p)
		}
	}
}

// parsing is the result for one package.
type parsing struct {
	files []*ast.File
	err   error
}

// parsePackages parses as many packages at once as there are processors.
func parsePackages(files *token.FileSet, all []listed) []parsing {
	parsed := make([]parsing, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				for _, name := range all[i].GoFiles {
					file, err := parser.ParseFile(files, filepath.Join(all[i].Dir, name), nil, parser.SkipObjectResolution)
					parsed[i].files, parsed[i].err = append(parsed[i].files, file), errors.Join(parsed[i].err, err)
				}
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	return parsed
}

// knownPackages are the packages that were checked, by their import paths.
type knownPackages map[string]*types.Package

// imports finds the packages that one package imports.
type imports struct {
	known  knownPackages
	mapped map[string]string
}

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if mapped, ok := i.mapped[path]; ok {
		path = mapped
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s was not listed", path)
}

// checkTypes checks the types of a package, and of its functions if it is one of this module.
func checkTypes(files *token.FileSet, processor string, p listed, parsed []*ast.File, known knownPackages) (*types.Package, error) {
	var errs []error
	own := p.Module != nil && p.Module.Main
	config := types.Config{
		Importer: imports{known, p.ImportMap}, Sizes: types.SizesFor("gc", processor), IgnoreFuncBodies: !own, FakeImportC: true,
		Error: func(err error) { errs = append(errs, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	checked, err := config.Check(p.ImportPath, files, parsed, nil)
	if err != nil && own {
		return nil, errors.Join(errs...)
	}
	return checked, nil // compilers have seen the other modules
}
