package sdk

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// libraries are where a library lies in the folder that it is installed in, and the name of its files.
var libraries = map[string]struct{ folder, files string }{
	"go":         {"module", "*.go"},
	"typescript": {"node_modules/PhoneProof/dist", "*.js"},
	"python":     {"phoneproof", "*.py"},
}

// plant returns a folder with the driver and the library of a scenario's mutant, and the environment that it is run in.
func plant(t *testing.T, s scenario) (folder string, environment []string) {
	t.Helper()
	source := installed(t, s.mutant.language)
	if s.mutant.language == "go" {
		program, err := goMutants()
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(program), []string{"MUTANT=" + s.name}
	}
	folder = t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	l := libraries[s.mutant.language]
	if err := replaceOnce(filepath.Join(folder, l.folder), l.files, s.mutant); err != nil {
		t.Fatal(err)
	}
	return folder, nil
}

// replaceOnce replaces the text of a mutant in the files of a folder, in which it occurs once.
func replaceOnce(folder, files string, m mutant) error {
	found := 0
	err := editFiles(folder, files, func(content []byte) []byte {
		found += bytes.Count(content, []byte(m.old))
		return bytes.Replace(content, []byte(m.old), []byte(m.new), 1)
	})
	if err == nil && found != 1 {
		err = fmt.Errorf("the library in %s has %d times, not once: %s", m.language, found, m.old)
	}
	return err
}

// editFiles changes the files of a folder.
func editFiles(folder, files string, edit func(content []byte) []byte) error {
	names, err := filepath.Glob(filepath.Join(folder, files))
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		changed := edit(content)
		if bytes.Equal(changed, content) {
			continue
		}
		if err := os.Remove(name); err != nil { // a module's files are read-only
			return err
		}
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// goMutants builds the driver with one copy of the Go library that has all mutants, of which the environment variable MUTANT selects one. It
// returns the program's path.
var goMutants = sync.OnceValues(func() (string, error) {
	installed := filepath.Join(os.Getenv("PHONEPROOF_SDK"), "go")
	folder := filepath.Join(installed, "mutants")
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	for _, part := range []string{"module", "source"} {
		if err := os.CopyFS(filepath.Join(folder, part), os.DirFS(filepath.Join(installed, part))); err != nil {
			return "", err
		}
	}
	planted := map[string]int{}
	err := editFiles(filepath.Join(folder, "module"), libraries["go"].files, func(content []byte) []byte { return switchMutants(content, planted) })
	if err != nil {
		return "", err
	}
	for _, s := range table() {
		if s.mutant.language == "go" && planted[s.name] != 1 {
			return "", fmt.Errorf("the functions in go have %d times, not once: %s", planted[s.name], s.mutant.old)
		}
	}
	const selected = "package phoneproof\n\nimport \"os\"\n\nvar mutant = os.Getenv(\"MUTANT\")\n"
	if err := os.WriteFile(filepath.Join(folder, "module", "mutant.go"), []byte(selected), 0o600); err != nil {
		return "", err
	}
	err = editFiles(filepath.Join(folder, "source"), "go.mod", func(content []byte) []byte {
		return append(content, "replace github.com/phoneproof/phoneproof/sdk/go => ../module\n"...)
	})
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "driver")
	build := exec.Command("go", "build", "-ldflags=-w", "-o", program, ".")
	build.Dir = filepath.Join(folder, "source")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the mutants: %w: %s", err, output)
	}
	return program, nil
})

// switchMutants returns a file in which each function with a mutant begins with a copy of its body that has it, and runs when it is selected.
// It counts the mutants.
func switchMutants(content []byte, planted map[string]int) []byte {
	file, err := parser.ParseFile(token.NewFileSet(), "", content, 0)
	if err != nil {
		panic(err) // it was built before
	}
	var changed []byte
	rest := 0
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		begin, end := int(function.Body.Lbrace), int(function.Body.Rbrace)-1 // a position is an offset and one
		body := content[begin:end]
		changed = append(changed, content[rest:begin]...)
		rest = begin
		for _, s := range table() {
			count := bytes.Count(body, []byte(s.mutant.old))
			if s.mutant.language != "go" || count == 0 {
				continue
			}
			planted[s.name] += count
			mutated := bytes.Replace(body, []byte(s.mutant.old), []byte(s.mutant.new), 1)
			if function.Type.Results == nil {
				mutated = append(mutated, "return\n"...)
			}
			changed = fmt.Appendf(changed, "\nif mutant == %q {%s}\n", s.name, mutated)
		}
	}
	return append(changed, content[rest:]...)
}
