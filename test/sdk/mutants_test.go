package sdk

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	names, err := filepath.Glob(filepath.Join(folder, files))
	if err != nil {
		return err
	}
	found := 0
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		count := bytes.Count(content, []byte(m.old))
		if found += count; count != 1 {
			continue
		}
		if err := os.WriteFile(name, bytes.Replace(content, []byte(m.old), []byte(m.new), 1), 0o600); err != nil {
			return err
		}
	}
	if found != 1 {
		return fmt.Errorf("the library in %s has %d times, not once: %s", m.language, found, m.old)
	}
	return nil
}

// goMutants builds one program of all mutants of the Go library: a copy of the library and the driver for each, of which the environment
// variable MUTANT selects one. It returns its path.
var goMutants = sync.OnceValues(func() (string, error) {
	installed := filepath.Join(os.Getenv("PHONEPROOF_SDK"), "go")
	folder := filepath.Join(installed, "mutants")
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	var imports, cases strings.Builder
	for i, s := range table() {
		if s.mutant.language != "go" {
			continue
		}
		name := fmt.Sprintf("m%d", i)
		for _, part := range []string{"module", "source"} {
			if err := copyGo(filepath.Join(installed, part), filepath.Join(folder, name, part), name); err != nil {
				return "", err
			}
		}
		if err := replaceOnce(filepath.Join(folder, name, "module"), "*.go", s.mutant); err != nil {
			return "", err
		}
		fmt.Fprintf(&imports, "\t%s %q\n", name, "mutants/"+name+"/source")
		fmt.Fprintf(&cases, "\tcase %q:\n\t\t%s.Main()\n", s.name, name)
	}
	files := map[string]string{
		"go.mod":  "module mutants\n\ngo 1.24\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\n" + imports.String() + ")\n\nfunc main() {\n\tswitch os.Getenv(\"MUTANT\") {\n" + cases.String() + "\t}\n}\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(folder, "driver")
	build := exec.Command("go", "build", "-gcflags=mutants/...=-N -l", "-ldflags=-w", "-o", program, ".")
	build.Dir = folder
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the mutants: %w: %s", err, output)
	}
	return program, nil
})

// copyGo copies the Go files of a package into one of the module mutants, where the driver's main is a function of a package of its own.
func copyGo(from, to, name string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		changed := strings.NewReplacer(
			`"github.com/phoneproof/phoneproof/sdk/go`, `"mutants/`+name+`/module`,
			"\npackage main\n", "\npackage source\n", "\nfunc main() {", "\n// Main runs the driver.\nfunc Main() {",
		).Replace("\n" + string(content))
		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, []byte(changed), 0o600)
	})
}
